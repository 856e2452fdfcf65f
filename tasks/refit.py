"""Refit: train a run's method and classifier anew on all documents, training and test, with the settings it chose."""

from typing import TYPE_CHECKING

from textbench.tasks import InputError, featurize, predict, vectorize
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job


def reference(result: Reference) -> Reference:
    """Return the artifact of a run's method trained on all documents: the fitted classifier's arrays, as in its result.

    Its inputs are the corpus and vectors of all documents; there are no documents left to measure it on. Raises
    InputError for a run on a label budget.
    """
    if budget := result.params["labels"]:
        raise InputError(
            f"a run on a budget of labels is not trained on all documents, got {budget['budget']} labels"
        )
    corpus, choice = result.inputs["corpus"], result.inputs["choice"]
    dataset = corpus.params.get("dataset", "own")
    every = refer(
        "textbench.tasks.refit:gather", {"dataset": dataset}, {"corpus": corpus}, stage="every_document"
    )
    vectors = vectorize.reference(every, result.inputs["vectors"].params["rule"], False)
    inputs = {"corpus": every, "vectors": vectors, "choice": choice, "result": result}
    return refer("textbench.tasks.refit:compute", result.params, inputs, predict.uses(choice))


def gather(job: "Job") -> None:
    """Write a corpus whose training documents are all documents; its test part, which is to be passed over, is one."""
    import numpy as np
    from scipy.sparse import vstack

    from textbench.tasks.corpus import Corpus, read_corpus, write_corpus
    from textbench.tasks.ingest import KNOWN

    given, about = read_corpus(job.open("corpus")), job.open("corpus").json("corpus")
    parts = (given.train_targets, given.test_targets)
    targets = np.concatenate(parts) if given.train_targets.ndim == 1 else vstack(parts, format="csr")
    corpus = Corpus(
        train_texts=[*given.train_texts, *given.test_texts],
        train_targets=targets,
        test_texts=given.train_texts[:1],
        test_targets=targets[:1],
        target_names=given.target_names,
        name=given.name,
        notes=f"{given.notes} Training and test documents together.",
    )
    write_corpus(job, corpus, {key: about[key] for key in KNOWN})


def compute(job: "Job") -> None:
    """Fit the classifier to all documents; thresholds of several labels are settings, and stay those of the run."""
    from textbench.tasks.corpus import read_targets

    documents, build = predict.training(job)
    targets, result = read_targets(job.open("corpus"), "train"), job.open("result")
    classifier = build().fit(documents("train"), targets)
    if targets.ndim == 2 and job.params["probe"]:
        classifier.thresholds_ = featurize.load_arrays(result, "probe")["thresholds"]
    elif targets.ndim == 2:
        job.save_array("thresholds", result.array("thresholds"))
    featurize.save_arrays(job, "probe", classifier.to_arrays())
