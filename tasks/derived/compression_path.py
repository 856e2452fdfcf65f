"""Compression path: what a corpus is compressed to over pointer costs, each solution begun from the one before.

Source: Paskov, West, Mitchell, Hastie, Compressive Feature Learning, NIPS (2013), sections 3 and 6: the pointer cost
traces out a regularisation path of features.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textbench.tasks import catalogue, featurize
from textbench.tasks.derived import subsampled_error
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job

METHOD = "compressive"
# From a dictionary of nearly nothing but words to one of long phrases; the paper's range is 0 to 5.
POINTER_COSTS = (0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 5.0)


def reference(
    corpus: Reference, vectors: Reference, pointer_costs: Sequence[float] = POINTER_COSTS
) -> Reference:
    """Return the path artifact: path.json, a list with for each pointer cost its measures.

    These are `pointer_cost`, `objective`, `lower_bound`, `n_features`, `n_pointers`, `mean_length` (words a pointer)
    and, of an elastic net on the features, `cv_error` (by cross-validation on the training documents) and `error` (on
    the test documents, the constants chosen by the former).
    """
    params = {"pointer_costs": list(pointer_costs)}
    uses = catalogue.method(METHOD).code("compression_path", "INPUT")
    return refer(
        "textbench.tasks.derived.compression_path:compute",
        params,
        {"corpus": corpus, "vectors": vectors},
        uses,
    )


def compute(job: "Job") -> None:
    """Compress along the path and score the features of each step."""
    from textbench.tasks.corpus import read_targets

    corpus, vectors = job.open("corpus"), job.open("vectors")
    module = catalogue.method(METHOD).load()
    train, test = (featurize.documents(job, part, module.INPUT) for part in ("train", "test"))
    read = [*train, *test] if vectors.meta["recipe"]["params"]["transductive"] else train
    y, y_test = (read_targets(corpus, part) for part in ("train", "test"))
    found = []
    for model in module.compression_path(read, job.params["pointer_costs"]):
        X, X_test = subsampled_error.scaled(model.transform(train), model.transform(test), known=False)
        chosen = subsampled_error.tune_and_test(X, X_test, y, y_test, "elastic-net")[0]["tuned"]
        found.append(_measures(model) | {name: chosen[name] for name in ("cv_error", "error")})
    job.save_json("path", found)


def _measures(model: Any) -> dict[str, Any]:
    return {
        "pointer_cost": float(model.pointer_cost),
        "objective": model.objective_,
        "lower_bound": model.lower_bound_,
        "n_features": len(model.table_),
        "n_pointers": len(model.pointers_),
        "mean_length": float(model.pointers_[:, 2].mean()) if len(model.pointers_) else 0.0,
    }
