"""Rankers by name: a file of `evaluation.rankers`, a method (its cosine), `lm+METHOD`, `mb+METHOD`, and `lm+pv`."""

import importlib
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from textbench.tasks import InputError, catalogue

# Rankers that stand on a representation are not asked for by their own names.
DENSE, SENTENCES = "dense", "sentence"  # by cosine, and the method whose embeddings it ranks by
COSINE, MIXED, SOFTMAX = "cosine", {"lm": "lm_features", "mb": "mb_features"}, "lm_pv"
SOFTMAX_NAME, SOFTMAX_METHOD = "lm+pv", "pv-dbow"
# SCDV (EMNLP 2017), section 4.5: what its retrieval changes in the method's defaults.
PUBLISHED: dict[str, dict[str, Any]] = {"scdv": {"n_clusters": 100, "word_vectors__vector_size": 300}}


@dataclass(frozen=True)
class Ranker:
    """A ranker: the file of its model, and the representation it reads if it reads one.

    `name` is how it was asked for, `method` a name or file as `tasks.catalogue.method` takes it, `params` that
    method's parameters.
    """

    name: str
    module: str
    method: str | None = None
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def searches_method(self) -> bool:
        """Whether tuning searches the representation's own parameters: it does where nothing else is to be chosen."""
        return self.module.endswith(f".{COSINE}")

    def load(self) -> ModuleType:
        """Import the model's file and return the module."""
        return importlib.import_module(self.module)


def plain_rankers() -> dict[str, catalogue.Entry]:
    """Return the rankers that need no representation, by name."""
    apart = {COSINE, SOFTMAX, *MIXED.values()}
    return {name: entry for name, entry in catalogue.rankers().items() if entry.path.stem not in apart}


def spellings() -> dict[str, catalogue.Entry]:
    """Return every ranker by how it is asked for; METHOD stands for a representation of the catalogue."""
    asked = {COSINE: "METHOD", SOFTMAX: SOFTMAX_NAME} | {
        file: f"{base}+METHOD" for base, file in MIXED.items()
    }
    return {asked.get(entry.path.stem, name): entry for name, entry in catalogue.rankers().items()}


def names() -> list[str]:
    """Return the names that `parse` takes without a method's file or parameters."""
    methods = [
        name for name, entry in catalogue.methods().items() if not entry.is_classifier | entry.uses_labels()
    ]
    mixed = [f"{base}+{name}" for base in MIXED for name in methods]
    return [*plain_rankers(), DENSE, *methods, *dict.fromkeys([SOFTMAX_NAME, *mixed])]


def parse(text: str) -> Ranker:
    """Return the ranker of that name; a method may carry parameters, `lm+lsi(n_components=100)`.

    Raises InputError for an unknown name, with the nearest.
    """
    plain = plain_rankers()
    if text.partition("(")[0] == DENSE:
        own = catalogue.parse_method(text.replace(DENSE, SENTENCES, 1))[1]
        return Ranker(text, _module(COSINE), SENTENCES, own)
    if text in plain:
        return Ranker(text, plain[text].module)
    base, plus, method = text.partition("+")
    if not plus:
        base, method = COSINE, text
    elif base not in MIXED:
        raise InputError(
            f"a method is added to {' or '.join(MIXED)}, such as lm+scdv, got {text!r}; {_nearest(text)}"
        )
    name, params = catalogue.parse_method(method)
    if f"{base}+{name}" == SOFTMAX_NAME:
        return Ranker(text, _module(SOFTMAX), SOFTMAX_METHOD, params)
    if not name.endswith(".py") and name not in catalogue.methods():
        raise InputError(f"there is no ranker {text!r}; {_nearest(text)}")
    entry = catalogue.method(name)
    if entry.is_classifier:
        raise InputError(f"{entry.name} classifies and gives no features to rank by; {_nearest(text)}")
    if entry.uses_labels(params):
        raise InputError(f"{entry.name} is fitted to labels, and a collection has none; {_nearest(text)}")
    where = str(entry.path) if name.endswith(".py") else name
    return Ranker(text, _module(MIXED.get(base, COSINE)), where, PUBLISHED.get(name, {}) | params)


def _module(stem: str) -> str:
    return f"textbench.evaluation.rankers.{stem}"


def _nearest(text: str) -> str:
    return catalogue.nearest(text, names())
