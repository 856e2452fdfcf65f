"""`textbench models` on a model made here: what is listed, what is said of it, and what is not fetched."""

import json
from pathlib import Path

import pytest

from tests.small_model import HIDDEN, save_model
from textbench.flows.cli.models import check_model, get_model, list_models
from textbench.tasks import InputError


def test_models_of_the_hubs_cache_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = save_model(tmp_path / "models--org--name" / "snapshots" / "abc")
    (tmp_path / "models--org--name" / "refs").mkdir()
    (tmp_path / "models--org--name" / "refs" / "main").write_text("abc")
    list_models(json=True)
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"model": "org/name", "folder": str(folder)} in found


def test_a_model_says_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save_model(tmp_path / "model")
    check_model(str(folder), json=True)
    about = json.loads(capsys.readouterr().out)
    wanted = {"dimensions": HIDDEN, "max_tokens": 20, "pooling": "mean", "normalized": True}
    assert about.items() >= wanted.items() and about["prompts"] == {"query": "w1 w2 "}
    with pytest.raises(InputError, match="is not on this machine"):
        check_model("no/such")


def test_nothing_is_fetched_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="TEXTBENCH_OFFLINE is set"):
        get_model("org/name", tmp_path)
    monkeypatch.delenv("TEXTBENCH_OFFLINE")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs huggingface-hub"):
        get_model("org/name", tmp_path)
