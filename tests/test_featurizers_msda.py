"""mSDA against enumeration of all masks, explicit corruption, its system as printed, dCoT, and its limits."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from textbench.featurizers import dcot, msda
from textbench.featurizers._dcot.solvers import FirstLayer, LayerMap, deeper_layer
from textbench.featurizers.msda import reconstruction

RNG = np.random.default_rng(3)
X = (RNG.random((15, 6)) < 0.5).astype(float)
COUNTS = sp.csr_matrix(RNG.poisson(0.4, size=(40, 30)).astype(np.int32))


def with_bias(x: np.ndarray) -> np.ndarray:
    return np.hstack([x, np.ones((len(x), 1))])


def together(found: LayerMap) -> np.ndarray:
    """The bias beside the weights: (r, d + 1)."""
    return np.hstack([found.weights, found.bias[:, None]])


def layer(noise: float, ridge: float = 0.0, targets: np.ndarray = X, x: np.ndarray = X) -> np.ndarray:
    return together(reconstruction(sp.csr_matrix(x), sp.csr_matrix(targets), noise, ridge))


@pytest.mark.parametrize("noise", [0.3, 0.8])
def test_all_masks(noise: float) -> None:
    """Least squares over the documents under each of the 2^d masks, weighted by its probability."""
    P, Q = np.zeros((6, 7)), np.zeros((7, 7))
    for mask in itertools.product((0, 1), repeat=6):
        weight = noise ** (6 - sum(mask)) * (1 - noise) ** sum(mask)
        corrupted = with_bias(X * np.array(mask))
        Q += weight * corrupted.T @ corrupted
        P += weight * X.T @ corrupted
    np.testing.assert_allclose(layer(noise), np.linalg.solve(Q, P.T).T, atol=1e-12)


def test_explicit_corruption_comes_near() -> None:
    """Of m corrupted copies the error falls as 1 / sqrt(m)."""
    errors = []
    for m in (100, 10_000):
        copies = np.tile(X, (m, 1))
        corrupted = with_bias(copies * (np.random.default_rng(1).random(copies.shape) < 0.5))
        found = np.linalg.lstsq(corrupted, copies, rcond=None)[0].T
        errors.append(np.linalg.norm(found - layer(0.5)) / np.linalg.norm(layer(0.5)))
    assert errors[0] < 0.2
    assert errors[1] < errors[0] / 3


def test_the_system_as_printed() -> None:
    """Marginalized over S and q, the bias last and without ridge."""
    q, ridge = np.append(np.full(6, 0.2), 1.0), 0.7
    S = with_bias(X).T @ with_bias(X)
    Q = S * np.outer(q, q)
    np.fill_diagonal(Q, np.diag(S) * q + np.append(np.full(6, ridge), 0.0))
    np.testing.assert_allclose(layer(0.8, ridge), (S[:6] * q) @ np.linalg.inv(Q), atol=1e-12)


def test_without_noise_it_is_the_identity() -> None:
    np.testing.assert_allclose(layer(0.0), np.eye(6, 7), atol=1e-10)


def test_with_all_terms_as_targets_a_layer_is_dcot_s() -> None:
    found = layer(0.6, 0.3)
    first = FirstLayer(sp.csr_matrix(X), np.arange(6))
    for solver in ("primal", "dual"):
        np.testing.assert_allclose(together(first.solve(0.6, 0.3, solver, 1e-9, 100)), found, atol=1e-12)
    np.testing.assert_allclose(together(deeper_layer(X, 0.6, 0.3)), found, atol=1e-12)


def test_with_all_terms_as_targets_the_features_are_dcot_s() -> None:
    binary = (COUNTS > 0).astype(np.int32)
    order = np.argsort(-COUNTS.sum(axis=0).A1, kind="stable")
    ours = msda.build(n_layers=2, noise=0.7, ridge=0.5).fit_transform(COUNTS).toarray()
    own = dcot.build(n_prototypes=30, n_layers=2, noise=0.7, ridge=0.5, solver="dual")
    theirs = own.fit_transform(binary).toarray()
    np.testing.assert_allclose(ours[:, :30], theirs[:, order], atol=1e-6)
    for k in (1, 2):
        names = list(own.get_feature_names_out())
        columns = [names.index(f"z{k}_x{term}") for term in order]
        np.testing.assert_allclose(ours[:, 30 * k : 30 * (k + 1)], theirs[:, columns], atol=1e-5)


def test_blocks_are_maps_of_their_own_and_their_mean_is_taken() -> None:
    method = msda.build(n_targets=8, n_layers=1, random_state=4, ridge=0.1).fit(COUNTS)
    W, b, x = method.weights_[0], method.biases_[0], (COUNTS[:, method.inputs_] > 0).astype(np.float64)
    blocks = np.array_split(np.random.default_rng(4).permutation(30), 4)
    assert max(map(len, blocks)) == 8
    parts = [reconstruction(sp.csr_matrix(x[:, block]), x[:, :8].tocsr(), 0.8, 0.1) for block in blocks]
    for block, part in zip(blocks, parts, strict=True):
        np.testing.assert_allclose(W[:, block], part.weights / 4, atol=1e-6)
    np.testing.assert_allclose(b, np.mean([part.bias for part in parts], axis=0), atol=1e-6)


def test_a_term_more_than_targets_needs_blocks_and_one_block_is_the_dense_mode() -> None:
    dense, again = (msda.build(n_targets=30, random_state=s).fit(COUNTS) for s in (0, 1))
    np.testing.assert_array_equal(dense.weights_[0], again.weights_[0])  # nothing was parted
    first, second = (msda.build(n_targets=29, random_state=s).fit(COUNTS) for s in (0, 1))
    assert not np.array_equal(first.weights_[0], second.weights_[0])


def test_a_term_that_no_document_has_is_left_alone() -> None:
    x = X.copy()
    x[:, 2] = 0
    for ridge in (0.0, 0.1):
        found = layer(0.5, ridge, targets=x, x=x)
        assert not found[2].any() and not found[:, 2].any()
    method = msda.build(n_targets=5).fit(sp.csr_matrix(x))
    assert 2 not in method.inputs_


def test_features_are_the_input_and_each_layer_squashed() -> None:
    method = msda.build(n_features=20, n_targets=10, n_layers=2, binary=False, random_state=0)
    found = method.fit_transform(COUNTS).toarray()
    x = COUNTS.toarray()[:, method.inputs_]
    h1 = np.tanh(x @ method.weights_[0].T + method.biases_[0])
    h2 = np.tanh(h1 @ method.weights_[1].T + method.biases_[1])
    np.testing.assert_allclose(found, np.hstack([x, h1, h2]), atol=1e-6)
    names = method.get_feature_names_out()
    assert names[20] == f"h1_x{method.inputs_[0]}" and names[-1] == f"h2_x{method.inputs_[9]}"
    largest = np.argsort(-COUNTS.sum(axis=0).A1, kind="stable")[:20]
    assert method.inputs_.tolist() == largest.tolist()


@pytest.mark.parametrize(
    ("name", "value"), [("noise", 1.0), ("noise", 0.0), ("n_targets", 8001), ("n_layers", 0), ("ridge", -1)]
)
def test_the_refused_value_is_named(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*: got {value!r}"):
        msda.build(**{name: value}).fit(COUNTS)
