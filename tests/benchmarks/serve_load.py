"""Whether `textbench serve` keeps its memory under load at its limit: its resident memory by the minute.

1,000 clients, as many as may wait at once, and 8 more, which makes some requests one too many (503); each asks with
texts that were never asked before, waits for the answer and asks again. Some send what is refused, some go without
waiting. `TEXTBENCH_LOAD_MINUTES` says how long (30).
"""

import asyncio
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from tests.commands import MAIN
from tests.made_model import CLASSES, made_model
from textbench.flows.servers.model_server import MOST_WAITING

MINUTES = float(os.environ.get("TEXTBENCH_LOAD_MINUTES") or 30)
N_CLIENTS = MOST_WAITING + 8
SHOWN = (1, 5, 10, 20, 30)  # minutes of the summary
WORDS = 70
REFUSED = (b"", b"[1, 2]", b"\xff\xfe", b"{", b'["a", " "]')
HEAD = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
PATIENCE = 300  # seconds for an answer


def main() -> None:
    """Print a line a minute: memory of the server's process, requests by status, then what it grew by."""
    with tempfile.TemporaryDirectory() as folder:
        made_model(n_terms=16_000).save(Path(folder) / "made.npz")
        command = ["serve", str(Path(folder) / "made.npz"), "--port", "0", "--json"]
        server = subprocess.Popen(
            [sys.executable, "-c", MAIN, *command],
            env=os.environ | {"TEXTBENCH_HOME": folder},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert server.stdout is not None
            address = json.loads(server.stdout.readline())["address"]
            asyncio.run(_load(server.pid, int(address.rpartition(":")[2])))
            assert server.poll() is None, "the server ended"
        finally:
            server.terminate()
            server.wait()


async def _load(pid: int, port: int) -> None:
    answers: Counter[str] = Counter()
    over = time.monotonic() + 60 * MINUTES
    clients = [asyncio.create_task(_client(port, number, over, answers)) for number in range(N_CLIENTS)]
    process, found = psutil.Process(pid), {}
    for minute in range(1, int(MINUTES) + 1):
        await asyncio.sleep(max(0, over - 60 * (MINUTES - minute) - time.monotonic()))
        found[minute] = process.memory_info().rss / 2**20
        files = process.num_fds()
        said = ", ".join(f"{count:,} of {status}" for status, count in sorted(answers.items()))
        print(f"minute {minute:2}: {found[minute]:6.1f} MB, {files:5,} files open; answers so far: {said}")
    await asyncio.gather(*clients)
    print("; ".join(f"minute {one}: {found[one]:.1f} MB" for one in SHOWN if one in found))


async def _client(port: int, number: int, over: float, answers: "Counter[str]") -> None:
    """Ask until it is over, on one connection for as long as the server keeps it."""
    chance = random.Random(number)
    writer = None
    for turn in itertools.count():
        if time.monotonic() > over:
            break
        if writer is None:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError as error:
                answers[f"no connection ({error.strerror})"] += 1
                await asyncio.sleep(1)
                continue
        body = _body(chance, number, turn)
        writer.write(HEAD % len(body) + body)
        if chance.random() < 0.01:
            # Whoever asked is gone before the answer.
            answers["nobody there"] += 1
            writer.close()
            writer = None
            continue
        try:
            status, is_kept = await asyncio.wait_for(_answer(reader), PATIENCE)
        except (asyncio.IncompleteReadError, ConnectionError):
            status, is_kept = "a broken connection", False
        answers[status] += 1
        if not is_kept:
            writer.close()
            writer = None
    if writer is not None:
        writer.close()


def _body(chance: random.Random, number: int, turn: int) -> bytes:
    if chance.random() < 0.02:
        return chance.choice(REFUSED)
    words = " ".join(CLASSES.values()).split()
    texts = [
        " ".join(
            [
                *chance.choices(words, k=WORDS // 2),
                *(f"new{number}x{turn}x{i}x{k}" for k in range(WORDS // 2)),
            ]
        )
        for i in range(chance.choice((1, 1, 1, 8)))
    ]
    return json.dumps(texts).encode()


async def _answer(reader: asyncio.StreamReader) -> tuple[str, bool]:
    """Return the status of an answer, and whether the connection is kept; its body is read and thrown away."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:] if line)
    await reader.readexactly(int(headers["content-length"]))
    return lines[0].split()[1], headers.get("connection") != "close"
