"""Retrieval by example on 20 Newsgroups (all-terms) TF-IDF, against scikit-learn query by query."""

import time

import numpy as np
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from textbench.evaluation.metrics.query_by_example import search_by_example
from textbench.featurizers.tfidf import build
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize

N_QUERIES = 500


def main() -> None:
    """Print seconds a query of both, on one thread, and that their average precisions agree."""
    corpus = catalogue.dataset("20ng-allterms").load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("letters"))
    method = build()
    train, test = method.fit_transform(vectors.train_counts), method.transform(vectors.test_counts)
    some = np.random.default_rng(0).choice(test.shape[0], N_QUERIES, replace=False)
    with threadpool_limits(1):
        started = time.perf_counter()
        ours = search_by_example(train, corpus.train_targets, test, corpus.test_targets).average_precision
        our_seconds = (time.perf_counter() - started) / test.shape[0]
        started = time.perf_counter()
        theirs = []
        for query in some:
            scores = (test[query] @ train.T).toarray()[0]
            theirs.append(average_precision_score(corpus.train_targets == corpus.test_targets[query], scores))
        their_seconds = (time.perf_counter() - started) / N_QUERIES
    print(
        f"textbench      {1e3 * our_seconds:7.2f} ms a query ({test.shape[0]} queries, {train.shape[0]} documents)"
    )
    print(
        f"scikit-learn   {1e3 * their_seconds:7.2f} ms a query ({their_seconds / our_seconds:.1f} times slower)"
    )
    print(f"largest difference of average precision: {np.abs(ours[some] - theirs).max():.1e}")
