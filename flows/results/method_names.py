"""Methods as tables name them: what was fitted to labels, or stands on a pretrained model, is marked."""

import contextlib
import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from textbench.flows.tables.table import Table
from textbench.tasks import InputError, catalogue, ensemble, rankers
from textbench.tasks.joined import PARTS

SUPERVISED = "+"
MEANING = "fitted to the labels of training documents too"
PRETRAINED = "°"
MEANINGS = {
    SUPERVISED: MEANING,
    PRETRAINED: "stands on a model that was trained elsewhere, perhaps on these very documents",
}

GROUPS = {False: "Methods", True: f"Methods on a pretrained model ({PRETRAINED})"}


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
        if name == catalogue.ENSEMBLE:
            return any(is_pretrained(member) for member, _ in ensemble.members(params))
        if (entry := catalogue.methods().get(name)) is not None:
            return entry.is_pretrained or params.get("word_vectors__trainer") == "file"
    return False


def marked_ranker(name: str) -> str:
    """Return a ranker's name, with a mark if it stands on a pretrained model; files of runs have none."""
    with contextlib.suppress(InputError):
        found = rankers.parse(name)
        if found.method is not None:
            return name + PRETRAINED * is_pretrained(catalogue.spelled(found.method, found.params))
    return name


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
    words = (word.rstrip("*") for word in label.split(" "))  # a star stands for the end of what was searched
    return "".join(word[len(word.rstrip(every)) :] for word in words)


def in_groups(table: Table) -> Table:
    """Return a table of methods with those on a pretrained model in a group of their own, below the others.

    A row's first place names its method, or methods. Without such a row the table stays as it is.
    """
    found: dict[bool, list[Any]] = {False: [], True: []}
    for row in table.rows:
        found[PRETRAINED in _marks_of(row[0].text)].append(row)
    if not found[True]:
        return table
    groups = [(GROUPS[is_pretrained], len(rows)) for is_pretrained, rows in found.items() if rows]
    return replace(table, rows=[row for rows in found.values() for row in rows], groups=groups)
