"""The spool: runs that MLflow could not take are kept as files in `<home>/spool`, and sent when it can.

A run is one file, `NAME.json`, there whole or not at all: what to write, and for which server. What is attached lies
beside it in the folder `NAME`, as links that outlive a pruned store. MLflow's runs are known by two of their tags
(`tasks.tracking.tracker`), so one that was sent and could not be forgotten in time is not there twice.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textbench.tasks.storage.files import write_json
from textbench.tasks.storage.locks import take
from textbench.tasks.tracking.tracker import ATTEMPT_TAG, CELL_TAG, Tracker, TrackingError

Entry = dict[str, Any]
# What MLflow's client says when the server or the database is the trouble, and not what was sent.
DOWN_CODES = ("INTERNAL_ERROR", "TEMPORARILY_UNAVAILABLE")
DOWN_LIBRARIES = ("boto3", "botocore", "sqlalchemy", "urllib3")


def is_down(error: BaseException) -> bool:
    """Tell whether MLflow could not be reached or did not answer, as opposed to refusing what it was told."""
    if isinstance(error, TrackingError | ConnectionError | TimeoutError):
        return True
    if code := getattr(error, "error_code", None):
        return code in DOWN_CODES
    if type(error).__module__.partition(".")[0] in DOWN_LIBRARIES:
        return True
    return isinstance(error, OSError) and not isinstance(error, FileNotFoundError)


def folder(home: Path) -> Path:
    """Return `<home>/spool`."""
    return home / "spool"


def name_of(entry: Mapping[str, Any]) -> str:
    """Return the name of an entry: the same run has the same."""
    return f"{entry['tags'][CELL_TAG]}-{entry['tags'][ATTEMPT_TAG]}"


def cell_entry(
    index: Path, row: Mapping[str, Any], tags: Mapping[str, str], files: Mapping[str, Path]
) -> Entry:
    """Return what is to be written of a cell; its record in the folder `index` is told the run's id."""
    attached = {name: str(path) for name, path in files.items()}
    return {"index": index.name, "row": dict(row), "tags": dict(tags), "files": attached, "search": None}


def curve_entry(
    name: str,
    params: Mapping[str, Any],
    curves: Mapping[str, Mapping[int, float]],
    metric: str,
    tags: Mapping[str, str],
    picture: Path,
) -> Entry:
    """Return what is to be written of a label-budget curve; the arguments are those of `Tracker.record_curve`."""
    curve = {"name": name, "params": dict(params), "curves": dict(curves), "metric": metric}
    return {"curve": curve, "tags": dict(tags), "files": {"": str(picture)}}


def write(tracker: Tracker, entry: Entry) -> str:
    """Write an entry to MLflow and return the run's id; written twice it is still one run."""
    files = {name: Path(path) for name, path in entry["files"].items()}
    if "curve" in entry:
        return tracker.record_curve(**entry["curve"], tags=entry["tags"], picture=files[""])
    run_id = tracker.record(entry["row"], entry["tags"], files)
    if entry["search"]:
        _write_search(tracker, run_id, **entry["search"])
    return run_id


def _write_search(
    tracker: Tracker, run_id: str, label: str, space: Mapping[str, str], trials: list[Any]
) -> None:
    """Write the trials behind a cell's settings, and the pictures of them."""
    from textbench.flows.plots import study

    tracker.record_trials(run_id, label, trials)
    with tempfile.TemporaryDirectory() as place:
        for picture in study.draw(space, trials, Path(place)):
            tracker.client.log_artifact(run_id, str(picture), artifact_path="search")


def keep(home: Path, entry: Entry, uri: str) -> str:
    """Keep an entry until the server at `uri` can be written to, instead of what was kept of the same run.

    Returns its name. Raises OSError when it cannot be kept either.
    """
    name = name_of(entry)
    attached = {}
    for number, (key, path) in enumerate(entry["files"].items()):
        link = folder(home) / name / str(number) / Path(path).name  # MLflow shows a file under its own name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        try:
            os.link(path, link)
        except OSError:  # on another file system
            shutil.copyfile(path, link)
        attached[key] = str(link)
    write_json(folder(home) / f"{name}.json", entry | {"files": attached, "tracking_uri": uri})
    return name


def has(home: Path, name: str) -> bool:
    """Say whether an entry of this name waits."""
    return (folder(home) / f"{name}.json").exists()


def waiting(home: Path, uri: str | None = None) -> list[str]:
    """Return the names of the entries that wait, for the server at `uri` or for any, the oldest first."""
    found = {}
    for path in folder(home).glob("*.json"):
        try:
            about, written = json.loads(path.read_text("utf-8")), path.stat().st_mtime
        except (OSError, ValueError):  # sent meanwhile, or not ours
            continue
        if uri in (None, about.get("tracking_uri")):
            found[path.stem] = written
    return sorted(found, key=lambda name: (found[name], name))


def tag(home: Path, name: str, tags: Mapping[str, str]) -> bool:
    """Add tags to an entry that waits; return whether it does. Hold the lock of its cell."""
    path = folder(home) / f"{name}.json"
    try:
        entry = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    write_json(path, entry | {"tags": entry["tags"] | dict(tags)})
    return True


def forget(home: Path, name: str) -> None:
    """Remove an entry: its run is written."""
    (folder(home) / f"{name}.json").unlink(missing_ok=True)
    shutil.rmtree(folder(home) / name, ignore_errors=True)


def send(home: Path, tracker: Tracker) -> tuple[int, dict[str, str]]:
    """Send what waits for the tracker's server; return how many runs were sent, and why others were refused, by name.

    Raises TrackingError when the server cannot be used; what was not sent goes on waiting.
    """
    tracker.prepare()
    n_sent, refused = 0, {}
    for name in waiting(home, tracker.settings.tracking_uri):
        try:
            n_sent += _send(home, tracker, name)
        except Exception as error:  # one that is refused keeps no others waiting
            if not has(home, name):  # somebody else has sent it
                continue
            tracker.prepare()
            refused[name] = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return n_sent, refused


def _send(home: Path, tracker: Tracker, name: str) -> bool:
    """Send one entry under the lock of its cell; return whether it was there to be sent."""
    path = folder(home) / f"{name}.json"
    index = home / json.loads(path.read_text("utf-8")).get("index", "curves")
    key = name.rpartition("-")[0]
    index.mkdir(exist_ok=True)
    lock = take(index / f".{key}.lock")
    if lock is None:  # its cell is just being recorded, by somebody who may be waiting for us
        return False
    try:
        entry = json.loads(path.read_text("utf-8"))
        run_id = write(tracker, entry)
        _note(index / f"{key}.json", name, run_id)
        forget(home, name)
    finally:
        os.close(lock)
    return True


def _note(record: Path, name: str, run_id: str) -> None:
    """Tell the record of a cell which run is its; a cell that failed has none, nor has a curve."""
    try:
        known = json.loads(record.read_text("utf-8"))
    except (OSError, ValueError):
        return
    if known.get("waiting") == name:
        del known["waiting"]
        write_json(record, known | {"run_id": run_id})
