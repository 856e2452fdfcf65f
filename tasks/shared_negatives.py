"""Train word vectors with less work: skip-gram whose negative samples are shared by the windows of a block.

The model and its parameters are those of `tasks.skip_gram`; gensim draws the negative samples of each pair of words
anew. `tasks.window_blocks` has the loops.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from textbench.featurizers._topical.skip_gram import KnownTokens
from textbench.tasks import InputError
from textbench.tasks.skip_gram import training_documents
from textbench.tasks.window_blocks import train_words

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job


def compute(job: "Job") -> None:
    """Train on the documents of the vectors artifact; write `vectors` (npy) and `training` (json)."""
    vectors = job.open("vectors")
    documents, n_terms = training_documents(vectors), len(vectors.json("terms"))
    rows, about = train(documents, n_terms, job.params["params"], job.params["seed"], job.store.workers)
    job.save_array("vectors", rows)
    job.save_json("training", about)


def train(
    documents: list[np.ndarray], n_terms: int, params: Mapping[str, Any], seed: int, n_threads: int = 1
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return float32 (n_terms, vector_size), rows of unit length or zero, and what the training did and cost.

    As `tasks.skip_gram.train`: the same seed gives the same bits, on however many threads.
    Raises InputError when no term occurs `min_count` times.
    """
    counts = np.bincount(np.concatenate([np.zeros(0, dtype=np.int32), *documents]), minlength=n_terms)
    known = np.flatnonzero(counts >= params["min_count"])
    if not len(known):
        raise InputError(
            f"word vectors: no term occurs min_count = {params['min_count']} times, the most frequent "
            f"{int(counts.max())} times; lower min_count"
        )
    words, _, n_trained, seconds = learned(documents, known, n_terms, params, seed, n_threads)
    rows = np.zeros((n_terms, params["vector_size"]), dtype=np.float32)
    rows[known] = words / np.linalg.norm(words, axis=1, keepdims=True)
    n_tokens = int(counts.sum())
    return rows, {
        "n_terms": n_terms,
        "n_known_terms": len(known),
        "n_tokens": n_tokens,
        "epochs": params["epochs"],
        "seconds": seconds,
        "words_per_second": n_tokens * params["epochs"] / seconds,
        "trained_words_per_second": n_trained / seconds,
    }


def learned(
    documents: list[np.ndarray],
    known: np.ndarray,
    n_terms: int,
    params: Mapping[str, Any],
    seed: int,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Return words and outputs of the terms `known`, how many tokens were not left out, and the training's seconds.

    Words and outputs are float32 (len(known), vector_size), as long as the training left them.
    """
    reading = KnownTokens.of(documents, known, n_terms, params["sample"])
    rng = np.random.default_rng(seed)
    words = rng.uniform(-1, 1, (len(known), params["vector_size"])).astype(np.float32)
    words /= params["vector_size"]
    outputs = np.zeros_like(words)
    state = int(rng.integers(2**63))
    settings = params["window"], params["negative"]
    train_words(reading, words, outputs, *settings, 0, state)  # compile
    started = time.perf_counter()
    n_trained = train_words(reading, words, outputs, *settings, params["epochs"], state, n_threads)
    return words, outputs, n_trained, time.perf_counter() - started
