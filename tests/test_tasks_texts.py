"""Methods that read raw texts: what they are given, what their keys depend on, and where a token rule is missed."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.own_documents import write
from textbench.featurizers._contract import Subject, run_checks
from textbench.featurizers.char_ngrams import CharNgrams
from textbench.flows.explain import terms
from textbench.flows.explain.export import Model
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.derived import plan_derived
from textbench.flows.plan.request import DerivedRequest, Request
from textbench.flows.results.index import Index
from textbench.flows.results.rows import result_row
from textbench.flows.results.runs import Run
from textbench.tasks import InputError, catalogue, featurize, method_files, rankers, retrieve
from textbench.tasks.corpus import Corpus, read_corpus
from textbench.tasks.storage.store import Store

WORDS = {"fruit": "Apple, PEAR & plum!", "metal": "Iron (zinc) -- Lead"}
ROWS = [(f"From: {name}@{i}\t{WORDS[name]} {i % 3}", name) for i in range(30) for name in WORDS]
# It learns from texts, labels, word vectors and terms, all at once.
EVERYTHING = '''
"""Everything at once: the mean vector of the words that the first class's documents have.

Source: none.
"""
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from textbench.featurizers._learned import LearnedArrays

INPUT = "texts"
NEEDS = ("word_vectors", "terms")
USES_LABELS = True
SEARCH_SPACE = {}


class Everything(LearnedArrays, TransformerMixin, BaseEstimator):
    learned = ("vectors_", "words_", "texts_")

    def fit(self, X, y=None, *, word_vectors, terms):
        if np.shape(y) != (len(X),):
            raise ValueError("needs one label a text")
        first = {word for text, label in zip(X, y) if label == min(y) for word in text.lower().split()}
        rows = [i for i, term in enumerate(terms) if term in first]
        self.vectors_, self.words_, self.texts_ = word_vectors[rows], [terms[i] for i in rows], list(X)
        return self

    def fit_transform(self, X, y=None, **needed):
        return self.fit(X, y, **needed).transform(X)

    def transform(self, X):
        if not hasattr(self, "words_"):
            from sklearn.exceptions import NotFittedError
            raise NotFittedError("call fit first")
        place = {word: i for i, word in enumerate(self.words_)}
        found = np.zeros((len(X), self.vectors_.shape[1] + 1), dtype=np.float32)
        found[:, -1] = 1
        for row, text in enumerate(X):
            own = [place[word] for word in text.lower().split() if word in place]
            if own:
                found[row, :-1] = self.vectors_[own].mean(axis=0)
        return found

    def get_feature_names_out(self, input_features=None):
        return np.array([f"x{i}" for i in range(self.vectors_.shape[1] + 1)])


def build(**params):
    return Everything(**params)
'''
CLASSIFIER = '''
"""Longest text: a class for long texts with many of one sign, another for the others.

Source: none.
"""
import numpy as np
from sklearn.linear_model import LogisticRegression

INPUT = "texts"
ROLE = "classifier"
SEARCH_SPACE = {}


class Longest(LogisticRegression):
    def _lengths(self, X):
        return np.array([[len(text), text.count("&")] for text in X])

    def fit(self, X, y):
        return super().fit(self._lengths(X), y)

    def decision_function(self, X):
        return super().decision_function(self._lengths(X))

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def to_arrays(self):
        return {"coef_": self.coef_, "intercept_": self.intercept_, "classes_": self.classes_}


def build(**params):
    return Longest(**params)
'''


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    rows = "".join(f'"{text}",{name}\n' for text, name in ROWS)
    write(folder, "made.csv", f"text,label\n{rows}")
    write(folder, "everything.py", EVERYTHING)
    write(folder, "longest.py", CLASSIFIER)
    return folder


@pytest.fixture(scope="module")
def store(home: Path) -> Store:
    return Store(home / "store", isolated=False)


def cell_of(home: Path, method: str = "char-ngrams", **options: Any) -> Cell:
    name = str(home / method) if ".py" in method else method
    (cell,) = plan(Request([], [name], own={"path": str(home / "made.csv")}, **options))
    return cell


def corpus_of(store: Store, cell: Cell) -> Corpus:
    return read_corpus(store.open(cell.references["ingest"]))


@pytest.mark.parametrize("protocol", ["honest", "transductive"])
def test_texts_come_as_they_were_ingested(home: Path, store: Store, protocol: Any) -> None:
    cell = cell_of(home, protocol=protocol)
    corpus, features = corpus_of(store, cell), store.open(cell.references["featurize"])
    assert set(corpus.train_texts) <= {text for text, _ in ROWS}
    fitted_to = corpus.train_texts + (corpus.test_texts if protocol == "transductive" else [])
    method = CharNgrams().fit(fitted_to)
    for part, texts in (("train", corpus.train_texts), ("test", corpus.test_texts)):
        assert (features.matrix(part) != method.transform(texts)).nnz == 0
    assert method.idf_.tolist() == features.arrays("model")["idf_"].tolist()


def test_keys_depend_on_the_corpus_and_the_protocol_and_no_token_rule(home: Path) -> None:
    def keys(method: str, **options: Any) -> dict[str, str]:
        return {stage: ref.key for stage, ref in cell_of(home, method, **options).references.items()}

    assert keys("char-ngrams") == keys("char-ngrams", rule="letters-stop-stem")
    others = keys("char-ngrams", protocol="transductive")
    assert {stage for stage, key in keys("char-ngrams").items() if key == others[stage]} == {
        "ingest",
        "audit",
    }
    same = {
        stage
        for stage, key in keys("everything.py").items()
        if key == keys("everything.py", rule="letters")[stage]
    }
    assert same == {"ingest", "audit"}  # its word vectors and terms are of the rule
    assert "vectors" not in cell_of(home).references["featurize"].inputs


def test_texts_labels_and_what_is_needed_come_together(home: Path, store: Store) -> None:
    labels = {"budget": 20, "draw": 0, "stratified": True}
    cell = cell_of(
        home, "everything.py(word_vectors__min_count=1, word_vectors__vector_size=4)", labels=labels
    )
    features = cell.references["featurize"]
    assert set(features.inputs) == {"corpus", "vectors", "word_vectors"}
    model = featurize.load_arrays(store.open(features), "model")
    assert len(model["texts_"]) == 20 and set(model["texts_"]) <= set(corpus_of(store, cell).train_texts)
    known = store.open(features.inputs["vectors"]).json("terms")
    vectors = store.open(features.inputs["word_vectors"]).array("vectors")
    np.testing.assert_array_equal(model["vectors_"], vectors[[known.index(word) for word in model["words_"]]])
    choice = store.open(cell.references["tune"]).json("choice")
    assert choice["n_folds"] == 3 and choice["score"] > 0.9
    assert store.open(cell.references["evaluate"]).table("predictions").num_rows == 18


def test_such_a_method_can_keep_the_contract(home: Path) -> None:
    found = list(run_checks(Subject(catalogue.method(str(home / "everything.py")).load())))
    assert not [(said, outcome) for said, outcome in found if isinstance(outcome, Exception)]


def test_a_classifier_may_read_texts(home: Path, store: Store) -> None:
    result = store.open(cell_of(home, "longest.py").references["evaluate"]).table("predictions").to_pydict()
    assert result["predicted"] == result["target"]


def test_an_exported_model_reads_raw_texts_and_gives_the_bits_of_the_run(home: Path, store: Store) -> None:
    cell = cell_of(home)
    about = {"run_id": "", "created": time.time(), "tracking_uri": "none", "sweeps": [], "attempt": ""}
    store.open(cell.references["evaluate"])
    Index(home).put(cell, result_row(cell, store) | about | {"request": asdict(cell.request)})
    model = Model.from_run(Run(home, Index(home).rows()[0]))
    texts, features = corpus_of(store, cell).test_texts, store.open(cell.references["featurize"])
    assert (model.features(texts) != features.matrix("test")).nnz == 0
    assert (model.manifest["token_rule"], model.manifest["terms"]) == (None, [])
    assert model.feature_names() == features.json("model")["terms_"]
    assert model.answer(["an apple & a PEAR", "zinc (or lead)"]).labels == ["fruit", "metal"]


def test_what_is_made_of_terms_is_refused(home: Path) -> None:
    for piece in ("topics", "values"):
        with pytest.raises(InputError, match=f"{piece} are made of terms, and char-ngrams reads raw texts"):
            plan_derived(DerivedRequest(["r8"], ["char-ngrams"], pieces=[piece]))
    assert plan_derived(DerivedRequest(["r8"], ["char-ngrams"], pieces=["embedding"]))
    with pytest.raises(InputError, match="char-ngrams has no terms to show"):
        terms.ask(terms.TermsQuestion(["oil"], "r8", "char-ngrams"), Store(home / "store"))


def test_texts_are_ranked_too(home: Path) -> None:
    vectors = cell_of(home, "tfidf").references["vectorize"]
    features = retrieve.features_reference(vectors, rankers.parse("lm+char-ngrams"), 0)
    assert features is not None and set(features.inputs) == {"corpus"}


def test_dense_is_the_cosine_of_sentence_embeddings() -> None:
    given = rankers.parse("dense(model='org/name')")
    plain = rankers.parse("sentence(model='org/name')")
    assert (given.module, given.method, given.params) == (plain.module, plain.method, plain.params)
    assert rankers.parse("dense").method == "sentence" and "dense" in rankers.names()


def test_what_a_plan_reads_must_be_written_in_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.py", "from textbench.featurizers.char_ngrams import *\n")
    with pytest.raises(
        InputError, match=r"mine\.py: INPUT must be written out in this file, got 'texts' from elsewhere"
    ):
        method_files.check(str(path))
