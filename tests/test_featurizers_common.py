"""Every method of the folder featurizers keeps the contract on its first page, and what ours keep beyond it."""

import functools
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn

from tests.small_model import small_params
from textbench.featurizers._contract import CHECKS, N_TERMS, Subject, dense
from textbench.tasks import catalogue

METHODS = catalogue.methods()
REPRESENTATIONS = [name for name, entry in METHODS.items() if not entry.is_classifier]
# Word vectors of nothing, and of what is read in order, are refused.
OF_COUNTS = [n for n, e in METHODS.items() if e.constant("INPUT") == "counts" and not e.constant("NEEDS")]


@functools.cache
def subject(name: str) -> Subject:
    return Subject(METHODS[name].load(), small_params(name))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore")
def test_every_method_keeps_the_contract(name: str, check: Callable[[Subject], str | None]) -> None:
    check(subject(name))


def test_every_check_has_something_to_try() -> None:
    for check in CHECKS:
        assert any(check(subject(name)) is None for name in ("chi2", "nb")), check.__name__


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_an_empty_document_is_zero_but_for_a_bias(name: str) -> None:
    method = subject(name).fitted
    features = subject(name).output(method, subject(name).read([np.zeros(0, dtype=np.int32)]))
    assert hasattr(method, "biases_") or not features.any()


@pytest.mark.parametrize(
    "counts", [np.zeros((4, 3)), np.ones((4, 3)), np.ones((5, 1)), np.diag([1, 2, 3])], ids=str
)
@pytest.mark.parametrize("name", OF_COUNTS)
def test_degenerate_collections_are_finite(name: str, counts: np.ndarray) -> None:
    X, made = sp.csr_matrix(counts.astype(np.int32)), subject(name)
    method = made.fit(made.module.build(), X, np.arange(len(counts)) % 3 if made.needs_labels else None)
    features = made.output(method, X)
    assert np.isfinite(features).all()
    if not made.is_classifier:
        assert dense(features).shape == (len(counts), len(method.get_feature_names_out()))
        assert features.shape[1] >= 1


@pytest.mark.parametrize(
    ("value", "said"),
    [(-1.0, "negative: got -1"), (np.nan, "NaN"), (np.inf, "infinity"), (None, "121 features")],
)
@pytest.mark.parametrize("name", [n for n, e in METHODS.items() if e.constant("INPUT") == "counts"])
def test_impossible_counts_are_named(name: str, value: float | None, said: str) -> None:
    made = subject(name)
    X = made.documents.train.astype(np.float64)
    with pytest.raises(ValueError, match=said):
        if value is None:
            made.output(made.fitted, sp.hstack([X, X[:, :1]], format="csr"))
        X.data[7] = value
        made.fit(made.build(), X)


@pytest.mark.parametrize("name", [n for n, e in METHODS.items() if "megabytes" not in e.bound])
@pytest.mark.filterwarnings("ignore")
def test_memory_grows_as_documents_do_or_is_forecast(name: str) -> None:
    """From 200 to 400 and from 400 to 800: a matrix of documents by documents would take four times as much more."""
    made, rng = subject(name), np.random.default_rng(0)
    ids = [rng.integers(0, N_TERMS, size=rng.integers(5, 20)).astype(np.int32) for _ in range(800)]
    peaks = []
    for n in (200, 200, 400, 800):  # the first time imports and compiles
        X, y = made.read(ids[:n]), np.arange(n) % 3
        tracemalloc.start()
        method = made.fit(made.build(), X, y)
        with sklearn.config_context(working_memory=1):  # MB, of what scikit-learn does in blocks
            (method.decision_function if made.is_classifier else method.transform)(X)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    _, first, second, third = peaks
    assert third - second < 2.6 * max(second - first, 0) + 300_000
