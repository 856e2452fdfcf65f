"""Downloads over HTTP that survive broken connections: resumed, bounded in time and size, told in one line."""

import http.client
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tasks import InputError

TIMEOUT = 30.0  # seconds without an answer, and the window over which the least speed is measured
LEAST_SPEED = 1_000  # bytes a second
ATTEMPTS = 5
PAUSE = 1.0  # seconds before the second attempt; doubled after each
CHUNK = 1 << 16
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)


class _Interrupted(Exception):
    """The transfer broke off for a reason that may pass."""


def fetch(url: str, part: Path, *, size: int) -> None:
    """Download `url` to the file `part`, continuing what is in it already.

    A connection that breaks is taken up again where it broke (HTTP Range), `ATTEMPTS` times at most; `part` is
    kept for a later call. A server that ignores ranges starts again. `size` is the number of bytes expected, for
    the progress bar (on stderr, if that is a terminal) and to refuse more than twice as many. What the bytes are
    is for the caller to check. Raises InputError, in one line, when the file cannot be had.
    """
    reason = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        try:
            with _progress(part.name, size) as show:
                _continue(url, part, 2 * size, show)
            return
        except _Interrupted as error:
            reason = str(error)
        except OSError as error:
            if isinstance(error, urllib.error.URLError):
                raise InputError(f"{url} cannot be downloaded ({error.reason})") from error
            raise InputError(f"{part} cannot be written ({error.strerror})") from error
    raise InputError(f"{url} cannot be downloaded ({reason}, {ATTEMPTS} attempts)")


def _continue(url: str, part: Path, limit: int, show: Callable[[int], None]) -> None:
    """Append to `part` what it lacks of `url`."""
    start = part.stat().st_size if part.exists() else 0
    response = _open(url, start)
    if response is None:  # nothing lies beyond what is here: whole, or longer than the file itself
        return
    with response:
        if response.status != 206 or not _begins_at(response, start):
            start = 0
        announced = response.headers.get("Content-Length", "")
        if announced.isdigit() and start + int(announced) > limit:
            raise InputError(
                f"{url} cannot be downloaded (it says {int(announced):,} bytes, at most {limit:,} are accepted)"
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
            raise _Interrupted(f"HTTP {error.code} {error.reason}") from error
        raise
    except urllib.error.URLError as error:
        # A certificate does not become valid by asking again.
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise
        raise _Interrupted(_reason(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _Interrupted(_reason(error)) from error


def _begins_at(response: Any, start: int) -> bool:
    """Say whether a partial answer is the part that was asked for."""
    span = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if span is None or int(span[1]) != start:
        raise InputError(f"{response.url} cannot be downloaded (asked for bytes from {start:,}, got others)")
    return True


def _copy(response: Any, stream: Any, n_bytes: int, limit: int, show: Callable[[int], None]) -> None:
    began, n_window = time.monotonic(), 0
    while True:
        try:
            chunk = response.read1(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise _Interrupted(_reason(error)) from error
        if not chunk:
            break
        stream.write(chunk)
        n_bytes, n_window = n_bytes + len(chunk), n_window + len(chunk)
        if n_bytes > limit:
            raise InputError(f"{response.url} cannot be downloaded (it gives more than {limit:,} bytes)")
        show(n_bytes)
        if time.monotonic() - began > TIMEOUT:
            if n_window < LEAST_SPEED * TIMEOUT:
                raise _Interrupted(f"slower than {LEAST_SPEED:,} bytes a second for {TIMEOUT:g} s")
            began, n_window = time.monotonic(), 0
    if response.length:  # what Content-Length promised and the connection did not bring
        raise _Interrupted(f"the connection ended {response.length:,} bytes early")


def _reason(error: Any) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer for {TIMEOUT:g} s"
    return " ".join(str(error).split()) or type(error).__name__
