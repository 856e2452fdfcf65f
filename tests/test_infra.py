"""The servers of a group: compose.yaml by its schema and by our rules, and the same servers started from packages.

No Docker engine is needed. PostgreSQL, storage that speaks S3, Prefect, MLflow with users, and a Dask cluster run as
`infra.servers` starts them; a sweep uses them, PostgreSQL is killed in the middle of it, and the sweep goes on.
"""

import importlib.metadata
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest
import yaml

from infra import servers
from tests.commands import eventually, free_port, is_gone, rows_of, start, textbench
from tests.warm import PROJECT
from textbench.flows.servers import ports
from textbench.tasks import InputError
from textbench.tasks.storage.garbage import artifacts

INFRA = PROJECT / "infra"
COMPOSE = yaml.safe_load((INFRA / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
VARIABLE = re.compile(r"\$\{(\w+)(.*?)\}")
SECRETS = {
    # What a shell, an address or a settings file could take for its own.
    "POSTGRES_PASSWORD": "p%4w:/@ 1#",
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": "secret key",
    "MLFLOW_AUTH_ADMIN_USERNAME": "admin",
    "MLFLOW_AUTH_ADMIN_PASSWORD": "a long password",
    "MLFLOW_FLASK_SERVER_SECRET_KEY": "another secret",
    "PREFECT_SERVER_API_AUTH_STRING": "admin:secret word",
}
SWEEP = ["-m", "counts", "-m", "tfidf", "--seeds", "2", "--trials", "2"]
N_CELLS, N_TRIALS = 4, 2
WORDS = ["price", "market", "day", "of", "the"]


def test_compose_follows_the_specification() -> None:
    files = importlib.metadata.files("check-jsonschema") or []
    vendored = next(file for file in files if file.name == "compose-spec.json")
    schema = json.loads(Path(str(vendored.locate())).read_text("utf-8"))
    jsonschema.validate(COMPOSE, schema, cls=jsonschema.validators.validator_for(schema))
    broken = COMPOSE | {"services": SERVICES | {"prefect": SERVICES["prefect"] | {"port": ["4200:4200"]}}}
    with pytest.raises(jsonschema.ValidationError, match="port"):
        jsonschema.validate(broken, schema)


def test_no_secret_has_a_value_and_all_are_named_in_the_example() -> None:
    text = (INFRA / "compose.yaml").read_text("utf-8")
    found = dict(VARIABLE.findall(text))
    assert {name for name, rest in found.items() if rest.startswith(":?set it in infra/.env")} == set(SECRETS)
    others = {name: rest for name, rest in found.items() if name not in SECRETS}
    assert all(re.fullmatch(r":-\d+", rest) for rest in others.values())
    assert VARIABLE.sub("", text).count("$") == 0
    example = (INFRA / ".env.example").read_text("utf-8")
    assert set(re.findall(r"^(\w+)=$", example, re.M)) == set(SECRETS) == set(servers.SECRETS)
    assert set(re.findall(r"^# (\w+)=\d+$", example, re.M)) == set(others)
    assert not re.findall(r"^\w+=.+$", example, re.M)
    ignored = (INFRA / "Dockerfile.dockerignore").read_text("utf-8") + (INFRA / ".gitignore").read_text(
        "utf-8"
    )
    assert "**/.env" in ignored and "\n.env\n" in f"\n{ignored}"


def test_ports_are_on_loopback_images_pinned_and_services_watched() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert len(published) == len(servers.PORTS)
    usual = {f"127.0.0.1:${{{name}:-{port}}}:{port}" for name, port in servers.PORTS.values()}
    assert set(published) == usual
    for name, service in SERVICES.items():
        assert re.search(r":[A-Z.]*\d[\w.-]*\d[\w.-]*$", service["image"]), name
        assert service.get("privileged") is None and "docker.sock" not in str(service)
        if service["restart"] == "no":
            assert "healthcheck" not in service, f"{name} runs once"
        else:
            assert service["healthcheck"]["retries"] * _seconds(service["healthcheck"]["interval"]) >= 60
        for other, waited in service.get("depends_on", {}).items():
            is_once = SERVICES[other]["restart"] == "no"
            ready = "service_completed_successfully" if is_once else "service_healthy"
            assert waited == {"condition": ready}, f"{name} waits for {other}"
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or (INFRA / source).is_file()


def _seconds(text: str) -> int:
    assert text.endswith("s")
    return int(text.removesuffix("s"))


def test_what_the_image_copies_exists_and_it_does_not_run_as_root() -> None:
    lines = (INFRA / "Dockerfile").read_text("utf-8").splitlines()
    sources = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert {
        "requirements.lock",
        "__init__.py",
        "flows",
        "tasks",
        "featurizers",
        "evaluation",
        "infra",
    } <= set(sources)
    assert all((PROJECT / name).exists() for name in sources)
    kept = (INFRA / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert set(sources) == {line.removeprefix("!") for line in kept if line.startswith("!")}
    assert "USER textbench" in lines
    assert SERVICES["worker"]["build"]["dockerfile"] == "infra/Dockerfile"
    assert (INFRA / SERVICES["worker"]["build"]["context"]).resolve() == PROJECT


def test_both_ways_start_the_same_programs_with_the_same_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What compose runs in containers is what was run from packages, apart from addresses."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    group = servers.Group(tmp_path, {name: port for name, (_, port) in servers.PORTS.items()})
    packaged = {server.name: server for server in group.servers()}
    for name in ("prefect", "mlflow", "dask-scheduler"):
        composed = shlex.split(SERVICES[name]["command"].replace("0.0.0.0", "127.0.0.1"))
        own = ["--allowed-hosts", "mlflow:*,localhost:*,127.0.0.1:*", "--workers", "2", "--uvicorn-opts"]
        own += ["--timeout-worker-healthcheck 120"]
        found = list(packaged[name].command)[2:]
        assert set(composed) - set(own) == set(found) - {"--workers", "1"}, name
    worker = packaged["dask-worker-1"]
    for flags in (SERVICES["dask-worker"]["command"].split(), worker.command):
        assert flags[list(flags).index("--dashboard-address") + 1] == "127.0.0.1:0"
    variables = SERVICES["dask-worker"]["environment"]
    assert set(worker.variables) <= set(variables)
    assert all(
        worker.variables[name] == variables[name]
        for name in ("TEXTBENCH_STORE", "TEXTBENCH_LOCKS", "TEXTBENCH_STUDIES")
    )
    databases = (INFRA / "databases.sql").read_text("utf-8")
    assert f"'{SERVICES['prefect']['environment']['PREFECT_SERVER_DATABASE_NAME']}'" in databases


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"POSTGRES_PASSWORD": ""}, "POSTGRES_PASSWORD must be set; infra/.env.example says what each is"),
        ({"MLFLOW_PORT": "70000"}, "MLFLOW_PORT must lie in 1 .. 65535, got 70000"),
        ({"DASK_PORT": "8786/tcp"}, "DASK_PORT must be a port, got '8786/tcp'"),
    ],
)
def test_bad_settings_cost_one_line(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    for name, value in (SECRETS | variables).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError) as caught:
        servers.read_group()
    assert str(caught.value) == message


def test_a_port_in_use_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    with ports.listen(ports.HOST, 0) as taken:
        port = taken.getsockname()[1]
        server = servers.Server("prefect", ["true"], "prefect")
        with pytest.raises(
            InputError, match=f"port {port} on 127.0.0.1 is in use; set PREFECT_PORT to another"
        ):
            servers._launch(servers.Group(tmp_path, {"prefect": port}), server)


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, str]]:
    """What the servers are told: a folder that PostgreSQL's own user may enter, free ports, users and passwords."""
    if not (any(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("initdb")):
        pytest.skip("PostgreSQL is not installed (Debian's package `postgresql`)")
    folder = Path(tempfile.mkdtemp(prefix="textbench-servers-"))
    folder.chmod(0o755)
    chosen = {variable: str(free_port()) for variable, _ in servers.PORTS.values()}
    variables = (
        SECRETS | chosen | {"TEXTBENCH_SERVERS": str(folder / "servers"), "AWS_DEFAULT_REGION": "us-east-1"}
    )
    try:
        yield variables
    finally:
        stopped = run("stop", variables)
        shutil.rmtree(folder, ignore_errors=True)
        assert not stopped.returncode, stopped.stderr


def run(command: str, settings: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run `python -m infra.servers COMMAND`."""
    environment = {name: value for name, value in os.environ.items() if name != "AWS_ENDPOINT_URL"}
    return subprocess.run(
        [sys.executable, "-m", "infra.servers", command],
        env=environment | settings,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def client(settings: dict[str, str]) -> dict[str, str]:
    """The servers, running, and the variables of whoever uses them, as `servers env` prints them."""
    started = run("start", settings)
    assert not started.returncode, started.stdout + started.stderr
    printed = run("env", settings).stdout
    assert not any(value in printed for name, value in SECRETS.items() if len(value) > 5), (
        "a secret is printed"
    )
    names = re.findall(r"^export (\w+)=", printed, re.M)
    script = f"{printed}\n" + "\n".join(f'printf "%s\\0" "${name}"' for name in names)
    found = subprocess.run(
        ["sh", "-c", script], env=os.environ | settings, check=True, capture_output=True, text=True
    )
    values = dict(zip(names, found.stdout.split("\0"), strict=False))
    storage = {name: settings[name] for name in settings if name.startswith("AWS_")}
    # Artifacts of this machine alone: the shared store has tests of its own.
    return {name: value for name, value in (values | storage).items() if not name.startswith("TEXTBENCH_")}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = {"oil": "crude barrel", "wheat": "grain harvest", "gold": "ounce mine"}
    rows = [f"{words[label]} {' '.join(WORDS[: i % 5 + 1])},{label}" for i in range(20) for label in words]
    path = tmp_path_factory.mktemp("documents") / "small.csv"
    path.write_text("text,label\n" + "\n".join(rows) + "\n", "utf-8")
    return path


@pytest.fixture
def mlflow(client: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of the MLflow server."""
    from mlflow import MlflowClient

    for name, value in client.items():
        monkeypatch.setenv(name, value)
    return MlflowClient(tracking_uri=client["MLFLOW_TRACKING_URI"])


def runs_of(mlflow: Any, experiment: str) -> list[Any]:
    """Return all runs of an experiment that are not deleted."""
    return list(
        mlflow.search_runs([mlflow.get_experiment_by_name(experiment).experiment_id], max_results=1000)
    )


def test_all_servers_are_healthy_on_loopback_alone(client: dict[str, str], settings: dict[str, str]) -> None:
    found = run("status", settings)
    assert not found.returncode, found.stdout
    assert found.stdout.count("healthy") == 7
    folder = Path(settings["TEXTBENCH_SERVERS"])
    states = [json.loads(path.read_text()) for path in folder.glob("*/server.json")]
    assert len(states) == 6
    tops = [psutil.Process(state["pid"]) for state in states]
    tops.append(psutil.Process(int((folder / "postgres" / "postmaster.pid").read_text().split()[0])))
    listening = {
        connection.laddr.ip
        for top in tops
        for process in (top, *top.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("MLFLOW_TRACKING_PASSWORD", "does not let this user in (status 401); set MLFLOW_TRACKING_USERNAME"),
        ("PREFECT_API_AUTH_STRING", "answers with status 401; set PREFECT_API_AUTH_STRING to USER:PASSWORD"),
    ],
)
def test_a_wrong_password_costs_one_line_and_nothing_is_computed(
    client: dict[str, str], documents: Path, tmp_path: Path, variable: str, message: str
) -> None:
    wrong = client | {variable: "admin:wrong"}
    command = ["run", "--data", str(documents), "-m", "counts", "--seed", "0"]
    code = 2 if variable.startswith("MLFLOW") else 1
    output, errors = textbench(*command, home=tmp_path, variables=wrong, code=code)
    assert message in " ".join(errors.split())
    assert "Traceback" not in errors and "wrong" not in output + errors
    assert not list((tmp_path / "store").glob("evaluate/*"))


def test_a_sweep_outlives_the_death_of_the_database(
    client: dict[str, str], settings: dict[str, str], documents: Path, tmp_path: Path, mlflow: Any
) -> None:
    command = ["run", "--data", str(documents), *SWEEP, "--json"]
    process = start(command, tmp_path, variables=client)
    # The first cell is done, the others not.
    assert eventually(lambda: any((tmp_path / "index").glob("*.json")), 600)
    data = Path(settings["TEXTBENCH_SERVERS"]) / "postgres"
    postmaster = psutil.Process(int((data / "postmaster.pid").read_text().split()[0]))
    family = [postmaster, *postmaster.children(recursive=True)]
    for one in family:
        one.send_signal(signal.SIGKILL)
    psutil.wait_procs(family, 30)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "the same command goes on" in errors or "could not be recorded" in errors
    metas = [folder / "meta.json" for _, folder, _ in artifacts(tmp_path / "store")]
    made = {path: path.stat().st_mtime_ns for path in metas}
    assert any(path.parent.parent.name == "evaluate" for path in made), "a cell was finished before"

    assert run("start", settings).returncode == 0
    rows = rows_of(textbench(*command, home=tmp_path, variables=client)[0])
    assert [(row["method"], row["seed"], row["error"]) for row in rows] == [
        (method, seed, None) for method in ("counts", "tfidf") for seed in (0, 1)
    ]
    assert any(row["cached"] for row in rows)
    assert all(path.stat().st_mtime_ns == time_made for path, time_made in made.items()), "computed anew"

    recorded = runs_of(mlflow, "textbench")
    assert Counter(one.data.tags["textbench.cell"] for one in recorded).most_common(1)[0][1] == 1
    assert len(recorded) == N_CELLS
    assert {one.info.status for one in recorded} == {"FINISHED"}
    trials = runs_of(mlflow, "textbench-trials")
    assert {one.info.status for one in trials} == {"FINISHED"}
    of_run = Counter(one.data.tags["textbench.run"] for one in trials)
    # counts has nothing to search.
    searched = [one for one in recorded if one.data.params["method"] == "tfidf"]
    assert of_run == {one.info.run_id: N_TRIALS for one in searched}


def test_predictions_are_in_the_bucket(
    client: dict[str, str], mlflow: Any, tmp_path: Path, documents: Path
) -> None:
    """A run's artifacts came to the storage through MLflow's server: who runs a sweep needs no key to the storage."""
    import boto3

    without = {name: value for name, value in client.items() if not name.startswith("AWS_")}
    textbench(
        "run", "--data", str(documents), "-m", "binary", "--seed", "0", home=tmp_path, variables=without
    )
    (one,) = [run for run in runs_of(mlflow, "textbench") if run.data.params["method"] == "binary"]
    kept = boto3.resource("s3", endpoint_url=client["AWS_ENDPOINT_URL"]).Bucket("textbench").objects
    names = [thing.key for thing in kept.filter(Prefix="mlflow/") if one.info.run_id in thing.key]
    assert any(name.endswith(".parquet") for name in names), names


def test_the_bucket_of_compose_is_made_once(client: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The script of compose's service `bucket`, run against the storage; a second time it changes nothing."""
    command = SERVICES["bucket"]["command"]
    assert command[:2] == ["python", "-c"]
    for _ in range(2):
        subprocess.run([sys.executable, *command[1:]], env=os.environ | client, check=True)


def test_a_killed_server_is_started_again_and_stop_leaves_nothing(
    client: dict[str, str], settings: dict[str, str]
) -> None:
    folder = Path(settings["TEXTBENCH_SERVERS"])
    pid = json.loads((folder / "dask-worker-2" / "server.json").read_text())["pid"]
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    for one in family:
        one.kill()
    psutil.wait_procs(family, 30)
    found = run("status", settings)
    assert found.returncode == 1 and re.search(r"dask-worker-2 .* not running", found.stdout)
    assert run("start", settings).returncode == 0
    assert run("status", settings).returncode == 0
    pids = [json.loads(path.read_text())["pid"] for path in folder.glob("*/server.json")]
    stopped = run("stop", settings)
    assert stopped.returncode == 0 and stopped.stdout.count(",") == 6, stopped.stdout
    assert eventually(lambda: all(is_gone(pid) for pid in pids))
    assert run("stop", settings).stdout == "stopped: nothing\n"
