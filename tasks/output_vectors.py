"""Train word vectors and keep what else the training learns: output vectors, and how long the vectors were.

The vectors are to the bit those of the same trainer without (`tasks.skip_gram`, `tasks.shared_negatives`). These are
functions of their own, so that the keys of word vectors without outputs stay as they are.
"""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError
from textbench.tasks.skip_gram import LONGEST_SEQUENCE, training_documents

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from textbench.tasks.storage.store import Job

# Of each known term: its number, its vector, and its output vector.
Learned = "tuple[np.ndarray, np.ndarray, np.ndarray]"


def compute_gensim(job: "Job") -> None:
    """Train by gensim on the documents of the vectors artifact; write `vectors`, `outputs` and `norms` (npy)."""
    _write(job, by_gensim)


def compute_shared(job: "Job") -> None:
    """Train with shared negative samples on the documents of the vectors artifact; write as `compute_gensim`."""
    _write(job, functools.partial(by_shared_negatives, n_threads=job.store.workers))


def _write(job: "Job", trainer: "Callable[..., Any]") -> None:
    vectors = job.open("vectors")
    rows, outputs, norms = train(
        trainer, training_documents(vectors), vectors.json("terms"), job.params["params"], job.params["seed"]
    )
    job.save_array("vectors", rows)
    job.save_array("outputs", outputs)
    job.save_array("norms", norms)


def train(
    trainer: "Callable[..., Any]",
    documents: "list[np.ndarray]",
    terms: list[str],
    params: Mapping[str, Any],
    seed: int,
) -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    """Return vectors and outputs, float32 (n_terms, vector_size), and the vectors' lengths, float32 (n_terms,).

    Vectors have unit length; all three are zero for a term that occurs fewer than `min_count` times. Raises InputError
    when there is no other.
    """
    import numpy as np

    counts = np.bincount(np.concatenate(documents), minlength=len(terms)) if documents else np.zeros(1)
    known = np.flatnonzero(counts >= params["min_count"])
    if not len(known):
        raise InputError(
            f"word vectors: no term occurs min_count = {params['min_count']} times, the most frequent "
            f"{int(counts.max())} times; lower min_count"
        )
    places, words, units, contexts = trainer(documents, terms, params, seed, known, counts[known])
    rows, outputs = (np.zeros((len(terms), params["vector_size"]), dtype=np.float32) for _ in "12")
    norms = np.zeros(len(terms), dtype=np.float32)
    rows[places], outputs[places], norms[places] = units, contexts, np.linalg.norm(words, axis=1)
    return rows, outputs, norms


def by_gensim(
    documents: "list[np.ndarray]",
    terms: list[str],
    params: Mapping[str, Any],
    seed: int,
    known: "np.ndarray",
    counts: "np.ndarray",
) -> Any:
    """Return the numbers of the known terms, their vectors, these of unit length, and their output vectors."""
    from gensim.models import Word2Vec

    sequences = [
        [terms[i] for i in document[start : start + LONGEST_SEQUENCE].tolist()]
        for document in documents
        for start in range(0, len(document), LONGEST_SEQUENCE)
    ]
    model = Word2Vec(sequences, sg=1, seed=seed, **params)
    place = {term: i for i, term in enumerate(terms)}
    places = [place[term] for term in model.wv.index_to_key]
    return places, model.wv.vectors, model.wv.get_normed_vectors(), model.syn1neg


def by_shared_negatives(
    documents: "list[np.ndarray]",
    terms: list[str],
    params: Mapping[str, Any],
    seed: int,
    known: "np.ndarray",
    counts: "np.ndarray",
    n_threads: int = 1,
) -> Any:
    """Return what `by_gensim` does."""
    import numpy as np

    from textbench.tasks.shared_negatives import learned

    words, outputs, _, _ = learned(documents, known, len(terms), params, seed, n_threads)
    return known, words, words / np.linalg.norm(words, axis=1, keepdims=True), outputs


TRAINERS = {"gensim": by_gensim, "shared": by_shared_negatives}
