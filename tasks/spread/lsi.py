"""LSI on a cluster: its workers compute the calls of `featurizers._block_krylov`, which adds up to the same bits.

A worker reads the counts of its blocks from its own store or the shared root, weighs them once, and keeps them for all
passes. It keeps the blocks of vectors of its share of the terms too: before a pass each gets from the others what they
have, and after it the products of their documents with its terms. Here no more is done than what small matrices need.
Features are made where the weights lie, and written there where the worker sees the unfinished file. What a worker that
dies had is computed again by another.
"""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from textbench.featurizers import lsi
from textbench.featurizers._block_krylov import (
    SHARES,
    blocks_of_rows,
    decompose,
    joined,
    multiplied,
    n_basis,
    samples,
    slices_of,
)
from textbench.featurizers._kernels import one_blas_thread
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._weights import are_many
from textbench.tasks import featurize
from textbench.tasks.spread.spans import Span, arrays_in
from textbench.tasks.storage import cluster
from textbench.tasks.storage.blocks import begin_array, put

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Artifact, Job, Store

URGENT = cluster.PRIORITY + 1


class StoredRows(NamedTuple):
    """Rows of a stored csr matrix: where their columns, counts and ends are, the dtypes of these, and the shape."""

    spans: tuple[Span, ...]
    dtypes: tuple[str, ...]
    shape: tuple[int, int]


def compute(job: "Job") -> None:
    """As `tasks.featurize.compute`, which computes all but LSI of many documents learned from the training part."""
    around, params = job.store.cluster, job.params
    is_lsi = params["method"] == "lsi" and params.get("transductive") is False
    if around is None or job.store.workers < 2 or not is_lsi:
        featurize.compute(job)
        return
    featurizer = featurize.builder(params["method"], params["params"], params["seed"])[0]()
    check_parameters(featurizer, lsi.ACCEPTS)
    with cluster.executor(around) as workers:
        _imported = workers.everywhere(_nothing)  # what a new worker needs a second or two for, meanwhile
        vectors = job.open("vectors")
        train: sp.csr_matrix = vectors.matrix("train_counts")
        k = min(featurizer.n_components, *train.shape)
        if train.nnz <= lsi.LARGE or min(train.shape) <= n_basis(k) or not are_many(train):
            featurize.compute(job)
            return
        _spread(job, workers, featurizer, vectors, train, k)
    featurize.save_arrays(job, "model", featurizer.to_arrays())


def _nothing() -> None:
    """Have a worker import this module."""


def _spread(
    job: "Job",
    workers: cluster.Workers,
    featurizer: lsi.Lsi,
    vectors: "Artifact",
    train: sp.csr_matrix,
    k: int,
) -> None:
    """Learn k directions from the training counts, and save the features of both parts."""
    weighter = lsi.WEIGHTINGS[featurizer.weighting]().fit(train)
    shared, held, n_documents = workers.spread(weighter), {}, {}
    for part in ("train", "test"):
        rows = _rows_of(job, vectors.folder, f"{part}_counts")
        held[part] = [
            [workers.hold(weighted, job.store, block, shared, at=i / len(rows)) for block in share]
            for i, share in enumerate(rows)
        ]
        n_documents[part] = sum(block.shape[0] for share in rows for block in share)
    with job.timed("learned"), one_blas_thread():
        sampled = [workers.spread(weighter.transform(half)) for half in samples(train)]
        calls = OnOneThread(workers)
        found = decompose(calls, held["train"], sampled, train.shape[1], k, featurizer.random_state)
        rank = _learn(featurizer, weighter, found[0])
        directions = calls.everywhere(directions_of, found[1], rank)
    with job.timed("applied"), ThreadPoolExecutor(1) as pool:
        V = pool.submit(joined, found[1])
        _save(job, workers, directions, rank, featurizer.normalize, n_documents, held)
        featurizer.components_ = np.ascontiguousarray(V.result().T[:rank])


def _rows_of(job: "Job", folder: Path, name: str) -> list[list[StoredRows]]:
    """Return the rows of a stored csr matrix, in the blocks that are multiplied by themselves."""
    artifact = job.inputs["vectors"]
    files = [folder / f"{name}.{part}.npy" for part in ("indices", "data")]
    mapped = [np.load(path, mmap_mode="r", allow_pickle=False) for path in files]
    places = [(path, array.offset, array.dtype) for path, array in zip(files, mapped, strict=True)]
    path = folder / f"{name}.npz"
    with np.load(path, allow_pickle=False) as about:
        indptr, (n_documents, n_terms) = about["indptr"], about["shape"].tolist()
    places.append((path, *arrays_in(path)["indptr"]))
    dtypes = tuple(dtype.str for *_, dtype in places)

    def stored(start: int, stop: int) -> StoredRows:
        entries = indptr[start].item(), indptr[stop].item()
        spans = [
            Span.of(artifact, path, *(first + dtype.itemsize * i for i in ends))
            for (path, first, dtype), ends in zip(places, (entries, entries, (start, stop + 1)), strict=True)
        ]
        return StoredRows(tuple(spans), dtypes, (stop - start, n_terms))

    return [[stored(*block) for block in share] for share in blocks_of_rows(n_documents)]


def weighted(store: "Store", rows: StoredRows, weighter: Any) -> sp.csr_matrix:
    """Return the weights of rows of counts, csr float32 (n_rows, n_terms)."""
    indices, data, indptr = (
        np.frombuffer(span.read(store), dtype) for span, dtype in zip(rows.spans, rows.dtypes, strict=True)
    )
    return weighter.transform(sp.csr_matrix((data, indices, indptr - indptr[0]), rows.shape))


class OnOneThread:
    """The calls of workers, each of whose matrix products are one thread's, as those of one machine are.

    They go before weights that no call has asked for, which fill the time that a worker would wait.
    """

    def __init__(self, workers: cluster.Workers) -> None:
        self._workers = workers
        self.spread = workers.spread

    @property
    def n_groups(self) -> int:
        """One for each thread, so that nothing waits, or a share each where threads cannot have equally many."""
        n = self._workers.n_threads
        return n if n < SHARES and SHARES % n == 0 else SHARES

    def hold(self, fn: Callable[..., Any], /, *args: Any, at: float | None = None) -> Any:
        """Return what stands for a call's result."""
        return self._workers.hold(partial(_on_one_thread, fn), *args, at=at, priority=URGENT)

    def everywhere(self, fn: Callable[..., Any], /, *args: Any) -> list[Any]:
        """Return what stands for the results of a call by each worker."""
        return self._workers.everywhere(partial(_on_one_thread, fn), *args, priority=URGENT)


def _on_one_thread(fn: Callable[..., Any], *args: Any) -> Any:
    with one_blas_thread():
        return fn(*args)


def _learn(featurizer: lsi.Lsi, weighter: Any, s: np.ndarray) -> int:
    """Give LSI what `fit` does of a decomposition, all but its directions; return how many of them are kept.

    s: the singular values, float64 (k,).
    """
    rank = np.count_nonzero(s > lsi.RANK_TOLERANCE * s[0])
    featurizer.weighter_, featurizer.n_features_in_ = weighter, weighter.n_features_in_
    featurizer.singular_values_ = s[:rank].astype(np.float32)
    return int(rank)


def directions_of(V: list[list[np.ndarray]], rank: int) -> list[np.ndarray]:
    """Return `slices_of` the first vectors; V: groups of shares of the terms, float32 (., k) each."""
    return slices_of([[share[:, :rank] for share in group] for group in V])


def _save(
    job: "Job",
    workers: cluster.Workers,
    directions: list[Any],
    k: int,
    is_normalized: bool,
    n_documents: dict[str, int],
    held: dict[str, list[list[Any]]],
) -> None:
    """Have the features of both parts made, each block of documents in its place in `<part>.npy`.

    directions: what stands for all k of them, of each worker.
    """
    calls: list[Any] = []
    for part, n in n_documents.items():
        path = job.folder / f"{part}.npy"
        begun = begin_array(path, np.float32, n, k)
        for i, share in enumerate(blocks_of_rows(n)):
            turn = i / SHARES * workers.n_threads % 1  # a worker has neighbours: all begin with their first
            for weights, (start, _) in zip(held[part][i], share, strict=True):
                here = directions[i * len(directions) // SHARES]
                call = weights, here, is_normalized, path, begun + 4 * k * start
                calls.append((turn, call))
    calls = [call for _, call in sorted(calls, key=itemgetter(0))]
    n_zero, n_bad = Counter[str](), Counter[str]()
    for (*_, path, at), (zero, bad, features) in zip(calls, workers.each(features_of, calls), strict=True):
        n_zero[path.stem] += zero
        n_bad[path.stem] += bad
        if features is not None:
            put(path, at, features)
    for part in n_documents:
        if n_bad[part]:
            raise ValueError(f"{part} features hold {n_bad[part]} values that are NaN or infinite")
        job.zero_rows[part] = n_zero[part]


def features_of(
    weights: sp.csr_matrix, directions: list[np.ndarray], is_normalized: bool, path: Path, at: int
) -> tuple[int, int, np.ndarray | None]:
    """Make the features of some documents, as `Lsi.transform` does of their weights, csr float32 (n, n_terms).

    directions: `slices_of` them, float32 (n_terms, .) each. Returns how many rows are zero, how many values are not
    finite, and the features, float32 (n, n_components), where this process does not see the file, to be written from
    byte `at` on. A piece is written while it is in the core's cache.
    """
    is_here, n_zero, n_bad, kept = path.exists(), 0, 0, []
    for features in multiplied(weights, directions):
        if is_normalized:
            normalize(features, copy=False)
        n_zero += int((~features.any(axis=1)).sum())
        n_bad += int((~np.isfinite(features)).sum())
        if is_here:
            put(path, at, features)
            at += features.nbytes
        else:
            kept.append(features.copy())
    return n_zero, n_bad, None if is_here else np.concatenate(kept)
