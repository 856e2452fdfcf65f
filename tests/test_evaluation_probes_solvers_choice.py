"""Which solver fits a linear probe, by the size and the shape of the documents."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack, vstack

from textbench.evaluation.probes.catalogue import build_probe
from textbench.evaluation.probes.solvers import choice
from textbench.evaluation.probes.solvers.choice import (
    MANY_DOCUMENTS,
    MODERATE,
    MOST,
    choose_logistic_solver,
    choose_solver,
    liblinear_dual,
)


def test_each_solver_has_its_documents() -> None:
    rng = np.random.default_rng(0)
    dense = rng.normal(0, 1, (1000, 1001)).astype(np.float32)
    sparse = csr_matrix(rng.random((1000, 20_000)) < 0.005, dtype=np.float32)
    long = csr_matrix(np.full((1, 20_000), 9.0, dtype=np.float32))
    many = rng.normal(0, 1, (MOST + 1, 60)).astype(np.float32)
    empty = csr_matrix((MOST + 1, 3000), dtype=np.float32)
    answers = {
        "wide and dense": (dense, "gram"),
        "few values": (dense[:49], "liblinear"),
        "few features": (dense[:, :300], "primal"),
        "few features in csr": (csr_matrix(dense[:, :300]), "primal"),
        "dense beside sparse columns": (csr_matrix(hstack([dense, sparse])), "gram"),
        "sparse": (sparse, "liblinear"),
        "sparse, and one long document": (csr_matrix(vstack([sparse, long])), "gram"),
        "too many documents, in full columns": (csr_matrix(hstack([many, empty])), "streamed"),
        "and of many features": (
            csr_matrix(hstack([many, empty, empty, empty, empty, empty, empty])),
            "descent",
        ),
        "too many documents, sparse": (csr_matrix(vstack([sparse] * 13)), "liblinear"),
    }
    for name, (X, expected) in answers.items():
        assert choose_solver(X) == expected, name


def test_more_values_than_may_be_copied_are_read_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    X = csr_matrix(np.random.default_rng(0).random((1000, 20_000)) < 0.005, dtype=np.float32)
    monkeypatch.setattr(choice, "MOST_COPIED", X.nnz)
    assert choose_solver(X) == "liblinear"
    monkeypatch.setattr(choice, "MOST_COPIED", X.nnz - 1)
    assert choose_solver(X) == "streamed"


def test_logistic_regression_has_others() -> None:
    rng = np.random.default_rng(0)
    dense = rng.normal(0, 1, (1000, 1001)).astype(np.float32)
    sparse = csr_matrix(rng.random((1000, 20_000)) < 0.005, dtype=np.float32)
    full, empty = np.ones((MOST + 1, 300), dtype=np.float32), csr_matrix((MOST + 1, 9000), dtype=np.float32)
    answers = {
        "wide and dense": (dense, "gram"),
        "wide and dense in csr": (csr_matrix(dense), "gram"),
        "few values": (dense[:49], "liblinear"),
        "few features": (dense[:, :100], "liblinear"),
        "sparse": (sparse, "liblinear"),
        "too many documents": (csr_matrix(hstack([full, empty])), "liblinear"),
    }
    for name, (X, expected) in answers.items():
        assert choose_logistic_solver(X) == expected, name


def test_of_many_sparse_documents_the_dual_problem_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to a moderate C; both problems have the same solution."""
    assert liblinear_dual(MANY_DOCUMENTS, 1.0) == liblinear_dual(MANY_DOCUMENTS + 1, MODERATE * 1.1) == "auto"
    assert liblinear_dual(MANY_DOCUMENTS + 1, MODERATE) is True
    rng = np.random.default_rng(0)
    X = csr_matrix(rng.random((600, 100)) < 0.05, dtype=np.float32)
    y = np.asarray(X[:, :10].sum(axis=1)).ravel() > 0.5
    primal = build_probe("linear-svm", 0.3).fit(X, y.astype(int))
    monkeypatch.setattr(choice, "MANY_DOCUMENTS", 100)
    dual = build_probe("linear-svm", 0.3).fit(X, y.astype(int))
    assert dual.converged_
    assert (dual.coef_ != primal.coef_).any()
    np.testing.assert_allclose(dual.coef_, primal.coef_, atol=0.02 * np.abs(primal.coef_).max())
