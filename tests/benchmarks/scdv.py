"""SCDV on 20 Newsgroups (headers kept): vectors, clusters and document vectors, each against the plain way."""

import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from textbench.featurizers import scdv
from textbench.featurizers._gaussian_mixture import cluster, fit_tied
from textbench.featurizers._topical.skip_gram import KnownTokens
from textbench.tasks import catalogue, shared_negatives, skip_gram, word_vectors
from textbench.tasks.storage.isolate import peak_mb
from textbench.tasks.tokens import token_rule, vectorize
from textbench.tasks.window_blocks import windows_of_block

N_CLUSTERS, N_ITERATIONS = 60, 10
N_DOCUMENTS_TO_LOOP_OVER = 200


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return what the function gives and the processor's seconds it took."""
    started = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - started


def algorithm_1(counts: sp.csr_matrix, method: scdv.Scdv) -> np.ndarray:
    """Document vectors as the paper's code makes them: one long vector for each word, added up token by token."""
    topics = [
        idf * np.outer(membership, vector).ravel()
        for idf, membership, vector in zip(
            method.idf_, method.term_memberships_, method.vectors_, strict=True
        )
    ]
    documents = np.zeros((counts.shape[0], method.n_clusters * method.vectors_.shape[1]), dtype=np.float32)
    for document, row in zip(documents, counts, strict=True):
        for term, count in zip(row.indices, row.data, strict=True):
            for _ in range(int(count)):
                document += topics[term]
        document /= np.linalg.norm(document) or 1
    return documents


def products(documents: list[np.ndarray], n_terms: int, params: dict[str, Any]) -> tuple[int, int]:
    """Return how often a word meets an output in one epoch: pairs of a window, and cells of our blocks' products."""
    known = np.flatnonzero(np.bincount(np.concatenate(documents), minlength=n_terms) >= params["min_count"])
    reading = KnownTokens.of(documents, known, n_terms, params["sample"])
    rng, window, negative = np.random.default_rng(0), params["window"], params["negative"]
    n_pairs = n_cells = 0
    for begin, end in pairwise(reading.offsets):
        n = int((rng.random(end - begin) < reading.kept[reading.tokens[begin:end]]).sum())
        places, reaches = np.arange(n), rng.integers(1, window + 1, n)
        low, high = np.maximum(0, places - reaches), np.minimum(n, places + reaches + 1)
        n_pairs += int((high - low - 1).sum()) * (1 + negative)
        starts = places[:: windows_of_block(window)]
        if n:
            rows = np.maximum.reduceat(high, starts) - np.minimum.reduceat(low, starts)
            n_cells += int((rows * (np.diff(starts, append=n) + negative)).sum())
    return n_pairs, n_cells


def operations_a_second() -> float:
    """Return the rate of a large matrix product in single precision on one core."""
    A = np.random.default_rng(0).random((2000, 2000), dtype=np.float32)
    with threadpool_limits(1):
        return float(2 * len(A) ** 3 / min(timed(lambda: A @ A)[1] for _ in range(5)))


def compare_trainers(documents: list[np.ndarray], terms: list[str], params: dict[str, Any]) -> np.ndarray:
    """Print words a second of each way to train, and of its products alone at full speed; return gensim's vectors.

    A product has three parts: the score, and what each side of it is changed by.
    """
    ways: dict[str, Callable[[], Any]] = {
        "gensim, one worker, repeatable": lambda: skip_gram.train(documents, terms, params, 0),
        "gensim, two workers, not": lambda: skip_gram.train(documents, terms, {**params, "workers": 2}, 0),
        "ours, one core": lambda: shared_negatives.train(documents, len(terms), params, 0),
        "ours, two cores, same bits": lambda: shared_negatives.train(documents, len(terms), params, 0, 2),
    }
    made = {}
    for name, train in ways.items():
        (made[name], about), seconds = timed(train)
        by_processor = about["n_tokens"] * about["epochs"] / seconds
        print(
            f"{name:33} {about['words_per_second']:10,.0f} words/s, {by_processor:10,.0f} per second of one core"
        )
    theirs, _, one, two = made.values()
    assert one.tobytes() == two.tobytes()
    n_words = sum(map(len, documents))
    rate = operations_a_second()
    for name, n in zip(("pair by pair", "our blocks"), products(documents, len(terms), params), strict=True):
        operations = 6 * params["vector_size"] * n / n_words
        print(
            f"bound of a core, {name + ',':16} {rate / operations:10,.0f} words/s, "
            f"{operations:,.0f} operations a word at {rate / 1e9:.0f} billion/s"
        )
    return theirs


def compare_mixtures(points: np.ndarray) -> None:
    """Print seconds of EM from one start, ours and scikit-learn's, and that they reach the same likelihood."""
    (labels, _), start_seconds = timed(cluster, points, N_CLUSTERS, 0)
    start = np.eye(N_CLUSTERS)[labels]
    ours, our_seconds = timed(lambda: fit_tied(points, start, spherical=False, max_iter=N_ITERATIONS, tol=0))
    model = GaussianMixture(N_CLUSTERS, covariance_type="tied", max_iter=N_ITERATIONS, tol=0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few iterations do not converge
        _, their_seconds = timed(model.fit, points)
    difference = abs(ours.log_likelihood / model.score(points) - 1)
    print(f"k-means start, {len(points)} x {points.shape[1]}      {start_seconds:10.2f} s")
    print(f"{N_ITERATIONS} EM iterations, ours             {our_seconds:10.2f} s")
    print(
        f"{N_ITERATIONS} EM iterations, scikit-learn     {their_seconds - start_seconds:10.2f} s   "
        f"{(their_seconds - start_seconds) / our_seconds:.1f} times slower; likelihoods differ by {difference:.0e}"
    )


def main() -> None:
    """Print seconds (of one core, whoever else is busy) and peak memory of each part beside the plain way's."""
    corpus = catalogue.dataset("20ng").load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("scdv"), transductive=True)
    documents = np.split(vectors.train_ids, vectors.train_offsets[1:-1])
    documents += np.split(vectors.test_ids, vectors.test_offsets[1:-1])
    params = word_vectors.DEFAULTS | {"epochs": 1}
    counts = sp.csr_matrix(sp.vstack([vectors.train_counts, vectors.test_counts]))
    with threadpool_limits(1):
        rows = compare_trainers(documents, vectors.terms, params)
        compare_mixtures(rows[rows.any(axis=1)].astype(np.float64))
        method = scdv.build(n_clusters=N_CLUSTERS, random_state=0)
        _, fit_seconds = timed(lambda: method.fit(counts, word_vectors=rows))
        features, seconds = timed(method.transform, counts)
        most = peak_mb()
        some = counts[:N_DOCUMENTS_TO_LOOP_OVER, method.terms_]
        dense, loop_seconds = timed(algorithm_1, some, method)
    loop_seconds *= counts.shape[0] / N_DOCUMENTS_TO_LOOP_OVER
    dense[np.abs(dense) < method.threshold_] = 0
    difference = np.abs(features[:N_DOCUMENTS_TO_LOOP_OVER].toarray() - dense)
    megabytes = (features.data.nbytes + features.indices.nbytes + features.indptr.nbytes) / 1e6
    print(f"fit: clusters, idf, threshold     {fit_seconds:10.2f} s")
    print(f"compose and sparsify, all         {seconds:10.2f} s   {features.shape[0]} documents")
    print(
        f"algorithm 1 in loops, all         {loop_seconds:10.2f} s   {loop_seconds / seconds:.0f} times slower"
    )
    print(f"largest difference, off threshold {difference[difference < method.threshold_ / 2].max():10.0e}")
    print(
        f"features                          {megabytes:10.0f} MB  {features.nnz / np.prod(features.shape):.1%} of them"
    )
    print(f"peak memory                       {most:10.0f} MB")
