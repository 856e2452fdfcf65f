"""Seeds recorded earlier beside those of this results folder: five seeds need not be run in one place.

A row of measured.csv that is a mean over seeds keeps each seed's figure and the key of the cell (or piece) behind it.
The key is made of the parameters, the data, the code and the libraries. So a recorded seed stands beside fresh ones as
long as the cell that would be run for it now has the key that was recorded; any change of what computes it ends that.
Nor does it stand beside a fresh one that earlier code made.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from textbench.flows.plan.cell import key_now
from textbench.flows.plan.derived import plan_derived
from textbench.flows.plan.request import DerivedRequest
from textbench.flows.referee.measurement import Measurement, Row, over_seeds


def with_recorded(found: Measurement, record: Mapping[str, str]) -> Measurement:
    """Return a fresh figure over seeds with those that only its row of measured.csv has and that would be the same."""
    if not found.each or any(_key_now(row, row["seed"]) != row["key"] for row in found.rows):
        return found
    earlier = [
        (row, value)
        for row, value in _recorded(found.rows[0], record)
        if row["seed"] not in found.each and _key_now(found.rows[0], row["seed"]).startswith(row["key"])
    ]
    values = [*found.each.values(), *(value for _, value in earlier)]
    return over_seeds(values, [*found.rows, *(row for row, _ in earlier)])


def _recorded(like: Row, record: Mapping[str, str]) -> list[tuple[Row, float]]:
    """Return the recorded seeds as rows of the same method, with their figures; none where only a mean was kept."""
    each, params = (json.loads(record.get(name) or "{}") for name in ("each", "params"))
    about = {name: like[name] for name in ("dataset", "method", "protocol", "trials", "paper")}
    found: list[tuple[Row, float]] = []
    for (seed, value), key, run in zip(
        each.items(), record["cells"].split(), record["runs"].split(), strict=bool(each)
    ):
        own: dict[str, Any] = {"seed": int(seed), "key": key, "run_id": None if run == "-" else run}
        own |= {"params": params.get(f"{like['method']} seed {seed}", {}), "hardware": record["hardware"]}
        found.append(({**about, **own}, float(value)))
    return found


def _key_now(row: Row, seed: int) -> str:
    """Return the key that a cell, or a piece, has with another seed by the code and libraries of today."""
    asked = row.get("request")
    if asked is None:
        return _piece_key(row["dataset"], row["method"], row["paper"], row["stage"], seed)
    return key_now(asked, seeds=[seed])


@cache
def _piece_key(dataset: str, method: str, paper: str, stage: str, seed: int) -> str:

    asked = DerivedRequest([dataset], [method], [seed], "faithful", paper=paper, pieces=[stage])
    (piece,) = plan_derived(asked)
    return piece.key
