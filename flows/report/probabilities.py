"""Chapter two: whether probabilities are right, by log loss, Brier score and calibration error."""

from textbench.evaluation.metrics.calibration import CALIBRATED_BY, PROBABILITIES
from textbench.evaluation.statistics.intervals import mean_interval
from textbench.flows.report.boards import Board
from textbench.flows.report.evidence import Evidence
from textbench.flows.results.calibrated import with_probabilities
from textbench.flows.results.method_names import explained
from textbench.flows.results.metric_names import heading, places, scale, unit
from textbench.flows.results.winner import runs_of
from textbench.flows.tables.table import LOCAL, Datum, Table, number

QUESTION = "Are probabilities right?"


def table(evidence: Evidence, board: Board) -> Table | None:
    """Return what the probabilities of a board's methods are worth, means over seeds, lowest log loss first.

    None where no run kept out-of-fold scores, by which decision values become probabilities.
    """
    found: dict[str, list[float]] = {}
    for summary in board.summaries:
        rows = with_probabilities(evidence.home, runs_of(evidence.rows, summary).values())
        if told := [row["metrics"] for row in rows if PROBABILITIES.keys() <= row["metrics"].keys()]:
            found[summary.label] = [mean_interval([one[name] for one in told])[0] for name in PROBABILITIES]
    if not found:
        return None
    lines = [
        [
            Datum(label),
            *(
                number(value, places(name), scale(name))
                for name, value in zip(PROBABILITIES, found[label], strict=True)
            ),
        ]
        for label in sorted(found, key=lambda label: found[label][0])
    ]
    headings = [("method", "method"), *((name, heading(name)) for name in PROBABILITIES)]
    units = ", ".join(f"{heading(name)} in {unit(name)}" for name in PROBABILITIES)
    note = (
        f"{units}; less is better. Decision values of test documents become probabilities by {CALIBRATED_BY}, out of "
        f"fold. Means over seeds.{explained(found)}"
    )
    title = f"Probabilities of {board.title}"
    return Table(f"probabilities-{board.name}", title, headings, lines, note, LOCAL)
