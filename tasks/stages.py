"""The stages as Prefect tasks: each asks the store for one artifact, which computes what is missing.

Prefect's cache sits on top of the store under the same key, so that the Prefect page shows Cached, as it does where the
store alone has the artifact; the store is what a resumed run trusts.
"""

from typing import Any

from prefect import Task, get_run_logger, task
from prefect.cache_policies import CacheKeyFnPolicy
from prefect.context import TaskRunContext
from prefect.states import Completed

from textbench.tasks import studies
from textbench.tasks.storage.cluster import leave_thread
from textbench.tasks.storage.isolate import CellError
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store


def _key_if_stored(context: TaskRunContext, parameters: dict[str, Any]) -> str | None:
    reference, store = parameters["reference"], parameters["store"].here()
    return reference.key if store.has(reference) else None


def _stage(name: str, description: str) -> "Task[Any, Any]":
    def run(reference: Reference, store: Store) -> Any:
        store = store.here()
        was_stored = store.has(reference)
        if name == "tune" and store.cluster is not None and store.workers > 1:
            leave_thread()  # its trials are tasks of the cluster's too
        try:
            meta = store.ensure(reference)
        except CellError as error:
            if error.details:
                get_run_logger().error(error.details)
            raise
        if name == "tune" and not was_stored:
            studies.record(store, reference)
        found = {"key": reference.key, "seconds": meta["seconds"], "peak_mb": meta["peak_mb"]}
        return Completed(name="Cached", data=found) if was_stored else found

    run.__doc__ = description
    return task(
        name=name,
        task_run_name=f"{name} {{reference.label}}",
        cache_policy=CacheKeyFnPolicy(cache_key_fn=_key_if_stored),
        persist_result=True,
        result_serializer="json",
    )(run)


STAGES = {
    "ingest": _stage("ingest", "Load a data set and store its documents."),
    "audit": _stage("audit", "Find duplicates, unseen classes and the ceilings they put on each metric."),
    "vectorize": _stage("vectorize", "Turn texts into token ids, a vocabulary and counts."),
    "word_vectors": _stage("word_vectors", "Train word vectors, which all methods that read them share."),
    "featurize": _stage("featurize", "Learn a representation and apply it to all documents."),
    "tune": _stage("tune", "Choose parameters and the probe's C by cross-validation on training documents."),
    "evaluate": _stage("evaluate", "Train the probe and score it on the test documents."),
    "topics": _stage("topics", "Find the first words of what was learned, and how coherent they are."),
    "senses": _stage("senses", "Look up the clusters that share a word between them."),
    "values": _stage("values", "Count the values of the document vectors."),
    "embedding": _stage("embedding", "Place the test documents in the plane (t-SNE)."),
    "classes": _stage("classes", "Keep the documents of some classes."),
    "resamples": _stage("resamples", "Train on draws of the training documents and count the errors."),
    "components": _stage("components", "Find the pair of principal components that shows the classes best."),
    "compression_path": _stage("compression_path", "Compress at one pointer cost after another."),
}
