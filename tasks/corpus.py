"""Corpora: labelled texts in two parts, how they are stored, and what tells one from another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from textbench.tasks import InputError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from scipy.sparse import csr_matrix

    from textbench.tasks.storage.store import Artifact, Job

Texts: TypeAlias = "list[str] | pyarrow.Array | pyarrow.ChunkedArray"
BLOCK_DOCUMENTS = 2048


@dataclass(frozen=True, eq=False)
class Corpus:
    """A classification corpus: labelled texts, split once and for all into training and test documents.

    `train_targets` and `test_targets` are `(n_documents,)` int64 positions in `target_names`, or, where a
    document has several labels, a csr indicator `(n_documents, n_labels)`. `notes` says what edition of the
    data this is. `train_ids` and `test_ids` name the documents as their source does, where it does. Texts and ids are
    lists of strings, or columns of Arrow. `validation` has the ascending positions, int64, of the training documents on
    which alone tuning is to be done, None where there are none such. Raises InputError where texts and targets do not
    fit together.
    """

    train_texts: Texts
    train_targets: np.ndarray | csr_matrix
    test_texts: Texts
    test_targets: np.ndarray | csr_matrix
    target_names: list[str]
    name: str
    notes: str
    train_ids: Texts | None = None
    test_ids: Texts | None = None
    validation: np.ndarray | None = None

    def __post_init__(self) -> None:
        if len(set(self.target_names)) != len(self.target_names):
            raise InputError(f"data set {self.name}: target names must differ, got {self.target_names}")
        for part, texts, targets, ids in (
            ("training", self.train_texts, self.train_targets, self.train_ids),
            ("test", self.test_texts, self.test_targets, self.test_ids),
        ):
            if not len(texts):
                raise InputError(f"data set {self.name}: it needs at least one {part} document, got none")
            if targets.shape[0] != len(texts):
                raise InputError(
                    f"data set {self.name}: every {part} document needs a target, "
                    f"got {len(texts)} texts and {targets.shape[0]} targets"
                )
            if ids is not None and len(ids) != len(texts):
                raise InputError(
                    f"data set {self.name}: every {part} document needs an id, "
                    f"got {len(texts)} texts and {len(ids)} ids"
                )
            self._check_range(part, targets)

    def _check_range(self, part: str, targets: np.ndarray | csr_matrix) -> None:
        n_names = len(self.target_names)
        if targets.ndim == 2:
            if targets.shape[1] != n_names:
                raise InputError(
                    f"data set {self.name}: the {part} indicator needs a column for each of the {n_names} "
                    f"target names, got {targets.shape[1]}"
                )
            return
        import numpy as np

        if targets.dtype != np.int64:
            raise InputError(f"data set {self.name}: {part} targets must be int64, got {targets.dtype}")
        outside = targets[(targets < 0) | (targets >= n_names)]
        if len(outside):
            raise InputError(
                f"data set {self.name}: {part} targets must lie in 0..{n_names - 1}, got {outside[0]}"
            )


def write_corpus(job: Job, corpus: Corpus, about: Mapping[str, Any]) -> None:
    """Write a corpus's documents, and with its names what else is known of it: source, sha256, licence, citation.

    corpus.json tells them from any other documents too (`identity`).
    """
    train = _columns(corpus.train_texts, corpus.train_targets, corpus.train_ids)
    own: dict[str, Any] = {}
    if corpus.validation is not None:
        rows = set(corpus.validation.tolist())
        train["validation"] = [row in rows for row in range(len(corpus.train_texts))]
        own["n_validation"] = len(rows)
    job.save_table("train", train)
    job.save_table("test", _columns(corpus.test_texts, corpus.test_targets, corpus.test_ids))
    own |= {"name": corpus.name, "notes": corpus.notes, "target_names": corpus.target_names}
    job.save_json("corpus", own | _identity(corpus) | dict(about))


def identity(stored: Artifact) -> dict[str, Any] | None:
    """Return what tells a stored corpus from others, and its size; None for a collection, which has no labels.

    `documents_sha256` is that of the content (`documents_sha256`), `n_train`, `n_test` and `n_labels` are counts.
    """
    about = stored.json("corpus")
    if "documents_sha256" not in about:  # written by an earlier version, or no corpus
        return _identity(read_corpus(stored)) if "train.parquet" in stored.meta["files"] else None
    return {name: about[name] for name in ("documents_sha256", "n_train", "n_test", "n_labels")}


def _identity(corpus: Corpus) -> dict[str, Any]:
    return {
        "documents_sha256": documents_sha256(corpus),
        "n_train": len(corpus.train_texts),
        "n_test": len(corpus.test_texts),
        "n_labels": len(corpus.target_names),
    }


def documents_sha256(corpus: Corpus) -> str:
    """Return the sha256 of a corpus's content: texts and targets of both parts in order, and the names of targets.

    Where some of the training documents are for validation, which ones is part of it; what documents are called is not.

    Equal ones mean the same documents, split and labels, whatever file, code or library they were read by. Before every
    piece stands its length, so that no two contents give the same bytes.
    """
    total = hashlib.sha256()

    def add(n_pieces: int, pieces: Iterable[bytes]) -> None:
        total.update(n_pieces.to_bytes(8, "big"))
        for piece in pieces:
            total.update(len(piece).to_bytes(8, "big"))
            total.update(piece)

    add(len(corpus.target_names), _encoded(corpus.target_names))
    for texts, targets in (
        (corpus.train_texts, corpus.train_targets),
        (corpus.test_texts, corpus.test_targets),
    ):
        add(len(texts), _encoded(texts))
        pieces = _target_bytes(targets)
        add(len(pieces), pieces)
    if corpus.validation is not None:
        add(1, [corpus.validation.astype("<i8").tobytes()])
    return total.hexdigest()


def _encoded(texts: Texts) -> Iterator[bytes]:
    """Yield strings in UTF-8, of a column of Arrow some at a time."""
    for start in range(0, len(texts), BLOCK_DOCUMENTS):
        some = texts[start : start + BLOCK_DOCUMENTS]
        yield from (text.encode() for text in (some if isinstance(some, list) else some.to_pylist()))


def _target_bytes(targets: np.ndarray | csr_matrix) -> tuple[bytes, ...]:
    """Return targets as bytes: one piece where a document has one label, two where it has several."""
    if targets.ndim == 1:
        return (targets.astype("<i8").tobytes(),)
    lists = label_lists(targets)
    return (
        lists.offsets.to_numpy().astype("<i8").tobytes(),
        lists.flatten().to_numpy().astype("<i8").tobytes(),
    )


def _columns(texts: Texts, targets: Any, ids: Texts | None) -> dict[str, Any]:
    named = {} if ids is None else {"id": ids}
    return {"text": texts, "target": label_lists(targets) if targets.ndim == 2 else targets} | named


def read_corpus(corpus: Artifact) -> Corpus:
    """Return a stored corpus."""
    about = corpus.json("corpus")
    train, test = corpus.table("train"), corpus.table("test")
    n_labels = len(about["target_names"])
    return Corpus(
        train_texts=train["text"].to_pylist(),
        train_targets=targets_of(train["target"], n_labels),
        test_texts=test["text"].to_pylist(),
        test_targets=targets_of(test["target"], n_labels),
        target_names=about["target_names"],
        name=about["name"],
        notes=about["notes"],
        train_ids=read_ids(corpus, "train"),
        test_ids=read_ids(corpus, "test"),
        validation=read_validation(corpus),
    )


def read_texts(corpus: Artifact, part: str) -> Iterator[str]:
    """Yield the texts of the stored "train" or "test" documents, few of them in memory."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(corpus.folder / f"{part}.parquet") as file:
        for batch in file.iter_batches(BLOCK_DOCUMENTS, columns=["text"]):
            yield from batch.column(0).to_pylist()


def read_ids(corpus: Artifact, part: str) -> list[str] | None:
    """Return what the source calls the "train" or "test" documents; None where it has no names for them."""
    import pyarrow.parquet

    names = pyarrow.parquet.read_schema(corpus.folder / f"{part}.parquet").names
    return corpus.table(part, ["id"])["id"].to_pylist() if "id" in names else None


def read_validation(corpus: Artifact) -> np.ndarray | None:
    """Return the rows, int64, of the training documents on which alone tuning is to be done; None without such."""
    import numpy as np

    if "n_validation" not in corpus.json("corpus"):
        return None
    return np.flatnonzero(corpus.table("train", ["validation"])["validation"].to_numpy())


def read_targets(corpus: Artifact, part: str) -> np.ndarray | csr_matrix:
    """Return the targets of the "train" or "test" documents, without reading their texts.

    (n_documents,) int64, or csr int8 (n_documents, n_labels) where documents have several labels.
    """
    n_labels = len(corpus.json("corpus")["target_names"])
    return targets_of(corpus.table(part, columns=["target"])["target"], n_labels)


def label_lists(indicator: csr_matrix) -> pyarrow.ListArray:
    """Return each document's labels as a list of ascending column numbers, for a parquet column."""
    import numpy as np
    import pyarrow

    canonical = indicator.tocsr(copy=True)
    canonical.eliminate_zeros()
    canonical.sum_duplicates()
    labels = pyarrow.array(canonical.indices.astype(np.int64))
    return pyarrow.ListArray.from_arrays(pyarrow.array(canonical.indptr.astype(np.int32)), labels)


def targets_of(column: pyarrow.ChunkedArray, n_labels: int) -> np.ndarray | csr_matrix:
    """Return a column of targets: ints (n_documents,), or of lists an indicator, csr int8 (n_documents, n_labels)."""
    import pyarrow

    if not pyarrow.types.is_list(column.type):
        return column.to_numpy()
    import numpy as np
    from scipy.sparse import csr_matrix

    labels = column.combine_chunks()
    offsets = np.concatenate([[0], np.cumsum(labels.value_lengths().to_numpy())])
    indices = labels.flatten().to_numpy()
    ones = np.ones(len(indices), dtype=np.int8)
    return csr_matrix((ones, indices, offsets), shape=(len(labels), n_labels))
