"""Ports to listen on: the one asked for, or a plain word on who is in the way and which one is free."""

import socket
from collections.abc import Collection
from pathlib import Path

from textbench.tasks import InputError

HOST = "127.0.0.1"
N_TRIED = 100  # ports looked at after one that is taken


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach what listens on `host`."""
    return host == "localhost" or host == "::1" or host.startswith("127.")


def reached_at(host: str) -> str:
    """Return how this machine reaches what listens on `host`, as it is written in an address."""
    if host in ("0.0.0.0", "::"):
        return HOST
    return f"[{host}]" if ":" in host else host


def check(option: str, port: int) -> int:
    """Return `port` if it is one; raises InputError naming the option."""
    if not 1 <= port <= 65535:
        raise InputError(f"{option} must lie in 1 .. 65535, got {port}")
    return port


def listen(host: str, port: int) -> socket.socket:
    """Return a socket bound to a port, which from now on nobody else can take; port 0 is any that is free.

    Raises OSError when it is in use or the host is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # our last one may linger for a minute
        listener.bind((host, port))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


def listen_or_refuse(host: str, port: int) -> socket.socket:
    """Return what `listen` does. Raises InputError instead of OSError."""
    try:
        return listen(host, port)
    except OSError as error:
        raise InputError(f"port {port} on {host} cannot be listened on: {error.strerror}") from error


def is_free(host: str, port: int) -> bool:
    """Say whether a port could be listened on now. Raises InputError for a host that is not this machine's."""
    try:
        listen(host, port).close()
    except PermissionError:
        return False
    except OSError as error:
        if not _is_ours(host):
            raise InputError(
                f"--host must be an address of this machine, such as {HOST} or 0.0.0.0, got {host!r}"
            ) from error
        return False
    return True


def _is_ours(host: str) -> bool:
    try:
        listen(host, 0).close()
    except OSError:
        return False
    return True


def next_free(host: str, port: int, taken: Collection[int] = ()) -> int:
    """Return the first free port after `port` that is not in `taken`, else any free one."""
    for candidate in range(port + 1, min(port + N_TRIED, 65536)):
        if candidate not in taken and is_free(host, candidate):
            return candidate
    with listen(host, 0) as listener:
        return int(listener.getsockname()[1])


def choose(
    option: str, host: str, asked: int | None, usual: int, taken: Collection[int] = ()
) -> tuple[int, str]:
    """Return the port to use and what to tell the user about it, empty when there is nothing to tell.

    A port that was asked for is used or refused (InputError names a free one); in place of the usual one the next
    free one is used.
    """
    wanted = usual if asked is None else check(option, asked)
    if wanted not in taken and is_free(host, wanted):
        return wanted, ""
    other = next_free(host, wanted, taken)
    if asked is not None:
        raise InputError(f"{option}: port {wanted} on {host} is in use; {other} is free: {option} {other}")
    return other, f"port {wanted} on {host} is in use; taking {other} instead ({option} chooses another)"


def remembered(path: Path) -> int | None:
    """Return the port that `path` holds, None where it holds none."""
    try:
        port = int(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return port if 1 <= port <= 65535 else None


def remember(path: Path, port: int) -> None:
    """Keep a port in `path` for the next time."""
    path.write_text(f"{port}\n", "utf-8")
