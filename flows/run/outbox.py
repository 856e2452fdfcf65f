"""The outbox: what MLflow could not take is kept in `<home>/spool`, and sent when it can.

The index says which cells MLflow is still to get: those whose row has no run. What is to be written of one is a file,
`NAME.json`, there whole or not at all; its sweeps are those of its row. What is attached lies beside it in the folder
`NAME`, as links that outlive a pruned store. Failed cells and curves, which have no row, wait in the same way. MLflow's
runs are known by two of their tags (`tasks.tracking.tracker`), so one that was sent and could not be forgotten in
time is not there twice.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from textbench.tasks.storage.files import read_json, write_json
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


def sweep_tags(sweeps: Sequence[str]) -> dict[str, str]:
    """Return one tag a sweep, for a run may be of several, and `sweep`, which MLflow's page groups runs by."""
    own = {f"sweep.{sweep}": "1" for sweep in sweeps}
    return own | ({"sweep": sweeps[-1]} if own else {})


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


def keep(home: Path, entry: Entry, uri: str) -> None:
    """Keep an entry until the server at `uri` can be written to, instead of what was kept of the same run.

    Raises OSError when it cannot be kept either.
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


def has(home: Path, name: str) -> bool:
    """Say whether an entry of this name waits."""
    return (folder(home) / f"{name}.json").exists()


def waiting(home: Path, uri: str | None = None) -> list[str]:
    """Return the names of the entries that wait, for the server at `uri` or for any, the oldest first."""
    found = {}
    for path in folder(home).glob("*.json"):
        entry = read_json(path)
        if entry and uri in (None, entry.get("tracking_uri")):
            with suppress(FileNotFoundError):  # sent meanwhile
                found[path.stem] = path.stat().st_mtime
    return sorted(found, key=lambda name: (found[name], name))


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
    index = home / read_json(path).get("index", "curves")
    key = name.rpartition("-")[0]
    index.mkdir(exist_ok=True)
    lock = take(index / f".{key}.lock")
    if lock is None:  # its cell is just being recorded, by somebody who may be waiting for us
        return False
    try:
        entry, record = json.loads(path.read_text("utf-8")), index / f"{key}.json"
        row = _lacking(record, entry)
        run_id = write(tracker, entry | {"tags": entry["tags"] | sweep_tags(row.get("sweeps", ()))})
        if row:
            write_json(record, row | {"run_id": run_id})
        forget(home, name)
    finally:
        os.close(lock)
    return True


def _lacking(record: Path, entry: Entry) -> dict[str, Any]:
    """Return the row that lacks the run of this entry, empty where none does: a cell failed, or it is of a curve."""
    row = read_json(record)
    row.pop("waiting", None)  # of a version that told a row so
    is_its = (row.get("attempt") or "first") == entry["tags"][ATTEMPT_TAG]
    return row if is_its and row.get("run_id") is None else {}
