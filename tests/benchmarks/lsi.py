"""LSI: the exact decomposition beside the randomised one it used to be, in CPU seconds and in figures of merit."""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from textbench.evaluation.metrics.query_by_example import search_by_example
from textbench.evaluation.metrics.ranked_retrieval import average_precision, rank, tie_order
from textbench.evaluation.probes.catalogue import build_probe
from textbench.evaluation.rankers import cosines
from textbench.featurizers import tfidf
from textbench.featurizers.lsa_pca import leading_eigenvectors
from textbench.tasks import catalogue, collect
from textbench.tasks.tokens import token_rule, vectorize

COLLECTIONS = ("cranfield", "cacm")
DATASETS = ("r8", "r52", "reuters65", "20ng")
DIMENSIONS = (100, 200, 400)
BIG_DIMENSIONS = (200,)  # of 20ng
# Arguments of scikit-learn's `randomized_svd`: LSI had n_iter=5 and the others' defaults.
RANDOMISED: tuple[dict, ...] = (
    *({"n_iter": n_iter} for n_iter in (2, 5, 10, 20, 30)),
    {"n_iter": 5, "power_iteration_normalizer": "QR"},
    {"n_iter": 5, "n_oversamples": 100},
)


class Task(NamedTuple):
    """Weighted documents to decompose, others to map, and the figures of the features of both."""

    name: str
    documents: sp.csr_matrix
    others: sp.csr_matrix
    figures: Callable[[np.ndarray, np.ndarray], dict[str, float]]


def main() -> None:
    """Print a row a solver for each task and number of dimensions, on one thread."""
    with threadpool_limits(1):
        for task in [*map(search, COLLECTIONS), *map(classification, DATASETS)]:
            for k in BIG_DIMENSIONS if task.name == "20ng" else DIMENSIONS:
                compare(task, k)


def search(name: str) -> Task:
    """MAP of a collection's judged queries, documents ranked by cosine."""
    found = collect.load({"dataset": name})
    vectors = vectorize(found.documents, found.queries, token_rule("letters-stop-stem"))
    place = {document: i for i, document in enumerate(found.document_ids)}
    relevant: dict[str, set[int]] = {query: set() for query in found.query_ids}
    for query, document, code in found.judgments:
        if code > 0:
            relevant[query].add(place[document])
    rows = [i for i, query in enumerate(found.query_ids) if relevant[query]]
    wanted = [np.array(sorted(documents)) for documents in relevant.values() if documents]
    ties = tie_order(found.document_ids)
    weigh = tfidf.build().fit(vectors.train_counts)

    def figures(documents: np.ndarray, queries: np.ndarray) -> dict[str, float]:
        return {"MAP": float(average_precision(rank(cosines(queries, documents), ties), wanted).mean())}

    documents, queries = (weigh.transform(part) for part in (vectors.train_counts, vectors.test_counts))
    return Task(name, documents, queries[rows], figures)


def classification(name: str) -> Task:
    """Accuracy of a linear SVM (C = 1) on the test documents, and MAP by example."""
    entry = catalogue.dataset(name)
    corpus = entry.load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule(entry.constant("RULE")))
    weigh = tfidf.build().fit(vectors.train_counts)
    train, test = (weigh.transform(part) for part in (vectors.train_counts, vectors.test_counts))

    def figures(known: np.ndarray, asked: np.ndarray) -> dict[str, float]:
        predicted = build_probe("linear-svm", 1.0).fit(known, corpus.train_targets).predict(asked)
        found = search_by_example(known, corpus.train_targets, asked, corpus.test_targets)
        return {
            "accuracy": float(np.mean(predicted == corpus.test_targets)),
            "MAP by example": float(found.average_precision.mean()),
        }

    return Task(name, train, test, figures)


def compare(task: Task, k: int) -> None:
    """Print what each solver takes, how far its largest singular values fall short, and the figures it gives."""
    print(f"-- {task.name}: {task.documents.shape[0]} x {task.documents.shape[1]}, {k} dimensions")
    exact: dict[str, float] = {}
    largest = np.zeros(0)
    for name, solve in solvers(k):
        started = time.process_time()
        values, V = solve(task.documents)
        seconds = time.process_time() - started
        components = V.astype(np.float32)
        found = task.figures(task.documents @ components, task.others @ components)
        if not exact:  # the first solver
            exact, largest = found, values
        short = float(np.max(1 - values / largest))
        columns = "  ".join(f"{m} {v:.4f} ({v - exact[m]:+.4f})" for m, v in found.items())
        print(f"{name:46s} {seconds:6.1f} s  singular values short by up to {short:7.1e}  {columns}")


def solvers(k: int) -> Iterator[tuple[str, Callable[[sp.csr_matrix], tuple[np.ndarray, np.ndarray]]]]:
    """Yield name and solver: documents to singular values, descending, and right singular vectors (n_terms, k)."""

    def lanczos(W: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        squares, V = leading_eigenvectors(W.astype(np.float64), k, 0, centred=False)
        return np.sqrt(squares), V

    yield "exact", lanczos
    for options in RANDOMISED:

        def randomised(W: sp.csr_matrix, options: dict = options) -> tuple[np.ndarray, np.ndarray]:
            _, s, Vt = randomized_svd(W, n_components=k, random_state=0, **options)
            return s, Vt.T

        yield ", ".join(f"{name}={value}" for name, value in options.items()), randomised
