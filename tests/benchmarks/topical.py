"""The ten topical methods on 20 Newsgroups: seconds of fitting and of documents' features, beside those foreseen.

Seconds are the processor's, of one core, whoever else is busy. Those foreseen are of the clock on two cores; all that
takes long (sampling, skip-gram) has one thread, so that one may be set beside the other: what is worked on side by side
would take less of the clock. Word vectors are not counted, topics of tokens are, by each method that reads them. The
vectors are of one pass, for seconds do not depend on how good they are. What a method goes through again and again it
goes through a few times here, and what is in proportion to tokens is measured on some of the documents; both are
multiplied. The rest is measured as it is.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from textbench.featurizers import gaussian_lda, lda2vec, lf_lda, ltsg, mvtm, ntsg, topicvec, twe_1, wtm
from textbench.featurizers._topical.embeddings import unit_rows
from textbench.featurizers._topical.token_topics import TokenTopics, sample
from textbench.tasks import catalogue, output_vectors, word_vectors
from textbench.tasks.tokens import token_rule, vectorize

DIMENSIONS = 400
SLOWEST = 1.5  # times what is foreseen
N_TO_COMPILE = 100


@dataclass(frozen=True)
class Row:
    """A method as it is measured, how many columns of the vectors it reads, and the most seconds foreseen.

    `repeated` names the parameter that says how often its loop is gone through: it is `few` and `more` times, and what
    each time takes is multiplied. Of documents it reads every `thinned`-th, whose seconds are multiplied too: where all
    of a method's work is in proportion to its tokens.
    """

    module: Any
    params: dict[str, Any]
    n_dimensions: int
    foreseen: float
    repeated: str | None = None
    few: int = 0
    more: int = 0
    thinned: int = 1

    @property
    def name(self) -> str:
        """How the table calls it."""
        given = ", ".join(f"{name}={value}" for name, value in self.params.items())
        return self.module.__name__.rsplit(".", 1)[1] + (f"({given})" if given else "")


ROWS = [
    Row(topicvec, {}, 200, 40, "max_iter", 2, 6),
    Row(mvtm, {}, 200, 60, "max_iter", 2, 6),
    Row(twe_1, {}, 400, 110),
    Row(wtm, {}, 400, 350, "n_sweeps", 11, 21),
    Row(lf_lda, {}, 200, 400, "n_iter", 2, 6),
    Row(ltsg, {}, 400, 450, "n_rounds", 1, 2, 5),
    Row(ntsg, {"variant": 1}, 400, 300, "epochs", 1, 2, 10),
    Row(ntsg, {"variant": 2, "n_slices": 4}, 400, 1000, "epochs", 1, 2, 20),
    Row(lda2vec, {}, 300, 900, "epochs", 1, 2, 10),
    Row(gaussian_lda, {}, 50, 120, "n_iter", 1, 3),
    Row(gaussian_lda, {}, 200, 550, "n_iter", 1, 3),
    Row(twe_1, {"joint": True}, 400, 450, "epochs", 1, 2, 10),
]


@dataclass(frozen=True)
class Inputs:
    """What all methods read, of training and test documents together, and the seconds of the topics of tokens."""

    documents: list[np.ndarray]
    counts: sp.csr_matrix
    words: np.ndarray
    outputs: np.ndarray
    norms: np.ndarray
    topics: TokenTopics
    seconds_of_topics: float


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return what the function gives and the processor's seconds it took."""
    started = time.process_time()
    return function(), time.process_time() - started


def inputs() -> Inputs:
    """Return the documents under SCDV's faithful protocol, their topics, and vectors of one pass."""
    corpus = catalogue.dataset("20ng").load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("scdv"), transductive=True)
    documents = np.split(vectors.train_ids, vectors.train_offsets[1:-1])
    documents += np.split(vectors.test_ids, vectors.test_offsets[1:-1])
    counts = sp.csr_matrix(sp.vstack([vectors.train_counts, vectors.test_counts]))
    params = word_vectors.DEFAULTS | {"epochs": 1, "vector_size": DIMENSIONS, "window": 5}
    own = output_vectors.train(output_vectors.by_shared_negatives, documents, vectors.terms, params, 0)
    topics, seconds = timed(lambda: sample(documents, 0))
    return Inputs(documents, counts, *own, topics, seconds)


def thinned(given: Inputs, step: int) -> Inputs:
    """Return the inputs of every `step`-th document."""
    ends = np.concatenate([[0], np.cumsum([len(document) for document in given.documents])])
    numbers = range(0, len(given.documents), step)
    topics = np.concatenate([given.topics.topics[ends[n] : ends[n + 1]] for n in numbers])
    documents = [given.documents[n] for n in numbers]
    return replace(
        given, documents=documents, counts=given.counts[::step], topics=replace(given.topics, topics=topics)
    )


def run(row: Row, given: Inputs, **params: Any) -> tuple[float, float]:
    """Return the seconds of fitting a method, and of the documents' features."""
    size, needs = row.n_dimensions, row.module.NEEDS
    ready = {
        "word_vectors": unit_rows(given.words[:, :size]),
        "output_vectors": np.ascontiguousarray(given.outputs[:, :size]),
        "vector_norms": given.norms,
        "token_topics": given.topics,
    }
    X: Any = given.documents if row.module.INPUT == "tokens" else given.counts
    method = row.module.build(**row.params | params, random_state=0)
    _, fit_seconds = timed(lambda: method.fit(X, **{name: ready[name] for name in needs}))
    return fit_seconds, timed(lambda: method.transform(X))[1]


def measure(row: Row, given: Inputs) -> None:
    """Print the seconds of one method."""
    before = given.seconds_of_topics if "token_topics" in row.module.NEEDS else 0.0
    own = thinned(given, row.thinned)
    scale = sum(map(len, given.documents)) / sum(map(len, own.documents))
    if row.repeated is None:
        fit, transform = run(row, own)
    else:
        (first, _), (second, transform) = (run(row, own, **{row.repeated: n}) for n in (row.few, row.more))
        n_all = row.module.build(**row.params).get_params()[row.repeated]
        fit = second + (n_all - row.more) * (second - first) / (row.more - row.few)
    parts = before, scale * fit, scale * transform
    total = sum(parts)
    mark = "" if total <= SLOWEST * row.foreseen else f"  beyond {SLOWEST} times"
    print(
        f"{row.name:36} {row.n_dimensions:4} {parts[0]:8.1f} {parts[1]:8.1f} {parts[2]:10.1f} {total:8.1f} "
        f"{row.foreseen:9.0f} {total / row.foreseen:6.2f}{mark}"
    )


def warm_up(given: Inputs) -> None:
    """Compile what the methods have to compile, on some documents; Gaussian LDA has no loops of its own."""
    few = thinned(given, len(given.documents) // N_TO_COMPILE)
    occurs = np.bincount(np.concatenate(few.documents), minlength=len(given.norms)) > 0
    few = replace(few, words=given.words * occurs[:, None])
    for row in ROWS:
        if row.module is not gaussian_lda:
            run(row, few, **({row.repeated: 1} if row.repeated else {}))


def main() -> None:
    """Print a row a method."""
    with threadpool_limits(1):
        given = inputs()
        n_tokens = sum(len(document) for document in given.documents)
        print(f"-- 20ng, {len(given.documents)} documents, {n_tokens} tokens, {given.counts.shape[1]} terms")
        print(
            "method                               dims   topics      fit  transform    total  foreseen  ratio"
        )
        warm_up(given)
        for row in ROWS:
            measure(row, given)
