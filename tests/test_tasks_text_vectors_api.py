"""The method api from the command to its row: what is sent, kept, said before a run, and never sent twice."""

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from tests import embeddings_stub as stubs
from tests.embeddings_stub import Stub
from tests.own_documents import write
from textbench.featurizers._encoders import endpoint
from textbench.featurizers._encoders.endpoint import ALLOW, CANARY, NoAnswer
from textbench.flows.cli.summary import print_plan
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import Request
from textbench.flows.results.rows import result_row
from textbench.flows.run.preflight import require_data
from textbench.tasks import InputError, text_vectors
from textbench.tasks.storage.store import Store
from textbench.tasks.tracking.tracker import Tracker, read_settings

TEXTS = [f"{'iron' if i % 2 else 'apple'} text {i}" for i in range(20)] + ["iron text 1"]
DIFFERENT = list(dict.fromkeys(TEXTS))


@pytest.fixture
def stub() -> Iterator[Stub]:
    with stubs.serving() as stub:
        yield stub


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(ALLOW, raising=False)
    rows = "".join(
        f"{text},{text.split()[0]},{'train' if i % 3 else 'test'}\n" for i, text in enumerate(TEXTS)
    )
    write(tmp_path, "made.csv", f"text,label,part\n{rows}")
    return tmp_path


def cell_of(home: Path, url: str, params: str = "", **options: object) -> Cell:
    own = {"path": str(home / "made.csv"), "split_column": "part"}
    (cell,) = plan(Request([], [f"api(model='m', url={url!r}, key_env=None{params})"], own=own, **options))
    return cell


def test_each_text_is_sent_once_and_the_row_says_where(home: Path, stub: Stub) -> None:
    store, cell = Store(home / "store", isolated=False), cell_of(home, stub.url)
    row = result_row(cell, store)
    assert sorted(stub.answered) == sorted([CANARY, *DIFFERENT])
    sent = {"to": stub.url.split("/")[2], "requests": 2, "texts": 21, "tokens": 63}
    assert row["sent"] == sent and row["unread"] == {}
    for others in ({"seeds": [3]}, {"protocol": "transductive"}, {"trials": 2}):
        assert not result_row(cell_of(home, stub.url, **others), store)["error"]
    assert len(stub.answered) == 21
    result_row(cell_of(home, stub.url, ", prompt='query: '"), store)
    assert len(stub.answered) == 42


def test_a_run_that_was_killed_pays_for_no_text_twice(
    home: Path, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service dies after two requests: what these answered is kept, and the rest is asked of it when it is back."""
    monkeypatch.setattr(endpoint, "MOST_TEXTS", 6)
    store, cell = Store(home / "store", isolated=False), cell_of(home, stub.url)
    vectors = cell.references["text_vectors"]
    stub.faults = [lambda *_: False] * 3 + [stubs.status(402, b"no money left")]
    with pytest.raises(NoAnswer, match="answers 402: no money left"):
        store.ensure(vectors)
    assert len(stub.answered) == 1 + 2 * 6
    stub.asked.clear()
    store.ensure(vectors)
    assert stub.asked[0]["input"] == [CANARY]
    assert sorted(set(stub.answered)) == sorted([CANARY, *DIFFERENT])
    assert len(stub.answered) == len(DIFFERENT) + 2  # the canary once a start


def test_a_model_changed_behind_its_name_stops_the_run(home: Path, stub: Stub) -> None:
    store, cell = Store(home / "store", isolated=False), cell_of(home, stub.url)
    store.ensure(cell.references["text_vectors"])
    stub.seed = "another model"
    csv = home / "made.csv"
    csv.write_text(csv.read_text() + "iron text 99,iron,test\n")
    with pytest.raises(NoAnswer, match=r"m at 127.0.0.1:.* is another model than before"):
        store.ensure(cell_of(home, stub.url).references["text_vectors"])
    assert stub.answered.count(CANARY) == 2 and "iron text 99" not in stub.answered


def test_a_dry_run_says_how_much_would_be_sent_where(home: Path, stub: Stub) -> None:
    store = Store(home / "store", isolated=False)

    def said(cell: Cell) -> str:
        store.ensure(cell.references["ingest"])
        with redirect_stdout(io.StringIO()) as out:
            print_plan(home, [cell], as_json=False)
        return " ".join(out.getvalue().split())

    n_tokens = sum(-(-len(text) // 4) for text in DIFFERENT)
    words = f"20 texts, about {n_tokens} tokens, are to be sent to"
    assert f"{words} {stub.url.split('/')[2]}, which is this machine." in said(cell_of(home, stub.url))
    assert f"{words} host.invalid, away from this machine." in said(
        cell_of(home, "https://host.invalid/v1", trials=3)
    )
    assert not stub.asked
    store.ensure(cell_of(home, stub.url).references["text_vectors"])
    assert "to be sent" not in said(cell_of(home, stub.url))


def test_a_run_that_may_not_send_or_has_no_key_stops_before_it_begins(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = Tracker(read_settings(home, "none"))
    notes: list[str] = []
    away = cell_of(home, "https://host.invalid/v1")
    with pytest.raises(InputError, match=r"api: texts would be sent to host.invalid: say --allow-upload"):
        require_data(home, [away], tracker, notes.append)
    monkeypatch.setenv(ALLOW, "1")
    require_data(home, [away], tracker, notes.append)
    assert notes == ["the texts of made are sent to host.invalid"]
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    own = {"path": str(home / "made.csv"), "split_column": "part"}
    with pytest.raises(InputError, match="api: the environment variable OPENAI_API_KEY must hold the key"):
        require_data(home, plan(Request([], ["api"], own=own)), tracker)
    with pytest.raises(InputError, match="api: url must begin with https:// where texts leave this machine"):
        cell_of(home, "http://host.invalid/v1")


def test_vectors_that_are_kept_are_those_of_the_service(home: Path, stub: Stub) -> None:
    store, cell = Store(home / "store", isolated=False), cell_of(home, stub.url, ", normalize=False")
    result_row(cell, store)
    texts = store.open(cell.references["ingest"]).table("test", ["text"])["text"].to_pylist()
    features = store.open(cell.references["featurize"]).matrix("test")
    assert (features == np.array([stubs.vector(text) for text in texts])).all()
    assert text_vectors.predicted(store, cell.references["text_vectors"]) is None
