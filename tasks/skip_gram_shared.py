"""Train word vectors faster: skip-gram whose negative samples neighbouring words share, so that BLAS does the work.

Source: S. Ji, N. Satish, S. Li and P. Dubey, "Parallelizing word2vec in shared and distributed memory", IEEE TPDS
30(9), 2019, section 3 (minibatches of contexts, shared negatives); objective, subsampling and rates are word2vec's.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from tasks import InputError
from tasks.skip_gram import training_documents

if TYPE_CHECKING:
    from tasks.store import Job

FIRST_RATE, LAST_RATE = 0.025, 0.0001
# So many words in a row are predicted at once, and share so many negatives: a context word is paired with about a
# third of them, so that a shared negative stands for about one of the `negative` samples of a pair.
WORDS_AT_ONCE, SHARED_NEGATIVES = 16, 48


def compute(job: "Job") -> None:
    """Train on the documents of the vectors artifact; write `vectors` (npy) and `training` (json)."""
    vectors = job.open("vectors")
    documents = training_documents(vectors)
    rows, about = train(documents, len(vectors.json("terms")), job.params["params"], job.params["seed"])
    job.save_array("vectors", rows)
    job.save_json("training", about)


def train(
    documents: list[np.ndarray], n_terms: int, params: Mapping[str, Any], seed: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return float32 (n_terms, vector_size), rows of unit length or zero, and what the training did and cost.

    As `tasks.skip_gram.train`, but for the order of updates and who shares a negative sample; a negative may be the
    word to predict. Raises InputError when no term occurs `min_count` times.
    """
    counts = np.bincount(np.concatenate([np.zeros(0, dtype=np.int32), *documents]), minlength=n_terms)
    known = np.flatnonzero(counts >= params["min_count"])
    if not len(known):
        raise InputError(
            f"word vectors: no term occurs min_count = {params['min_count']} times, the most frequent "
            f"{int(counts.max(initial=0))} times; lower min_count"
        )
    number = np.full(n_terms, -1, dtype=np.int32)
    number[known] = np.arange(len(known))
    texts = [number[document] for document in documents]
    texts = [text[text >= 0] for text in texts]
    offsets = np.cumsum([0, *map(len, texts)])
    started = time.perf_counter()
    inputs, n_trained = _train(
        np.concatenate(texts),
        offsets,
        _keep_probabilities(counts[known], params["sample"]),
        np.cumsum(counts[known] ** 0.75) / np.sum(counts[known] ** 0.75),
        params["vector_size"],
        params["window"],
        params["negative"],
        params["epochs"],
        seed,
    )
    seconds = time.perf_counter() - started
    rows = np.zeros((n_terms, params["vector_size"]), dtype=np.float32)
    rows[known] = inputs / np.linalg.norm(inputs, axis=1, keepdims=True)
    about = {
        "n_terms": n_terms,
        "n_known_terms": len(known),
        "n_tokens": int(counts.sum()),
        "epochs": params["epochs"],
        "seconds": seconds,
        "words_per_second": int(counts.sum()) * params["epochs"] / seconds,
        "trained_words_per_second": n_trained / seconds,
    }
    return rows, about


def _keep_probabilities(counts: np.ndarray, sample: float) -> np.ndarray:
    """Return how likely an occurrence of each term is kept (word2vec's code, which is not the paper's formula)."""
    if not sample:
        return np.ones(len(counts))
    share = counts / (sample * counts.sum())
    return np.minimum(1.0, (np.sqrt(share) + 1) / share)


@njit(fastmath=True, error_model="numpy")
def _train(  # type: ignore[no-untyped-def]
    tokens, offsets, keep, cumulative, n_dimensions, window, n_negative, n_epochs, seed
):
    """Return the input vectors, float32 (n_known_terms, n_dimensions), and the number of tokens trained on."""
    np.random.seed(seed)
    n_terms = len(keep)
    inputs = ((np.random.random((n_terms, n_dimensions)) - 0.5) / n_dimensions).astype(np.float32)
    outputs = np.zeros((n_terms, n_dimensions), dtype=np.float32)
    kept = np.empty(len(tokens), dtype=np.int32)
    loads = np.zeros(n_terms, dtype=np.float32)
    total, n_read, n_trained = n_epochs * len(tokens), 0, 0
    for _ in range(n_epochs):
        for document in range(len(offsets) - 1):
            rate = FIRST_RATE - (FIRST_RATE - LAST_RATE) * n_read / total
            n_kept = 0
            for place in range(offsets[document], offsets[document + 1]):
                if np.random.random() < keep[tokens[place]]:
                    kept[n_kept] = tokens[place]
                    n_kept += 1
            for first in range(0, n_kept, WORDS_AT_ONCE):
                last = min(first + WORDS_AT_ONCE, n_kept)
                _step(
                    kept[:n_kept], first, last, inputs, outputs, loads, cumulative, window, n_negative, rate
                )
            n_read += offsets[document + 1] - offsets[document]
            n_trained += n_kept
    return inputs, n_trained


@njit(fastmath=True, error_model="numpy")
def _step(text, first, last, inputs, outputs, loads, cumulative, window, n_negative, rate):  # type: ignore[no-untyped-def]
    """Predict the words `first` to `last` of a text from their contexts, and update both sides."""
    n_words, n_dimensions = last - first, inputs.shape[1]
    begin, end = max(first - window, 0), min(last + window, len(text))
    n_contexts, n_targets = end - begin, n_words + SHARED_NEGATIVES
    targets = np.empty(n_targets, dtype=np.int32)
    targets[:n_words] = text[first:last]
    for place in range(n_words, n_targets):
        targets[place] = np.searchsorted(cumulative, np.random.random() * cumulative[-1])
    A = np.empty((n_contexts, n_dimensions), dtype=np.float32)
    B = np.empty((n_targets, n_dimensions), dtype=np.float32)
    for row in range(n_contexts):
        A[row] = inputs[text[begin + row]]
    for row in range(n_targets):
        B[row] = outputs[targets[row]]
    scores = np.dot(A, B.T)
    steps = np.zeros((n_contexts, n_targets), dtype=np.float32)
    weights = np.zeros((n_contexts, n_targets), dtype=np.float32)
    for word in range(n_words):
        centre = first + word - begin
        reach = np.random.randint(1, window + 1)
        for row in range(max(centre - reach, 0), min(centre + reach + 1, n_contexts)):
            if row != centre:
                steps[row, word] = rate / (1 + np.exp(scores[row, word]))
                weights[row, word] = rate
                weights[row, n_words:] += rate * n_negative / SHARED_NEGATIVES
    for row in range(n_contexts):
        for place in range(n_words, n_targets):
            steps[row, place] = -weights[row, place] / (1 + np.exp(-scores[row, place]))
    contexts = text[begin:end]
    scale_A, scale_B = _scales(contexts, weights, B, loads), _scales(targets, weights.T, A, loads)
    change_A, change_B = np.dot(steps, B), np.dot(steps.T, A)
    for row in range(n_contexts):
        inputs[contexts[row]] += scale_A[row] * change_A[row]
    for row in range(n_targets):
        outputs[targets[row]] += scale_B[row] * change_B[row]


@njit(fastmath=True, error_model="numpy")
def _scales(ids, weights, others, loads):  # type: ignore[no-untyped-def]
    """Return by how much the step of each row of one side is shortened: not at all, but for words that repeat.

    A step summed over pairs overshoots when it is longer than the curvature of the logistic loss allows, at most
    |b|^2 / 4 a pair. word2vec takes a word's pairs one after the other and so never does; a line of the same word
    again and again would drive it to infinity here. `loads` is work space, zero before and after.
    """
    squares = np.empty(len(others), dtype=np.float32)
    for row in range(len(others)):
        squares[row] = np.sum(others[row] * others[row])
    curvatures = np.dot(np.ascontiguousarray(weights), squares) / 4
    for row in range(len(ids)):
        loads[ids[row]] += curvatures[row]
    scales = np.empty(len(ids), dtype=np.float32)
    for row in range(len(ids)):
        scales[row] = 1 / max(1.0, loads[ids[row]])
    for row in range(len(ids)):
        loads[ids[row]] = 0
    return scales
