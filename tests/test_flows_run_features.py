"""What a run leaves of its features, and that nothing but room depends on it."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.plumbing import numbers
from textbench.flows.plan.base_cell import BaseCell
from textbench.flows.plan.request import BenchmarkRequest
from textbench.flows.run import features
from textbench.flows.run.engine import Threads
from textbench.flows.run.features import let_features_go
from textbench.flows.run.sweep import SweepRecorder, run_sweep
from textbench.tasks import catalogue
from textbench.tasks.storage.files import is_let_go, read_meta, sealed, write_json
from textbench.tasks.storage.garbage import artifacts, reading
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store

N_DOCUMENTS = 600
METHODS = ["tfidf", "lsi"]
DONE: list[Mapping[str, Any]] = [{"error": None}]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", isolated=False)


def made(
    store: Store, corpus: Reference, params: dict[str, Any], size: int, seconds: float, created: float = 9.0
) -> Path:
    """The folder of features of a corpus that take so many bytes and took so many seconds."""
    function = params.pop("function", "textbench.tasks.featurize:compute")
    reference = Reference("featurize", function, params, {"corpus": corpus})
    folder = store.folder(reference)
    folder.mkdir(parents=True)
    (folder / "train.npy").write_bytes(bytes(size))
    recipe = {"key": reference.key, "recipe": reference.to_json()}
    write_json(folder / "meta.json", sealed(recipe | {"files": {}, "seconds": seconds, "created": created}))
    return folder


def test_large_features_that_a_run_used_go_where_they_were_quickly_made(store: Store) -> None:
    corpus, other = (numbers({"n": n}, "ingest") for n in (1, 2))
    quick = made(store, corpus, {"n": 0}, 2_000_000, 1.9)
    old = made(store, corpus, {"n": 5}, 2_000_000, 0.0, created=1.0)
    planned = Reference("featurize", "textbench.tasks.featurize:compute", {"n": 5}, {"corpus": corpus})
    assert store.folder(planned) == old
    cell = BaseCell("d", "m", "honest", 0, 0, {"ingest": corpus, "featurize": planned})
    kept = [
        made(store, corpus, {"n": 1}, 2_000_000, 2.1),
        made(store, corpus, {"n": 2}, 900_000, 0.0),
        made(store, corpus, {"n": 3, "function": "textbench.tasks.file_vectors:compute"}, 2_000_000, 0.0),
        made(store, other, {"n": 4}, 2_000_000, 0.0),
        made(store, corpus, {"n": 6}, 2_000_000, 0.0, created=1.0),
    ]
    with reading(store.root):
        assert let_features_go(store, [cell], DONE, since=5.0) == 0
    assert let_features_go(store, [cell], [*DONE, {"error": "no memory"}], since=5.0) == 0
    assert let_features_go(store, [cell], DONE, since=5.0) == 4_000_000
    assert is_let_go(quick) and is_let_go(old) and not any(map(is_let_go, kept))
    (kept[0] / "meta.json").write_text("{")
    (kept[1] / "meta.json").unlink()  # both are noticed where they are needed
    assert let_features_go(store, [cell], DONE, since=5.0) == 0


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of real documents."""
    corpus = catalogue.dataset("r8").load().load()
    names = [corpus.target_names[target] for target in corpus.train_targets[:N_DOCUMENTS]]
    path = tmp_path_factory.mktemp("documents") / "stories.csv"
    with path.open("w", newline="") as stream:
        rows = zip(corpus.train_texts[:N_DOCUMENTS], names, strict=True)
        csv.writer(stream).writerows([("text", "label"), *rows])
    return path


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is tracked, little is large, and what is large was quickly made, however busy the machine is."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "none")
    monkeypatch.setattr(features, "LARGE", 100_000)
    monkeypatch.setattr(features, "CHEAP", float("inf"))


def run(home: Path, path: Path, methods: list[str] = METHODS, **asked: Any) -> list[dict[str, Any]]:
    request = BenchmarkRequest([], methods, (0, 1), own={"path": str(path)}, **asked)
    with Threads() as runner:
        return run_sweep(request, runner, home=home)


def metrics(rows: list[dict[str, Any]]) -> list[Any]:
    return [(row["method"], row["seed"], row["metrics"], row["error"]) for row in rows]


def octets(home: Path) -> int:
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())


def whole(home: Path) -> dict[Path, dict[str, Any]]:
    """The files of the features that are stored, by folder."""
    found = [folder for _, folder, _ in artifacts(home / "store", "featurize")]
    return {folder: read_meta(folder / "meta.json")["files"] for folder in found if not is_let_go(folder)}


@pytest.mark.usefixtures("quick")
def test_a_run_leaves_at_most_ten_times_its_input_and_nothing_finished_is_made_again(
    tmp_path: Path, documents: Path
) -> None:
    kept, home = tmp_path / "kept", tmp_path / "home"
    rows = run(kept, documents, keep_features=True)
    assert metrics(run(home, documents)) == metrics(rows)
    assert octets(kept) > 10 * documents.stat().st_size > octets(home)
    n_made = {folder.name for folder in whole(kept)}
    assert len(n_made) == 3 and not whole(home)  # of TF-IDF one for both seeds

    # What was quickly made counts as made: rows tell what it took, though it is gone, and though they are made anew.
    before = {path: path.stat().st_mtime_ns for path in (home / "store").rglob("*.*")}
    again = run(home, documents)
    for path in (home / "index").glob("*.json"):
        path.unlink()
    anew = run(home, documents)
    assert {path: path.stat().st_mtime_ns for path in (home / "store").rglob("*.*")} == before
    assert metrics(again) == metrics(anew) == metrics(rows)
    assert all(row["cached"] and row["seconds"]["featurize"] > 0 for row in [*again, *anew])

    # What needs them has them made again, the same.
    run(home, documents, ["lsi"], keep_features=True, validation={"n_folds": 2})
    found = {folder.name: about for folder, about in whole(home).items()}
    same = {folder.name: about for folder, about in whole(kept).items()}
    assert found and all(same[name] == about for name, about in found.items())


@pytest.mark.usefixtures("quick")
def test_a_run_that_was_stopped_keeps_features_and_goes_on_without_repeating_or_losing_anything(
    tmp_path: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_run = metrics(run(tmp_path / "once", documents))
    home, finish, n_over = tmp_path / "home", SweepRecorder.finish, []

    def stopped(recorder: SweepRecorder, cell: Any, error: str | None) -> None:
        finish(recorder, cell, error)
        n_over.append(cell)
        if len(n_over) == 3:
            recorder.wait()
            raise KeyboardInterrupt

    monkeypatch.setattr(SweepRecorder, "finish", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(home, documents)
    monkeypatch.setattr(SweepRecorder, "finish", finish)
    left = whole(home)
    assert left
    # All but features, which may go, and tmp, where the stop may have cut something short.
    finished = (folder / "meta.json" for _, folder, _ in artifacts(home / "store", "[!f]*"))
    made = {path: path.stat().st_ino for path in finished}
    assert made
    rows = run(home, documents)
    assert metrics(rows) == whole_run and sum(row["cached"] for row in rows) >= 3
    assert all(path.stat().st_ino == number for path, number in made.items())
    assert len(whole(home)) < len(left)
