"""All 5-grams of two groups of 20 Newsgroups: paths of C of the elastic net with equal columns merged, and without."""

import time

import numpy as np
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from textbench.evaluation.probes.solvers.elastic_net import ElasticNetPath
from textbench.evaluation.probes.solvers.merged_columns import MergedPath
from textbench.evaluation.probes.wide import GRIDS, ElasticNetProbe, RidgeProbe
from textbench.featurizers.kgrams import AllKGrams
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize

GROUPS = ("alt.atheism", "comp.graphics")
L1_RATIOS = (0.3, 0.1, 0.03)


def main() -> None:
    """Print CPU seconds of both on one thread, how many fits converged, and how far their scores are apart."""
    X, y = load()
    columns = ElasticNetProbe(row_norm="l1")._columns(X, y)
    with threadpool_limits(1):
        ElasticNetPath(columns[::20], 0.5).solve(0, y[::20] == 1, 0.01, 10)  # compile
        for l1_ratio in L1_RATIOS:
            scores = {}
            for way, kind in (("merged", MergedPath), ("every column", ElasticNetPath)):
                started = time.process_time()
                path = kind(columns, l1_ratio)
                fitted = [path.solve(0, y == 1, C, 200) for C in GRIDS["elastic-net"]["C"]]
                seconds = time.process_time() - started
                n_converged = sum(converged for *_, converged in fitted)
                scores[way] = np.array([path.X @ weights + bias for weights, bias, _ in fitted[:4]])
                print(
                    f"l1_ratio {l1_ratio}: {way:12} {path.shape[1]:9,} columns {seconds:6.2f} s, "
                    f"{n_converged} of 8 converged"
                )
            apart = np.abs(scores["merged"] - scores["every column"]).max()
            print(f"  largest difference of a score, first four C: {apart:.4f}")
        started = time.process_time()
        list(RidgeProbe(row_norm="l1").fit_grid(X, y))
        print(f"ridge, {len(GRIDS['ridge']['C'])} C: {time.process_time() - started:.2f} s")


def load() -> tuple[csr_matrix, np.ndarray]:
    """Return the 5-grams of the training messages, and their group."""
    corpus = catalogue.dataset("20ng").load().load()
    chosen = [corpus.target_names.index(name) for name in GROUPS]
    rows = np.flatnonzero(np.isin(corpus.train_targets, chosen))
    vectors = vectorize([corpus.train_texts[i] for i in rows], ["-"], token_rule("letters"))
    documents = np.split(vectors.train_ids, vectors.train_offsets[1:-1])
    return AllKGrams().fit_transform(documents), (corpus.train_targets[rows] == chosen[1]).astype(int)
