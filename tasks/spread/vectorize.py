"""Vectorize on a cluster: workers read, tokenise and count blocks of documents; what they find is put together here.

A task is a block of row groups of the stored texts, which a worker reads from its own store or the shared root. It
keeps its documents as packed numbers, and tells its terms, with how many documents and tokens have each. From these
follow the vocabulary and the place of every block's ids and counts in the files; then each is counted where it lies. A
worker that sees the unfinished files (of this machine, or in a folder that both see) writes its block there, and any
other sends it. What a killed worker began is begun again by another and gives the same bytes in the same place.
"""

import io
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textbench.tasks import vectorize, vectors_of_columns
from textbench.tasks.spread.spans import Span
from textbench.tasks.storage import cluster
from textbench.tasks.storage.blocks import begin_array, put, save_rows
from textbench.tasks.token_bytes import Vocabulary, characters
from textbench.tasks.tokens import TokenRule, kept_terms, numbered

if TYPE_CHECKING:
    import pyarrow

    from textbench.tasks.storage.recipe import Reference
    from textbench.tasks.storage.store import Job, Store

MANY_BYTES = 2**26  # of both parts' files; fewer are counted here sooner than they are spread
BLOCK_DOCUMENTS = 2**16  # of a task at most, but for a row group that has more
TASKS = 3  # a thread of the cluster


class StoredDocuments(NamedTuple):
    """Row groups of a stored part (`metadata`: pyarrow's of its file), and where their texts are."""

    part: str
    groups: list[int]
    metadata: Any
    span: Span


@dataclass(frozen=True, eq=False)
class ReadDocuments:
    """The documents of a task: packed, their tokens' terms int32 (n_tokens,), -1 for none, and these terms."""

    blocks: list[vectors_of_columns.Block]
    of_token: np.ndarray
    terms: list[str]


class TermsTold(NamedTuple):
    """What a task's documents have: terms, in how many of them each is, and how often; int64 (n_terms,).

    n_documents: their number. n_tokens: that of their tokens, those that are no term included.
    """

    terms: "pyarrow.Array"
    df: np.ndarray
    tf: np.ndarray
    n_documents: int
    n_tokens: int


class PlacesInFiles(NamedTuple):
    """Where a task's ids, columns and counts begin, in bytes, in files that are there; `column`: dtype of columns."""

    files: tuple[Path, ...]
    at: tuple[int, ...]
    column: str


class Counted(NamedTuple):
    """How many ids and how many entries each document of a task has, int64 (n_documents,); the pieces not written.

    A piece is a file, where in it, in bytes, and an array.
    """

    lengths: np.ndarray
    sizes: np.ndarray
    pieces: list[tuple[Path, int, np.ndarray]]


def compute(job: "Job") -> None:
    """As `tasks.vectorize.compute`, which computes what is small, has n-grams, or a rule that bytes do not follow."""
    rule, corpus = TokenRule(**job.params["rule"]), job.open("corpus")
    paths = {part: corpus.folder / f"{part}.parquet" for part in vectorize.PARTS}
    n_bytes = sum(path.stat().st_size for path in paths.values())
    around = job.store.cluster
    if around is None or n_bytes < MANY_BYTES or characters(rule) is None or rule.max_n > 1:
        vectorize.compute(job)
        return
    with cluster.executor(around) as workers:
        given = [
            documents
            for part, path in paths.items()
            for documents in _tasks(job.inputs["corpus"], part, path, TASKS * workers.n_threads)
        ]
        with job.timed("read"):
            held, asked = [], []
            for documents in given:
                held.append(workers.hold(read, job.store, documents, rule))
                asked.append(workers.submit(tell, held[-1]))  # as soon as they are read, before others are
            told: list[TermsTold] = [one.result() for one in asked]
        with job.timed("vocabulary"):
            learned = [documents.part == "train" or job.params["transductive"] for documents in given]
            terms, finals = _vocabulary(told, learned, rule)
        with job.timed("counted"):
            calls = {}
            for part in vectorize.PARTS:
                own = [i for i, documents in enumerate(given) if documents.part == part]
                calls[part] = _begin(job, part, [(held[i], told[i], finals[i]) for i in own], len(terms))
            found = workers.each(count, itertools.chain.from_iterable(calls.values()))
            for part in calls:  # what is left to do of one is done while the next is counted
                counted = list(map(_written, itertools.islice(found, len(calls[part]))))
                _finish(job, part, counted, len(terms))
    job.save_json("terms", terms)


def _tasks(corpus: "Reference", part: str, path: Path, n: int) -> Iterator[StoredDocuments]:
    """Yield a part's documents in at least n tasks, if it has as many row groups."""
    from pyarrow.parquet import read_metadata

    metadata = read_metadata(path)
    most = min(BLOCK_DOCUMENTS, -(-metadata.num_rows // n))
    waiting: list[int] = []
    for i in range(metadata.num_row_groups):
        waiting.append(i)
        n_waiting = sum(metadata.row_group(k).num_rows for k in waiting)
        is_last = i + 1 == metadata.num_row_groups
        if is_last or n_waiting + metadata.row_group(i + 1).num_rows > most:
            chunks = [_text_chunk(metadata.row_group(k)) for k in (waiting[0], i)]
            span = Span.of(corpus, path, chunks[0][0], chunks[1][1])
            yield StoredDocuments(part, waiting, metadata, span)
            waiting = []


def _text_chunk(group: Any) -> tuple[int, int]:
    """Return where in the file the texts of a row group begin and end."""
    columns = (group.column(j) for j in range(group.num_columns))
    chunk = next(column for column in columns if column.path_in_schema == "text")
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    return start, start + chunk.total_compressed_size


class _PartOfFile(io.BytesIO):
    """Some bytes of a file, found where they are in it."""

    def __init__(self, content: bytes, start: int) -> None:
        super().__init__(content)
        self._start = start

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return super().seek(offset - (self._start if whence == io.SEEK_SET else 0), whence) + self._start

    def tell(self) -> int:
        return super().tell() + self._start


def texts(store: "Store", documents: StoredDocuments) -> "Iterator[pyarrow.Array]":
    """Yield the texts of a task, some documents at a time."""
    from pyarrow.parquet import ParquetFile

    source = _PartOfFile(documents.span.read(store), documents.span.start)
    with ParquetFile(source, metadata=documents.metadata, pre_buffer=False) as file:
        size, groups = vectorize.BLOCK_DOCUMENTS, documents.groups
        for batch in file.iter_batches(size, row_groups=groups, columns=["text"], use_threads=False):
            yield batch.column(0)


def read(store: "Store", documents: StoredDocuments, rule: TokenRule) -> ReadDocuments:
    """Return a task's documents, read and tokenised."""
    known = characters(rule)
    assert known is not None
    vocabulary = Vocabulary(rule, known)
    given = filter(len, texts(store, documents))
    blocks = [vectors_of_columns._read((0, vocabulary), some) for some in given]
    terms, (of_token,) = numbered([vocabulary.tokens()], rule)
    return ReadDocuments(blocks, of_token, terms)


def tell(done: ReadDocuments) -> TermsTold:
    """Return what is known of a task's documents once they are read."""
    import pyarrow as pa

    found = np.zeros((len(done.terms) + 1, 2), dtype=np.int64)
    tf = np.zeros(len(done.terms), dtype=np.int64)
    of_token = [np.append(done.of_token, np.int32(-1))]
    for block in done.blocks:
        ids, lengths = vectors_of_columns.terms_of(block, of_token)
        vectors_of_columns._add_documents(ids, lengths, found)
        tf += np.bincount(ids, minlength=len(tf))
    n_tokens = sum(int(block.offsets[-1]) for block in done.blocks)
    terms = pa.array(done.terms, pa.large_string())
    return TermsTold(terms, found[:-1, 0].copy(), tf, int(found[-1, 0]), n_tokens)


def _vocabulary(
    told: list[TermsTold], learned: list[bool], rule: TokenRule
) -> tuple[list[str], list[np.ndarray]]:
    """Return the terms, and for each task the place of its terms among them, int32; learned: from which tasks."""
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = pa.concat_arrays([one.terms for one in told]).dictionary_encode()
    # As `kept_terms` sorts, which is sooner done then.
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    found = encoded.dictionary.take(order).to_pylist()
    numbers = np.split(place[encoded.indices.to_numpy()], np.cumsum([len(one.terms) for one in told])[:-1])
    df, n_documents = np.zeros(len(found), dtype=np.int64), 0
    for one, number in itertools.compress(zip(told, numbers, strict=True), learned):
        df[number] += one.df
        n_documents += one.n_documents
    terms, final = kept_terms(found, df, n_documents, rule)
    return terms, [final[number] for number in numbers]


def _begin(
    job: "Job", part: str, tasks: list[tuple[Any, TermsTold, np.ndarray]], n_terms: int
) -> list[tuple[Any, ...]]:
    """Begin a part's files, and return the calls that fill them, each of which has a task counted for its place."""
    n_ids, n_entries = (
        np.cumsum([0, *(int(counts[final >= 0].sum()) for counts, final in both)])
        for both in (
            [(told.tf, final) for _, told, final in tasks],
            [(told.df, final) for _, told, final in tasks],
        )
    )
    # As `tasks.vectorize` chooses.
    is_long = sum(told.n_tokens for _, told, _ in tasks) > np.iinfo(np.int32).max
    columns = np.dtype(np.int64 if is_long else np.int32)
    files, starts = [], []
    for name, dtype, n_before in (
        ("ids", np.dtype(np.int32), n_ids),
        ("counts.indices", columns, n_entries),
        ("counts.data", np.dtype(np.int32), n_entries),
    ):
        files.append(job.folder / f"{part}_{name}.npy")
        begun = begin_array(files[-1], dtype, int(n_before[-1]))
        starts.append((begun + dtype.itemsize * n_before).tolist())
    places = [PlacesInFiles(tuple(files), at, columns.str) for at in zip(*starts, strict=True)]
    return [(held, final, n_terms, place) for (held, _, final), place in zip(tasks, places, strict=False)]


def _finish(job: "Job", part: str, found: list[Counted], n_terms: int) -> None:
    """Write what is not the tasks' to write into a part's files."""
    lengths, sizes = (np.concatenate([one[i] for one in found]) for i in range(2))
    job.save_array(f"{part}_offsets", np.concatenate([[0], np.cumsum(lengths)]))
    job.zero_rows[f"{part}_counts"] = int(np.count_nonzero(sizes == 0))
    save_rows(job.folder, f"{part}_counts", sizes, n_terms)


def _written(counted: Counted) -> Counted:
    """Write the pieces that a worker sent."""
    for path, at, array in counted.pieces:
        put(path, at, array)
    return counted._replace(pieces=[])


def count(done: ReadDocuments, final: np.ndarray, n_terms: int, places: PlacesInFiles) -> Counted:
    """Count a task's documents and write ids and counts to their places, where this process sees the files.

    Returns the pieces where it does not. final: int32 (n_terms of the task,), which of the n_terms terms each is, -1
    for none.
    """
    of_token = [np.append(np.append(final, np.int32(-1))[done.of_token], np.int32(-1))]
    tally = vectors_of_columns.Tally.of(n_terms)
    is_here = all(path.exists() for path in places.files)
    starts = list(places.at)
    lengths, sizes = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    pieces: list[tuple[Path, int, np.ndarray]] = []
    for block in done.blocks:
        ids, length = vectors_of_columns.terms_of(block, of_token)
        indices, data, size = vectors_of_columns.count_columns(ids[None], length, tally)
        indices = indices.astype(places.column, copy=False)
        for i, array in enumerate((ids, indices, data)):
            if is_here:
                put(places.files[i], starts[i], array)
            else:
                pieces.append((places.files[i], starts[i], array))
            starts[i] += array.nbytes
        lengths.append(length)
        sizes.append(size)
    return Counted(np.concatenate(lengths), np.concatenate(sizes), pieces)
