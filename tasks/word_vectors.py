"""Word vectors: skip-gram embeddings of the vocabulary's terms, an artifact that all methods of a run share."""

from collections.abc import Mapping
from typing import Any

from tasks import InputError
from tasks.catalogue import nearest
from tasks.recipe import Reference, refer

# SCDV (EMNLP 2017), section 4.2; subsampling and the number of epochs are from its authors' code.
DEFAULTS: dict[str, Any] = {
    "vector_size": 200,
    "window": 10,
    "negative": 10,
    "min_count": 20,
    "sample": 1e-3,
    "epochs": 25,
    "workers": 1,
}
# gensim is what faithful protocols use.
TRAINERS = {"gensim": "tasks.skip_gram:compute", "shared": "tasks.shared_negatives:compute"}


def reference(vectors: Reference, params: Mapping[str, Any], seed: int) -> Reference:
    """Return the word-vectors artifact of a vectors artifact, trained on its training part, transductive: on both.

    Files: vectors.npy float32 (n_terms, vector_size), row i for term i, of unit length, zero for a term that occurs
    fewer than `min_count` times; training.json, what the training did and cost. `params` are over the published
    ones: `vector_size`, `window` (tokens to each side), `negative` samples, `min_count`, `sample` (frequency above
    which tokens are left out at random, 0 for none), `epochs`, `workers` (one: same seed, same bits), and `trainer`, a
    name of TRAINERS: gensim, or shared, which is several times as fast and has one worker.
    Raises InputError for an unknown parameter or a value outside these.
    """
    chosen = {**DEFAULTS, **params}
    trainer = chosen.pop("trainer", "gensim")
    if trainer not in TRAINERS:
        raise InputError(f"word vectors: trainer must be one of {', '.join(TRAINERS)}, got {trainer!r}")
    _check(chosen)
    if trainer == "shared" and chosen.pop("workers") != 1:
        raise InputError("word vectors: the trainer shared has one worker")
    # The training is a module of its own, so that work on this page leaves the keys of what was trained alone.
    return refer(
        TRAINERS[trainer],
        {"params": chosen, "seed": seed},
        {"vectors": vectors},
        stage="word_vectors",
    )


def _check(params: Mapping[str, Any]) -> None:
    for name, value in params.items():
        if name not in DEFAULTS:
            raise InputError(
                f"word vectors have no parameter {name!r}; {nearest(name, [*DEFAULTS, 'trainer'])}"
            )
        if name == "sample":
            if type(value) not in (int, float) or not 0 <= value < 1:
                raise InputError(f"word vectors: sample must be a frequency in [0, 1), got {value!r}")
        elif type(value) is not int or value < 1:
            raise InputError(f"word vectors: {name} must be a whole number from 1, got {value!r}")
