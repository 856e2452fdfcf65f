"""Train word vectors with less work: skip-gram whose negative samples are shared by the words of a window.

The model and its parameters are those of `tasks.skip_gram`; gensim draws the negative samples of each pair of words
anew. Here all words of a window predict the one in its middle against the same samples, so that each of these is read
from memory once a window; and a window's changes are made together when all its slopes are known.

Source: S. Ji, N. Satish, S. Li and P. Dubey, "Parallelizing word2vec in shared and distributed memory", IEEE
Transactions on Parallel and Distributed Systems 30 (2019), section 3.1; T. Mikolov, I. Sutskever, K. Chen, G. Corrado
and J. Dean, "Distributed representations of words and phrases and their compositionality", NIPS 2013, section 2.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from textbench.featurizers._topical.skip_gram import _train, kept_share, sample_table
from textbench.tasks import InputError
from textbench.tasks.skip_gram import training_documents

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job

UNKNOWN = -1


def compute(job: "Job") -> None:
    """Train on the documents of the vectors artifact; write `vectors` (npy) and `training` (json)."""
    vectors = job.open("vectors")
    terms = vectors.json("terms")
    rows, about = train(training_documents(vectors), len(terms), job.params["params"], job.params["seed"])
    job.save_array("vectors", rows)
    job.save_json("training", about)


def train(
    documents: list[np.ndarray], n_terms: int, params: Mapping[str, Any], seed: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return float32 (n_terms, vector_size), rows of unit length or zero, and what the training did and cost.

    As `tasks.skip_gram.train`, on one thread: the same seed gives the same bits.
    Raises InputError when no term occurs `min_count` times.
    """
    tokens = np.concatenate([np.zeros(0, dtype=np.int32), *documents])
    counts = np.bincount(tokens, minlength=n_terms)
    known = np.flatnonzero(counts >= params["min_count"])
    if not len(known):
        raise InputError(
            f"word vectors: no term occurs min_count = {params['min_count']} times, the most frequent "
            f"{int(counts.max())} times; lower min_count"
        )
    number = np.full(n_terms, UNKNOWN, dtype=np.int32)
    number[known] = np.arange(len(known))
    tokens = number[tokens]
    offsets = np.concatenate([[0], np.cumsum([len(document) for document in documents])])
    # Documents of known terms alone: a window reaches across what is left out, as gensim's does.
    offsets = np.concatenate([[0], np.cumsum(tokens != UNKNOWN)])[offsets]
    tokens = tokens[tokens != UNKNOWN]
    counts = counts[known]
    rng = np.random.default_rng(seed)
    words = rng.uniform(-1, 1, (len(known), params["vector_size"])).astype(np.float32)
    words /= params["vector_size"]
    outputs = np.zeros_like(words)
    state = rng.integers(2**63, size=1).astype(np.uint64)
    work = tokens, offsets, kept_share(counts, params["sample"]), sample_table(counts)
    settings = params["window"], params["negative"]
    _train(work, words.copy(), outputs.copy(), settings, 0, state)  # compile
    started = time.perf_counter()
    n_trained = _train(work, words, outputs, settings, params["epochs"], state)
    seconds = time.perf_counter() - started
    rows = np.zeros((n_terms, params["vector_size"]), dtype=np.float32)
    rows[known] = words / np.linalg.norm(words, axis=1, keepdims=True)
    n_tokens = sum(len(document) for document in documents)
    return rows, {
        "n_terms": n_terms,
        "n_known_terms": len(known),
        "n_tokens": n_tokens,
        "epochs": params["epochs"],
        "seconds": seconds,
        "words_per_second": n_tokens * params["epochs"] / seconds,
        "trained_words_per_second": n_trained / seconds,
    }
