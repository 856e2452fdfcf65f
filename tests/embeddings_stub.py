"""An endpoint of embeddings on loopback, in a thread, with the faults that real ones have."""

import base64
import functools
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

WIDTH = 8
Fault = Callable[["Stub", "Handler", list[str]], bool]


def vector(text: str, seed: str = "") -> np.ndarray:
    """Return the vector that the stub gives a text, float32 (WIDTH,)."""
    bytes_ = hashlib.sha256((seed + text).encode()).digest()[:WIDTH]
    return np.frombuffer(bytes_, dtype=np.uint8).astype(np.float32) / 16 - 8


class Handler(BaseHTTPRequestHandler):
    """Answers POST /v1/embeddings, after the first fault that is waiting has had its way."""

    server: "Stub"

    def do_POST(self) -> None:
        """Answer one request."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        self.server.headers.append(dict(self.headers))
        self.server.paths.append(self.path)
        texts = asked["input"]
        if self.server.faults and self.server.faults.pop(0)(self.server, self, texts):
            return
        if any(not text.strip() for text in texts):  # as the services do, to the whole batch
            self.answer(400, b'{"error": {"message": "input cannot be an empty string"}}')
            return
        if self.server.largest is not None and len(texts) > self.server.largest:
            self.answer(413, b"too large")
            return
        if bad := [text for text in texts if text in self.server.refused]:
            self.answer(400, f"cannot take {bad[0]}".encode())
            return
        self.server.answered.extend(texts)
        self.rows([vector(text, self.server.seed) for text in texts])

    def rows(self, vectors: list[np.ndarray], order: list[int] | None = None, **others: Any) -> None:
        """Answer vectors, in base64 or as lists, shuffled as services may do."""
        order = order if order is not None else list(reversed(range(len(vectors))))
        made = [
            {"object": "embedding", "index": i, "embedding": self.form(vectors[i % len(vectors)])}
            for i in order
        ]
        usage = {"total_tokens": 3 * len(vectors)}
        self.answer(200, json.dumps({"data": made, "usage": usage} | others).encode())

    def form(self, row: np.ndarray) -> Any:
        """Return a vector in the form that the stub answers."""
        if self.server.ignores_base64:
            return [float(value) for value in row]
        return base64.b64encode(row.astype("<f4").tobytes()).decode()

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        """Answer bytes with a status."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Stub(ThreadingHTTPServer):
    """The endpoint: what it was asked, and what it is to do wrong next."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.answered: list[str] = []
        self.faults: list[Fault] = []
        self.refused: set[str] = set()
        self.largest: int | None = None
        self.ignores_base64 = False
        self.seed = ""
        self.released = threading.Event()

    @property
    def url(self) -> str:
        """Its address, as users give it."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def serving() -> Iterator[Stub]:
    """Serve the stub in a thread while the context lasts."""
    stub = Stub()
    thread = threading.Thread(target=stub.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.released.set()
        stub.shutdown()
        stub.server_close()


@functools.cache
def small_endpoint() -> dict[str, Any]:
    """Return the parameters with which the method api asks a stub that answers as long as the tests run."""
    stub = Stub()
    threading.Thread(target=stub.serve_forever, daemon=True).start()
    return {"model": "m", "url": stub.url, "key_env": None}


def status(code: int, body: bytes = b"", **headers: str) -> Fault:
    """Return a fault: another status."""

    def fault(_: Stub, handler: Handler, __: list[str]) -> bool:
        handler.answer(code, body, **headers)
        return True

    return fault


def body(text: str) -> Fault:
    """Return a fault: status 200 with this body."""
    return status(200, text.encode())


def hangs(stub: Stub, handler: Handler, _: list[str]) -> bool:
    """Answer nothing until the test ends."""
    stub.released.wait()
    handler.close_connection = True
    return True


def dies_midway(_: Stub, handler: Handler, __: list[str]) -> bool:
    """Begin an answer and close the connection."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True
    return True


def rows(change: Callable[[list[np.ndarray]], list[np.ndarray]], order: list[int] | None = None) -> Fault:
    """Return a fault: changed vectors, or their indices in this order."""

    def fault(_: Stub, handler: Handler, texts: list[str]) -> bool:
        handler.rows(change([vector(text) for text in texts]), order)
        return True

    return fault
