"""Skip-gram by blocks of windows: the literal sum over pairs, its limit of one window, the same bits on two threads."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from textbench.featurizers._topical.skip_gram import FIRST_RATE, LAST_RATE, KnownTokens, train_rows
from textbench.tasks.rendezvous import meet
from textbench.tasks.window_blocks import train_words

RNG = np.random.default_rng(4)
N_TERMS = 12
DOCUMENTS = [RNG.integers(N_TERMS, size=n).astype(np.int32) for n in (23, 0, 1, 7, 40, 2)]
READING = KnownTokens.of(DOCUMENTS, np.arange(N_TERMS), N_TERMS, 0.05)
WINDOW, NEGATIVE, N_EPOCHS, SEED = 3, 4, 2, 11


def start(size: int = 5, scale: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(size)
    return tuple(rng.normal(0, scale, (2, N_TERMS, size)).astype(np.float32))  # type: ignore[return-value]


class SplitMix64:
    """The stream of random numbers, by whole numbers of Python."""

    def __init__(self, state: int) -> None:
        self.state = state

    def __call__(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        mixed = self.state
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
        return mixed ^ (mixed >> 31)


def by_pairs(words: np.ndarray, outputs: np.ndarray, together: int) -> tuple[np.ndarray, np.ndarray]:
    """Each pair of a word and a word around by itself, from the values before the block, in double precision."""
    words, outputs, draw, n_seen = words.astype(float), outputs.astype(float), SplitMix64(SEED), 0
    for _ in range(N_EPOCHS):
        for begin, end in pairwise(READING.offsets):
            rate = FIRST_RATE + (LAST_RATE - FIRST_RATE) * n_seen / (N_EPOCHS * len(READING.tokens))
            n_seen += end - begin
            read = [t for t in READING.tokens[begin:end] if draw() / 2**64 < READING.kept[t]]
            for first in range(0, len(read), together):
                places = range(first, min(first + together, len(read)))
                reaches = [WINDOW - draw() % WINDOW for _ in places]
                samples = [READING.table[draw() % len(READING.table)] for _ in range(NEGATIVE)]
                to_words, to_outputs = np.zeros_like(words), np.zeros_like(outputs)
                for place, reach in zip(places, reaches, strict=True):
                    for other in range(max(0, place - reach), min(len(read), place + reach + 1)):
                        told = [(read[place], 1.0), *((s, 0.0) for s in samples if s != read[place])]
                        for output, label in told if other != place else []:
                            score = words[read[other]] @ outputs[output]
                            slope = rate * (
                                label - np.where(abs(score) > 6, score > 0, 1 / (1 + np.exp(-score)))
                            )
                            to_words[read[other]] += slope * outputs[output]
                            to_outputs[output] += slope * words[read[other]]
                words, outputs = words + to_words, outputs + to_outputs
    return words, outputs


@pytest.mark.parametrize("together", [1, 3, 8])
@pytest.mark.parametrize(("size", "scale"), [(5, 0.5), (8, 2.0), (1, 0.5)])
def test_a_block_is_the_sum_over_its_pairs(together: int, size: int, scale: float) -> None:
    words, outputs = start(size, scale)
    expected = by_pairs(words, outputs, together)
    n_trained = train_words(READING, words, outputs, WINDOW, NEGATIVE, N_EPOCHS, SEED, together=together)
    np.testing.assert_allclose(words, expected[0], atol=2e-6)
    np.testing.assert_allclose(outputs, expected[1], atol=2e-6)
    assert 0 < n_trained < N_EPOCHS * len(READING.tokens)


def test_blocks_of_one_window_are_trained_as_rows_are() -> None:
    """The loops of the topical methods draw the same numbers; up to four words are learned from at once by both."""
    (words, outputs), (rows, contexts) = start(6), start(6)
    train_words(READING, words, outputs, WINDOW, 3, N_EPOCHS, SEED, together=1)
    state = np.array([SEED], np.uint64)
    train_rows(READING, READING.tokens[:, None], rows, contexts, WINDOW, 3, N_EPOCHS, state)
    np.testing.assert_allclose(words, rows, atol=1e-6)
    np.testing.assert_allclose(outputs, contexts, atol=1e-6)


@pytest.mark.parametrize("size", [1, 7, 200])
def test_two_threads_make_the_bits_of_one(size: int) -> None:
    made = []
    for n_threads in (1, 2, 3):
        words, outputs = start(size)
        n_trained = train_words(READING, words, outputs, 10, 10, 20, SEED, n_threads)
        made.append((words.tobytes(), outputs.tobytes(), n_trained))
    assert made[0] == made[1] == made[2]
    assert made[0][0] != start(size)[0].tobytes()


def test_who_meets_sees_what_the_other_wrote_before() -> None:
    arrived, written = np.zeros((2, 8), np.int64), np.zeros((2, 2), np.int64)

    def walk(mine: int) -> list[int]:
        seen = []
        for number in range(1, 2001):
            written[number % 2, mine] = number
            meet(arrived, mine, number)
            seen.append(int(written[number % 2, 1 - mine]))
        return seen

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(walk, (0, 1))) == [list(range(1, 2001))] * 2
