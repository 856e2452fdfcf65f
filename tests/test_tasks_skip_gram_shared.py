"""The faster trainer of word vectors: one step against the formula pair by pair, and the same meaning as gensim's."""

import numpy as np
import pytest

from tasks import InputError, skip_gram, skip_gram_shared
from tasks.skip_gram_shared import SHARED_NEGATIVES, WORDS_AT_ONCE

RNG = np.random.default_rng(10)
PARAMS = {
    "vector_size": 12,
    "window": 5,
    "negative": 10,
    "min_count": 5,
    "sample": 1e-2,
    "epochs": 30,
    "workers": 1,
}
SUBJECT = np.arange(40) // 10


def documents(n_documents: int = 80) -> list[np.ndarray]:
    """Four subjects of ten terms each; terms 40 and 41 occur in none."""
    return [(RNG.integers(10, size=50) + 10 * (i % 4)).astype(np.int32) for i in range(n_documents)]


DOCUMENTS = documents()


def test_a_step_is_the_gradient_summed_over_pairs() -> None:
    n_terms, n_dimensions, rate, n_negative = 7, 4, 0.01, 3
    inputs = RNG.normal(size=(n_terms, n_dimensions)).astype(np.float32)
    outputs = RNG.normal(size=(n_terms, n_dimensions)).astype(np.float32)
    text = np.array([1, 2, 3, 2, 4, 5], dtype=np.int32)
    cumulative = np.array([0.0, 0, 0, 0, 0, 0, 1])  # every negative is term 6
    expected_in, expected_out = inputs.astype(float), outputs.astype(float)

    def add(context: int, target: int, label: int, weight: float) -> None:
        score = inputs[context].astype(float) @ outputs[target]
        step = rate * weight * (label - 1 / (1 + np.exp(-score)))
        expected_in[context] += step * outputs[target]
        expected_out[target] += step * inputs[context]

    for place in (2, 3, 4):  # the words to predict; with window 1, each from its two neighbours
        for neighbour in (place - 1, place + 1):
            add(text[neighbour], text[place], 1, 1.0)
            add(text[neighbour], 6, 0, n_negative)  # the shared ones, all the same, weigh as much in sum
    loads = np.zeros(n_terms, dtype=np.float32)
    skip_gram_shared._step(text, 2, 5, inputs, outputs, loads, cumulative, 1, n_negative, rate)
    np.testing.assert_allclose(inputs, expected_in, atol=1e-5)
    np.testing.assert_allclose(outputs, expected_out, atol=1e-5)
    assert not loads.any()


def test_negatives_are_drawn_in_proportion() -> None:
    # With score 0 everywhere, each draw moves its output by the same step, so that the moves count the draws.
    inputs = np.ones((3, 1), dtype=np.float32)
    draws = np.zeros(3)
    text = np.array([0, 0], dtype=np.int32)
    for _ in range(400):
        outputs = np.zeros((3, 1), dtype=np.float32)
        loads, cumulative = np.zeros(3, dtype=np.float32), np.array([0.0, 0.25, 1.0])
        skip_gram_shared._step(text, 0, 1, inputs.copy(), outputs, loads, cumulative, 1, 1, 1.0)
        draws += outputs[:, 0]
    shares = draws[1:] / draws[1:].sum()
    np.testing.assert_allclose(shares, [0.25, 0.75], atol=0.02)
    assert draws[1:].sum() == pytest.approx(400 * -0.5, rel=1e-4)


def test_a_word_repeated_without_end_stays_finite() -> None:
    # As in the encoded pictures that some people posted to news groups.
    repeats = [np.full(2000, 3, dtype=np.int32), np.tile(np.array([5, 6], dtype=np.int32), 1000)]
    rows, _ = skip_gram_shared.train([*DOCUMENTS, *repeats], 42, {**PARAMS, "sample": 0}, seed=0)
    np.testing.assert_allclose(np.linalg.norm(rows[:40], axis=1), 1, atol=1e-6)


def test_a_step_too_long_for_the_curvature_is_shortened() -> None:
    ids = np.array([0, 1, 1], dtype=np.int32)
    others = np.array([[2.0, 0.0], [0.0, 4.0]], dtype=np.float32)
    weights = np.array([[0.1, 0.0], [0.0, 0.5], [1.0, 0.5]], dtype=np.float32)
    loads = np.zeros(2, dtype=np.float32)
    scales = skip_gram_shared._scales(ids, weights, others, loads)
    # Term 0: 0.1 * 4 / 4. Term 1, in both its rows: (0.5 * 16 + 1.0 * 4 + 0.5 * 16) / 4.
    np.testing.assert_allclose(scales, [1, 1 / 5, 1 / 5])
    assert not loads.any()


def test_terms_mean_what_they_mean_to_gensim() -> None:
    ours, _ = skip_gram_shared.train(DOCUMENTS, 42, PARAMS, seed=0)
    theirs, _ = skip_gram.train(DOCUMENTS, [f"t{i}" for i in range(42)], PARAMS, seed=0)
    same = np.equal.outer(SUBJECT, SUBJECT) & ~np.eye(40, dtype=bool)
    other = ~np.equal.outer(SUBJECT, SUBJECT)
    for rows in (ours, theirs):
        cosines = rows[:40] @ rows[:40].T
        assert cosines[same].min() > cosines[other].max()


def test_rows_are_of_unit_length_or_zero_and_costs_are_told() -> None:
    rows, about = skip_gram_shared.train([*DOCUMENTS, np.array([40, 40], dtype=np.int32)], 42, PARAMS, seed=0)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.repeat([1, 0], [40, 2]), atol=1e-6)
    assert (about["n_terms"], about["n_known_terms"], about["n_tokens"]) == (42, 40, 4002)
    assert about["words_per_second"] == pytest.approx(4002 * 30 / about["seconds"])
    assert about["trained_words_per_second"] < about["words_per_second"]


def test_same_seed_same_bits_and_another_seed_others() -> None:
    one, two, other = (skip_gram_shared.train(DOCUMENTS, 42, PARAMS, seed)[0] for seed in (0, 0, 1))
    assert one.tobytes() == two.tobytes() != other.tobytes()


def test_subsampling_is_gensims() -> None:
    from gensim.models import Word2Vec

    counts = np.array([1000, 400, 90, 7])
    model = Word2Vec(vector_size=2, min_count=1, sample=1e-2)
    model.build_vocab_from_freq({f"t{i}": int(count) for i, count in enumerate(counts)})
    theirs = [model.wv.get_vecattr(f"t{i}", "sample_int") / (2**32 - 1) for i in range(4)]
    np.testing.assert_allclose(skip_gram_shared._keep_probabilities(counts, 1e-2), theirs, rtol=1e-6)
    np.testing.assert_array_equal(skip_gram_shared._keep_probabilities(counts, 0), 1)


def test_short_documents_and_long_ones_are_read() -> None:
    texts = [
        np.zeros(0, dtype=np.int32),
        np.array([3], dtype=np.int32),
        np.resize(DOCUMENTS[0], WORDS_AT_ONCE + 1),
    ]
    rows, about = skip_gram_shared.train(texts, 42, {**PARAMS, "min_count": 1, "sample": 0}, seed=0)
    assert np.isfinite(rows).all()
    assert about["n_tokens"] == WORDS_AT_ONCE + 2
    assert SHARED_NEGATIVES > WORDS_AT_ONCE


def test_a_vocabulary_emptied_by_min_count_is_refused() -> None:
    with pytest.raises(InputError, match="no term occurs min_count = 1000 times"):
        skip_gram_shared.train(DOCUMENTS, 42, {**PARAMS, "min_count": 1000}, seed=0)
