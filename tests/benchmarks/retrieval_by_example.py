"""Retrieval by example on 20 Newsgroups (all-terms), by words and by character n-grams, against scikit-learn."""

import time

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from textbench.evaluation.metrics.query_by_example import search_by_example
from textbench.featurizers import char_ngrams, tfidf
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize

N_QUERIES = 200


def main() -> None:
    """Print seconds a query of both, on one thread, and that their average precisions agree."""
    corpus = catalogue.dataset("20ng-allterms").load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("letters"))
    words, characters = tfidf.build(), char_ngrams.build()
    of_words = words.fit_transform(vectors.train_counts), words.transform(vectors.test_counts)
    of_characters = characters.fit_transform(corpus.train_texts), characters.transform(corpus.test_texts)
    targets = corpus.train_targets, corpus.test_targets
    with threadpool_limits(1):
        _compare("tfidf", *of_words, *targets)
        _compare("char-ngrams", *of_characters, *targets)


def _compare(
    name: str, train: csr_matrix, test: csr_matrix, targets: np.ndarray, test_targets: np.ndarray
) -> None:
    n_queries = test.shape[0]
    some = np.random.default_rng(0).choice(n_queries, N_QUERIES, replace=False)
    started = time.process_time()
    ours = search_by_example(train, targets, test, test_targets).average_precision
    our_seconds = (time.process_time() - started) / n_queries
    started = time.process_time()
    theirs = []
    for query in some:
        scores = (test[query] @ train.T).toarray()[0]
        theirs.append(average_precision_score(targets == test_targets[query], scores))
    their_seconds = (time.process_time() - started) / N_QUERIES
    print(
        f"{name}: {n_queries} queries, {train.shape[0]} documents, {train.nnz / len(targets):.0f} values each"
    )
    print(f"  textbench     {1e3 * our_seconds:7.2f} ms a query, {our_seconds * n_queries:.1f} s in all")
    print(
        f"  scikit-learn  {1e3 * their_seconds:7.2f} ms a query ({their_seconds / our_seconds:.1f} times as long)"
    )
    print(f"  largest difference of average precision: {np.abs(ours[some] - theirs).max():.1e}")
