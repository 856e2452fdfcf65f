"""Classes: a corpus of the documents of some classes of a data set, in the order of that data set."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textbench.tasks import InputError
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job


def reference(corpus: Reference, names: Sequence[str]) -> Reference:
    """Return the corpus artifact of the classes of these names; their targets are their places in `names`.

    Files as those of `tasks.ingest`. Computing it raises InputError for a name that the data set does not have, and for
    documents of several labels.
    """
    dataset = corpus.params.get("dataset", "own")
    return refer(
        "textbench.tasks.derived.class_subset:compute",
        {"dataset": dataset, "names": list(names)},
        {"corpus": corpus},
        stage="classes",
    )


def compute(job: "Job") -> None:
    """Write the documents of the classes.

    Raises InputError for unknown classes, and for documents of several labels.
    """
    import numpy as np

    from textbench.tasks.catalogue import nearest
    from textbench.tasks.corpus import Corpus, read_corpus, write_corpus

    whole, names = read_corpus(job.open("corpus")), job.params["names"]
    if whole.train_targets.ndim == 2:
        raise InputError(f"classes are chosen where a document has one label; {whole.name} has several")
    for name in names:
        if name not in whole.target_names:
            raise InputError(f"{whole.name} has no class {name!r}; {nearest(name, whole.target_names)}")
    place = np.full(len(whole.target_names), -1, dtype=np.int64)
    place[[whole.target_names.index(name) for name in names]] = np.arange(len(names))
    train, test = (
        np.flatnonzero(place[whole.train_targets] >= 0),
        np.flatnonzero(place[whole.test_targets] >= 0),
    )
    about = job.open("corpus").json("corpus")
    corpus = Corpus(
        train_texts=[whole.train_texts[i] for i in train],
        train_targets=place[whole.train_targets[train]],
        test_texts=[whole.test_texts[i] for i in test],
        test_targets=place[whole.test_targets[test]],
        target_names=names,
        name=f"{whole.name} ({', '.join(names)})",
        notes=f"{whole.notes} The documents of {len(names)} classes alone.",
        train_ids=whole.train_ids and [whole.train_ids[i] for i in train],
        test_ids=whole.test_ids and [whole.test_ids[i] for i in test],
        validation=None if whole.validation is None else np.flatnonzero(np.isin(train, whole.validation)),
    )
    write_corpus(job, corpus, {key: about[key] for key in ("source", "sha256", "licence", "citation")})
