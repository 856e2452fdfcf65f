"""The Boltzmann machine, the denoising autoencoders and the word vectors: processor seconds, and what bounds them.

Needs TEXTBENCH_DATA_DIR. Bounds are the operations of the matrix products over the speed of one measured here; of the
Boltzmann machine, the exponentials over the speed of exponentials.
"""

import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from textbench.featurizers import drbm, maas_vectors, msda, sda
from textbench.featurizers.msda import reconstruction
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize


def seconds(work: Callable[[], object]) -> float:
    """Return the processor seconds of `work`."""
    started = time.process_time()
    work()
    return time.process_time() - started


def speeds() -> tuple[float, float]:
    """Return the operations a second of a matrix product, and exponentials a second, in single precision."""
    A = np.random.default_rng(0).random((2000, 2000), dtype=np.float32)
    product = 2 * len(A) ** 3 / min(seconds(lambda: A @ A) for _ in range(3))
    return product, A.size / min(seconds(lambda: np.exp(A)) for _ in range(3))


def counts(name: str, rule: str) -> tuple[sp.csr_matrix, np.ndarray, sp.csr_matrix, np.ndarray]:
    """Return the training and the test counts, csr (n_documents, n_terms), each with its classes, (n_documents,)."""
    corpus = catalogue.dataset(name).load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule(rule))
    return vectors.train_counts, corpus.train_targets, vectors.test_counts, corpus.test_targets


def machines(exponentials: float) -> None:
    """Both machines on bodies of 20 Newsgroups."""
    X, y, test, truth = counts("20ng-body", "letters")
    n_learned, n_classes = 0.85 * len(y), y.max() + 1
    drbm.build(max_epochs=1, generative=0.1, random_state=0).fit(X[:200], y[:200])  # compiles
    for params in ({}, {"generative": 0.1, "n_hidden": 300}):
        method = drbm.build(random_state=0, **params)
        taken = seconds(lambda m=method: m.fit(X, y))
        n_epochs = min(int(method.n_epochs_[0]) + method.patience, method.max_epochs)
        bound = n_epochs * n_learned * n_classes * method.n_hidden / exponentials
        accuracy = 100 * np.mean(method.predict(test) == truth)
        print(
            f"drbm, {method.n_hidden} units, generative {method.generative:g}: {taken:.1f} s, {n_epochs} epochs, "
            f"{taken / bound:.1f} times its exponentials alone; accuracy {accuracy:.2f}"
        )


def autoencoders(product: float) -> None:
    """MSDA, dense and by blocks, and SDA on Reuters."""
    X = counts("reuters65", "letters-stop-stem")[0]
    n = X.shape[0]
    order = np.argsort(-X.sum(axis=0).A1, kind="stable")[:5000]
    x = (X[:, order] > 0).astype(np.float32)
    taken = seconds(lambda: reconstruction(x, x, 0.8, 1e-5))
    d = x.shape[1]
    bound = 2 * (d**3 / 3 + 2 * d**3) / product  # double precision: half the speed
    print(f"msda, a dense first layer of {d}: {taken:.1f} s, {taken / bound:.1f} times its products")
    taken = seconds(lambda: msda.build(random_state=0).fit(X))
    print(f"msda, blocks of 2,000 over {X.shape[1]} terms, three layers: {taken:.1f} s")
    method = sda.build(random_state=0)
    taken = seconds(lambda: method.fit(X))
    H = method.n_hidden
    bound = method.n_epochs * n * (10 * d * H + 10 * H * H) / product
    print(f"sda, {d} terms, two layers of {H}: {taken:.1f} s, {taken / bound:.1f} times its products")


def word_vectors(product: float, exponentials: float) -> None:
    """The word vectors on IMDb."""
    X, y, *_ = counts("imdb", "maas")
    maas_vectors.build(n_rounds=1, n_terms=50).fit(X[:200])  # compiles
    for model in ("semantic", "full"):
        method = maas_vectors.build(model=model, n_rounds=1, random_state=0)
        taken = seconds(lambda m=method: m.fit(X, y))
        n, V, k = X.shape[0], len(method.words_), method.n_components
        # 12 of the words, 7 of the documents.
        bound = 12 * (6 * n * V * k / product) + 7 * (4 * n * V * k / product) + 19 * n * V / exponentials
        print(
            f"maas-vectors, {model}, a round over {n} documents: {taken:.1f} s, {taken / bound:.1f} times its products "
            f"and exponentials; ten rounds are {10 * taken:.0f} s; the ratings' share is {method.ratio_:.1e}"
        )


def main() -> None:
    """Print every figure; about ten minutes."""
    product, exponentials = speeds()
    print(f"here: {product / 1e9:.0f} Gflop/s, {exponentials / 1e9:.2f} Gexp/s")
    machines(exponentials)
    autoencoders(product)
    word_vectors(product, exponentials)
