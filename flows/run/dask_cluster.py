"""A Dask cluster that somebody else started: is it there, is it safe to speak to, and are its workers fit for us?"""

import asyncio
import ipaddress
import logging
import os
import socket
import urllib.parse
import urllib.request
import uuid
from pathlib import Path
from typing import Any

from textbench.tasks import InputError
from textbench.tasks.storage.cluster import versions
from textbench.tasks.storage.store import HOME, STORE

SECONDS = 5  # within which a scheduler has to answer
WORKER_SECONDS = 120  # and its workers, which may be busy
TLS = (
    "start scheduler and workers with certificates and give tls://HOST:PORT; Dask reads where they are from "
    "DASK_DISTRIBUTED__COMM__TLS__CA_FILE and, for CLIENT, SCHEDULER and WORKER, "
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and __KEY"
)


def check_address(address: str) -> None:
    """Raise InputError for what is no scheduler's address, or would be spoken to over a network without TLS."""
    url = urllib.parse.urlsplit(address)
    try:
        host, port = url.hostname, url.port
    except ValueError:
        host, port = None, None
    if url.scheme not in ("tcp", "tls") or not host or not port:
        raise InputError(
            f"--address is tcp://HOST:PORT or tls://HOST:PORT of a Dask scheduler, got {address!r}"
        )
    if url.scheme == "tcp" and not _is_loopback(host):
        raise InputError(f"--address {address} leaves this machine, where tcp:// is open to everybody; {TLS}")


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InputError(f"--address: there is no host {host!r} ({error.strerror})") from error
    return all(ipaddress.ip_address(entry[4][0]).is_loopback for entry in found)


def check_workers(address: str, home: Path) -> None:
    """See that the cluster has workers that run the same code and can share results with `home`.

    Raises InputError, after `SECONDS` where nobody answers.
    """
    remote = os.environ.get(STORE) or None
    token = home / f".cluster-{uuid.uuid4().hex}"
    token.touch()
    try:
        found = _ask_workers(address, {"token": str(token), "remote": remote})
    finally:
        token.unlink()
    if not found:
        raise InputError(f"the Dask cluster at {address} has no workers; start some: dask worker {address}")
    for worker, answer in found.items():
        if fault := _fault(answer, remote):
            raise InputError(f"the Dask worker {worker} {fault}")


def _fault(answer: dict[str, Any], remote: str | None) -> str | None:
    ours, theirs = versions(), answer["versions"]
    for name in (*ours, *theirs):
        if ours.get(name) != theirs.get(name):
            what = "other code of textbench" if name == "code" else f"{name} {theirs.get(name)}"
            return f"runs {what} than this command ({ours.get(name)}); bring both to the same version"
    if not answer["home"]:
        return f"has no results folder; start it with {HOME} set to a folder of its own"
    if remote is None and not answer["sees"]:
        return (
            f"keeps results in {answer['home']}, which this command does not see; "
            f"set {STORE} to a root that both can write to, or {HOME} to one folder that both see"
        )
    return answer["error"] and f"cannot share results: {answer['error']}"


def _ask_workers(address: str, question: dict[str, Any]) -> dict[str, dict[str, Any]]:
    for name in ("distributed", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is said in one line, below
    try:
        return asyncio.run(asyncio.wait_for(_answers(address, question), WORKER_SECONDS))
    except TimeoutError as error:
        raise InputError(
            f"the Dask workers at {address} did not answer in {WORKER_SECONDS} s; start those anew that hang"
        ) from error


async def _answers(address: str, question: dict[str, Any]) -> dict[str, dict[str, Any]]:
    from distributed import Client

    client = Client(address, timeout=SECONDS, set_as_default=False, asynchronous=True)
    try:
        await client
    except Exception as error:  # nobody answers, or not in TLS, or there are no certificates
        await client.close()
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"no Dask scheduler answers at {address}: {reason}") from error
    async with client:
        try:
            return await client.run(look, question)
        except Exception as error:  # a worker without textbench cannot even name the function
            reason = " ".join(str(error).split())
            raise InputError(
                f"a Dask worker at {address} cannot run textbench ({type(error).__name__}: {reason}); "
                "start workers in an environment where it is installed"
            ) from error


def look(question: dict[str, Any]) -> dict[str, Any]:
    """Say, on a worker, what it runs, where it keeps results, and whether it sees a file and the shared root."""
    home = os.environ.get(HOME)
    token = Path(question["token"])
    sees = bool(home) and (Path(home or "").expanduser().resolve() / token.name).exists()
    error = None
    if question["remote"] is not None:
        from textbench.tasks.storage.remote import Remote

        try:
            Remote(question["remote"]).check()
        except InputError as problem:
            error = str(problem)
    return {"versions": versions(), "home": home, "sees": sees, "error": error}
