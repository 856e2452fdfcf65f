"""Newton's method in passes: the optimum of the objective, layouts, folds of many values, cores."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.sparse import csr_matrix, vstack
from sklearn.svm import LinearSVC

from textbench.evaluation import cores
from textbench.evaluation.probes import catalogue, linear
from textbench.evaluation.probes.catalogue import build_probe
from textbench.evaluation.probes.folds import folds_of
from textbench.evaluation.probes.solvers import streamed_newton
from textbench.evaluation.probes.solvers.finite_newton import GAP
from textbench.evaluation.probes.solvers.streamed_newton import StreamedNewton, _SampledHessian

Problem = tuple[csr_matrix, np.ndarray]


def documents(seed: int, n: int = 150, n_sparse: int = 60, n_dense: int = 10) -> Problem:
    """Counts beside dense columns with one large common direction, and six overlapping classes, a row's in columns."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.1, (n, n_sparse))
    dense = rng.normal(2, 1, (n, n_dense))
    X = csr_matrix(np.hstack([counts, dense]), dtype=np.float32)
    scores = X @ rng.normal(0, 1, (X.shape[1], 6)) + rng.normal(0, 2, (n, 6))
    return X, scores > np.diagonal(np.quantile(scores, [0.5, 0.9, 0.3, 0.5, 0.8, 0.6], axis=0))


def objective(X: csr_matrix, positive: np.ndarray, C: float, w: np.ndarray, b: float) -> float:
    slack = np.maximum(0, 1 - np.where(positive, 1, -1) * (X @ w + b))
    return float(w @ w / 2 + b**2 / 2 + C * slack @ slack)


@pytest.mark.parametrize(
    ("C", "sample"), [(0.01, 20), (3.0, 20), (3.0, 100), (3.0, 10_000), (100.0, 40), (100.0, 10_000)]
)
def test_the_objective_is_within_the_gap_of_its_minimum(
    C: float, sample: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few documents the preconditioner has seen, fewer than there are features or more."""
    monkeypatch.setattr(streamed_newton, "SAMPLE", sample)
    X, positive = documents(0)
    scale = 3.0
    for column, (w, b, converged) in zip(
        positive.T, StreamedNewton(X, scale).solve_all(positive, C, 100), strict=True
    ):
        assert converged
        rows = csr_matrix(X, dtype=np.float64) / scale
        reference = LinearSVC(C=C, tol=1e-10, max_iter=1_000_000, random_state=0).fit(rows, column)
        lowest = objective(rows, column, C, reference.coef_[0], float(reference.intercept_[0]))
        assert objective(rows, column, C, w * scale, b) <= lowest * (1 + GAP)


@pytest.mark.parametrize("n_some", [30, 100])
@pytest.mark.parametrize("is_csr", [True, False])
def test_the_preconditioner_is_the_inverse_of_the_sampled_hessian(n_some: int, is_csr: bool) -> None:
    """Of fewer documents than features, and of more."""
    X = documents(6)[0][:n_some]
    hessian = _SampledHessian(X if is_csr else X.toarray(), 1000, 3.0)
    rows = np.column_stack([X.toarray() / 3.0, np.ones(n_some)]) * np.sqrt(1000 / n_some)
    noise = np.median(np.linalg.eigvalsh(rows[::4] @ rows[::4].T))
    expected = np.linalg.inv((1 + 0.7 * noise) * np.eye(71) + 0.7 * rows.T @ rows)
    np.testing.assert_allclose(hessian.inverse(0.7)(np.eye(71)), expected, atol=1e-6 * expected.max())
    np.testing.assert_allclose(hessian.inverse(0.0)(np.eye(71)), np.eye(71))
    assert hessian.mean_square == pytest.approx((rows**2).sum() / 1000)


def test_a_path_ends_where_a_fresh_start_does() -> None:
    X, positive = documents(1)
    path = StreamedNewton(X, 2.0)
    for C in (0.01, 1.0, 100.0, 1.0, 0.1):  # downwards too
        for column, on_path, fresh in zip(
            positive.T,
            path.solve_all(positive, C, 100),
            StreamedNewton(X, 2.0).solve_all(positive, C, 100),
            strict=True,
        ):
            reached = [objective(X / 2.0, column, C, w * 2.0, b) for w, b, _ in (on_path, fresh)]
            assert reached[0] == pytest.approx(reached[1], rel=GAP)


def test_the_layout_does_not_matter_and_nothing_is_written() -> None:
    X, positive = documents(2)
    some = np.arange(40, 190)
    more = csr_matrix(vstack([X[:40], X]))
    layouts = [(X,), (X.toarray(),), (X.astype(np.float64),), (np.asfortranarray(X.toarray()),)]
    layouts += [(more, some), (more.toarray(), some)]
    answers = []
    for given, *rows in layouts:
        values = given if isinstance(given, np.ndarray) else given.data
        values.flags.writeable = False
        answers.append(StreamedNewton(given, 2.0, *rows).solve_all(positive, 3.0, 100))
    for solved in answers:
        for found, expected in zip(solved, answers[0], strict=True):
            assert found[2]
            np.testing.assert_allclose(found[0], expected[0], atol=1e-5)


def test_the_same_bits_on_however_many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    X, positive = documents(3)
    solved = []
    for n in (1, 3):
        monkeypatch.setattr(cores, "n_cores", lambda n=n: n)
        solved.append(StreamedNewton(X, 2.0).solve_all(positive, 3.0, 100))
    for found, expected in zip(*solved, strict=True):
        np.testing.assert_array_equal(found[0], expected[0])


def test_running_out_of_steps_is_said() -> None:
    X, positive = documents(4)
    path = StreamedNewton(X, 2.0)
    assert not all(converged for *_, converged in path.solve_all(positive, 300.0, 1))
    assert all(converged for *_, converged in path.solve_all(positive, 300.0, 100))


def test_nothing_is_copied() -> None:
    X, _ = documents(0)
    some, array = np.arange(0, 150, 3), X.toarray()
    sparse = StreamedNewton(X, 1.0, some).rows
    assert np.shares_memory(sparse.values, X.data) and np.shares_memory(sparse.columns, X.indices)
    assert np.shares_memory(StreamedNewton(array, 1.0, some).rows.block, array)


def test_folds_of_very_many_values_are_those_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit, though read where they lie beyond a limit, which a sample's folds keep below."""
    X, positive = documents(5, n=300)
    y = positive[:, 0].astype(int) + positive[:, 1]
    folds = folds_of(X, y, 3, 0)
    folds += [(train[::4], test) for train, test in folds]
    monkeypatch.setattr(catalogue, "choose_solver", lambda X: "streamed")
    few = list(solved(X, y, folds))
    monkeypatch.setattr(catalogue, "MOST_COPIED", X.nnz // 2)
    monkeypatch.setattr(linear, "ROWS", 512)
    for expected, found in zip(few, solved(X, y, folds), strict=True):
        np.testing.assert_array_equal(found, expected)


def solved(X: csr_matrix, y: np.ndarray, folds: list[tuple[np.ndarray, np.ndarray]]) -> Iterator[np.ndarray]:
    """The decision values of each fold and C."""
    for probes, held_out in build_probe("linear-svm").fit_folds(X, y, folds):
        for probe in probes([0.3, 3.0]):
            yield probe.decision_function(held_out)
