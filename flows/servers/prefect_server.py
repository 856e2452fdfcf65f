"""The Prefect server that textbench uses: the configured one, or its own, started once and kept.

Own server: one for all results folders of a user on this machine (`folder`), or one for each where
`$TEXTBENCH_PREFECT` is own. It has a database, settings and a log, a port on 127.0.0.1, and a supervisor
(`flows.servers.supervisor`) that stops it when nobody has used it for a while. The supervisor is a service
(`flows.servers.service`), `running.lock` is its lock; further files of its folder are:

- `users.lock`   held shared by every command at work; its time of change is when the server was last used;
- `folders/`     a file for each results folder, which holds its path, and is locked and changed in the same way;
- `port`         where the page was when `textbench up` last showed it: the next server listens there again.

Importing this module is cheap: Prefect is imported by nothing here.
"""

import fcntl
import hashlib
import os
import socket
import sys
import time
import tomllib
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from textbench.flows.run.health import answers
from textbench.flows.servers import ports
from textbench.flows.servers.ports import HOST
from textbench.flows.servers.service import STOP_SECONDS, Launch, ServerError, Service
from textbench.tasks import InputError
from textbench.tasks.storage.files import whole
from textbench.tasks.storage.locks import START, is_free, locked

IDLE_VARIABLE = "TEXTBENCH_SERVER_IDLE_SECONDS"
IDLE_SECONDS = 1800.0
# The address that `environment` hands out: what equals it is ours, not something the user configured.
OWN_VARIABLE = "TEXTBENCH_SERVER_API_URL"
WHOSE_VARIABLE = "TEXTBENCH_PREFECT"
SHARED, OWN = "shared", "own"
SUPERVISOR = "textbench.flows.servers.supervisor"
CONFIGURED_SECONDS = 10.0  # how long a configured server, which ought to be up, may take to answer
# The command line prints its own progress; Prefect's page keeps the logs.
LOGGING = {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "textbench",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}


@dataclass(frozen=True)
class ServerInfo:
    """Where a Prefect server is, and whether the user configured it; if not, its supervisor's pid and its port."""

    home: Path
    api_url: str
    configured: bool
    pid: int | None = None
    port: int | None = None

    @property
    def ui_url(self) -> str:
        """The address of its page."""
        return self.api_url.removesuffix("/api")


def supervised(place: Path) -> Service:
    """Return the service that our server of this folder is: its state has `port`, `api_url`, `host`, `started`."""

    def is_ready(state: dict[str, Any]) -> bool:
        return "api_url" in state and healthy(state["api_url"])

    return Service("the Prefect server", place, "server", is_ready, "running.lock")


def folder(home: Path) -> Path:
    """Return where the server of a results folder keeps its database, log and locks.

    That is `textbench/prefect/<hostname>` among the user's states (`~/.local/state` on Linux), for home folders may be
    shared by machines, and `<home>/prefect` where `$TEXTBENCH_PREFECT` is own. Raises InputError for another value.
    """
    whose = os.environ.get(WHOSE_VARIABLE) or SHARED
    if whose == OWN:
        return own_folder(home)
    if whose != SHARED:
        raise InputError(
            f"{WHOSE_VARIABLE} must be {SHARED} (a server for all results folders) or {OWN}, got {whose!r}"
        )
    from platformdirs import user_state_path

    return user_state_path("textbench", appauthor=False) / "prefect" / socket.gethostname()


def own_folder(home: Path) -> Path:
    """Return `<home>/prefect`, where a results folder has a server of its own, as all once had."""
    return home / "prefect"


def configured_api_url() -> str | None:
    """Return the API address the user configured for Prefect, or None.

    It is read as Prefect reads it, without importing Prefect: `PREFECT_API_URL`, else the active profile
    (`PREFECT_PROFILE`, else `active`) of `PREFECT_PROFILES_PATH`, else of `profiles.toml` in `PREFECT_HOME`
    or `~/.prefect`. An address that `environment` handed out does not count.

    Raises InputError when the profiles are not TOML.
    """
    url = os.environ.get("PREFECT_API_URL")
    if url:
        return None if url == os.environ.get(OWN_VARIABLE) else url.rstrip("/")
    root = Path(os.environ.get("PREFECT_HOME") or "~/.prefect")
    path = Path(os.environ.get("PREFECT_PROFILES_PATH") or root / "profiles.toml").expanduser()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(
            f"Prefect's profiles in {path} cannot be read ({error}); a TOML file is accepted"
        ) from error
    name = os.environ.get("PREFECT_PROFILE") or data.get("active")
    url = data.get("profiles", {}).get(name, {}).get("PREFECT_API_URL")
    return url.rstrip("/") if url else None


def environment(home: Path, api_url: str) -> dict[str, str]:
    """Return the variables a client needs in its environment before it imports Prefect.

    Nothing is phoned home in any case. A configured server is left to the user's own settings; for ours the
    address and home are set, no server is started inside the process, and loopback bypasses a proxy.
    """
    quiet = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    if configured_api_url() == api_url:
        return quiet
    direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    for host in (HOST, urllib.parse.urlsplit(api_url).hostname or HOST):
        if host not in direct.split(","):
            direct = f"{direct},{host}".lstrip(",")
    own = {
        "PREFECT_HOME": str(folder(home)),
        "PREFECT_PROFILE": "ephemeral",  # built in: the user's profiles do not exist in this home
        "PREFECT_API_URL": api_url,
        OWN_VARIABLE: api_url,
        "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
        "NO_PROXY": direct,
        "no_proxy": direct,
    }
    return quiet | own


@contextmanager
def opened(home: Path) -> Iterator[ServerInfo]:
    """Begin to start a Prefect server, or find one, and set the environment for Prefect to be imported.

    The server may still be starting when this returns: `wait` before the first flow.
    """
    with nullcontext() if configured_api_url() else hold(home):
        info = start(home)
        os.environ.update(environment(home, info.api_url) | LOGGING)
        yield info


def start(home: Path, host: str = HOST, port: int | None = None) -> ServerInfo:
    """Find the server to use, or begin to start one, and return at once: `wait` waits until it answers.

    A new one listens on `host` and `port`; without one on the port of the last `textbench up`, or any that is free.
    Raises InputError when the settings are bad or the port is in use, and ServerError when a server is there but does
    not say where.
    """
    url = configured_api_url()
    if url is not None:
        return ServerInfo(home, url, configured=True)
    idle_seconds()  # a bad value is reported here, not by the supervisor into its log
    service = supervised(folder(home))
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        touch(home)
        state = service.start(lambda: _launch(home, host, port))
        if "api_url" in state:
            touch(home)  # since it started
            return ServerInfo(home, state["api_url"], False, state["pid"], state["port"])
        time.sleep(0.1)  # its state was deleted by somebody; the supervisor notices and stops
    raise ServerError(
        f"a Prefect server runs in {service.place} but its server.json is gone; stop it by hand"
    )


def wait(info: ServerInfo, timeout: float = 90.0) -> ServerInfo:
    """Wait until the server answers, at most `timeout` seconds, and return `info`.

    Raises ServerError, with the end of the log of ours, when it died or did not answer in time.
    """
    if not info.configured:
        with hold(info.home):
            supervised(folder(info.home)).wait(timeout)
        return info
    deadline = time.monotonic() + min(timeout, CONFIGURED_SECONDS)
    while not healthy(info.api_url):
        if time.monotonic() > deadline:
            raise ServerError(
                f"the configured Prefect server {info.api_url} does not answer; start it, or unset "
                "PREFECT_API_URL (environment or Prefect profile) and textbench starts one of its own"
            )
        time.sleep(0.05)
    return info


def healthy(api_url: str) -> bool:
    """Say whether a Prefect server answers at this address."""
    return answers(f"{api_url}/health")


def status(home: Path) -> dict[str, Any]:
    """Return `address`, `healthy`, `pid` and `configured` of the server a command would use now.

    `address` and `pid` are None when no server runs, `pid` also when it is a configured one.
    """
    url = configured_api_url()
    state = {"api_url": url} if url is not None else supervised(folder(home)).running_state()
    address = state.get("api_url")
    is_healthy = address is not None and healthy(address)
    return {"address": address, "healthy": is_healthy, "pid": state.get("pid"), "configured": url is not None}


def folders(home: Path) -> dict[Path, bool]:
    """Return the results folders that have used our server since it started, and whether each uses it now."""
    place = folder(home)
    if configured_api_url() is not None or not place.exists():
        return {}
    with locked(place / START):
        return {} if is_free(supervised(place).lock) else _folders(place)


def _folders(place: Path) -> dict[Path, bool]:
    """Return what `folders` does; call it under the start lock, as two who try a lock at once mislead each other."""
    found, started = {}, supervised(place).state().get("started", 0.0)
    for path in (place / "folders").glob("[!.]*"):  # whole files
        is_used = not is_free(path)
        if is_used or path.stat().st_mtime >= started:
            found[Path(path.read_text("utf-8"))] = is_used
    return dict(sorted(found.items()))


def stop(home: Path, everything: bool = False) -> bool:
    """Stop our server, and first one of this results folder's own.

    One that other results folders use now is stopped only with `everything`; a configured one is left alone. Returns
    whether one was stopped. Raises ServerError when it cannot be.
    """

    def is_used_elsewhere(place: Path) -> bool:
        return not everything and any(used for user, used in _folders(place).items() if user != home)

    places = dict.fromkeys((own_folder(home), folder(home)))
    stopped = [supervised(place).stop(partial(is_used_elsewhere, place)) for place in places]
    return any(stopped)


@contextmanager
def hold(home: Path) -> Iterator[None]:
    """Keep the server as long as this context, or the process, lives: from its idle shutdown and from other folders.

    Held before `start` it leaves no moment in which another results folder could stop the server.
    """
    touch(home)
    with (
        locked(folder(home) / "users.lock", fcntl.LOCK_SH),
        locked(_user(home), fcntl.LOCK_SH),
    ):
        touch(home)
        try:
            yield
        finally:
            touch(home)


def touch(home: Path) -> None:
    """Note that the server is used now, and by this results folder."""
    user = _user(home)
    if not user.exists():
        # Never another file in its place, whose lock nobody holds.
        with suppress(FileExistsError), whole(user, is_new=True) as part:
            part.write_text(str(home), "utf-8")
    user.touch()
    (folder(home) / "users.lock").touch()


def _user(home: Path) -> Path:
    return folder(home) / "folders" / hashlib.sha256(str(home).encode()).hexdigest()[:16]


def idle_seconds() -> float:
    """Return after how many unused seconds the server stops: `$TEXTBENCH_SERVER_IDLE_SECONDS`, else 1800.

    Raises InputError for anything but a number above 0.
    """
    text = os.environ.get(IDLE_VARIABLE) or str(IDLE_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise InputError(f"{IDLE_VARIABLE} must be a number of seconds above 0, received {text!r}")
    return seconds


def _launch(home: Path, host: str, port: int | None) -> Launch:
    place = folder(home)
    last = ports.remembered(place / "port") if port is None else None
    listener = ports.listen_or_refuse(host, last if last and ports.is_free(host, last) else port or 0)
    port = listener.getsockname()[1]
    api_url = f"http://{ports.reached_at(host)}:{port}/api"
    started = _user(home).stat().st_mtime  # by the clock of files, which lags behind the other
    return Launch(
        [sys.executable, "-m", SUPERVISOR, str(place), str(listener.fileno())],
        {"port": port, "api_url": api_url, "host": host, "started": started},
        _server_environment(home, api_url, host, port),
        place,  # Prefect reads settings from its working folder: not from the user's
        listener,
    )


def _server_environment(home: Path, api_url: str, host: str, port: int) -> dict[str, str]:
    """Return the variables of the server itself: the client's, its address, and nothing it does not need."""
    return environment(home, api_url) | {
        "PREFECT_SERVER_API_HOST": host,
        "PREFECT_SERVER_API_PORT": str(port),
        # Or the page looks for port 4200. From other machines it is reached under a name we do not know.
        "PREFECT_SERVER_UI_API_URL": api_url if ports.is_loopback(host) else "/api",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        # Block types are registered when first used; registering them all costs 1-2 s of a first start.
        "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
    }
