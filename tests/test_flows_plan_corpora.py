"""Data sets of runs: only runs of the same documents, split and labels share a table, whatever they were called."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from tests.made_runs import one_label
from textbench.flows.plan.cell import estimate, plan
from textbench.flows.plan.corpora import choose_datasets, documents_in, newest, told_apart
from textbench.flows.plan.request import Request
from textbench.flows.referee.measurement import FaithfulRuns
from textbench.flows.results.comparison import runs_of_methods
from textbench.flows.results.index import Index
from textbench.flows.results.leaderboard import FORMATS
from textbench.flows.results.runs import command_of
from textbench.flows.results.summary import latest, summarise
from textbench.flows.results.winner import verdicts
from textbench.tasks import InputError
from textbench.tasks.corpus import Corpus, documents_sha256, identity
from textbench.tasks.sources.user_data import UserData, load, reference
from textbench.tasks.storage.store import Store

TARGET = [0, 1] * 30
GOOD, BAD = TARGET, [1] * 60
CSV = "text,label,topic\n" + "".join(
    f"text number {i} of {'ab'[i % 2]},{'ab'[i % 2]},{'xy'[i // 2 % 2]}\n" for i in range(20)
)


def of(digit: str) -> dict[str, Any]:
    """What a row tells of its documents: a sha256 of one digit, and sizes."""
    return {"documents_sha256": digit * 64, "n_train": 140, "n_test": 60, "n_labels": 2}


def run(home: Path, method: str, predicted: list[int], digit: str = "1", **row: Any) -> dict[str, Any]:
    """A finished run on own data called `data`, of documents that a digit stands for."""
    own = {"own": {"path": f"/{digit}/data.csv", "text_column": "text"}}
    return one_label(
        home, row.pop("dataset", "data"), method, TARGET, predicted, corpus=of(digit), request=own, **row
    )


def corpus(**fields: Any) -> Corpus:
    """A small corpus, but for some fields."""
    whole = {
        "train_texts": ["a", "bc"], "train_targets": np.array([0, 1]), "test_texts": ["d"],
        "test_targets": np.array([1]), "target_names": ["x", "y"], "name": "made", "notes": "",
    }  # fmt: skip
    return Corpus(**(whole | fields))  # type: ignore[arg-type]


def test_two_files_of_one_name_are_two_tables(tmp_path: Path) -> None:
    """The reported case: counts, worse than tfidf on the first file, is not made better by tfidf's run on another."""
    run(tmp_path, "tfidf", GOOD, created=1.0)
    run(tmp_path, "counts", BAD, created=2.0)
    run(tmp_path, "tfidf", BAD, "2", created=3.0, seed=1)
    rows = Index(tmp_path).rows()
    assert [(s.dataset, s.method, s.is_best) for s in summarise(latest(rows))] == [
        ("data", "tfidf", True),
        ("data", "counts", False),
        ("data (2)", "tfidf", True),
    ]
    first, second = verdicts(tmp_path, rows)
    assert first.startswith("data, honest protocol: tfidf is best")
    assert second.startswith("data (2), honest protocol: tfidf is best")
    assert (
        "140 training and 60 test documents, 2 labels, documents' sha256 22222222, first run 1970-01-01"
        in (FORMATS["markdown"](rows))
    )
    with pytest.raises(InputError, match=r"counts has not been run on data \(2\)"):
        runs_of_methods(tmp_path, ["data (2)"], ["tfidf", "counts"], "honest")


def test_the_same_documents_are_one_table_whatever_they_were_called(tmp_path: Path) -> None:
    run(tmp_path, "tfidf", GOOD, created=1.0)
    run(tmp_path, "counts", BAD, created=2.0, dataset="stories")
    rows = Index(tmp_path).rows()
    assert {s.dataset for s in summarise(rows)} == {"stories"}
    assert choose_datasets(rows, ["data", "stories", "r8"]) == ["stories", "stories", "r8"]
    with pytest.raises(InputError, match="there is no data set 'storys'; did you mean stories"):
        choose_datasets(rows, ["storys"])


def test_names_do_not_depend_on_what_is_asked_for(tmp_path: Path) -> None:
    run(tmp_path, "tfidf", GOOD, created=1.0)
    later = run(tmp_path, "tfidf", BAD, "2", created=3.0)
    every = Index(tmp_path).rows()
    just_made = {k: v for k, v in later.items() if k not in ("created", "request")}
    assert [row["dataset"] for row in told_apart(tmp_path, [just_made], among=every)] == ["data (2)"]
    assert told_apart(tmp_path, every) == every


def test_rows_of_earlier_versions_are_looked_up_and_never_merged_by_name(tmp_path: Path) -> None:
    """Two files' runs without `corpus`: their stored recipes tell them apart, and where these are gone their paths."""
    own = {"own": {"path": "/a/data.csv"}}
    one_label(tmp_path, "data", "tfidf", TARGET, GOOD, request=own, edition=1)
    one_label(tmp_path, "data", "counts", TARGET, GOOD, request=own, edition=1)
    one_label(tmp_path, "data", "lsi", TARGET, GOOD, request=own, edition=2)
    gone = one_label(tmp_path, "data", "nmf", TARGET, GOOD, request=own, edition=1)
    (tmp_path / "store" / "evaluate" / gone["key"] / "meta.json").unlink()
    by_data: dict[str, set[str]] = {}
    for row in Index(tmp_path).rows():
        by_data.setdefault(row["dataset"], set()).add(row["method"])
    assert sorted(map(sorted, by_data.values())) == [["counts", "tfidf"], ["lsi"], ["nmf"]]


def test_rows_of_textbenchs_own_data_join_those_that_tell_their_documents(tmp_path: Path) -> None:
    one_label(tmp_path, "r8", "tfidf", TARGET, GOOD, created=1.0)
    one_label(tmp_path, "r8", "counts", TARGET, GOOD, created=2.0, corpus=of("1"))
    assert {row["dataset"] for row in Index(tmp_path).rows()} == {"r8"}
    one_label(tmp_path, "r8", "lsi", TARGET, GOOD, created=3.0, corpus=of("2"), protocol="faithful")
    rows = Index(tmp_path).rows()
    assert {row["method"]: row["dataset"] for row in rows} == {
        "tfidf": "r8", "counts": "r8 (2)", "lsi": "r8 (3)",
    }  # fmt: skip
    assert [(row["method"], row["dataset"]) for row in newest(rows)] == [("lsi", "r8")]
    assert [(row["method"], row["dataset"]) for row in FaithfulRuns(tmp_path).rows] == [("lsi", "r8")]


def test_an_estimate_is_from_runs_of_the_same_documents(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    (cell,) = plan(Request([], ["tfidf"], own={"path": str(path)}))
    home, store = tmp_path / "home", Store(tmp_path / "home" / "store", isolated=False)
    run(home, "tfidf", GOOD, seconds={"tune": 50.0})
    assert estimate([cell], store, Index(home).rows()) == [None]
    corpus = identity(store.open(cell.references["ingest"]))
    one_label(
        home,
        "data",
        "tfidf",
        TARGET,
        GOOD,
        corpus=corpus,
        seconds={"tune": 7.0},
        request={"own": {"path": ""}},
    )
    assert estimate([cell], store, Index(home).rows()) == [7.0]


def test_the_content_alone_makes_the_sha256(tmp_path: Path) -> None:
    """A CSV and a JSON Lines file of the same documents are the same data; another split or column is not."""
    table, lines = tmp_path / "data.csv", tmp_path / "other.jsonl"
    table.write_text(CSV)
    texts = [line.split(",") for line in CSV.splitlines()[1:]]
    lines.write_text("".join(json.dumps({"text": t, "label": a, "topic": b}) + "\n" for t, a, b in texts))
    own = UserData(str(table))
    found = [
        documents_sha256(load(one))
        for one in (own, UserData(str(lines)), replace(own, test_size=0.5), replace(own, label_column="topic"),
                    replace(own, seed=1))
    ]  # fmt: skip
    assert found[0] == found[1]
    assert len(set(found)) == 4


def test_a_stored_corpus_tells_its_content(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    stored = Store(tmp_path / "store", isolated=False).open(reference(UserData(str(path))))
    whole = load(UserData(str(path)))
    known = {"documents_sha256": documents_sha256(whole), "n_train": 14, "n_test": 6, "n_labels": 2}
    assert identity(stored) == known
    # As an earlier version wrote it: worked out from the documents.
    about = stored.folder / "corpus.json"
    about.write_text(json.dumps({k: v for k, v in stored.json("corpus").items() if k not in known}))
    assert identity(stored) == known


def test_the_sha256_by_hand() -> None:
    def number(n: int) -> bytes:
        return n.to_bytes(8, "big")

    def piece(data: bytes) -> bytes:
        return number(len(data)) + data

    def targets(*values: int) -> bytes:
        return number(1) + piece(b"".join(value.to_bytes(8, "little") for value in values))

    expected = number(2) + piece(b"x") + piece(b"y")
    expected += number(2) + piece(b"a") + piece(b"bc") + targets(0, 1)
    expected += number(1) + piece(b"d") + targets(1)
    assert documents_sha256(corpus()) == hashlib.sha256(expected).hexdigest()
    assert documents_sha256(corpus(name="other", notes="else")) == hashlib.sha256(expected).hexdigest()


def test_what_differs_in_content_differs_in_sha256() -> None:
    several = {"train_targets": csr_matrix(np.eye(2, dtype=np.int8)), "test_targets": csr_matrix([[0, 1]])}
    changes: list[dict[str, Any]] = [
        {}, {"train_texts": ["ab", "c"]}, {"train_texts": ["bc", "a"]}, {"test_texts": ["e"]}, several,
        {"train_targets": np.array([1, 0])}, {"test_targets": np.array([0])}, {"target_names": ["xy", ""]},
        {"train_texts": ["a"], "train_targets": np.array([0]), "test_texts": ["bc", "d"],
         "test_targets": np.array([1, 1])},
    ]  # fmt: skip
    assert len({documents_sha256(corpus(**change)) for change in changes}) == len(changes)


texts = st.lists(st.text(max_size=3), min_size=1, max_size=3)


@settings(max_examples=60)
@given(texts, texts, texts, texts)
def test_no_two_contents_collide(a: list[str], b: list[str], c: list[str], d: list[str]) -> None:
    """Texts that join to the same string, or move from one part to the other, are other documents."""
    one, other = (
        documents_sha256(corpus(
            train_texts=train, train_targets=np.zeros(len(train), np.int64),
            test_texts=test, test_targets=np.zeros(len(test), np.int64),
        ))
        for train, test in ((a, b), (c, d))
    )  # fmt: skip
    assert (one == other) == ((a, b) == (c, d))


def test_data_is_called_what_it_is_to_be_called(tmp_path: Path) -> None:
    """The name is the data set's in plans and commands; the documents are the same whatever they are called."""
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    asked = [
        Request([], ["tfidf"], own={"path": str(path), "name": name}) for name in (None, "stories", "r8")
    ]
    assert [plan(request)[0].dataset for request in asked] == ["data", "stories", "own-r8"]
    assert "--name stories" in command_of(asked[1])
    assert "--name" not in command_of(asked[0])
    own = UserData(str(path))
    named = load(replace(own, name="stories"))
    assert named.name == "stories"
    assert documents_sha256(named) == documents_sha256(load(own))
    home = tmp_path / "home"
    places = [reference(replace(own, name=name)) for name in (None, "stories")]
    assert len({documents_in(home, place) for place in places}) == 1


@pytest.mark.parametrize("name", ["", "data (2)", "a b", "a/b", "-a", "é", "x" * 200, "data.csv"])
def test_a_name_that_tables_could_mistake_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    with pytest.raises(
        InputError, match=r"--name must be letters, digits and single hyphens, at most \d+ of them"
    ):
        reference(UserData(str(path), name=name))
