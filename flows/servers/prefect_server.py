"""The Prefect server that textbench uses: the configured one, or its own, started once and kept.

Own server: one for all results folders of a user on this machine (`folder`), or one for each where
`$TEXTBENCH_PREFECT` is own. It has a database, settings and a log, a port on 127.0.0.1, and a supervisor
(`flows.servers.supervisor`) that stops it when nobody has used it for a while. These files make this safe:

- `start.lock`   held while a server is being started or stopped, so that two commands at once start one;
- `running.lock` held by the supervisor all its life. A lock dies with its holder, so whatever `server.json`
  says, a server is there exactly when this lock is taken: no stale state or reused process id misleads;
- `users.lock`   held shared by every command at work; its time of change is when the server was last used;
- `folders/`     a file for each results folder, which holds its path, and is locked and changed in the same way;
- `port`         where the page was when `textbench up` last showed it: the next server listens there again.

Importing this module is cheap: Prefect is imported by nothing here.
"""

import fcntl
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textbench.flows.servers import ports
from textbench.flows.servers.ports import HOST
from textbench.tasks import InputError
from textbench.tasks.storage.files import whole, write_json
from textbench.tasks.storage.locks import is_free, locked, take

IDLE_VARIABLE = "TEXTBENCH_SERVER_IDLE_SECONDS"
IDLE_SECONDS = 1800.0
# The address that `environment` hands out: what equals it is ours, not something the user configured.
OWN_VARIABLE = "TEXTBENCH_SERVER_API_URL"
WHOSE_VARIABLE = "TEXTBENCH_PREFECT"
SHARED, OWN = "shared", "own"
STOP_SECONDS = 10.0  # how long a server may take to stop before it is killed
CONFIGURED_SECONDS = 10.0  # how long a configured server, which ought to be up, may take to answer
LOG_LINES = 8  # shown when a server dies at start


class ServerError(RuntimeError):
    """The Prefect server cannot be reached or did not start; the message says why in a few lines."""


@dataclass(frozen=True)
class ServerInfo:
    """Where a Prefect server is, and whose it is.

    `pid` (the supervisor's) and `port` are None for a configured server; `started_here`: by this very call.
    """

    home: Path
    api_url: str
    ui_url: str
    pid: int | None
    port: int | None
    started_here: bool
    configured: bool


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


def start(home: Path, host: str = HOST, port: int | None = None) -> ServerInfo:
    """Find the server to use, or begin to start one, and return at once: `wait` waits until it answers.

    A new one listens on `host` and `port`; without one on the port of the last `textbench up`, or any that is free.
    Raises InputError when the settings are bad or the port is in use, and ServerError when a server is there but does
    not say where.
    """
    url = configured_api_url()
    if url is not None:
        return ServerInfo(home, url, url.removesuffix("/api"), None, None, False, True)
    idle_seconds()  # a bad value is reported here, not by the supervisor into its log
    place = folder(home)
    place.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        with locked(place / "start.lock"):
            lock = take(place / "running.lock")
            if lock is not None:
                try:
                    state = _spawn(home, lock, host, port)
                finally:
                    os.close(lock)  # the supervisor has its own copy
                return _info(home, state, started_here=True)
            touch(home)
            state = read_state(place)
            if state:
                return _info(home, state, started_here=False)
        time.sleep(0.1)  # its state was deleted by somebody; the supervisor notices and stops
    raise ServerError(f"a Prefect server runs in {place} but its server.json is gone; stop it by hand")


def wait(info: ServerInfo, timeout: float = 90.0) -> ServerInfo:
    """Wait until the server answers, at most `timeout` seconds, and return `info`.

    Raises ServerError with the end of the server's log when it died or did not answer in time.
    """
    with nullcontext() if info.configured else hold(info.home):
        _poll(info, min(timeout, CONFIGURED_SECONDS) if info.configured else timeout)
    return info


def _poll(info: ServerInfo, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while not healthy(info.api_url):
        if not info.configured and not _running(folder(info.home)):
            raise ServerError(
                f"the Prefect server ended while it was starting:\n{_log_tail(folder(info.home))}"
            )
        if time.monotonic() > deadline and info.configured:
            raise ServerError(
                f"the configured Prefect server {info.api_url} does not answer; start it, or unset "
                "PREFECT_API_URL (environment or Prefect profile) and textbench starts one of its own"
            )
        if time.monotonic() > deadline:
            raise ServerError(
                f"no answer from {info.api_url} in {timeout:g} s:\n{_log_tail(folder(info.home))}"
            )
        time.sleep(0.05)


def healthy(api_url: str, timeout: float = 2.0) -> bool:
    """Say whether a Prefect server answers at this address within `timeout` seconds."""
    loopback = f"//{HOST}:" in api_url or "//localhost:" in api_url
    handlers = [urllib.request.ProxyHandler({})] if loopback else []
    try:
        with urllib.request.build_opener(*handlers).open(f"{api_url}/health", timeout=timeout) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def status(home: Path) -> dict[str, Any]:
    """Return `address`, `healthy`, `pid` and `configured` of the server a command would use now.

    `address` and `pid` are None when no server runs, `pid` also when it is a configured one.
    """
    url = configured_api_url()
    if url is not None:
        return {"address": url, "healthy": healthy(url), "pid": None, "configured": True}
    place = folder(home)
    state = read_state(place) if _running(place) else None
    if not state:
        return {"address": None, "healthy": False, "pid": None, "configured": False}
    return {
        "address": state["api_url"],
        "healthy": healthy(state["api_url"]),
        "pid": state["pid"],
        "configured": False,
    }


def folders(home: Path) -> dict[Path, bool]:
    """Return the results folders that have used our server since it started, and whether each uses it now."""
    place = folder(home)
    if configured_api_url() is not None or not _running(place):
        return {}
    with locked(place / "start.lock"):
        return _folders(place)


def _folders(place: Path) -> dict[Path, bool]:
    """Return what `folders` does; call it under the start lock, as two who try a lock at once mislead each other."""
    found, started = {}, read_state(place).get("started", 0.0)
    for path in (place / "folders").glob("[!.]*"):  # whole files
        is_used = not is_free(path)
        if is_used or path.stat().st_mtime >= started:
            found[Path(path.read_text("utf-8"))] = is_used
    return dict(sorted(found.items()))


def stop(home: Path, everything: bool = False) -> bool:
    """Stop our server, and first one of this results folder's own: SIGTERM, then SIGKILL.

    One that other results folders use now is stopped only with `everything`; a configured one is left alone. Returns
    whether one was stopped. Raises ServerError when it cannot be.
    """
    places = dict.fromkeys((own_folder(home), folder(home)))
    stopped = [_stop(place, None if everything else home) for place in places if place.exists()]
    return any(stopped)


def _stop(place: Path, home: Path | None) -> bool:
    """Stop the server in `place`, unless others than `home`, if one is given, use it now."""
    with locked(place / "start.lock"):
        state = read_state(place)
        was_running = not _released(place)
        if was_running and home and any(used for user, used in _folders(place).items() if user != home):
            return False
        if was_running and state:
            os.kill(state["pid"], signal.SIGTERM)
        # Without a state the supervisor stops by itself, within a second.
        if was_running and not _released(place, STOP_SECONDS):
            if not state:
                raise ServerError(f"the Prefect server in {place} does not stop and its pid is unknown")
            os.kill(state["pid"], signal.SIGKILL)  # the server dies with its supervisor
            _released(place, STOP_SECONDS)
        state_path(place).unlink(missing_ok=True)
    return was_running


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
    """Return after how many unused seconds the server stops: `$TEXTBENCH_SERVER_IDLE_SECONDS`, else 1800."""
    text = os.environ.get(IDLE_VARIABLE) or str(IDLE_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise InputError(f"{IDLE_VARIABLE} must be a number of seconds above 0, received {text!r}")
    return seconds


def state_path(place: Path) -> Path:
    """Return the path of `server.json` in the server's folder: pid, port, api_url and start time of our server."""
    return place / "server.json"


def read_state(place: Path) -> dict[str, Any]:
    """Return what `server.json` says, empty when missing or damaged; it is true only while a server runs."""
    kinds = {"pid": int, "port": int, "api_url": str, "started": float}
    try:
        state = json.loads(state_path(place).read_text(encoding="utf-8"))
        return {name: kind(state[name]) for name, kind in kinds.items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _spawn(home: Path, lock: int, host: str, port: int | None) -> dict[str, Any]:
    """Start the supervisor with the lock that says it runs and a socket whose port nobody else can take."""
    place = folder(home)
    with _listener(place, host, port) as listener:
        port = listener.getsockname()[1]
        api_url = f"http://{ports.reached_at(host)}:{port}/api"
        touch(home)
        with (place / "server.log").open("wb") as log:
            supervisor = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "textbench.flows.servers.supervisor",
                    str(place),
                    str(lock),
                    str(listener.fileno()),
                ],
                pass_fds=(lock, listener.fileno()),
                env=os.environ | _server_environment(home, api_url, host, port),
                cwd=place,  # Prefect reads settings from its working folder: not from the user's
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # an interrupted command must not take the server along
            )
    threading.Thread(target=supervisor.wait, daemon=True).start()  # reap it, should it end before us
    started = _user(home).stat().st_mtime  # by the clock of files, which lags behind the other
    state = {"pid": supervisor.pid, "port": port, "api_url": api_url, "started": started}
    write_json(state_path(place), state)
    return state


def _listener(place: Path, host: str, port: int | None) -> socket.socket:
    last = ports.remembered(place / "port") if port is None else None
    try:
        return ports.listen(host, last if last and ports.is_free(host, last) else port or 0)
    except OSError as error:
        raise InputError(f"port {port} on {host} cannot be listened on: {error.strerror}") from error


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


def _info(home: Path, state: dict[str, Any], started_here: bool) -> ServerInfo:
    url = state["api_url"]
    return ServerInfo(home, url, url.removesuffix("/api"), state["pid"], state["port"], started_here, False)


def _running(place: Path) -> bool:
    """Say whether a supervisor lives. Under the start lock: two who try a lock at once mislead each other."""
    if not place.exists():
        return False
    with locked(place / "start.lock"):
        return not _released(place)


def _released(place: Path, seconds: float = 0.0) -> bool:
    """Say whether `running.lock` is free, waiting for it at most `seconds`; call it under the start lock."""
    return is_free(place / "running.lock", seconds)


def _log_tail(place: Path) -> str:
    try:
        lines = (place / "server.log").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        return f"no log: {error}"
    return "\n".join(lines[-LOG_LINES:])
