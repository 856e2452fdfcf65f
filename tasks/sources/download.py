"""Downloads over HTTP that survive broken connections: resumed, bounded in time and size."""

import http.client
import re
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from textbench.tasks import InputError

TIMEOUT = 30.0  # seconds without an answer, and the window over which the least speed is measured
LEAST_SPEED = 1_000  # bytes a second
ATTEMPTS = 4
PAUSE = 1.0  # seconds before the second attempt; doubled after each
CHUNK = 1 << 16
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)


class _InterruptedError(Exception):
    """The transfer broke off for a reason that may pass."""


def fetch(url: str, part: Path, *, size: int) -> None:
    """Download `url` to the file `part`, continuing what is in it already.

    A connection that breaks is taken up again where it broke (HTTP Range), `ATTEMPTS` times at most; `part`
    is kept for a later call. A server that ignores ranges starts again. `size` is the number of bytes
    expected, for the progress bar (on stderr, if that is a terminal) and to refuse more than twice as many.
    What the bytes are is for the caller to check. Raises InputError, in one line, when the file cannot be
    had.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        try:
            with _progress(part.name, size) as show:
                _continue(url, part, 2 * size, show)
            return
        except _InterruptedError as error:
            reason = str(error)
        except OSError as error:
            raise InputError(f"{part} cannot be written ({error.strerror})") from error
    kept = part.stat().st_size if part.exists() else 0
    raise InputError(
        f"{url} cannot be downloaded ({reason}; {ATTEMPTS} attempts, {kept:,} bytes are kept for the next)"
    )


def _continue(url: str, part: Path, limit: int, show: Callable[[int], None]) -> None:
    """Append to `part` what it lacks of `url`."""
    start = part.stat().st_size if part.exists() else 0
    response = _open(url, start)
    if response is None:  # nothing lies beyond what is here: whole, or longer than the file itself
        return
    with response:
        if response.status == 206 and not _begins_at(response, start):
            part.unlink(missing_ok=True)
            raise _InterruptedError(f"asked for the bytes from {start:,} on, got others")
        if response.status != 206:
            start = 0
        announced = response.headers.get("Content-Length", "")
        if announced.isdigit() and start + int(announced) > limit:
            raise InputError(
                f"{url} cannot be downloaded (it has {int(announced):,} bytes, at most {limit:,} are accepted)"
            )
        with part.open("ab") as stream:
            stream.truncate(start)
            _copy(response, stream, start, limit, show)


def _open(url: str, start: int) -> Any:
    """Return the open response to a request for the bytes from `start` on, or None if there are none."""
    headers = {"User-Agent": "textbench", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and start:
            return None
        if error.code in TEMPORARY:
            raise _InterruptedError(f"HTTP {error.code} {error.reason}") from error
        raise InputError(f"{url} cannot be downloaded (HTTP {error.code} {error.reason})") from error
    except (OSError, http.client.HTTPException) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        no_such_name = isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME
        # Asking again makes no certificate valid and no name known.
        if no_such_name or isinstance(cause, ssl.SSLCertVerificationError):
            raise InputError(f"{url} cannot be downloaded ({_reason(cause)})") from error
        raise _InterruptedError(_reason(cause)) from error


def _begins_at(response: Any, start: int) -> bool:
    """Say whether a partial answer is the part that was asked for."""
    span = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return span is not None and int(span[1]) == start


def _copy(response: Any, stream: Any, n_bytes: int, limit: int, show: Callable[[int], None]) -> None:
    began, n_window = time.monotonic(), 0
    while True:
        try:
            chunk = response.read1(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise _InterruptedError(_reason(error)) from error
        if not chunk:
            break
        stream.write(chunk)
        n_bytes, n_window = n_bytes + len(chunk), n_window + len(chunk)
        if n_bytes > limit:
            raise InputError(f"{response.url} cannot be downloaded (it gives more than {limit:,} bytes)")
        show(n_bytes)
        if time.monotonic() - began > TIMEOUT:
            if n_window < LEAST_SPEED * TIMEOUT:
                raise _InterruptedError(f"slower than {LEAST_SPEED:,} bytes a second for {TIMEOUT:g} s")
            began, n_window = time.monotonic(), 0
    if response.length:  # what Content-Length promised and the connection did not bring
        raise _InterruptedError(f"the connection ended {response.length:,} bytes early")


def _reason(error: Any) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer for {TIMEOUT:g} s"
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(text.split()) or type(error).__name__


@contextmanager
def _progress(name: str, size: int) -> Iterator[Callable[[int], None]]:
    """Give a function that is told the bytes there are; it moves a bar if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda n_bytes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress("{task.description}", *columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name.removesuffix(".part"), total=size)
        yield lambda n_bytes: progress.update(task, completed=n_bytes)
