"""Data sets of finished runs: which documents a run is of, and a name that no other documents have.

Runs are compared on the same documents, split and labels alone. The user's own data go by the name of a file, which
says nothing of its content, so rows are grouped by what is in it, and each group has a name: `data`, `data (2)`.
`told_apart` is the one place that says what a group is; whoever groups rows does so by the `dataset` that it gives.
"""

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from textbench.flows.plan import dataset_numbers
from textbench.tasks import InputError, catalogue
from textbench.tasks.corpus import identity
from textbench.tasks.storage.files import META, Damaged, read_meta
from textbench.tasks.storage.recipe import Reference, canonical_json
from textbench.tasks.storage.store import Artifact, Store
from textbench.tasks.words import counted

Row = Mapping[str, Any]
Group = tuple[str, str]
SHORT = 8  # digits of a sha256 that are shown


def told_apart(home: Path, rows: Iterable[Row], among: Iterable[Row] = ()) -> list[dict[str, Any]]:
    """Return rows with a `dataset` that only rows of the same documents have, whatever they were called.

    Of several data sets with one name the first that was run keeps it, the others are `data (2)`, `data (3)`, numbers
    that stay once they were shown (`flows.plan.dataset_numbers`). `named`
    is what a row was called, and `about` what tells its data set from those of the same name, "" without any.

    rows: of the index, of MLflow, or of a run just made; `among` are others that have a say in the names.
    """
    rows = [{**row, "dataset": row.get("named", row["dataset"])} for row in rows]
    others = [{**row, "dataset": row.get("named", row["dataset"])} for row in among]
    places = _groups(home, [*rows, *others])
    groups = _gathered([*rows, *others], places)
    names = _names(home, groups)
    counts = Counter(map(_name, groups.values()))
    is_plain = {
        place: counts[_name(own)] == 1 and names[place] == _name(own) for place, own in groups.items()
    }
    abouts = {place: "" if is_plain[place] else about(home, own) for place, own in groups.items()}
    return [
        {**row, "named": row["dataset"], "dataset": names[place], "about": abouts[place]}
        for row, place in zip(rows, places, strict=False)
    ]


def keep_numbers(home: Path, rows: Iterable[Row]) -> None:
    """Keep the numbers of the data sets that share a name, as `told_apart` gives them to all rows of the index."""
    rows = [{**row, "dataset": row.get("named", row["dataset"])} for row in rows]
    numbers = _numbers(home, _gathered(rows, _groups(home, rows)))
    dataset_numbers.keep(home, {name: given for name, given in numbers.items() if len(given) > 1})


def _gathered(rows: Sequence[Row], places: Sequence[Group]) -> dict[Group, list[Row]]:
    groups: dict[Group, list[Row]] = {}
    for row, place in zip(rows, places, strict=True):
        groups.setdefault(place, []).append(row)
    return groups


def _groups(home: Path, rows: Sequence[Row]) -> list[Group]:
    """Return the group of each row: the name of a data set of textbench's ("" for own data), and its documents.

    Of textbench's own the rows of earlier versions, which do not tell their documents, are of those that all others are
    of; own data is never taken to be the same for its name.
    """
    catalogued = catalogue.datasets()
    known: dict[str, set[str]] = {}
    read: dict[str, str] = {}
    for row in rows:
        if row.get("corpus"):
            known.setdefault(row["dataset"], set()).add(row["corpus"]["documents_sha256"])
    found = []
    for row in rows:
        name = row["dataset"]
        if (row.get("request") or {}).get("own") or name not in catalogued:
            found.append(("", documents_of(home, row, read)))
        elif row.get("corpus") or len(known.get(name, ())) != 1:
            found.append((name, row["corpus"]["documents_sha256"] if row.get("corpus") else ""))
        else:
            found.append((name, *known[name]))
    return found


def _names(home: Path, groups: Mapping[Group, Sequence[Row]]) -> dict[Group, str]:
    numbers = _numbers(home, groups)
    names = {}
    for place, own in groups.items():
        number = numbers[_name(own)][_documents(place)]
        names[place] = _name(own) if number == 1 else f"{_name(own)} ({number})"
    return names


def _numbers(home: Path, groups: Mapping[Group, Sequence[Row]]) -> dataset_numbers.Numbers:
    """Return by name the number of each group: that which is kept, else by when it was first run."""
    kept, ordered = dataset_numbers.read(home), dict[str, list[str]]()
    for place in sorted(groups, key=lambda g: (min(map(_created, groups[g])), g)):
        ordered.setdefault(_name(groups[place]), []).append(_documents(place))
    return {name: dataset_numbers.numbered(kept.get(name, {}), own) for name, own in ordered.items()}


def _documents(place: Group) -> str:
    return " ".join(filter(None, place))


def _created(row: Row) -> float:
    return float(row.get("created", math.inf))  # a row of a run just made has no date


def _name(rows: Sequence[Row]) -> str:
    """Return what documents were called last."""
    return str(max(rows, key=_created)["dataset"])


def newest(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return, of rows that were told apart, those of the documents that each name was last run on, under that name."""
    rows = list(rows)
    last: dict[str, Row] = {}
    for row in rows:
        if row["named"] not in last or _created(row) >= _created(last[row["named"]]):
            last[row["named"]] = row
    return [
        {**row, "dataset": row["named"]} for row in rows if row["dataset"] == last[row["named"]]["dataset"]
    ]


def about(home: Path, rows: Sequence[Row]) -> str:
    """Return the size of a data set, its sha256 and when it was first run, as far as they are known."""
    words = []
    corpus = next((row["corpus"] for row in rows if row.get("corpus")), None)
    if corpus is None and (reference := _reference(home, rows[0])):
        corpus = stored_identity(Store(home / "store"), reference)
    if corpus:
        words.append(f"{corpus['n_train']:,} training and {counted(corpus['n_test'], 'test document')}")
        words.append(
            f"{counted(corpus['n_labels'], 'label')}, documents' sha256 {corpus['documents_sha256'][:SHORT]}"
        )
    elif own := (rows[0].get("request") or {}).get("own"):
        words.append(f"read from {own['path']}")
    first = min(map(_created, rows))
    day = time.gmtime(first if math.isfinite(first) else time.time())
    return ", ".join([*words, f"first run {time.strftime('%Y-%m-%d', day)}"])


def documents_of(home: Path, row: Row, read: dict[str, str] | None = None) -> str:
    """Return what stands for a run's documents, split and labels: where it is equal they are the same.

    It is the sha256 of their content; of what an earlier version ran, whose documents are no longer stored, how they
    were read, else what was asked for. `read` keeps, by key, what was read from the store.
    """
    if corpus := row.get("corpus"):
        return str(corpus["documents_sha256"])
    reference, read = _reference(home, row), {} if read is None else read
    if reference is None:
        own = (row.get("request") or {}).get("own")
        return canonical_json([row["dataset"], own or row.get("sha256") or {}])
    if reference.key not in read:
        read[reference.key] = documents_in(home, reference)
    return read[reference.key]


def documents_in(home: Path, corpus: Reference) -> str:
    """Return what stands for the documents of an artifact: of own data it tells no two places of one file apart."""
    if known := stored_identity(Store(home / "store"), corpus):
        return str(known["documents_sha256"])
    if "own" not in corpus.params:
        return corpus.key
    how = {name: value for name, value in corpus.params["own"].items() if name not in ("path", "name")}
    return canonical_json([corpus.params["digest"], how])


def stored_identity(store: Store, corpus: Reference) -> dict[str, Any] | None:
    """Return what tells documents from others (`tasks.corpus.identity`), None where they are not stored."""
    try:
        folder = store.folder(corpus)
        return identity(Artifact(folder, read_meta(folder / META)))
    except (OSError, Damaged, ValueError):
        return None


def _reference(home: Path, row: Row) -> Reference | None:
    """Return the recipe of a run's documents, None where its result is no longer stored."""
    try:
        recipe = read_meta(home / "store" / "evaluate" / row["key"] / META)["recipe"]
        return Reference.from_json(recipe["inputs"]["corpus"])
    except (OSError, Damaged, KeyError):
        return None


def choose_datasets(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Return the data sets of these names, as `told_apart` has them; a data set may be asked for by an earlier name.

    NAME@SHA is the one of that name whose documents' sha256 begins so. Raises InputError for a name that neither the
    catalogue nor any run has, with the nearest, and for digits that no data set or several of that name begin with.
    """
    now = {row["dataset"] for row in rows}
    # Of several that had a name and have another now, the one that had it last.
    earlier = {row["named"]: row["dataset"] for row in sorted(rows, key=_created)}
    choices = dict.fromkeys([*catalogue.datasets(), *sorted(now), *sorted(earlier)])
    found = []
    for name in names:
        base, at, digits = name.rpartition("@")
        if at and name not in choices:
            catalogue.pick("data set", base, choices)
            found.append(_of_sha256(rows, base, digits))
        else:
            catalogue.pick("data set", name, choices)
            found.append(name if name in now else earlier.get(name, name))
    return found


def _of_sha256(rows: Sequence[Row], name: str, digits: str) -> str:
    known = {
        row["dataset"]: row["corpus"]["documents_sha256"]
        for row in rows
        if row.get("corpus") and name in (row["named"], row["dataset"])
    }
    found = [dataset for dataset, sha256 in known.items() if sha256.startswith(digits.lower())]
    if len(found) == 1 and digits:
        return found[0]
    choices = ", ".join(f"{name}@{sha256[:SHORT]}" for sha256 in known.values())
    few = "no" if not found else "more than one"
    raise InputError(
        f"{few} data set called {name} has documents whose sha256 begins with {digits!r}; "
        f"choose from {choices or 'none'}"
    )


def choose_methods(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Return these names of methods. Raises InputError for one that neither the catalogue nor any run has."""
    choices = dict.fromkeys([*catalogue.methods(), *sorted({row["method"] for row in rows})])
    for name in names:
        catalogue.pick("method", name, choices)  # a run may be of the user's own method
    return list(names)
