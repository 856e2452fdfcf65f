"""Text vectors: an artifact by the model's fingerprint, no text embedded twice, and what a dry run says of them."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.own_documents import write
from tests.small_model import HIDDEN, save_model
from textbench.featurizers._encoders.encoder import Encoder, encoder_of
from textbench.flows.cli import app
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import Request
from textbench.flows.results.rows import result_row
from textbench.tasks import InputError, text_vectors
from textbench.tasks.storage import garbage
from textbench.tasks.storage import store as store_module
from textbench.tasks.storage.locks import locked
from textbench.tasks.storage.store import Store

TEXTS = [f"w{i % 7} w{i % 5 + 10} w{i % 11 + 20}" for i in range(30)] + [" ".join(["w1"] * 30), ""]
LONG = 30


@pytest.fixture
def home(tmp_path: Path) -> Path:
    save_model(tmp_path / "model")
    rows = "".join(
        f"{text},{'ab'[i % 2]},{'test' if i % 3 == 0 else 'train'}\n" for i, text in enumerate(TEXTS)
    )
    write(tmp_path, "made.csv", f"text,label,part\n{rows}")
    return tmp_path


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that was embedded, in order."""
    seen: list[str] = []
    encode = Encoder.encode

    def noted(self: Encoder, texts: Sequence[str]) -> np.ndarray:
        seen.extend(texts)
        return encode(self, texts)

    monkeypatch.setattr(Encoder, "encode", noted)
    return seen


def cell_of(home: Path, params: str = "", **options: Any) -> Cell:
    own = {"path": str(home / "made.csv"), "split_column": "part"}
    method = f"sentence(model={str(home / 'model')!r}, backend='numpy'{params})"
    return plan(Request([], [method], own=own, **options))[0]


def test_a_run_embeds_each_text_once_and_says_what_was_cut(home: Path, encoded: list[str]) -> None:
    store, cell = Store(home / "store", isolated=False), cell_of(home)
    row = result_row(cell, store)
    assert "text_vectors" in row["seconds"]
    assert sorted(encoded) == sorted(set(TEXTS))
    result_row(cell_of(home, ", normalize=False", protocol="transductive", seeds=[3]), store)
    assert sorted(encoded) == sorted(set(TEXTS))  # trials, seeds and protocols share them
    about = store.open(cell.references["text_vectors"]).json("about")
    assert sum(about[part]["n_documents_cut"] for part in about) == 1
    assert sum(about[part]["n_tokens_cut"] for part in about) == LONG - 18
    assert sum(about[part]["n_tokens"] for part in about) == 30 * 3 + LONG
    result_row(cell_of(home, ", max_tokens=5"), store)
    assert len(encoded) == 2 * len(set(TEXTS))


def test_embedding_is_timed_the_first_time(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed warm is computed twice; of embeddings the second time would read what the first one kept."""
    call, called = store_module._call, []

    def noted(function: str, job: store_module.Job) -> None:
        called.append(function)
        call(function, job)

    monkeypatch.setattr(store_module, "_call", noted)
    Store(home / "store", isolated=False, warm=True).ensure(cell_of(home).references["text_vectors"])
    assert called.count("textbench.tasks.text_vectors:compute") == 1


def test_what_a_killed_run_had_embedded_is_kept_but_for_one_chunk(
    home: Path, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_vectors, "CHUNK", 4)
    store, encoder = Store(home / "store"), encoder_of(str(home / "model"), backend="numpy")
    texts = list(dict.fromkeys(TEXTS))
    plain = encoder.encode(texts)
    encoded.clear()
    made, keep = {"fingerprint": "f"}, text_vectors._keep

    def killed(folder: Path, digests: Sequence[bytes], vectors: np.ndarray) -> None:
        if len(encoded) > 8:
            raise KeyboardInterrupt
        keep(folder, digests, vectors)

    monkeypatch.setattr(text_vectors, "_keep", killed)
    with pytest.raises(KeyboardInterrupt):
        text_vectors.embedded(texts, encoder, made, store)
    monkeypatch.setattr(text_vectors, "_keep", keep)
    encoded.clear()
    found = text_vectors.embedded(texts, encoder, made, store)
    assert encoded == texts[8:]
    assert (np.array([found[text] for text in texts]) == plain).all()
    # A chunk that is damaged counts as none; older ones do not count afresh.
    folder = next((home / garbage.EMBEDDINGS).iterdir())
    sorted(folder.glob("*.npz"))[0].write_bytes(b"PK")
    encoded.clear()
    text_vectors.embedded(texts, encoder, made, store)
    assert encoded == texts[:4]
    encoded.clear()
    text_vectors.embedded(texts, encoder, made, Store(home / "store", not_before=9e9))
    assert encoded == texts


def test_a_static_model_is_distilled_once_for_all_data_sets(home: Path) -> None:
    write(home, "other.csv", (home / "made.csv").read_text().replace("w3", "w4"))
    store, method = (
        Store(home / "store", isolated=False),
        f"static(model={'distil:' + str(home / 'model')!r})",
    )
    own = {"split_column": "part"}
    cells = [
        plan(Request([], [method], own=own | {"path": str(home / name)}))[0]
        for name in ("made.csv", "other.csv")
    ]
    assert cells[0].references["piece_vectors"].key == cells[1].references["piece_vectors"].key
    row = result_row(cells[0], store)
    assert {"piece_vectors", "featurize"} <= row["seconds"].keys() and not row["error"]
    with pytest.raises(InputError, match="static: model 'no/such' is not on this machine"):
        plan(Request(["r8"], ["static(model='distil:no/such')"]))


def test_another_model_in_the_same_folder_is_another_artifact(home: Path) -> None:
    first = cell_of(home).references["text_vectors"]
    save_model(home / "model", seed=1)
    second = cell_of(home).references["text_vectors"]
    assert first.key != second.key and first.params["encoding"] == second.params["encoding"]
    with pytest.raises(InputError, match="sentence: model '/no/model' is not on this machine"):
        plan(Request(["r8"], ["sentence(model='/no/model')"]))


def test_a_dry_run_counts_the_pieces_that_are_to_be_read(home: Path) -> None:
    store, cell = Store(home / "store", isolated=False), cell_of(home)
    vectors = cell.references["text_vectors"]
    assert text_vectors.predicted(store, vectors) is None  # the documents are not read yet
    store.ensure(cell.references["ingest"])
    found = text_vectors.predicted(store, vectors)
    assert found is not None
    different = [text.split() for text in dict.fromkeys(TEXTS)]
    assert found["n_tokens"] == sum(map(len, different)) and found["n_documents_cut"] == 1
    assert found["seconds"] > 0
    store.ensure(vectors)
    assert text_vectors.predicted(store, vectors) is None
    assert store.open(vectors).array("train").shape[1] == HIDDEN


def test_a_dry_run_of_documents_never_seen_predicts_their_embedding(
    home: Path, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(home / "results"))
    monkeypatch.setenv("COLUMNS", "120")
    method = f"sentence(model={str(home / 'model')!r}, backend='numpy')"
    asked = [
        "run",
        "--data",
        str(home / "made.csv"),
        "--split-column",
        "part",
        "-m",
        method,
        "-m",
        "majority",
    ]

    def said(*words: str) -> str:
        result = CliRunner().invoke(app, [*asked, "--seeds", "2", "--dry-run", *words])
        assert result.exit_code == 0, result.output
        return " ".join(result.stdout.split())

    found = said()
    assert found.count(" s to embed") == 1 and found.count("unknown") == 3  # the second seed has the first's
    n_texts = len(set(TEXTS))
    assert f"CPU seconds to embed {n_texts} texts" in found and "of the texts are cut" in found
    rows = list(map(json.loads, CliRunner().invoke(app, [*asked, "--dry-run", "--json"]).stdout.splitlines()))
    assert rows[0]["embedding_seconds"] > 0 and rows[0]["estimated_seconds"] is None
    assert rows[-1]["embedding_seconds"] is None
    assert encoded == []


def test_chunks_are_in_the_stores_size_and_pruned_when_they_are_old(
    home: Path, monkeypatch: pytest.MonkeyPatch, encoded: list[str]
) -> None:
    monkeypatch.setattr(text_vectors, "CHUNK", 10)
    monkeypatch.setenv("TEXTBENCH_HOME", str(home))
    store, cell = Store(home / "store", isolated=False), cell_of(home)
    store.ensure(cell.references["text_vectors"])
    chunks = garbage.chunks(store.root)
    octets = sum(path.stat().st_size for path in chunks)

    def said(*words: str) -> str:
        result = CliRunner().invoke(app, ["store", *words])
        assert result.exit_code == 0, result.output
        return result.stdout

    found = {line["stage"]: line for line in map(json.loads, said("size", "--json").splitlines())}
    assert found["embeddings"] == {
        "stage": "embeddings",
        "artifacts": len(chunks),
        "bytes": octets,
        "seconds": None,
    }
    assert "embeddings, kept in chunks" in said("size") and len(chunks) == -(-len(set(TEXTS)) // 10)
    os.utime(chunks[0], (1.0, 1.0))
    with locked(chunks[0].parent / ".lock"):  # a model that is just embedding keeps its chunks
        assert json.loads(said("prune", "--older-than", "12h", "--yes", "--json"))["deleted"] == 0
    size = chunks[0].stat().st_size
    assert json.loads(said("prune", "--older-than", "12h", "--yes", "--json")) == {
        "deleted": 1,
        "bytes": size,
    }
    encoded.clear()
    result_row(cell, Store(home / "store", isolated=False))
    assert not encoded  # the artifact itself is there
    said("prune", "--older-than", "0s", "--yes")
    assert not garbage.chunks(store.root)
    result_row(cell, store)
    assert sorted(encoded) == sorted(set(TEXTS))
