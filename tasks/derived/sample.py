"""Sample: a corpus of some documents of another, evenly apart, by which is told what all of them would take."""

from typing import TYPE_CHECKING

from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job


def reference(corpus: Reference, n: int) -> Reference:
    """Return the corpus artifact of at most n training documents, and of as many for the test.

    Files as those of `tasks.ingest`.
    """
    params = {"dataset": corpus.params.get("dataset", "own"), "n": n}
    return refer("textbench.tasks.derived.sample:compute", params, {"corpus": corpus}, stage="sample")


def compute(job: "Job") -> None:
    """Write the documents."""
    import numpy as np

    from textbench.tasks.corpus import Corpus, read_corpus, write_corpus

    whole, n = read_corpus(job.open("corpus")), job.params["n"]
    train, test = (
        np.linspace(0, len(texts) - 1, min(n, len(texts))).astype(np.int64)
        for texts in (whole.train_texts, whole.test_texts)
    )
    corpus = Corpus(
        train_texts=[whole.train_texts[i] for i in train],
        train_targets=whole.train_targets[train],
        test_texts=[whole.test_texts[i] for i in test],
        test_targets=whole.test_targets[test],
        target_names=whole.target_names,
        name=whole.name,
        notes=f"{whole.notes} {len(train)} training documents and {len(test)} test documents, evenly apart.",
    )
    write_corpus(job, corpus, {})
