"""dCoT on Reuters (65 classes) and on Zipf corpora up to 100,000 documents: seconds, memory, distance to the bound.

Needs TEXTBENCH_DATA_DIR. `primal`, the (d+1) x (d+1) system of the paper by numpy.linalg.solve, comes last: it takes
minutes and 7 GB.
"""

import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from textbench.featurizers import dcot
from textbench.featurizers._dcot.solvers import FirstLayer
from textbench.tasks import catalogue
from textbench.tasks.storage.isolate import peak_mb
from textbench.tasks.tokens import token_rule, vectorize

NOISES = tuple(round(0.1 * k, 1) for k in range(1, 10))
R = 1000


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """Return the wall-clock seconds of `work`, the least of several times."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


def sgemm_flops(n: int = 4000) -> float:
    """Return the operations a second of a single-precision matrix product: the machine's bound."""
    A = np.random.default_rng(0).random((n, n), dtype=np.float32)
    return 2 * n**3 / seconds(lambda: A @ A)


def operations(X: sp.csr_matrix, solver: str, n_iter: int) -> float:
    """Return the operations of the first layer's linear system, additions and multiplications."""
    n = X.shape[0]
    shared = np.bincount(X.indices, minlength=X.shape[1])[X.indices] > 1
    if solver == "cg":
        return n_iter * R * (4 * np.count_nonzero(shared) + 20 * n)
    return n**3 / 3 + 2 * n**2 * R


def zipf_corpus(n_documents: int, n_terms: int = 50_000, n_draws: int = 73) -> sp.csr_matrix:
    """Return documents of about 60 distinct terms each, drawn by Zipf's law."""
    rng = np.random.default_rng(0)
    shares = np.cumsum(1 / np.arange(1, n_terms + 1))
    drawn = np.searchsorted(shares / shares[-1], rng.random(n_documents * n_draws))
    rows = np.repeat(np.arange(n_documents), n_draws)
    X = sp.csr_matrix((np.ones(len(drawn), np.int32), (rows, drawn)), shape=(n_documents, n_terms))
    X.sum_duplicates()
    return X


def first_layers(X: sp.csr_matrix, bound: float) -> None:
    """One layer at every noise: seconds of `fit`, the solver chosen, and the distance to the bound."""
    for noise in NOISES:
        method = dcot.build(n_prototypes=R, noise=noise, n_layers=1)
        taken = seconds(lambda method=method: method.fit(X))
        work = operations(X, method.solver_, method.n_iter_)
        steps = f"{method.n_iter_:3d} steps, residual {method.residual_:.0e}" if method.n_iter_ else " " * 25
        print(
            f"  noise {noise}  {method.solver_:5s} {steps} {taken:5.2f} s   "
            f"{work / 1e9:5.0f} Gflop, {taken * bound / work:5.1f} times their time as matrix products"
        )


def reuters() -> sp.csr_matrix:
    """Time everything on reuters65 but `primal`; return the training counts."""
    corpus = catalogue.dataset("reuters65").load().load()
    for rule in ("letters-stop-stem", "letters"):
        vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule(rule))
        X, test = vectors.train_counts, vectors.test_counts
        bound = sgemm_flops()
        print(f"reuters65, {rule}: {X.shape[0]} x {X.shape[1]}, {X.nnz} stored, r = {R}")
        print(f"  matrix products here, single precision: {bound / 1e9:.0f} Gflop/s")
        dcot.build(n_prototypes=R).fit(X)  # compiles
        first_layers(X, bound)
        method = dcot.build(n_prototypes=R)
        print(f"  three layers, noise 0.8: fit {seconds(lambda m=method, X=X: m.fit(X)):.2f} s")
        taken = seconds(lambda m=method, t=test: m.transform(t))
        print(f"  transform of {test.shape[0]} documents, 3 layers: {taken:.2f} s")
        print(f"  figure 3, features of {X.shape[0]} documents: {seconds(lambda X=X: figure_3(X), 1):.1f} s")
        print(f"  peak memory {peak_mb() / 1e3:.2f} GB")
    return X


def figure_3(X: sp.csr_matrix) -> None:
    """Compute the layers of every noise and depth: the deepest stack holds the shallower ones."""
    for _ in dcot.build(n_prototypes=R, n_layers=5).fit_path(X, NOISES):
        pass


def scaling() -> None:
    """One layer on Zipf corpora: seconds against stored counts, memory."""
    sizes = {}
    dcot.build(n_prototypes=R, n_layers=1).fit(zipf_corpus(1_000))  # compiles
    for n_documents in (10_000, 31_623, 100_000):
        X = zipf_corpus(n_documents)
        method = dcot.build(n_prototypes=R, n_layers=1)
        sizes[X.nnz] = seconds(lambda m=method, X=X: m.fit(X))
        print(
            f"Zipf, {n_documents} x {X.shape[1]}, {X.nnz / n_documents:.0f} distinct terms a document: "
            f"{method.solver_}, {method.n_iter_} steps, {sizes[X.nnz]:.1f} s, peak {peak_mb() / 1e3:.2f} GB"
        )
    (least, first), *_, (most, last) = sizes.items()
    print(f"  seconds grow as (stored counts)^{np.log(last / first) / np.log(most / least):.2f}")


def primal(X: sp.csr_matrix) -> None:
    """The paper's system as it stands, against `auto` in the same run, and how far their weights are apart."""
    method = dcot.build(n_prototypes=R, n_layers=1)
    ours = seconds(lambda: method.fit(X))
    x = X.astype(np.float64)
    first = FirstLayer(sp.csr_matrix(x), method.prototypes_)
    started = time.perf_counter()
    exact = first.solve(0.8, 0.0, "primal", 1e-4, 200)
    theirs = time.perf_counter() - started
    apart = np.linalg.norm(method.weights_[0] - exact.weights) / np.linalg.norm(exact.weights)
    print(
        f"primal {theirs:.1f} s, {peak_mb() / 1e3:.1f} GB; {method.solver_} {ours:.2f} s: "
        f"{theirs / ours:.0f} times faster"
    )
    print(f"  their weights are apart by {apart:.1e}, relative")
    dual = first.solve(0.8, 0.0, "dual", 1e-4, 200)
    apart = np.linalg.norm(dual.weights - exact.weights) / np.linalg.norm(exact.weights)
    print(f"  in double precision dual and primal are apart by {apart:.1e}, relative")


def main() -> None:
    """Print every figure; about ten minutes."""
    X = reuters()
    scaling()
    primal(X)
