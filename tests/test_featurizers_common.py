"""Every representation of the folder featurizers keeps the contract on its first page."""

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from featurizers._contract import CHECKS, Subject
from tasks import catalogue

METHODS = sorted(
    entry.module.partition(".")[2]
    for entry in catalogue.methods().values()
    # What more than the contract those keep that read counts alone.
    if entry.constant("INPUT") == "counts" and not entry.constant("NEEDS") and not entry.is_classifier
)
RNG = np.random.default_rng(20)


def word_counts(n_documents: int, n_terms: int = 40) -> sp.csr_matrix:
    return sp.csr_matrix(RNG.poisson(0.4, size=(n_documents, n_terms)).astype(np.int32))


TRAIN, TEST = word_counts(30), word_counts(12)


@pytest.fixture(params=METHODS)
def module(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(f"featurizers.{request.param}")


def small(module: Any) -> Any:
    """The method at its defaults but for the seed and a number of components that fits 30 documents."""
    wanted = {"random_state": 0, "n_components": 5}
    accepted = inspect.signature(type(module.build())).parameters
    return module.build(**{name: value for name, value in wanted.items() if name in accepted})


def dense(features: sp.csr_matrix | np.ndarray) -> np.ndarray:
    return features.toarray() if isinstance(features, sp.csr_matrix) else features


@functools.cache
def subject(name: str) -> Subject:
    return Subject(catalogue.method(name).load())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", catalogue.methods())
@pytest.mark.filterwarnings("ignore")
def test_every_method_keeps_the_contract(name: str, check: Callable[[Subject], None]) -> None:
    check(subject(name))


def test_the_methods_are_found() -> None:
    assert {"binary", "counts", "frequency", "tfidf", "tfidf_log2", "lsi", "lsa_pca"} <= set(METHODS)


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_input_is_untouched_even_with_duplicates_and_stored_zeros(module: Any, dtype: type) -> None:
    raw = sp.csr_matrix(([1, 2, 0, 3, 1], [2, 0, 1, 0, 0], [0, 3, 5]), shape=(2, 4), dtype=dtype)
    clean = sp.csr_matrix(np.array([[2, 0, 1, 0], [4, 0, 0, 0]], dtype))
    before = [array.tobytes() for array in (raw.data, raw.indices, raw.indptr)]
    method = small(module).fit(raw)
    features = method.transform(raw)
    assert [array.tobytes() for array in (raw.data, raw.indices, raw.indptr)] == before
    assert dense(features).tobytes() == dense(small(module).fit(clean).transform(clean)).tobytes()


def test_empty_documents_and_unseen_terms_are_finite(module: Any) -> None:
    train, test = TRAIN.toarray(), TEST.toarray()
    train[3], test[0] = 0, 0
    train[:, :4] = 0
    test[1], test[1, :4] = 0, 2  # a document of nothing but unseen terms
    method = small(module).fit(sp.csr_matrix(train))
    assert np.isfinite(dense(method.transform(sp.csr_matrix(train)))).all()
    assert np.isfinite(dense(method.transform(sp.csr_matrix(test)))).all()
    if not hasattr(method, "biases_"):  # a bias speaks in every document
        assert not np.any(dense(method.transform(sp.csr_matrix(test)))[0])


@pytest.mark.parametrize(
    "counts", [np.zeros((4, 3)), np.ones((4, 3)), np.ones((5, 1)), np.diag([1, 2, 3])], ids=str
)
def test_degenerate_collections_are_finite(module: Any, counts: np.ndarray) -> None:
    X = sp.csr_matrix(counts.astype(np.int32))
    method = module.build().fit(X)
    features = method.transform(X)
    assert np.isfinite(dense(features)).all()
    assert features.shape == (len(counts), len(method.get_feature_names_out()))
    assert features.shape[1] >= 1


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_impossible_counts_are_refused(module: Any, value: float) -> None:
    X = TRAIN.astype(np.float64)
    X.data[7] = value
    with pytest.raises(ValueError, match=r"negative: got -1|NaN|infinity"):
        small(module).fit(X)


def test_another_number_of_terms_is_refused(module: Any) -> None:
    with pytest.raises(ValueError, match="41 features"):
        small(module).fit(TRAIN).transform(word_counts(3, n_terms=41))
