"""Neighbours and perceptron: agreement with scikit-learn, limiting cases, round trips, one label and several."""

from io import BytesIO

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from tests.test_evaluation_probes_catalogue import blobs, several_blobs
from textbench.evaluation.probes.linear import CONSTANT
from textbench.evaluation.probes.nonlinear import NeighboursProbe, NonlinearProbe, PerceptronProbe
from textbench.evaluation.probes.tuning import choose_c

both = pytest.mark.parametrize("Probe", [NeighboursProbe, PerceptronProbe])
kinds = pytest.mark.parametrize("kind", [np.asarray, csr_matrix])


@kinds
def test_neighbours_vote_as_scikit_learns_do_by_similarity(kind: type) -> None:
    X, y = blobs(1)
    X = np.abs(X)  # then no similarity is negative
    new = np.abs(blobs(2)[0])
    reference = KNeighborsClassifier(7, metric="cosine", weights=lambda distance: 1 - distance).fit(X, y)
    scores = NeighboursProbe(C=7).fit(kind(X), y).decision_function(kind(new))
    np.testing.assert_allclose(scores, 2 * reference.predict_proba(new) - 1, atol=1e-5)


def test_all_neighbours_of_a_document_like_none_are_the_training_documents() -> None:
    probe = NeighboursProbe(C=2).fit(np.eye(4)[:3], np.array([0, 0, 1]))
    assert probe.decision_function(np.eye(4)[3:]) == pytest.approx([1 / 3 - 2 / 3])
    assert probe.predict(np.eye(4)[2:]).tolist() == [1, 0]


@kinds
def test_the_perceptron_is_scikit_learns_on_scaled_features(kind: type) -> None:
    X, y = blobs(3)
    scale = np.sqrt((X**2).sum(axis=1).mean())
    network = MLPClassifier(
        (64,), alpha=0.01, learning_rate_init=0.003, max_iter=2000, random_state=4, tol=1e-4
    )
    network.fit(kind(X / scale), y)
    assert 20 < network.n_iter_ < 2000  # the loss was flat
    probe = PerceptronProbe(C=100, random_state=4).fit(kind(X), y)
    np.testing.assert_allclose(
        probe.decision_function(X), 2 * network.predict_proba(X / scale) - 1, atol=1e-6
    )


@both
@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_round_trip(Probe: type[NonlinearProbe], n_classes: int) -> None:
    X, y = blobs(4, n_classes)
    for kind in (np.asarray, csr_matrix):
        probe, file = Probe(C=5, random_state=5).fit(kind(X), y), BytesIO()
        np.savez(file, **probe.to_arrays())
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            restored = Probe.from_arrays(arrays)
        np.testing.assert_array_equal(restored.decision_function(X), probe.decision_function(X))
        np.testing.assert_array_equal(restored.predict(X), probe.predict(X))
    assert probe.predict(X).shape == (90,) and np.mean(probe.predict(X) == y) > 0.6


@both
@pytest.mark.parametrize("labels", [slice(None), slice(1)])
def test_several_labels_one_of_nobody_and_one_of_all(Probe: type[NonlinearProbe], labels: slice) -> None:
    X, Y = several_blobs(1)
    probe = Probe(C=9).fit(X, csr_matrix(Y[:, labels]))
    scores = probe.decision_function(X)
    assert np.mean((scores > 0) == Y[:, labels]) > 0.75
    np.testing.assert_array_equal(probe.predict(X).toarray(), scores > 0)
    if scores.shape[1] > 1:
        assert set(scores[:, 3]) == {-CONSTANT} and set(scores[:, 4]) == {CONSTANT}
    restored = Probe.from_arrays(probe.to_arrays())
    np.testing.assert_array_equal(restored.decision_function(X), scores)


def test_a_label_alone_is_a_column() -> None:
    X, Y = several_blobs(1)
    together, alone = NeighboursProbe(C=9).fit(X, Y[:, :3]), NeighboursProbe(C=9).fit(X, Y[:, :3])
    alone._fit_label(X / alone.scale_, 1, Y[:, 1].astype(bool))
    np.testing.assert_array_equal(alone._columns(X)[:, 0], together.decision_function(X)[:, 1])


@both
def test_scale_does_not_matter_and_bad_input_is_named(Probe: type[NonlinearProbe]) -> None:
    X, y = blobs(6)
    small, large = Probe(C=3).fit(X, y), Probe(C=3).fit(1000 * X, y)
    np.testing.assert_allclose(small.decision_function(X), large.decision_function(1000 * X), atol=1e-5)
    with pytest.raises(ValueError, match="X must have the 6 features of training; received 5"):
        small.decision_function(X[:, :5])
    with pytest.raises(ValueError, match="C must be positive; received 0"):
        Probe(C=0).fit(X, y)


def test_the_number_of_neighbours_is_chosen() -> None:
    """Of two clouds that overlap much, one neighbour is worse than many."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    X = np.column_stack([np.ones(200), y + rng.normal(0, 1, 200)])
    found = choose_c(X, y, "neighbours")
    assert found.C is not None and found.C > 1 and found.score > 0.6
