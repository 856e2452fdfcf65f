"""Chapter two: how sure it is, class by class: where the best method of a board differs from the next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.evaluation.statistics.significance import holm, mcnemar_exact
from textbench.flows.report.boards import Board
from textbench.flows.report.evidence import Evidence, Row, known
from textbench.flows.results.method_names import explained
from textbench.flows.results.predictions import is_several, predictions
from textbench.flows.results.winner import LEVEL, runs_of
from textbench.flows.tables.table import LOCAL, Datum, Table, number
from textbench.tasks import InputError

if TYPE_CHECKING:
    import numpy as np

LONG = 20  # classes from which on a table is folded
MISSED = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0}  # of a class a method never predicts


@dataclass(frozen=True)
class Side:
    """A method's run: its name, figures by class, and of each label of each test document whether it was found."""

    name: str
    classes: Mapping[str, Mapping[str, Any]]
    targets: Sequence[str]
    found: "np.ndarray"


def table(evidence: Evidence, board: Board) -> Table | None:
    """Return the classes of a board: the best method beside the next, with what differs marked.

    A class is tested by McNemar's exact test on its test documents, found by one method alone or by the other,
    Holm-corrected over the classes. None where fewer than two methods are in the store with their predictions.
    """
    import numpy as np

    sides = _two(evidence, board)
    if sides is None:
        return None
    one, other = sides
    names = list(dict.fromkeys([*one.classes, *other.classes]))
    targets = np.array(one.targets)
    tests = [mcnemar_exact(*(side.found[targets == name] for side in sides)) for name in names]
    p_values = holm([test.p for test in tests])
    rows = [
        _line(
            name, [side.classes.get(name, MISSED) for side in sides], (test.first_only, test.second_only), p
        )
        for name, test, p in zip(names, tests, p_values, strict=True)
    ]
    headings = [
        ("class", "class"), ("documents", "test documents"), ("f1_first", f"F1, {one.name}"),
        ("f1_second", f"F1, {other.name}"), ("f1_difference", "difference"), ("recall_first", f"recall, {one.name}"),
        ("recall_second", f"recall, {other.name}"), ("only", "found by one alone"), ("p", "p"),
    ]  # fmt: skip
    note = (
        f"Percent, the lowest seed that both ran. Better or worse: of the class's test documents {one.name} finds "
        f"significantly more or fewer than {other.name} (McNemar's exact test, Holm-corrected over "
        f"{len(rows)} classes).{explained([one.name, other.name])}"
    )
    title = f"Classes of {board.title}: {one.name} beside {other.name}"
    return Table(f"classes-{board.name}", title, headings, rows, note, LOCAL, is_folded=len(rows) > LONG)


def _line(name: str, both: Sequence[Mapping[str, Any]], only: tuple[int, int], p: float) -> list[Datum]:
    first, second = both
    gap = first["f1"] - second["f1"]
    mark = "" if p >= LEVEL else "better" if only[0] > only[1] else "worse"
    n_documents = max(first["support"], second["support"])
    return [
        Datum(name),
        Datum(f"{n_documents:,}", n_documents),
        number(first["f1"], scale=100),
        number(second["f1"], scale=100),
        Datum(f"{100 * gap:+.2f}", gap),
        number(first["recall"], scale=100),
        number(second["recall"], scale=100),
        Datum(f"{only[0]} : {only[1]}"),
        Datum(f"{p:.2g}", p, mark, is_strong=bool(mark)),
    ]


def _two(evidence: Evidence, board: Board) -> tuple[Side, Side] | None:
    """Return the best method and the first after it that ran a seed of it on the same documents."""
    runs = {summary.label: runs_of(evidence.rows, summary) for summary in board.summaries}
    first, *others = runs
    for other in others:
        seeds = sorted(runs[first].keys() & runs[other].keys())
        if seeds:
            pair = [_side(evidence.home, name, runs[name][seeds[0]]) for name in (first, other)]
            if pair[0] is None:
                return None
            if pair[1] is not None and pair[0].targets == pair[1].targets:
                return pair[0], pair[1]
    return None


def _side(home: Path, name: str, row: Row) -> Side | None:
    """Return a run's side; None if it is no longer in the store."""
    import numpy as np

    about = known(home, row)
    if about.classes is None or about.corpus is None:
        return None
    try:
        answers = predictions(home, row)
    except InputError:
        return None
    targets, given = (answers[column].to_pylist() for column in ("target", "predicted"))
    if is_several(answers):
        pairs = [(one, one in set(own)) for true, own in zip(targets, given, strict=True) for one in true]
    else:
        pairs = [(target, target == own) for target, own in zip(targets, given, strict=True)]
    labels = about.corpus["target_names"]
    return Side(
        name,
        {line["class"]: line for line in about.classes},
        [labels[label] for label, _ in pairs],
        np.array([is_found for _, is_found in pairs]),
    )
