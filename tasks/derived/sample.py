"""Sample: a corpus of some documents of another, evenly apart, by which is told what all of them would take."""

from typing import TYPE_CHECKING, Any

from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job


def reference(corpus: Reference, n: int) -> Reference:
    """Return the corpus artifact of at most n training documents, and of the same share of those for the test.

    Files as those of `tasks.ingest`.
    """
    params = {"dataset": corpus.params.get("dataset", "own"), "n": n}
    return refer("textbench.tasks.derived.sample:compute", params, {"corpus": corpus}, stage="sample")


def compute(job: "Job") -> None:
    """Write the documents."""
    import numpy as np
    import pyarrow

    from textbench.tasks.corpus import Corpus, read_targets, write_corpus

    whole, n = job.open("corpus"), job.params["n"]
    about = whole.json("corpus")

    share = min(1.0, n / about["n_train"])

    def some(part: str) -> tuple[Any, Any]:
        texts, targets = whole.table(part, ["text"])["text"], read_targets(whole, part)
        rows = np.linspace(0, len(texts) - 1, max(1, round(share * len(texts)))).astype(np.int64)
        return texts.cast(pyarrow.large_string()).take(rows), targets[rows]  # of 2 GiB or more too

    train, test = map(some, ("train", "test"))
    notes = f"{about['notes']} {len(train[0])} training documents and {len(test[0])} test documents, evenly apart."
    write_corpus(job, Corpus(*train, *test, about["target_names"], about["name"], notes), {})
