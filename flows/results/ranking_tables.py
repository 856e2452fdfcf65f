"""How retrieval is shown: JSON Lines, and for each collection a table of rankers with the paired tests between them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from textbench.evaluation.metrics.ranked_retrieval import MEASURES, measure
from textbench.flows.results.method_names import explained, in_groups, marked_ranker
from textbench.flows.results.metric_names import heading
from textbench.flows.results.rankings import RankingCell, compare, per_query, shown_name
from textbench.flows.tables.table import Datum, Table, of_texts
from textbench.flows.tables.terminal import print_table
from textbench.tasks.collect import read_judged
from textbench.tasks.storage.store import Store
from textbench.tasks.words import counted

SHOWN = (
    "map", "precision_at_5", "precision_at_10", "ndcg_at_5", "ndcg_at_10", "r_precision", "reciprocal_rank",
)  # fmt: skip
HEADINGS = {name: heading(name) for name in SHOWN}
MAY_GO = ("r_precision", "reciprocal_rank", "ndcg_at_5", "precision_at_10")  # of a narrow terminal
LEVEL, SIGNIFICANT = 0.05, "*"
POLICY = {
    "positive": "codes from 1 count as relevant",
    "nonzero": "every judgment but code 0 counts as relevant",
}
Rows = Sequence[Mapping[str, Any]]


def outside_rows(
    runs: Mapping[str, Mapping[str, Mapping[str, float]]], cells: Sequence[RankingCell], store: Store
) -> list[dict[str, Any]]:
    """Return the measures of runs made elsewhere on the collection of the cells: name, metrics, per_query."""

    if not runs:
        return []
    cell = cells[0]
    judged = read_judged(store.open(cell.references["ingest"]), cell.settings["judgments"])
    found = []
    for name, run in runs.items():
        values = measure(run, judged.qrels)
        means = {m: sum(v[m] for v in values.values()) / len(values) for m in MEASURES}
        found.append({"collection": cell.dataset, "ranker": name, "measures": means, "per_query": values})
    return found


def json_lines(cells: Sequence[RankingCell], rows: Rows, outside: Rows, store: Store) -> Iterator[str]:
    """Yield one JSON object a cell: collection, ranker, measures, per_query, and what it was made with."""
    for cell, row in zip(cells, rows, strict=True):
        about = {"collection": cell.dataset, "ranker": cell.method, "measures": row["metrics"]}
        about |= {"per_query": {}, "left_out": {}}
        if row["error"] is None:
            left_out = store.open(cell.references["evaluate"]).json("choice")["left_out"]
            about |= {"per_query": _per_query(cell, store), "left_out": left_out}
        kept = (
            "protocol",
            "seed",
            "trials",
            "params",
            "on_border",
            "seconds",
            "peak_mb",
            "run_id",
            "cached",
            "error",
        )
        yield json.dumps(
            about | {"judgments": cell.settings["judgments"]} | {name: row[name] for name in kept}
        )
    for row in outside:
        yield json.dumps(dict(row))


def _per_query(cell: RankingCell, store: Store) -> dict[str, dict[str, float]]:
    queries, values = per_query([cell], store)
    return {query: {name: float(v[i]) for name, v in values.items()} for i, query in enumerate(queries)}


def ranking_tables(cells: Sequence[RankingCell], rows: Rows, outside: Rows, store: Store) -> list[Table]:
    """Return a table for each collection, best first: the rankers, the paired tests between them, and what failed."""
    tables = []
    for name in dict.fromkeys(cell.dataset for cell in cells):
        own = [(cell, row) for cell, row in zip(cells, rows, strict=True) if cell.dataset == name]
        done = [(cell, row) for cell, row in own if row["error"] is None]
        table = of_texts(name, ("ranker",), [])
        if done:
            shared, said = _of_shared_seeds(done)
            table = _table([cell for cell, _ in shared], [row for _, row in shared], outside, store)
            table = replace(table, note=" ".join(filter(None, (table.note, said))))
        failures = [f"{cell.label}: {row['error']}" for cell, row in own if row["error"]]
        tables.append(replace(table, failures=failures))
    return tables


def _of_shared_seeds(
    done: Sequence[tuple[RankingCell, Mapping[str, Any]]],
) -> tuple[Sequence[tuple[RankingCell, Mapping[str, Any]]], str]:
    """Return the cells of the seeds that every ranker finished, and a sentence on it where others did not.

    Means are compared over the same seeds; where there is none in common all are left, and the sentence says so.
    """
    ran: dict[str, set[int]] = {}
    for cell, _ in done:
        ran.setdefault(cell.method, set()).add(cell.seed)
    shared, every = set.intersection(*ran.values()), set.union(*ran.values())
    if shared == every:
        return done, ""
    if not shared:
        return done, "Means are of other seeds each, for no seed was finished by all."
    listed = ", ".join(map(str, sorted(shared)))
    return [one for one in done if one[0].seed in shared], f"Of the seeds that all finished: {listed}."


def render(cells: Sequence[RankingCell], rows: Rows, outside: Rows, store: Store) -> None:
    """Print the table of each collection, and if they are several MAP on all of them."""
    from rich.console import Console

    console = Console()
    for table in ranking_tables(cells, rows, outside, store):
        print_table(console, table)
    if len(names := list(dict.fromkeys(cell.dataset for cell in cells))) > 1:
        console.print()
        print_table(console, _overview(names, cells, rows, console.width))


def _table(cells: Sequence[RankingCell], rows: Rows, outside: Rows, store: Store) -> Table:
    """Return the rankers of a collection, best first, with the paired tests against the best."""
    lines, tests = _lines(cells, rows, outside), compare(cells, store)
    tested = {cell.method for cell in cells}
    first = next(ranker for ranker, *_ in lines if ranker in tested)
    headings = [("ranker", "ranker"), *HEADINGS.items(), *([("p", "p")] if tests else []), ("seconds", "s")]
    table = []
    for ranker, means, seconds in lines:
        figures = [Datum(f"{100 * means[name]:.1f}", means[name]) for name in HEADINGS]
        p = [Datum(_p(first, ranker, tests))] if tests else []
        table.append([_name(marked_ranker(ranker)), *figures, *p, Datum(seconds)])
    best = "the first" if first == lines[0][0] else first
    note = (
        f"p: paired randomisation test of MAP against {best}, with Holm's correction over "
        f"{counted(len(tests), 'pair')}; {SIGNIFICANT} below {LEVEL}."
    )
    right = [name for name, _ in headings[1:]]
    said = f"{note if tests else ''}{explained(row[0].text for row in table)}".strip()
    return in_groups(
        Table("rankers", _title(cells, store), headings, table, said, may_go=MAY_GO, right=right)
    )


def _overview(names: Sequence[str], cells: Sequence[RankingCell], rows: Rows, width: int) -> Table:
    """Return MAP, a line a collection and a column a ranker, as SCDV (EMNLP 2017) prints its Table 6.

    Where the rankers' names are too wide together, a ranker is a line and a collection a column.
    """
    asked = list(dict.fromkeys(cell.method for cell in cells))
    values: dict[tuple[str, str], list[float]] = {}
    for cell, row in zip(cells, rows, strict=True):
        if row["error"] is None:
            values.setdefault((cell.dataset, cell.method), []).append(row["metrics"]["map"])
    means = {place: f"{sum(found) / len(found):.4f}" for place, found in values.items()}
    lines: list[list[str | Datum]]
    if max(map(len, names)) + sum(max(len(name), 6) + 2 for name in asked) <= width:
        columns, lines = (
            asked,
            [[name, *(means.get((name, ranker), "-") for ranker in asked)] for name in names],
        )
    else:
        columns = list(names)
        lines = [[_name(ranker), *(means.get((name, ranker), "-") for name in names)] for ranker in asked]
    return of_texts("Mean average precision", ("MAP", *columns), lines)


def _name(ranker: str) -> Datum:
    return Datum(ranker, parts=ranker.split())


def _lines(
    cells: Sequence[RankingCell], rows: Rows, outside: Rows
) -> list[tuple[str, dict[str, float], str]]:
    """Return (ranker, means over seeds, seconds) best MAP first."""
    lines = []
    for ranker in dict.fromkeys(cell.method for cell in cells):
        found = [row for cell, row in zip(cells, rows, strict=True) if cell.method == ranker]
        means = {key: sum(row["metrics"][key] for row in found) / len(found) for key in HEADINGS}
        seconds = sum(sum(row["seconds"].values()) for row in found) / len(found)
        lines.append((ranker, means, f"{seconds:.1f}"))
    lines += [(row["ranker"], dict(row["measures"]), "") for row in outside]
    return sorted(lines, key=lambda line: -line[1]["map"])


def _title(cells: Sequence[RankingCell], store: Store) -> str:
    cell = cells[0]
    result = store.open(cell.references["evaluate"])
    left_out = {reason: n for reason, n in result.json("choice")["left_out"].items() if n}
    n_queries = result.table("per_query", ["query"]).num_rows
    how = f"{cell.settings['n_folds']} folds, {cell.trials} settings" if cell.trials else "nothing tuned"
    apart = "".join(f"; {n} {reason}" for reason, n in left_out.items())
    name = shown_name(cell, store)
    return f"{name}, {cell.protocol}: {n_queries} queries, {POLICY[cell.settings['judgments']]}; {how}{apart}"


def _p(best: str, ranker: str, tests: Rows) -> str:
    pair = {best, ranker}
    p = next((test["p_holm"] for test in tests if {test["better"], test["worse"]} == pair), None)
    return "" if p is None else f"{p:.3f}{SIGNIFICANT if p < LEVEL else ' '}"
