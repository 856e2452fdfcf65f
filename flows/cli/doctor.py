"""`textbench doctor`: is everything here that a run needs?"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from textbench.flows.cli.output import print_json
from textbench.tasks import InputError

LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "optuna", "prefect", "fastapi", "mlflow")
FREE_MB, MEMORY_MB = 500, 1500
PYTHON = (3, 11)


@dataclass(frozen=True)
class Check:
    """What one check found. A failed check that is not `required` is a warning."""

    name: str
    ok: bool
    found: str
    remedy: str = ""
    required: bool = True

    @property
    def word(self) -> str:
        """The verdict, readable without colour."""
        return "✓ ok" if self.ok else "✗ FAIL" if self.required else "✗ warn"


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines, one object a check.")] = False,
) -> None:
    """Check Python, libraries, results folder, data sets, MLflow, Prefect and the machine.

    Exit code 0 if all that is required is there, else 1; each failing line says what to do.

    Example: textbench doctor
    """
    passed = True
    for check in checks():
        passed = passed and (check.ok or not check.required)
        if json:
            print_json(asdict(check))
        else:
            _print(check)
    if not passed:
        raise typer.Exit(1)


def _print(check: Check) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=7)
    grid.add_column(width=14)
    grid.add_column(overflow="fold")
    style = "green" if check.ok else "red" if check.required else "yellow"
    text = check.found if check.ok else f"{check.found}. {check.remedy}"
    grid.add_row(Text(check.word, style=style), Text(check.name), Text(text))
    Console().print(grid)


def checks() -> Iterator[Check]:
    """Yield every check; those that need the results folder are left out if there is none."""
    yield _python()
    yield from _libraries()
    yield _machine()
    yield from _data_sets()
    try:
        from textbench.flows.run.workspace import home_folder

        home = home_folder()
    except InputError as error:
        yield Check("results folder", False, *_split(error))
        return
    yield _disk(home)
    yield _processes(home)
    yield _checked("MLflow", lambda: _mlflow(home))
    yield _checked("Prefect", lambda: _prefect(home))
    yield _checked("shared store", _shared_store)


def _split(error: Exception) -> tuple[str, str]:
    """Split an error's line into what was found and what to do."""
    found, _, remedy = str(error).partition("; ")
    return found, remedy[:1].upper() + remedy[1:]


def _checked(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except InputError as error:
        return Check(name, False, *_split(error))


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    wanted = ".".join(map(str, PYTHON))
    return Check("Python", sys.version_info >= PYTHON, version, f"Install Python {wanted} or newer")


def _libraries() -> Iterator[Check]:
    """Compare the main libraries with requirements.lock: a missing one fails, another version warns."""
    import re
    import shlex
    from importlib import metadata

    from textbench.tasks.storage.definitions import PROJECT

    lock = PROJECT / "requirements.lock"
    text = lock.read_text("utf-8") if lock.is_file() else ""
    locked = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", text, flags=re.MULTILINE))
    # Not `uv pip sync`, which removes what the lock does not name: this package.
    remedy = f"Run: {shlex.join([sys.executable, '-m', 'pip', 'install', '--no-deps', '-r', str(lock)])}"
    found, differing = [], []
    for name in LIBRARIES:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Check("libraries", False, f"{name} is not installed", remedy)
            continue
        found.append(f"{name} {version}")
        if locked.get(name, version) != version:
            differing.append(f"{name} {version}, locked {locked[name]}")
    if differing:
        yield Check("libraries", False, "; ".join(differing), f"Figures may differ. {remedy}", required=False)
    elif found:
        yield Check(
            "libraries", True, ", ".join(found) + ("" if locked else " (no requirements.lock to compare)")
        )


def _machine() -> Check:
    import psutil

    from textbench.evaluation.cores import n_cores

    memory = psutil.virtual_memory()
    found = (
        f"{n_cores()} cores, {memory.available / 1e6:,.0f} of {memory.total / 1e6:,.0f} MB memory available"
    )
    remedy = f"Runs want {MEMORY_MB:,} MB: close other programs"
    return Check("machine", memory.available / 1e6 >= MEMORY_MB, found, remedy, required=False)


def _data_sets() -> Iterator[Check]:
    """Load the data sets that come with a package; of the archives only look whether they are there."""
    from textbench.tasks import catalogue
    from textbench.tasks.sources import archives

    there: list[str] = []
    to_fetch: list[str] = []
    for name, entry in catalogue.datasets().items():
        module = entry.load()
        if any(file.endswith(archives.SUFFIX) for file in module.SHA256):
            (there if archives.are_here(module.SHA256) else to_fetch).append(name)
            continue
        try:
            module.load()
        except (InputError, OSError) as error:
            found, remedy = _split(error)
            yield Check("data sets", False, found, remedy)
        else:
            there.append(name)
    if there:
        yield Check("data sets", True, ", ".join(there))
    if to_fetch:
        remedy = "They are downloaded when first used, or by: textbench fetch"
        yield Check("data sets", False, f"not here yet: {', '.join(to_fetch)}", remedy, required=False)


def _disk(home: Path) -> Check:
    import shutil

    free = shutil.disk_usage(home).free / 1e6
    remedy = "Free space, run `textbench store prune`, or set TEXTBENCH_HOME to another disk"
    return Check("results folder", free >= FREE_MB, f"{home} can be written to, {free:,.0f} MB free", remedy)


def _processes(home: Path) -> Check:
    """Locks keep two runs from computing one thing twice; a fork server isolates computations."""
    import multiprocessing

    from textbench.tasks.storage.locks import locked

    lock = home / ".doctor.lock"
    try:
        with locked(lock):
            lock.unlink()
    except OSError as error:
        remedy = "Set TEXTBENCH_HOME to a folder on a local disk"
        return Check("processes", False, f"files in {home} cannot be locked ({error.strerror})", remedy)
    can_fork = "forkserver" in multiprocessing.get_all_start_methods()
    remedy = "Use Linux, macOS, or Windows with WSL"
    return Check(
        "processes", can_fork, f"file locks work, fork server {'works' if can_fork else 'missing'}", remedy
    )


def _shared_store() -> Check:
    """Try the root and the lock server that several machines have in common, where there are any."""
    import os

    from textbench.tasks.storage.remote import LOCKS, Remote, sole
    from textbench.tasks.storage.store import STORE

    url = os.environ.get(STORE)
    if not url:
        return Check("shared store", True, f"none; {STORE} names one that several machines share")
    Remote(url).check()
    if not os.environ.get(LOCKS):
        return Check("shared store", True, f"{url} can be written to; without {LOCKS} the first writer wins")
    try:
        with sole("doctor"):
            pass
    except OSError as error:
        return Check("shared store", False, str(error), f"Start the server, or unset {LOCKS}")
    return Check("shared store", True, f"{url} can be written to, {LOCKS} answers")


def _mlflow(home: Path) -> Check:
    import os

    from textbench.tasks.tracking.tracker import Tracker, read_settings

    settings = read_settings(home)
    Tracker(settings).check()
    uri = settings.tracking_uri
    if not settings.is_on:
        return Check("MLflow", True, f"not used: tracking_uri is {uri}")
    if uri.startswith("http"):
        return Check("MLflow", True, f"the server at {uri} answers")
    path = Path(uri.removeprefix("sqlite:///"))
    if not uri.startswith("sqlite:///"):
        return Check("MLflow", True, f"{uri.partition(':')[0]} database (not tried)")
    target = next(p for p in (path, *path.parents) if p.exists())
    state = "there" if path.exists() else "made by the first run"
    is_writable = os.access(target, os.W_OK)
    return Check(
        "MLflow", is_writable, f"{uri}, {state}", f"{target} cannot be written to: change its permissions"
    )


def _prefect(home: Path) -> Check:
    from textbench.flows.servers import prefect_server

    state = prefect_server.status(home)
    address = state["address"]
    if address is None:
        return Check("Prefect", True, "no server runs; a run starts one")
    if state["healthy"]:
        return Check("Prefect", True, f"the server at {address} answers")
    if state["configured"]:
        remedy = (
            "Start it, or unset PREFECT_API_URL (environment or Prefect profile) and a run starts its own"
        )
        return Check("Prefect", False, f"the configured server {address} does not answer", remedy)
    return Check(
        "Prefect", False, f"the server at {address} does not answer", "Run: textbench down", required=False
    )
