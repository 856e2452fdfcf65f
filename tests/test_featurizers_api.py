"""Embeddings by an endpoint: what is sent, every fault of a stub on loopback, and that no key is kept anywhere."""

import email.utils
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import embeddings_stub as stubs
from tests.embeddings_stub import Stub, vector
from textbench.featurizers._encoders import endpoint
from textbench.featurizers._encoders.endpoint import ALLOW, CANARY, Endpoint, NoAnswer, endpoint_of
from textbench.featurizers._encoders.places import NoModel
from textbench.featurizers.api import EndpointVectors

NOW = 1_000_000_000.0
TEXTS = ["one two", "three", "", "four five six", "three"]


@pytest.fixture(scope="module")
def served() -> Iterator[Stub]:
    with stubs.serving() as stub:
        yield stub


@pytest.fixture
def stub(served: Stub, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """The stub as new; this machine's proxies are not for loopback."""
    for name in ("asked", "headers", "paths", "answered", "faults"):
        getattr(served, name).clear()
    served.refused, served.largest, served.ignores_base64, served.seed = set(), None, False, ""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv(ALLOW, raising=False)
    return served


@pytest.fixture
def waits() -> list[float]:
    return []


def of(stub: Stub, waits: list[float] | None = None, **others: Any) -> Endpoint:
    """Return the stub's endpoint; what it waits is noted, and no time passes."""
    noted = waits if waits is not None else []
    return Endpoint("m", stub.url, sleep=noted.append, clock=lambda: NOW, jitter=lambda: 1.0, **others)


def expected(texts: list[str]) -> np.ndarray:
    return np.array([vector(text) if text else np.zeros(stubs.WIDTH) for text in texts], dtype=np.float32)


@pytest.mark.parametrize("is_list", [True, False])
def test_vectors_are_those_of_the_texts_in_any_order_and_form(stub: Stub, is_list: bool) -> None:
    """The stub shuffles; it is asked for base64 and may answer lists all the same."""
    stub.ignores_base64 = is_list
    assert (of(stub).encode(TEXTS) == expected(TEXTS)).all()
    assert [asked["input"] for asked in stub.asked] == [[CANARY], ["one two", "three", "four five six"]]
    assert stub.asked[1] == {"model": "m", "input": stub.asked[1]["input"], "encoding_format": "base64"}
    assert set(stub.paths) == {"/v1/embeddings"}


def test_prompt_and_dimensions_are_sent(stub: Stub) -> None:
    found = of(stub, prompt="query: ", dimensions=stubs.WIDTH)
    found.encode(["one"])
    assert stub.asked[1]["input"] == ["query: one"] and stub.asked[1]["dimensions"] == stubs.WIDTH
    assert found.usage == {"requests": 2, "texts": 2, "tokens": 6}


def test_a_request_holds_so_many_texts_and_tokens(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MOST_TEXTS", 2)
    monkeypatch.setattr(endpoint, "MOST_TOKENS", 10)
    texts = ["a", "b", "c", "d" * 100, "e" * 24, "f" * 24]
    assert (of(stub).encode(texts) == expected(texts)).all()
    assert [len(asked["input"]) for asked in stub.asked] == [1, 2, 1, 1, 1, 1]


@pytest.mark.parametrize("code", [429, 500, 502, 503, 529])
def test_what_may_pass_is_asked_again_after_a_wait_that_doubles(
    stub: Stub, waits: list[float], code: int
) -> None:
    stub.faults = [stubs.status(code)] * 3
    assert (of(stub, waits).encode(TEXTS) == expected(TEXTS)).all()
    assert waits == [1, 2, 4]
    assert sorted(set(stub.answered)) == sorted(stub.answered)  # nothing is paid for twice


def test_a_service_says_how_long_to_wait_in_seconds_or_by_a_date(stub: Stub, waits: list[float]) -> None:
    date = email.utils.formatdate(NOW + 30, usegmt=True)
    past = email.utils.formatdate(NOW - 30, usegmt=True)
    headers = ("7", date, past, "soon")
    stub.faults = [stubs.status(429, Retry_After=said) for said in headers]
    of(stub, waits).encode(["one"])
    assert waits == [7, 30, 0, 8]


def test_a_wait_that_is_too_long_and_faults_without_end_are_said(stub: Stub, waits: list[float]) -> None:
    stub.faults = [stubs.status(429, b"quota", Retry_After="86400")]
    with pytest.raises(NoAnswer, match="answers 429: quota and asks to wait 86400 seconds; run again then"):
        of(stub, waits).encode(["one"])
    stub.faults = [stubs.status(503, b"overloaded")] * 20
    with pytest.raises(NoAnswer, match="answers 503: overloaded, 6 times"):
        of(stub, waits).encode(["one"])
    assert waits == [1, 2, 4, 8, 16] and len(stub.faults) == 14


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (stubs.hangs, "does not answer .timed out"),
        (stubs.dies_midway, "does not answer .IncompleteRead"),
        (stubs.body("<html>"), "answers what is no JSON .b'<html>'"),
    ],
)
def test_a_service_that_hangs_dies_or_stammers_is_asked_again(
    stub: Stub, waits: list[float], fault: stubs.Fault, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.faults = [fault]
    assert (of(stub, waits, timeout=0.1).encode(["one"]) == expected(["one"])).all()
    assert waits == [1]
    monkeypatch.setattr(endpoint, "N_TRIES", 2)
    stub.faults = [fault] * 2
    with pytest.raises(NoAnswer, match=rf"127.0.0.1:\d+ {said}.*2 times"):
        of(stub, waits, timeout=0.1).encode(["one"])


def test_a_service_that_is_not_there(waits: list[float]) -> None:
    gone = Endpoint("m", "http://127.0.0.1:9/v1", sleep=waits.append)
    with pytest.raises(NoAnswer, match=r"127.0.0.1:9 does not answer .*refused.*6 times"):
        gone.encode(["one"])


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (stubs.rows(lambda made: made[:-1]), r"must answer 2 vectors of index 0 .. 1, got 1 of 0"),
        (stubs.rows(lambda made: [*made, made[0]]), "must answer 2 vectors .*got 3"),
        (stubs.rows(lambda made: made, [0, 0]), "must answer 2 vectors of index 0 .. 1, got 2 of 0"),
        (stubs.rows(lambda made: made, [1, 2]), "must answer 2 vectors of index 0 .. 1, got 2 of 1, 2"),
        (stubs.rows(lambda made: [made[0], made[1][:3]]), "must answer vectors of one width, got 3, 8"),
        (stubs.rows(lambda made: [row[:3] for row in made]), "must give vectors of 8 numbers, as before, got 3"),
        (stubs.rows(lambda made: [row[:0] for row in made]), "must answer vectors of one width, got 0"),
        (stubs.rows(lambda made: [made[0], made[1] * np.nan]), "must answer finite numbers, got NaN"),
        (stubs.rows(lambda made: [made[0], made[1] * np.inf]), "must answer finite numbers, got NaN"),
        (stubs.body("[]"), "must answer data with index and embedding, got another form"),
        (stubs.body('{"data": [{"index": 0}, {"index": 1}]}'), "got another form .KeyError"),
        (stubs.body('{"data": [{"index": 0, "embedding": "???"}]}'), "got another form"),
        (stubs.body('{"data": [{"index": 0, "embedding": "AAA="}]}'), "got another form"),
        (stubs.body('{"data": [{"index": 0, "embedding": [[1]]}]}'), "got another form"),
        (stubs.status(401, b"who are you"), "answers 401: who are you"),
        (stubs.status(404), "answers 404"),
        (stubs.status(307, Location="http://127.0.0.1:9/"), "answers 307"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_list", [True, False])
def test_an_answer_that_is_wrong_is_refused_and_not_asked_again(
    stub: Stub, waits: list[float], fault: stubs.Fault, said: str, is_list: bool
) -> None:
    stub.ignores_base64 = is_list
    found = of(stub, waits)
    assert found.n_dimensions == stubs.WIDTH
    stub.faults = [fault]
    with pytest.raises(NoAnswer, match=said):
        found.encode(["one", "two"])
    assert len(stub.asked) == 2 and not waits


def test_another_width_than_was_asked_for(stub: Stub) -> None:
    with pytest.raises(NoAnswer, match="must answer vectors of 3 numbers, got 8"):
        of(stub, dimensions=3).encode(["one"])


def test_refused_texts_are_halved_until_the_one_at_fault_is_named(stub: Stub, waits: list[float]) -> None:
    texts = [f"text {i}" for i in range(20)]
    stub.refused = {"text 13"}
    with pytest.raises(
        NoAnswer, match=r"answers 400: cannot take text 13 .to the text that begins 'text 13'"
    ):
        of(stub, waits).encode(texts)
    assert not waits and len(stub.asked) < 12
    stub.refused, stub.largest = set(), 6
    assert (of(stub).encode(texts) == expected(texts)).all()


def test_the_key_is_of_the_environment_and_in_no_message(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-secret-123"
    found = of(stub, key_env="MY_KEY")
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(NoModel, match=r"environment variable MY_KEY must hold the key of 127.0.0.1"):
        found.encode(["one"])
    assert not stub.asked
    for wrong in ("two words", "line\nbreak", "köy"):
        monkeypatch.setenv("MY_KEY", wrong)
        with pytest.raises(NoModel, match="MY_KEY holds no key") as caught:
            found.encode(["one"])
        assert wrong not in str(caught.value)
    monkeypatch.setenv("MY_KEY", key)
    found.encode(["one"])
    assert {one["Authorization"] for one in stub.headers} == {f"Bearer {key}"}
    stub.faults = [stubs.status(401, f"Incorrect API key provided: {key}.".encode())]
    with pytest.raises(NoAnswer) as refused:
        of(stub, key_env="MY_KEY").encode(["two"])
    method = EndpointVectors(model="m", url=stub.url, key_env="MY_KEY").fit(["one"])
    said = [
        str(refused.value),
        repr(found),
        repr(vars(found)),
        repr(method.to_arrays()),
        repr(found.described()),
    ]
    assert not any(key in one for one in said) and "provided: ..." in said[0]


def test_a_key_in_the_place_of_its_variable_or_in_the_address_is_refused_and_not_repeated() -> None:
    for settings in (
        {"url": "https://host/v1", "key_env": "sk-secret"},
        {"url": "https://user:sk-secret@host/v1"},
        {"url": "https://host/v1?key=sk-secret"},
        {"url": "sk-secret"},
        {"url": ""},
    ):
        with pytest.raises(NoModel) as caught:
            endpoint_of("m", **settings)
        assert "sk-secret" not in str(caught.value)
    with pytest.raises(NoModel, match="model must name a model"):
        endpoint_of("", "https://host/v1")


def test_texts_leave_this_machine_only_where_that_is_said_and_over_https(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(ALLOW, raising=False)
    with pytest.raises(
        NoModel, match="must begin with https:// where texts leave this machine, got http://host"
    ):
        endpoint_of("m", "http://host/v1")
    away = endpoint_of("m", "https://host.invalid/v1")
    with pytest.raises(
        NoModel, match=f"texts would be sent to host.invalid: say --allow-upload, or set {ALLOW}=1"
    ):
        away.encode(["one"])
    monkeypatch.setenv(ALLOW, "1")
    away.require()
    for here in ("http://localhost:1/v1", "http://127.0.0.1/v1", "http://[::1]:8/v1"):
        assert endpoint_of("m", here).is_here


def test_a_model_that_was_changed_behind_its_name_is_noticed(stub: Stub) -> None:
    of(stub).check(vector(CANARY) * 1.0001)
    with pytest.raises(
        NoAnswer, match=r"another model than before: the cosine .* must be 0.999 at least, got"
    ):
        of(stub).check(vector(CANARY, "other"))
    with pytest.raises(NoAnswer, match="another model than before"):
        of(stub).check(vector(CANARY)[:3])


def test_nothing_is_sent_of_texts_whose_vectors_are_known(stub: Stub) -> None:
    known = {text: vector(text) for text in TEXTS if text} | {"": np.zeros(stubs.WIDTH, np.float32)}
    method = EndpointVectors(model="m", url=stub.url, key_env=None, normalize=False).fit(
        TEXTS, text_vectors=known
    )
    assert (method.transform(TEXTS) == expected(TEXTS)).all() and not stub.asked
    again = EndpointVectors.from_arrays(method.to_arrays())
    assert (again.transform(TEXTS) == expected(TEXTS)).all()
    stub.seed = "wide"
    stub.faults = [stubs.rows(lambda made: [row[:3] for row in made])] * 2
    with pytest.raises(
        ValueError, match="another model than this was fitted with: vectors must have 8 numbers, got 3"
    ):
        again.transform(["new"])


def test_only_this_module_of_the_methods_sends_anything() -> None:
    """What methods import to send: one file of the folder featurizers."""
    folder = importlib.import_module("textbench.featurizers").__path__[0]
    senders = [
        path.name
        for path in Path(folder).rglob("*.py")
        if any(word in path.read_text("utf-8") for word in ("urllib.request", "http.client", "import socket"))
    ]
    assert senders == ["endpoint.py"]
