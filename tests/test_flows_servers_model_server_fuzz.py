"""A served model: its bits, its refusals, and that no request ends it."""

import asyncio
import json
import os
import socket
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_model import made_model
from textbench.flows.explain.answering import MOST_BYTES, MOST_TEXTS
from textbench.flows.explain.export import _pools
from textbench.flows.servers import model_server
from textbench.flows.servers.model_server import ModelServer

N_EXAMPLES = int(os.environ.get("TEXTBENCH_FUZZ_EXAMPLES", "60"))
JSON = "application/json"
Reply = tuple[int, Any]


@pytest.fixture(scope="module")
def server() -> ModelServer:
    return ModelServer(made_model(), {"model": "made"})


async def asked(
    server: ModelServer,
    body: bytes,
    kind: str = JSON,
    path: str = "/predict",
    method: str = "POST",
    **headers: str,
) -> Reply:
    """Return the status and the JSON of a request's answer; its body comes in two parts."""
    sent: list[dict[str, Any]] = []
    half = len(body) // 2
    parts = [
        {"type": "http.request", "body": body[:half], "more_body": True},
        {"type": "http.request", "body": body[half:]},
    ]

    async def receive() -> Any:
        return parts.pop(0) if parts else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    named = {"content-type": kind} | {name.replace("_", "-"): value for name, value in headers.items()}
    pairs = [(name.encode(), value.encode()) for name, value in named.items()]
    await server({"type": "http", "path": path, "method": method, "headers": pairs}, receive, send)
    start, content = sent
    assert content["body"].count(b"\n") == 1, "an answer is one line"
    return start["status"], json.loads(content["body"])


def ask(
    server: ModelServer, body: bytes | list[Any] | dict[str, Any], *arguments: Any, **options: Any
) -> Reply:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return asyncio.run(asked(server, content, *arguments, **options))


def test_the_answer_has_the_bits_of_the_model(server: ModelServer) -> None:
    texts = ["wheat and corn", "oil", "share of nothing"]
    answers = made_model().answer(texts)
    for body in (texts, {"texts": texts}, {"inputs": texts}):
        status, found = ask(server, body)
        assert status == 200
        assert [row["label"] for row in found["predictions"]] == answers.labels
        values = [list(row["decision"].values()) for row in found["predictions"]]
        assert values == answers.values.tolist()
    assert ask(server, "\n".join(texts).encode(), "text/plain; charset=utf-8") == (200, found)


def test_requests_that_wait_are_computed_together_and_answered_apart(server: ModelServer) -> None:
    bodies = [[word] * n for n, word in enumerate(("wheat", "oil", "share", "cents"), 1)]

    async def all_of_them() -> list[Reply]:
        return await asyncio.gather(*(asked(server, json.dumps(body).encode()) for body in bodies))

    together = asyncio.run(all_of_them())
    assert together == [ask(server, body) for body in bodies]
    assert [len(found["predictions"]) for _, found in together] == [1, 2, 3, 4]


REFUSED: dict[str, tuple[int, tuple[Any, ...]]] = {
    "empty": (400, (b"",)),
    "no texts": (400, (b"[]",)),
    "a number": (400, (b"7",)),
    "no JSON": (400, (b"[",)),
    "deep JSON": (400, (b"[" * 100_000,)),
    "not UTF-8": (400, (b'["\xff"]',)),
    "a number as text": (400, (b'["a", 7]',)),
    "a blank text": (400, (b'["a", " "]',)),
    "half a surrogate": (400, (b'["\\ud800"]',)),
    "another key": (400, (b'{"text": ["a"]}',)),
    "another type": (415, (b"<a/>", "text/xml")),
    "20 MB": (413, (b"a" * 20_000_000, "text/plain")),
    "too many texts": (413, (b"a\n" * (MOST_TEXTS + 1), "text/plain")),
    "another place": (404, (b"[]", JSON, "/admin")),
    "another verb": (405, (b"", JSON, "/predict", "GET")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_requests_are_refused_in_one_line(name: str, server: ModelServer) -> None:
    wanted, arguments = REFUSED[name]
    status, found = ask(server, *arguments)
    assert status == wanted and found.keys() == {"error"}
    assert found["error"].isprintable() and len(found["error"]) < 300
    assert ask(server, ["oil"])[0] == 200


def test_what_announces_too_much_is_refused_before_it_is_read(server: ModelServer) -> None:
    status, found = ask(server, b"", content_length=str(MOST_BYTES + 1))
    assert status == 413 and f"{MOST_BYTES + 1:,}" in found["error"]


def test_one_more_than_may_wait_is_refused(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_server, "MOST_WAITING", 0)
    assert ask(server, ["oil"])[0] == 503


def test_a_body_that_breaks_off_is_refused(server: ModelServer) -> None:
    async def broken() -> int:
        async def receive() -> Any:
            return {"type": "http.disconnect"}

        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await server({"type": "http", "path": "/predict", "method": "POST", "headers": []}, receive, send)
        return sent[0]["status"]

    assert asyncio.run(broken()) == 400


def test_health_and_facts(server: ModelServer) -> None:
    assert ask(server, b"", path="/health", method="GET") == (200, {"status": "ok"})
    assert ask(server, b"", path="/", method="GET") == (200, {"model": "made"})


def test_answers_on_a_kept_connection_do_not_wait_for_acknowledgements() -> None:
    """Of other sockets asyncio leaves Nagle's algorithm on, which costs 40 ms an answer."""
    with model_server.listening(0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
        with pytest.raises(OSError, match="in use"):
            model_server.listening(listener.getsockname()[1])


def test_who_is_told_the_port_is_not_turned_away() -> None:
    """It is told before the server's loop runs."""
    with model_server.listening(0) as listener, socket.create_connection(listener.getsockname(), 10):
        pass


def test_thread_pools_are_looked_for_once_and_again_where_a_module_came(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        assert ask(server, ["oil"])[0] == 200
    before = _pools.cache_info()
    assert ask(server, ["wheat"])[0] == 200
    assert _pools.cache_info().misses == before.misses
    monkeypatch.setitem(sys.modules, "one_more", object())
    assert ask(server, ["wheat"])[0] == 200
    assert _pools.cache_info().misses == before.misses + 1


texts = st.lists(st.text(max_size=30) | st.sampled_from(["oil", "\x00", "\u2028", "a" * 1000]), max_size=4)
bodies = st.one_of(
    st.binary(max_size=200),
    texts.map(lambda found: json.dumps(found).encode()),
    st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5).map(
        lambda found: json.dumps(found).encode()
    ),
    texts.map(lambda found: "\n".join(found).encode("utf-8", "surrogatepass")),
    st.text(max_size=50).map(lambda found: json.dumps({"texts": [found]}).encode()[:-2]),
)
kinds = st.sampled_from([JSON, "text/plain", "", "application/x-www-form-urlencoded", "text/html"]) | st.text(
    st.characters(codec="latin-1"), max_size=10
)


@settings(max_examples=N_EXAMPLES)
@given(
    bodies, kinds, st.sampled_from(["/predict", "/invocations", "/", "/x"]), st.sampled_from(["POST", "GET"])
)
def test_no_request_ends_it(server: ModelServer, body: bytes, kind: str, path: str, method: str) -> None:
    status, found = ask(server, body, kind, path, method)
    assert status == 200 or 400 <= status < 500, found
    if status != 200:
        assert found["error"].isprintable() or "\\u" in json.dumps(found)
