"""The stacked denoising autoencoder against central differences, expectations over all masks, and mSDA."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from textbench.featurizers import sda
from textbench.featurizers.msda import reconstruction
from textbench.featurizers.sda import Autoencoder, gradients

RNG = np.random.default_rng(8)
COUNTS = sp.csr_matrix(RNG.poisson(0.3 + 2.0 * (np.arange(20) % 4 == (np.arange(80) % 4)[:, None])))


def model(d: int = 6, n_hidden: int = 4) -> Autoencoder:
    rng = np.random.default_rng(0)
    return Autoencoder(rng.normal(size=(d, n_hidden)), rng.normal(size=n_hidden), rng.normal(size=d))


def loss(one: Autoencoder, x: np.ndarray, mask: np.ndarray, activation: str) -> float:
    """The cross-entropy as a textbook has it: the mean over documents."""
    a = (x * mask) @ one.W + one.b
    h = np.where(a > 0, a, 0) if activation == "relu" else 1 / (1 + np.exp(-a))
    p = 1 / (1 + np.exp(-(h @ one.W.T + one.c)))
    return float(-(x * np.log(p) + (1 - x) * np.log(1 - p)).sum(axis=1).mean())


@pytest.mark.parametrize("activation", sda.ACTIVATIONS)
def test_gradients_by_central_differences(activation: str) -> None:
    one, x, mask = model(), RNG.random((5, 6)), RNG.random((5, 6)) < 0.6
    found = gradients(one, x, mask, activation)
    for k, part in enumerate(one):
        for place in np.ndindex(part.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [array.copy() for array in one]
                moved[k][place] += step
                ends.append(loss(Autoencoder(*moved), x, mask, activation))
            assert found[k][place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)


def test_adagrad_by_hand() -> None:
    one, squares = model(1, 1), Autoencoder(*(np.zeros_like(part) for part in model(1, 1)))
    start = one.W.copy()
    for slope in (3.0, -4.0):
        sda._descend(one, squares, Autoencoder(*(np.full_like(part, slope) for part in one)), 0.1)
    np.testing.assert_allclose(one.W, start - 0.1 * (3 / 3) + 0.1 * (4 / 5), rtol=1e-8)


def test_a_document_is_encoded_as_its_corrupted_copies_are_on_average() -> None:
    """Before the activation, over the masks of a document of five terms; sigmoid(a) gives a back."""
    method = sda.build(n_hidden=3, n_layers=1, noise=0.7, activation="sigmoid", n_epochs=1, random_state=0)
    method.fit(COUNTS)
    x = np.zeros(20)
    x[[1, 4, 5, 9, 16]] = 1
    W, b = method.weights_[0][np.argsort(method.inputs_)], method.biases_[0]
    expected = np.zeros(3)
    for mask in itertools.product((0, 1), repeat=5):
        kept = np.flatnonzero(x)[np.array(mask, dtype=bool)]
        expected += 0.3 ** sum(mask) * 0.7 ** (5 - sum(mask)) * (W[kept].sum(axis=0) + b)
    code = method.transform(sp.csr_matrix(x)).toarray()[0, 20:]
    np.testing.assert_allclose(code, expit(expected) / method.largest_[0], rtol=1e-5)


def test_without_hidden_units_squared_errors_have_msda_s_map_as_minimum() -> None:
    """The gradient of the mean squared error over all masks is zero there."""
    x, noise = (RNG.random((9, 4)) < 0.5).astype(float), 0.4
    found = reconstruction(sp.csr_matrix(x), sp.csr_matrix(x), noise, 0.0)
    slope, bias_slope = np.zeros((4, 4)), np.zeros(4)
    for mask in itertools.product((0, 1), repeat=4):
        weight = (1 - noise) ** sum(mask) * noise ** (4 - sum(mask))
        kept = x * np.array(mask)
        errors = kept @ found.weights.T + found.bias - x
        slope += weight * errors.T @ kept
        bias_slope += weight * errors.sum(axis=0)
    np.testing.assert_allclose(slope, 0, atol=1e-12)
    np.testing.assert_allclose(bias_slope, 0, atol=1e-12)


def test_it_restores_what_the_means_do_not() -> None:
    x = (COUNTS > 0).astype(float).toarray()
    method = sda.build(n_hidden=10, n_layers=1, noise=0.3, n_epochs=60, random_state=0)
    W, b, c = method.fit(COUNTS)._learn(method._input(COUNTS), 0, np.random.default_rng(0))
    order, kept = method.inputs_, np.ones_like(x)
    means = x.mean(axis=0)
    blind = -(x * np.log(means) + (1 - x) * np.log(1 - means)).sum(axis=1).mean()
    found = loss(Autoencoder(*(part.astype(float) for part in (W, b, c))), x[:, order], kept, "relu")
    assert found < 0.8 * blind


def test_features_are_the_input_and_scaled_codes() -> None:
    method = sda.build(n_features=15, n_hidden=6, n_layers=2, n_epochs=2, random_state=1)
    found = method.fit_transform(COUNTS).toarray()
    assert found.shape == (80, 15 + 12)
    np.testing.assert_array_equal(found[:, :15], COUNTS.toarray()[:, method.inputs_] > 0)
    np.testing.assert_allclose([found[:, 15:21].max(), found[:, 21:].max()], 1.0, rtol=1e-6)
    assert method.get_feature_names_out()[-1] == "h2_5"
    again = np.maximum(found[:, 15:21] @ method.weights_[1] * 0.7 + method.biases_[1], 0)
    np.testing.assert_allclose(found[:, 21:], again / method.largest_[1], rtol=1e-4, atol=1e-6)


def test_a_rate_that_diverges_is_named() -> None:
    with pytest.raises(ValueError, match=r"layer 1 diverged in epoch \d+ with learning_rate 1e\+30"):
        sda.build(learning_rate=1e30, random_state=0).fit(COUNTS)


@pytest.mark.parametrize(
    ("name", "value"), [("noise", 1.0), ("activation", "tanh"), ("n_layers", 0), ("learning_rate", 0.0)]
)
def test_the_refused_value_is_named(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*: got {value!r}"):
        sda.build(**{name: value}).fit(COUNTS)
