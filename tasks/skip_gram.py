"""Train word vectors: skip-gram with negative sampling, and a hierarchical softmax if asked, by gensim, on token ids.

Source: T. Mikolov, I. Sutskever, K. Chen, G. Corrado and J. Dean, "Distributed representations of words and phrases
and their compositionality", NIPS 2013, section 2.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError

if TYPE_CHECKING:
    import numpy as np

    from textbench.tasks.storage.store import Artifact, Job

# gensim reads no more than this many tokens of a sequence; the rest of a longer one would be lost without a word.
LONGEST_SEQUENCE = 10_000


def compute(job: "Job") -> None:
    """Train on the documents of the vectors artifact; write `vectors` (npy) and `training` (json)."""
    vectors = job.open("vectors")
    documents = training_documents(vectors)
    rows, about = train(documents, vectors.json("terms"), job.params["params"], job.params["seed"])
    job.save_array("vectors", rows)
    job.save_json("training", about)


def training_documents(vectors: "Artifact") -> "list[np.ndarray]":
    """Return the documents that may be learned from, int32 token ids each: the training part's, transductive: all."""
    import numpy as np

    parts = ["train", "test"] if vectors.meta["recipe"]["params"]["transductive"] else ["train"]
    return [
        document
        for part in parts
        for document in np.split(vectors.array(f"{part}_ids"), vectors.array(f"{part}_offsets")[1:-1])
    ]


def train(
    documents: "list[np.ndarray]", terms: list[str], params: Mapping[str, Any], seed: int
) -> "tuple[np.ndarray, dict[str, Any]]":
    """Return float32 (n_terms, vector_size), rows of unit length or zero, and what the training did and cost.

    A document is one sequence: windows do not stop at the end of a sentence, which token ids do not tell. (SCDV's
    code trains on sentences that keep their stop words, and until May 2017 with `hs` beside the negative samples.)
    Raises InputError when no term occurs `min_count` times.
    """
    import numpy as np
    from gensim.models import Word2Vec

    counts = np.bincount(np.concatenate(documents), minlength=len(terms)) if documents else np.zeros(1)
    n_known = int((counts >= params["min_count"]).sum())
    if not n_known:
        raise InputError(
            f"word vectors: no term occurs min_count = {params['min_count']} times, the most frequent "
            f"{int(counts.max())} times; lower min_count"
        )
    sequences = [
        [terms[i] for i in document[start : start + LONGEST_SEQUENCE].tolist()]
        for document in documents
        for start in range(0, len(document), LONGEST_SEQUENCE)
    ]
    model = Word2Vec(sg=1, seed=seed, **params)
    model.build_vocab(sequences)
    started = time.perf_counter()
    n_trained, n_read = model.train(
        sequences,
        total_examples=model.corpus_count,
        total_words=model.corpus_total_words,
        epochs=model.epochs,
    )
    seconds = time.perf_counter() - started
    rows = np.zeros((len(terms), params["vector_size"]), dtype=np.float32)
    place = {term: i for i, term in enumerate(terms)}
    rows[[place[term] for term in model.wv.index_to_key]] = model.wv.get_normed_vectors()
    about = {
        "n_terms": len(terms),
        "n_known_terms": n_known,
        "n_tokens": int(counts.sum()),
        "epochs": params["epochs"],
        "seconds": seconds,
        "words_per_second": n_read / seconds,
        "trained_words_per_second": n_trained / seconds,
    }
    return rows, about
