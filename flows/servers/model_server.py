"""A model behind HTTP on this machine: `POST /predict`, `GET /` and `GET /health`, and nothing else.

One thread computes. What arrives while it is busy is computed together next, for a text costs little beside a call. A
request waits at most for those before it; where too many wait, one more is refused (503).
"""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from textbench.flows.explain.answering import MOST_BYTES, Refused, answered, texts_of

if TYPE_CHECKING:
    from textbench.flows.explain.export import Model

HOST = "127.0.0.1"
MOST_WAITING = 1000  # requests
MOST_AT_ONCE = 2000  # texts computed together, unless one request has more
BACKLOG = 2 * MOST_WAITING  # connections that wait to be taken
WAIT_SECONDS = 30.0  # for the rest of a body
PATHS = {"/": "GET", "/health": "GET", "/predict": "POST", "/invocations": "POST"}
Message = MutableMapping[str, Any]
Waiting = tuple[list[str], "asyncio.Future[list[dict[str, Any]]]"]


class ModelServer:
    """An ASGI application that answers with a model."""

    def __init__(self, model: "Model", about: dict[str, Any]) -> None:
        self._model, self._about = model, about
        self._thread = ThreadPoolExecutor(1)
        self._waiting: list[Waiting] = []
        self._computing: asyncio.Task[None] | None = None
        self._open = 0

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        self._open += 1
        try:
            status, found = 200, await self._answer(scope, receive)
        except Refused as refused:
            status, found = refused.status, {"error": refused.reason}
        except Exception as error:
            status, found = 500, {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
        finally:
            self._open -= 1
        body = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if status >= 400:
            headers.append((b"connection", b"close"))  # the rest of what is refused is not read
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Message, receive: Callable[[], Awaitable[Message]]) -> Any:
        wanted = PATHS.get(scope["path"])
        if wanted is None:
            raise Refused(404, f"there is nothing here; ask {', '.join(PATHS)}")
        if scope["method"] != wanted:
            raise Refused(405, f"{scope['path']} takes {wanted}, got {scope['method'][:20]}")
        if scope["path"] == "/health":
            return {"status": "ok"}
        if scope["path"] == "/":
            return self._about
        if self._open > MOST_WAITING:
            raise Refused(503, f"{MOST_WAITING:,} requests wait already; ask again later")
        headers = {name.lower(): value for name, value in scope["headers"]}
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > MOST_BYTES:
            raise Refused(413, f"a request has at most {MOST_BYTES:,} bytes, this one has {int(announced):,}")
        body = await _body(receive)
        texts = texts_of(body, headers.get(b"content-type", b"").decode("latin-1"))
        return {"predictions": await self._computed(texts)}

    async def _computed(self, texts: list[str]) -> list[dict[str, Any]]:
        """Return the rows of a request, once it was its turn."""
        loop = asyncio.get_running_loop()
        own: asyncio.Future[list[dict[str, Any]]] = loop.create_future()
        self._waiting.append((texts, own))
        if self._computing is None or self._computing.done():
            self._computing = asyncio.create_task(self._compute())
        return await own

    async def _compute(self) -> None:
        """Compute what waits, as much as may be at once, until nothing does."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch = [self._waiting.pop(0)]
            while self._waiting and sum(len(t) for t, _ in batch) + len(self._waiting[0][0]) <= MOST_AT_ONCE:
                batch.append(self._waiting.pop(0))
            try:
                rows = await loop.run_in_executor(
                    self._thread, answered, self._model, [texts for texts, _ in batch]
                )
            except Exception as error:
                for _, own in batch:
                    _settle(own, error)
            else:
                for (_, own), found in zip(batch, rows, strict=True):
                    _settle(own, found)


def _settle(own: "asyncio.Future[Any]", found: Any) -> None:
    if own.done():  # whoever asked has gone
        return
    if isinstance(found, Exception):
        own.set_exception(found)
    else:
        own.set_result(found)


async def _body(receive: Callable[[], Awaitable[Message]]) -> bytes:
    """Return a request's body. Raises Refused where it is too long, breaks off, or does not come."""
    parts, size = [], 0
    while True:
        try:
            message = await asyncio.wait_for(receive(), WAIT_SECONDS)
        except TimeoutError as error:
            raise Refused(408, f"the rest of the request did not come in {WAIT_SECONDS:.0f} s") from error
        if message["type"] != "http.request":
            raise Refused(400, "the request broke off")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BYTES:
            raise Refused(413, f"a request has at most {MOST_BYTES:,} bytes")
        if not message.get("more_body"):
            return b"".join(parts)


def listening(port: int) -> socket.socket:
    """Return a socket that takes connections on loopback, at a free port for 0. Raises OSError for one in use."""
    # Named as TCP, or asyncio leaves the delay of small packets on: 40 ms for each answer on a kept connection.
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(BACKLOG)  # now, or who is told the port before the server's loop runs is turned away
    except OSError:
        listener.close()
        raise
    return listener


def serve(model: "Model", about: dict[str, Any], port: int, ready: Callable[[int], None]) -> None:
    """Serve a model on loopback until SIGTERM or Ctrl-C; `ready` is told the port. Raises OSError for one in use."""
    import uvicorn

    with listening(port) as listener:
        config = uvicorn.Config(
            ModelServer(model, about), log_level="error", access_log=False, lifespan="off", timeout_graceful_shutdown=5,
            server_header=False, backlog=BACKLOG,
        )  # fmt: skip
        ready(listener.getsockname()[1])
        uvicorn.Server(config).run(sockets=[listener])
