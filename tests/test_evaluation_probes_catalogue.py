"""Probes: the optimum of the objective, indifference to scale, round trips, one label and several."""

from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from textbench.evaluation.probes.catalogue import PROBES, LinearSVMProbe, LogisticRegressionProbe, build_probe
from textbench.evaluation.probes.linear import CONSTANT, LinearProbe
from textbench.evaluation.probes.nonlinear import NonlinearProbe

Kind = Callable[[np.ndarray], "np.ndarray | csr_matrix"]


def float32_array(X: np.ndarray) -> np.ndarray:
    return X.astype(np.float32)


LINEAR = [one for one in PROBES.values() if not issubclass(one, NonlinearProbe)]
every_probe = pytest.mark.parametrize("Probe", LINEAR)
by_liblinear = pytest.mark.parametrize("Probe", [LinearSVMProbe, LogisticRegressionProbe])
both_kinds = pytest.mark.parametrize("kind", [float32_array, csr_matrix])


def blobs(seed: int, n_classes: int = 3, n: int = 90, n_features: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping clouds around random centres."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(0, 1, (n_classes, n_features))[y] + rng.normal(0, 1, (n, n_features)), y


def several_blobs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points whose labels are three half-spaces, one that nobody has and one that all have."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (90, 6))
    Y = X @ rng.normal(0, 1, (6, 3)) + rng.normal(0, 0.5, (90, 3)) > 0.5
    return X, np.column_stack([Y, np.zeros(90), np.ones(90)]).astype(np.int8)


@pytest.mark.parametrize("C", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("n_features", [4, 120])
def test_the_objective_is_at_its_minimum(C: float, n_features: int) -> None:
    """f = |w|^2/2 + b^2/2 + C sum max(0, 1 - y (w.x + b))^2 with x over the root mean square norm.

    f is strongly convex with constant 1, so f exceeds its minimum by at most |gradient|^2 / 2.
    """
    X, y = blobs(0, n_features=n_features)
    probe = LinearSVMProbe(C=C).fit(X, y)
    X = np.column_stack([X / np.sqrt((X**2).sum(axis=1).mean()), np.ones(90)])
    weights = np.column_stack([probe.coef_ * probe.scale_, probe.intercept_])
    for c, w in zip(probe.classes_, weights, strict=True):
        sign = np.where(y == c, 1, -1)
        slack = np.maximum(0, 1 - sign * (X @ w))
        objective = w @ w / 2 + C * slack @ slack
        gradient = w - 2 * C * X.T @ (sign * slack)
        assert gradient @ gradient / 2 < 0.01 * objective


@pytest.mark.parametrize("C", [0.3, 30.0])
def test_the_logistic_loss_is_at_its_minimum(C: float) -> None:
    """f = |w|^2/2 + b^2/2 + C sum log(1 + exp(-y (w.x + b))), bounded as above."""
    X, y = blobs(0)
    probe = LogisticRegressionProbe(C=C).fit(X, y)
    X = np.column_stack([X / probe.scale_, np.ones(90)])
    weights = np.column_stack([probe.coef_ * probe.scale_, probe.intercept_])
    for c, w in zip(probe.classes_, weights, strict=True):
        sign = np.where(y == c, 1, -1)
        loss = np.logaddexp(0, -sign * (X @ w))
        gradient = w - C * X.T @ (sign * -np.expm1(-loss))
        assert gradient @ gradient / 2 < 1e-3 * (w @ w / 2 + C * loss.sum())


@both_kinds
@every_probe
@pytest.mark.parametrize("n_classes", [2, 4])
def test_scale_of_the_features_does_not_matter(kind: Kind, Probe: type[LinearProbe], n_classes: int) -> None:
    X, y = blobs(1, n_classes)
    new, _ = blobs(2, n_classes)
    small, large = Probe(C=3).fit(kind(X), y), Probe(C=3).fit(kind(1000 * X), y)
    np.testing.assert_array_equal(small.predict(kind(new)), large.predict(kind(1000 * new)))
    margins = small.decision_function(kind(new))
    np.testing.assert_allclose(large.decision_function(kind(1000 * new)), margins, rtol=1e-3, atol=1e-3)
    assert large.scale_ == pytest.approx(1000 * small.scale_)


@both_kinds
@pytest.mark.parametrize("n_classes", [2, 4])
def test_agreement_with_linear_svc_on_scaled_features(kind: Kind, n_classes: int) -> None:
    X, y = blobs(3, n_classes)
    scale = np.sqrt((X**2).sum(axis=1).mean())
    reference = LinearSVC(C=1, tol=1e-8, max_iter=100_000, random_state=0).fit(X / scale, y + 10)
    probe = LinearSVMProbe(C=1).fit(kind(X), y + 10)
    margins = reference.decision_function(X / scale)
    np.testing.assert_allclose(probe.decision_function(kind(X)), margins, atol=5e-3)
    # A document on the border may go either way within the tolerance.
    clear = np.abs(margins if n_classes == 2 else np.diff(np.sort(margins)[:, -2:])[:, 0]) > 0.02
    np.testing.assert_array_equal(probe.predict(kind(X))[clear], reference.predict(X / scale)[clear])


@by_liblinear
@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_agreement_with_one_versus_the_rest(Probe: type[LinearProbe], n_classes: int) -> None:
    """The probe's scores of several labels, or of classes, are those of one binary problem each."""
    X, Y = several_blobs(7)
    Y = Y[:, :n_classes]
    scale = np.sqrt((X**2).sum(axis=1).mean())
    scores = Probe(C=2).fit(X, csr_matrix(Y)).decision_function(csr_matrix(X))
    assert scores.shape == (90, n_classes)
    np.testing.assert_array_equal(scores, Probe(C=2).fit(X, Y).decision_function(csr_matrix(X)))
    solver = LinearSVC if Probe is LinearSVMProbe else LogisticRegression
    for label in range(min(n_classes, 3)):
        reference = solver(C=2, tol=1e-8, max_iter=100_000, random_state=0)
        if solver is LogisticRegression:
            reference.set_params(solver="liblinear")
        expected = reference.fit(X / scale, Y[:, label]).decision_function(X / scale)
        np.testing.assert_allclose(scores[:, label], expected, atol=1e-2)


@every_probe
def test_a_label_of_nobody_and_a_label_of_all(Probe: type[LinearProbe]) -> None:
    X, Y = several_blobs(1)
    probe = Probe().fit(X, csr_matrix(Y))
    scores = probe.decision_function(X)
    assert set(scores[:, 3]) == {-CONSTANT}
    assert set(scores[:, 4]) == {CONSTANT}
    assert np.abs(scores[:, :3]).max() < 100
    predicted = probe.predict(X)
    assert predicted.dtype == np.int8
    np.testing.assert_array_equal(predicted.toarray(), scores > 0)
    probe.thresholds_ = np.array([100.0, -100.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(probe.predict(X).sum(axis=0)[..., :2], [[0, 90]])


@every_probe
def test_one_label_again_after_several(Probe: type[LinearProbe]) -> None:
    X, Y = several_blobs(2)
    probe = Probe().fit(X, Y).fit(X, Y[:, 0].astype(int))
    np.testing.assert_array_equal(probe.predict(X), Probe().fit(X, Y[:, 0].astype(int)).predict(X))
    assert "thresholds" not in probe.to_arrays()


@every_probe
def test_round_trip_of_several_labels(Probe: type[LinearProbe]) -> None:
    X, Y = several_blobs(3)
    probe = Probe(C=3).fit(X, Y)
    probe.thresholds_ = np.array([0.1, -0.2, 0.3, 0.0, 0.0])
    restored = Probe.from_arrays(probe.to_arrays())
    np.testing.assert_array_equal(restored.predict(X).toarray(), probe.predict(X).toarray())
    assert vars(restored).keys() == vars(probe).keys()


@every_probe
@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_round_trip_through_arrays(Probe: type[LinearProbe], n_classes: int) -> None:
    X, y = blobs(4, n_classes)
    probe = Probe(C=0.3, random_state=5).fit(X, y)
    file = BytesIO()
    np.savez(file, **probe.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        restored = Probe.from_arrays(arrays)
    np.testing.assert_array_equal(restored.decision_function(X), probe.decision_function(X))
    np.testing.assert_array_equal(restored.predict(X), probe.predict(X))
    assert vars(restored).keys() == vars(probe).keys()
    assert (restored.C, restored.random_state, restored.converged_) == (0.3, 5, True)


@both_kinds
@every_probe
def test_inputs_are_left_alone_and_the_same_seed_gives_the_same_bits(
    kind: Kind, Probe: type[LinearProbe]
) -> None:
    X, y = blobs(5, n=40, n_features=60)
    features = kind(X)
    values = features if isinstance(features, np.ndarray) else features.data
    values.flags.writeable = False
    first, second = Probe(C=3).fit(features, y), Probe(C=3).fit(features, y)
    first.predict(features)
    np.testing.assert_array_equal(first.to_arrays()["coef"], second.to_arrays()["coef"])


@every_probe
def test_limiting_cases(Probe: type[LinearProbe]) -> None:
    X, y = blobs(6)
    lone = Probe().fit(X, np.full(90, 7))
    assert set(lone.predict(X)) == {7}
    nothing = Probe().fit(csr_matrix((90, 4)), np.repeat([0, 1], [60, 30]))
    assert set(nothing.predict(csr_matrix((5, 4)))) == {0}
    assert np.all(nothing.scale_ == 1)
    assert not Probe(C=1e4, max_iter=1).fit(X, y).converged_
    counts = csr_matrix(np.array([[5, 0], [0, 5]]))
    np.testing.assert_array_equal(Probe().fit(counts, np.array([1, 0])).predict(counts), [1, 0])


def test_bad_input_is_named() -> None:
    X, y = blobs(0)
    with pytest.raises(ValueError, match=r"one of linear-svm, .*; received 'linear_svm'"):
        build_probe("linear_svm")
    with pytest.raises(ValueError, match="C must be positive; received -1"):
        LinearSVMProbe(C=-1).fit(X, y)
    with pytest.raises(ValueError, match="received 90 rows, 3 classes"):
        LinearSVMProbe().fit(X, y[:3])
    with pytest.raises(ValueError, match="the 6 features of training; received 5"):
        LinearSVMProbe().fit(X, y).predict(X[:, :5])
    with pytest.raises(ValueError, match="at least one label; received none"):
        LinearSVMProbe().fit(X, np.zeros((90, 0)))


@pytest.mark.parametrize("C", [0.05, 2.0])
def test_unscaled_c_is_that_of_the_features_as_given(C: float) -> None:
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(5)
    X = csr_matrix(rng.poisson(1.0, (80, 12)).astype(np.float64))
    y = (X[:, :3] @ np.array([1.0, -1.0, 0.5]) + rng.normal(size=80) > 0.3).astype(int)
    fitted = build_probe("linear-svm", C, scaled=False).fit(X, y)
    expected = LinearSVC(C=C, tol=1e-8, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(fitted.coef_, expected.coef_, rtol=0.02, atol=2e-3)
    assert fitted.scale_ == 1.0
    again = type(fitted).from_arrays(fitted.to_arrays())
    assert not again.scaled
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
