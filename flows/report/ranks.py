"""Chapter two: how sure it is, over data sets: average ranks, and what they tell apart."""

from collections.abc import Sequence

from textbench.evaluation.statistics.significance import average_ranks
from textbench.flows.report.boards import Board
from textbench.flows.results.comparison import Ranking
from textbench.flows.results.method_names import explained, in_groups
from textbench.flows.results.metric_names import KNOWN
from textbench.flows.results.summary import mean_over
from textbench.flows.tables.table import LOCAL, Datum, Table

FEWEST = 3  # methods in common from which on data sets are ranked over


def rankings(boards: Sequence[Board]) -> dict[str, "Ranking"]:
    """Return by protocol the average ranks of the methods over the data sets that share most of them.

    Data sets join by their number of methods, largest first, as long as three methods stay in common.
    """
    import numpy as np

    found = {}
    for protocol in dict.fromkeys(board.protocol for board in boards):
        chosen, methods = _in_common([board for board in boards if board.protocol == protocol])
        if len(chosen) < 2:
            continue
        scores = np.array([_scores(board, methods) for board in chosen])
        ranks = average_ranks(scores)
        found[protocol] = Ranking(
            [board.dataset for board in chosen], methods, ranks.average.tolist(), ranks.p, ranks.critical_difference,
            ranks.level,
        )  # fmt: skip
    return found


def _in_common(boards: Sequence[Board]) -> tuple[list[Board], list[str]]:
    chosen: list[Board] = []
    methods: list[str] = []
    for board in sorted(boards, key=lambda board: -len(board.summaries)):
        own = [summary.label for summary in board.summaries]
        both = [label for label in methods if label in own] if chosen else own
        if len(both) >= FEWEST:
            chosen, methods = [*chosen, board], both
    return chosen, sorted(methods)


def _scores(board: Board, methods: Sequence[str]) -> list[float]:
    """Return the methods' means, of the seeds that all of them ran, of which more is better."""
    sign = 1 if KNOWN[board.metric].higher_is_better else -1
    own = {summary.label: summary for summary in board.summaries}
    ran = [{*own[method].by_seed.get(board.metric, ())} for method in methods]
    if seeds := sorted(set.intersection(*ran)):
        return [sign * mean_over(own[method], board.metric, seeds) for method in methods]
    return [sign * own[method].mean[board.metric] for method in methods]


def rank_table(protocol: str, ranks: Ranking) -> Table:
    """Return the average ranks as a table."""
    order = sorted(zip(ranks.average_ranks, ranks.methods, strict=True))
    least = order[0][0]
    rows = []
    for rank, method in order:
        mark = "not told apart from the first" if least < rank < least + ranks.critical_difference else ""
        rows.append([Datum(method, mark=mark), Datum(f"{rank:.2f}", rank)])
    friedman = (
        ""
        if ranks.friedman_p is None
        else f" Friedman's test that all are alike: p = {ranks.friedman_p:.2g}."
    )
    note = (
        f"Over {', '.join(ranks.datasets)}. Two methods differ where their ranks are "
        f"{ranks.critical_difference:.2f} apart "
        f"(Nemenyi, {100 * ranks.level:.0f} %).{friedman}{explained(ranks.methods)}"
    )
    headings = [("method", "method"), ("average_rank", "average rank")]
    title = f"Average ranks, {protocol} protocol"
    return in_groups(Table(f"ranks-{protocol}", title, headings, rows, note, LOCAL))
