"""What the process of a run holds on to while thousands of stages pass through it."""

import queue
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from prefect.events.clients import NullEventsClient
from prefect.events.worker import EventsWorker
from prefect.settings import get_current_settings
from prefect.task_runners import ThreadPoolTaskRunner

from textbench.flows.run import prefect_tasks
from textbench.flows.run.prefect_tasks import PrefectThreads, task_runner, without_heartbeat

READ = """
import sys
from pathlib import Path
from textbench.flows.results.predictions import document_intervals
from textbench.tasks import score
from textbench.tasks.storage.store import Artifact
result = Artifact(Path(sys.argv[1]), {})
print(document_intervals(result.table("predictions"), ["accuracy", "map"])["accuracy"])
assert "pandas" not in sys.modules
print(score.metrics(result)["map"])
assert "numba" not in sys.modules
"""


def test_threads_forget_the_tasks_that_ended() -> None:
    runner = task_runner("threads")
    assert isinstance(runner, PrefectThreads) and isinstance(runner.duplicate(), PrefectThreads)
    assert runner.duplicate() == runner
    assert type(vars(ThreadPoolTaskRunner(1))["_cancel_events"]) is dict, "Prefect keeps them elsewhere now"
    running = threading.Event()
    runner._cancel_events |= {uuid.uuid4(): running, uuid.uuid4(): threading.Event()}
    assert list(runner._cancel_events.values()) == [running]


def test_without_heartbeat_all_other_settings_stay_as_they_are() -> None:
    before = get_current_settings()
    assert before.flows.heartbeat_frequency is not None, "Prefect sends none by itself now"
    with without_heartbeat():
        inside = get_current_settings().model_dump()
    assert inside["flows"].pop("heartbeat_frequency") is None
    told = before.model_dump()
    told["flows"].pop("heartbeat_frequency")
    assert inside == told
    assert get_current_settings() is before


def test_reading_predictions_loads_no_pandas_and_scoring_them_no_compiler(tmp_path: Path) -> None:
    values = np.array([1.0, 0.5, 0.25, 0.0])
    columns = {"target": [0, 1, 0, 1], "predicted": [0, 1, 1, 1], "average_precision": values}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "predictions.parquet")
    np.save(tmp_path / "scores.npy", np.array([[1.0, 0.0], [0.0, 1.0], [0.2, 0.8], [0.3, 0.7]]))
    names = ("average_precision", *(f"precision_at_{k}" for k in (1, 3, 5, 10)), "ndcg_at_5")
    arrays = dict.fromkeys(names, values) | {"n_without_relevant": np.asarray(0)}
    np.savez(tmp_path / "neighbours.npz", **arrays)
    done = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    half, mean = map(float, done.stdout.split())
    assert 0 < half < 1 and mean == values.mean()


def test_stages_wait_while_many_events_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until few are left; of a server that takes none, no longer than there is patience."""
    waiting: queue.Queue[int] = queue.Queue()
    for event in range(prefect_tasks.MOST_EVENTS + 50):
        waiting.put(event)
    worker = SimpleNamespace(instance=lambda: SimpleNamespace(_queue=waiting))
    monkeypatch.setattr(prefect_tasks, "EventsWorker", worker)
    monkeypatch.setattr(prefect_tasks, "PATIENCE", 0.05)
    prefect_tasks.wait_for_events()
    assert waiting.qsize() == prefect_tasks.MOST_EVENTS + 50
    monkeypatch.setattr(prefect_tasks, "PATIENCE", 60.0)
    threading.Timer(0.05, lambda: [waiting.get() for _ in range(51)]).start()
    prefect_tasks.wait_for_events()
    assert waiting.qsize() == prefect_tasks.MOST_EVENTS - 1
    assert isinstance(EventsWorker(NullEventsClient, ())._queue, queue.Queue), (
        "Prefect keeps them elsewhere now"
    )
