"""Ingest: load a data set and store its documents."""

from typing import TYPE_CHECKING

from tasks import catalogue
from tasks.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np

    from tasks.datasets import Corpus
    from tasks.store import Artifact, Job


def reference(dataset: str) -> Reference:
    """Return the corpus artifact of a data set: train.parquet, test.parquet (text, target), corpus.json."""
    entry = catalogue.dataset(dataset)
    return refer("tasks.ingest:compute", {"dataset": dataset}, modules=[entry.module])


def compute(job: "Job") -> None:
    """Load the data set and write its documents and what is known of it."""
    entry = catalogue.dataset(job.params["dataset"])
    module = entry.load()
    corpus = module.load()
    job.save_table("train", {"text": corpus.train_texts, "target": corpus.train_targets})
    job.save_table("test", {"text": corpus.test_texts, "target": corpus.test_targets})
    about = {
        "name": corpus.name,
        "notes": corpus.notes,
        "target_names": corpus.target_names,
        "source": module.SOURCE,
        "sha256": module.SHA256,
        "licence": module.LICENCE,
        "citation": module.CITATION,
    }
    job.save_json("corpus", about)


def read_corpus(corpus: "Artifact") -> "Corpus":
    """Return a stored corpus."""
    from tasks.datasets import Corpus

    about = corpus.json("corpus")
    train, test = corpus.table("train"), corpus.table("test")
    return Corpus(
        train_texts=train["text"].to_pylist(),
        train_targets=train["target"].to_numpy(),
        test_texts=test["text"].to_pylist(),
        test_targets=test["target"].to_numpy(),
        target_names=about["target_names"],
        name=about["name"],
        notes=about["notes"],
    )


def read_targets(corpus: "Artifact", part: str) -> "np.ndarray":
    """Return the targets (n_documents,) of the "train" or "test" documents, without reading their texts."""
    return corpus.table(part, columns=["target"])["target"].to_numpy()
