"""All 5-grams of two groups of 20 Newsgroups: paths of C of the elastic net with equal columns merged, and without."""

import time

import numpy as np
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from evaluation.merged_columns import equal_columns
from evaluation.probes import ElasticNetProbe
from evaluation.wide_probes import GRIDS, WideElasticNet, WideRidge
from featurizers.kgrams import AllKGrams
from tasks import catalogue
from tasks.tokens import token_rule, vectorize

GROUPS = ("alt.atheism", "comp.graphics")
L1_RATIOS = (0.3, 0.1, 0.03)
SHARE = 2  # every second message: without merging, the smallest ratios take minutes on all


def main() -> None:
    """Print CPU seconds of both on one thread, how many fits converged, and how far their scores are apart."""
    X, y = load()
    with threadpool_limits(1):
        for probe in (ElasticNetProbe, WideElasticNet, WideRidge):
            next(probe(row_norm="l1").fit_path(X[::20], y[::20], (0.01,)))  # compile
        columns = ElasticNetProbe(row_norm="l1")._prepared(X, y).X
        print(
            f"{X.shape[0]} messages, {X.shape[1]:,} 5-grams, {len(equal_columns(columns)[0]):,} that differ"
        )
        for l1_ratio in L1_RATIOS:
            scores = []
            for probe in (WideElasticNet, ElasticNetProbe):
                started = time.process_time()
                fitted = list(
                    probe(row_norm="l1", l1_ratio=l1_ratio).fit_path(X, y, GRIDS["elastic-net"]["C"])
                )
                seconds = time.process_time() - started
                n_converged = sum(one.converged_ for one in fitted)
                scores.append(np.array([one.decision_function(X) for one in fitted if one.converged_][:4]))
                print(
                    f"l1_ratio {l1_ratio}: {probe.__name__:15} {seconds:6.2f} s, {n_converged} of 8 converged"
                )
            print(f"  largest difference of a score, first four C: {np.abs(scores[0] - scores[1]).max():.4f}")
        started = time.process_time()
        list(WideRidge(row_norm="l1").fit_grid(X, y))
        print(f"ridge, {len(GRIDS['ridge']['C'])} C: {time.process_time() - started:.2f} s")


def load() -> tuple[csr_matrix, np.ndarray]:
    """Return the 5-grams of the training messages, and their group."""
    corpus = catalogue.dataset("20ng").load().load()
    chosen = [corpus.target_names.index(name) for name in GROUPS]
    rows = np.flatnonzero(np.isin(corpus.train_targets, chosen))[::SHARE]
    vectors = vectorize([corpus.train_texts[i] for i in rows], ["-"], token_rule("letters"))
    documents = np.split(vectors.train_ids, vectors.train_offsets[1:-1])
    return AllKGrams().fit_transform(documents), (corpus.train_targets[rows] == chosen[1]).astype(int)
