"""Methods as scikit-learn estimators: they give what the stages of a run give, and are searched in a pipeline."""

import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from tests.small_model import small_params
from textbench.featurizers._contract import SMALL, Subject
from textbench.flows.explain.estimators import method
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import Request
from textbench.tasks import InputError, catalogue
from textbench.tasks.corpus import Corpus, read_corpus
from textbench.tasks.featurize import PREFIX
from textbench.tasks.storage.store import Store

WORDS = [f"{letter}{number}" for letter in "abcd" for number in range(12)]
LABELS = ["earn", "grain", "ship"]
SEED = 3
VECTORS = {"vector_size": 8, "min_count": 2, "epochs": 2}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty documents of three classes, which differ in how often their words occur."""
    rng = np.random.default_rng(8)
    topics = rng.dirichlet(np.full(len(WORDS), 0.3), size=len(LABELS))
    lines = ["text,label"]
    for number in range(60):
        label = number % len(LABELS)
        words = rng.choice(WORDS, size=rng.integers(4, 25), p=topics[label])
        lines.append(f"{' '.join(words)},{LABELS[label]}")
    path = tmp_path_factory.mktemp("documents") / "toy.csv"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("home") / "store", isolated=False)


def small(entry: catalogue.Entry) -> dict[str, Any]:
    """What makes a method quick on few documents, but for its seed, which a run gives."""
    accepted = Subject(entry.load()).accepted
    own = {name: value for name, value in SMALL.items() if name in accepted and name != "random_state"}
    reads_vectors = "word_vectors" in entry.needs
    own |= small_params(entry.name)
    return own | ({f"{PREFIX}{name}": value for name, value in VECTORS.items()} if reads_vectors else {})


def parts(features: Any) -> list[np.ndarray]:
    return [features.data, features.indices, features.indptr] if issparse(features) else [features]


@pytest.mark.parametrize("name", catalogue.methods())
def test_every_method_gives_what_the_stages_of_a_run_give(name: str, documents: Path, store: Store) -> None:
    entry = catalogue.method(name)
    params = small(entry)
    estimator = method(name, random_state=SEED, **params)
    (cell,) = plan(Request([], [catalogue.spelled(name, params)], [SEED], own={"path": str(documents)}))
    corpus = read_corpus(store.open(cell.references["ingest"]))
    labels = np.array(corpus.target_names)[corpus.train_targets]
    if is_classifier(estimator):
        result = store.open(cell.references["evaluate"])
        estimator.fit(corpus.train_texts, labels)
        predicted = np.array(corpus.target_names)[result.table("predictions")["predicted"].to_numpy()]
        assert estimator.predict(corpus.test_texts).tolist() == predicted.tolist()
        np.testing.assert_array_equal(estimator.decision_function(corpus.test_texts), result.array("scores"))
        return
    features = store.open(cell.references["featurize"])
    made = estimator.fit_transform(corpus.train_texts, labels)
    both = {"train": made, "test": estimator.transform(corpus.test_texts)}
    for part, found in both.items():
        expected = features.matrix(part)
        assert type(found) is type(expected) and found.dtype == expected.dtype
        for one, other in zip(parts(found), parts(expected), strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(estimator.get_feature_names_out()) == made.shape[1]
    again = clone(estimator).fit(corpus.train_texts, labels).transform(corpus.test_texts)
    for one, other in zip(parts(again), parts(both["test"]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def corpus(documents: Path, store: Store) -> Corpus:
    (cell,) = plan(Request([], ["counts"], own={"path": str(documents)}))
    return read_corpus(store.open(cell.references["ingest"]))


def test_parameters_are_searched_in_a_pipeline_on_raw_texts(corpus: Corpus) -> None:
    vectors = {f"{PREFIX}{name}": value for name, value in VECTORS.items()}
    pipeline = make_pipeline(method("scdv", n_clusters=3, **vectors), LinearSVC())
    grid = {"textfeatures__n_clusters": [2, 4], f"textfeatures__{PREFIX}epochs": [1, 2]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(
        corpus.train_texts, corpus.train_targets
    )
    assert search.best_params_.keys() == grid.keys()
    n_clusters = search.best_params_["textfeatures__n_clusters"]
    best = search.best_estimator_[0]
    assert best.method_.n_clusters == n_clusters
    assert best.transform(["a1 b2"]).shape == (1, len(best.get_feature_names_out()))


def test_a_classifier_is_searched_on_raw_texts_and_keeps_the_labels(corpus: Corpus) -> None:
    labels = [corpus.target_names[target] for target in corpus.train_targets]
    search = GridSearchCV(method("nb"), {"alpha": [0.1, 1.0], "rule": ["letters", "words"]}, cv=2)
    search.fit(corpus.train_texts, labels)
    assert search.classes_.tolist() == LABELS
    assert set(search.predict(corpus.test_texts)) <= set(LABELS)
    np.testing.assert_allclose(search.predict_proba(corpus.test_texts).sum(axis=1), 1)
    assert search.best_params_["rule"] == "words"  # of the words letters alone are left with the other rule
    assert not hasattr(method("nb-svm"), "predict_proba")


def test_several_labels_are_an_indicator(corpus: Corpus) -> None:
    indicator = np.column_stack([corpus.train_targets == 0, corpus.train_targets != 1]).astype(int)
    classifier = method("nb").fit(corpus.train_texts, indicator)
    predicted = classifier.predict(corpus.test_texts)
    assert predicted.shape == (len(corpus.test_texts), 2)
    np.testing.assert_array_equal(predicted.toarray(), classifier.decision_function(corpus.test_texts) > 0)


@pytest.mark.parametrize("kind", ["bool", "Int64", "object", "float16"])
def test_indicators_may_be_of_any_kind_of_numbers(kind: str) -> None:
    indicator = pd.DataFrame({"a": [1, 0, 1, 1], "b": [0, 1, 1, 0]})
    given = indicator.astype(kind) if kind != "float16" else indicator.to_numpy().astype("float16")
    found = method("nb").fit(["one two", "two three", "one three", "one"], given)
    assert found.classes_.tolist() == [0, 1]
    with pytest.raises(InputError, match="an indicator has two columns or more"):
        method("nb").fit(["one", "two"], [["a"], ["b"]])


def test_parameters_of_the_estimator() -> None:
    estimator = method("lsi(n_components=5)", rule="letters")
    assert estimator.get_params() == {"name": "lsi", "rule": "letters", "random_state": 0, "n_components": 5}
    assert repr(clone(estimator)) == "TextFeatures(n_components=5, name='lsi', rule='letters')"
    assert estimator.set_params(n_components=7, random_state=1).get_params()["n_components"] == 7
    assert "random_state" not in inspect.signature(type(estimator).fit).parameters


REFUSED = {
    "there is no method 'scvd'; did you mean scdv": lambda: method("scvd"),
    "lsi has no parameter 'n_component'; did you mean n_components?": lambda: method("lsi", n_component=3),
    "there is no token rule 'letter'; did you mean letters or": lambda: method("lsi", rule="letter").fit(
        ["a b"]
    ),
    "a seed must be a whole number in 0 .. 2^32 - 1, got -1": lambda: method("lsi", random_state=-1),
    "texts must be a list, got 'a text'": lambda: method("lsi").fit("a text"),
    "texts must be strings, got null at position 1": lambda: method("lsi").fit(["a", None]),
    "this method uses labels: fit it with y": lambda: method("chi2").fit(["one two", "two three"]),
    "labels must be one a text, or an indicator": lambda: method("nb").fit(["one two"], 3),
    "an indicator has two columns or more of 0 and 1, got 1 with 1, 2": lambda: method("nb").fit(
        ["one two", "two", "one"], [[0], [1], [2]]
    ),
    "an indicator has two columns or more of 0 and 1, got 2 with 1, 3": lambda: method("nb").fit(
        ["one two", "two"], np.array([[1, 0], [0, 3]])
    ),
    "every text needs a label, got none at position 1": lambda: method("nb").fit(
        ["one", "two"], ["a", math.nan]
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_refusal_is_one_line(message: str) -> None:
    with pytest.raises(InputError) as caught:
        REFUSED[message]()
    assert str(caught.value).startswith(message)
    assert str(caught.value).isprintable()
