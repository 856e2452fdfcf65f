"""Two representations side by side, each at one scale: `join(tfidf, sentence)`, whose parts are tuned together.

A parameter of a part is written `first__NAME` or `second__NAME`; `weight`, above 0 and below 1, is the second one's
share: columns of the first are multiplied by 2 (1 - weight) / s, those of the second by 2 weight / s, s being the mean
length of the part's rows on the training documents.
"""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError, catalogue

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job

INPUT = "counts"
PARTS = ("first", "second")
WEIGHT = 0.5


def split(params: Mapping[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the name and the parameters of each part."""
    found = {}
    for part in PARTS:
        name, own = catalogue.parse_method(params[part])
        searched = {
            key.removeprefix(f"{part}__"): value
            for key, value in params.items()
            if key.startswith(f"{part}__")
        }
        found[part] = (name, own | searched)
    return found


def entries(entry: catalogue.Entry, params: Mapping[str, Any]) -> list[catalogue.Entry]:
    """Return the methods that a method is made of: the parts of a join, else itself."""
    return [catalogue.method(name) for name, _ in split(params).values()] if entry.is_join else [entry]


def check(params: Mapping[str, Any]) -> None:
    """Raise InputError for what is no join: two representations of the catalogue that use no labels, and a weight."""
    known = (*PARTS, "weight")
    wrong = [
        name
        for name in params
        if name not in known and not name.startswith(tuple(f"{part}__" for part in PARTS))
    ]
    if wrong or not all(isinstance(params.get(part), str) for part in PARTS):
        raise InputError(
            f"join takes two methods, as in join(tfidf, sentence), and weight; got {', '.join(params)}"
        )
    weight = params.get("weight", WEIGHT)
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 < weight < 1:
        raise InputError(f"join: weight must be a number above 0 and below 1, got {weight!r}")
    for part, (name, own) in split(params).items():
        entry = catalogue.method(name)
        if entry.is_classifier or entry.is_file or entry.is_join or entry.uses_labels(own):
            raise InputError(
                f"join: {part} must be a representation of the catalogue that uses no labels, got {name}"
            )


def titled(params: Mapping[str, Any]) -> str:
    """Return a join as people write it."""
    others = [f"{name}={value!r}" for name, value in params.items() if name not in PARTS]
    return f"{catalogue.JOIN}({', '.join([params['first'], params['second'], *others])})"


def build(**params: Any) -> Any:
    """Return what has the parameters, those of the parts too; there is nothing to fit."""
    values = {"weight": WEIGHT} | params
    for part, (name, own) in split(params).items():
        method = catalogue.method(name).load().build(**_of_method(own))
        values |= {f"{part}__{key}": value for key, value in method.get_params().items()}
    return SimpleNamespace(get_params=lambda: values)


def search_space(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the distributions of the weight and of both parts' own parameters that are not fixed."""
    from optuna.distributions import FloatDistribution

    space: dict[str, Any] = {"weight": FloatDistribution(0.1, 0.9)}
    for part, (name, own) in split(params).items():
        known = catalogue.method(name).load().SEARCH_SPACE
        space |= {f"{part}__{key}": values for key, values in known.items() if key not in own}
    return space


def _of_method(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are the method's own, not those of what it needs."""
    return {name: value for name, value in params.items() if "__" not in name}


def compute(job: "Job") -> None:
    """Set the features of both parts side by side and write them, with the scales."""
    weight, made = job.params["weight"], [job.open(part) for part in PARTS]
    scales = [_mean_length(part.matrix("train")) for part in made]
    for part in ("train", "test"):
        job.save_matrix(part, side_by_side([one.matrix(part) for one in made], weight, scales))
    job.save_json("model", {"weight": weight, "scales": scales})


def side_by_side(features: Sequence[Any], weight: float, scales: Sequence[float]) -> Any:
    """Return features of both parts, csr or float32 (n_documents, n_features), as one matrix, csr if a part is."""
    import numpy as np
    import scipy.sparse as sp

    factors = [2 * share / scale for share, scale in zip((1 - weight, weight), scales, strict=True)]
    blocks = [one * np.float32(factor) for one, factor in zip(features, factors, strict=True)]
    if any(sp.issparse(block) for block in blocks):
        return sp.hstack([sp.csr_matrix(block) for block in blocks], format="csr", dtype=np.float32)
    return np.ascontiguousarray(np.hstack(blocks), dtype=np.float32)


def _mean_length(features: Any) -> float:
    """Return the mean length of the rows that are not zero, 1 without any."""
    import numpy as np

    squares = features.multiply(features) if hasattr(features, "multiply") else features * features
    lengths = np.sqrt(np.asarray(squares.sum(axis=1), dtype=np.float64).ravel())
    return float(lengths[lengths > 0].mean()) if lengths.any() else 1.0
