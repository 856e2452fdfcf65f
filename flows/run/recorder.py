"""Recording: what becomes of a cell that ended, whichever flow it is of: its row, its record, its MLflow run."""

import contextvars
import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from textbench.flows.plan.base_cell import BaseCell
from textbench.flows.results.index import Index
from textbench.flows.results.summary import asked_at, group_of
from textbench.flows.run import outbox
from textbench.flows.run.scheduler import AnyCell
from textbench.tasks import score
from textbench.tasks.corpus import identity
from textbench.tasks.storage import tracebacks
from textbench.tasks.storage.isolate import warm
from textbench.tasks.storage.locks import locked
from textbench.tasks.storage.store import Artifact, Store
from textbench.tasks.tracking.tracker import (
    ATTEMPT_TAG,
    CELL_TAG,
    CORPUS_TAG,
    MADE_BY_TAG,
    Tracker,
    data_tag,
    git_commit,
    read_settings,
)
from textbench.tasks.words import counted

log = logging.getLogger("textbench.run")
Answer = TypeVar("Answer")
PAUSE_SECONDS = 30.0  # for a server that did not answer, before it is asked again


class _Corpus(NamedTuple):
    """What a corpus says of itself: the sha256 of its files, and what tells it from others, if it has labels."""

    files: Mapping[str, str]
    identity: dict[str, Any] | None


class Recorder(ABC, Generic[AnyCell]):
    """Writes finished cells to MLflow and to an index, once each, however often a sweep is started.

    It does so in a thread of its own: a tracking server that is slow keeps no computation waiting. A run that cannot
    be written is that cell's error, or where mlflow.yaml says so it waits in the outbox (`flows.run.outbox`). Where
    nothing is tracked, records of cells that are tracked stay as they are. A flow's own recorder says what its rows and
    runs are.
    """

    has_runs = True  # whether each cell has a run of its own

    def __init__(
        self,
        home: Path,
        store: Store,
        index: Index,
        sweep: str,
        attempt: str = "",
        tracker: Tracker | None = None,
    ) -> None:
        self.home, self.store, self.index = home, store, index
        self.attempt = attempt
        self._sweeps = [sweep] if sweep else []
        self._rows: dict[str, dict[str, Any]] = {}
        self._corpora: dict[str, _Corpus] = {}
        self._thread = ThreadPoolExecutor(1)
        self._ended: deque[Future[None]] = deque()
        self._failure: tuple[float, Exception] | None = None
        self.tracker = tracker or Tracker(read_settings(home))
        self._begun = time.time()
        self._had_runs = self.tracker.exists() or not self.tracker.settings.is_on
        self._preparation: Future[None] | None = None
        self._stored: set[str] = set()
        self._cells: Sequence[AnyCell] = ()
        self._commit = ""

    @abstractmethod
    def row(self, cell: AnyCell, error: str | None = None) -> dict[str, Any]:
        """Return a cell as a row with no result yet, or with the error that took its place."""

    @abstractmethod
    def result_row(self, cell: AnyCell) -> dict[str, Any]:
        """Return a finished cell as a row."""

    def kept(self, cell: AnyCell) -> dict[str, Any]:
        """Return what the index keeps of a cell beside its row: what its mean over seeds may hold."""
        return {"made_by": cell.made_by}

    def files(self, cell: AnyCell) -> dict[str, Path]:
        """Return what is attached to a finished cell's run, by name."""
        return {}

    def tags(self, cell: AnyCell) -> dict[str, str]:
        """Return the tags of a cell's run."""
        self._commit = self._commit or git_commit()
        tags = {
            CELL_TAG: cell.key,
            ATTEMPT_TAG: self.attempt or "first",
            MADE_BY_TAG: cell.made_by,
            "git.commit": self._commit,
            **outbox.sweep_tags(self._sweeps),
        }
        corpus = self._corpus(cell)
        tags |= {data_tag(name): digest for name, digest in corpus.files.items()}
        return tags | {f"{CORPUS_TAG}{name}": str(value) for name, value in (corpus.identity or {}).items()}

    def _corpus(self, cell: AnyCell) -> "_Corpus":
        """Return what is known of a cell's documents, read once a sweep; nothing where they are no longer stored."""
        reference = cell.references["ingest"]
        if reference.key not in self._corpora:
            if not self.store.has(reference) and self.store.remote is None:
                return _Corpus({}, None)
            stored = self.store.open(reference)
            self._corpora[reference.key] = _Corpus(stored.json("corpus")["sha256"], identity(stored))
        return self._corpora[reference.key]

    def entry(self, cell: AnyCell, result: dict[str, Any]) -> outbox.Entry | None:
        """Return what MLflow is to hold of a cell that ended, None where it has no run of its own."""
        if not self._is_tracked:
            return None
        is_whole = result["error"] is None and self.tracker.settings.log_predictions
        files = self.files(cell) if is_whole else self._traceback(cell) if result["error"] else {}
        return outbox.cell_entry(self.index.folder, result, self.tags(cell), files)

    @property
    def _is_tracked(self) -> bool:
        return self.has_runs and self.tracker.settings.is_on

    def _traceback(self, cell: AnyCell) -> dict[str, Path]:
        """Return the file with the traceback of a failed cell, if there is one."""
        paths = [tracebacks.path_of(self.home, reference.key) for reference in cell.references.values()]
        found = [path for path in paths if path.exists()]
        return {"traceback": found[0]} if found else {}

    def begin(self, cells: Sequence[AnyCell]) -> None:
        """Note which cells are stored; if one is to be recorded, see that MLflow answers before computing."""
        self._cells = cells
        self._stored = {cell.key for cell in cells if self.store.has(cell.references["evaluate"])}
        is_new = any(cell.key not in self._stored or self._recorded(cell) is None for cell in cells)
        if is_new:
            self.tracker.require()
        waits = bool(self._waiting())
        if (is_new and self.tracker.settings.is_on) or waits:
            # MLflow takes seconds to import, which the first stages need not wait for, nor cells that are recorded;
            # but what waits is sent before a cell is looked at, so that its row says which run is its.
            thread = self._thread if waits else ThreadPoolExecutor(1)
            self._preparation = thread.submit(contextvars.copy_context().run, self._prepare)
        if len(self._stored) < len(cells):
            warm()

    @property
    def mlflow(self) -> Tracker:
        """The tracker, once it is prepared."""
        if self._preparation:
            self._preparation.result()
        return self.tracker

    def finish(self, cell: AnyCell, error: str | None) -> None:
        """Have a cell that ended recorded; what goes wrong in that becomes its error, and nobody else's."""
        while self._ended and self._ended[0].done():
            self._ended.popleft().result()
        # Prefect knows by the context which flow run a line of the log belongs to.
        self._ended.append(self._thread.submit(contextvars.copy_context().run, self._finish, cell, error))

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The row of every cell that ended, by its key, once all of them are recorded."""
        self.wait()
        return self._rows

    def wait(self) -> None:
        """Wait until all cells that ended are recorded."""
        while self._ended:
            self._ended.popleft().result()

    def write(self, entry: outbox.Entry) -> str | None:
        """Write a run to MLflow and return its id; None when MLflow is down and the run waits in the spool."""
        try:
            run_id = self._asked(lambda: outbox.write(self.mlflow, entry))
        except Exception as problem:
            if not self._may_wait(problem):
                raise
            outbox.keep(self.home, entry, self.tracker.settings.tracking_uri)
            return None
        outbox.forget(self.home, outbox.name_of(entry))
        return run_id

    def _may_wait(self, problem: Exception) -> bool:
        return outbox.is_down(problem) and self.tracker.settings.when_down == "spool"

    def _is_paused(self) -> bool:
        return self._failure is not None and time.monotonic() < self._failure[0] + PAUSE_SECONDS

    def _asked(self, request: Callable[[], Answer]) -> Answer:
        """Return the answer to a request; it fails at once when one has just failed because MLflow is down."""
        # Each can take a minute to fail, and there may be thousands.
        if self._failure and self._is_paused():
            raise self._failure[1]
        try:
            return request()
        except Exception as problem:
            if outbox.is_down(problem):
                self._failure, self._preparation = (time.monotonic(), problem), None
            raise

    def _waiting(self) -> list[str]:
        return outbox.waiting(self.home, self.tracker.settings.tracking_uri)

    def _prepare(self) -> None:
        """Prepare MLflow, and send it what waits in the spool, before any of that is written anew."""
        self.tracker.prepare()
        if self._waiting():
            self._send()

    def _send(self) -> None:
        n_sent, refused = outbox.send(self.home, self.tracker)
        if n_sent:
            log.info("sent %s that had to wait to MLflow", counted(n_sent, "run"))
        for name, reason in refused.items():
            log.warning("MLflow refused the run %s of the spool: %s", name, reason)

    def _settle(self) -> None:
        """Send what had to wait, if MLflow is there again, and say what still waits."""
        if self._waiting() and not self._is_paused():
            try:
                if self._preparation:
                    self._preparation.result()
                self._send()
            except Exception as problem:
                self._failure = time.monotonic(), problem
        if waiting := self._waiting():
            reason = " ".join(str(self._failure[1]).split()) if self._failure else "it refuses them"
            log.warning(
                "%s in %s for MLflow (%s); the next run sends what waits, or: textbench send",
                counted(len(waiting), "run waits", "runs wait"), outbox.folder(self.home), reason,
            )  # fmt: skip

    def _finish(self, cell: AnyCell, error: str | None) -> None:
        try:
            result = self._finished(cell, error)
        except Exception as problem:  # whatever it is, the other cells go on
            reason = f"the result could not be recorded: {type(problem).__name__}: {problem}"
            if error is None and outbox.is_down(problem):
                reason += "; it is kept, and the same command records it"
            result = self.row(cell, " ".join([*([f"{error};"] if error else []), *reason.split()]))
            known = self._corpora.get(cell.references["ingest"].key)
            result |= {"corpus": known.identity if known else None}
        self._rows[cell.key] = result | {"key": cell.key}
        announce(cell, self._rows[cell.key])

    def end(self) -> list[dict[str, Any]]:
        """Return the row of every cell, in the order of the plan, once all is recorded."""
        rows = [self.rows[cell.key] for cell in self._cells]
        self._settle()
        return rows

    def _finished(self, cell: AnyCell, error: str | None) -> dict[str, Any]:
        cached = cell.key in self._stored
        with locked(self.index.folder / f".{cell.key}.lock"):
            record = self._recorded(cell) if error is None else None
            if record is None or not cached or not self._agrees(cell, record):
                record = self._record(cell, error, record)
            elif not self._is_tagged(cell, record):  # somebody deleted the run
                record = self._record(cell, None, None)
            else:
                record = self._asked_again(cell, record)
        empty = self.row(cell)
        return empty | {name: record[name] for name in empty if name in record} | {"cached": cached}

    def _asked_again(self, cell: AnyCell, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record of a cell that stands as it is, with what an earlier version did not keep.

        It tells where the user's documents are now. Where other code has made its like since, it was brought back, and
        counts as the newest again (`made_alike`).
        """
        kept = self.kept(cell)
        found = {name: value for name, value in kept.items() if name not in record}
        if kept.get("request", {}).get("own") != record.get("request", {}).get("own"):
            found["request"] = kept["request"]  # the documents were moved
        if self._newest.get(cell.key, kept["made_by"]) != kept["made_by"]:
            found["asked"] = time.time()
        if found:
            self.index.amend(cell.key, found)
        return record | found

    @cached_property
    def _newest(self) -> dict[str, str | None]:
        """What made the newest of its like when this sweep began, by the key of each run that is recorded."""
        likes: dict[Any, list[dict[str, Any]]] = {}
        for row in self.index.rows():
            if row["created"] <= self._begun:
                likes.setdefault(self.likes(row), []).append(row)
        return {row["key"]: max(own, key=asked_at).get("made_by") for own in likes.values() for row in own}

    def likes(self, row: Mapping[str, Any]) -> Any:
        """Return what a recorded row shares with those that stand in one mean over seeds, or in one curve."""
        return (*group_of(row), bool(row["request"]["labels"]))

    def _recorded(self, cell: AnyCell) -> dict[str, Any] | None:
        record = self.index.get(cell)
        settings = self.tracker.settings
        if record is None or (settings.is_on and record["tracking_uri"] != settings.tracking_uri):
            return None
        if self.attempt not in ("", record["attempt"]):
            return None
        if self._is_tracked and record["run_id"] is None:  # what it lacks waits, or is to be written
            return record if outbox.has(self.home, f"{cell.key}-{record['attempt'] or 'first'}") else None
        # If the database was gone when this run began, so are the runs that were recorded before.
        return record if self._had_runs or record["created"] > self._begun else None

    def _agrees(self, cell: AnyCell, record: dict[str, Any]) -> bool:
        # Opening the result verifies it: one that was damaged since is computed again here.
        return self.is_scored(record, self.store.open(cell.references["evaluate"]))

    def is_scored(self, record: Mapping[str, Any], result: Artifact) -> bool:
        """Tell whether a record has the metrics that its stored result has today."""
        return record.get("scored_by") == score.digest()

    def _is_tagged(self, cell: AnyCell, record: dict[str, Any]) -> bool:
        """See that the recorded run carries this sweep's tags; False when somebody deleted the run."""
        if set(self._sweeps) <= set(record["sweeps"]):
            return True
        run_id, tags = record["run_id"], outbox.sweep_tags(self._sweeps)
        if run_id is not None and not self.tracker.settings.is_on:
            return True  # nor does its record say that it is of this sweep
        try:  # what waits is sent with the tags of its row
            is_there = run_id is None or self._asked(lambda: self.mlflow.tag(run_id, tags))
        except Exception as problem:
            if not self._may_wait(problem):
                raise
            is_there = False  # then the whole run waits, and is adopted
        if is_there:
            record["sweeps"] = [*record["sweeps"], *self._sweeps]
            self.index.put(cell, record)
        return is_there

    def _record(self, cell: AnyCell, error: str | None, known: dict[str, Any] | None) -> dict[str, Any]:
        result = self.row(cell, error) if error else self.result_row(cell)
        result |= {"corpus": self._corpus(cell).identity}
        record = result | self.kept(cell) | {"attempt": self.attempt, "sweeps": list(self._sweeps)}
        record |= {"tracking_uri": self.tracker.settings.tracking_uri, "created": time.time()}
        if known and known["metrics"] == result["metrics"]:
            adopted = record | {name: known[name] for name in ("run_id", "sweeps", "tracking_uri")}
            if self._is_tagged(cell, adopted):
                self.index.put(cell, adopted)
                return adopted
        entry = self.entry(cell, result)
        record["run_id"] = self.write(entry) if entry else None
        if error is None:
            self.index.put(cell, record)
        return record


def announce(cell: BaseCell, result: dict[str, Any]) -> None:
    """Log that a cell ended, with its row."""
    extra = {"cell": cell.key, "row": result}
    if result["error"] is None:
        log.info("%s: %s", cell.label, "cached" if result["cached"] else "done", extra=extra)
    else:
        log.error("%s: %s", cell.label, result["error"], extra=extra)
