"""The store: everything computed once, nothing damaged ever read, nothing half-written ever kept."""

import errno
import json
import logging
import math
import multiprocessing
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.plumbing import numbers, total
from textbench.tasks import InputError
from textbench.tasks.storage import files, garbage
from textbench.tasks.storage import store as store_module
from textbench.tasks.storage.files import Damaged, read_meta, write_json
from textbench.tasks.storage.garbage import artifacts, let_go, prune, reading, remove_leftovers
from textbench.tasks.storage.isolate import CellError
from textbench.tasks.storage.locks import locked
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import ASIDE, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", isolated=False)


@pytest.fixture
def count(tmp_path: Path) -> Path:
    """A file that gets a line a computation."""
    return tmp_path / "count"


def times(count: Path) -> int:
    return len(count.read_text().splitlines()) if count.exists() else 0


def leftovers(store: Store) -> list[Path]:
    return list((store.root / "tmp").glob("*"))


def test_an_artifact_is_computed_once_and_read_back(store: Store, count: Path) -> None:
    reference = numbers({"n": 5, "count": str(count)})
    assert not store.has(reference)
    meta = store.ensure(reference)
    assert store.has(reference)
    artifact = store.open(reference)
    assert artifact.array("values").tolist() == [0, 1, 2, 3, 4]
    assert artifact.json("about") == {"n": 5}
    assert store.ensure(reference) == meta == artifact.meta
    assert times(count) == 1
    assert leftovers(store) == []


def test_meta_says_how_it_was_made_and_what_it_cost(store: Store) -> None:
    upstream = numbers({"n": 3, "seconds": 0.05})
    reference = total({"x": 1}, upstream)
    before = time.time()
    meta = store.ensure(reference)
    assert Reference.from_json(meta["recipe"]).key == reference.key == meta["key"]
    assert set(meta["files"]) == {"total.json"}
    folder = store.folder(reference)
    assert meta["files"]["total.json"]["bytes"] == (folder / "total.json").stat().st_size
    assert before <= meta["created"] <= time.time()
    assert meta["seconds"] >= 0.05
    assert meta["cpu_seconds"] >= 0
    assert meta["peak_mb"] > 1
    assert meta["zero_rows"] == {}
    assert folder == store.root / "total" / reference.key
    assert read_meta(folder / "meta.json") == meta


def test_every_format_reads_back(store: Store, tmp_path: Path) -> None:
    from scipy.sparse import csr_matrix

    dense, sparse = np.eye(3, dtype=np.float32), csr_matrix(np.diag([1.0, 0.0, 2.0]))
    folder = tmp_path / "formats"
    folder.mkdir()
    job = store_module.Job({}, {}, folder, store)
    job.save_matrix("dense", dense)
    job.save_matrix("sparse", sparse)
    # A zero that is stored is a zero too.
    job.save_matrix("stored zeros", csr_matrix(([0.0, 0.0], [0, 1], [0, 1, 2, 2]), shape=(3, 2)))
    job.save_matrix("dense zeros", np.array([[0, 0], [0, 1], [-1, 1]]))
    assert job.zero_rows == {"dense": 0, "sparse": 1, "stored zeros": 3, "dense zeros": 1}
    job.save_arrays("both", {"a": dense, "b": np.array(["é", "☃"])})
    job.save_json("value", {"é": [1, None, 0.1]})
    job.save_table("table", {"text": ["é", ""], "target": np.array([1, 2])})
    artifact = store_module.Artifact(folder, {})
    assert np.array_equal(artifact.matrix("dense"), dense)
    assert artifact.matrix("dense").dtype == np.float32
    assert artifact.matrix("sparse").format == "csr"
    assert np.array_equal(artifact.matrix("sparse").toarray(), sparse.toarray())
    assert artifact.arrays("both")["b"].tolist() == ["é", "☃"]
    assert artifact.json("value") == {"é": [1, None, 0.1]}
    assert artifact.table("table").to_pydict() == {"text": ["é", ""], "target": [1, 2]}
    assert artifact.table("table", columns=["target"]).column_names == ["target"]


def flip_byte(folder: Path) -> None:
    data = bytearray((folder / "values.npy").read_bytes())
    data[-1] ^= 1
    (folder / "values.npy").write_bytes(bytes(data))


def edit_meta(folder: Path) -> None:
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(meta | {"seconds": 0.0}))


def swap_meta(folder: Path) -> None:
    # Consistent in itself, but another artifact's.
    meta = read_meta(folder / "meta.json") | {"key": "0" * 64}
    write_json(folder / "meta.json", meta | {"checksum": files._checksum(meta)})


def become_a_file(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("not a folder")


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "a flipped byte": flip_byte,
    "a truncated file": lambda folder: os.truncate(folder / "values.npy", 40),
    "an emptied file": lambda folder: os.truncate(folder / "values.npy", 0),
    "a missing file": lambda folder: (folder / "about.json").unlink(),
    "a missing meta": lambda folder: (folder / "meta.json").unlink(),
    "a truncated meta": lambda folder: os.truncate(folder / "meta.json", 30),
    "an empty meta": lambda folder: os.truncate(folder / "meta.json", 0),
    "a meta of zeros": lambda folder: (folder / "meta.json").write_bytes(bytes(500)),
    "a meta that is a list": lambda folder: (folder / "meta.json").write_text("[]"),
    "a meta that is not UTF-8": lambda folder: (folder / "meta.json").write_bytes(b"\xff\xfe"),
    "an altered meta": edit_meta,
    "another artifact's meta": swap_meta,
    "a file in place of the folder": become_a_file,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_moved_aside_and_computed_again(
    damage: Callable[[Path], Any], store: Store, count: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reference = numbers({"n": 5, "count": str(count)})
    store.ensure(reference)
    damage(store.folder(reference))
    with caplog.at_level(logging.WARNING, "textbench.store"):
        artifact = store.open(reference)
    assert artifact.array("values").tolist() == [0, 1, 2, 3, 4]
    assert artifact.json("about") == {"n": 5}
    assert times(count) == 2
    assert len(caplog.records) == 1
    assert "moved to" in caplog.text
    assert len(list((store.root / "damaged").iterdir())) == 1
    store.open(reference)
    assert times(count) == 2


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_input_is_computed_again_too(
    damage: Callable[[Path], Any], store: Store, count: Path, caplog: pytest.LogCaptureFixture
) -> None:
    upstream = numbers({"n": 5, "count": str(count)})
    store.ensure(upstream)
    damage(store.folder(upstream))
    assert store.open(total({}, upstream)).json("total") == 10
    assert times(count) == 2
    assert len(caplog.records) == 1


def test_a_missing_input_is_computed_silently(
    store: Store, count: Path, caplog: pytest.LogCaptureFixture
) -> None:
    upstream = numbers({"n": 5, "count": str(count)})
    assert store.open(total({}, upstream)).json("total") == 10
    assert (times(count), caplog.records) == (1, [])
    # What is finished does not need its inputs.
    prune(store.root, older_than=-1)
    assert not store.has(upstream)


@pytest.mark.parametrize("isolated", [False, True])
def test_a_failure_leaves_nothing(tmp_path: Path, isolated: bool) -> None:
    store = Store(tmp_path / "store", isolated=isolated)
    reference = Reference("numbers", "tests.plumbing:fail_halfway", {})
    with pytest.raises(CellError if isolated else ValueError, match="the second half is missing"):
        store.ensure(reference)
    assert not store.has(reference)
    assert not store.folder(reference).exists()
    assert leftovers(store) == []


def test_a_computation_may_run_in_a_child(tmp_path: Path, count: Path) -> None:
    store = Store(tmp_path / "store")
    upstream = numbers({"n": 5, "count": str(count)})
    assert store.open(total({"count": str(count)}, upstream)).json("total") == 10
    pids = count.read_text().split()
    assert len(set(pids)) == 1
    assert pids[0] != str(os.getpid())


def test_what_is_warm_was_computed_before_in_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that goes on 10 s the first time that something is computed, and 1 s after that."""
    now, computed = [0.0], []
    inner = numbers({"n": 1})

    def compute(function: str, job: store_module.Job) -> None:
        now[0] += 1.0 if job.params in computed else 10.0
        computed.append(job.params)
        if job.params == {"n": 2}:
            job.store.ensure(inner)
        job.save_json("about", {})

    monkeypatch.setattr(store_module, "_call", compute)
    monkeypatch.setattr(store_module, "time", SimpleNamespace(perf_counter=lambda: now[0], time=time.time))
    cold, warm = (Store(tmp_path / name, isolated=False, warm=name == "warm") for name in ("cold", "warm"))
    assert cold.ensure(numbers({"n": 0}))["seconds"] == 10
    assert cold.ensure(numbers({"n": 2}))["seconds"] == 20
    computed.clear()
    assert warm.ensure(numbers({"n": 0}))["seconds"] == 1
    outer = warm.ensure(numbers({"n": 2}))
    assert warm.ensure(inner)["seconds"] == 1
    assert outer["seconds"] == 11, (
        "it made another artifact, so it is computed once; the other's first time is left out"
    )
    assert [params["n"] for params in computed] == [0, 0, 2, 1, 1]
    monkeypatch.setattr(store_module, "WARM_SECONDS", 9.0)
    assert warm.ensure(numbers({"n": 3}))["seconds"] == 10
    assert leftovers(warm) == []


def test_a_killed_maker_leaves_no_artifact_and_no_lock(tmp_path: Path, count: Path) -> None:
    store = Store(tmp_path / "store")
    reference = Reference("numbers", "tests.plumbing:die_once", {"count": str(count)})
    with pytest.raises(CellError, match="SIGKILL"):
        store.ensure(reference)
    assert not store.folder(reference).exists()
    assert leftovers(store) == []
    assert store.open(reference).json("value") == 1
    assert times(count) == 2


def ensure(root: str, params: dict[str, Any], isolated: bool) -> None:
    Store(Path(root), isolated=isolated).open(numbers(params))


def test_a_killed_process_frees_its_lock_and_its_leftovers_go(store: Store, count: Path) -> None:
    params = {"n": 5, "count": str(count), "seconds": 60}
    process = multiprocessing.get_context("spawn").Process(
        target=ensure, args=(str(store.root), params, False)
    )
    process.start()
    while not count.exists():
        time.sleep(0.02)
    process.kill()
    process.join()
    reference = numbers(params)
    assert not store.has(reference)
    assert len(leftovers(store)) == 1
    with locked(store.root / "numbers" / f".{reference.key}.lock"):
        pass
    prune(store.root, older_than=-1)
    assert leftovers(store) == []


@pytest.mark.parametrize("is_damaged", [False, True])
def test_processes_that_want_one_key_compute_it_once(store: Store, count: Path, is_damaged: bool) -> None:
    params = {"n": 300_000, "count": str(count), "seconds": 0.3}
    if is_damaged:
        store.ensure(numbers(params))
        flip_byte(store.folder(numbers(params)))
        count.unlink()
    context = multiprocessing.get_context("spawn")
    arguments = (str(store.root), params, False)
    processes = [context.Process(target=ensure, args=arguments) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    assert times(count) == 1


@pytest.mark.parametrize("is_damaged", [False, True])
def test_threads_that_want_one_key_compute_it_once(
    store: Store, count: Path, is_damaged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    reference = numbers({"n": 1000, "count": str(count), "seconds": 0.1})
    if is_damaged:
        store.ensure(reference)
        flip_byte(store.folder(reference))
        count.unlink()
    sums: list[int] = []
    threads = [
        threading.Thread(target=lambda: sums.append(int(store.open(reference).array("values").sum())))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [499_500] * 8
    assert times(count) == 1
    assert len(caplog.records) == is_damaged


def test_not_before_makes_older_artifacts_again(
    store: Store, count: Path, caplog: pytest.LogCaptureFixture
) -> None:
    upstream = numbers({"n": 5, "count": str(count)})
    reference = total({"count": str(count)}, upstream)
    old = store.ensure(reference)
    fresh = Store(store.root, not_before=time.time(), isolated=False)
    assert not fresh.has(reference)
    assert fresh.open(reference).json("total") == 10
    assert times(count) == 4
    assert store.ensure(reference)["created"] > old["created"]
    assert fresh.ensure(reference)["created"] > old["created"]
    assert times(count) == 4
    assert caplog.records == []
    assert not (store.root / "damaged").exists()
    assert leftovers(store) == []


def test_not_before_keeps_the_old_one_until_its_successor_is_complete(store: Store) -> None:
    reference = numbers({"n": 5})
    meta = store.ensure(reference)
    fresh = Store(store.root, not_before=time.time(), isolated=False)
    made = store_module.make

    def fail(payload: dict[str, Any]) -> dict[str, Any]:
        assert store.has(reference)
        raise ValueError("not this time")

    store_module.make = fail
    try:
        with pytest.raises(ValueError, match="not this time"):
            fresh.ensure(reference)
    finally:
        store_module.make = made
    assert store.ensure(reference) == meta


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = Path(tempfile.mkdtemp(prefix="textbench-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
        yield folder
        subprocess.run(["umount", str(folder)], check=True)
    finally:
        folder.rmdir()


@pytest.mark.parametrize("kind", ["array", "arrays", "matrix", "table", "json"])
@pytest.mark.parametrize("isolated", [False, True])
def test_a_full_disk_is_an_os_error(small_disk: Path, kind: str, isolated: bool) -> None:
    store = Store(small_disk, isolated=isolated)
    reference = Reference("big", "tests.plumbing:make_big", {"kind": kind})
    with pytest.raises(OSError, match="No space left on device") as caught:
        store.ensure(reference)
    assert caught.value.errno == errno.ENOSPC
    assert not store.folder(reference).exists()
    assert leftovers(store) == []
    assert store.open(numbers({"n": 5})).array("values").sum() == 10


def test_a_read_only_disk_can_be_read_but_not_written(small_disk: Path) -> None:
    store = Store(small_disk, isolated=False)
    store.ensure(numbers({"n": 5}))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert store.open(numbers({"n": 5})).array("values").sum() == 10
    with pytest.raises(OSError, match="Read-only file system"):
        store.ensure(numbers({"n": 6}))


@pytest.mark.parametrize("function", ["make_objects", "make_object_archive"])
def test_python_objects_are_not_stored(store: Store, function: str) -> None:
    reference = Reference("objects", f"tests.plumbing:{function}", {})
    with pytest.raises(ValueError, match="allow_pickle=False"):
        store.ensure(reference)
    assert not store.folder(reference).exists()


def test_python_objects_are_not_read(store: Store, tmp_path: Path) -> None:
    objects = np.array([{"a": 1}], dtype=object)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "y.npz", allow_pickle=True, y=objects)
    artifact = store_module.Artifact(tmp_path, {})
    for read in (lambda: artifact.array("x"), lambda: artifact.arrays("y"), lambda: artifact.matrix("y")):
        with pytest.raises(ValueError, match=r"allow_pickle=False|sparse"):
            read()


def test_artifacts_are_listed_with_their_sizes(store: Store) -> None:
    assert list(artifacts(store.root)) == []
    references = [numbers({"n": 5}), numbers({"n": 6}), total({}, numbers({"n": 5}))]
    for reference in references:
        store.ensure(reference)
    listed = list(artifacts(store.root))
    assert {folder.name for _, folder, _ in listed} == {reference.key for reference in references}
    assert [stage for stage, _, _ in listed] == ["numbers", "numbers", "total"]
    for _, folder, size in listed:
        assert size == sum(path.stat().st_size for path in folder.iterdir())


def test_prune_bounds_what_is_stored_by_its_age(store: Store) -> None:
    made = [numbers({"n": n}) for n in range(4)]
    for reference in made:
        store.ensure(reference)
    sizes = {folder.name: size for _, folder, size in artifacts(store.root)}
    bound = sum(sizes.values()) - sizes[made[1].key] - 1  # a byte above it without the second
    keep = {store.folder(made[0])}
    assert prune(store.root, older_than=60, keep=keep, at_most=bound + 1 + sizes[made[1].key]) == (0, 0)
    assert prune(store.root, older_than=60, keep=keep, at_most=bound)[0] == 2
    assert [store.has(reference) for reference in made] == [True, False, False, True]
    with reading(store.root), pytest.raises(InputError, match="a run is at work"):
        prune(store.root, older_than=60, at_most=0)
    assert prune(store.root, older_than=60, keep=keep, at_most=0) == (1, sizes[made[3].key])
    # Kept vectors of texts count, and go by their age; what was set aside goes first.
    chunk, aside = store.root.parent / "embeddings" / "model" / "0.npz", store.root / ASIDE / "damaged"
    for path in (chunk, aside):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"12345")
    assert prune(store.root, older_than=60, at_most=sizes[made[0].key] + 5) == (1, 5)
    assert chunk.exists() and not aside.exists()
    assert prune(store.root, older_than=60, at_most=0)[0] == 2
    assert not chunk.exists() and not store.has(made[0])


def test_prune_removes_what_is_old_and_what_is_damaged(store: Store) -> None:
    kept, broken = numbers({"n": 5}), numbers({"n": 6})
    for reference in (kept, broken):
        store.ensure(reference)
    size = sum(path.stat().st_size for path in store.folder(kept).iterdir())
    assert prune(store.root, older_than=60) == (0, 0)
    (store.folder(broken) / "meta.json").write_text("")
    assert prune(store.root, older_than=60)[0] == 1
    assert store.has(kept)
    assert not store.folder(broken).exists()
    assert prune(store.root, older_than=-1) == (1, size)
    assert not store.has(kept)
    assert prune(store.root, older_than=-1) == (0, 0)
    assert store.open(kept).array("values").sum() == 10


def cut(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_prune_leaves_what_a_run_at_work_may_be_reading(store: Store) -> None:
    made = [numbers({"n": n}, stage) for n, stage in enumerate(["featurize", "vectorize", "evaluate"])]
    for reference in made:
        store.ensure(reference)
    with reading(store.root):
        assert prune(store.root, older_than=-1, cheap=math.inf)[0] == 1
        assert [store.has(reference) for reference in made] == [True, True, False]
    assert prune(store.root, older_than=-1)[0] == 2


def test_an_artifact_that_goes_is_never_there_in_part(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = numbers({"n": 5})
    store.ensure(reference)
    monkeypatch.setattr(garbage.shutil, "rmtree", cut)
    with pytest.raises(KeyboardInterrupt):
        prune(store.root, older_than=-1)
    assert not store.folder(reference).exists()
    monkeypatch.undo()
    store.ensure(reference)
    assert prune(store.root, older_than=-1)[0] >= 1  # though what the killed one left is still there
    remove_leftovers(store.root)
    assert leftovers(store) == [] and not store.has(reference)


def test_prune_removes_what_was_moved_aside(store: Store) -> None:
    become_a_file_of = numbers({"n": 5})
    other = numbers({"n": 6})
    for reference, damage in ((become_a_file_of, become_a_file), (other, flip_byte)):
        store.ensure(reference)
        damage(store.folder(reference))
        store.open(reference)
    assert len(list((store.root / "damaged").iterdir())) == 2
    prune(store.root, older_than=-1)
    assert list((store.root / "damaged").iterdir()) == []


def test_prune_waits_for_what_is_being_made(store: Store, count: Path) -> None:
    reference = numbers({"n": 5, "count": str(count), "seconds": 0.5})
    maker = threading.Thread(target=store.ensure, args=(reference,))
    maker.start()
    while not count.exists():
        time.sleep(0.01)
    prune(store.root, older_than=0)
    maker.join()
    assert store.open(reference).array("values").sum() == 10
    assert times(count) == 1


def test_prune_of_nothing(tmp_path: Path) -> None:
    assert prune(tmp_path / "nothing", older_than=0) == (0, 0)


def test_write_json_replaces_whole_files(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.json"
    write_json(path, {"é": 1})
    with pytest.raises(TypeError):
        write_json(path, {"x": {1, 2}})
    assert json.loads(path.read_text("utf-8")) == {"é": 1}
    assert list(path.parent.iterdir()) == [path]


def test_read_meta_names_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "meta.json"
    with pytest.raises(FileNotFoundError):
        read_meta(path)
    path.write_text("{}")
    with pytest.raises(Damaged, match="cannot be read"):
        read_meta(path)
    path.write_text('{"key": "x", "checksum": "y"}')
    with pytest.raises(Damaged, match="was altered"):
        read_meta(path)


def test_features_that_are_quickly_made_again_go_however_new(store: Store) -> None:
    """A result that was as quick stays; so does what took longer, and what is to be kept."""
    made = [
        numbers({"n": n}, stage)
        for n, stage in enumerate(["featurize", "featurize", "vectorize", "evaluate"])
    ]
    for reference, seconds in zip(made, (0.05, 0.5, 0.05, 0.0), strict=True):
        folder = store.folder(reference)
        meta = store.ensure(reference) | {"seconds": seconds}
        (folder / "values.npy").write_bytes(bytes(1_000_000))
        write_json(folder / "meta.json", files.sealed(meta))
    quick, slow, kept, result = map(store.folder, made)
    assert prune(store.root, older_than=60, cheap=0.1, keep={kept})[0] == 1
    assert not quick.exists() and slow.exists() and kept.exists() and result.exists()


def test_what_was_let_go_is_missing_but_known_and_made_again_without_a_warning(
    store: Store, count: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reference = numbers({"n": 5, "count": str(count)}, "featurize")
    meta, folder = store.ensure(reference), store.folder(reference)
    size = sum(path.stat().st_size for path in folder.iterdir())
    freed = let_go(store.root, folder)
    assert [path.name for path in folder.iterdir()] == ["meta.json"]
    assert freed == size - (folder / "meta.json").stat().st_size
    assert not store.has(reference) and store.damage(reference) == ""
    assert store.meta(reference) == meta and times(count) == 1
    assert store.open(reference).array("values").tolist() == [0, 1, 2, 3, 4]
    assert store.meta(reference)["files"] == meta["files"] and times(count) == 2
    assert not caplog.records and leftovers(store) == [] and not (store.root / "damaged").exists()


@pytest.mark.parametrize("step", ["copyfile", "put"])
def test_letting_go_that_is_cut_short_leaves_the_artifact_whole(
    store: Store, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    reference = numbers({"n": 5}, "featurize")
    store.ensure(reference)

    place = garbage if step == "put" else garbage.shutil
    monkeypatch.setattr(place, step, cut)
    with pytest.raises(KeyboardInterrupt):
        let_go(store.root, store.folder(reference))
    assert store.has(reference) and store.damage(reference) == ""


@pytest.mark.parametrize("n_renamed", [0, 1])
def test_what_was_on_its_way_out_is_put_back(
    store: Store, monkeypatch: pytest.MonkeyPatch, n_renamed: int
) -> None:
    """Killed before or between the two renames by which one artifact takes the place of another."""
    reference = numbers({"n": 5}, "featurize")
    store.ensure(reference)
    rename, renamed = Path.rename, []

    def until(path: Path, target: Path) -> Path:
        if len(renamed) == n_renamed:
            raise KeyboardInterrupt
        renamed.append(path)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", until)
    with pytest.raises(KeyboardInterrupt):
        let_go(store.root, store.folder(reference))
    monkeypatch.undo()
    assert store.has(reference) == (n_renamed == 0)
    remove_leftovers(store.root)
    assert store.has(reference) and store.damage(reference) == "" and leftovers(store) == []
