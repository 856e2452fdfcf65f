"""Texts turned into vectors by an endpoint over HTTP: POST <url>/embeddings, as OpenAI's API and its copies have it.

Nothing else of this package sends texts away. They go only to this machine itself, or where `TEXTBENCH_ALLOW_UPLOAD` is
1, and then over https. The key is read from the environment as a request is made, and is nowhere else.
"""

import base64
import binascii
import email.utils
import http.client
import ipaddress
import json
import os
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from textbench.featurizers._encoders.places import NoModel

ALLOW = "TEXTBENCH_ALLOW_UPLOAD"
CANARY = "The quick brown fox jumps over the lazy dog."
ALIKE = 0.999  # the least cosine of one text's vectors by one model: services do not give the same bits twice
MOST_TEXTS, MOST_TOKENS = 128, 50_000  # of a request
BYTES = 4  # a token, about
N_TRIES = 6
MOST_SECONDS, MOST_ASKED = 60.0, 600.0  # between tries: by our own count, and as a service may ask
# What a service answers to texts that it does not take; half of them may be taken.
REFUSALS = (400, 413, 422)


class NoAnswer(RuntimeError):
    """An endpoint that does not answer, or not what was asked for: the message says what it did."""


class _Refused(NoAnswer):
    """Texts that the endpoint does not take."""


class _Passing(NoAnswer):
    """A fault that may pass; `wait` are the seconds that the endpoint asks to wait, if it does."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: texts and key go where the user said, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class Endpoint:
    """A model behind `url`, with `prompt` before every text, and vectors of so many `dimensions` if that is asked.

    `key_env` names the environment variable that holds the key. `usage` counts what was sent. `sleep`, `clock` and
    `jitter` are those of the waits between tries.
    """

    model: str
    url: str
    key_env: str | None = None
    dimensions: int | None = None
    prompt: str = ""
    timeout: float = 60.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False, compare=False)
    clock: Callable[[], float] = field(default=time.time, repr=False, compare=False)
    jitter: Callable[[], float] = field(default=random.random, repr=False, compare=False)
    usage: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("requests", "texts", "tokens"), 0), compare=False
    )

    @property
    def host(self) -> str:
        """Where texts go."""
        return urllib.parse.urlsplit(self.url).netloc

    @property
    def is_here(self) -> bool:
        """Whether the endpoint is on this machine."""
        name = urllib.parse.urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return name == "localhost"

    def described(self) -> dict[str, Any]:
        """Return what shapes the vectors, as JSON values."""
        return {"model": self.model, "url": self.url, "dimensions": self.dimensions, "prompt": self.prompt}

    def require(self) -> None:
        """Raise NoModel where texts may not be sent, or the key is missing."""
        if not self.is_here and os.environ.get(ALLOW) != "1":
            raise NoModel(
                f"texts would be sent to {self.host}: say --allow-upload, or set {ALLOW}=1, if they may"
            )
        self._headers()

    def _headers(self) -> dict[str, str]:
        found = {"Content-Type": "application/json"}
        if self.key_env is not None:
            key = os.environ.get(self.key_env, "").strip()
            if not key:
                raise NoModel(f"the environment variable {self.key_env} must hold the key of {self.host}")
            if not re.fullmatch(r"[!-~]+", key):
                raise NoModel(f"{self.key_env} holds no key: one is of printable ASCII without spaces")
            found["Authorization"] = f"Bearer {key}"
        return found

    @cached_property
    def canary(self) -> np.ndarray:
        """The vector of one sentence, float32 (n_dimensions,), by which a model that was changed is known."""
        return np.asarray(self._answered([CANARY])[0], dtype=np.float32)

    @property
    def n_dimensions(self) -> int:
        """The numbers of a vector."""
        return len(self.canary)

    def check(self, kept: np.ndarray) -> None:
        """Raise NoAnswer where the canary's vector is not what was kept of it, float32 (n_dimensions,)."""
        cosine = 0.0
        if len(kept) == len(self.canary):
            lengths = np.linalg.norm(kept) * np.linalg.norm(self.canary)
            cosine = float(kept @ self.canary / lengths) if lengths else 0.0
        if cosine < ALIKE:
            raise NoAnswer(
                f"{self.model} at {self.host} is another model than before: the cosine of one sentence's vectors must "
                f"be {ALIKE} at least, got {cosine:.3f}"
            )

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the texts' vectors, float32 (n_texts, n_dimensions); an empty one has zeros and is not sent.

        Raises NoAnswer for an endpoint that does not answer, or not what was asked for.
        """
        width = self.n_dimensions
        known = {CANARY: self.canary}
        for some in self.batches([text for text in texts if text not in known], len(texts)):
            sent = [text for text in some if text.strip()]
            known |= dict(zip(sent, self._answered(sent), strict=True))
        wrong = next((len(row) for row in known.values() if len(row) != width), None)
        if wrong is not None:
            raise NoAnswer(f"{self.host} must give vectors of {width} numbers, as before, got {wrong}")
        nothing = np.zeros(width, dtype=np.float32)
        return np.array([known.get(text, nothing) for text in texts], dtype=np.float32).reshape(-1, width)

    def batches(self, texts: Sequence[str], size: int) -> Iterator[list[str]]:
        """Yield different texts in their order, as many as one request may hold, at most `size`."""
        some: list[str] = []
        n_tokens = 0
        for text in dict.fromkeys(texts):
            more = self.tokens(text)
            if some and (len(some) >= min(size, MOST_TEXTS) or n_tokens + more > MOST_TOKENS):
                yield some
                some, n_tokens = [], 0
            some.append(text)
            n_tokens += more
        if some:
            yield some

    def tokens(self, text: str) -> int:
        """Return about how many tokens a text has; only the endpoint knows."""
        return -(-len((self.prompt + text).encode("utf-8", "replace")) // BYTES) if text.strip() else 0

    def _answered(self, texts: list[str]) -> list[np.ndarray]:
        """Return a vector a text; refused texts are halved until the one at fault is alone, and named."""
        if not texts:
            return []
        try:
            return self._tried(texts)
        except _Refused as refused:
            if len(texts) == 1:
                raise NoAnswer(f"{refused} (to the text that begins {texts[0][:40]!r})") from refused
        middle = len(texts) // 2
        return self._answered(texts[:middle]) + self._answered(texts[middle:])

    def _tried(self, texts: list[str]) -> list[np.ndarray]:
        for number in range(N_TRIES):
            try:
                return self._read(self._sent(texts), len(texts))
            except _Passing as fault:
                if number + 1 == N_TRIES:
                    raise NoAnswer(f"{fault}, {N_TRIES} times") from fault
                wait = (
                    min(MOST_SECONDS, 2.0**number) * (1 + self.jitter()) / 2
                    if fault.wait is None
                    else fault.wait
                )
                if wait > MOST_ASKED:
                    raise NoAnswer(f"{fault} and asks to wait {wait:.0f} seconds; run again then") from fault
                self.sleep(wait)
        raise AssertionError  # the last try raises

    def _sent(self, texts: list[str]) -> bytes:
        """Return what the endpoint answers to a request for these texts' vectors."""
        self.require()
        asked: dict[str, Any] = {"model": self.model, "input": [self.prompt + text for text in texts]}
        asked |= {"encoding_format": "base64"}
        asked |= {"dimensions": self.dimensions} if self.dimensions else {}
        request = urllib.request.Request(
            f"{self.url.rstrip('/')}/embeddings", json.dumps(asked).encode(), self._headers(), method="POST"
        )
        direct = [urllib.request.ProxyHandler({})] if self.is_here else []
        self.usage["requests"] += 1
        try:
            with urllib.request.build_opener(_NoRedirect, *direct).open(
                request, timeout=self.timeout
            ) as response:
                return bytes(response.read())
        except urllib.error.HTTPError as error:
            with error:
                raise self._fault(error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise _Passing(f"{self.host} does not answer ({reason or type(error).__name__})") from None

    def _fault(self, error: urllib.error.HTTPError) -> NoAnswer:
        said = " ".join(error.read(4096).decode("utf-8", "replace").split())[:200]
        if self.key_env and (key := os.environ.get(self.key_env, "").strip()):
            said = said.replace(key, "...")
        message = f"{self.host} answers {error.code}" + (f": {said}" if said else "")
        if error.code == 429 or error.code >= 500:
            return _Passing(message, self._asked_to_wait(error.headers.get("Retry-After")))
        return (_Refused if error.code in REFUSALS else NoAnswer)(message)

    def _asked_to_wait(self, said: str | None) -> float | None:
        """Return the seconds that a header Retry-After asks for: it has a number, or a date."""
        if said is None:
            return None
        try:
            return max(0.0, float(said))
        except ValueError:
            pass
        try:
            return max(0.0, email.utils.parsedate_to_datetime(said).timestamp() - self.clock())
        except ValueError:
            return None

    def _read(self, body: bytes, n_texts: int) -> list[np.ndarray]:
        """Return the vectors of an answer in the order of the texts: one a text, of one width, all numbers finite."""
        try:
            answer = json.loads(body)
        except ValueError:
            raise _Passing(f"{self.host} answers what is no JSON ({body[:40]!r})") from None
        try:
            rows = {row["index"]: _vector(row["embedding"]) for row in answer["data"]}
            n_rows, n_tokens = len(answer["data"]), int((answer.get("usage") or {}).get("total_tokens") or 0)
        except (LookupError, TypeError, ValueError, AttributeError, binascii.Error) as error:
            raise NoAnswer(
                f"{self.host} must answer data with index and embedding, got another form "
                f"({type(error).__name__}: {error})"
            ) from None
        if n_rows != n_texts or rows.keys() != set(range(n_texts)):
            raise NoAnswer(
                f"{self.host} must answer {n_texts} vectors of index 0 .. {n_texts - 1}, got {n_rows} of "
                f"{', '.join(map(str, list(rows)[:5]))}"
            )
        widths = {len(row) for row in rows.values()}
        if len(widths) > 1 or not widths <= {self.dimensions or max(widths)} or 0 in widths:
            wanted = f"{self.dimensions} numbers" if self.dimensions else "one width"
            raise NoAnswer(
                f"{self.host} must answer vectors of {wanted}, got {', '.join(map(str, sorted(widths)))}"
            )
        if not all(np.isfinite(row).all() for row in rows.values()):
            raise NoAnswer(f"{self.host} must answer finite numbers, got NaN or infinity")
        self.usage["texts"] += n_texts
        self.usage["tokens"] += n_tokens
        return [rows[place] for place in range(n_texts)]


def _vector(given: Any) -> np.ndarray:
    """Return an embedding, float32 (n_dimensions,): a list of numbers, or their bytes, little-endian, in base64."""
    if isinstance(given, str):
        return np.frombuffer(base64.b64decode(given, validate=True), dtype="<f4").astype(np.float32)
    row = np.array(given, dtype=np.float32)
    if row.ndim != 1:
        raise ValueError(f"an embedding has one axis, got {row.ndim}")
    return row


def endpoint_of(
    model: str, url: str, key_env: str | None = None, dimensions: int | None = None, prompt: str | None = None
) -> Endpoint:
    """Return an endpoint whose settings are checked; nothing is sent.

    Raises NoModel for a model or an address that is none, http to another machine, and a name of no variable. Values
    in which a key may stand are not repeated.
    """
    if not model:
        raise NoModel("model must name a model of the endpoint, as in api(model='...', url='https://.../v1')")
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NoModel("url must be the address of an endpoint, as in url='https://host/v1'")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise NoModel(
            "url must be an address alone, without user, password or query; the key is read from key_env"
        )
    if key_env is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key_env):
        raise NoModel("key_env must be the name of an environment variable, not the key itself")
    found = Endpoint(model, url, key_env, dimensions, prompt or "")
    if parts.scheme == "http" and not found.is_here:
        raise NoModel(
            f"url must begin with https:// where texts leave this machine, got http://{parts.hostname}"
        )
    return found
