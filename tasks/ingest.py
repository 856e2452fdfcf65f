"""Ingest: load a data set and store its documents."""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasks import catalogue
from tasks.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from scipy.sparse import csr_matrix

    from tasks.datasets import Corpus
    from tasks.store import Artifact, Job

# What a data set's file says of its origin, there in capitals.
KNOWN = ("source", "sha256", "licence", "citation")


def reference(dataset: str) -> Reference:
    """Return the corpus artifact of a data set: train.parquet, test.parquet (text, target), corpus.json.

    A target is a position in target_names (corpus.json), or a list of them where documents have several labels.
    """
    entry = catalogue.dataset(dataset)
    return refer(
        "tasks.ingest:compute", {"dataset": dataset}, uses=entry.code("load", *map(str.upper, KNOWN))
    )


def compute(job: "Job") -> None:
    """Load the data set and write its documents and what is known of it."""
    module = catalogue.dataset(job.params["dataset"]).load()
    about = {name: getattr(module, name.upper()) for name in KNOWN}
    write_corpus(job, module.load(), about)


def write_corpus(job: "Job", corpus: "Corpus", about: Mapping[str, Any]) -> None:
    """Write a corpus's documents, and with its names what else is known of it: source, sha256, licence, citation.

    corpus.json tells them from any other documents too (`identity`).
    """
    job.save_table("train", {"text": corpus.train_texts, "target": _column(corpus.train_targets)})
    job.save_table("test", {"text": corpus.test_texts, "target": _column(corpus.test_targets)})
    own = {"name": corpus.name, "notes": corpus.notes, "target_names": corpus.target_names}
    job.save_json("corpus", own | _identity(corpus) | dict(about))


def identity(stored: "Artifact") -> dict[str, Any] | None:
    """Return what tells a stored corpus from others, and its size; None for a collection, which has no labels.

    `documents_sha256` is that of the content (`documents_sha256`), `n_train`, `n_test` and `n_labels` are counts.
    """
    about = stored.json("corpus")
    if "documents_sha256" not in about:  # written by an earlier version, or no corpus
        return _identity(read_corpus(stored)) if "train.parquet" in stored.meta["files"] else None
    return {name: about[name] for name in ("documents_sha256", "n_train", "n_test", "n_labels")}


def _identity(corpus: "Corpus") -> dict[str, Any]:
    return {
        "documents_sha256": documents_sha256(corpus),
        "n_train": len(corpus.train_texts),
        "n_test": len(corpus.test_texts),
        "n_labels": len(corpus.target_names),
    }


def documents_sha256(corpus: "Corpus") -> str:
    """Return the sha256 of a corpus's content: texts and targets of both parts in order, and the names of targets.

    Equal ones mean the same documents, split and labels, whatever file, code or library they were read by. Before every
    piece stands its length, so that no two contents give the same bytes.
    """
    total = hashlib.sha256()

    def add(*pieces: bytes) -> None:
        total.update(len(pieces).to_bytes(8, "big"))
        for piece in pieces:
            total.update(len(piece).to_bytes(8, "big") + piece)

    add(*(name.encode() for name in corpus.target_names))
    for texts, targets in (
        (corpus.train_texts, corpus.train_targets),
        (corpus.test_texts, corpus.test_targets),
    ):
        add(*(text.encode() for text in texts))
        add(*_target_bytes(targets))
    return total.hexdigest()


def _target_bytes(targets: "np.ndarray | csr_matrix") -> tuple[bytes, ...]:
    """Return targets as bytes: one piece where a document has one label, two where it has several."""
    if targets.ndim == 1:
        return (targets.astype("<i8").tobytes(),)
    lists = label_lists(targets)
    return (
        lists.offsets.to_numpy().astype("<i8").tobytes(),
        lists.flatten().to_numpy().astype("<i8").tobytes(),
    )


def read_corpus(corpus: "Artifact") -> "Corpus":
    """Return a stored corpus."""
    from tasks.datasets import Corpus

    about = corpus.json("corpus")
    train, test = corpus.table("train"), corpus.table("test")
    n_labels = len(about["target_names"])
    return Corpus(
        train_texts=train["text"].to_pylist(),
        train_targets=_targets(train["target"], n_labels),
        test_texts=test["text"].to_pylist(),
        test_targets=_targets(test["target"], n_labels),
        target_names=about["target_names"],
        name=about["name"],
        notes=about["notes"],
    )


def read_targets(corpus: "Artifact", part: str) -> "np.ndarray | csr_matrix":
    """Return the targets of the "train" or "test" documents, without reading their texts.

    (n_documents,) int64, or csr int8 (n_documents, n_labels) where documents have several labels.
    """
    n_labels = len(corpus.json("corpus")["target_names"])
    return _targets(corpus.table(part, columns=["target"])["target"], n_labels)


def label_lists(indicator: "csr_matrix") -> "pyarrow.ListArray":
    """Return each document's labels as a list of ascending column numbers, for a parquet column."""
    import numpy as np
    import pyarrow

    canonical = indicator.tocsr(copy=True)
    canonical.eliminate_zeros()
    canonical.sum_duplicates()
    labels = pyarrow.array(canonical.indices.astype(np.int64))
    return pyarrow.ListArray.from_arrays(pyarrow.array(canonical.indptr.astype(np.int32)), labels)


def _column(targets: "np.ndarray | csr_matrix") -> Any:
    return label_lists(targets) if targets.ndim == 2 else targets


def _targets(column: "pyarrow.ChunkedArray", n_labels: int) -> "np.ndarray | csr_matrix":
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
