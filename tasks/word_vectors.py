"""Word vectors: skip-gram embeddings of the vocabulary's terms, an artifact that all methods of a run share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textbench.featurizers._parameters import Rule
from textbench.tasks import InputError, file_word_vectors
from textbench.tasks.catalogue import nearest
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np

# SCDV (EMNLP 2017), section 4.2; subsampling and the number of epochs are from its authors' code.
DEFAULTS: dict[str, Any] = {
    "vector_size": 200,
    "window": 10,
    "negative": 10,
    "min_count": 20,
    "sample": 1e-3,
    "epochs": 25,
    "hs": 0,
    "workers": 1,
}
ACCEPTS: Mapping[str, str | tuple[str, ...] | None] = {
    "vector_size": "[1, inf)",
    "window": "[1, inf)",
    "negative": "[1, inf)",
    "min_count": "[1, inf)",
    "sample": "[0, 1)",
    "epochs": "[1, inf)",
    "hs": "[0, 1]",
    "workers": "[1, inf)",
    "trainer": ("gensim", "shared", "file"),
    "path": None,
}
# gensim is what faithful protocols use.
TRAINERS = {
    "gensim": "textbench.tasks.skip_gram:compute",
    "shared": "textbench.tasks.shared_negatives:compute",
    "file": "textbench.tasks.file_word_vectors:compute",
}
TRAINER = "gensim"
# The same, keeping what else is learned.
WITH_OUTPUTS = {
    "gensim": "textbench.tasks.output_vectors:compute_gensim",
    "shared": "textbench.tasks.output_vectors:compute_shared",
}


def reference(
    vectors: Reference, params: Mapping[str, Any], seed: int, *, with_outputs: bool = False
) -> Reference:
    """Return the word-vectors artifact of a vectors artifact, trained on its training part, transductive: on both.

    Files: vectors.npy float32 (n_terms, vector_size), row i for term i, of unit length, zero for a term that occurs
    fewer than `min_count` times; training.json, what the training did and cost. `params` are over the published
    ones: `vector_size`, `window` (tokens to each side), `negative` samples, `min_count`, `sample` (frequency above
    which tokens are left out at random, 0 for none), `epochs`, `hs` (1: a hierarchical softmax beside the negative
    samples), `workers` (one: same seed, same bits), and `trainer`, a name of TRAINERS: gensim, or shared, which is
    several times as fast, has no hierarchical softmax, and the same bits on one core or two, or file: then `path` is
    the only other one, a file of GloVe, word2vec or fastText, or `package:NAME`. `with_outputs` there are outputs.npy,
    the output vectors, and norms.npy (n_terms,), how long the vectors were.
    Raises InputError for an unknown parameter or a value outside these.
    """
    check(params)
    if is_from_file(params):
        if with_outputs:
            raise InputError("word vectors from a file have no output vectors, which this method needs")
        recipe = {"params": file_word_vectors.pinned(params["path"]), "seed": None}
        return refer(TRAINERS["file"], recipe, {"vectors": vectors}, stage="word_vectors")
    chosen = {**DEFAULTS, **params}
    trainer = chosen.pop("trainer", TRAINER)
    if trainer == "shared":
        del chosen["workers"], chosen["hs"]
    # The training is a module of its own, so that work on this page leaves the keys of what was trained alone.
    return refer(
        (WITH_OUTPUTS if with_outputs else TRAINERS)[trainer],
        {"params": chosen, "seed": seed},
        {"vectors": vectors},
        stage="word_vectors",
    )


def train(
    documents: "list[np.ndarray]", terms: list[str], params: Mapping[str, Any], seed: int
) -> "np.ndarray":
    """Train word vectors in this process; return what the artifact of these documents would hold.

    documents: int32 token ids each, positions in `terms`. `params` are those of `reference`.
    """
    from textbench.tasks import shared_negatives, skip_gram

    check(params)
    if is_from_file(params):
        return file_word_vectors.train(terms, params["path"])
    chosen = {**DEFAULTS, **params}
    if chosen.pop("trainer", TRAINER) == "shared":
        return shared_negatives.train(documents, len(terms), chosen, seed)[0]
    return skip_gram.train(documents, terms, chosen, seed)[0]


def train_with_outputs(
    documents: "list[np.ndarray]", terms: list[str], params: Mapping[str, Any], seed: int
) -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    """Train as `train` does; return vectors, output vectors and how long the vectors were."""
    from textbench.tasks import output_vectors

    check(params)
    chosen = {**DEFAULTS, **params}
    trainer = chosen.pop("trainer", TRAINER)
    return output_vectors.train(output_vectors.TRAINERS[trainer], documents, terms, chosen, seed)


def is_from_file(params: Mapping[str, Any]) -> bool:
    """Tell whether word vectors are read, not trained."""
    return params.get("trainer") == "file"


def check(params: Mapping[str, Any], owner: str = "word vectors", prefix: str = "") -> None:
    """Raise InputError for an unknown parameter or a value outside `ACCEPTS`; a message names `owner` and `prefix`."""
    for name, value in params.items():
        if name not in ACCEPTS:
            choices = [prefix + known for known in ACCEPTS]
            raise InputError(
                f"{owner} have no parameter {prefix + name!r}; {nearest(prefix + name, choices)}"
            )
        kind = type(DEFAULTS[name]).__name__ if name in DEFAULTS else "str"
        rule = Rule.read(kind, ACCEPTS[name])
        if not rule.allows(value):
            raise InputError(f"{owner}: {prefix}{name} must be {rule}, got {value!r}")
    if is_from_file(params) or "path" in params:
        if params.keys() != {"trainer", "path"} or not is_from_file(params):
            raise InputError(
                f"{owner} from a file are {prefix}trainer='file' with {prefix}path, got "
                f"{', '.join(prefix + name for name in params)}"
            )
        file_word_vectors.pinned(params["path"])
    if params.get("trainer") == "shared":
        for name, why in (("workers", "has one worker"), ("hs", "has no hierarchical softmax")):
            if params.get(name, DEFAULTS[name]) != DEFAULTS[name]:
                raise InputError(f"{owner}: the trainer shared {why}, got {prefix}{name} {params[name]!r}")
