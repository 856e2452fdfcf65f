"""Dual coordinate descent: the optimum of the objective, LIBLINEAR's answer, paths, layouts, and when it is used."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack
from sklearn.svm import LinearSVC

from textbench.evaluation.columns import full_columns
from textbench.evaluation.probes import catalogue, linear
from textbench.evaluation.probes.catalogue import LinearSVMProbe, build_probe
from textbench.evaluation.probes.linear import CONSTANT
from textbench.evaluation.probes.solvers.dual_descent import GAP, DualPath

Problem = tuple[csr_matrix, np.ndarray]


def half_full(seed: int, n: int = 80, n_sparse: int = 120, n_dense: int = 15) -> Problem:
    """Documents with sparse counts beside dense columns, and two overlapping classes."""
    rng = np.random.default_rng(seed)
    counts = csr_matrix(rng.poisson(0.05, (n, n_sparse)), dtype=np.float32)
    dense = rng.normal(0, 1, (n, n_dense)).astype(np.float32)
    X = csr_matrix(hstack([dense[:, :7], counts, dense[:, 7:]]))
    return X, X @ rng.normal(0, 1, X.shape[1]) + rng.normal(0, 2, n) > 1


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small documents be solved by dual descent too."""
    monkeypatch.setattr(catalogue, "choose_solver", lambda X: "descent")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_the_two_parts_are_the_columns(dtype: type) -> None:
    """Whatever the order of a row's values, none of which are written to."""
    X = csr_matrix(half_full(0)[0].toarray().round(), dtype=dtype)
    backwards = csr_matrix((X.data[::-1], X.indices[::-1], X.indptr), X.shape)[::-1]
    full = full_columns(X)
    assert 0 < full.sum() < len(full)
    for given in (X, csr_matrix(backwards)):
        given.data.flags.writeable = given.indices.flags.writeable = False
        rows = DualPath(given, full, 1.0).rows
        np.testing.assert_array_equal(rows.block[rows.places], given.toarray()[:, full])
        beside = csr_matrix((rows.values, rows.columns, np.append(rows.begins, rows.ends[-1])))
        np.testing.assert_array_equal(beside.toarray(), given.toarray()[:, ~full][:, : beside.shape[1]])
        assert beside.has_sorted_indices


def test_scores_by_blocks_are_the_same_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    X, positive = half_full(0)
    probe = build_probe("linear-svm").fit(X, positive.astype(int) + (np.arange(80) % 3 == 0))
    whole = probe.decision_function(X)
    monkeypatch.setattr(linear, "ROWS", 7)
    np.testing.assert_array_equal(probe.decision_function(X), whole)
    assert probe.decision_function(X[:0]).shape == (0, whole.shape[1])


@pytest.mark.parametrize("C", [0.1, 3.0, 100.0])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_the_objective_is_within_the_gap_of_its_minimum(C: float, scale: float) -> None:
    """f = |w|^2/2 + b^2/2 + C sum max(0, 1 - y (w.x/s + b))^2 exceeds its minimum by at most |gradient|^2 / 2."""
    X, positive = half_full(0)
    coefficients, intercept, converged = DualPath(X, full_columns(X), scale).solve(0, positive, C, 10_000)
    rows = np.column_stack([X.toarray() / scale, np.ones(80)]).astype(np.float64)
    w, sign = np.append(coefficients * scale, intercept), np.where(positive, 1, -1)
    slack = np.maximum(0, 1 - sign * (rows @ w))
    objective = w @ w / 2 + C * slack @ slack
    gradient = w - 2 * C * rows.T @ (sign * slack)
    # The gap bounds |w - w*|^2 / 2, the smoothness of f its gradient.
    smoothness = 1 + 2 * C * np.linalg.norm(rows, 2) ** 2
    assert converged
    assert np.sqrt(gradient @ gradient) <= smoothness * np.sqrt(2 * GAP * objective)
    reference = LinearSVC(C=C, tol=1e-9, max_iter=1_000_000, random_state=0).fit(rows[:, :-1], positive)
    best = np.append(reference.coef_[0], reference.intercept_)
    slack = np.maximum(0, 1 - sign * (rows @ best))
    assert objective <= (best @ best / 2 + C * slack @ slack) * (1 + 2 * GAP)
    np.testing.assert_allclose(w, best, atol=np.sqrt(2 * GAP * objective))


def test_a_path_ends_where_a_fresh_start_does() -> None:
    X, positive = half_full(1)
    path = DualPath(X, full_columns(X), 2.0)
    for C in (0.01, 1.0, 100.0, 1.0, 0.1):  # downwards too
        from_last, *_ = path.solve(0, positive, C, 10_000)
        fresh, *_ = DualPath(X, full_columns(X), 2.0).solve(0, positive, C, 10_000)
        np.testing.assert_allclose(from_last, fresh, atol=2e-2 * np.abs(fresh).max())


def test_the_layout_does_not_matter() -> None:
    X, positive = half_full(2)
    layouts = {
        "dense columns": (X, full_columns(X)),
        "none dense": (X, np.zeros(X.shape[1], dtype=bool)),
        "all dense": (X, np.ones(X.shape[1], dtype=bool)),
        "array": (X.toarray(), full_columns(X)),
        "float64": (X.astype(np.float64), full_columns(X)),
        "column order": (np.asfortranarray(X.toarray()), full_columns(X)),
    }
    answers = [DualPath(given, full, 2.0).solve(0, positive, 3.0, 10_000) for given, full in layouts.values()]
    for coefficients, intercept, converged in answers:
        assert converged
        np.testing.assert_allclose(coefficients, answers[0][0], atol=1e-8)
        assert intercept == pytest.approx(answers[0][1], abs=1e-8)
    counts = csr_matrix(X.toarray().round().astype(np.int32))
    assert DualPath(counts, full_columns(counts), 2.0).solve(0, positive, 3.0, 10_000)[2]


def test_problems_that_are_solved_at_a_time_are_those_that_are_solved_alone() -> None:
    X, positive = half_full(2)
    columns = np.column_stack([positive, ~positive, np.arange(80) % 3 == 0])
    for found, column in zip(
        DualPath(X, full_columns(X), 2.0).solve_all(columns, 3.0, 10_000), columns.T, strict=True
    ):
        alone = DualPath(X, full_columns(X), 2.0).solve(0, column, 3.0, 10_000)
        np.testing.assert_array_equal(found[0], alone[0])
        assert found[1:] == alone[1:]


def test_running_out_of_passes_is_said() -> None:
    X, positive = half_full(3)
    path = DualPath(X, full_columns(X), 1.0)
    assert not path.solve(0, positive, 100.0, 2)[2]
    assert path.solve(0, positive, 100.0, 10_000)[2]


def test_empty_documents_are_learned_by_the_bias() -> None:
    X = csr_matrix((6, 3), dtype=np.float32)
    positive = np.array([True] * 4 + [False] * 2)
    coefficients, intercept, converged = DualPath(X, full_columns(X), 1.0).solve(0, positive, 10.0, 10_000)
    # b/2C = 4 (1 - b) - 2 (1 + b), a parabola's vertex.
    assert (list(coefficients), converged) == ([0.0] * 3, True)
    assert intercept == pytest.approx(2 / (6 + 0.05), abs=1e-2)


@pytest.mark.parametrize("solver", ["descent", "streamed"])
@pytest.mark.parametrize("several", [False, True])
def test_the_probe_answers_as_by_liblinear(
    several: bool, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By descent, and by Newton's method in passes, which are for the same documents."""
    monkeypatch.setattr(catalogue, "choose_solver", lambda X: solver)
    X, _ = half_full(4, n=150)
    rng = np.random.default_rng(4)
    scores = X @ rng.normal(0, 1, (X.shape[1], 4)) + rng.normal(0, 1, (150, 4))
    y = csr_matrix(scores > 2) if several else scores.argmax(axis=1)
    fast = list(LinearSVMProbe().fit_path(X, y, [0.3, 3.0, 30.0]))
    monkeypatch.setattr(catalogue, "choose_solver", lambda X: "liblinear")
    monkeypatch.setattr(catalogue, "TOLERANCE", 1e-7)
    for probe in fast:
        slow = LinearSVMProbe(C=probe.C).fit(X, y)
        assert probe.converged_
        np.testing.assert_allclose(probe.decision_function(X), slow.decision_function(X), atol=0.02)
        assert (probe.predict(X) != slow.predict(X)).sum() <= 1


@pytest.mark.usefixtures("always")
def test_the_same_bits_again_and_inputs_left_alone() -> None:
    X, positive = half_full(5)
    X.data.flags.writeable = False
    paths = [[probe.coef_ for probe in LinearSVMProbe().fit_path(X, positive, [1.0, 9.0])] for _ in range(2)]
    np.testing.assert_array_equal(*paths)
    np.testing.assert_array_equal(LinearSVMProbe().fit(X, positive).coef_, paths[0][0])


@pytest.mark.usefixtures("always")
def test_a_label_of_nobody_one_class_and_a_round_trip() -> None:
    X, positive = half_full(6)
    Y = np.column_stack([positive, np.zeros(80), np.ones(80)])
    probe = build_probe("linear-svm").fit(X, Y)
    assert set(probe.decision_function(X)[:, 1]) == {-CONSTANT}
    assert set(probe.decision_function(X)[:, 2]) == {CONSTANT}
    restored = LinearSVMProbe.from_arrays(probe.to_arrays())
    np.testing.assert_array_equal(restored.decision_function(X), probe.decision_function(X))
    assert set(build_probe("linear-svm").fit(X, np.full(80, 3)).predict(X)) == {3}
