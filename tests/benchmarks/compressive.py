"""Compression of 20 Newsgroups and IMDb: seconds, memory, distance from certified bounds and from exact optima (HiGHS).

Messages with all headers, letters only: 18,846 documents, 5.74 million words, 28.5 million possible pointers, k = 5.
"""

import time

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from textbench.featurizers._compressive.index import build_index, canonical_order, concatenate
from textbench.featurizers.compressive import CompressiveKGrams, compression_path
from textbench.featurizers.kgrams import AllKGrams
from textbench.featurizers.lz77 import Lz77
from textbench.tasks import catalogue
from textbench.tasks.storage.isolate import peak_mb
from textbench.tasks.tokens import token_rule, vectorize

EXACT_CORPORA, EXACT_DOCUMENTS, EXACT_WORDS = 50, 20, 60


def main() -> None:
    """Print everything; about fifteen minutes on two cores."""
    documents = load("20ng")
    CompressiveKGrams(max_iter=11).fit(documents[:20])  # compile
    exactness(documents)
    index_seconds(documents)
    for pointer_cost in (0.5, 0.03):
        whole(documents, pointer_cost)
    growth(documents)
    path(documents)
    others(documents)
    whole(load("imdb"), 0.5)


def load(name: str) -> list[np.ndarray]:
    """Return training and test documents of a data set as term numbers."""
    corpus = catalogue.dataset(name).load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("letters"), transductive=True)
    train = np.split(vectors.train_ids, vectors.train_offsets[1:-1])
    return train + np.split(vectors.test_ids, vectors.test_offsets[1:-1])


def exactness(documents: list[np.ndarray]) -> None:
    """Cost over the integer optimum on small corpora: messages drawn at random, the first words of each."""
    rng = np.random.default_rng(1)
    long = [document[:EXACT_WORDS] for document in documents if len(document) >= EXACT_WORDS]
    corpora = [
        [long[d] for d in rng.choice(len(long), EXACT_DOCUMENTS, replace=False)] for _ in range(EXACT_CORPORA)
    ]
    for pointer_cost in (0.03, 0.5, 1.0, 3.0):
        optima = np.array([optimum(corpus, pointer_cost) for corpus in corpora])
        linear = np.array([optimum(corpus, pointer_cost, integer=False) for corpus in corpora])
        print(
            f"pointer cost {pointer_cost}: {EXACT_CORPORA} corpora of {EXACT_DOCUMENTS * EXACT_WORDS} words, HiGHS"
        )
        print(
            f"  integer / linear optimum      mean {np.mean(optima / linear):.5f}  worst {max(optima / linear):.5f}"
        )
        for max_iter in (100, 0):
            method = CompressiveKGrams(pointer_cost=pointer_cost, max_iter=max_iter, tol=1e-5)
            ratio = np.array([method.fit(corpus).objective_ for corpus in corpora]) / optima
            name = "max_iter=100" if max_iter else "fast"
            print(f"  {name:12} / integer optimum mean {ratio.mean():.5f}  worst {ratio.max():.5f}", end="")
            print(f"  optimal {np.count_nonzero(ratio < 1 + 1e-9)}/{EXACT_CORPORA}")


def optimum(documents: list[np.ndarray], pointer_cost: float, *, integer: bool = True) -> float:
    """Solve equation (1), or its linear relaxation, exactly."""
    grams: dict[tuple[int, ...], int] = {}
    words, columns, of, base = [], [], [], 0
    for document in documents:
        for s in range(len(document)):
            for t in range(1, min(5, len(document) - s) + 1):
                words += range(base + s, base + s + t)
                columns += [len(of)] * t
                of.append(grams.setdefault(tuple(document[s : s + t].tolist()), len(grams)))
        base += len(document)
    m, width = len(of), len(of) + len(grams)
    cover = sp.csr_matrix((np.ones(len(words)), (words, columns)), shape=(base, width))
    each = np.arange(m)
    link = sp.csr_matrix(
        (np.repeat([1.0, -1.0], m), (np.tile(each, 2), np.append(each, m + np.array(of)))), shape=(m, width)
    )
    cost = np.append(np.full(m, pointer_cost), [len(gram) for gram in grams])
    limits = [LinearConstraint(cover, 1, np.inf), LinearConstraint(link, -np.inf, 0)]
    found = milp(
        cost,
        constraints=limits,
        bounds=Bounds(0, 1),
        integrality=np.full(width, int(integer)),
        options={"mip_rel_gap": 0},
    )
    return found.fun


def index_seconds(documents: list[np.ndarray]) -> None:
    """Seconds to order, concatenate and index all documents."""
    started = time.perf_counter()
    order = canonical_order(documents)
    index = build_index(*concatenate([documents[d] for d in order]), 5)
    seconds = time.perf_counter() - started
    n_pointers = int((index.kgram >= -1).sum())
    print(f"index {seconds:.1f} s: {len(index.words):,} words, {n_pointers:,} pointers, ", end="")
    print(f"{len(index.lengths):,} repeated k-grams")


def whole(documents: list[np.ndarray], pointer_cost: float) -> None:
    """The long solution and the fast one, both against the bound of the long one."""
    bound = 0.0
    for max_iter in (80, 0):
        method = CompressiveKGrams(pointer_cost=pointer_cost, max_iter=max_iter)
        seconds = fit_seconds(method, documents)
        bound = max(bound, method.lower_bound_)
        print(
            f"pointer cost {pointer_cost}, {len(documents):,} documents, max_iter {max_iter}: {seconds:.1f} s, ",
            end="",
        )
        print(
            f"cost {method.objective_:,.2f}, bound {bound:,.2f}, ratio {method.objective_ / bound:.5f}, ",
            end="",
        )
        print(f"{len(method.table_):,} entries, peak {peak_mb():.0f} MB")


def growth(documents: list[np.ndarray]) -> None:
    """How CPU seconds grow from 1,000 messages to all: the slope of their logarithms, over words and over pointers.

    The work is in pointers to k-grams that occur again, and these grow faster than words: the more text, the more of it
    was said before.
    """
    some = np.random.default_rng(0).permutation(len(documents))
    parts = [[documents[d] for d in some[:n]] for n in (1000, 3000, 8000, len(documents))]
    words = [sum(map(len, part)) for part in parts]
    pointers = [len(build_index(*concatenate(part), 5).where) for part in parts]
    print(
        f"words {words}, pointers to k-grams that occur again {pointers}: exponent {_slope(words, pointers):.2f}"
    )
    for max_iter in (0, 20):
        seconds = []
        for part in parts:
            started = time.process_time()
            CompressiveKGrams(pointer_cost=0.5, max_iter=max_iter).fit(part)
            seconds.append(time.process_time() - started)
        print(f"max_iter {max_iter}: CPU s {np.round(seconds, 2).tolist()}, exponent ", end="")
        print(f"{_slope(words, seconds):.2f} over words, {_slope(pointers, seconds):.2f} over these pointers")


def _slope(x: list[int], y: list[float] | list[int]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def path(documents: list[np.ndarray]) -> None:
    """A path of pointer costs on 1,500 messages, warm and each alone."""
    part, costs = documents[:1500], [0.03, 0.1, 0.2, 0.5]
    started = time.perf_counter()
    warm = compression_path(part, costs, max_iter=20)
    warm_seconds = time.perf_counter() - started
    started = time.perf_counter()
    cold = [CompressiveKGrams(pointer_cost=cost, max_iter=20).fit(part) for cost in costs]
    cold_seconds = time.perf_counter() - started
    print(
        f"path of {len(costs)} pointer costs, 1,500 messages: {warm_seconds:.1f} s, alone {cold_seconds:.1f} s"
    )
    for a, b in zip(warm, cold, strict=True):
        gaps = [method.objective_ / max(a.lower_bound_, b.lower_bound_) for method in (a, b)]
        print(f"  {a.pointer_cost}: ratio {gaps[0]:.5f}, alone {gaps[1]:.5f}")


def others(documents: list[np.ndarray]) -> None:
    """All k-grams and LZ77 phrases of the same corpus."""
    for name, method in (("kgrams", AllKGrams()), ("lz77", Lz77())):
        started = time.perf_counter()
        features = method.fit_transform(documents)
        seconds = time.perf_counter() - started
        print(
            f"{name}: {seconds:.1f} s, {features.shape[1]:,} features, {features.nnz:,} entries, "
            f"peak {peak_mb():.0f} MB"
        )


def fit_seconds(method: CompressiveKGrams, documents: list[np.ndarray]) -> float:
    """Return the seconds a fit takes, index and features included."""
    started = time.perf_counter()
    method.fit(documents)
    return time.perf_counter() - started
