"""Representations that use labels: which labels they see, in which keys these are, and that none leaks."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tests.own_documents import write
from textbench.evaluation.probes.budgets import labelled_documents
from textbench.evaluation.probes.tuning import choose_c
from textbench.featurizers.chi2 import ChiSquared
from textbench.featurizers.lz77 import USES_LABELS, Lz77
from textbench.tasks import InputError, featurize, predict, rankers, refit, tune
from textbench.tasks.corpus import read_targets
from textbench.tasks.sources.user_data import UserData
from textbench.tasks.sources.user_data import reference as own
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store
from textbench.tasks.tokens import token_rule
from textbench.tasks.vectorize import reference as vectorize

BUDGET = {"budget": 40, "draw": 1, "stratified": False}
# A representation that knows nothing but the labels of the documents it was fitted to.
MEMORY = '''
"""Label memory: the labels of documents that were seen before, and nothing of others.

Source: none.
"""
import zlib
import numpy as np
from optuna.distributions import FloatDistribution
from sklearn.base import BaseEstimator, TransformerMixin
from textbench.featurizers._learned import LearnedArrays

INPUT = "tokens"
USES_LABELS = True
SEARCH_SPACE = {"weight": FloatDistribution(0.5, 2.0)}


class Memory(LearnedArrays, TransformerMixin, BaseEstimator):
    learned = ("known_", "labels_")

    def __init__(self, *, weight=1.0):
        self.weight = weight

    def fit(self, X, y):
        self.known_ = np.array([zlib.crc32(document.tobytes()) for document in X])
        self.labels_ = y[:, None] == np.arange(9) if y.ndim == 1 else y.toarray()
        return self

    def transform(self, X):
        features = np.zeros((len(X), self.labels_.shape[1] + 1), dtype=np.float32)
        features[:, -1] = 1
        for row, document in enumerate(X):
            same = np.flatnonzero(self.known_ == zlib.crc32(document.tobytes()))
            features[row, :-1] = self.weight * self.labels_[same].any(axis=0)
        return features


def build(**params):
    return Memory(**params)
'''


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("made") / "store", isolated=False)


def documents(
    store: Store, label: Callable[[np.random.Generator], str], n_dev: int = 0, **options: Any
) -> Reference:
    """Return the corpus of 240 training documents, of which some are for validation, and 100 test documents.

    No two are alike.
    """
    draw, parts = np.random.default_rng(3), ["train"] * (240 - n_dev) + ["dev"] * n_dev + ["test"] * 100
    rows = [
        f"{' '.join(draw.choice(list('abcdef'), 5))} w{i},{label(draw)},{part}"
        for i, part in enumerate(parts)
    ]
    path = write(store.root.parent, f"{label.__name__}-{n_dev}.csv", "\n".join(["text,label,part", *rows]))
    return own(UserData(str(path), split_column="part", **options))


def random_label(draw: np.random.Generator) -> str:
    return str(draw.choice(["red", "blue"]))


def random_labels(draw: np.random.Generator) -> str:
    return "|".join(draw.choice(["red", "blue", "green"], size=draw.integers(1, 3), replace=False))


def counted(corpus: Reference, transductive: bool = False) -> Reference:
    return vectorize(corpus, asdict(token_rule("words")), transductive)


@pytest.fixture(scope="module")
def memory(store: Store) -> str:
    return str(write(store.root.parent, "memory.py", MEMORY))


@pytest.mark.parametrize("transductive", [False, True])
@pytest.mark.parametrize("labels", [{}, BUDGET], ids=["all", "budget"])
@pytest.mark.parametrize(
    ("name", "params"),
    [("chi2", {"n_terms": 9}), *(("lz77", {"order": order}) for order in USES_LABELS["order"])],
)
def test_labelled_training_documents_alone_are_fitted_to(
    store: Store, name: str, params: dict[str, Any], labels: dict[str, Any], transductive: bool
) -> None:
    corpus = documents(store, random_label)
    vectors = counted(corpus, transductive)
    features = store.open(featurize.reference(vectors, name, params, 0, labels))
    y, kind = read_targets(store.open(corpus), "train"), "counts" if name == "chi2" else "tokens"
    rows = labelled_documents(y, **labels) if labels else np.arange(len(y))
    job = Job({}, {"vectors": vectors}, store.root, store)
    train, test = (featurize.documents(job, part, kind) for part in ("train", "test"))
    method: Any = ChiSquared(**params) if name == "chi2" else Lz77(**params)
    method.fit(train[rows] if kind == "counts" else [train[row] for row in rows], y[rows])
    assert (features.matrix("train") != method.transform(train)).nnz == 0
    assert (features.matrix("test") != method.transform(test)).nnz == 0


def test_keys_have_the_labels_of_methods_that_use_them(store: Store) -> None:
    vectors = counted(documents(store, random_label))
    for method, params, uses in (
        ("chi2", {}, True),
        ("lz77", {"order": "by_class"}, True),
        ("lz77", {"order": "random"}, False),
        ("lz77", {}, False),
        ("tfidf", {}, False),
    ):
        found = [featurize.reference(vectors, method, params, 0, labels) for labels in ({}, BUDGET, None)]
        assert found[0].key == found[2].key
        assert (found[0].key != found[1].key) == uses
        assert ("corpus" in found[0].inputs) == uses
        assert ("labels" in found[0].params) == uses


@pytest.mark.parametrize(
    "labels", [{}, {"budget": 150, "draw": 0, "stratified": False}], ids=["all", "budget"]
)
@pytest.mark.parametrize(
    ("validation", "n_dev"),
    [({}, 0), ({"held_out": 0.4}, 0), ({}, 60)],
    ids=["folds", "held out", "validation documents"],
)
def test_no_label_of_a_held_out_document_leaks(
    store: Store, memory: str, labels: dict[str, Any], validation: dict[str, Any], n_dev: int
) -> None:
    """Random labels cannot be predicted, but by who has seen them."""
    corpus = documents(store, random_label, n_dev)
    vectors = counted(corpus)
    chosen = tune.reference(
        corpus, vectors, memory, 0, "linear-svm", trials=3, validation=validation, labels=labels
    )
    trials = store.open(chosen).json("choice")["trials"]
    assert len(trials) == 3
    assert all(0.3 < trial["score"] < 0.7 for trial in trials)
    # The run itself learns its training documents by heart, and tells nothing of those of the test.
    features = store.open(predict.features_of(vectors, store.open(chosen)))  # type: ignore[arg-type]
    y = read_targets(store.open(corpus), "train")
    rows = labelled_documents(y, **labels) if labels else np.arange(len(y))
    assert choose_c(features.matrix("train")[rows], y[rows]).score == 1.0
    assert not features.matrix("test")[:, :-1].any()
    unseen = np.setdiff1d(np.arange(len(y)), rows)
    assert not features.matrix("train")[unseen, :-1].any()
    predictions = store.open(predict.reference(corpus, vectors, chosen)).table("predictions").to_pydict()
    assert 0.3 < np.mean(np.array(predictions["target"]) == predictions["predicted"]) < 0.7


def test_thresholds_of_several_labels_are_tuned_on_features_of_each_fold(store: Store, memory: str) -> None:
    """Features that have seen the labels would put every threshold where they tell them apart; these tell nothing."""
    corpus = documents(store, random_labels, label_separator="|")
    vectors = counted(corpus)
    chosen = tune.reference(corpus, vectors, memory, 0, "linear-svm")
    result = store.open(predict.reference(corpus, vectors, chosen))
    Y = read_targets(store.open(corpus), "train")
    assert Y.ndim == 2
    shares = np.asarray(Y.mean(axis=0)).ravel()
    # All documents score alike where none is known, so that the best F1 is that of taking them all.
    assert ((featurize.load_arrays(result, "probe")["thresholds"] < 0) == (shares > 0)).all()
    assert store.open(chosen).json("choice")["score"] < 2 * shares.mean() / (1 + shares.mean()) + 0.15


def test_a_refitted_method_has_the_labels_of_all_documents(store: Store, memory: str) -> None:
    corpus = documents(store, random_label)
    vectors = counted(corpus)
    chosen = tune.reference(corpus, vectors, memory, 0, "linear-svm")
    refitted = refit.reference(predict.reference(corpus, vectors, chosen))
    features = store.open(predict.features_of(refitted.inputs["vectors"], store.open(chosen)))  # type: ignore[arg-type]
    assert store.open(refitted).meta["key"] == refitted.key
    assert len(features.arrays("model")["known_"]) == 340
    assert features.matrix("train")[:, :-1].any(axis=1).all()


def test_a_collection_has_no_labels_to_fit_to() -> None:
    for ranker in ("chi2", "lm+chi2", "lz77(order='by_class')"):
        with pytest.raises(InputError, match="is fitted to labels, and a collection has none; "):
            rankers.parse(ranker)
    assert "chi2" not in rankers.names()
    assert rankers.parse("lz77").method == "lz77"


@pytest.mark.parametrize("is_sparse", [False, True])
def test_features_of_a_fold_are_those_that_are_given_for_it(is_sparse: bool) -> None:
    """What is chosen with a function that gives rows of a matrix is what is chosen with the matrix."""
    draw = np.random.default_rng(0)
    y = draw.integers(0, 3, 90)
    X = draw.normal(size=(90, 4)) + 0.7 * (y[:, None] == np.arange(4))
    given: Any = sp.csr_matrix(X) if is_sparse else X
    found = choose_c(lambda train, test: (given[train], given[test]), y, random_state=1)
    assert found == choose_c(given, y, random_state=1)
