"""The shared root: one copy for all machines, the first writer wins, and nothing is read that is not whole."""

import json
import logging
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import pytest

from infra import postgres
from tests.commands import free_port
from tests.plumbing import numbers, total
from textbench.tasks import InputError
from textbench.tasks.storage import remote as remote_module
from textbench.tasks.storage.files import Damaged, read_meta, sealed
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.remote import Remote, sole
from textbench.tasks.storage.store import Store


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of an S3-compatible server on loopback with the bucket `bench`."""
    import boto3
    from moto.server import ThreadedMotoServer

    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    boto3.client("s3", endpoint_url=f"http://{host}:{port}", **keys).create_bucket(Bucket="bench")
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["folder", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty shared root, on each kind of storage."""
    if request.param == "folder":
        return str(tmp_path / "shared")
    monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue("s3"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    return f"s3://bench/{tmp_path.name}"


@pytest.fixture
def machines(url: str, tmp_path: Path) -> list[Store]:
    """The stores of three machines that share a root."""
    return [Store(tmp_path / name / "store", isolated=False, remote=url) for name in "abc"]


@pytest.fixture
def count(tmp_path: Path) -> Path:
    """A file that gets a line a computation."""
    return tmp_path / "count"


def times(count: Path) -> int:
    return len(count.read_text().splitlines()) if count.exists() else 0


def objects(url: str) -> list[str]:
    """Return what lies in a shared root, by its path in it."""
    files, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    return sorted(path.partition(f"{root.rstrip('/')}/")[2] for path in files.find(root))


def write(url: str, name: str, change: Callable[[bytes], bytes] | None) -> None:
    """Change an object of a shared root, or remove it."""
    files, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    if change is None:
        files.rm_file(f"{root}/{name}")
    else:
        files.pipe_file(f"{root}/{name}", change(files.cat_file(f"{root}/{name}")))


def test_what_one_machine_made_the_others_copy(machines: list[Store], url: str, count: Path) -> None:
    reference = numbers({"n": 5, "count": str(count)})
    first, second, _ = machines
    assert not second.has(reference)
    meta = first.ensure(reference)
    artifact = second.open(reference)
    assert artifact.array("values").tolist() == [0, 1, 2, 3, 4]
    assert artifact.meta == meta == read_meta(first.folder(reference) / "meta.json")
    assert second.has(reference)
    assert times(count) == 1
    names = {path.rpartition("/")[2] for path in objects(url)}
    assert names == {"meta.json", "values.npy", "about.json"}
    assert list((second.root / "tmp").iterdir()) == []


def test_the_root_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Store(tmp_path).remote is None
    monkeypatch.setenv("TEXTBENCH_STORE", "/shared/store")
    assert Store(tmp_path).remote == "/shared/store"


def test_an_isolated_computation_copies_its_inputs(tmp_path: Path, count: Path) -> None:
    url = str(tmp_path / "shared")
    upstream = numbers({"n": 5, "count": str(count)})
    Store(tmp_path / "a", isolated=False, remote=url).ensure(upstream)
    isolated = Store(tmp_path / "b", remote=url)
    assert isolated.open(total({}, upstream)).json("total") == 10
    assert times(count) == 1


def test_a_meta_is_read_without_its_files(machines: list[Store]) -> None:
    reference = numbers({"n": 5})
    meta = machines[0].ensure(reference)
    assert machines[1].meta(reference) == meta == machines[0].meta(reference)
    assert not machines[1].has(reference)


def test_what_was_made_before_is_published_when_it_is_asked_for(
    machines: list[Store], url: str, count: Path
) -> None:
    reference = numbers({"n": 5, "count": str(count)})
    alone = Store(machines[0].root, isolated=False)
    meta = alone.ensure(reference)
    assert machines[0].ensure(reference) == meta
    assert machines[1].ensure(reference) == meta
    assert times(count) == 1


def test_what_is_here_is_read_when_the_root_is_away(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", isolated=False, remote=str(tmp_path / "shared"))
    reference = numbers({"n": 5})
    meta = store.ensure(reference)
    shutil.rmtree(tmp_path / "shared")
    (tmp_path / "shared").write_text("no folder")
    assert store.ensure(reference) == meta
    assert store.open(reference).json("about") == {"n": 5}
    with pytest.raises(OSError, match=r"the shared store .*shared cannot be used"):
        store.ensure(numbers({"n": 6}))


def test_of_two_writers_the_first_wins_and_the_second_takes_its_copy(
    machines: list[Store], url: str, count: Path
) -> None:
    reference = numbers({"n": 5, "count": str(count)})
    first, second, third = machines
    alone = [Store(store.root, isolated=False) for store in machines]
    metas = [store.ensure(reference) for store in alone[:2]]
    assert metas[0] != metas[1]
    assert second.ensure(reference) == metas[1]
    assert first.ensure(reference) == metas[1]
    assert first.open(reference).meta == third.open(reference).meta == metas[1]
    assert times(count) == 2
    assert len(objects(url)) == 3  # the loser has taken its own files away


def test_many_writers_at_once_agree(tmp_path: Path, count: Path) -> None:
    """On a folder: the server of the other tests looks and writes in two steps."""
    reference, shared = numbers({"n": 5, "count": str(count)}), str(tmp_path / "shared")
    folders = []
    for i in range(8):
        alone = Store(tmp_path / str(i), isolated=False)
        alone.ensure(reference)
        folders.append(alone.folder(reference))
    barrier = threading.Barrier(len(folders))

    def publish(folder: Path) -> bool:
        barrier.wait()
        return Remote(shared).publish(reference, folder)

    with ThreadPoolExecutor(len(folders)) as pool:
        won = list(pool.map(publish, folders))
    assert sum(won) == 1
    assert Remote(shared).meta(reference) == read_meta(folders[won.index(True)] / "meta.json")
    assert len(objects(shared)) == 3


def test_an_answer_that_was_lost_is_no_defeat(
    machines: list[Store], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written, the client hears nothing, tries again and is refused: it was first all the same."""
    assert Remote(url)._create("some/meta.json", b"mine")
    assert Remote(url)._create("some/meta.json", b"mine")
    assert not Remote(url)._create("some/meta.json", b"other")


def test_a_fresh_run_replaces_what_is_older(machines: list[Store], url: str, count: Path) -> None:
    reference = numbers({"n": 5, "count": str(count)})
    old = machines[0].ensure(reference)
    since = time.time()
    fresh = [Store(store.root, since, isolated=False, remote=url) for store in machines[1:]]
    new = fresh[0].ensure(reference)
    assert new["created"] >= since > old["created"]
    assert fresh[1].ensure(reference) == new == Remote(url).meta(reference)
    assert times(count) == 2
    assert len(objects(url)) == 3


def flip(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


def alter(content: bytes) -> bytes:
    entry = json.loads(content)
    return json.dumps(entry | {"meta": entry["meta"] | {"seconds": 0.0}}).encode()


def reseal(**changes: Any) -> Callable[[bytes], bytes]:
    """Return what changes a meta and makes it consistent in itself again."""

    def change(content: bytes) -> bytes:
        entry = json.loads(content)
        meta = {name: value for name, value in entry["meta"].items() if name != "checksum"}
        return json.dumps(entry | {"meta": sealed(meta | changes)}).encode()

    return change


def escape(name: str) -> Callable[[bytes], bytes]:
    """Return what gives a file of an artifact another name."""

    def change(content: bytes) -> bytes:
        files = dict(json.loads(content)["meta"]["files"])
        files[name] = files.pop("values.npy")
        return reseal(files=files)(content)

    return change


DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes] | None]] = {
    "a flipped byte": ("values.npy", flip),
    "a file cut short": ("values.npy", lambda content: content[:40]),
    "an emptied file": ("values.npy", lambda _: b""),
    "a missing file": ("about.json", None),
    "a meta cut short": ("meta.json", lambda content: content[:30]),
    "an empty meta": ("meta.json", lambda _: b""),
    "a meta that is a list": ("meta.json", lambda _: b"[]"),
    "a meta that is not UTF-8": ("meta.json", lambda _: b"\xff\xfe"),
    "an altered meta": ("meta.json", alter),
    "another artifact's meta": ("meta.json", reseal(key="0" * 64)),
    "an attempt that leads elsewhere": (
        "meta.json",
        lambda content: json.dumps(json.loads(content) | {"attempt": "../../x"}).encode(),
    ),
    "a name above the folder": ("meta.json", escape("../evil.npy")),
    "an absolute name": ("meta.json", escape("/tmp/evil.npy")),
    "a name with a folder": ("meta.json", escape("sub/evil.npy")),
    "the name of the meta": ("meta.json", escape("meta.json")),
    "a hidden name": ("meta.json", escape(".shared")),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_noticed_and_computed_again(
    damage: tuple[str, Callable[[bytes], bytes] | None],
    tmp_path: Path,
    count: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = str(tmp_path / "shared")
    first, second, third = (Store(tmp_path / name, isolated=False, remote=url) for name in "abc")
    reference = numbers({"n": 5, "count": str(count)})
    first.ensure(reference)
    name, change = damage
    (path,) = (path for path in objects(url) if path.endswith(name))
    write(url, path, change)
    before = set(tmp_path.rglob("*evil*"))
    with caplog.at_level(logging.WARNING, "textbench.store"):
        assert second.open(reference).array("values").tolist() == [0, 1, 2, 3, 4]
    assert times(count) == 2
    assert "is damaged" in caplog.text
    assert set(tmp_path.rglob("*evil*")) == before == set()
    assert not Path("/tmp/evil.npy").exists()
    assert third.open(reference).meta == second.open(reference).meta
    assert times(count) == 2


def test_damage_in_a_bucket_is_noticed_too(machines: list[Store], url: str, count: Path) -> None:
    reference = numbers({"n": 5, "count": str(count)})
    machines[0].ensure(reference)
    (path,) = (path for path in objects(url) if path.endswith("values.npy"))
    write(url, path, flip)
    assert machines[1].open(reference).array("values").tolist() == [0, 1, 2, 3, 4]
    assert machines[2].ensure(reference) == machines[1].ensure(reference)
    assert times(count) == 2
    assert len(objects(url)) == 3


def test_a_damaged_copy_here_comes_from_there_again(machines: list[Store], count: Path) -> None:
    reference = numbers({"n": 5, "count": str(count)})
    machines[0].ensure(reference)
    values = machines[0].folder(reference) / "values.npy"
    values.write_bytes(flip(values.read_bytes()))
    assert machines[0].open(reference).array("values").tolist() == [0, 1, 2, 3, 4]
    assert times(count) == 1


def test_what_is_damaged_here_is_not_published(machines: list[Store], url: str, count: Path) -> None:
    reference = numbers({"n": 5, "count": str(count)})
    alone = Store(machines[0].root, isolated=False)
    alone.ensure(reference)
    values = alone.folder(reference) / "values.npy"
    values.write_bytes(flip(values.read_bytes()))
    with pytest.raises(Damaged):
        Remote(url).publish(reference, alone.folder(reference))
    assert objects(url) == []
    machines[0].ensure(reference)  # set aside and made again
    assert machines[1].open(reference).array("values").tolist() == [0, 1, 2, 3, 4]
    assert times(count) == 2


def _die_publishing(root: Path, url: str, count: Path, moment: str) -> None:
    def die(*_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    if moment == "before the meta":
        Remote._create = die  # type: ignore[assignment, method-assign]
    else:
        digest, seen = remote_module.sha256_of, []

        def digest_or_die(path: Path) -> str:
            seen.append(path)
            return digest(path) if len(seen) == 1 else die()

        remote_module.sha256_of = digest_or_die
    Store(root, isolated=False, remote=url).ensure(numbers({"n": 5, "count": str(count)}))


@pytest.mark.parametrize("moment", ["between two files", "before the meta"])
def test_a_kill_while_publishing_leaves_nothing_readable(moment: str, tmp_path: Path, count: Path) -> None:
    url, reference = str(tmp_path / "shared"), numbers({"n": 5, "count": str(count)})
    child = multiprocessing.get_context("fork").Process(
        target=_die_publishing, args=(tmp_path / "a", url, count, moment)
    )
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert len(objects(url)) == (1 if moment == "between two files" else 2)
    assert Remote(url).meta(reference) is None
    second = Store(tmp_path / "b", isolated=False, remote=url)
    meta = second.ensure(reference)
    assert times(count) == 2
    # The killed machine's own artifact was whole; when it comes back it takes the one that counts.
    assert Store(tmp_path / "a", isolated=False, remote=url).ensure(reference) == meta
    assert times(count) == 2


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("shared/store", "the shared store is s3://BUCKET/PREFIX, .* got 'shared/store'"),
        ("ftp://host/store", "got 'ftp://host/store'"),
        ("s3://", "got 's3://'"),
        ("/proc/nowhere", "the shared store /proc/nowhere cannot be used"),
    ],
)
def test_an_address_that_cannot_be_is_refused(address: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Remote(address).check()


def test_storage_is_tried_before_it_is_relied_on(url: str, monkeypatch: pytest.MonkeyPatch, s3: str) -> None:
    Remote(url).check()
    assert objects(url) == []
    if url.startswith("s3"):
        with pytest.raises(InputError, match="bucket does not exist"):
            Remote("s3://nowhere/x").check()
    monkeypatch.setattr(Remote, "_create", lambda *_: True)
    with pytest.raises(InputError, match="lets a second writer overwrite the first"):
        Remote(url).check()


def test_storage_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    fsspec.get_filesystem_class("s3").clear_instance_cache()  # or it remembers another address
    with pytest.raises(InputError, match="the shared store s3://dead/x cannot be used: Could not connect"):
        Remote("s3://dead/x").check()


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> Any:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(InputError, match=r'pip install "textbench\[servers\]"'):
        Remote("s3://bench/x").check()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a PostgreSQL server on loopback."""
    if not (any(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("initdb")):
        pytest.skip("PostgreSQL is not installed (Debian's package `postgresql`)")
    folder, port = Path(tempfile.mkdtemp(prefix="textbench-locks-")), free_port()
    folder.chmod(0o755)  # its own user enters it, which pytest's folders forbid
    try:
        postgres.start(folder / "data", port, "secret")
        yield f"postgresql://textbench:secret@127.0.0.1:{port}/optuna"
    finally:
        postgres.stop(folder / "data")
        shutil.rmtree(folder)


def _ensure(root: Path, url: str, count: Path) -> None:
    Store(root, isolated=False, remote=url).ensure(numbers({"n": 5, "count": str(count), "seconds": 0.5}))


@pytest.mark.parametrize(("with_locks", "n_computed"), [(True, 1), (False, 3)])
def test_machines_with_a_lock_server_make_one_thing_once(
    with_locks: bool,
    n_computed: int,
    server: str,
    tmp_path: Path,
    count: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if with_locks:
        monkeypatch.setenv("TEXTBENCH_LOCKS", server)
    url = str(tmp_path / "shared")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: _ensure(tmp_path / name, url, count), "abc"))
    assert times(count) == n_computed
    metas = {(tmp_path / name / path).read_text() for name in "abc" for path in _metas(tmp_path / name)}
    assert len(metas) == 1


def _metas(root: Path) -> list[Path]:
    return list(root.glob("numbers/*/meta.json"))


def test_a_lock_dies_with_its_holder(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTBENCH_LOCKS", server)

    def hold(ready: Any) -> None:
        with sole("a key"):
            ready.set()
            time.sleep(60)

    context = multiprocessing.get_context("fork")
    ready = context.Event()
    holder = context.Process(target=hold, args=(ready,))
    holder.start()
    assert ready.wait(120)
    with sole("another key"):
        pass
    taken = threading.Event()

    def wait() -> None:
        with sole("a key"):
            taken.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert not taken.wait(0.3)
    os.kill(holder.pid or 0, signal.SIGKILL)
    holder.join()
    assert taken.wait(120)
    waiter.join()


def test_a_lock_server_that_does_not_answer_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TEXTBENCH_LOCKS", f"postgresql://me:hidden@127.0.0.1:{free_port()}/db")
    store = Store(tmp_path / "store", isolated=False, remote=str(tmp_path / "shared"))
    with pytest.raises(OSError, match=r"TEXTBENCH_LOCKS cannot be used: .*refused") as raised:
        store.ensure(numbers({"n": 5}))
    assert "hidden" not in str(raised.value)
    assert "\n" not in str(raised.value)
    monkeypatch.setenv("TEXTBENCH_LOCKS", "sqlite:///locks.db")
    with pytest.raises(InputError, match="TEXTBENCH_LOCKS is postgresql://"):
        store.ensure(numbers({"n": 5}))


def test_a_finished_search_is_written_to_the_database_of_studies(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import optuna

    from textbench.tasks import studies

    space = {"noise": optuna.distributions.distribution_to_json(optuna.distributions.FloatDistribution(0, 3))}
    about = {"C": 1.0, "seconds": 0.5, "error": None, "fold_scores": [0.5, 0.7]}
    trials = [
        {"state": "complete", "score": 0.6, "values": {"noise": 1.5, "kind": "good"}} | about,
        {"state": "pruned", "score": 0.0, "values": {"noise": 0.5}} | about,
        {"state": "failed", "values": {"noise": 2.5}, "seconds": 0.1, "error": "ValueError: no"},
    ]
    corpus = numbers({"n": 5, "dataset": "toy"})
    params = {"method": "made", "validation": {}, "choice": {"trials": trials, "space": space}}
    inputs = {"corpus": corpus, "vectors": corpus}
    reference = Reference("tune", "tests.plumbing:make_choice", params, inputs)
    store = Store(tmp_path / "store", isolated=False)
    studies.record(store, reference)  # without a database it does nothing
    monkeypatch.setenv("TEXTBENCH_STUDIES", server)
    with ThreadPoolExecutor(2) as pool:  # the tables are made once, and a study is there once
        list(pool.map(lambda _: studies.record(store, reference), range(2)))
    assert caplog.records == []
    (study,) = optuna.get_all_study_summaries(storage=server)
    assert study.study_name.startswith("toy-made-")
    found = optuna.load_study(study_name=study.study_name, storage=server)
    assert found.direction == optuna.study.StudyDirection.MAXIMIZE
    assert [trial.state.name for trial in found.trials] == ["COMPLETE", "PRUNED", "FAIL"]
    assert [trial.params["noise"] for trial in found.trials] == [1.5, 0.5, 2.5]
    assert found.best_value == 0.6
    assert found.trials[1].intermediate_values == {0: 0.5, 1: 0.7}
    assert found.trials[2].user_attrs == {"error": "ValueError: no", "seconds": 0.1}
    monkeypatch.setenv("TEXTBENCH_STUDIES", f"postgresql://me:hidden@127.0.0.1:{free_port()}/db")
    studies.record(store, reference)
    assert "a study could not be written to TEXTBENCH_STUDIES" in caplog.text
    assert "hidden" not in caplog.text
