"""Methods as tables name them: what was fitted to labels, or stands on a pretrained model, is marked."""

import contextlib
import functools
from collections.abc import Iterable, Mapping
from typing import Any

from textbench.tasks import InputError, catalogue
from textbench.tasks.joined import PARTS

SUPERVISED = "+"
MEANING = "fitted to the labels of training documents too"
PRETRAINED = "°"
MEANINGS = {
    SUPERVISED: MEANING,
    PRETRAINED: "stands on a model that was trained elsewhere, perhaps on these very documents",
}


def uses_labels(row: Mapping[str, Any]) -> bool:
    """Tell whether the representation of a row's method was fitted to labels.

    A row that does not say so goes by its method's file, if that is one of ours.
    """
    said = row.get("uses_labels")
    if said is not None:
        return bool(said)
    with contextlib.suppress(InputError):
        name, params = catalogue.parse_method(row["method"])
        if (entry := catalogue.methods().get(name)) is not None:
            return entry.uses_labels(params)
    return False


@functools.lru_cache(maxsize=4096)
def is_pretrained(method: str) -> bool:
    """Tell whether a method, written as in a row, stands on a model or on vectors that were trained elsewhere."""
    with contextlib.suppress(InputError):
        name, params = catalogue.parse_method(method)
        if name == catalogue.JOIN:
            return any(is_pretrained(params[part]) for part in PARTS)
        if (entry := catalogue.methods().get(name)) is not None:
            return entry.is_pretrained or params.get("word_vectors__trainer") == "file"
    return False


def with_marks(method: str, *, uses_labels: bool) -> str:
    """Return a method, written as in a row, with a mark for each of MEANINGS that holds for it."""
    return method + SUPERVISED * uses_labels + PRETRAINED * is_pretrained(method)


def marked(row: Mapping[str, Any]) -> str:
    """Return a row's method, with its marks."""
    return with_marks(row["method"], uses_labels=uses_labels(row))


def explained(labels: Iterable[str]) -> str:
    """Return a sentence a mark that one of these labels has, each after a space: what it means.

    A label is a method, its marks, and after a space what else tells it apart.
    """
    ends = {mark for label in labels for mark in _marks_of(label)}
    return "".join(f" {mark} {meaning}." for mark, meaning in MEANINGS.items() if mark in ends)


def _marks_of(label: str) -> str:
    """Return the marks with which a word of a label ends."""
    every = "".join(MEANINGS)
    return "".join(word[len(word.rstrip(every)) :] for word in label.split(" "))
