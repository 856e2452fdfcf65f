"""What an exported ensemble is made of, and what its members say together of new texts.

Its file is that of `flows.explain.export`. The arrays of a member stand under its name, `member_01/probe/coef`, the
rest of it in the manifest's `members`; `ensemble` is ensemble.json of the run (`tasks.ensemble.choice`). Members that
do not count are left out.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textbench.flows.results.runs import Run
from textbench.tasks import InputError, catalogue, ensemble

if TYPE_CHECKING:
    import numpy as np


def members_that_count(run: Run) -> tuple[dict[str, Any], dict[str, Run]]:
    """Return ensemble.json of an ensemble's run and, by name, the runs of its members, without those that do not count.

    Raises InputError when artifacts are gone, and for documents that were smoothed over others.
    """
    about = run.open("choice").json("ensemble")
    if "share" in about:
        raise InputError(
            f"{run.row['method']} decides on test documents together: there is no model of one text; "
            f"export the ensemble without {ensemble.SMOOTH}"
        )
    spelled = ensemble.members(catalogue.parse_method(run.row["request"]["methods"][0])[1])
    # Stacked weights of 0 stay: without them sums could be added up in another order.
    counted = [
        place for place, one in enumerate(about["members"]) if one["weight"] or about["scheme"] == "stacked"
    ]
    runs = {f"member_{place + 1:02}": _member(run, place, *spelled[place]) for place in counted}
    return about | {"members": [about["members"][place] for place in counted]}, runs


def _member(run: Run, place: int, method: str, rule: str | None) -> Run:
    """Return the run of a member: the result that the ensemble's was made of."""
    asked = run.row["request"] | {"methods": [method]} | ({"rule": rule} if rule else {})
    key = run.reference.inputs[f"member_{place + 1:02}"].key
    return Run(run.home, {**run.row, "method": method, "key": key, "request": asked})


def combined(about: Mapping[str, Any], scores: "Sequence[np.ndarray]") -> "np.ndarray":
    """Return the ensemble's scores, float64 (n_texts, n_labels), of its members' scores, each of that shape.

    about: as `members_that_count` gives it.
    """
    import numpy as np

    weights, lines = ensemble.weights_of(about)
    log_odds = np.stack([line.log_odds(one) for line, one in zip(lines, scores, strict=True)])
    found: np.ndarray = weights.combine(log_odds, several_labels=about["several_labels"])
    return found
