"""The ten topical methods on 20 Newsgroups: seconds of fitting and of documents' features, beside those foreseen.

Seconds are the processor's, of one core, whoever else is busy. Those foreseen are of the clock on two cores; all that
takes long (sampling, skip-gram) has one thread, so that one may be set beside the other: what is worked on side by side
would take less of the clock. Word vectors are not counted, topics of tokens are, by each method that reads them. The
vectors are of one pass, for seconds do not depend on how good they are. What a method goes through again and again it
goes through a few times here, and what is in proportion to tokens is measured on some of the documents; both are
multiplied. The rest is measured as it is.

The bound, of three methods, is the operations of their sums of products over the speed of one large matrix product in
single precision, measured here; topics of tokens are not in it. `times` is fitting and features over the bound.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from textbench.featurizers import gaussian_lda, lda2vec, lf_lda, ltsg, mvtm, ntsg, topicvec, twe_1, wtm
from textbench.featurizers._topical.embeddings import SAMPLE, unit_rows
from textbench.featurizers._topical.skip_gram import kept_share
from textbench.featurizers._topical.token_topics import TokenTopics, sample
from textbench.tasks import catalogue, output_vectors, word_vectors
from textbench.tasks.tokens import token_rule, vectorize

DIMENSIONS = 400
SLOWEST = 1.5  # times what is foreseen
N_TO_COMPILE = 100


@dataclass(frozen=True)
class Size:
    """What there is to go through: tokens with a vector, those that a training reads, entries, such terms."""

    n_tokens: float
    n_read: float
    n_entries: float
    n_terms: float


def of_ntsg(size: Size, ntsg_: Any) -> float:
    """Scores, slopes and changes of words around and contexts, and the same of the tensor."""
    _, n_slices, has_tensor = ntsg.VARIANTS[ntsg_.variant]
    n_slices, n_around = ntsg_.n_slices or n_slices, ntsg_.window + 1
    contexts = 6 * n_around * (ntsg_.negative + 1) * 2 * DIMENSIONS
    tensor = 12 * n_around * ntsg_.rank * DIMENSIONS * has_tensor
    return ntsg_.epochs * size.n_read * n_slices * (contexts + tensor)


def of_lda2vec(size: Size, method: Any) -> float:
    """Scores, slopes and changes in fitting; of documents the scores, and their sums over the words around."""
    n_around, one = method.window + 1, (method.negative + 1) * 300
    fitted = method.epochs * size.n_read * 6 * n_around * one
    return fitted + method.infer_epochs * size.n_tokens * 2 * (n_around + 1) * one


def of_topicvec(size: Size, method: Any) -> float:
    """Five steps of proportions a round, their last sum and the counts; six trials, in double precision: twice."""
    proportions = (5 + 1 + 1) * 4 * size.n_entries * method.n_topics
    return method.max_iter * (proportions + 6 * 2 * 4 * size.n_terms * method.n_topics * 200)


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
    operations: "Callable[[Size, Any], float] | None" = None

    @property
    def name(self) -> str:
        """How the table calls it."""
        given = ", ".join(f"{name}={value}" for name, value in self.params.items())
        return self.module.__name__.rsplit(".", 1)[1] + (f"({given})" if given else "")


ROWS = [
    Row(topicvec, {}, 200, 40, "max_iter", 2, 6, operations=of_topicvec),
    Row(mvtm, {}, 200, 60, "max_iter", 2, 6),
    Row(twe_1, {}, 400, 110),
    Row(wtm, {}, 400, 350, "n_sweeps", 11, 21),
    Row(lf_lda, {}, 200, 400, "n_iter", 2, 6),
    Row(ltsg, {}, 400, 450, "n_rounds", 1, 2, 5),
    Row(ntsg, {"variant": 1}, 400, 300, "epochs", 1, 2, 10, of_ntsg),
    Row(ntsg, {"variant": 2, "n_slices": 4}, 400, 1000, "epochs", 1, 2, 20, of_ntsg),
    Row(lda2vec, {}, 300, 900, "epochs", 1, 2, 10, of_lda2vec),
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


def size_of(given: Inputs) -> Size:
    """Return what there is to go through."""
    occurs = np.bincount(np.concatenate(given.documents), minlength=len(given.norms))
    counts = occurs[given.norms > 0]
    n_read = (counts * kept_share(np.maximum(counts, 1), SAMPLE)).sum()
    return Size(counts.sum(), n_read, given.counts[:, given.norms > 0].nnz, len(counts))


def speed() -> float:
    """Return the operations a second of a large matrix product in single precision."""
    A = np.random.default_rng(0).random((2000, 2000), dtype=np.float32)
    return float(2 * len(A) ** 3 / min(timed(lambda: A @ A)[1] for _ in range(3)))


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


def measure(row: Row, given: Inputs, product: float) -> None:
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
    bound = ""
    if row.operations is not None:
        least = row.operations(size_of(given), row.module.build(**row.params)) / product
        bound = f"{least:8.1f} {(total - before) / least:6.2f}"
    mark = "" if total <= SLOWEST * row.foreseen else f"  beyond {SLOWEST} times"
    print(
        f"{row.name:36} {row.n_dimensions:4} {parts[0]:8.1f} {parts[1]:8.1f} {parts[2]:10.1f} {total:8.1f} "
        f"{row.foreseen:9.0f} {total / row.foreseen:6.2f} {bound:15}{mark}",
        flush=True,
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
        given, product = inputs(), speed()
        n_tokens = sum(len(document) for document in given.documents)
        print(f"-- a matrix product: {product / 1e9:.0f} billion operations a second")
        print(f"-- 20ng, {len(given.documents)} documents, {n_tokens} tokens, {given.counts.shape[1]} terms")
        print(
            "method                               dims   topics      fit  transform    total  foreseen  ratio "
            "   bound  times"
        )
        warm_up(given)
        for row in ROWS:
            measure(row, given, product)
