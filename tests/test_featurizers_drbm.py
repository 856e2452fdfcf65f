"""The discriminative RBM against sums over all hidden states, central differences, and exact expectations."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax, logsumexp

from textbench.featurizers import drbm
from textbench.featurizers._drbm import Machine

N_WORDS, N_HIDDEN, N_CLASSES = 5, 6, 3


def machine(seed: int = 0, n_hidden: int = N_HIDDEN, scale: float = 1.0) -> Machine:
    rng = np.random.default_rng(seed)
    shapes = ((N_WORDS, n_hidden), (N_CLASSES, n_hidden), (N_WORDS,), (n_hidden,), (N_CLASSES,))
    return Machine(*(scale * rng.normal(size=shape) for shape in shapes))


def every(n: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=n)), dtype=float)


def summed_out(m: Machine, X: np.ndarray) -> np.ndarray:
    """log sum_h exp(-E(y, x, h)) over all hidden states, (n, C)."""
    hidden = every(len(m.c))
    energies = X @ m.W @ hidden.T + (X @ m.b)[:, None] + hidden @ m.c
    return np.stack(
        [logsumexp(energies + m.d[y] + hidden @ m.U[y], axis=1) for y in range(N_CLASSES)], axis=1
    )


def joint(m: Machine) -> np.ndarray:
    """log p(x, y) by enumeration, (2^D, C)."""
    logs = summed_out(m, every(N_WORDS))
    return logs - logsumexp(logs)


def differences(m: Machine, value: Callable[[Machine], float]) -> Machine:
    """The gradient of a value of a machine by central differences, as a machine."""
    found = {}
    for name, array in vars(m).items():
        gradient = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = array.copy()
                moved[place] += step
                ends.append(value(replace(m, **{name: moved})))
            gradient[place] = (ends[0] - ends[1]) / 2e-5
        found[name] = gradient
    return Machine(**found)


def moved(m: Machine, climb: Callable[[Machine], None]) -> dict[str, np.ndarray]:
    """What a step of length 1 adds to each part of a machine."""
    after = m.copy()
    climb(after)
    return {name: array - getattr(m, name) for name, array in vars(after).items()}


def test_free_energies_sum_over_all_hidden_states() -> None:
    m = machine()
    found = m.free_energies(sp.csr_matrix(every(N_WORDS)))
    wanted = summed_out(m, every(N_WORDS)) - (every(N_WORDS) @ m.b)[:, None]
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_many_units_far_from_zero_keep_their_softplus() -> None:
    m = machine(n_hidden=1100, scale=30.0)
    x = np.array([1.0, 0, 1, 0, 1])
    wanted = m.d + np.logaddexp(0, m.c + x @ m.W + m.U).sum(axis=1)
    np.testing.assert_allclose(m.free_energies(sp.csr_matrix(x))[0], wanted, rtol=1e-13)


def test_the_step_of_a_document_is_the_gradient_of_its_log_probability() -> None:
    m, x, y = machine(), np.array([1.0, 0, 1, 1, 0]), 2
    found = moved(m, lambda other: other.ascend(sp.csr_matrix(x), np.array([y]), 1.0))
    wanted = differences(m, lambda other: float(log_softmax(summed_out(other, x[None])[0])[y]))
    for name, gradient in vars(wanted).items():
        np.testing.assert_allclose(found[name], gradient, atol=1e-8)


def test_documents_are_climbed_one_after_the_other() -> None:
    X, y = sp.csr_matrix(every(N_WORDS)[:7]), np.array([0, 1, 2, 0, 1, 2, 0])
    together, alone = machine(), machine()
    together.ascend(X, y, 0.3)
    for i in range(7):
        alone.ascend(X[i], y[i : i + 1], 0.3)
    assert all(
        np.array_equal(a, b) for a, b in zip(vars(together).values(), vars(alone).values(), strict=True)
    )


def documents(m: Machine, shares: np.ndarray, n: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Draw documents and classes with given p(x, y)."""
    drawn = np.random.default_rng(1).choice(shares.size, size=n, p=shares.ravel())
    return sp.csr_matrix(every(N_WORDS)[drawn // N_CLASSES]), drawn % N_CLASSES


def test_long_contrastive_divergence_is_the_gradient_of_the_joint_log_probability() -> None:
    m, n = machine(n_hidden=3, scale=0.5), 40_000
    target = np.exp(joint(machine(seed=9, n_hidden=3)))
    X, y = documents(m, target, n)
    found = moved(m, lambda other: other.diverge(X, y, 1.0, np.random.default_rng(2), n_steps=12))
    wanted = differences(m, lambda other: float((target * joint(other)).sum()))
    # Sums over documents of bounded terms: five standard errors.
    for name, gradient in vars(wanted).items():
        np.testing.assert_allclose(found[name] / n, gradient, atol=5 / np.sqrt(n))
        assert np.abs(gradient).max() > 10 / np.sqrt(n)


def test_one_step_leaves_documents_of_the_machine_s_own_where_they_are() -> None:
    m, n = machine(n_hidden=3), 40_000
    X, y = documents(m, np.exp(joint(m)), n)
    found = moved(m, lambda other: other.diverge(X, y, 1.0, np.random.default_rng(2)))
    assert all(np.abs(change / n).max() < 5 / np.sqrt(n) for change in found.values())


def test_without_hidden_units_a_class_has_its_prior() -> None:
    m = machine(n_hidden=0)
    np.testing.assert_array_equal(m.free_energies(sp.csr_matrix(every(N_WORDS))), np.tile(m.d, (32, 1)))
    m.d[:] = np.log([0.6, 0.3, 0.1])
    X, y, rate = sp.csr_matrix(np.ones((10, N_WORDS))), np.repeat([0, 1, 2], [6, 3, 1]), 1e-7
    np.testing.assert_allclose(moved(m, lambda o: o.ascend(X, y, rate))["d"] / rate, 0, atol=1e-5)
    m.d[:] = 0
    found = moved(m, lambda o: o.ascend(X, y, rate))["d"] / rate
    np.testing.assert_allclose(found, [6 - 10 / 3, 3 - 10 / 3, 1 - 10 / 3], atol=1e-5)


def test_units_that_no_class_is_tied_to_say_nothing() -> None:
    m = machine()
    m.U[:] = 0
    found = log_softmax(m.free_energies(sp.csr_matrix(every(N_WORDS))), axis=1)
    np.testing.assert_allclose(found, np.tile(log_softmax(m.d), (32, 1)), atol=1e-13)


def test_hidden_units_have_no_order() -> None:
    m, order = machine(), [3, 1, 5, 0, 4, 2]
    other = Machine(m.W[:, order], m.U[:, order], m.b, m.c[order], m.d)
    X = sp.csr_matrix(every(N_WORDS))
    np.testing.assert_allclose(other.free_energies(X), m.free_energies(X), rtol=1e-13)


def made(n: int = 120) -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(4)
    y = np.arange(n) % 3
    return sp.csr_matrix(rng.poisson(0.2 + 2.0 * (np.arange(12) % 3 == y[:, None]))), y


def test_only_the_presence_of_frequent_terms_is_read() -> None:
    X, y = made()
    method = drbm.build(n_features=6, max_epochs=5, random_state=0).fit(X, y)
    assert set(method.terms_) == set(np.argsort(-X.toarray().sum(axis=0), kind="stable")[:6])
    present = (X > 0).multiply(3).tocsr()
    np.testing.assert_array_equal(method.decision_function(present), method.decision_function(X))


def test_the_best_epoch_is_kept() -> None:
    X, y = made()
    # Half of it can be learned by heart alone.
    y = np.where(np.arange(len(y)) % 2, y, np.random.default_rng(5).permutation(y))
    options = {"random_state": 3, "learning_rate": 0.05, "n_hidden": 20}
    long = drbm.build(max_epochs=60, patience=7, **options).fit(X, y)
    (best,) = long.n_epochs_
    assert 1 < best < 60
    short = drbm.build(max_epochs=int(best), held_out=0.15, **options).fit(X, y)
    np.testing.assert_array_equal(short.decision_function(X), long.decision_function(X))


def test_only_the_hybrid_learns_what_words_occur() -> None:
    X, y = made()
    options = {"random_state": 0, "max_epochs": 3}
    plain, hybrid = (drbm.build(generative=g, **options).fit(X, y) for g in (0.0, 1.0))
    n_with = (X[:, plain.terms_] > 0).sum(axis=0).A1
    wanted = np.log((n_with + 0.5) / (len(y) - n_with + 0.5))
    np.testing.assert_allclose(plain.machines_[0].b, wanted, rtol=1e-5)
    assert np.abs(hybrid.machines_[0].b - wanted).max() > 0.01


def test_another_seed_is_another_machine() -> None:
    X, y = made()
    first, second = (drbm.build(max_epochs=2, random_state=s).fit(X, y).decision_function(X) for s in (0, 1))
    assert not np.array_equal(first, second)


def test_a_rate_that_diverges_is_named() -> None:
    X, y = made()
    with pytest.raises(ValueError, match=r"learning diverged in epoch \d+ with learning_rate 1e\+38"):
        drbm.build(learning_rate=1e38, generative=1.0, random_state=0).fit(X, y)


@pytest.mark.parametrize("name", drbm.ACCEPTS)
def test_the_refused_value_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*: got -1"):
        drbm.build(**{name: -1}).fit(*made())


def test_nothing_held_out_trains_to_the_end() -> None:
    X, y = made(6)
    assert drbm.build(max_epochs=4, random_state=0, held_out=0.0).fit(X, y).n_epochs_ == [4]
