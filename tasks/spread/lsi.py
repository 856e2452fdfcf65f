"""LSI on a cluster: workers hold the weights of blocks of documents and multiply them, all else is done here.

A worker reads the counts of its blocks from its own store or the shared root, weighs them once, and keeps them for the
passes of `featurizers._block_krylov`: only the block of vectors travels to it, and of every block a product, (n_terms,
n_vectors), back. Products are added here in the order that one machine adds them in, to the same bits. Features are
made where the weights lie, and written there where the worker sees the unfinished file. Blocks of a worker that dies
are read again by another.
"""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import svd_flip

from textbench.featurizers import lsi
from textbench.featurizers._block_krylov import ROWS, leading_singular_vectors, n_basis
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._weights import are_many
from textbench.tasks import featurize
from textbench.tasks.spread.spans import Span, arrays_in
from textbench.tasks.storage import cluster
from textbench.tasks.storage.blocks import put, write_array_header

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Artifact, Job, Store


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
    vectors = job.open("vectors")
    train: sp.csr_matrix = vectors.matrix("train_counts")
    k = min(featurizer.n_components, *train.shape)
    if train.nnz <= lsi.LARGE or min(train.shape) <= n_basis(k) or not are_many(train):
        featurize.compute(job)
        return
    with cluster.executor(around) as workers:
        _spread(job, workers, featurizer, vectors, train, k)
    featurize.save_arrays(job, "model", featurizer.to_arrays())


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
        rows = _rows_of(job, vectors.folder / f"{part}_counts.npz")
        held[part] = [workers.hold(weighted, job.store, some, shared) for some in rows]
        n_documents[part] = sum(some.shape[0] for some in rows)
    with job.timed("learned"):
        weights = SpreadWeights(
            workers,
            held["train"],
            train.shape,
            lambda step: weighter.transform(train[::step]),
            lambda: job.timed("products"),
        )
        _learn(featurizer, weighter, leading_singular_vectors(weights, k, featurizer.random_state))
    with job.timed("applied"):
        for part, n in n_documents.items():
            _save(job, part, (n, len(featurizer.components_)), featurizer, workers, held[part])


def _rows_of(job: "Job", path: Path) -> list[StoredRows]:
    """Return the rows of a part's counts, as many at a time as their products are added."""
    found, artifact = [], job.inputs["vectors"]
    with np.load(path) as arrays:
        indptr, shape = arrays["indptr"], arrays["shape"].tolist()
    places = [arrays_in(path)[name] for name in ("indices", "data", "indptr")]
    dtypes = tuple(dtype.str for _, dtype in places)
    for start in range(0, shape[0], ROWS):
        stop = min(start + ROWS, shape[0])
        entries = indptr[start].item(), indptr[stop].item()
        spans = [
            Span.of(artifact, path, first + dtype.itemsize * a, first + dtype.itemsize * b)
            for (first, dtype), (a, b) in zip(places, (entries, entries, (start, stop + 1)), strict=True)
        ]
        found.append(StoredRows(tuple(spans), dtypes, (stop - start, shape[1])))
    return found


def weighted(store: "Store", rows: StoredRows, weighter: Any) -> sp.csr_matrix:
    """Return the weights of rows of counts, csr float32 (n_rows, n_terms)."""
    indices, data, indptr = (
        np.frombuffer(span.read(store), dtype) for span, dtype in zip(rows.spans, rows.dtypes, strict=True)
    )
    return weighter.transform(sp.csr_matrix((data, indices, indptr - indptr[0]), rows.shape))


def product(weights: sp.csr_matrix, block: np.ndarray) -> np.ndarray:
    """Return W'W block of some rows W, csr float32 (n_rows, n_terms); block: float32 (n_terms, n_vectors)."""
    return weights.T @ (weights @ block)


class SpreadWeights:
    """Weights whose rows lie on workers, as `featurizers._block_krylov` reads a csr matrix: a sample, and products.

    `rows.T @ (rows @ block)` of rows in turn is computed by the workers, ahead of where it is asked for.
    """

    def __init__(
        self,
        workers: cluster.Workers,
        held: Sequence[Any],
        shape: tuple[int, int],
        sample: Callable[[int], sp.csr_matrix],
        timed: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        """held: blocks of ROWS rows each. sample: gives every n-th row. timed: in which products are waited for."""
        self.shape = shape
        self._workers = workers
        self._held = held
        self._sample = sample
        self._timed = timed

    def __getitem__(self, rows: slice) -> Any:
        return self._sample(rows.step) if rows.step else _BlockOfWeights(self, rows.start // ROWS)

    def product(self, number: int, block: np.ndarray) -> np.ndarray:
        """Return the product of a block of rows; they are asked for from the first on."""
        with self._timed():
            if number == 0:
                shared = self._workers.spread(block)
                self._products = self._workers.each(product, ((held, shared) for held in self._held))
            return next(self._products)


class _BlockOfWeights:
    """A block of rows, and what it gives to be multiplied by its transpose."""

    def __init__(self, weights: SpreadWeights, number: int, by: np.ndarray | None = None) -> None:
        self._weights = weights
        self._number = number
        self._by = by

    @property
    def T(self) -> "_BlockOfWeights":  # noqa: N802
        return self

    def __matmul__(self, other: "np.ndarray | _BlockOfWeights") -> "np.ndarray | _BlockOfWeights":
        if isinstance(other, _BlockOfWeights):
            assert other._by is not None
            return self._weights.product(self._number, other._by)
        return _BlockOfWeights(self._weights, self._number, other)


def _learn(featurizer: lsi.Lsi, weighter: Any, found: tuple[np.ndarray, np.ndarray]) -> None:
    """Give LSI what `fit` does of a decomposition: singular values and right singular vectors, (n_terms, k)."""
    s, V = found
    rank = np.count_nonzero(s > lsi.RANK_TOLERANCE * s[0])
    components = svd_flip(None, V.T[:rank], u_based_decision=False)[1]
    featurizer.weighter_, featurizer.n_features_in_ = weighter, weighter.n_features_in_
    featurizer.components_ = np.ascontiguousarray(components, dtype=np.float32)
    featurizer.singular_values_ = s[:rank].astype(np.float32)


def _save(
    job: "Job",
    part: str,
    shape: tuple[int, int],
    featurizer: lsi.Lsi,
    workers: cluster.Workers,
    held: list[Any],
) -> None:
    """Have a part's features made, each block of documents in its place in `<part>.npy`."""
    path, size = job.folder / f"{part}.npy", 4 * shape[1]
    with path.open("wb") as file:
        start = write_array_header(file, np.dtype(np.float32), *shape)
        file.truncate(start + size * shape[0])
    places = range(start, start + size * shape[0], size * ROWS)
    components = workers.spread(featurizer.components_)
    calls = ((one, components, featurizer.normalize, path, at) for one, at in zip(held, places, strict=True))
    n_zero = n_bad = 0
    for at, (zero, bad, features) in zip(places, workers.each(features_of, calls), strict=True):
        n_zero, n_bad = n_zero + zero, n_bad + bad
        if features is not None:
            put(path, at, features)
    if n_bad:
        raise ValueError(f"{part} features hold {n_bad} values that are NaN or infinite")
    job.zero_rows[part] = n_zero


def features_of(
    weights: sp.csr_matrix, components: np.ndarray, is_normalized: bool, path: Path, at: int
) -> tuple[int, int, np.ndarray | None]:
    """Make the features of some documents, as `Lsi.transform` does of their weights, csr float32 (n, n_terms).

    Returns how many rows are zero, how many values are not finite, and the features, float32 (n, n_components), where
    this process does not see the file, to be written from byte `at` on.
    """
    features = np.ascontiguousarray(weights @ components.T)
    if is_normalized:
        features = normalize(features, copy=False)
    counts = int((~features.any(axis=1)).sum()), int((~np.isfinite(features)).sum())
    if not path.exists():
        return (*counts, features)
    put(path, at, features)
    return (*counts, None)
