"""Retrieve: rank a collection's documents for its queries, parameters chosen on other queries than those reported.

Every candidate setting is drawn before anything is measured (Optuna's quasi-random sampler), so that one ranking of
each serves all folds: a fold's queries are ranked by the setting with the best MAP on the other folds' queries.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError, featurize, rankers
from textbench.tasks.collect import read_judged
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np

    from textbench.evaluation.metrics.ranked_retrieval import Ranked
    from textbench.evaluation.rankers import CollectionIndex
    from textbench.tasks.collect import Judged
    from textbench.tasks.storage.store import Artifact, Job

N_FOLDS = 5


def features_reference(vectors: Reference, ranker: rankers.Ranker, seed: int) -> Reference | None:
    """Return the features that a ranker reads before anything is tuned, or None if it reads counts alone."""
    if ranker.method is None:
        return None
    return featurize.reference(vectors, ranker.method, ranker.params, seed)


def reference(
    corpus: Reference,
    vectors: Reference,
    ranker: rankers.Ranker,
    *,
    trials: int,
    seed: int,
    judgments: str = "positive",
    n_folds: int = N_FOLDS,
) -> Reference:
    """Return the result of a ranker on a collection; of 0 `trials` all queries are ranked by the defaults.

    Files: metrics.json (means over queries), per_query.parquet (query, fold, n_relevant and every measure), choice.json
    (what was chosen for each fold, every candidate with its MAP on all queries, what was left out), run.txt and
    qrels.txt in TREC's formats.
    """
    from textbench.tasks import catalogue

    features = features_reference(vectors, ranker, seed)
    inputs = {"corpus": corpus, "vectors": vectors} | ({"features": features} if features else {})
    params = {
        "method": ranker.name,
        "trials": trials,
        "seed": seed,
        "judgments": judgments,
        "n_folds": n_folds,
    }
    uses: list[tuple[str, ...]] = [(ranker.module, name) for name in ("score", "SEARCH_SPACE", "NEEDS")]
    if ranker.method:
        uses += featurize.uses(ranker.method, ranker.params)
        uses += catalogue.method(ranker.method).code("SEARCH_SPACE")
    return refer("textbench.tasks.retrieve:compute", params, inputs, uses)


def compute(job: "Job") -> None:
    """Rank by every candidate, choose for each fold, and write rankings and measures."""
    import numpy as np

    from textbench.evaluation.metrics.ranked_retrieval import average_precision, rank, tie_order

    ranker, corpus = rankers.parse(job.params["method"]), job.open("corpus")
    judged = read_judged(corpus, job.params["judgments"])
    ties = tie_order(judged.document_ids)
    model = _Model(job, ranker, judged.rows)
    candidates = draw(model.space, model.defaults, job.params["trials"], job.params["seed"])
    reached = np.array(
        [average_precision(rank(model.score(params), ties), judged.relevant) for params in candidates]
    )
    is_tuned = len(candidates) > 1
    folds = split(len(judged.rows), job.params["n_folds"] if is_tuned else 1, job.params["seed"])
    chosen = choose(reached, folds)
    rankings: list[Ranked | None] = [None] * len(judged.rows)
    for number in sorted(set(chosen)):
        ranked = rank(model.score(candidates[number]), ties)
        for i, fold in enumerate(folds.tolist()):
            if chosen[fold] == number:
                rankings[i] = ranked[i]
    trials = [{"params": p, "map": float(v)} for p, v in zip(candidates, reached.mean(axis=1), strict=True)]
    choice = {
        "params": [candidates[number] for number in chosen],
        "on_border": on_border(model.space, [candidates[number] for number in chosen]) if is_tuned else [],
        "trials": trials,
        "left_out": judged.left_out | {"queries without a known word": model.n_unknown},
    }
    job.save_json("choice", choice)
    _save(job, judged, folds, [ranked for ranked in rankings if ranked is not None])


class _Model:
    """A ranker on a collection: what is searched, and the scores that a setting gives the judged queries."""

    def __init__(self, job: "Job", ranker: rankers.Ranker, rows: "np.ndarray") -> None:
        import inspect

        import numpy as np

        from textbench.tasks import catalogue

        self.job, self.ranker, self.rows = job, ranker, rows
        self._module = ranker.load()
        own = inspect.signature(self._module.score).parameters.values()
        self.defaults: dict[str, Any] = {p.name: p.default for p in own if p.kind is p.KEYWORD_ONLY}
        self.space: dict[str, Any] = dict(self._module.SEARCH_SPACE)
        if ranker.method is not None and ranker.searches_method:
            method = catalogue.method(ranker.method).load()
            self.space = {n: d for n, d in method.SEARCH_SPACE.items() if n not in ranker.params}
            values = method.build().get_params()
            self.defaults = {name: values[name] for name in self.space}
        vectors = job.open("vectors")
        self._documents = vectors.matrix("train_counts")
        self._queries = vectors.matrix("test_counts")[rows]
        self.n_unknown = int(np.sum(np.diff(self._queries.indptr) == 0))
        self._fixed = None if self.ranker.searches_method and self.space else self._index({})

    def score(self, params: Mapping[str, Any]) -> "np.ndarray":
        """Return float32 (n_judged_queries, n_documents)."""
        if self._fixed is not None:
            return self._module.score(self._fixed, **params)
        return self._module.score(self._index(params))

    def _index(self, params: Mapping[str, Any]) -> "CollectionIndex":
        from textbench.evaluation.rankers import CollectionIndex

        if self.ranker.method is None:
            return CollectionIndex(self._documents, self._queries)
        changed = {name: value for name, value in params.items() if value != self.defaults[name]}
        features = self.job.store.open(
            featurize.reference(
                self.job.inputs["vectors"],
                self.ranker.method,
                self.ranker.params | changed,
                self.job.params["seed"],
            )
        )
        needs_terms = "term_vectors" in self._module.NEEDS
        return CollectionIndex(
            self._documents,
            self._queries,
            features.matrix("train"),
            features.matrix("test")[self.rows],
            term_vectors(features, self.ranker.name, self._documents.shape[1]) if needs_terms else None,
        )


def term_vectors(features: "Artifact", name: str, n_terms: int) -> "np.ndarray":
    """Return the words' vectors in the space of the documents, (n_terms, n_features), zeros for a word without one.

    They are what a fitted method holds: the output vectors of paragraph vectors, or the directions of a projection.
    InputError for a method that learns neither.
    """
    import numpy as np

    arrays = featurize.load_arrays(features, "model")
    if "output_vectors_" in arrays:
        vectors = np.zeros((n_terms, arrays["output_vectors_"].shape[1]), dtype=np.float32)
        vectors[arrays["terms_"]] = arrays["output_vectors_"]
        return vectors
    if "components_" in arrays:
        return arrays["components_"].T
    raise InputError(f"{name} needs a method that learns vectors of words beside those of documents")


def draw(
    space: Mapping[str, Any], defaults: Mapping[str, Any], n_trials: int, seed: int
) -> list[dict[str, Any]]:
    """Return the defaults and then quasi-random settings of a search space, `n_trials` in all (1 if there is none).

    They spread evenly over the space and know nothing of any judgment.
    """
    import warnings

    import optuna

    if not space or n_trials < 2:
        return [dict(defaults)]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna calls the sampler experimental
        study = optuna.create_study(sampler=optuna.samplers.QMCSampler(scramble=True, seed=seed))
        study.enqueue_trial(dict(defaults))
        drawn = []
        for _ in range(n_trials):
            trial = study.ask(dict(space))
            study.tell(trial, 0.0)
            drawn.append(dict(defaults) | trial.params)
    return drawn


def split(n_queries: int, n_folds: int, seed: int) -> "np.ndarray":
    """Return each query's fold, int64 (n_queries,): folds of equal size, give or take one, drawn by the seed."""
    import numpy as np

    folds = np.arange(n_queries) % min(n_folds, n_queries)
    return np.random.default_rng(seed).permutation(folds)


def choose(reached: "np.ndarray", folds: "np.ndarray") -> list[int]:
    """Return for each fold the candidate with the best mean on the queries of the other folds, of equals the first.

    reached: (n_candidates, n_queries). With one fold there are no other queries, and the first candidate is taken.
    """
    import numpy as np

    n_folds = int(folds.max()) + 1
    if n_folds == 1:
        return [0]
    return [int(np.argmax(reached[:, folds != fold].mean(axis=1))) for fold in range(n_folds)]


def on_border(space: Mapping[str, Any], chosen: list[dict[str, Any]]) -> list[str]:
    """Return the parameters of which some fold chose an end of what was searched, give or take 5 % of its range."""
    import math

    found = []
    for name, distribution in space.items():
        if not hasattr(distribution, "low"):
            continue
        scale = math.log if distribution.log else float
        low, high = scale(distribution.low), scale(distribution.high)
        shares = [(scale(params[name]) - low) / (high - low) for params in chosen]
        if min(shares) < 0.05 or max(shares) > 0.95:
            found.append(name)
    return found


def _save(job: "Job", judged: "Judged", folds: "np.ndarray", rankings: "list[Ranked]") -> None:
    """Write run.txt and qrels.txt, and the measures of what they hold."""
    from textbench.evaluation.metrics.ranked_retrieval import MEASURES, measure, qrels_lines, run_lines

    queries, names = list(judged.qrels), judged.document_ids
    run = {
        query: {names[d]: s for d, s in zip(ranked.documents.tolist(), ranked.scores.tolist(), strict=True)}
        for query, ranked in zip(queries, rankings, strict=True)
    }
    _write(job.folder / "run.txt", run_lines(queries, rankings, names, job.params["method"].replace(" ", "")))
    _write(job.folder / "qrels.txt", qrels_lines(judged.qrels))
    values = measure(run, judged.qrels)
    columns: dict[str, Any] = {
        "query": queries,
        "fold": folds,
        "n_relevant": [len(documents) for documents in judged.relevant],
    }
    columns |= {name: [values[query][name] for query in queries] for name in MEASURES}
    job.save_table("per_query", columns)
    job.save_json("metrics", {name: sum(columns[name]) / len(queries) for name in MEASURES})


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
