"""Tracking: one MLflow run a cell, found again and adopted when a run is resumed.

MLflow takes seconds to import, so it is imported only where a run is written or read.
"""

import contextlib
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError
from textbench.tasks.catalogue import nearest
from textbench.tasks.storage import kept_databases
from textbench.tasks.storage.definitions import PROJECT
from textbench.tasks.storage.locks import locked
from textbench.tasks.tracking.mlflow_server import (
    DATABASE_PORTS,
    TrackingError,
    require_answer,
    require_database,
)
from textbench.tasks.tracking.settings import read_settings_file, shown
from textbench.tasks.words import counted

if TYPE_CHECKING:
    from mlflow import MlflowClient

CELL_TAG = "textbench.cell"
ATTEMPT_TAG = "textbench.attempt"
MADE_BY_TAG = "textbench.made_by"  # of runs that one mean over seeds may hold
RUN_TAG = "textbench.run"  # of a trial: the run it belongs to
ERROR_TAG = "error"
DATA_TAG = "sha256."  # and the name of a file of the data set
CORPUS_TAG = "corpus."  # and what tells the documents from others: `tasks.corpus.identity`
KIND_TAG = "kind"  # of what is no cell of a sweep
RETRIEVAL = "retrieval"  # the kind of rankings
REPORTS = "textbench-reports"  # the experiment of reports and suites: what is made of runs
CHANGED = "+changes"  # behind a commit from which files differ
MAX_KEY = 200  # letters of a file's name in a tag; MLflow takes 250 in all
Tags = Mapping[str, str]
Points = Mapping[tuple[str, int], float]
MAX_NAME = 250  # letters of a parameter's name
# What MLflow refuses in it; names of an ensemble's members have it.
UNWRITABLE = re.compile(r"[^\w\-. :]", re.ASCII)
NONE = "none"  # for a tracking_uri: runs are kept in the results folder alone
SCHEMES = ("sqlite:///", "http:", "https:", "postgresql", "mysql", "databricks")
WHEN_DOWN = ("stop", "spool")
QUIET = {
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "1",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "GIT_PYTHON_REFRESH": "quiet",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}


@dataclass(frozen=True)
class Settings:
    """What mlflow.yaml says, with relative paths taken inside the results folder."""

    tracking_uri: str = "sqlite:///mlflow.db"
    experiment: str = "textbench"
    trials_experiment: str = "textbench-trials"
    curves_experiment: str = "textbench-curves"
    retrieval_experiment: str = "textbench-retrieval"
    artifact_root: str = "mlartifacts"
    log_predictions: bool = True
    when_down: str = "stop"

    @property
    def experiments(self) -> dict[str, str]:
        """The names of the experiments, by their keys."""
        return {field.name: getattr(self, field.name) for field in fields(self) if "experiment" in field.name}

    @property
    def is_on(self) -> bool:
        """Whether runs are tracked at all."""
        return self.tracking_uri != NONE


def read_settings(home: Path, uri: str | None = None) -> Settings:
    """Return mlflow.yaml of the working folder, else the project's. `MLFLOW_TRACKING_URI` wins over its address.

    `uri` wins over both.

    Raises InputError naming the file, the key, what was found and what is accepted.
    """
    path = next((p for p in (Path("mlflow.yaml"), PROJECT / "mlflow.yaml") if p.is_file()), None)
    found = read_settings_file(path) if path else {}
    accepted = {field.name: field for field in fields(Settings)}
    for key, value in found.items():
        if key not in accepted:
            raise InputError(f"{path}: unknown key {shown(key)}; {nearest(str(key), accepted)}")
        wanted = type(accepted[key].default)
        if not isinstance(value, wanted) or (isinstance(value, str) and not value.strip()):
            raise InputError(f"{path}: {key} must be a {wanted.__name__}, got {shown(value)}")
    settings = Settings(**found)
    if settings.when_down not in WHEN_DOWN:
        raise InputError(
            f"{path}: when_down must be {' or '.join(WHEN_DOWN)}, got {shown(settings.when_down)}"
        )
    return _inside(home, settings, uri or os.environ.get("MLFLOW_TRACKING_URI") or settings.tracking_uri)


def _inside(home: Path, settings: Settings, uri: str) -> Settings:
    scheme, _, rest = uri.partition(":///")
    if scheme == "sqlite" and not rest.startswith("/"):
        uri = f"sqlite:///{home / rest}"
    elif uri != NONE and not uri.startswith(SCHEMES):
        raise InputError(
            f"tracking_uri {shown(uri)} is not supported; "
            f"use sqlite:///FILE, an MLflow server's http:// address, or {NONE}"
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
        self.n_foreign = 0

    def check(self) -> None:
        """Make sure in no time, without MLflow, that the server answers or the database can be opened or made.

        Raises TrackingError if not.
        """
        uri = self.settings.tracking_uri
        if uri.startswith("http"):
            require_answer(uri)
        elif uri.startswith(tuple(DATABASE_PORTS)):
            require_database(uri)
        elif self.exists():
            try:
                self._require_database()
            except (sqlite3.Error, OSError) as error:
                raise TrackingError(f"MLflow at {uri} cannot be used: {error}") from error

    def require(self) -> None:
        """`check` before anything is computed, unless runs that cannot be sent are to wait in the spool."""
        if self.settings.when_down == "stop":
            self.check()

    def prepare(self) -> None:
        """Import MLflow and make the database and experiments if they are not there; this takes seconds.

        Raises TrackingError when MLflow cannot be used.
        """
        self.check()
        uri = self.settings.tracking_uri
        if not self.settings.is_on:
            raise TrackingError(f"runs are not tracked: tracking_uri is {NONE}; name MLflow's in mlflow.yaml")
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        import logging

        logging.getLogger("alembic").setLevel(logging.WARNING)
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with self._only_one():
                self._make_database()
                self._client = MlflowClient(tracking_uri=uri)
                names = self.settings.experiments.values()
                self._experiments = {name: self.experiment(name) for name in names}
        except (MlflowException, SQLAlchemyError, sqlite3.Error, OSError) as error:
            raise TrackingError(f"MLflow at {uri} cannot be used: {str(error).splitlines()[0]}") from error

    def exists(self) -> bool:
        """Tell, without asking MLflow, whether runs recorded here can still be there: a database file may be gone."""
        uri = self.settings.tracking_uri
        is_file = uri.startswith("sqlite:///")
        return self.settings.is_on and (not is_file or Path(uri.removeprefix("sqlite:///")).exists())

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
            _tables(Path(uri.removeprefix("sqlite:///")))

    def _make_database(self) -> None:
        # MLflow never opens again a database whose making was cut short: it is made beside its place and moved there.
        path = Path(self.settings.tracking_uri.removeprefix("sqlite:///"))
        if not self.settings.tracking_uri.startswith("sqlite:///") or not _is_unfinished(path):
            return
        from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

        new = path.with_name(f".{path.name}.new")
        for rest in path.parent.glob(f"{new.name}*"):  # with SQLite's journal
            rest.unlink()
        if kept_databases.fill(new, "mlflow"):
            _set_default_experiment(new, self.settings.artifact_root)
        else:
            SqlAlchemyStore(f"sqlite:///{new}", self.settings.artifact_root).engine.dispose()
            kept_databases.keep(new, "mlflow")
        new.replace(path)

    def experiment(self, name: str) -> str:
        """Return the id of the experiment of this name, made if missing, restored if deleted."""
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

    def record(self, row: Mapping[str, Any], tags: Tags, files: Mapping[str, Path]) -> str:
        """Write one cell as a run, or finish the run that an earlier attempt began; return its id.

        `row` has dataset, method, protocol, seed, params, metrics, seconds, peak_mb and error; `files` are attached
        under their names. The same cell and attempt never make two runs.
        """
        client = self.client
        names = ("dataset", "method", "protocol", "seed", "trials", "probe")
        every = {n: row[n] for n in names} | row["params"]
        params = {UNWRITABLE.sub("_", name)[:MAX_NAME]: str(value) for name, value in every.items()}
        now = int(time.time() * 1000)
        # The run is written when it is over; MLflow's duration shall be what its stages took.
        begun = now - int(1000 * sum(row["seconds"].values()))
        name = f"{row['dataset']} {row['method']} seed {row['seed']}"
        is_ranking = tags.get(KIND_TAG) == RETRIEVAL
        place = self.settings.retrieval_experiment if is_ranking else self.settings.experiment
        run_id = self._adopt(tags, params, place) or self._create(name, begun, tags, place)
        numbers = dict(row["metrics"])
        numbers |= {f"seconds_{stage}": value for stage, value in row["seconds"].items()}
        if row["seconds"]:
            numbers |= {"seconds": sum(row["seconds"].values()), "peak_mb": row["peak_mb"]}
        self._log(run_id, {(name, 0): value for name, value in numbers.items()}, now, params, tags)
        for name, path in files.items():
            client.log_artifact(run_id, str(path), artifact_path=name or None)
        self._log_data_set(run_id, row["dataset"], tags)
        if row["error"]:
            client.set_tag(run_id, ERROR_TAG, row["error"])
        elif ERROR_TAG in client.get_run(run_id).data.tags:  # an earlier attempt failed
            client.delete_tag(run_id, ERROR_TAG)
        client.set_terminated(run_id, "FAILED" if row["error"] else "FINISHED")
        return run_id

    def _adopt(self, tags: Tags, params: Mapping[str, str], experiment: str) -> str | None:
        """Return the run that an earlier attempt began, if there is one.

        Curves and rankings may be in the experiment of cells, where all of them once were.
        """
        places = dict.fromkeys(self._experiments[name] for name in (experiment, self.settings.experiment))
        wanted = " and ".join(f"tags.`{name}` = '{tags[name]}'" for name in (CELL_TAG, ATTEMPT_TAG))
        found = self.client.search_runs(list(places), wanted, max_results=1)
        if not found:
            return None
        run_id = found[0].info.run_id
        if any(params.get(name, value) != value for name, value in found[0].data.params.items()):
            # MLflow's parameters are immutable: another choice needs another run.
            self.client.delete_run(run_id)
            return None
        return run_id

    def _log_data_set(self, run_id: str, name: str, tags: Tags) -> None:
        """Name the data set in MLflow's column for it, with a digest of its files' sha256 (MLflow takes 36 letters)."""
        from mlflow.entities import Dataset, DatasetInput

        digests = [f"{tag}={value}" for tag, value in sorted(tags.items()) if tag.startswith(DATA_TAG)]
        if digests:
            digest = hashlib.sha256("".join(digests).encode()).hexdigest()[:16]
            data_set = Dataset(name, digest, source_type="textbench", source=json.dumps(digests))
            self.client.log_inputs(run_id, [DatasetInput(data_set)])

    def _create(self, name: str, begun: int, tags: Tags, experiment: str) -> str:
        own = {CELL_TAG: tags[CELL_TAG], ATTEMPT_TAG: tags[ATTEMPT_TAG]}
        return str(self.client.create_run(self._experiments[experiment], begun, own, name).info.run_id)

    def _log(self, run_id: str, points: Points, now: int, params: Mapping[str, Any], tags: Tags) -> None:
        """Add to a run in one request; `points` are its metrics by name and step."""
        from mlflow.entities import Metric, Param, RunTag

        self.client.log_batch(
            run_id,
            metrics=[Metric(name, float(value), now, step) for (name, step), value in points.items()],
            params=[Param(name, str(value)) for name, value in params.items()],
            tags=[RunTag(name, value) for name, value in tags.items()],
        )

    def record_trials(self, run_id: str, name: str, trials: Sequence[Mapping[str, Any]]) -> None:
        """Write the trials of a run's search to their own experiment, each once, tagged with its run.

        Trials that an earlier attempt wrote are left alone, and one that it began is finished.
        """
        tag, wanted = {RUN_TAG: run_id}, f"tags.`{RUN_TAG}` = '{run_id}'"
        known = {run.info.run_name: run.info for run in self._search(self.settings.trials_experiment, wanted)}
        for trial in trials:
            title, now = f"{name} trial {trial['number']}", int(time.time() * 1000)
            if title not in known:
                begun = now - int(1000 * trial["seconds"])
                experiment = self._experiments[self.settings.trials_experiment]
                run = self.client.create_run(experiment, start_time=begun, run_name=title, tags=tag)
                self._finish_trial(run.info.run_id, trial, now)
            elif known[title].status == "RUNNING":
                self._finish_trial(known[title].run_id, trial, now)

    def _finish_trial(self, trial_id: str, trial: Mapping[str, Any], now: int) -> None:
        numbers = {"seconds": trial["seconds"]} | ({"score": trial["score"]} if "score" in trial else {})
        values = trial["values"] | ({"C": trial["C"]} if trial.get("C") else {})
        tags = {"state": trial["state"]} | ({ERROR_TAG: trial["error"]} if trial["error"] else {})
        self._log(trial_id, {(key, 0): value for key, value in numbers.items()}, now, values, tags)
        self.client.set_terminated(trial_id, "FAILED" if trial["error"] else "FINISHED", end_time=now)

    def record_curve(
        self,
        name: str,
        params: Mapping[str, Any],
        curves: Mapping[str, Mapping[int, float]],
        metric: str,
        tags: Tags,
        picture: Path,
    ) -> str:
        """Write a curve as one run and return its id; `curves` has `mean`, `low`, `high` by step.

        Like a cell it is known by two of its tags: what an earlier attempt began is finished.
        """
        client, about = self.client, {key: str(value) for key, value in params.items()}
        place = self.settings.curves_experiment
        run_id = self._adopt(tags, about, place) or self._create(name, int(time.time() * 1000), tags, place)
        begun = client.get_run(run_id).info.start_time  # the same points again are the same to MLflow
        names = {"mean": metric, "low": f"{metric}_low", "high": f"{metric}_high"}
        points = {(names[end], int(step)): at[step] for end, at in curves.items() for step in at}
        self._log(run_id, points, begun, about, tags)
        client.log_artifact(run_id, str(picture))
        client.set_terminated(run_id, "FINISHED")
        return run_id

    def tag(self, run_id: str, tags: Tags) -> bool:
        """Add tags to a recorded run; return whether the run is still there."""
        from mlflow.exceptions import MlflowException

        try:
            if self.client.get_run(run_id).info.lifecycle_stage == "deleted":
                return False
            for name, value in tags.items():
                self.client.set_tag(run_id, name, value)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return False
        return True

    def forget(self, cell: str) -> int:
        """Mark the runs of a cell, by its key, and their trials as deleted; return how many runs there were."""
        found = list(self._search(self.settings.experiment, f"tags.`{CELL_TAG}` = '{cell}'"))
        for run in found:
            run_id = run.info.run_id
            for trial in list(
                self._search(self.settings.trials_experiment, f"tags.`{RUN_TAG}` = '{run_id}'")
            ):
                self.client.delete_run(trial.info.run_id)
            self.client.delete_run(run_id)
        return len(found)

    def runs(self) -> list[dict[str, Any]]:
        """Return every finished run of the experiment as a leaderboard row, the newest first.

        Runs that are not textbench's are passed over; `n_foreign` counts them.
        """
        found = self._search(self.settings.experiment, "attributes.status = 'FINISHED'")
        # Curves and rankings, once kept there too, have a kind; a cell of a sweep has none.
        cells = [run for run in found if KIND_TAG not in run.data.tags]
        own = [run for run in cells if _is_ours(run)]
        self.n_foreign = len(cells) - len(own)
        return [_as_row(run) for run in own]

    def _search(self, experiment: str, wanted: str) -> Iterator[Any]:
        """Yield the runs of an experiment that a search of MLflow's wants."""
        client, page = self.client, None
        while True:
            found = client.search_runs(
                [self._experiments[experiment]], wanted, max_results=1000, page_token=page
            )
            yield from found
            page = found.token
            if not page:
                return


def _tables(database: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


def _is_unfinished(database: Path) -> bool:
    """Tell whether the database has still to be made; the last thing that MLflow makes of one is an experiment."""
    tables = _tables(database)
    if "experiments" not in tables:
        return not tables
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT count(*) FROM experiments").fetchone() == (0,)


def _set_default_experiment(database: Path, artifact_root: str) -> None:
    """Say where the files of MLflow's first experiment are, and that it is made now, as MLflow does."""
    from mlflow.utils.uri import append_to_uri_path

    now, root = int(time.time() * 1000), append_to_uri_path(artifact_root, "0")
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "UPDATE experiments SET artifact_location = ?, creation_time = ?, last_update_time = ?",
            (root, now, now),
        )


def _is_ours(run: Any) -> bool:
    """Tell whether a run is of a cell: it has a cell's tag, and its parameters can be read."""
    params = run.data.params
    is_whole = all(name in params for name in ("dataset", "method", "protocol"))
    numbers = (params.get("seed", ""), params.get("trials", ""))
    return CELL_TAG in run.data.tags and is_whole and all(re.fullmatch("[0-9]+", text) for text in numbers)


def _as_row(run: Any) -> dict[str, Any]:
    params, numbers, tags = dict(run.data.params), run.data.metrics, run.data.tags
    stages = {n.removeprefix("seconds_"): v for n, v in numbers.items() if n.startswith("seconds_")}
    fixed = {name: params.pop(name, "") for name in ("dataset", "method", "protocol", "trials", "probe")}
    apart = {"seconds", "peak_mb"}
    return fixed | {
        "seed": int(params.pop("seed")),
        "corpus": _corpus_of(tags),
        "sha256": {n.removeprefix(DATA_TAG): v for n, v in tags.items() if n.startswith(DATA_TAG)},
        "created": (run.info.end_time or run.info.start_time) / 1000,
        "params": params,
        "metrics": {n: v for n, v in numbers.items() if n not in apart and not n.startswith("seconds_")},
        "seconds": stages,
        "peak_mb": numbers.get("peak_mb"),
        "run_id": run.info.run_id,
        "cached": True,
        "error": None,
        **({"made_by": tags[MADE_BY_TAG]} if MADE_BY_TAG in tags else {}),
    }


def _corpus_of(tags: Tags) -> dict[str, Any] | None:
    """Return what tells a run's documents from others (`tasks.corpus.identity`); None for runs of earlier versions."""
    found = {n.removeprefix(CORPUS_TAG): v for n, v in tags.items() if n.startswith(CORPUS_TAG)}
    return {n: v if n == "documents_sha256" else int(v) for n, v in found.items()} or None


def data_tag(file: str) -> str:
    """Return the tag for the sha256 of a file of the data set, whatever the file is called.

    What MLflow refuses in a key is written as the bytes of its UTF-8, `:28` for an opening parenthesis. A long name is
    cut, and told apart by the beginning of its own sha256.
    """
    plain = re.sub(r"[^\w.\- ]", lambda found: f":{found[0].encode().hex(':')}", file)
    if len(plain) > MAX_KEY:
        plain = f"{plain[:MAX_KEY]}-{hashlib.sha256(file.encode()).hexdigest()[:8]}"
    return f"{DATA_TAG}{plain}"


def git_commit() -> str:
    """Return the project's commit, with "+changes" when files differ from it, or "unknown" outside a checkout."""
    try:
        return _git("describe", "--always", "--abbrev=40", f"--dirty={CHANGED}", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def committed(*records: Path) -> str:
    """Return the project's commit for a record of what its code computed; the records themselves may differ from it.

    Raises InputError outside a checkout, and where a file differs from the commit or is not in it.
    """
    try:
        changed = _git("status", "--porcelain", "--", ".", *(f":(exclude){path}" for path in records))
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError("a figure is recorded with its commit, and this is no checkout of git") from error
    if changed:
        lines = changed.splitlines()
        raise InputError(
            f"a figure is recorded with its commit; commit what differs first: {counted(len(lines), 'file')}, "
            f"such as {lines[0][3:]}"
        )
    return git_commit().removesuffix(CHANGED)


def _git(*words: str) -> str:
    command = ["git", "-C", str(PROJECT), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.rstrip()
