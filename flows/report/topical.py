"""Chapter three, topics with word vectors: which of these methods is worth its seconds beside plainer ones."""

from collections.abc import Sequence

from textbench.flows.plots.costs import front
from textbench.flows.report.boards import Board, figure
from textbench.flows.results.metric_names import scale
from textbench.flows.results.summary import Summary
from textbench.flows.tables.table import LOCAL, RECORDED, Datum, Table, number
from textbench.tasks.words import counted

TOPICAL = (
    "twe-1", "ntsg", "ltsg", "wtm", "lf-lda", "topicvec", "mvtm", "lda2vec", "gaussian-lda",
)  # fmt: skip
PLAIN = ("tfidf", "lsi", "lda", "avgvec", "scdv")
NONE = (
    "None of the topical methods has been run here or is recorded with its seconds: textbench run scdv, or one of "
    "them on a small data set: textbench run -d r8 -m twe-1 -m tfidf"
)


def name_of(summary: Summary) -> str:
    """Return a method's name without its parameters."""
    return summary.method.partition("(")[0]


def timed(board: Board) -> list[tuple[Summary, str]]:
    """Return the topical and the plain methods of a board whose seconds are known, best first, and whose figures."""
    every = [(s, LOCAL) for s in board.summaries] + [(s, RECORDED) for s in board.recorded]
    own = [
        (s, source)
        for s, source in every
        if s.seconds is not None and board.metric in s.mean and name_of(s) in (*TOPICAL, *PLAIN)
    ]
    return sorted(own, key=lambda pair: -pair[0].mean[board.metric])


def tables(found: Sequence[Board]) -> list[Table]:
    """Return a table a board that has a topical method, best first; on the front nothing is better and cheaper."""
    return [_table(board, own) for board in found if _is_topical(own := timed(board))]


def answers(found: Sequence[Board]) -> list[str]:
    """Return in words, a board each, which topical methods nothing plain is both better and cheaper than."""
    lines = [_answer(board, own) for board in found if _is_topical(own := timed(board))]
    return lines or [NONE]


def _is_topical(own: Sequence[tuple[Summary, str]]) -> bool:
    return any(name_of(s) in TOPICAL for s, _ in own)


def _answer(board: Board, own: Sequence[tuple[Summary, str]]) -> str:
    topical = [s for s, _ in own if name_of(s) in TOPICAL]
    plain = [s for s, _ in own if name_of(s) in PLAIN]
    if not plain:
        return f"{board.title}: no plain method with seconds stands beside {counted(len(topical), 'topical method')}."
    worth = [s for s in topical if not any(_is_beaten(board, s, other) for other in plain)]
    said = ", ".join(f"{s.label} ({figure(board, s)} %, {s.seconds:.0f} s)" for s in worth)
    best = plain[0]
    beside = f"the best plain method is {best.label} ({figure(board, best)} %, {best.seconds:.0f} s)"
    if not worth:
        return (
            f"{board.title}: none of {counted(len(topical), 'topical method')} is worth its seconds, for each a plain "
            f"method is as good and no dearer; {beside}."
        )
    return (
        f"{board.title}: of {counted(len(topical), 'topical method')} worth their seconds: {said}; {beside}."
    )


def _is_beaten(board: Board, one: Summary, other: Summary) -> bool:
    is_as_good = other.mean[board.metric] >= one.mean[board.metric]
    return is_as_good and (other.seconds or 0.0) <= (one.seconds or 0.0)


def _table(board: Board, own: Sequence[tuple[Summary, str]]) -> Table:
    factor, best = scale(board.metric), front([(s.seconds or 0.0, s.mean[board.metric]) for s, _ in own])
    base = next((s for s, _ in own if name_of(s) == "tfidf"), None)
    rows = [
        [
            Datum(s.label),
            Datum("topical" if name_of(s) in TOPICAL else "plain"),
            Datum(figure(board, s), s.mean[board.metric]),
            number(s.mean[board.metric] - base.mean[board.metric] if base else None, scale=factor),
            number(
                s.seconds,
                1,
                mark="on the front" if (s.seconds, s.mean[board.metric]) in best else "",
            ),
            Datum(source),
        ]
        for s, source in own
    ]
    headings = [
        ("method", "method"), ("kind", "kind"), (board.metric, f"{board.heading}, %"), ("ahead", "points above TF-IDF"),
        ("seconds", "seconds per seed"), ("source", "whose figure"),
    ]  # fmt: skip
    note = (
        "Seconds are of all stages, word vectors and topics too; on the front nothing is better and cheaper."
    )
    return Table(f"topical-{board.name}", f"Topical methods: {board.title}", headings, rows, note)
