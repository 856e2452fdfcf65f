"""Labelled features: featurize by a method whose `fit` reads the classes of the training documents.

Such a method says so in its file: `READS_LABELS = {parameter: values}`, the values of a parameter with which it does.
It is fitted to the training documents alone, whatever the protocol, so that no label of a test document is read;
cross-validation of C then sees features that its held-out folds' classes have shaped. `tasks.featurize` shows labels
to no method.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError, catalogue, featurize
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job


def reads_labels(method: str, params: Mapping[str, Any]) -> bool:
    """Tell whether a method reads labels with these parameters."""
    readers = catalogue.method(method).constant("READS_LABELS", {})
    return any(params.get(name) in values for name, values in readers.items())


def check_budget(method: str, params: Mapping[str, Any], labels: Mapping[str, Any] | None) -> None:
    """Raise InputError for a method that reads labels where only a budget of them may be seen."""
    if labels and reads_labels(method, params):
        raise InputError(
            f"{catalogue.spelled(catalogue.method(method).name, params)} reads the classes of all training documents; "
            f"under a label budget it may not, got a budget of {labels['budget']}"
        )


def reference(vectors: Reference, method: str, params: Mapping[str, Any], seed: int) -> Reference:
    """Return the features artifact of a method that reads labels, with the files of `tasks.featurize`."""
    entry = catalogue.method(method)
    recipe = {"method": method, "params": dict(params), "seed": seed if entry.is_seeded else None}
    inputs = {"vectors": vectors, "corpus": vectors.inputs["corpus"]}
    return refer(
        "textbench.tasks.labelled_features:compute",
        recipe,
        inputs,
        entry.code("build", "INPUT"),
        stage="featurize",
    )


def compute(job: "Job") -> None:
    """Fit the method to the training documents and their classes; write what `tasks.featurize` writes."""
    from textbench.tasks.corpus import read_targets

    vectors, params, seed = job.open("vectors"), job.params["params"], job.params["seed"]
    module = catalogue.method(job.params["method"]).load()
    featurizer = module.build(**params, **({} if seed is None else {"random_state": seed}))
    train, test = (featurize.documents(vectors, part, module.INPUT) for part in ("train", "test"))
    featurizer.fit(train, read_targets(job.open("corpus"), "train"))
    features = featurizer.transform(train)
    width = featurize.checked_width(features, "training", featurize.n_documents(train))
    job.save_matrix("train", features)
    features = featurizer.transform(test)
    featurize.checked_width(features, "test", featurize.n_documents(test), width)
    job.save_matrix("test", features)
    featurize.save_arrays(job, "model", featurizer.to_arrays())
