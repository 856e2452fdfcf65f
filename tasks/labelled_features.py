"""Labelled features: featurize by a method whose `fit` reads the classes of the training documents.

Such a method says so in its file: `READS_LABELS = {parameter: values}`, the values of a parameter with which it does.
It is fitted to the training documents alone, whatever the protocol, so that no label of a test document is read. It is
a stage of its own: `tasks.featurize` shows a label to no method.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasks import InputError, catalogue, featurize
from tasks.recipe import Reference, refer

if TYPE_CHECKING:
    from tasks.store import Job


def reads_labels(method: str, params: Mapping[str, Any]) -> bool:
    """Tell whether a method reads labels with these parameters."""
    readers = catalogue.method(method).constant("READS_LABELS", {})
    return any(params.get(name) in values for name, values in readers.items())


def reference(
    vectors: Reference,
    method: str,
    params: Mapping[str, Any],
    seed: int,
    labels: Mapping[str, Any] | None = None,
) -> Reference:
    """Return the features artifact of a method that reads labels, with the files of `tasks.featurize`.

    labels: the budget of labels that may be seen, None for all of them. Raises InputError where there is a budget, and
    for a method that reads none.
    """
    if not reads_labels(method, params):
        raise InputError(f"{catalogue.spelled(method, params)} reads no labels; featurize has its features")
    entry = catalogue.method(method)
    if labels:
        raise InputError(
            f"{catalogue.spelled(entry.name, params)} reads the classes of all training documents; under a label "
            f"budget it may not, got a budget of {labels['budget']}"
        )
    recipe = {"method": method, "params": dict(params), "seed": seed if entry.is_seeded else None}
    inputs = {"vectors": vectors, "corpus": vectors.inputs["corpus"]}
    return refer("tasks.labelled_features:compute", recipe, inputs, [entry.module], stage="featurize")


def compute(job: "Job") -> None:
    """Fit the method to the training documents and their classes; write what `tasks.featurize` writes."""
    from tasks.ingest import read_targets

    vectors, params, seed = job.open("vectors"), job.params["params"], job.params["seed"]
    module = catalogue.method(job.params["method"]).load()
    featurizer = module.build(**params, **({} if seed is None else {"random_state": seed}))
    train, test = (featurize.documents(vectors, part, module.INPUT) for part in ("train", "test"))
    featurizer.fit(train, read_targets(job.open("corpus"), "train"))
    job.save_matrix("train", featurizer.transform(train))
    job.save_matrix("test", featurizer.transform(test))
    featurize.save_arrays(job, "model", featurizer.to_arrays())
