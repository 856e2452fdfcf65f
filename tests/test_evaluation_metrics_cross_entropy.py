"""Weights as bits: a library of three documents worked by hand, and what information theory says of any."""

import math

import numpy as np
import pytest

from textbench.evaluation.metrics.cross_entropy import bits
from textbench.featurizers.tfidf_log2 import TfIdfLog2

# Three documents over the terms (rain, sun): "sun", "rain", "sun rain". N_k = 2 of N = 3 for both, so Q = 2/3 each.
DF = np.array([2, 2])
LOG = math.log2(3 / 2)


def test_hand_worked_three_documents() -> None:
    single = bits(np.array([0, 1]), DF, 3)
    assert single.terms.tolist() == [1]
    assert single.p.tolist() == [1.0] and single.q.tolist() == [2 / 3]
    assert single.weights == pytest.approx([0.5849625])  # equation (3): 1 * log2(3/2)
    assert single.cross_entropy == pytest.approx(LOG)
    assert single.entropy == 0.0
    assert single.divergence == pytest.approx(0.5849625)
    assert single.divergence_normalised == pytest.approx(1.0)  # Q / (4/3) = 1/2: one bit

    both = bits(np.array([1, 1]), DF, 3)
    assert both.weights == pytest.approx([LOG / 2, LOG / 2])
    assert both.entropy == pytest.approx(1.0)
    assert both.divergence == pytest.approx(-0.4150375)  # negative, for Q sums to 4/3
    assert both.divergence_normalised == pytest.approx(0.0, abs=1e-12)  # the library's own distribution


def test_the_weights_are_the_features_of_tfidf_log2() -> None:
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    counts = rng.poisson(0.4, (30, 20))
    counts[:, 0] += 1
    features = TfIdfLog2().fit_transform(sp.csr_matrix(counts)).toarray()
    frequency = (counts > 0).sum(axis=0)
    for document, row in zip(counts, features, strict=True):
        found = bits(document, frequency, len(counts))
        assert found.weights == pytest.approx(row[found.terms], rel=1e-6)
        assert found.cross_entropy == pytest.approx(row.sum(), rel=1e-5)


def test_with_q_normalised_the_divergence_is_that_of_two_distributions() -> None:
    from scipy.special import rel_entr

    rng = np.random.default_rng(1)
    counts = rng.poisson(1.0, 50)
    frequency = rng.integers(1, 100, 50)
    p, q = counts / counts.sum(), frequency / frequency.sum()
    expected = rel_entr(p, q).sum() / math.log(2)
    found = bits(counts, frequency, 100)
    assert found.divergence_normalised == pytest.approx(expected)
    assert expected >= 0


def test_terms_unknown_to_the_library_are_left_out() -> None:
    assert bits(np.array([1, 5]), np.array([1, 0]), 4).p.tolist() == [1.0]
    with pytest.raises(ValueError, match="at least one term of the library"):
        bits(np.array([0, 5]), np.array([1, 0]), 4)
    with pytest.raises(ValueError, match=r"one length; received \(2,\) and \(3,\)"):
        bits(np.array([0, 5]), np.array([1, 0, 1]), 4)
