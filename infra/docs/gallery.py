"""The gallery: twelve pictures, each with the command that makes it.

Those of the record are drawn when the site is built (`python -m infra.docs picture NAME FILE` draws one). Three of runs
that take longer are files of `infra/`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from infra.docs.record import entries
from textbench.flows.referee import recorded_draws
from textbench.flows.referee.held import counts, headlines, held
from textbench.flows.report import boards, charts, curves, recorded
from textbench.flows.results.learning_curves import summarise


@dataclass(frozen=True)
class Picture:
    """A picture: its file's name, a heading, what it shows, the command; `draw` is None for a file of infra/."""

    name: str
    title: str
    about: str
    command: str
    draw: Callable[[], charts.Figure] | None = None


@cache
def _board(dataset: str, protocol: str, paper: str = "") -> boards.Board:
    """A recorded board; its methods stand where a report has those of local runs, so that costs are drawn too."""
    found = boards.recorded_boards(recorded.summaries(), [])
    (one,) = [b for b in found if (b.dataset, b.protocol) == (dataset, protocol) and b.paper in ("", paper)][
        :1
    ]
    return one


def _leaderboard(*place: str) -> Callable[[], charts.Figure]:
    return lambda: charts.leaderboard(_board(*place))


def _cost(kind: str, *place: str) -> Callable[[], charts.Figure]:
    def draw() -> charts.Figure:
        board = _board(*place)
        figure = charts.cost(replace(board, summaries=board.recorded, recorded=[]), kind)
        assert figure is not None, f"{place} has no {kind}"
        return figure

    return draw


def _held(paper: str, place: str, dataset: str, metric: str) -> Callable[[], charts.Figure]:
    def draw() -> charts.Figure:
        found = held(entries())[paper, place, dataset, metric]
        return charts.held(found, f"fig-{paper}-{place}", f"{paper}, {place}: {metric} on {dataset}")

    return draw


def _curves(*group: str) -> Callable[[], charts.Figure]:
    def draw() -> charts.Figure:
        rows = curves.groups(recorded_draws.rows())[group]
        return charts.curves(curves.drawn(summarise(rows)), "fig-label-budgets", curves.headed(*group))

    return draw


def _drawn(name: str) -> str:
    return f"python -m infra.docs picture {name} {name}.svg"


SCDV, COMPRESSIVE = "scdv-2017", "compressive-features-2013"
PICTURES = (
    Picture(
        "leaderboard",
        "A leaderboard",
        "Accuracy of seven methods on Reuters R8, with 95 % intervals and seconds.",
        "textbench run quick && textbench leaderboard --figure leaderboard.svg",
    ),
    Picture(
        "label-budgets",
        "How many labels",
        "Accuracy of eleven methods on Reuters R8 by the number of labelled documents.",
        _drawn("label-budgets"),
        _curves("r8", "honest", curves.BY_CLASS),
    ),
    Picture(
        "scdv-sweeps",
        "A paper's figure, remade",
        "Accuracy of SCDV by clusters, dimensions and threshold: figure 4 of the paper.",
        "textbench run scdv",
    ),
    Picture(
        "verdicts",
        "Verdicts",
        "How many published figures have each verdict, by paper.",
        "textbench report --claims --figure verdicts.svg",
        lambda: charts.verdicts(counts(entries()), headlines(entries())),
    ),
    Picture(
        "scdv-table-1",
        "Table 1 of SCDV",
        "Accuracy on 20 Newsgroups: published beside measured, with the verdict.",
        _drawn("scdv-table-1"),
        _held(SCDV, "table-1", "20ng", "accuracy"),
    ),
    Picture(
        "scdv-table-3",
        "Table 3 of SCDV",
        "Weighted F1 on Reuters, 70 percent for training: published beside measured.",
        _drawn("scdv-table-3"),
        _held(SCDV, "table-3", "reuters-random70", "weighted F1 at 0"),
    ),
    Picture(
        "compressive-table-1",
        "Table 1 of compressive features",
        "Accuracy on 20 Newsgroups: published beside measured.",
        _drawn("compressive-table-1"),
        _held(COMPRESSIVE, "table-1", "20ng", "accuracy"),
    ),
    Picture(
        "board-20ng-scdv",
        "SCDV's protocol",
        "What is recorded of 20 Newsgroups under the faithful protocol of SCDV.",
        _drawn("board-20ng-scdv"),
        _leaderboard("20ng", "faithful", SCDV),
    ),
    Picture(
        "board-20ng-honest",
        "20 Newsgroups, honest",
        "What is recorded of 20 Newsgroups, learned from training texts alone.",
        _drawn("board-20ng-honest"),
        _leaderboard("20ng", "honest"),
    ),
    Picture(
        "board-reuters90",
        "Several labels per document",
        "What is recorded of Reuters with 90 labels.",
        _drawn("board-reuters90"),
        _leaderboard("reuters90", "honest"),
    ),
    Picture(
        "seconds",
        "Is it worth its seconds?",
        "Accuracy against seconds; nothing is both better and cheaper than what is joined.",
        _drawn("seconds"),
        _cost("seconds", "20ng", "faithful", SCDV),
    ),
    Picture(
        "memory",
        "Is it worth its memory?",
        "Accuracy against peak memory, on the same data.",
        _drawn("memory"),
        _cost("peak_mb", "20ng", "faithful", SCDV),
    ),
)


def page() -> list[str]:
    """Return the page of the gallery."""
    lines = ["# Gallery", "", "Twelve pictures, each with the command that makes it.", ""]
    for one in PICTURES:
        lines += [f"## {one.title}", "", f"![{one.about}](pictures/{one.name}.svg)", "", f"*{one.about}*", ""]
        lines += ["```bash", one.command, "```", ""]
    return lines


def write(name: str, path: Path) -> None:
    """Draw a picture of the record to an SVG file. Raises SystemExit for a name that there is not."""
    found = {one.name: one.draw for one in PICTURES if one.draw}
    if name not in found:
        raise SystemExit(f"there is no picture {name!r}; there are {', '.join(found)}")
    svg = found[name]().svg
    paper = '<rect width="100%" height="100%" fill="#ffffff"/>'
    head, rest = svg.split("</desc>", 1)
    path.write_text(f"{head}</desc>{paper}{rest}", "utf-8")


def draw(folder: Path) -> None:
    """Draw every picture of the record into a folder."""
    for one in PICTURES:
        if one.draw:
            write(one.name, folder / f"{one.name}.svg")
