"""Tracking: one MLflow run a cell, found again and adopted when a run is resumed.

MLflow takes seconds to import, so it is imported only where a run is written or read.
"""

import contextlib
import hashlib
import http.client
import json
import os
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks import InputError
from tasks.catalogue import nearest
from tasks.recipe import PROJECT
from tasks.store import locked

if TYPE_CHECKING:
    from mlflow import MlflowClient

CELL_TAG = "textbench.cell"
ATTEMPT_TAG = "textbench.attempt"
RUN_TAG = "textbench.run"  # of a trial: the run it belongs to
ERROR_TAG = "error"
DATA_TAG = "sha256."  # and the name of a file of the data set
QUIET = {
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "1",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "GIT_PYTHON_REFRESH": "quiet",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}


class TrackingError(InputError):
    """The tracking server or database cannot be used; nothing has been computed."""


@dataclass(frozen=True)
class Settings:
    """What mlflow.yaml says, with relative paths taken inside the results folder."""

    tracking_uri: str = "sqlite:///mlflow.db"
    experiment: str = "textbench"
    trials_experiment: str = "textbench-trials"
    artifact_root: str = "mlartifacts"
    log_predictions: bool = True


def read_settings(home: Path) -> Settings:
    """Read mlflow.yaml of the working folder, else the project's. `MLFLOW_TRACKING_URI` wins over its address.

    Raises InputError naming the file, the key, what was found and what is accepted.
    """
    import yaml

    path = next((p for p in (Path("mlflow.yaml"), PROJECT / "mlflow.yaml") if p.is_file()), None)
    try:
        found = yaml.safe_load(path.read_text("utf-8")) if path else {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found or {}, dict):
        raise InputError(f"{path} must hold `key: value` lines, got {type(found).__name__}")
    accepted = {field.name: field for field in fields(Settings)}
    for key, value in (found or {}).items():
        if key not in accepted:
            raise InputError(f"{path}: unknown key {key!r}; {nearest(str(key), accepted)}")
        wanted = type(accepted[key].default)
        if not isinstance(value, wanted) or (isinstance(value, str) and not value.strip()):
            raise InputError(f"{path}: {key} must be a {wanted.__name__}, got {value!r}")
    settings = Settings(**(found or {}))
    return _inside(home, settings, os.environ.get("MLFLOW_TRACKING_URI") or settings.tracking_uri)


def _inside(home: Path, settings: Settings, uri: str) -> Settings:
    scheme, _, rest = uri.partition(":///")
    if scheme == "sqlite" and not rest.startswith("/"):
        uri = f"sqlite:///{home / rest}"
    elif not uri.startswith(("sqlite:///", "http:", "https:", "postgresql", "mysql", "databricks")):
        raise InputError(
            f"tracking_uri {uri!r} is not supported; use sqlite:///FILE or the http:// address of an MLflow server"
        )
    root = settings.artifact_root
    is_local = "://" not in root
    return Settings(**asdict(settings) | {
        "tracking_uri": uri, "artifact_root": str(home / root) if is_local else root
    })  # fmt: skip


class Tracker:
    """Writes cells to MLflow. `prepare` first, once, before anything computes in parallel."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._client: MlflowClient | None = None
        self._experiments: dict[str, str] = {}

    def check(self) -> None:
        """Make sure in no time, without MLflow, that the server answers or the database can be opened or made.

        Raises TrackingError if not.
        """
        uri = self.settings.tracking_uri
        if uri.startswith("http"):
            self._require_answer(uri)
        elif self.exists():
            try:
                self._require_database()
            except (sqlite3.Error, OSError) as error:
                raise TrackingError(f"MLflow at {uri} cannot be used: {error}") from error

    def prepare(self) -> None:
        """Import MLflow and make the database and experiments if they are not there; this takes seconds.

        Raises TrackingError when MLflow cannot be used.
        """
        self.check()
        uri = self.settings.tracking_uri
        os.environ.update(QUIET)
        import logging

        logging.getLogger("alembic").setLevel(logging.WARNING)
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with self._only_one():
                self._require_database()
                self._client = MlflowClient(tracking_uri=uri)
                self._experiments = {
                    name: self._experiment(name)
                    for name in (self.settings.experiment, self.settings.trials_experiment)
                }
        except (MlflowException, SQLAlchemyError, sqlite3.Error, OSError) as error:
            raise TrackingError(f"MLflow at {uri} cannot be used: {str(error).splitlines()[0]}") from error

    def exists(self) -> bool:
        """Tell, without asking MLflow, whether runs recorded here can still be there: a database file may be gone."""
        uri = self.settings.tracking_uri
        return not uri.startswith("sqlite:///") or Path(uri.removeprefix("sqlite:///")).exists()

    def _only_one(self) -> Any:
        # Two processes that migrate one fresh SQLite at once break it.
        uri = self.settings.tracking_uri

        if not uri.startswith("sqlite:///"):
            return contextlib.nullcontext()
        path = Path(uri.removeprefix("sqlite:///"))
        return locked(path.with_name(f".{path.name}.lock"))

    def _require_database(self) -> None:
        # MLflow would try for minutes to open what is not a database.
        uri = self.settings.tracking_uri
        if uri.startswith("sqlite:///"):
            with contextlib.closing(sqlite3.connect(uri.removeprefix("sqlite:///"))) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master")

    @staticmethod
    def _require_answer(uri: str) -> None:
        opener = urllib.request.build_opener()
        try:
            with opener.open(f"{uri.rstrip('/')}/health", timeout=5) as reply:
                if reply.status == 200:
                    return
                reason = f"status {reply.status}"
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = " ".join(str(getattr(error, "reason", error)).split())
        raise TrackingError(
            f"the MLflow server at {uri} does not answer ({reason}); start it, or change tracking_uri in mlflow.yaml"
        )

    def _experiment(self, name: str) -> str:
        client = self.client
        found = client.get_experiment_by_name(name)
        if found is None:
            local = self.settings.tracking_uri.startswith("sqlite:")
            root = f"{self.settings.artifact_root}/{name}" if local else None
            return client.create_experiment(name, artifact_location=root)
        if found.lifecycle_stage == "deleted":
            client.restore_experiment(found.experiment_id)
        return found.experiment_id

    @property
    def client(self) -> "MlflowClient":
        """The MLflow client; `prepare` has been called if there is one."""
        if self._client is None:
            self.prepare()
        assert self._client is not None
        return self._client

    def record(self, row: Mapping[str, Any], tags: Mapping[str, str], files: Mapping[str, Path]) -> str:
        """Write one cell as a run, or finish the run that an earlier attempt began; return its id.

        `row` has dataset, method, protocol, seed, params, metrics, seconds, peak_mb and error; `files` are attached
        under their names. The same cell and attempt never make two runs.
        """
        from mlflow.entities import Metric, Param, RunTag

        client = self.client
        names = ("dataset", "method", "protocol", "seed", "trials", "probe")
        params = {name: str(value) for name, value in ({n: row[n] for n in names} | row["params"]).items()}
        run_id = self._adopt(tags, params) or self._create(row, tags)
        now = int(time.time() * 1000)
        numbers = dict(row["metrics"])
        numbers |= {f"seconds_{stage}": value for stage, value in row["seconds"].items()}
        if row["seconds"]:
            numbers |= {"seconds": sum(row["seconds"].values()), "peak_mb": row["peak_mb"]}
        client.log_batch(
            run_id,
            metrics=[Metric(name, float(value), now, 0) for name, value in numbers.items()],
            params=[Param(name, value) for name, value in params.items()],
            tags=[RunTag(name, value) for name, value in tags.items()],
        )
        for name, path in files.items():
            client.log_artifact(run_id, str(path), artifact_path=name or None)
        self._log_data_set(run_id, row["dataset"], tags)
        if row["error"]:
            client.set_tag(run_id, ERROR_TAG, row["error"])
        elif ERROR_TAG in client.get_run(run_id).data.tags:  # an earlier attempt failed
            client.delete_tag(run_id, ERROR_TAG)
        client.set_terminated(run_id, "FAILED" if row["error"] else "FINISHED")
        return run_id

    def _adopt(self, tags: Mapping[str, str], params: Mapping[str, str]) -> str | None:
        wanted = " and ".join(f"tags.`{name}` = '{tags[name]}'" for name in (CELL_TAG, ATTEMPT_TAG))
        found = self.client.search_runs([self._experiments[self.settings.experiment]], wanted, max_results=1)
        if not found:
            return None
        run_id = found[0].info.run_id
        if any(params.get(name, value) != value for name, value in found[0].data.params.items()):
            # MLflow's parameters are immutable: another choice needs another run.
            self.client.delete_run(run_id)
            return None
        return run_id

    def _log_data_set(self, run_id: str, name: str, tags: Mapping[str, str]) -> None:
        """Name the data set in MLflow's column for it, with a digest of its files' sha256 (MLflow takes 36 letters)."""
        from mlflow.entities import Dataset, DatasetInput

        digests = [f"{tag}={value}" for tag, value in sorted(tags.items()) if tag.startswith(DATA_TAG)]
        if digests:
            digest = hashlib.sha256("".join(digests).encode()).hexdigest()[:16]
            data_set = Dataset(name, digest, source_type="textbench", source=json.dumps(digests))
            self.client.log_inputs(run_id, [DatasetInput(data_set)])

    def _create(self, row: Mapping[str, Any], tags: Mapping[str, str]) -> str:
        name = f"{row['dataset']} {row['method']} seed {row['seed']}"
        run = self.client.create_run(
            self._experiments[self.settings.experiment],
            # The run is written when it is over; MLflow's duration shall be what its stages took.
            start_time=int(1000 * (time.time() - sum(row["seconds"].values()))),
            run_name=name,
            tags={CELL_TAG: tags[CELL_TAG], ATTEMPT_TAG: tags[ATTEMPT_TAG]},
        )
        return run.info.run_id

    def record_trials(self, run_id: str, name: str, trials: Sequence[Mapping[str, Any]]) -> None:
        """Write the trials of a run's search to their own experiment, once, each tagged with its run."""
        from mlflow.entities import Metric, Param, RunTag

        experiment = self._experiments[self.settings.trials_experiment]
        if self.client.search_runs([experiment], f"tags.`{RUN_TAG}` = '{run_id}'", max_results=1):
            return
        now = int(time.time() * 1000)
        for trial in trials:
            begun = now - int(1000 * trial["seconds"])
            tags = {RUN_TAG: run_id, "state": trial["state"]}
            tags |= {ERROR_TAG: trial["error"]} if trial["error"] else {}
            run = self.client.create_run(
                experiment,
                start_time=begun,
                run_name=f"{name} trial {trial['number']}",
            )
            numbers = {"seconds": trial["seconds"]} | ({"score": trial["score"]} if "score" in trial else {})
            values = trial["values"] | ({"C": trial["C"]} if trial.get("C") else {})
            self.client.log_batch(
                run.info.run_id,
                metrics=[Metric(key, float(value), now, 0) for key, value in numbers.items()],
                params=[Param(key, str(value)) for key, value in values.items()],
                tags=[RunTag(key, value) for key, value in tags.items()],
            )
            self.client.set_terminated(
                run.info.run_id, "FAILED" if trial["error"] else "FINISHED", end_time=now
            )

    def record_curve(
        self,
        name: str,
        params: Mapping[str, Any],
        curves: Mapping[str, Mapping[int, float]],
        metric: str,
        tags: Mapping[str, str],
        picture: Path,
    ) -> str:
        """Write a curve as one run and return its id; `curves` has `mean`, `low`, `high` by step."""
        from mlflow.entities import Metric, Param, RunTag

        client, now = self.client, int(time.time() * 1000)
        run = client.create_run(self._experiments[self.settings.experiment], run_name=name)
        names = {"mean": metric, "low": f"{metric}_low", "high": f"{metric}_high"}
        client.log_batch(
            run.info.run_id,
            metrics=[
                Metric(names[end], float(value), now, step)
                for end, curve in curves.items()
                for step, value in curve.items()
            ],
            params=[Param(key, str(value)) for key, value in params.items()],
            tags=[RunTag(key, value) for key, value in tags.items()],
        )
        client.log_artifact(run.info.run_id, str(picture))
        client.set_terminated(run.info.run_id, "FINISHED")
        return run.info.run_id

    def tag(self, run_id: str, name: str, value: str) -> bool:
        """Add one tag to a recorded run; return whether the run is still there."""
        from mlflow.exceptions import MlflowException

        try:
            if self.client.get_run(run_id).info.lifecycle_stage == "deleted":
                return False
            self.client.set_tag(run_id, name, value)
        except MlflowException:
            return False
        return True

    def runs(self) -> list[dict[str, Any]]:
        """Return every finished run of the experiment as a leaderboard row."""
        page: str | None = None
        rows: list[dict[str, Any]] = []
        while True:
            found = self.client.search_runs(
                [self._experiments[self.settings.experiment]],
                "attributes.status = 'FINISHED'",
                max_results=1000,
                page_token=page,
            )
            # Curves, rankings and reports have a kind; a cell of a sweep has none.
            rows += [_as_row(run) for run in found if "kind" not in run.data.tags]
            page = found.token
            if not page:
                return rows


def _as_row(run: Any) -> dict[str, Any]:
    params, numbers = dict(run.data.params), run.data.metrics
    stages = {n.removeprefix("seconds_"): v for n, v in numbers.items() if n.startswith("seconds_")}
    fixed = {name: params.pop(name, "") for name in ("dataset", "method", "protocol", "trials", "probe")}
    apart = {"seconds", "peak_mb"}
    return fixed | {
        "seed": int(params.pop("seed", 0)),
        "params": params,
        "metrics": {n: v for n, v in numbers.items() if n not in apart and not n.startswith("seconds_")},
        "seconds": stages,
        "peak_mb": numbers.get("peak_mb"),
        "run_id": run.info.run_id,
        "cached": True,
        "error": None,
    }


def git_commit() -> str:
    """Return the project's commit, with "+changes" when files differ from it, or "unknown" outside a checkout."""
    try:
        command = [
            "git",
            "-C",
            str(PROJECT),
            "describe",
            "--always",
            "--abbrev=40",
            "--dirty=+changes",
            "--exclude=*",
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
