"""The stages: each asks the store for one artifact, which computes what is missing. Flows run them as Prefect tasks.

Prefect's cache sits on top of the store under the same key, so that the Prefect page shows Cached, as it does where the
store alone has the artifact; the store is what a resumed run trusts. Prefect is imported where a task is asked for.
"""

import functools
from typing import TYPE_CHECKING, Any

from textbench.tasks import studies
from textbench.tasks.storage.cluster import leave_thread
from textbench.tasks.storage.isolate import CellError
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store

if TYPE_CHECKING:
    from prefect import Task
    from prefect.context import TaskRunContext

STAGES = {
    "ingest": "Load a data set and store its documents.",
    "audit": "Find duplicates, unseen classes and the ceilings they put on each metric.",
    "vectorize": "Turn texts into token ids, a vocabulary and counts.",
    "word_vectors": "Train word vectors, which all methods that read them share.",
    "token_topics": "Sample a topic for every token, which all methods that read them share.",
    "piece_vectors": "Take a static model's table, or distil it from a sentence model, once for all data sets.",
    "text_vectors": "Embed texts by a pretrained model, once for all methods that read them.",
    "first": "Learn the first of two representations that are joined.",
    "second": "Learn the second of two representations that are joined.",
    "featurize": "Learn a representation and apply it to all documents.",
    "tune": "Choose parameters and the probe's C by cross-validation on training documents.",
    "evaluate": "Train the probe and score it on the test documents.",
    "out_of_fold": "Score the training documents by probes that were trained without them, for ensembles.",
    "topics": "Find the first words of what was learned, and how coherent they are.",
    "senses": "Look up the clusters that share a word between them.",
    "values": "Count the values of the document vectors.",
    "embedding": "Place the test documents in the plane (t-SNE).",
    "classes": "Keep the documents of some classes.",
    "resamples": "Train on draws of the training documents and count the errors.",
    "components": "Find the pair of principal components that shows the classes best.",
    "compression_path": "Compress at one pointer cost after another.",
}


def run(stage: str, reference: Reference, store: Store) -> tuple[dict[str, Any], bool]:
    """Have an artifact made if it is not stored; return its key, seconds and peak_mb, and whether it was stored."""
    store = store.here()
    was_stored = store.has(reference)
    is_spread = stage == "vectorize" or (stage in ("featurize", "tune") and store.workers > 1)
    if is_spread and store.cluster is not None and not was_stored:
        leave_thread()  # its blocks, or trials, are tasks of the cluster's too
    meta = store.ensure(reference)
    if stage == "tune" and not was_stored:
        studies.record(store, reference)
    return {"key": reference.key, "seconds": meta["seconds"], "peak_mb": meta["peak_mb"]}, was_stored


@functools.cache
def task_of(stage: str) -> "Task[Any, Any]":
    """Return a stage as a Prefect task of a reference and a store."""
    from prefect import get_run_logger, task
    from prefect.cache_policies import CacheKeyFnPolicy
    from prefect.states import Completed

    def run_logged(reference: Reference, store: Store) -> Any:
        try:
            found, was_stored = run(stage, reference, store)
        except CellError as error:
            if error.details:
                get_run_logger().error(error.details)
            raise
        return Completed(name="Cached", data=found) if was_stored else found

    run_logged.__doc__ = STAGES[stage]
    return task(
        name=stage,
        task_run_name=f"{stage} {{reference.label}}",
        cache_policy=CacheKeyFnPolicy(cache_key_fn=_key_if_stored),
        persist_result=True,
        result_serializer="json",
    )(run_logged)


def _key_if_stored(context: "TaskRunContext", parameters: dict[str, Any]) -> str | None:
    reference, store = parameters["reference"], parameters["store"].here()
    return reference.key if store.has(reference) else None
