"""Ranked retrieval: rankings from scores, their measures, TREC's run format, and a paired test between two rankers.

Sources: Manning, Raghavan and Schuetze, Introduction to Information Retrieval (2008), section 8.4; MacAvaney, Macdonald
and Ounis, Streamlining Evaluation with ir-measures, ECIR 2022, which computes all measures but the average precision
by which parameters are chosen; Smucker, Allan and Carterette, A Comparison of Statistical Significance Tests for
Information Retrieval Evaluation, CIKM 2007, for the test.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

DEPTH = 1000  # documents of a query that are kept, TREC's habit
# Our names, and ir-measures' own.
MEASURES = {
    "map": "AP",
    "precision_at_5": "P@5",
    "precision_at_10": "P@10",
    "ndcg_at_5": "nDCG@5",
    "ndcg_at_10": "nDCG@10",
    "r_precision": "Rprec",
    "reciprocal_rank": "RR",
}
N_PERMUTATIONS = 10_000
Qrels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, eq=False)
class Ranked:
    """What a query retrieved, best first: positions of documents, int64 (n,), and their scores, float32 (n,)."""

    documents: np.ndarray
    scores: np.ndarray


def tie_order(names: Sequence[str]) -> np.ndarray:
    """Return the order in which trec_eval puts documents of equal score, last name first: int64 (n_documents,)."""
    order = np.argsort(np.asarray(names, dtype=np.str_), kind="stable")
    return order[::-1]


def rank(scores: np.ndarray, ties: np.ndarray, depth: int = DEPTH) -> list[Ranked]:
    """Return each query's `depth` best documents; equal scores go in the order of `ties`, -inf is not retrieved.

    scores: (n_queries, n_documents), compared as float32, as trec_eval does; ties: a permutation of the documents.
    ValueError for a score that is nan.
    """
    if np.isnan(scores).any():
        raise ValueError(f"scores must be numbers; received {int(np.isnan(scores).sum())} nan")
    rankings = []
    for row in scores.astype(np.float32, copy=False):
        ordered = row[ties]
        # Only what can reach the first `depth` is sorted: a library has many documents, a ranking few.
        floor = np.partition(ordered, -depth)[-depth] if depth < len(ordered) else -np.inf
        places = np.flatnonzero((ordered >= floor) & (ordered > -np.inf))
        places = places[np.argsort(-ordered[places], kind="stable")][:depth]
        rankings.append(Ranked(ties[places], ordered[places]))
    return rankings


def average_precision(rankings: Sequence[Ranked], relevant: Sequence[np.ndarray]) -> np.ndarray:
    """Average precision of each query: float64 (n_queries,), trec_eval's `map` of each.

    relevant: for each query the positions of its relevant documents, at least one. Documents beyond the ranking
    count as not found.
    """
    values = np.zeros(len(rankings))
    for i, (ranked, wanted) in enumerate(zip(rankings, relevant, strict=True)):
        ranks = np.flatnonzero(np.isin(ranked.documents, wanted)) + 1
        values[i] = (np.arange(1, len(ranks) + 1) / ranks).sum() / len(wanted)
    return values


def measure(run: Mapping[str, Mapping[str, float]], qrels: Qrels) -> dict[str, dict[str, float]]:
    """Return every measure of every query of the qrels: query -> name in `MEASURES` -> fraction.

    run: query -> document -> score; a query that it lacks scores 0. qrels: query -> document -> gain, 0 or more;
    documents that the qrels lack are not relevant. nDCG's gains are linear.
    """
    import ir_measures

    own_name = {ir_measures.parse_measure(theirs): name for name, theirs in MEASURES.items()}
    found = {query: dict.fromkeys(MEASURES, 0.0) for query in qrels}
    for value in ir_measures.iter_calc(list(own_name), qrels, run):
        found[value.query_id][own_name[value.measure]] = float(value.value)
    return found


def randomisation_test(first: np.ndarray, second: np.ndarray, seed: int = 0) -> float:
    """Fisher's paired randomisation test: two-sided p of the mean difference of two rankers' per-query values.

    first, second: (n_queries,), one measure on the same queries. Signs of the differences are drawn
    `N_PERMUTATIONS` times; the values themselves count as one draw. ValueError for shapes that differ or no query.
    """
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise ValueError(
            f"both rankers need a value for each query; received {first.shape} and {second.shape}"
        )
    differences = first - second
    signs = np.random.default_rng(seed).choice(np.array([-1, 1], np.int8), (N_PERMUTATIONS, len(first)))
    drawn = np.abs(signs @ differences)
    # Sums that are equal but for rounding are ties.
    return float(1 + np.sum(drawn >= abs(differences.sum()) - 1e-12)) / (1 + N_PERMUTATIONS)


def run_lines(
    queries: Sequence[str], rankings: Sequence[Ranked], names: Sequence[str], tag: str
) -> list[str]:
    """Return the lines of a run file: query, Q0, document, rank from 1, score (read back it is the same), tag."""
    return [
        f"{query} Q0 {names[document]} {place} {score:.9g} {tag}"
        for query, ranked in zip(queries, rankings, strict=True)
        for place, (document, score) in enumerate(
            zip(ranked.documents.tolist(), ranked.scores.tolist(), strict=True), start=1
        )
    ]


def read_run(lines: Iterable[str], place: str) -> dict[str, dict[str, float]]:
    """Return a run, query -> document -> score, from the lines of a run file. ValueError naming the line."""
    run: dict[str, dict[str, float]] = {}
    for number, line in enumerate(lines, start=1):
        columns = line.split()
        if not columns:
            continue
        try:
            query, _, document, _, text, _ = columns
            score = float(text)
        except ValueError as error:
            raise ValueError(
                f"{place}, line {number}: a run's line is `query Q0 document rank score tag`, got {line.strip()[:80]!r}"
            ) from error
        if not np.isfinite(score) or document in run.setdefault(query, {}):
            wrong = (
                f"score {text}" if not np.isfinite(score) else f"document {document} twice for query {query}"
            )
            raise ValueError(f"{place}, line {number}: scores are numbers and documents differ, got {wrong}")
        run[query][document] = score
    return run


def qrels_lines(qrels: Qrels) -> list[str]:
    """Return the lines of a qrels file: query, 0, document, gain."""
    return [
        f"{query} 0 {document} {gain}" for query, judged in qrels.items() for document, gain in judged.items()
    ]
