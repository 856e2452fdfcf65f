"""Ingest: load a data set and store its documents."""

from dataclasses import replace
from typing import TYPE_CHECKING

from textbench.tasks import catalogue
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job, Store

# What a data set's file says of its origin, there in capitals.
KNOWN = ("source", "sha256", "licence", "citation")


def reference(dataset: str) -> Reference:
    """Return the corpus artifact of a data set: train.parquet, test.parquet (text, target), corpus.json.

    A target is a position in target_names (corpus.json), or a list of them where documents have several labels. Where
    the source names its documents there is a column id; where it has documents for validation, train.parquet says of
    each whether it is one (column validation), and corpus.json how many they are (n_validation).
    """
    entry = catalogue.dataset(dataset)
    return refer(
        "textbench.tasks.ingest:compute",
        {"dataset": dataset},
        uses=entry.code("load", *map(str.upper, KNOWN)),
    )


def compute(job: "Job") -> None:
    """Load the data set and write its documents and what is known of it."""
    from textbench.tasks.corpus import write_corpus

    module = catalogue.dataset(job.params["dataset"]).load()
    about = {name: getattr(module, name.upper()) for name in KNOWN}
    write_corpus(job, module.load(), about)


def ensure(store: "Store", corpus: Reference) -> None:
    """Ingest a data set that is not stored yet, in this process.

    Raises InputError for documents that are missing or bad, and OSError when they cannot be stored.
    """
    replace(store, isolated=False).ensure(corpus)
