"""What retrieval is made of: one cell a ranker, collection and seed, and how rankers compare."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.evaluation.metrics.ranked_retrieval import MEASURES, randomisation_test
from textbench.evaluation.statistics.significance import holm
from textbench.flows.plan.base_cell import BaseCell, feature_stages
from textbench.flows.plan.request import RetrievalRequest, once
from textbench.flows.results.index import RECORDED, Index
from textbench.flows.results.rows import empty_row, spent
from textbench.tasks import catalogue, collect, rankers, retrieve, vectorize
from textbench.tasks.collections._user import OwnCollection
from textbench.tasks.storage.files import META, Damaged, read_meta
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store
from textbench.tasks.tokens import token_rule

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class RankingCell(BaseCell):
    """One ranker on one collection with one seed; `settings` are the judgments, the token rule and the folds."""

    settings: Mapping[str, Any]


@once
def plan(request: RetrievalRequest) -> list[RankingCell]:
    """Return the cells of a request, nothing computed. Raises InputError for names that are none."""
    asked = [rankers.parse(name) for name in dict.fromkeys(request.rankers)]
    corpora = [_corpus(name) for name in dict.fromkeys(request.collections)]
    if request.own:
        corpora.append(_own_corpus(request.own))
    return [
        _cell(request, name, corpus, request.rule or rule, ranker, seed)
        for name, corpus, rule in corpora
        for ranker in asked
        for seed in dict.fromkeys(request.seeds)
    ]


def index(home: Path) -> Index:
    """Return the index of retrieval: what was recorded of a cell is `<home>/retrieval/<key>.json`."""
    return Index(home, "retrieval", RECORDED - {"request"})


def _corpus(name: str) -> tuple[str, Reference, str]:
    reference = collect.reference(name)
    if name.startswith(collect.LIBRARY):
        return name, reference, collect.COLLECTION_RULE
    return name, reference, catalogue.collection(name).constant("RULE")


def _own_corpus(own: Mapping[str, Any]) -> tuple[str, Reference, str]:
    reference = collect.own_reference(OwnCollection(**own))
    return f"own-{reference.params['dataset']}", reference, collect.COLLECTION_RULE


def _cell(
    request: RetrievalRequest, name: str, corpus: Reference, rule: str, ranker: rankers.Ranker, seed: int
) -> RankingCell:
    trials = request.trials if request.protocol == "honest" else 0
    vectors = vectorize.reference(corpus, asdict(token_rule(rule)), False)
    features = retrieve.features_reference(vectors, ranker, seed)
    result = retrieve.reference(
        corpus,
        vectors,
        ranker,
        trials=trials,
        seed=seed,
        judgments=request.judgments,
        n_folds=request.n_folds,
    )
    references = {"ingest": corpus, "vectorize": vectors} | (feature_stages(features) if features else {})
    settings = {"judgments": request.judgments, "rule": rule, "n_folds": request.n_folds if trials else 1}
    references |= {"evaluate": result}
    return RankingCell(name, ranker.name, request.protocol, seed, trials, references, settings)


def with_digest(name: str, digest: str) -> str:
    """Return the name of a collection of the user's that another one has too, with the beginning of its sha256."""
    return f"{name}-{digest[:12]}"


def shown_name(cell: RankingCell, store: Store) -> str:
    """Return the name of a cell's collection, told from others of that name and other content in the store."""
    corpus = cell.references["ingest"]
    for path in (store.root / corpus.stage).glob(f"*/{META}") if "own" in corpus.params else ():
        try:
            other = Reference.from_json(read_meta(path)["recipe"])
        except (OSError, Damaged):
            continue
        is_alike = (other.function, other.params.get("dataset")) == (
            corpus.function,
            corpus.params["dataset"],
        )
        if is_alike and other.params.get("digest", "") != corpus.params["digest"]:
            return with_digest(cell.dataset, corpus.params["digest"])
    return cell.dataset


def row(cell: RankingCell, error: str | None = None) -> dict[str, Any]:
    """Return a cell as a row with no result yet, or with the error that took its place."""
    return empty_row(cell, error, params=cell.settings)


def result_row(cell: RankingCell, store: Store) -> dict[str, Any]:
    """Return a finished cell as a row; `params` are its settings and, by name, what each fold chose."""
    result = store.open(cell.references["evaluate"])
    choice = result.json("choice")
    names = choice["params"][0]
    chosen = {name: [params[name] for params in choice["params"]] for name in names}
    found = {
        "params": dict(cell.settings)
        | {n: v[0] if len(v) == 1 else json.dumps(v) for n, v in chosen.items()},
        "on_border": choice["on_border"],
        "metrics": result.json("metrics"),
    }
    return row(cell) | found | spent(cell.references, store)


def per_query(cells: Sequence[RankingCell], store: Store) -> "tuple[list[str], dict[str, np.ndarray]]":
    """Return the queries and each measure's values, (n_queries,), the mean over the cells, which differ in seed."""
    import numpy as np

    tables = [store.open(cell.references["evaluate"]).table("per_query") for cell in cells]
    queries = tables[0]["query"].to_pylist()
    return queries, {name: np.mean([t[name].to_numpy() for t in tables], axis=0) for name in MEASURES}


def compare(cells: Sequence[RankingCell], store: Store, measure: str = "map") -> list[dict[str, Any]]:
    """Compare all pairs of rankers of one collection by the paired randomisation test, with Holm's correction.

    Returns a row a pair: better and worse ranker, the difference of their means, p, and p adjusted for all pairs.
    """
    from itertools import combinations

    names = list(dict.fromkeys(cell.method for cell in cells))
    values = {
        name: per_query([cell for cell in cells if cell.method == name], store)[1][measure] for name in names
    }
    names.sort(key=lambda name: -values[name].mean())
    pairs = list(combinations(names, 2))
    p_values = [randomisation_test(values[first], values[second]) for first, second in pairs]
    return [
        {
            "better": first,
            "worse": second,
            "difference": float(values[first].mean() - values[second].mean()),
            "p": p,
            "p_holm": adjusted,
        }
        for (first, second), p, adjusted in zip(pairs, p_values, holm(p_values), strict=True)
    ]
