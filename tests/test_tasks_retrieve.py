"""The retrieval stage: what is chosen on which queries, what is left out, and that the files say what was measured."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from textbench.evaluation.rankers import lm
from textbench.tasks import InputError, collect, rankers, retrieve, vectorize
from textbench.tasks.collections._user import OwnCollection
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Artifact, Store
from textbench.tasks.tokens import token_rule

TOPICS = ("wing lift drag flow", "heat shock plate layer", "code index stack queue", "graph node edge tree")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", isolated=False)


def collection(folder: Path, judgments: Sequence[tuple[str, str, int]] | None = None) -> OwnCollection:
    """Write 60 documents of four topics and 20 queries; a document is relevant to the queries of its topic."""
    rng = np.random.default_rng(0)
    words = [topic.split() for topic in TOPICS]
    noise = [f"w{chr(97 + i)}{chr(97 + j)}" for i in range(6) for j in range(6)]
    documents, queries, judged = [], [], []
    for i in range(60):
        text = [*rng.choice(words[i % 4], 4), *rng.choice(noise, int(rng.integers(5, 40)))]
        documents.append({"id": f"d{i}", "text": " ".join(text)})
    for i in range(20):
        text = [*rng.choice(words[i % 4], 2), *rng.choice(noise, 2)]
        queries.append({"id": f"q{i}", "text": " ".join(text)})
        judged += [(f"q{i}", f"d{j}", 1) for j in range(i % 4, 60, 4)]
    for name, rows in (("documents", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = "".join(f"{q} 0 {d} {code}\n" for q, d, code in (judged if judgments is None else judgments))
    (folder / "qrels.txt").write_text(lines)
    return OwnCollection(*(str(folder / name) for name in ("documents.jsonl", "queries.jsonl", "qrels.txt")))


def references(own: OwnCollection) -> tuple[Reference, Reference]:
    corpus = collect.own_reference(own)
    return corpus, vectorize.reference(corpus, asdict(token_rule("letters")), False)


def result(own: OwnCollection, store: Store, ranker: str, **settings: Any) -> Artifact:
    reference = retrieve.reference(
        *references(own), rankers.parse(ranker), **{"trials": 8, "seed": 0} | settings
    )
    return store.open(reference)


def test_the_measures_are_those_of_the_run_it_wrote(tmp_path: Path, store: Store) -> None:
    import pytrec_eval

    found = result(collection(tmp_path), store, "lm")
    with (found.folder / "run.txt").open() as run, (found.folder / "qrels.txt").open() as qrels:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(qrels), {"map"})
        theirs = evaluator.evaluate(pytrec_eval.parse_run(run))
    table = found.table("per_query")
    assert table["query"].to_pylist() == [f"q{i}" for i in range(20)]
    for query, value in zip(table["query"].to_pylist(), table["map"].to_pylist(), strict=True):
        assert value == pytest.approx(theirs[query]["map"])
    assert found.json("metrics")["map"] == pytest.approx(np.mean(table["map"].to_numpy()))


def test_a_folds_choice_does_not_know_its_own_judgments(tmp_path: Path, store: Store) -> None:
    first = result(collection(tmp_path), store, "mb")
    folds = first.table("per_query")["fold"].to_pylist()
    chosen = first.json("choice")["params"]
    assert sorted(set(folds)) == [0, 1, 2, 3, 4] and len(chosen) == 5
    # Turn what is relevant to the queries of fold 0 upside down: their measures change, their rankings do not.
    judged = [
        (f"q{i}", f"d{j}", 1) for i in range(20) for j in range(60) if (j % 4 == i % 4) == (folds[i] != 0)
    ]
    (tmp_path / "other").mkdir()
    second = result(collection(tmp_path / "other", judged), store, "mb")
    assert second.table("per_query")["fold"].to_pylist() == folds
    assert second.json("choice")["params"][0] == chosen[0]
    assert second.json("choice")["params"] != chosen

    def ranking(found: Artifact) -> list[str]:
        lines = (found.folder / "run.txt").read_text().splitlines()
        return [line for line in lines if folds[int(line.split()[0][1:])] == 0]

    assert ranking(second) == ranking(first)
    assert second.json("metrics")["map"] != first.json("metrics")["map"]


def test_without_trials_the_published_values_rank_all_queries(tmp_path: Path, store: Store) -> None:
    own = collection(tmp_path)
    found = result(own, store, "lm+lsi(n_components=5)", trials=0)
    assert found.json("choice")["params"] == [{"mu": 1000.0, "weight": 0.5}]
    assert found.json("choice")["on_border"] == []
    assert set(found.table("per_query")["fold"].to_pylist()) == {0}


def test_lm_is_the_ranker_on_the_collections_counts(tmp_path: Path, store: Store) -> None:
    from textbench.evaluation.metrics.ranked_retrieval import average_precision, rank, tie_order
    from textbench.evaluation.rankers import CollectionIndex

    own = collection(tmp_path)
    vectors = store.open(references(own)[1])
    scores = lm.score(CollectionIndex(vectors.matrix("train_counts"), vectors.matrix("test_counts")))
    relevant = [np.arange(i % 4, 60, 4) for i in range(20)]
    expected = average_precision(rank(scores, tie_order([f"d{i}" for i in range(60)])), relevant)
    found = result(own, store, "lm", trials=0).table("per_query")["map"].to_numpy()
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    "ranker", ["tfidf", "lsi(n_components=4)", "mb+lsi(n_components=4)", "lm+tfidf", "bm25"]
)
def test_rankers_find_the_topics(ranker: str, tmp_path: Path, store: Store) -> None:
    found = result(collection(tmp_path), store, ranker, trials=4)
    assert found.json("metrics")["map"] > 0.6  # chance is 0.25
    assert len(found.json("choice")["trials"]) == 4


def test_a_representations_own_parameters_are_searched_where_nothing_else_is(
    tmp_path: Path, store: Store
) -> None:
    found = result(collection(tmp_path), store, "lsi(n_components=4)", trials=5)
    assert found.json("choice")["params"][0].keys() == {"weighting", "normalize"}


def test_lm_pv_reads_the_words_of_a_projection(tmp_path: Path, store: Store) -> None:
    from textbench.tasks import featurize

    vectors = references(collection(tmp_path))[1]
    features = store.open(featurize.reference(vectors, "lsi", {"n_components": 3}, 0))
    n_terms = len(store.open(vectors).json("terms"))
    assert retrieve.term_vectors(features, "lm+pv", n_terms).shape == (n_terms, 3)
    plain = store.open(featurize.reference(vectors, "tfidf", {}, 0))
    with pytest.raises(InputError, match=r"lm\+pv needs a method that learns vectors of words"):
        retrieve.term_vectors(plain, "lm+pv", n_terms)


def test_what_cannot_be_scored_is_left_out_and_counted(tmp_path: Path, store: Store) -> None:
    judged = [("q0", "d0", 1), ("q1", "d1", 0), ("q2", "d2", 1), ("q2", "d999", 1), ("q99", "d1", 1)]
    own = collection(tmp_path, judged)
    queries = Path(own.queries).read_text().splitlines()
    queries[2] = json.dumps({"id": "q2", "text": "unheard words"})
    Path(own.queries).write_text("\n".join(queries))
    found = result(OwnCollection(**own.__dict__), store, "lm", trials=0)
    assert found.json("choice")["left_out"] == {
        "queries without relevant documents": 18,
        "judgments of unknown documents": 1,
        "judgments of unknown queries": 1,
        "queries without a known word": 1,
    }
    table = found.table("per_query")
    assert table["query"].to_pylist() == ["q0", "q2"]
    assert table["map"].to_pylist()[1] == 0.0


def test_judgments_of_another_collection_are_refused(tmp_path: Path, store: Store) -> None:
    own = collection(tmp_path, [("q0", "x", 1)])
    with pytest.raises(
        InputError, match="no query has a relevant document among the 60 documents, of 1 judgments"
    ):
        result(own, store, "lm")


def test_the_policy_decides_what_is_relevant(tmp_path: Path, store: Store) -> None:
    own = collection(tmp_path, [("q0", "d0", 1), ("q0", "d4", -1)])
    for policy, n in (("positive", 1), ("nonzero", 2)):
        found = result(own, store, "lm", trials=0, judgments=policy)
        assert found.table("per_query")["n_relevant"].to_pylist() == [n]


def test_candidates_begin_with_the_defaults_and_spread_over_the_space() -> None:
    space: Mapping[str, Any] = {
        "mu": FloatDistribution(1, 10_000, log=True),
        "n": IntDistribution(1, 50),
        "kind": CategoricalDistribution(["a", "b"]),
    }
    defaults = {"mu": 100.0, "n": 10, "kind": "b"}
    drawn = retrieve.draw(space, defaults, 33, seed=3)
    assert drawn[0] == defaults and len(drawn) == 33
    assert retrieve.draw(space, defaults, 33, seed=3) == drawn != retrieve.draw(space, defaults, 33, seed=4)
    # Quasi-random: of 32 points each quarter of the range (of the logarithm of mu) has near to 8.
    quarters = np.floor(4 * np.log([params["mu"] for params in drawn[1:]]) / np.log(10_000)).astype(int)
    assert np.bincount(quarters, minlength=4).tolist() == pytest.approx([8] * 4, abs=2)
    assert {params["kind"] for params in drawn} == {"a", "b"}
    assert retrieve.draw({}, {"k": 1}, 9, 0) == [{"k": 1}] and retrieve.draw(space, defaults, 0, 0) == [
        defaults
    ]


def test_folds_are_of_one_size_and_go_by_the_seed() -> None:
    folds = retrieve.split(23, 5, seed=1)
    assert sorted(np.bincount(folds)) == [4, 4, 5, 5, 5]
    assert folds.tolist() != retrieve.split(23, 5, seed=2).tolist()
    assert retrieve.split(3, 5, seed=0).max() == 2  # fewer queries than folds: each alone


def test_choose_takes_the_best_of_the_other_queries() -> None:
    reached = np.array([[0.9, 0.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.5]])
    assert retrieve.choose(reached, np.array([0, 1, 2, 3])) == [1, 1, 1, 1]
    reached = np.array([[0.1, 0.9], [0.8, 0.2]])
    assert retrieve.choose(reached, np.array([0, 1])) == [0, 1]  # each follows the other
    assert retrieve.choose(reached, np.array([0, 0])) == [0]


def test_on_border() -> None:
    space = {"mu": FloatDistribution(1, 10_000, log=True), "alpha": FloatDistribution(0, 1)}
    assert retrieve.on_border(space, [{"mu": 9_900.0, "alpha": 0.5}, {"mu": 80.0, "alpha": 0.5}]) == ["mu"]
    assert retrieve.on_border(space, [{"mu": 80.0, "alpha": 0.06}]) == []
    assert retrieve.on_border(space, [{"mu": 80.0, "alpha": 0.0}]) == ["alpha"]


@pytest.mark.parametrize(
    ("name", "module", "method", "params"),
    [
        ("bm25", "bm25", None, {}),
        ("lm-linear", "lm_linear", None, {}),
        ("lsi", "cosine", "lsi", {}),
        ("lm+lsi(n_components=9)", "lm_features", "lsi", {"n_components": 9}),
        ("mb+tfidf", "mb_features", "tfidf", {}),
        ("lm+pv(min_count=2)", "lm_pv", "pv-dbow", {"min_count": 2}),
        # SCDV (EMNLP 2017), section 4.5: 300 dimensions, 100 clusters, unless something else is asked for.
        ("mb+scdv(n_clusters=9)", "mb_features", "scdv", {"n_clusters": 9, "word_vectors__vector_size": 300}),
    ],
)
def test_names(name: str, module: str, method: str | None, params: dict[str, Any]) -> None:
    found = rankers.parse(name)
    assert (found.module, found.method, found.params) == (
        f"textbench.evaluation.rankers.{module}",
        method,
        params,
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bm52", "there is no ranker 'bm52'; did you mean bm25"),
        ("lm+lsj", "there is no ranker 'lm+lsj'; did you mean lm+lsi"),
        ("bm25+lsi", "a method is added to lm or mb, such as lm+scdv, got 'bm25+lsi'"),
        ("lm_features", "there is no ranker 'lm_features'"),
    ],
)
def test_unknown_rankers_get_the_nearest(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        rankers.parse(name)
    assert message in str(caught.value)


def test_cranfield_lm_is_within_a_point_of_an_independent_implementation(
    data_dir: Path, store: Store
) -> None:
    """Query likelihood written as in the textbook, document by document, judged by trec_eval."""
    import math
    from collections import Counter

    import pytrec_eval

    corpus = collect.reference("cranfield")
    vectors = vectorize.reference(corpus, asdict(token_rule("letters-stop-stem")), False)
    found = store.open(retrieve.reference(corpus, vectors, rankers.parse("lm"), trials=0, seed=0))
    tokens = store.open(vectors)
    documents, queries = (
        [
            Counter(part.tolist())
            for part in np.split(tokens.array(f"{p}_ids"), tokens.array(f"{p}_offsets")[1:-1])
        ]
        for p in ("train", "test")
    )
    library = sum((document for document in documents), Counter())
    total, mu = library.total(), 1000.0
    run: dict[str, dict[str, float]] = {}
    for number, query in enumerate(queries, start=1):
        scores = run.setdefault(str(number), {})
        for name, document in enumerate(documents, start=1):
            length = document.total() + mu
            scores[str(name)] = sum(
                n * math.log((document[w] + mu * library[w] / total) / length) for w, n in query.items()
            )
    with (found.folder / "qrels.txt").open() as qrels:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(qrels), {"map"})
    theirs = np.mean([values["map"] for values in evaluator.evaluate(run).values()])
    assert found.json("metrics")["map"] == pytest.approx(theirs, abs=0.01)
    assert found.json("metrics")["map"] == pytest.approx(0.2944, abs=1e-3)
