"""Featurize: learn a representation from the training documents (transductive: from all) and apply it to both parts.

A method that uses labels is fitted to the training documents whose labels may be seen and to these labels, whatever the
protocol: unlabelled documents and the test part's have no place in it. Tuning fits it anew in every fold (`in_folds`).
"""

import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from textbench.tasks import (
    InputError,
    catalogue,
    file_vectors,
    joined,
    text_vectors,
    token_topics,
    word_vectors,
)
from textbench.tasks.labels import chosen_rows, labelled
from textbench.tasks.storage.recipe import Reference, refer
from textbench.tasks.storage.store import Job

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

    from textbench.tasks.storage.store import Artifact

INPUTS = ("counts", "tokens", "texts")  # what a method may read
# What a method may need beside.
NEEDED = (
    "word_vectors",
    "terms",
    "output_vectors",
    "vector_norms",
    "token_topics",
    "text_vectors",
    "piece_vectors",
)
OF_OUTPUTS = {"output_vectors", "vector_norms"}  # which word vectors have where their training keeps them
BESIDE = {*OF_OUTPUTS, "token_topics", "text_vectors", "piece_vectors"}  # what `compute` does not know of
AT_ONCE = 65_536  # documents whose features are made at once by a method that says what memory they take
# Parameters that begin so are of the word vectors that a method needs, or of the topics of tokens, not of the method.
PREFIX = "word_vectors__"
TOPICS_PREFIX = "token_topics__"


def reference(
    vectors: Reference,
    method: str,
    params: Mapping[str, Any],
    seed: int,
    labels: Mapping[str, Any] | None = None,
) -> Reference:
    """Return the features artifact: train and test features (csr or float32), and the fitted method's arrays.

    A method without `random_state` gives the same artifact for every seed, unless it needs word vectors: they are
    an artifact of their own, which every method and setting that does not change them shares. `labels` are those that
    may be seen (as `tasks.tune.reference` takes them): the recipe of a method that uses labels has them, of others
    not. Of a method that reads texts and needs nothing else, `vectors` say no more than whose texts, and the protocol.
    Raises InputError for parameters of word vectors, or of topics of tokens, where the method needs none.
    """
    entry = catalogue.method(method)
    if entry.is_file:
        return file_vectors.reference(vectors.inputs["corpus"], params)
    if entry.is_join:
        parts = joined.split(params)
        of_parts = {part: reference(vectors, name, own, seed, labels) for part, (name, own) in parts.items()}
        weight = params.get("weight", joined.WEIGHT)
        return refer("textbench.tasks.joined:compute", {"weight": weight}, of_parts, stage="featurize")
    own = own_params(params)
    recipe: dict[str, Any] = {"method": method, "params": own, "seed": seed if entry.is_seeded else None}
    uses_labels, inputs = entry.uses_labels(params), {}
    recipe |= (
        {"labels": dict(labels or {})} if uses_labels else {"transductive": vectors.params["transductive"]}
    )
    if uses_labels or entry.reads_texts:
        inputs["corpus"] = vectors.inputs["corpus"]
    if not entry.reads_texts_alone:
        inputs["vectors"] = vectors
    of_vectors, of_topics = params_of(params, PREFIX), params_of(params, TOPICS_PREFIX)
    if "word_vectors" in entry.needs:
        with_outputs = bool(OF_OUTPUTS & set(entry.needs))
        inputs["word_vectors"] = word_vectors.reference(vectors, of_vectors, seed, with_outputs=with_outputs)
    elif of_vectors:
        raise InputError(f"{entry.name} needs no word vectors, got {', '.join(params.keys() - own.keys())}")
    if "token_topics" in entry.needs:
        inputs["token_topics"] = token_topics.reference(vectors, of_topics, seed)
    elif of_topics:
        raise InputError(
            f"{entry.name} needs no topics of tokens, got {', '.join(params.keys() - own.keys())}"
        )
    if "text_vectors" in entry.needs:
        inputs["text_vectors"] = text_vectors.reference(vectors.inputs["corpus"], entry, own)
    if "piece_vectors" in entry.needs:
        inputs["piece_vectors"] = text_vectors.table_reference(entry, own)
    if set(entry.needs) & BESIDE:
        return refer(
            "textbench.tasks.featurize:compute_beside", recipe, inputs, _read(entry), stage="featurize"
        )
    if "megabytes" in entry.bound and not uses_labels:
        return refer(
            "textbench.tasks.featurize:compute_by_blocks", recipe, inputs, _read(entry), stage="featurize"
        )
    return refer("textbench.tasks.featurize:compute", recipe, inputs, _read(entry))


def own_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are the method's own."""
    return {name: value for name, value in params.items() if not name.startswith((PREFIX, TOPICS_PREFIX))}


def params_of(params: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the parameters that begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in params.items() if name.startswith(prefix)}


def _read(entry: catalogue.Entry) -> list[tuple[str, ...]]:
    """Return what is read of a method's file to make its features."""
    if entry.is_file:
        return entry.code("compute")
    names = ("build", "INPUT", "NEEDS", "USES_LABELS")
    return entry.code(*(name for name in names if name != "USES_LABELS" or entry.constant(name)))


def uses(method: str, params: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return what making a method's features looks up by name, for a stage that asks for features on its way."""
    entry = catalogue.method(method)
    if entry.is_join:
        parts = [uses(name, own) for name, own in joined.split(params).values()]
        return [("textbench.tasks.joined", "compute"), *itertools.chain(*parts)]
    found = _read(entry)
    if "word_vectors" in entry.needs:
        trainer = params.get(f"{PREFIX}trainer", word_vectors.TRAINER)
        table = "WITH_OUTPUTS" if OF_OUTPUTS & set(entry.needs) else "TRAINERS"
        found.append(("textbench.tasks.word_vectors", table, trainer))
    if "text_vectors" in entry.needs:
        found += [("textbench.tasks.text_vectors", "compute"), *entry.code("encoder")]
    if "piece_vectors" in entry.needs:
        found += [("textbench.tasks.text_vectors", "compute_table"), *entry.code("table")]
    return found


def compute(job: Job) -> None:
    """Fit the method and write `train`, `test`, and what `to_arrays` gives (model.npz, model.json)."""
    build, kind = builder(*(job.params[name] for name in ("method", "params", "seed")))
    featurizer, needed = build(), _needed(job)
    train, test = (documents(job, part, kind) for part in ("train", "test"))
    if "labels" in job.params:
        targets, rows = labelled(job)
        features = featurizer.fit(chosen_rows(train, rows), targets, **needed).transform(train)
    elif job.params["transductive"]:
        features = featurizer.fit(_stacked(train, test), **needed).transform(train)
    else:
        features = featurizer.fit_transform(train, **needed)
    width = checked_width(features, "training", n_documents(train))
    job.save_matrix("train", features)
    features = featurizer.transform(test)
    checked_width(features, "test", n_documents(test), width)
    job.save_matrix("test", features)
    save_arrays(job, "model", featurizer.to_arrays())


def compute_by_blocks(job: Job) -> None:
    """As `compute`, for a method with a forecast of its memory (`megabytes`), which learns from no labels.

    The features of more than AT_ONCE documents are made and written that many at a time.
    """
    build, kind = builder(*(job.params[name] for name in ("method", "params", "seed")))
    featurizer, needed = build(), _needed(job)
    train, test = (documents(job, part, kind) for part in ("train", "test"))
    if job.params["transductive"] or n_documents(train) > AT_ONCE:
        featurizer.fit(_stacked(train, test) if job.params["transductive"] else train, **needed)
        width = _save_features(job, featurizer, "train", train)
    else:
        features = featurizer.fit_transform(train, **needed)
        width = checked_width(features, "training", n_documents(train))
        job.save_matrix("train", features)
        del features
    _save_features(job, featurizer, "test", test, width)
    save_arrays(job, "model", featurizer.to_arrays())


def _save_features(job: Job, featurizer: Any, part: str, given: Any, width: int | None = None) -> int:
    """Write a part's features, by blocks where there are many; return their number of columns."""
    found = [width]

    def block(start: int) -> Any:
        rows = given[start : start + AT_ONCE]
        features = featurizer.transform(rows)
        found[0] = checked_width(features, part, n_documents(rows), found[0])
        return features

    if n_documents(given) <= AT_ONCE:
        job.save_matrix(part, block(0))
    else:
        job.save_blocks(part, map(block, range(0, n_documents(given), AT_ONCE)))
    return int(found[0] or 0)


def compute_beside(job: Job) -> None:
    """As `compute`, for a method that needs output vectors, topics of tokens, vectors of texts or of pieces, and learns
    from no labels.

    A function of its own, so that the keys of all other features stay as they are.
    """
    build, kind = builder(*(job.params[name] for name in ("method", "params", "seed")))
    featurizer = build()
    read: dict[str, Callable[[], Any]] = {
        "word_vectors": lambda: job.open("word_vectors").array("vectors"),
        "output_vectors": lambda: job.open("word_vectors").array("outputs"),
        "vector_norms": lambda: job.open("word_vectors").array("norms"),
        "token_topics": lambda: token_topics.read(job.open("token_topics")),
        "text_vectors": lambda: text_vectors.by_text(job.open("corpus"), job.open("text_vectors")),
        "piece_vectors": lambda: (
            job.open("piece_vectors").array("table"),
            job.open("piece_vectors").json("tokenizer"),
        ),
        "terms": lambda: job.open("vectors").json("terms"),
    }
    needed = {name: read[name]() for name in catalogue.method(job.params["method"]).needs}
    train, test = (documents(job, part, kind) for part in ("train", "test"))
    featurizer.fit(_stacked(train, test) if job.params["transductive"] else train, **needed)
    width = None
    for part, given in (("train", train), ("test", test)):
        features = featurizer.transform(given)
        width = checked_width(features, part, n_documents(given), width)
        job.save_matrix(part, features)
    save_arrays(job, "model", featurizer.to_arrays())


def in_folds(job: Job, features: Reference) -> "Callable[[np.ndarray, np.ndarray], tuple[Any, Any]]":
    """Return what makes the features of a fold by a method that uses labels (`evaluation.probes.tuning.choose_c`).

    It is given positions among the documents whose labels may be seen, of those to train on and of those to score. It
    fits the method to the former and their labels alone, and returns the features of both.
    """
    making = Job(dict(features.params), features.inputs, job.folder, job.store)
    build, kind = builder(*(features.params[name] for name in ("method", "params", "seed")))
    needed, (targets, rows) = _needed(making), labelled(making)
    known = chosen_rows(documents(making, "train", kind), rows)

    def of_fold(train: "np.ndarray", test: "np.ndarray") -> tuple[Any, Any]:
        read = [chosen_rows(known, part) for part in (train, test)]
        featurizer = build().fit(read[0], targets[train], **needed)
        made, scored = (featurizer.transform(part) for part in read)
        checked_width(scored, "test", len(test), checked_width(made, "training", len(train)))
        return made, scored

    return of_fold


def builder(method: str, params: Mapping[str, Any], seed: int) -> tuple[Callable[[], Any], str]:
    """Return what builds a method unfitted, and what it reads, one of `INPUTS`."""
    entry = catalogue.method(method)
    module = entry.load()
    seeded = {"random_state": seed} if entry.is_seeded else {}
    return lambda: module.build(**params, **seeded), module.INPUT


def _needed(job: Job) -> dict[str, Any]:
    """Return what `fit` takes beside documents and labels, by the names of `NEEDED`."""
    read: dict[str, Callable[[], Any]] = {
        "word_vectors": lambda: job.open("word_vectors").array("vectors"),
        "terms": lambda: job.open("vectors").json("terms"),
    }
    return {name: read[name]() for name in catalogue.method(job.params["method"]).needs}


def documents(job: Job, part: str, kind: str) -> Any:
    """Return one part of the documents as a method reads them: csr counts, or a list, of int32 token ids or of texts.

    Texts are those of the job's corpus as it was ingested, the others are of its vectors. ValueError for another
    `kind`.
    """
    if kind == "texts":
        return job.open("corpus").table(part, ["text"])["text"].to_pylist()
    vectors = job.open("vectors")
    if kind == "counts":
        return vectors.matrix(f"{part}_counts")
    if kind == "tokens":
        import numpy as np

        return np.split(vectors.array(f"{part}_ids"), vectors.array(f"{part}_offsets")[1:-1])
    raise ValueError(f"INPUT must be {' or '.join(INPUTS)}, got {kind!r}")


def _stacked(train: Any, test: Any) -> Any:
    import scipy.sparse

    return (
        scipy.sparse.vstack([train, test], format="csr") if scipy.sparse.issparse(train) else [*train, *test]
    )


def n_documents(documents: Any) -> int:
    """Return how many documents `documents` gave."""
    return documents.shape[0] if hasattr(documents, "shape") else len(documents)


def checked_width(
    features: "np.ndarray | csr_matrix", part: str, n_documents: int, width: int | None = None
) -> int:
    """Refuse features of the wrong shape or with values that are not finite; return their number of columns.

    Raises ValueError naming what was expected and what was found.
    """
    import numpy as np
    import scipy.sparse

    is_sparse = scipy.sparse.issparse(features)
    if not isinstance(features, np.ndarray) and (not is_sparse or features.format != "csr"):
        found = f"a {features.format} matrix" if is_sparse else type(features).__name__
        raise ValueError(f"transform must return a csr matrix or an array, got {found}")
    if features.ndim != 2 or features.shape[0] != n_documents or width not in (None, features.shape[1]):
        wanted = (n_documents, width or "any number")
        raise ValueError(f"{part} features must have shape {wanted}, got {features.shape}")
    if features.dtype.kind not in "fiub" or not features.shape[1]:
        raise ValueError(
            f"features must be at least one column of numbers, got {features.shape[1]} of {features.dtype}"
        )
    values = features if isinstance(features, np.ndarray) else features.data
    finite = np.isfinite(values)
    if not finite.all():
        raise ValueError(f"{part} features hold {int((~finite).sum())} values that are NaN or infinite")
    return features.shape[1]


def save_arrays(job: "Job", name: str, values: Mapping[str, Any]) -> None:
    """Write a mapping of arrays and JSON values, without pickle: `<name>.npz` and `<name>.json`."""
    import numpy as np

    arrays = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
    job.save_arrays(name, arrays)
    job.save_json(name, {key: value for key, value in values.items() if key not in arrays})


def load_arrays(artifact: "Artifact", name: str) -> dict[str, Any]:
    """Return what `save_arrays` wrote."""
    return artifact.arrays(name) | artifact.json(name)
