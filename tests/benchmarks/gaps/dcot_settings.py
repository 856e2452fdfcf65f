"""dCoT's figure 4 on Reuters-65: can a setting of the paper's method stand above TF-IDF and LSI, and beside which ones?

Features are learned from the training texts alone, a linear SVM from five draws of labels. The paper states neither r,
a ridge, scaling nor C; its authors' related code (marginalised denoising autoencoders) splits the inputs at random into
blocks, solves each for the same prototypes, and averages. C is chosen by three folds of the labels, or is 1 of the
features as given, as in LIBLINEAR. A line has the accuracies at `BUDGETS`, and the mean differences to TF-IDF and LSI:
ours, of unit rows, and as the paper describes them, without a norm and of counts.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.stats import ttest_rel
from sklearn.preprocessing import normalize

from textbench.evaluation.probes.budgets import labelled_documents
from textbench.evaluation.probes.catalogue import build_probe
from textbench.evaluation.probes.tuning import choose_c
from textbench.evaluation.statistics.intervals import mean_interval
from textbench.evaluation.statistics.significance import holm
from textbench.featurizers._dcot.kernels import beside
from textbench.featurizers._dcot.solvers import deeper_layer
from textbench.featurizers.counts import Counts
from textbench.featurizers.dcot import DenseCohortOfTerms, prototypes
from textbench.featurizers.lsi import Lsi
from textbench.featurizers.tfidf import TfIdf
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize

BUDGETS = (500, 1000, 2000)
ALL = tuple(range(500, 6000, 500))  # those of the figure
OURS = ("tfidf", "lsi, 400")
THEIRS = ("tfidf, counts times ln N/n", "lsi of counts, 400")
N_DRAWS = 5
BLOCK = 2000

Matrix = Any
Pair = tuple[Matrix, Matrix]
Given = tuple[sp.csr_matrix, sp.csr_matrix]


def of(transformer: Any, given: Given) -> Pair:
    """Features of both parts, learned from the training part."""
    return transformer.fit_transform(given[0]), transformer.transform(given[1])


def plain_tfidf(given: Given, *, relative: bool) -> Pair:
    """tf ln(N / n) without a norm, tf a count or, if relative, a share of the document."""
    n = np.bincount(given[0].indices, minlength=given[0].shape[1])
    idf = sp.diags(np.log(given[0].shape[0] / np.maximum(n, 1)))
    train, test = (normalize(X, "l1") if relative else X.astype(float) for X in given)
    return (train @ idf).tocsr(), (test @ idf).tocsr()


def unit_rows(features: Callable[[Given], Pair], given: Given) -> Pair:
    """Features with rows of unit length."""
    train, test = features(given)
    return normalize(train), normalize(test)


def unit_input(features: Callable[[Given], Pair], given: Given) -> Pair:
    """Features of counts with rows of the mean length, 1 at first."""
    scale = float(np.sqrt(given[0].multiply(given[0]).sum(axis=1)).mean())
    train, test = (normalize(X.astype(float)) * scale for X in given)
    return features((train, test))


def binary_input(features: Callable[[Given], Pair], given: Given) -> Pair:
    """Features of what is there."""
    return features((given[0].sign(), given[1].sign()))


def in_blocks(given: Given, *, noise: float, n_layers: int, n_prototypes: int, mean: bool) -> Pair:
    """dCoT whose first layer is solved block by block, the blocks' outputs averaged (or added)."""
    train, test = (Counts().fit_transform(X).astype(np.float64) for X in given)
    chosen, p = prototypes(train, "count", n_prototypes), 1 - noise
    target = train[:, chosen].toarray()
    blocks = np.array_split(np.random.default_rng(0).permutation(train.shape[1]), train.shape[1] // BLOCK)
    outputs = [np.zeros((X.shape[0], len(chosen))) for X in (train, test)]
    for block in blocks:
        X = train[:, block]
        means, scatter = np.asarray(X.mean(axis=0)).ravel(), np.asarray(X.multiply(X).sum(axis=0)).ravel()
        centred = (X.T @ X).toarray() - len(target) * np.outer(means, means)
        left = p**2 * centred + p * (1 - p) * np.diag(scatter + (scatter == 0))
        right = p * (X.T @ (target - target.mean(axis=0)))
        W = scipy.linalg.solve(left, right, assume_a="pos")
        bias = target.mean(axis=0) - p * means @ W
        for output, documents in zip(outputs, (train, test), strict=True):
            output += (documents[:, block] @ W + bias) / (len(blocks) if mean else 1)
    layers = [[np.tanh(output)] for output in outputs]
    for _ in range(1, n_layers):
        layer = deeper_layer(layers[0][-1], noise, 0.0)
        for z in layers:
            z.append(np.tanh(z[-1] @ layer.weights.T + layer.bias))
    first, second = (
        beside(X.astype(np.float32), [part.astype(np.float32) for part in z])
        for X, z in zip((train, test), layers, strict=True)
    )
    return first, second


def accuracy(features: Pair, y: np.ndarray, target: np.ndarray, rows: np.ndarray, *, tuned: bool) -> float:
    """The share of test documents that an SVM trained on the labels of some rows gets right."""
    X = features[0][rows]
    if tuned:
        probe = build_probe("linear-svm", choose_c(X, y[rows]).C or 1.0)
    else:
        probe = build_probe("linear-svm", 1.0, scaled=False, max_iter=1000)
    return float((probe.fit(X, y[rows]).predict(features[1]) == target).mean())


def settings() -> Iterator[tuple[str, Callable[[Given], Pair]]]:
    """The baselines and, one change at a time from its defaults, dCoT: a name and what makes the features."""

    def dcot(**params: Any) -> Callable[[Given], Pair]:
        return partial(of, DenseCohortOfTerms(**params))

    yield "tfidf", partial(of, TfIdf())
    yield "lsi, 400", partial(of, Lsi(n_components=400, normalize=True, random_state=0))
    yield "counts", partial(of, Counts())
    yield "tfidf, counts times ln N/n", partial(plain_tfidf, relative=False)
    yield "tfidf, shares times ln N/n", partial(plain_tfidf, relative=True)
    yield "lsi of counts, 400", partial(of, Lsi(n_components=400, weighting="counts", random_state=0))
    yield "dcot", dcot()
    yield "dcot, noise 0.9", dcot(noise=0.9)
    yield "dcot, noise 0.5", dcot(noise=0.5)
    yield "dcot, 1 layer", dcot(n_layers=1)
    yield "dcot, 5 layers", dcot(n_layers=5)
    yield "dcot, 3,000 prototypes", dcot(n_prototypes=3000)
    yield "dcot, 300 prototypes", dcot(n_prototypes=300)
    yield "dcot, ridge 1", dcot(ridge=1.0)
    yield "dcot, ridge 100", dcot(ridge=100.0)
    yield "dcot, unit blocks", dcot(block_norm=True)
    yield "dcot, unit rows", partial(unit_rows, dcot())
    yield "dcot, input of one length", partial(unit_input, dcot())
    yield "dcot, binary input", partial(binary_input, dcot())
    yield "dcot, without x", dcot(include_input=False)
    blocks = {"noise": 0.8, "n_layers": 3, "n_prototypes": 1000}
    yield "dcot in blocks, averaged", partial(in_blocks, **blocks, mean=True)
    yield "dcot in blocks, added", partial(in_blocks, **blocks, mean=False)


def run(
    budgets: Sequence[int],
    names: Sequence[str] | None = None,
    *,
    tuned: bool = True,
    base: Sequence[str] = OURS,
    n_draws: int = N_DRAWS,
) -> None:
    """Print a line for each setting, of those that are named, with its differences to those in `base`.

    Behind it the largest p of these differences, paired t over draws, Holm-corrected over all of the line.
    """
    corpus = catalogue.dataset("reuters65").load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("letters-stop-stem"))
    given = vectors.train_counts, vectors.test_counts
    y, target = corpus.train_targets, corpus.test_targets
    draws = [[labelled_documents(y, budget, draw) for draw in range(n_draws)] for budget in budgets]
    known: list[np.ndarray] = []
    print(f"{'C by folds' if tuned else 'C = 1 of the features as given'}; {budgets} labels; {n_draws} draws")
    makers = dict(settings())
    for name in dict.fromkeys([*base, *(makers if names is None else names)]):
        make = makers[name]
        features = make(given)
        found = np.array(
            [[accuracy(features, y, target, rows, tuned=tuned) for rows in some] for some in draws]
        )
        line = ", ".join(f"{100 * value:.2f}" for value in found.mean(axis=1))
        chances = []
        for other in known:
            pairs = [mean_interval(100 * (a - b)) for a, b in zip(found, other, strict=True)]
            line += "; " + ", ".join(f"{mean:+.2f} ± {half:.2f}" for mean, half in pairs)
            chances += [ttest_rel(a, b).pvalue for a, b in zip(found, other, strict=True)]
        if chances:
            line += f"; p <= {max(holm(chances)):.2g} of {len(chances)}"
        if name in base:
            known.append(found)
        print(f"{name}: {line}")


def main() -> None:
    run(BUDGETS, tuned=False)
    run(BUDGETS, tuned=False, base=THEIRS)
    run(BUDGETS)
    run(ALL, ("dcot, unit blocks",), tuned=False, base=THEIRS, n_draws=20)
