"""Vectorize: turn texts into token ids in reading order, a vocabulary, and a csr count matrix; or leave them alone."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import pyarrow

    from textbench.tasks.storage.store import Artifact, Job
    from textbench.tasks.tokens import TokenRule, Vectors

MANY_BYTES = 2**20  # of both parts' files; fewer are read sooner than the kernel is loaded
BLOCK_DOCUMENTS = 2048
BUFFER_BYTES = 2**20


def reference(corpus: Reference, rule: Mapping[str, Any] | None, transductive: bool) -> Reference:
    """Return the vectors artifact of a corpus under a token rule (the fields of `tasks.tokens.TokenRule`).

    Files: terms.json, and for train and test `<part>_ids.npy` int32, `<part>_offsets.npy` int64 and `<part>_counts.npz`
    csr (n_documents, n_terms). Without a rule, as for a method that reads raw texts, there are no terms and nothing
    else: what stands in the vectors' place then depends on the corpus and the protocol alone.
    """
    params = {"rule": None if rule is None else dict(rule), "transductive": transductive}
    function = "leave_alone" if rule is None else "compute"
    return refer(f"textbench.tasks.vectorize:{function}", params, {"corpus": corpus})


def leave_alone(job: "Job") -> None:
    """Write that there are no terms: the texts are read as they are."""
    job.save_json("terms", [])


def compute(job: "Job") -> None:
    """Tokenise both parts under the rule; the vocabulary comes from training texts, or from both if transductive."""
    from textbench.tasks.tokens import TokenRule

    rule = TokenRule(**job.params["rule"])
    vectors = vectors_of(
        job.open("corpus"), rule, transductive=job.params["transductive"], n_threads=job.store.workers
    )
    for part in ("train", "test"):
        job.save_array(f"{part}_ids", getattr(vectors, f"{part}_ids"))
        job.save_array(f"{part}_offsets", getattr(vectors, f"{part}_offsets"))
        job.save_matrix(f"{part}_counts", getattr(vectors, f"{part}_counts"))
    job.save_json("terms", vectors.terms)


def vectors_of(corpus: "Artifact", rule: "TokenRule", *, transductive: bool, n_threads: int = 1) -> "Vectors":
    """Return the vectors of a stored corpus: many texts are read as bytes where the rule allows it, others as strings.

    Which way does not matter to any number.
    """
    import pyarrow.parquet

    from textbench.tasks.tokens import vectorize

    paths = [corpus.folder / f"{part}.parquet" for part in ("train", "test")]
    if sum(path.stat().st_size for path in paths) >= MANY_BYTES:
        from textbench.tasks.token_bytes import characters
        from textbench.tasks.vectors_of_columns import vectorize_blocks

        known = characters(rule)
        if known is not None:
            train, test = map(_blocks, paths)
            return vectorize_blocks(train, test, rule, known, transductive=transductive, n_threads=n_threads)
    train_texts, test_texts = (
        pyarrow.parquet.read_table(path, columns=["text"])["text"].to_pylist() for path in paths
    )
    return vectorize(train_texts, test_texts, rule, transductive=transductive)


def _blocks(path: "Path") -> "Iterator[pyarrow.Array]":
    """Yield the texts of a Parquet file, so many documents at a time."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
        for batch in file.iter_batches(BLOCK_DOCUMENTS, columns=["text"], use_threads=False):
            yield batch.column(0)
