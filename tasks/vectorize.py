"""Vectorize: turn texts into token ids in reading order, a vocabulary, and a csr count matrix; or leave them alone."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import pyarrow

    from textbench.tasks.storage.store import Job
    from textbench.tasks.tokens import TokenRule
    from textbench.tasks.vectors_of_columns import LearnedBlocks

PARTS = ("train", "test")
MANY_BYTES = 2**20  # of both parts' files; fewer are read sooner than the kernel is loaded
BLOCK_DOCUMENTS = 2048
BUFFER_BYTES = 2**20


def reference(corpus: Reference, rule: Mapping[str, Any] | None, transductive: bool) -> Reference:
    """Return the vectors artifact of a corpus under a token rule (the fields of `tasks.tokens.TokenRule`).

    Files: terms.json, and for train and test `<part>_ids.npy` int32, `<part>_offsets.npy` int64 and those of
    `tasks.storage.blocks.CsrFiles`, named `<part>_counts`: csr (n_documents, n_terms). Without a rule, as for a method
    that reads raw texts, there are no terms and nothing else: what stands in the vectors' place then depends on the
    corpus and the protocol alone.
    """
    params = {"rule": None if rule is None else dict(rule), "transductive": transductive}
    function = "leave_alone" if rule is None else "compute"
    return refer(f"textbench.tasks.vectorize:{function}", params, {"corpus": corpus})


def leave_alone(job: "Job") -> None:
    """Write that there are no terms: the texts are read as they are."""
    job.save_json("terms", [])


def compute(job: "Job") -> None:
    """Tokenise both parts under the rule; the vocabulary comes from training texts, or from both if transductive.

    Many texts are read as bytes and written by blocks where the rule allows it, others are strings and arrays. Which
    way does not matter to any bit.
    """
    from textbench.tasks.tokens import TokenRule

    rule, transductive = TokenRule(**job.params["rule"]), job.params["transductive"]
    paths = [job.open("corpus").folder / f"{part}.parquet" for part in PARTS]
    if sum(path.stat().st_size for path in paths) >= MANY_BYTES:
        from textbench.tasks.token_bytes import characters

        if (known := characters(rule)) is not None:
            from textbench.tasks.vectors_of_columns import learn_blocks

            train, test = map(_blocks, paths)
            workers = job.store.workers
            learned = learn_blocks(train, test, rule, known, transductive=transductive, n_threads=workers)
            _save_blocks(job, learned)
            return
    _save(job, rule, paths, transductive=transductive)


def _save(job: "Job", rule: "TokenRule", paths: "list[Path]", *, transductive: bool) -> None:
    import pyarrow.parquet

    from textbench.tasks.tokens import vectorize

    train, test = (pyarrow.parquet.read_table(path, columns=["text"])["text"].to_pylist() for path in paths)
    vectors = vectorize(train, test, rule, transductive=transductive)
    for part in PARTS:
        job.save_array(f"{part}_ids", getattr(vectors, f"{part}_ids"))
        job.save_array(f"{part}_offsets", getattr(vectors, f"{part}_offsets"))
        job.save_blocks(f"{part}_counts", [getattr(vectors, f"{part}_counts")])
    job.save_json("terms", vectors.terms)


def _save_blocks(job: "Job", learned: "LearnedBlocks") -> None:
    import numpy as np

    from textbench.tasks.storage.blocks import ArrayFile, CsrFiles

    for part in PARTS:
        lengths, n_zero = [np.zeros(1, dtype=np.int64)], 0
        # As scipy chooses, for as many entries as there can be.
        index = np.int32 if learned.n_entries(part) <= np.iinfo(np.int32).max else np.int64
        with (
            ArrayFile(job.folder / f"{part}_ids.npy", np.int32) as ids,
            CsrFiles(job.folder, f"{part}_counts", index, np.int32, len(learned.terms)) as counts,
        ):
            for block in learned.counted(part):
                ids.append(block.ids)
                counts.append(block.indices, block.data, block.sizes)
                lengths.append(block.lengths)
                n_zero += int(np.count_nonzero(block.sizes == 0))
        job.save_array(f"{part}_offsets", np.cumsum(np.concatenate(lengths)))
        job.zero_rows[f"{part}_counts"] = n_zero
    job.save_json("terms", learned.terms)


def _blocks(path: "Path") -> "Iterator[pyarrow.Array]":
    """Yield the texts of a Parquet file, so many documents at a time."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
        for batch in file.iter_batches(BLOCK_DOCUMENTS, columns=["text"], use_threads=False):
            yield batch.column(0)
