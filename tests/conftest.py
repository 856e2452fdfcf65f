"""What every test may rely on: nothing of the user's is read or written, and a skip can be made to count."""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from textbench.flows.servers import prefect_server

# The checkout is a package itself, so a test's module is called CHECKOUT.tests.test_...: a child that is spawned, and
# looks up a function of one, finds it from here.
sys.path.append(str(Path(__file__).resolve().parents[2]))
HOME = Path(tempfile.mkdtemp(prefix="textbench-tests-"))
# One for all processes of pytest, which inherit it of the one that starts them: what takes seconds is made once.
CACHE = os.environ["XDG_CACHE_HOME"] if "PYTEST_XDIST_WORKER" in os.environ else str(HOME / "cache")
# Prefect and MLflow read some of these when they are imported, so they are set before any test module is.
QUIET = {
    "DO_NOT_TRACK": "1",
    # Each of several processes has a core at most: second threads of small products would only wait for each other.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "GIT_PYTHON_REFRESH": "quiet",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_HOME": str(HOME / "prefect"),
    "TEXTBENCH_HOME": str(HOME / "textbench"),
    "TEXTBENCH_OFFLINE": "1",
    "XDG_CACHE_HOME": CACHE,
    "XDG_STATE_HOME": str(HOME / "state"),  # with one Prefect server for all tests that need no other
}
NOT_THE_USERS = (
    *("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "PREFECT_API_URL", "PREFECT_PROFILE"),
    *("TEXTBENCH_STORE", "TEXTBENCH_LOCKS", "TEXTBENCH_STUDIES", "TEXTBENCH_PREFECT"),
)
os.environ.update(QUIET)
for variable in NOT_THE_USERS:
    os.environ.pop(variable, None)

# Hypothesis must not judge how long an example takes: no test does.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_sessionstart() -> None:
    gc.disable()  # importing makes no garbage


def pytest_collection_finish() -> None:
    """Leave what all test modules have imported out of later searches for garbage, a tenth of the tests' time."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give every test a results folder of its own, and take back what it does to the environment."""
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    for name in NOT_THE_USERS:
        monkeypatch.setenv(name, "")  # so that what a test, or a library in it, sets goes with it
        monkeypatch.delenv(name)
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="session", autouse=True)
def shared_server() -> Iterator[None]:
    """Keep the Prefect server that a test starts for those after it, and stop it at the end."""
    with prefect_server.hold(HOME):
        yield
    prefect_server.stop(HOME, everything=True)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of data files that are not in any package; a test that needs it is skipped without."""
    folder = os.environ.get("TEXTBENCH_DATA_DIR")
    if not folder:
        pytest.skip("TEXTBENCH_DATA_DIR is not set to the folder of data files")
    if not Path(folder).is_dir():
        pytest.fail(f"TEXTBENCH_DATA_DIR must be a folder, got {folder!r}")
    return Path(folder)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    return _count_skip(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    return _count_skip(report)


def _count_skip(report: Any) -> Any:
    """With `TEXTBENCH_NO_SKIPS` set, turn a skip into a failure that gives its reason."""
    if os.environ.get("TEXTBENCH_NO_SKIPS") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{reason}: not allowed, because TEXTBENCH_NO_SKIPS is set"
    return report
