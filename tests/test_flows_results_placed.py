"""Ranks on a leaderboard: by tests of pairs where predictions are here, by intervals else, and in every rendering."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

from textbench.flows.results import placed as module
from textbench.flows.results.leaderboard import FORMATS, MARKED, boards
from textbench.flows.results.placed import INDEPENDENT, MIXED, PAIRED, placed
from textbench.flows.results.summary import DEFAULT, ENSEMBLED, KINDS, TUNED

N = 400
HALF = 1.96 * np.sqrt(0.09 / N)  # of 90 % of N documents, about
ENSEMBLE = "ensemble(tfidf, nb)"


def made(method: str, n_right: int, **other: Any) -> dict[str, Any]:
    """A run that is right on the first so many of N documents: of two the worse one is right nowhere else."""
    return {
        "dataset": "data", "method": method, "protocol": "honest", "seed": 0, "trials": 0, "key": method,
        "metrics": {"accuracy": n_right / N}, "seconds": {}, "peak_mb": None, "error": None, "params": {},
        "created": 1.0, "documents_95": {"accuracy": HALF}, "n_right": n_right,
        "corpus": {"documents_sha256": "1" * 64, "n_train": N, "n_test": N, "n_labels": 2},
    } | other  # fmt: skip


ROWS = [made(ENSEMBLE, 364), made("tfidf", 363, trials=20), made("nb", 348), made("lsi", 120)]


@pytest.fixture(autouse=True)
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the predictions of a run be what its row says."""

    def table_of(home: Path, row: dict[str, Any]) -> pyarrow.Table:
        right, target = np.arange(N) < row["n_right"], np.arange(N) % 2
        return pyarrow.table({"target": target, "predicted": np.where(right, target, 1 - target)})

    monkeypatch.setattr(module, "predictions", table_of)


def test_pairs_tell_more_than_intervals() -> None:
    """On the same documents fifteen more are no chance; intervals that are taken as independent cannot tell."""
    alone, paired = placed(ROWS), placed(ROWS, home=Path())
    assert [s.rank for s in alone] == [(1, 3), (1, 3), (1, 3), (4, 4)]
    assert [s.ties for s in alone] == ["a", "a", "a", "b"]
    assert {s.ranked_by for s in alone} == {INDEPENDENT}
    assert [s.rank for s in paired] == [(1, 2), (1, 2), (3, 3), (4, 4)]
    assert [s.ties for s in paired] == ["a", "a", "b", "c"]
    assert {s.ranked_by for s in paired} == {PAIRED}


def test_what_has_no_predictions_or_other_documents_is_compared_by_its_interval() -> None:
    for other in ({"key": None}, {"corpus": {"documents_sha256": "2" * 64}}):
        found = placed([*ROWS[:2], ROWS[2] | other, ROWS[3]], home=Path())
        assert [s.rank for s in found] == [(1, 3), (1, 3), (1, 3), (4, 4)]
        assert {s.ranked_by for s in found} == {MIXED}


def test_seeds_that_speak_for_the_other_one_tell_nothing_apart() -> None:
    """On the seed in common nb is far better; its other seed makes its mean lower."""
    rows = [made("tfidf", 300), made("nb", 390), made("nb", 120, seed=1)]
    found = placed(rows, home=Path())
    assert [s.mean["accuracy"] > 0.7 for s in found] == [False, True]
    assert [s.rank for s in found] == [(1, 2), (1, 2)]


def test_every_rendering_has_ranks_and_kinds() -> None:
    assert KINDS == ("default", "tuned", "ensembled")
    lines = list(csv.DictReader(io.StringIO(FORMATS["csv"](ROWS, None, Path()))))
    assert [line["kind"] for line in lines] == [ENSEMBLED, TUNED, DEFAULT, DEFAULT]
    assert [(line["rank_least"], line["rank_greatest"], line["ties"]) for line in lines][1:3] == [
        ("1", "2", "a"),
        ("3", "3", "b"),
    ]
    told = [json.loads(line) for line in FORMATS["json"](ROWS, None, Path()).splitlines()]
    assert [(one["kind"], one["rank"], one["ties"]) for one in told][:2] == [
        (ENSEMBLED, [1, 2], "a"),
        (TUNED, [1, 2], "a"),
    ]
    markdown = FORMATS["markdown"](ROWS, None, Path())
    assert "| tfidf (20 trials) | tuned | 90.75 ± 2.94 d | 1-2 a |" in markdown and PAIRED in markdown
    (terminal,) = boards(ROWS, None, MARKED, Path())
    assert terminal.headings[1] == ("kind", "settings") and terminal.may_go[0] == "kind"
    (alike,) = boards(ROWS[2:], None, home=Path())
    assert [name for name, _ in alike.headings][:3] == ["method", "accuracy", "ranks"]
    (alone,) = boards(ROWS[:1])
    assert "ranks" not in dict(alone.headings) and "Ranks" not in alone.note
