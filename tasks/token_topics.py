"""Token topics: a topic for every token of the documents, an artifact that all methods of a run share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textbench.featurizers._parameters import Rule
from textbench.tasks import InputError
from textbench.tasks.catalogue import nearest
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.featurizers._topical.token_topics import TokenTopics
    from textbench.tasks.storage.store import Artifact, Job

# TWE (AAAI 2015) and SCDV (EMNLP 2017) have 80 topics; alpha None is 50 over their number, as GibbsLDA++ has it.
DEFAULTS: dict[str, Any] = {"n_topics": 80, "alpha": None, "eta": 0.01, "n_iter": 200}
ACCEPTS: Mapping[str, tuple[str, str]] = {
    "n_topics": ("int", "[1, inf)"),
    "alpha": ("float | None", "(0, inf)"),
    "eta": ("float", "(0, inf)"),
    "n_iter": ("int", "[1, inf)"),
}


def reference(vectors: Reference, params: Mapping[str, Any], seed: int) -> Reference:
    """Return the token-topics artifact of a vectors artifact, of its training part, transductive: of both.

    Files: topics.npy int32 (n_tokens,), the documents one after another; model.json, the priors. `params` are over
    DEFAULTS: `n_topics`, `alpha` and `eta`, the priors of documents' topics and of topics' terms, and `n_iter` sweeps.
    Raises InputError for an unknown parameter or a value outside `ACCEPTS`.
    """
    check(params)
    recipe = {"params": {**DEFAULTS, **params}, "seed": seed}
    return refer("textbench.tasks.token_topics:compute", recipe, {"vectors": vectors})


def compute(job: "Job") -> None:
    """Sample the topics of the documents of the vectors artifact; write `topics` (npy) and `model` (json)."""
    from textbench.featurizers._topical.token_topics import sample
    from textbench.tasks.skip_gram import training_documents

    found = sample(training_documents(job.open("vectors")), job.params["seed"], **job.params["params"])
    job.save_array("topics", found.topics)
    job.save_json("model", {"n_topics": found.n_topics, "alpha": found.alpha, "eta": found.eta})


def read(artifact: "Artifact") -> "TokenTopics":
    """Return what `compute` wrote."""
    from textbench.featurizers._topical.token_topics import TokenTopics

    return TokenTopics(artifact.array("topics"), **artifact.json("model"))


def check(params: Mapping[str, Any], owner: str = "token topics", prefix: str = "") -> None:
    """Raise InputError for an unknown parameter or a value outside `ACCEPTS`; a message names `owner` and `prefix`."""
    for name, value in params.items():
        if name not in ACCEPTS:
            choices = [prefix + known for known in ACCEPTS]
            raise InputError(
                f"{owner} have no parameter {prefix + name!r}; {nearest(prefix + name, choices)}"
            )
        rule = Rule.read(*ACCEPTS[name])
        if not rule.allows(value):
            raise InputError(f"{owner}: {prefix}{name} must be {rule}, got {value!r}")
