"""Verification: cells are computed again in an empty folder, and compared to the bit, stage by stage.

What differs is named: of a result that another machine or version made, the first stage whose recipe differs (its code,
or a library) and the first stage whose files do; of what has no stored files, the metrics.
"""

import math
import random
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textbench.evaluation.statistics.intervals import mean_interval
from textbench.flows.plan.base_cell import plain_stage
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import Request, fields_of
from textbench.flows.results import packed
from textbench.flows.run.engine import Threads, execute
from textbench.tasks import InputError, catalogue, score
from textbench.tasks.storage.store import Store
from textbench.tasks.words import counted

# In the order in which they are computed.
STAGES = (
    "ingest", "audit", "vectorize", "word_vectors", "token_topics", "text_vectors", "piece_vectors", "featurize",
    "tune", "evaluate", "out_of_fold",
)  # fmt: skip


@dataclass(frozen=True)
class Verification:
    """What computing a line again gave: `is_same` to the bit, `said` in words, and the `stage` that differs."""

    title: str
    is_same: bool
    said: str
    stage: str = ""


def sample(
    lines: Sequence[packed.Line], n: int | None, seed: int = 0, longest: float = math.inf
) -> list[packed.Line]:
    """Return `n` of the lines that can be computed again, drawn by the seed, all for None.

    Of the drawn ones each took at most `longest` seconds, all its seeds together; what is not known to is left out. For
    all it does not matter. Raises InputError where there are none.
    """
    able = [line for line in lines if line["command"]]
    if not able:
        raise InputError(
            "nothing here can be computed again: there are no lines, or only the user's own documents"
        )
    if n is None:
        return able
    short = [line for line in able if taken(line) <= longest]
    if not short:
        raise InputError(
            f"none of {counted(len(able), 'line')} is known to take at most {longest:g} s: say --longest, or --all"
        )
    return short if n >= len(short) else sorted(random.Random(seed).sample(short, n), key=packed.title)


def taken(line: packed.Line) -> float:
    """Return the seconds that a line took, all its seeds together; infinity where they are not known."""
    return math.inf if line["seconds"] is None else line["seconds"] * len(line["seeds"] or [0])


def verify(lines: Sequence[packed.Line], own: Store | None = None) -> Iterator[Verification]:
    """Compute each line again, in an empty folder that goes at the end, and say whether it gives the same bits.

    own: the store whose artifacts the lines are of, if it is here: their files are read whole and compared too.
    """
    with tempfile.TemporaryDirectory(prefix="textbench-verify-") as folder, Threads() as runner:
        store = Store(Path(folder) / "store")
        for line in lines:
            try:
                yield _verify(line, store, runner, own)
            except InputError as error:
                yield Verification(packed.title(line), False, f"cannot be computed here: {error}")


def request_of(line: packed.Line) -> Request:
    """Return what asks for a line's cells: the request that it holds, or what its command says."""
    if line["request"]:
        return Request(**line["request"])
    return from_command(line["command"], line["seeds"])


def from_command(command: str, seeds: Sequence[int]) -> Request:
    """Return the request of a command that the record holds. Raises InputError for one that is no run."""
    words = shlex.split(command)
    if words[:2] != ["textbench", "run"] or len(words) % 2:
        raise InputError(f"its command is no run of cells: {command}")
    known = {flag: one for one in fields_of(Request) for flag in one.flags}
    asked: dict[str, Any] = {}
    for flag, text in zip(words[2::2], words[3::2], strict=True):
        if flag not in known or known[flag].group:
            raise InputError(f"its command has an option that is not understood here, {flag}")
        one = known[flag]
        value = text if one.type is str else one.type(text)
        if one.is_list:
            asked.setdefault(one.name, []).append(value)
        else:
            asked[one.name] = value
    return Request(**asked | {"seeds": list(seeds)})


def _verify(line: packed.Line, store: Store, runner: Threads, own: Store | None) -> Verification:
    title, request = packed.title(line), request_of(line)
    if own is None and (packed.names_a_path(vars(request)) or any(map(_reads_a_file, request.methods))):
        raise InputError("it asks for a file, which is not read for somebody else's board")
    cells = plan(request)
    if wrong := _other_cells(line, cells):
        return Verification(title, False, f"what it asks for is {wrong}")
    failed: dict[str, str] = {}

    def finish(cell: Cell, error: str | None) -> None:
        if error:
            failed[cell.key] = error

    execute(cells, store, runner, finish)
    if failed:
        return Verification(title, False, f"failed: {next(iter(failed.values()))}")
    made = [score.metrics(store.open(cell.references["evaluate"])) for cell in cells]
    other = _other_code(line, cells)
    metrics = _other_metrics(line, made)
    stage = _other_files(line, cells[0], store, own) if len(cells) == 1 else ""
    if not metrics and not stage:
        return Verification(
            title, True, f"the same {'bits' if line['files'] else 'metrics'}{_although(other)}"
        )
    if not stage:
        return Verification(title, False, f"{metrics}{_although(other)}", "evaluate")
    damaged = own.damage(cells[0].references[stage]) if own else ""
    what = f"what is stored of {stage} is damaged ({damaged})" if damaged else f"{stage} differs"
    said = f"{what}; {metrics or 'the metrics are the same to the bit'}{_although(other)}"
    return Verification(title, False, said, stage)


def _reads_a_file(method: str) -> bool:
    """Tell whether a method, or a part of it, is a file of somebody's, wherever it is."""
    return ".py" in method or any(f"{name}(" in method.replace(" ", "") for name in catalogue.FILES)


def _other_cells(line: packed.Line, cells: Sequence[Cell]) -> str:
    """Say how the cells that a line asks for are not those it says it is of; "" where they are."""
    said = {name: line[name] for name in ("dataset", "protocol", "method", "trials")} | {
        "seeds": sorted(line["seeds"])
    }
    for cell in cells:
        asked = {"dataset": cell.dataset, "protocol": cell.protocol, "trials": cell.trials}
        asked |= {"method": packed.without_folders(cell.method), "seeds": sorted(one.seed for one in cells)}
        for name, value in said.items():
            if asked[name] != value:
                return f"{name} {asked[name]}, not {value}"
    return ""


def _although(other: str) -> str:
    return f" ({other})" if other else ""


def _other_code(line: packed.Line, cells: Sequence[Cell]) -> str:
    """Say which stage's code or libraries are not those that made a line, "" where all keys are the same."""
    if all(any(cell.key.startswith(key) for key in line["cells"]) for cell in cells):
        return ""
    for stage in sorted(line["recipes"].keys() & cells[0].references.keys(), key=_order):
        there, here = line["recipes"][stage], packed.own_recipe(cells[0].references[stage])
        changed = [
            f"{name} {there['libraries'].get(name, 'none')} there, {here['libraries'].get(name, 'none')} here"
            for name in sorted(there["libraries"].keys() | here["libraries"].keys())
            if there["libraries"].get(name) != here["libraries"].get(name)
        ]
        changed += ["its code changed"] * (there["code"] != here["code"])
        changed += ["it was asked for otherwise"] * (there["params"] != here["params"])
        if changed:
            return f"{stage} is made otherwise: {', '.join(changed)}"
    return "made by other code"


def _other_metrics(line: packed.Line, made: Sequence[Mapping[str, float]]) -> str:
    """Say which metrics are not those of a line; "" where all are equal, to the bit of a cell, and of means to 1e-12.

    A mean's own bits depend on the order of its seeds.
    """
    wrong = []
    for name, value in line["metrics"].items():
        now = [metrics[name] for metrics in made if name in metrics]
        mean = mean_interval(now)[0] if now else None
        near = 0.0 if len(made) == 1 else 1e-12
        if mean is None or abs(mean - value) > near:
            wrong.append(f"{name} is {mean if mean is None else repr(mean)}, not {value!r}")
    return "; ".join(wrong[:3]) + (f" and {len(wrong) - 3} more" if len(wrong) > 3 else "")


def _other_files(line: packed.Line, cell: Cell, store: Store, own: Store | None) -> str:
    """Return the first stage whose files are not the same to the bit; "" where all are that are known."""
    for stage in sorted(cell.references, key=_order):
        reference = cell.references[stage]
        if own and own.damage(reference):
            return stage
        then = line["files"].get(stage) or (packed.digests(own, reference) if own else {})
        if then and then != packed.digests(store, reference):
            return stage
    return ""


def _order(stage: str) -> tuple[bool, int, str]:
    """Sort stages as they are computed: those of an ensemble's members before what it is made of them."""
    plain = plain_stage(stage)
    place = STAGES.index(plain if plain in STAGES else "featurize")
    return stage == plain and place >= STAGES.index("tune"), place, stage
