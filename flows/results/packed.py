"""Packed boards: results as one Parquet file that travels, checked when it is read.

A line is a finished cell (`kind` "cell", one seed) or a mean over seeds that is recorded ("mean"). It holds metrics,
half-widths of their 95 % intervals, settings, seconds, versions, the data's sha256 and the keys of its cells; no text
of a document and no path of a file. The schema's metadata has a checksum of all lines.

Of a cell the recipe of each stage stands beside it, so that its key can be worked out again: a line whose data set,
method, seed or trials were changed does not fit it. What was measured no key can prove: `results verify`
(`flows.run.verification`) computes it again.
"""

import hashlib
import json
import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.plan.base_cell import NEAR, member_stage
from textbench.flows.plan.request import Request
from textbench.flows.results.metric_names import KNOWN
from textbench.flows.results.runs import command_of, is_whole
from textbench.flows.results.summary import latest, settings_of
from textbench.tasks import InputError, catalogue, ensemble
from textbench.tasks.storage.definitions import PROJECT
from textbench.tasks.storage.files import META, Damaged, read_json, read_meta, whole
from textbench.tasks.storage.recipe import Reference, canonical_json
from textbench.tasks.storage.store import Store

if TYPE_CHECKING:
    import pyarrow

FILE = PROJECT / "evaluation" / "board.parquet"  # what the repository records
CELL, MEAN = "cell", "mean"
NAME, VERSION = "textbench-board", 2
SINCE = {"pairs": 2}  # columns that earlier versions do not have
MOST_BYTES, MOST_LINES = 50_000_000, 200_000
TEXTS = (
    "kind", "dataset", "documents_sha256", "protocol", "paper", "method", "probe", "data_sha256", "commit", "hardware",
    "command", "created",
)  # fmt: skip
LISTS = ("settings", "on_border", "cells", "hidden")
# JSON of an object each: by metric, by stage, by library; `recipes` and `files` of a cell alone, `pairs` of a mean.
OBJECTS = (
    "metrics", "half_widths", "over", "stage_seconds", "params", "request", "versions", "recipes", "files",
    "pairs",
)  # fmt: skip
FOLDERS = re.compile(r"(^|[\s'\"=(,])(?:~|\.{0,2}/|[A-Za-z]:[/\\])(?:[^\s'\"]*[/\\])?")  # of a path to a file
CHOICE = "choice.json"  # of the stage tune
Line = dict[str, Any]


@cache
def schema(version: int = VERSION) -> "pyarrow.Schema":
    """Return the columns of a packed board of a version."""
    import pyarrow as pa

    numbers = [("trials", pa.int64()), ("seconds", pa.float64()), ("peak_mb", pa.float64())]
    columns = [
        *((name, pa.string()) for name in TEXTS),
        *numbers,
        ("seeds", pa.list_(pa.int64())),
        ("uses_labels", pa.bool_()),
        *((name, pa.list_(pa.string())) for name in LISTS),
        *((name, pa.string()) for name in OBJECTS),
    ]  # fmt: skip
    return pa.schema([column for column in columns if SINCE.get(column[0], 1) <= version])


def blank() -> Line:
    """Return a line that says nothing yet."""
    line: Line = dict.fromkeys(TEXTS, "") | {name: [] for name in LISTS} | {name: {} for name in OBJECTS}
    return line | {"trials": 0, "seconds": None, "peak_mb": None, "seeds": [], "uses_labels": False}


def write(path: Path, lines: Sequence[Line]) -> None:
    """Write lines as a packed board, whole or not at all. Raises InputError where it cannot be written."""
    import pyarrow as pa
    import pyarrow.parquet

    about = {"format": NAME, "version": VERSION, "lines": len(lines), "sha256": _checksum(lines)}
    columns = {
        name: [_folded(line[name]) if name in OBJECTS else line[name] for line in lines]
        for name in schema().names
    }
    table = pa.table(columns, schema=schema()).replace_schema_metadata({NAME: json.dumps(about)})
    try:
        with whole(path) as part:
            pyarrow.parquet.write_table(table, part, compression="zstd", compression_level=12)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def _folded(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False) if value else ""


def _checksum(lines: Iterable[Line]) -> str:
    return hashlib.sha256(canonical_json(list(lines)).encode()).hexdigest()


def read(path: Path) -> list[Line]:
    """Return the lines of a packed board, checked against its schema and checksum, each cell against its key.

    Raises InputError in one line for any other file, and for one that was altered.
    """
    import pyarrow as pa
    import pyarrow.parquet

    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise InputError(f"{path} has {size:,} bytes; a packed board has at most {MOST_BYTES:,}")
        file = pyarrow.parquet.ParquetFile(path)
        if file.metadata.num_rows > MOST_LINES:
            raise InputError(
                f"{path} has {file.metadata.num_rows:,} lines; a packed board has at most {MOST_LINES:,}"
            )
        about = _about(path, file.schema_arrow)
        lines = [_unfolded(line) for line in file.read().to_pylist()]
        is_intact = _checksum(lines) == about.get("sha256")
        lines = [blank() | line for line in lines]
    except OSError as error:
        if error.strerror is None:  # of the reader of Parquet
            raise InputError(f"{path} is damaged or no Parquet file ({_short(error)})") from error
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (pa.ArrowException, ValueError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is damaged or no packed board ({_short(error)})") from error
    if not is_intact:
        raise InputError(f"{path} was altered: its lines do not have its checksum")
    for number, line in enumerate(lines, 1):
        if problem := _problem(line):
            raise InputError(f"{path}, line {number} ({title(line)[:80]!r}): {problem}")
    return lines


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:120]


def _about(path: Path, found: "pyarrow.Schema") -> dict[str, Any]:
    metadata = found.metadata or {}
    if NAME.encode() not in metadata:
        raise InputError(f"{path} is no packed board of textbench: make one with textbench results pack")
    about = json.loads(metadata[NAME.encode()])
    version = about.get("version")
    if version not in range(1, VERSION + 1):
        raise InputError(
            f"{path} has format version {version!r}, this textbench reads those to {VERSION}; pack it again"
        )
    if not found.equals(schema(version)):
        different = [name for name in schema(version).names if name not in found.names] or found.names
        raise InputError(f"{path} does not have the columns of a packed board ({', '.join(different[:5])})")
    return dict(about)


def _unfolded(line: Line) -> Line:
    for name in line.keys() & set(OBJECTS):
        line[name] = json.loads(line[name]) if line[name] else {}
        if not isinstance(line[name], dict):
            raise ValueError(f"{name} is no JSON object")
    return line


def title(line: Line) -> str:
    """Return what a line is of, for people."""
    seeds = " ".join(map(str, line["seeds"] or ()))
    return f"{line['dataset']} {line['method']}, {line['protocol']}, seed {seeds}"


def _problem(line: Line) -> str:
    """Return what is wrong with a line, "" if nothing is."""
    words = [line[name] for name in TEXTS] + [word for name in LISTS for word in line[name] or [None]]
    if any(
        word is None for word in [line[name] for name in (*TEXTS, *LISTS, "seeds", "trials", "uses_labels")]
    ):
        return "a value is missing"
    if not all(word is None or word.isprintable() for word in words):
        return "its texts have characters that cannot be printed"
    if line["kind"] not in (CELL, MEAN) or not line["seeds"]:
        return f"it is neither a cell nor a mean over seeds ({line['kind']!r}, {len(line['seeds'])} seeds)"
    for name in ("metrics", "half_widths"):
        for metric, value in line[name].items():
            if metric not in KNOWN:
                return f"there is no metric {metric!r}"
            if type(value) not in (int, float) or not math.isfinite(value):
                return f"{metric} must be a finite number, got {value!r}"
    for metric, pairs in line["pairs"].items():
        if metric not in KNOWN or not isinstance(pairs, dict) or not all(map(_is_p, pairs.values())):
            return f"its paired tests of {metric!r} are none"
    if not set(line["half_widths"]) <= set(line["over"]):
        return "an interval does not say over what it is"
    return _wrong_key(line) if line["kind"] == CELL else ""


def _is_p(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1


def _wrong_key(line: Line) -> str:
    """Say how a cell's recipes do not give its key or do not fit its line; "" where they do."""
    recipes = line["recipes"]
    if len(line["cells"]) != 1 or len(line["seeds"]) != 1:
        return "a cell has one key and one seed"
    key = line["cells"][0]
    if "evaluate" not in recipes and key in line["hidden"]:
        return ""  # a file of the user's predictions: its recipe stayed there
    try:
        keys = {stage: own_key(recipe) for stage, recipe in recipes.items()}
        if keys.get("evaluate") != key:
            return f"its key is not that of its recipe ({key[:12]!r})"
        result = recipes["evaluate"]["inputs"]
        if not set(result.values()) <= {*keys.values(), *line["hidden"]}:
            return "a stage that its result is made from is not in it, or was altered"
        asked = recipes["tune"]["params"] if "tune" in recipes else {}
    except (KeyError, TypeError, AttributeError):
        return "its recipes cannot be read"
    if "ingest" in recipes and recipes["ingest"]["params"].get("dataset") not in (None, line["dataset"]):
        return f"its recipe is of the data set {recipes['ingest']['params']['dataset']!r}"
    wanted = {"seed": line["seeds"][0], "trials": line["trials"]}
    for name, value in wanted.items():
        if name in asked and asked[name] != value:
            return f"its recipe has {name} {asked[name]!r}, the line {value!r}"
    ours = {*catalogue.methods(), catalogue.JOIN, catalogue.ENSEMBLE}
    if asked.get("method") in ours and asked["method"] != _name_of(line["method"]):
        return f"its recipe is of the method {asked['method']!r}"
    return ""


def _name_of(method: str) -> str:
    """Return a method's name without its settings; what is written in no known way is its own name."""
    try:
        return catalogue.parse_method(method)[0]
    except InputError:
        return method


def own_recipe(reference: Reference) -> dict[str, Any]:
    """Return one stage's recipe, with the keys of what it is made from."""
    recipe = {
        name: value for name, value in reference.to_json().items() if name not in ("function", "inputs")
    }
    return recipe | {"inputs": {name: ref.key for name, ref in reference.inputs.items()}}


def own_key(recipe: Mapping[str, Any]) -> str:
    """Return the key that follows from one stage's recipe (`tasks.storage.recipe`)."""
    return hashlib.sha256(canonical_json(recipe).encode()).hexdigest()


def cells(home: Path, rows: Iterable[Mapping[str, Any]], *, with_paths: bool = False) -> list[Line]:
    """Return finished rows of the index as lines, in the order of what they are of; of one seed the newest.

    What asks for the user's own documents and methods is left out, unless `with_paths`: it names files.
    """
    whole_ones = latest(row for row in rows if is_whole(row) and row["metrics"])
    lines = [_cell(home, row, with_paths) for row in whole_ones]
    return sorted(
        lines, key=lambda line: [line[n] for n in ("dataset", "protocol", "method", "trials", "seeds")]
    )


def _cell(home: Path, row: Mapping[str, Any], with_paths: bool) -> Line:
    request = row["request"]
    is_private = not with_paths and names_a_path(request)
    stages = _stages(home, row["key"])
    recipes = {stage: own_recipe(reference) for stage, reference in stages.items()}
    # What names a file of the user's stays here; its key tells it from others.
    kept = {stage: recipe for stage, recipe in recipes.items() if not names_a_path(recipe)}
    hidden = sorted(own_key(recipe) for stage, recipe in recipes.items() if stage not in kept)
    libraries = {name: found for recipe in recipes.values() for name, found in recipe["libraries"].items()}
    halves, corpus = row.get("documents_95") or {}, row.get("corpus") or {}
    return blank() | {
        "kind": CELL, "dataset": row.get("named", row["dataset"]), "protocol": row["protocol"],
        "documents_sha256": corpus.get("documents_sha256", ""), "paper": row.get("paper") or "",
        "method": without_folders(row["method"]), "probe": row.get("probe") or "", "trials": int(row["trials"]),
        "settings": list(settings_of(row)), "seeds": [row["seed"]], "metrics": dict(row["metrics"]),
        "half_widths": halves, "over": dict.fromkeys(halves, "documents"),
        "seconds": math.fsum(row["seconds"].values()) if row["seconds"] else None,
        "stage_seconds": dict(row["seconds"]), "peak_mb": row["peak_mb"],
        "params": {n: without_folders(v) if isinstance(v, str) else v for n, v in row["params"].items()},
        "on_border": list(row["on_border"]), "uses_labels": bool(row.get("uses_labels")), "cells": [row["key"]],
        "request": {} if is_private else dict(request),
        "command": "" if is_private else command_of(Request(**request)),
        "data_sha256": _data_sha256(home, stages), "versions": libraries, "recipes": kept, "hidden": hidden,
        "files": {stage: found for stage, ref in stages.items() if (found := digests(Store(home / "store"), ref))},
        "created": time.strftime("%Y-%m-%d", time.gmtime(row["created"])),
    }  # fmt: skip


def _stages(home: Path, key: str) -> dict[str, Reference]:
    """Return the recipes behind a result by stage, none where it is no longer stored.

    Those of an ensemble's members come first, each after its number (`member_stage`).
    """
    try:
        result = Reference.from_json(read_meta(home / "store" / "evaluate" / key / META)["recipe"])
    except (OSError, Damaged):
        return {}
    members = [ref for name, ref in sorted(result.inputs.items()) if name.startswith(ensemble.MEMBER)]
    found = {
        member_stage(place, stage): reference
        for place, member in enumerate(members, start=1)
        for stage, reference in _behind(member).items()
    }
    found |= {NEAR: near} if (near := result.inputs.get("near")) else {}
    return found | _behind(result)


def _behind(result: Reference) -> dict[str, Reference]:
    inputs = result.inputs
    found = {"ingest": inputs["corpus"], "vectorize": inputs["vectors"], "tune": inputs["choice"]}
    return found | {"evaluate": result}


def digests(store: Store, reference: Reference) -> dict[str, str]:
    """Return the sha256 of each file of a stored artifact; nothing where it is gone.

    That of what was chosen leaves out the seconds that trying took.
    """
    try:
        meta = read_meta(store.folder(reference) / META)
    except (OSError, Damaged):
        return {}
    found = {name: about["sha256"] for name, about in meta["files"].items()}
    if CHOICE in found:
        choice = read_json(store.folder(reference) / CHOICE)
        found[CHOICE] = hashlib.sha256(canonical_json(_without_seconds(choice)).encode()).hexdigest()
    return found


def _without_seconds(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_seconds(one) for name, one in value.items() if "seconds" not in name}
    return [_without_seconds(one) for one in value] if isinstance(value, list) else value


def _data_sha256(home: Path, stages: Mapping[str, Reference]) -> str:
    if "ingest" not in stages:
        return ""
    corpus = read_json(Store(home / "store").folder(stages["ingest"]) / "corpus.json")
    return " ".join(
        f"{Path(name).name}={digest}" for name, digest in sorted(corpus.get("sha256", {}).items())
    )


def names_a_path(value: Any) -> bool:
    """Tell whether a request or a recipe names a file of the user's, or holds what was said of one."""
    if isinstance(value, Mapping):
        return bool(value.get("own")) or any(map(names_a_path, value.values()))
    if isinstance(value, list | tuple):
        return any(map(names_a_path, value))
    return isinstance(value, str) and FOLDERS.search(value) is not None


def without_folders(text: str) -> str:
    """Return a text with the paths in it cut to their last names."""
    return FOLDERS.sub(lambda found: found[1], text)
