"""A Dask cluster: workers with results folders of their own share a bucket and give what one machine gives alone."""

import contextlib
import datetime
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from tests.commands import rows_of, textbench
from tests.plumbing import numbers
from tests.warm import PROJECT
from textbench.flows.cli import app
from textbench.flows.run import dask_cluster
from textbench.flows.run.dask_cluster import check_address, check_workers
from textbench.flows.servers import prefect_server
from textbench.tasks import InputError, tune
from textbench.tasks.sources.user_data import UserData
from textbench.tasks.sources.user_data import reference as own
from textbench.tasks.spread import vectorize as spread_vectorize
from textbench.tasks.storage.cluster import Cluster, digest, versions
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store
from textbench.tasks.tokens import token_rule
from textbench.tasks.vectorize import reference as vectorize

START_SECONDS = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dask")


@pytest.fixture(scope="module")
def shared() -> Iterator[dict[str, str]]:
    """The variables that make processes share a bucket of an S3-compatible server on loopback."""
    import boto3
    from moto.server import ThreadedMotoServer

    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    boto3.client("s3", endpoint_url=f"http://{host}:{port}", **keys).create_bucket(Bucket="bench")
    yield {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "TEXTBENCH_STORE": "s3://bench/store",
    }
    server.stop()


@contextlib.contextmanager
def running(
    folder: Path, homes: Mapping[str, Path], variables: Mapping[str, str], protocol: str = "tcp"
) -> Iterator[str]:
    """Run a scheduler and a worker process of one thread for each results folder; give the scheduler's address."""
    # Functions of the tests are found where pytest found them: in the checkout, or by its name.
    environment = os.environ | {"PYTHONPATH": f"{PROJECT.parent}:{PROJECT}"} | dict(variables)
    file = folder / "scheduler.json"
    common = ["--host", f"{protocol}://127.0.0.1" if protocol == "tls" else "127.0.0.1", "--no-dashboard"]
    commands = {
        "scheduler": ["scheduler", "--port", "0", "--scheduler-file", str(file), "--protocol", protocol]
    }
    for name in homes:
        commands[name] = ["worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny"]
        commands[name] += ["--local-directory", str(folder)]
    processes = []
    with contextlib.ExitStack() as logs:
        for name, command in commands.items():
            own_variables = {"TEXTBENCH_HOME": str(homes[name])} if name in homes else {}
            log = logs.enter_context((folder / f"{name}.log").open("w"))
            processes.append(subprocess.Popen(
                [sys.executable, "-m", "dask", *command, *common],
                env=environment | own_variables, cwd=PROJECT, stdout=log, stderr=log,
            ))  # fmt: skip
            if name == "scheduler":
                wait_for(lambda: file.exists() and file.read_text().endswith("}"), folder)
        address = json.loads(file.read_text())["address"]
        try:
            wait_for(
                lambda: all("Registered to" in (folder / f"{one}.log").read_text() for one in homes), folder
            )
            yield address
        finally:
            for process in reversed(processes):  # a worker that ends while its scheduler does may never do so
                process.terminate()
                process.wait(120)


def wait_for(condition: Any, folder: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not condition():
        logs = "\n".join(path.read_text()[-500:] for path in folder.glob("*.log"))
        assert time.monotonic() < end, logs
        time.sleep(0.1)


@pytest.fixture(scope="module")
def homes(folder: Path) -> dict[str, Path]:
    return {name: folder / name for name in ("first", "second")}


@pytest.fixture(scope="module")
def address(folder: Path, homes: dict[str, Path], shared: dict[str, str]) -> Iterator[str]:
    """The address of a cluster of two workers, each with a results folder of its own."""
    with running(folder, homes, shared) as found:
        yield found


@pytest.fixture
def here(shared: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A results folder of this process, which shares the bucket too."""
    for name, value in shared.items():
        monkeypatch.setenv(name, value)
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture(scope="module")
def documents(folder: Path) -> Path:
    path = folder / "toy.csv"
    lines = [f"common word{i % 7} word{i % 5} {'red' if i % 2 else 'blue'},{'ab'[i % 2]}" for i in range(60)]
    path.write_text("\n".join(["text,label", *lines]))
    return path


METHOD = '''"""A method whose score depends on its noise alone, and which takes a while.

Source: none.
"""
import time
import numpy as np
from optuna.distributions import FloatDistribution
from textbench.featurizers.counts import Counts

INPUT = "counts"
SEARCH_SPACE = {"noise": FloatDistribution(0.0, 3.0)}


class Made(Counts):
    def __init__(self, *, noise=1.5):
        self.noise = noise

    def transform(self, X):
        features = super().transform(X).toarray()
        time.sleep(0.2)
        rng = np.random.default_rng(int(1000 * self.noise))
        return features + rng.normal(0, self.noise, features.shape).astype(np.float32)


def build(**params):
    return Made(**params)
'''


def study(folder: Path, documents: Path) -> Reference:
    (folder / "made.py").write_text(METHOD)
    corpus = own(UserData(str(documents)))
    vectors = vectorize(corpus, asdict(token_rule("words")), transductive=False)
    return tune.reference(corpus, vectors, str(folder / "made.py"), 3, "linear-svm", trials=8)


def choice(store: Store, reference: Reference) -> dict[str, Any]:
    """Return the choice without what depends on the clock."""
    found = store.open(reference).json("choice")
    del found["seconds"]
    found["trials"] = [{k: v for k, v in trial.items() if k != "seconds"} for trial in found["trials"]]
    return found


def trials_in(home: Path) -> set[str]:
    return {path.parent.name for path in (home / "store" / "trial").glob("*/meta.json")}


def run_stage(name: str, reference: Reference, store: Store) -> Any:
    """Run a stage on a worker as Prefect would, without Prefect's server."""
    from textbench.tasks.stages import task_of

    return task_of(name).fn(reference, store)


def test_trials_of_one_study_run_on_all_workers_and_give_the_same_study(
    address: str, here: Path, homes: dict[str, Path], folder: Path, documents: Path, tmp_path: Path
) -> None:
    from distributed import Client

    reference = study(folder, documents)
    alone = Store(tmp_path / "alone", remote=None)
    expected = choice(alone, reference)
    store = Store(here / "store", workers=2)
    store.ensure(reference.inputs["corpus"])
    sent = replace(store, cluster=Cluster(address, digest()))
    with Client(address, set_as_default=False) as client:
        client.submit(run_stage, "tune", reference, sent, pure=False).result(timeout=600)
    trials = [trials_in(home) for home in homes.values()]
    assert all(trials)
    assert not trials[0] & trials[1]  # nothing was computed twice
    assert len(trials[0] | trials[1]) == 8
    assert choice(store, reference) == expected
    assert not trials_in(here)


def write_reviews(job: Job) -> None:
    """Write a corpus of two row groups a part."""
    for part, n in (("train", 60), ("test", 40)):
        given = [f"word{i % 7} word{i % 5} Übung {'red' * (i % 3)}" for i in range(n)]
        table = pyarrow.table({"text": given, "target": [0] * n})
        pyarrow.parquet.write_table(table, job.folder / f"{part}.parquet", row_group_size=n // 2)


def die_or_read(dies_in: str, store: Store, *given: Any) -> Any:
    """Read a task's documents, but die if this is the worker of a results folder."""
    if os.environ["TEXTBENCH_HOME"] == dies_in:
        os._exit(1)
    return spread_vectorize.read(store, *given)


@pytest.mark.parametrize("dies", [False, True])
def test_blocks_of_texts_are_read_from_the_bucket_by_workers_of_which_one_may_die(
    dies: bool, shared: dict[str, str], here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Reference("ingest", f"{__name__}:write_reviews", {"dies": dies})
    reference = vectorize(corpus, asdict(token_rule("words")), transductive=False)
    monkeypatch.setattr(spread_vectorize, "MANY_BYTES", 1)
    store = Store(here / "store", isolated=False)
    store.ensure(corpus)
    own_homes = {name: tmp_path / name for name in ("one", "two")}
    made = {}
    with running(tmp_path, own_homes, shared) as address:
        if dies:
            dying = functools.partial(die_or_read, str(own_homes["one"]))
            monkeypatch.setattr(spread_vectorize, "read", dying)
        for name, cluster in (("alone", None), ("spread", Cluster(address, digest()))):
            (tmp_path / name).mkdir()
            sent = replace(store, cluster=cluster)
            job = Job(dict(reference.params), reference.inputs, tmp_path / name, sent)
            spread_vectorize.compute(job)
            made[name] = {path.name: path.read_bytes() for path in job.folder.iterdir()}
    assert made["spread"] == made["alone"]
    assert not any((home / "store" / "ingest").exists() for home in own_homes.values())


def test_a_worker_that_runs_other_code_computes_nothing(address: str, here: Path) -> None:
    from distributed import Client

    store = Store(here / "store", cluster=Cluster(address, "another digest"))
    with (
        Client(address, set_as_default=False) as client,
        pytest.raises(OSError, match="runs another version of textbench"),
    ):
        client.submit(run_stage, "ingest", numbers({"n": 5}), store, pure=False).result(timeout=120)


def test_workers_that_are_fit_pass_and_others_are_named(
    address: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_workers(address, here)
    assert list(here.iterdir()) == []
    monkeypatch.delenv("TEXTBENCH_STORE")
    with pytest.raises(InputError, match="which this command does not see; set TEXTBENCH_STORE"):
        check_workers(address, here)
    monkeypatch.setattr(dask_cluster, "versions", lambda: versions() | {"numpy": "0.1"})
    with pytest.raises(InputError, match=r"runs numpy .* than this command \(0\.1\)"):
        check_workers(address, here)


def test_workers_that_hang_are_one_line(address: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "look", time.sleep)
    monkeypatch.setattr(dask_cluster, "WORKER_SECONDS", 2)
    with pytest.raises(InputError, match=r"the Dask workers at tcp://.* did not answer in 2 s"):
        dask_cluster._ask_workers(address, 8)  # type: ignore[arg-type]


def test_an_address_that_does_not_answer_is_one_line_within_seconds(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster, "SECONDS", 1)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9: ") as raised:
        check_workers("tcp://127.0.0.1:9", here)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "command", [("run", "-d", "r8", "-m", "tfidf"), ("curve", "-d", "r8", "-m", "tfidf"), ("retrieve",)]
)
def test_commands_ask_the_cluster_first_whatever_is_stored(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned(*arguments: object, **_: object) -> None:
        raise AssertionError("the cells are planned only with a cluster that answers")

    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    monkeypatch.setattr(dask_cluster, "SECONDS", 0.2)
    monkeypatch.setattr("textbench.flows.plan.cell.plan", planned)
    monkeypatch.setattr("textbench.flows.results.rankings.plan", planned)
    result = CliRunner().invoke(app, [*command, "--engine", "dask", "--address", "tcp://127.0.0.1:9"])
    assert isinstance(result.exception, InputError)
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in str(result.exception)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:8786", "got '127.0.0.1:8786'"),
        ("http://127.0.0.1:8786", "got 'http://127.0.0.1:8786'"),
        ("tcp://127.0.0.1", "got 'tcp://127.0.0.1'"),
        ("tcp://127.0.0.1:port", "got 'tcp://127.0.0.1:port'"),
        ("tcp://192.0.2.1:8786", "leaves this machine.*give tls://.*TLS__CA_FILE"),
        ("tcp://[2001:db8::1]:8786", "leaves this machine"),
    ],
)
def test_an_address_that_cannot_be_or_is_open_to_everybody_is_refused(address: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_address(address)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:8786", "tls://192.0.2.1:8786"]
)
def test_an_address_of_this_machine_or_with_tls_is_accepted(address: str) -> None:
    check_address(address)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--address", "tcp://127.0.0.1:9"), "needs --engine dask"),
        (("--engine", "dask", "--address", "tcp://127.0.0.1:9", "--timed"), "--timed measures this machine"),
        (("--engine", "dask", "--address", "tcp://192.0.2.1:9"), "leaves this machine"),
    ],
)
def test_the_command_line_refuses_what_does_not_go_together(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    from textbench.flows.cli.options import read_engine

    given = dict(zip(arguments[::2], arguments[1::2], strict=False))
    with pytest.raises(InputError, match=words):
        read_engine(given.get("--engine", "threads"), given["--address"], timed="--timed" in arguments)


def test_cells_have_the_same_metrics_on_a_cluster_as_on_threads(
    address: str, here: Path, homes: dict[str, Path], shared: dict[str, str], documents: Path, tmp_path: Path
) -> None:
    run = ("run", "--data", str(documents), "-m", "binary", "-m", "frequency", "--seed", "0", "--json")
    threads = tmp_path / "threads"
    try:
        url = prefect_server.wait(prefect_server.start(here), timeout=300).api_url
        variables = {"PREFECT_API_URL": url}
        spread, _ = textbench(
            *run, "--engine", "dask", "--address", address, home=here, variables=shared | variables
        )
        alone, _ = textbench(*run, home=threads, variables={"TEXTBENCH_STORE": ""} | variables)
    finally:
        prefect_server.stop(here)
    found, expected = rows_of(spread), rows_of(alone)
    assert [row["metrics"] for row in found] == [row["metrics"] for row in expected]
    assert [row["params"] for row in found] == [row["params"] for row in expected]
    assert all(row["seconds"]["evaluate"] > 0 for row in found)
    made = [list((home / "store" / "evaluate").glob("*/meta.json")) for home in homes.values()]
    assert sum(map(len, made)) == 2
    hosts = {path.parent.name for paths in made for path in paths}
    assert hosts == {path.parent.name for path in (here / "store" / "evaluate").glob("*/meta.json")}
    assert not list((here / "store" / "vectorize").glob("*/meta.json"))  # big and not needed here


@pytest.fixture(scope="module")
def certificate(folder: Path) -> dict[str, str]:
    """Dask's variables for a certificate that vouches for itself, made for this test."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(alternative, critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    variables = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(folder / "cert.pem")}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        variables[f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT"] = str(folder / "cert.pem")
        variables[f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY"] = str(folder / "key.pem")
    return variables


def test_a_cluster_with_tls_answers_those_who_have_a_certificate(
    certificate: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import dask

    home = tmp_path / "home"
    home.mkdir()
    with running(tmp_path, {"worker": home}, certificate, "tls") as address:
        assert address.startswith("tls://127.0.0.1:")
        monkeypatch.setattr(dask_cluster, "SECONDS", 2)
        with pytest.raises(InputError, match="no Dask scheduler answers at tls://"):
            check_workers(address, home)
        with pytest.raises(InputError, match="no Dask scheduler answers at tcp://"):
            check_workers(address.replace("tls", "tcp"), home)
        monkeypatch.setattr(dask_cluster, "SECONDS", 30)
        with dask.config.set(dask.config.merge(dask.config.config, dask.config.collect_env(certificate))):
            check_workers(address, home)  # one folder for both: no shared root is needed


def test_doctor_tries_the_shared_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from textbench.flows.cli.doctor import _checked, _shared_store

    assert "none" in _shared_store().found
    monkeypatch.setenv("TEXTBENCH_STORE", str(tmp_path / "shared"))
    assert "the first writer wins" in _shared_store().found
    monkeypatch.setenv("TEXTBENCH_LOCKS", "postgresql://127.0.0.1:9/db")
    unlocked = _checked("shared store", _shared_store)
    assert not unlocked.ok
    assert "TEXTBENCH_LOCKS cannot be used" in unlocked.found
    monkeypatch.setenv("TEXTBENCH_STORE", "/proc/nowhere")
    assert not _checked("shared store", _shared_store).ok
