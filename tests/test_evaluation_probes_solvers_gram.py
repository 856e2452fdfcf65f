"""The Gram matrix of either layout, and the linear SVM's probes that learn from it: classes, labels, splits."""

from itertools import chain

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack

from textbench.evaluation.probes import catalogue
from textbench.evaluation.probes.catalogue import LinearSVMProbe
from textbench.evaluation.probes.linear import CONSTANT
from textbench.evaluation.probes.solvers.gram import gram_matrix
from textbench.evaluation.probes.tuning import choose_c

C_GRID = (0.1, 0.3, 0.35, 0.4, 30.0, 3.0)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small documents be solved by their Gram matrix too."""
    monkeypatch.setattr(catalogue, "choose_solver", lambda X: "gram")


def documents(seed: int, n: int = 120) -> tuple[csr_matrix, np.ndarray]:
    """Sparse counts beside dense columns, of lengths far from 1, and four overlapping classes."""
    rng = np.random.default_rng(seed)
    counts = csr_matrix(rng.poisson(0.05, (n, 100)), dtype=np.float32)
    X = csr_matrix(hstack([rng.normal(0, 2, (n, 12)).astype(np.float32), counts]))
    return X, (X @ rng.normal(0, 1, (X.shape[1], 4)) + rng.normal(0, 2, (n, 4))).argmax(axis=1)


def test_the_gram_matrix_of_either_layout() -> None:
    rng = np.random.default_rng(1)
    X = rng.poisson(0.05, (1100, 70)) * rng.integers(1, 4, (1100, 70))
    X[:, ::9] += rng.poisson(2, (1100, 8))  # full columns
    expected = X @ X.T
    for layout in (
        X,
        X.astype(np.float32),
        np.asfortranarray(X),
        csr_matrix(X),
        csr_matrix(X, dtype=np.float32),
    ):
        gram = gram_matrix(layout)
        assert (gram.dtype, gram.flags.c_contiguous) == (np.float32, True)
        np.testing.assert_array_equal(gram, expected)  # counts are exact
    # A column is named twice.
    twice = csr_matrix(([1, 2, 5.0, 1], [3, 3, 4, 3], [0, 3, 4]), shape=(2, 50_000))
    np.testing.assert_array_equal(gram_matrix(twice), [[34, 3], [3, 1]])
    real = csr_matrix(rng.normal(0, 1, (700, 90)) * (rng.random((700, 90)) < 0.3))
    gram = gram_matrix(real)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(gram, (real @ real.T).toarray(), atol=1e-5)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_the_probe_answers_as_by_liblinear(
    several: bool, scaled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, classes = documents(0)
    y = csr_matrix(np.column_stack([classes == 0, classes > 1])) if several else classes
    fast = list(LinearSVMProbe(scaled=scaled).fit_path(X, y, C_GRID))
    monkeypatch.setattr(catalogue, "choose_solver", lambda X: "liblinear")
    monkeypatch.setattr(catalogue, "TOLERANCE", 1e-7)
    for C, probe in zip(C_GRID, fast, strict=True):
        slow = LinearSVMProbe(C=C, scaled=scaled, max_iter=1_000_000).fit(X, y)
        assert probe.converged_ is True  # it is written as JSON
        np.testing.assert_allclose(probe.decision_function(X), slow.decision_function(X), atol=0.03)
        assert (probe.predict(X) != slow.predict(X)).sum() <= 1


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dense", [True, False])
def test_probes_of_folds_answer_as_those_of_the_rows(dense: bool) -> None:
    """Of a class that the training part has not, and of one that only it has, too."""
    X, y = documents(1)
    y[:3] = 7
    folds = [(np.arange(3, 120), np.arange(3)), (np.arange(0, 120, 2), np.arange(1, 120, 2))]
    X = X.toarray() if dense else X
    paths = list(LinearSVMProbe().fit_folds(X, y, folds))
    further = (100.0, 0.03)
    for (train, test), (path, asked) in zip(folds, paths, strict=True):
        alone = LinearSVMProbe().fit_path(X[train], y[train], (*C_GRID, *further))
        for in_fold, expected in zip(chain(path(C_GRID), path(further)), alone, strict=True):
            assert (in_fold.C, in_fold.scale_) == (expected.C, expected.scale_)
            np.testing.assert_array_equal(in_fold.classes_, expected.classes_)
            scores = expected.decision_function(X[test])
            np.testing.assert_allclose(in_fold.decision_function(asked), scores, atol=0.03)


@pytest.mark.usefixtures("always")
def test_a_label_of_nobody_a_label_of_all_and_one_class() -> None:
    X, y = documents(2)
    Y = np.column_stack([y == 0, np.zeros(120), np.ones(120)])
    ((path, asked),) = LinearSVMProbe().fit_folds(X, Y, [(np.arange(60), np.arange(60, 120))])
    scores = next(path([1.0])).decision_function(asked)
    assert set(scores[:, 1]) == {-CONSTANT}
    assert set(scores[:, 2]) == {CONSTANT}
    none_to_learn = LinearSVMProbe().fit(X, Y[:, 1:])
    assert set(none_to_learn.decision_function(X)[:, 0]) == {-CONSTANT}
    ((path, asked),) = LinearSVMProbe().fit_folds(X, np.full(120, 3), [(np.arange(9), np.arange(9, 120))])
    assert set(next(path([1.0])).predict(asked)) == {3}


@pytest.mark.usefixtures("always")
def test_the_choice_of_c_is_that_of_liblinear_and_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = documents(3)
    first, second = (choose_c(X, y, "linear-svm", C_GRID, n_folds=3, random_state=0) for _ in range(2))
    assert first == second
    np.testing.assert_array_equal(first.fold_scores, second.fold_scores)
    monkeypatch.setattr(catalogue, "choose_solver", lambda X: "liblinear")
    monkeypatch.setattr(catalogue, "TOLERANCE", 1e-7)
    expected = choose_c(X, y, "linear-svm", C_GRID, n_folds=3, random_state=0)
    assert first.C == expected.C
    np.testing.assert_allclose(first.fold_scores, expected.fold_scores, atol=0.02)
