"""Packed boards: what they hold, what they leave out, what is refused, and that computing again finds what differs."""

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textbench.flows.cli.leaderboard import leaderboard
from textbench.flows.plan.base_cell import NEAR
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import Request
from textbench.flows.report import board_page, recorded
from textbench.flows.results import elsewhere, packed
from textbench.flows.results.index import Index
from textbench.flows.results.rows import result_row
from textbench.flows.results.summary import Summary
from textbench.flows.run import verification
from textbench.tasks import InputError
from textbench.tasks.storage.store import Store

OWN = "text,label\n" + "".join(f"{w} film {i},{w}\n" for i in range(20) for w in ("good", "bad"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one finished run on the user's own documents."""
    home = tmp_path_factory.mktemp("home")
    run(home, "nb", Store(home / "store"))
    return home


def run(home: Path, method: str, store: Store, **options: Any) -> Cell:
    """Finish a run on documents of the user's own, put it into the index, and return its cell."""
    data = home / "secret-folder" / "films.csv"
    data.parent.mkdir(exist_ok=True)
    data.write_text(OWN, "utf-8")
    (cell,) = plan(Request([], [method], own={"path": str(data)}, **options))
    store.open(cell.references["evaluate"])
    row = result_row(cell, store) | {
        "run_id": "run",
        "created": 0.0,
        "tracking_uri": "",
        "sweeps": [],
        "attempt": "",
    }
    Index(home).put(cell, row | {"request": asdict(cell.request), "documents_95": {"accuracy": 0.1}})
    return cell


@pytest.fixture(scope="module")
def lines(home: Path) -> list[packed.Line]:
    return packed.cells(home, Index(home).rows())


def test_what_is_read_is_what_was_written(lines: list[packed.Line], tmp_path: Path) -> None:
    packed.write(tmp_path / "board.parquet", lines)
    assert packed.read(tmp_path / "board.parquet") == lines
    assert lines[0]["metrics"] and lines[0]["files"]["evaluate"] and lines[0]["cells"]


def test_no_text_and_no_path_leaves_the_machine(lines: list[packed.Line]) -> None:
    said = json.dumps(lines)
    assert "secret-folder" not in said and "good film" not in said
    assert lines[0]["command"] == "" and lines[0]["hidden"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("sentence(model='/home/me/models/mpnet')", "sentence(model='mpnet')"),
        ("~/m.py", "m.py"),
        ("C:\\users\\me\\m.py", "m.py"),
        ("org/name", "org/name"),
    ],
)
def test_a_path_is_cut_to_its_last_name(text: str, left: str) -> None:
    assert packed.without_folders(text) == left


CHANGES = {
    "seed": ({"seeds": [7]}, "seed"),
    "trials": ({"trials": 9}, "trials"),
    "method": ({"method": "tfidf"}, "method"),
    "key": ({"cells": ["0" * 64]}, "key"),
    "metric": ({"metrics": {"accuracy": float("inf")}}, "finite"),
    "unknown metric": ({"metrics": {"luck": 1.0}}, "luck"),
    "escape": ({"method": "\x1b[31mnb"}, "printed"),
    "kind": ({"kind": "guess"}, "guess"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_line_that_does_not_fit_its_key_is_refused(
    change: str, lines: list[packed.Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    altered, said = CHANGES[change]
    path = tmp_path / "board.parquet"
    monkeypatch.setattr(packed, "_checksum", lambda lines: "same")  # whoever alters lines can seal them too
    packed.write(path, [lines[0] | altered])
    with pytest.raises(InputError, match=said) as caught:
        packed.read(path)
    assert "\n" not in str(caught.value) and str(caught.value).isprintable()


def test_a_method_whose_name_holds_anothers_is_not_taken_for_it(
    lines: list[packed.Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is of nb."""
    monkeypatch.setattr(packed, "_checksum", lambda lines: "same")
    packed.write(tmp_path / "board.parquet", [lines[0] | {"method": "nb-svm"}])
    with pytest.raises(InputError, match="its recipe is of the method 'nb'"):
        packed.read(tmp_path / "board.parquet")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"method": "tfidf"}, "method majority, not tfidf"),
        ({"dataset": "r52"}, "dataset r8, not r52"),
        ({"protocol": "transductive"}, "protocol honest, not transductive"),
        ({"trials": 3}, "trials 0, not 3"),
        ({"seeds": [1], "request": vars(Request(["r8"], ["majority"], [0]))}, "seeds [0], not [1]"),
    ],
)
def test_what_a_line_asks_for_is_what_it_says_it_is_of(change: dict[str, Any], said: str) -> None:
    line = packed.blank() | {
        "kind": packed.MEAN, "dataset": "r8", "protocol": "honest", "method": "majority", "trials": 0, "seeds": [0],
        "metrics": {"accuracy": 0.5}, "command": "textbench run -d r8 -m majority",
    }  # fmt: skip
    (found,) = verification.verify([line | change])
    assert not found.is_same and found.said == f"what it asks for is {said}"


def test_nobody_elses_board_has_a_file_read_here(tmp_path: Path) -> None:
    method = tmp_path / "evil.py"
    method.write_text("raise SystemExit(9)")
    line = packed.blank() | {
        "kind": packed.MEAN, "dataset": "r8", "protocol": "honest", "method": "tfidf", "trials": 0, "seeds": [0],
        "metrics": {"accuracy": 0.5}, "command": "textbench run -d r8 -m tfidf",
    }  # fmt: skip
    for request in (
        Request(["r8"], [str(method)]),
        *(
            Request(["r8"], [one])
            for one in ("evil.py", "join(tfidf, evil.py)", "file-vectors(path='own.npy')")
        ),
        Request([], ["tfidf"], own={"path": str(tmp_path / "own.csv")}),
    ):
        (found,) = verification.verify([line | {"request": vars(request)}])
        assert (
            not found.is_same and "asks for a file, which is not read for somebody else's board" in found.said
        )


def test_of_one_seed_the_newest_run_is_packed_and_counts(home: Path, lines: list[packed.Line]) -> None:
    (row,) = Index(home).rows()
    older = row | {"created": row["created"] - 1, "metrics": dict.fromkeys(row["metrics"], 0.0)}
    assert [line["metrics"] for line in packed.cells(home, [older, row])] == [row["metrics"]]
    twice = [lines[0], lines[0] | {"metrics": older["metrics"], "created": "1901-01-01", "cells": ["f" * 64]}]
    (summary,) = board_page.summaries(twice)
    assert summary.n_seeds == 1 and summary.mean["accuracy"] == row["metrics"]["accuracy"]
    apart = board_page.summaries(
        [lines[0] | {"settings": ["rule words"]}, lines[0] | {"settings": ["n_folds 10"]}]
    )
    assert [one.n_seeds for one in apart] == [1, 1]


def test_a_damaged_board_hides_no_other_and_can_be_forgotten(
    lines: list[packed.Line],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / "home"
    for name, which in (("a.parquet", lines), ("b.parquet", [lines[0] | {"seconds": 1.0}])):
        packed.write(tmp_path / name, which)
        elsewhere.add(home, str(tmp_path / name))
    damaged = (
        home / elsewhere.FOLDER / f"{elsewhere.add(home, str(tmp_path / 'a.parquet')).sha256[:12]}.parquet"
    )
    damaged.write_bytes(damaged.read_bytes()[:100])
    found, reasons = elsewhere.boards(home)
    assert [board.name.split(" ")[0] for board in found] == ["b.parquet"]
    assert len(reasons) == 1 and "damaged" in reasons[0] and "results forget" in reasons[0]
    elsewhere.add(home, str(tmp_path / "a.parquet"))  # adding the good file again mends it
    assert len(elsewhere.boards(home)[0]) == 2
    damaged.write_bytes(b"")
    monkeypatch.setenv("TEXTBENCH_HOME", str(home))
    leaderboard(None, None, None, None, "table", False, None, False)
    printed = capsys.readouterr()
    assert "From elsewhere: b.parquet" in printed.out and "not shown" in printed.err
    assert elsewhere.forget(home, "a.parquet").name.startswith("a.parquet")
    for content in ('{"sha256": null}', '{"sha256": "../../x"}'):
        damaged.with_suffix(".json").write_text(content)
        assert len(elsewhere.boards(home)[1]) == 1
    assert elsewhere.add(home, str(tmp_path / "a.parquet")).name.startswith("a.parquet")
    assert elsewhere.boards(home)[1] == []
    damaged.write_bytes(b"")
    damaged.with_suffix(".json").write_text("{}")  # of which nothing is known but its file's name
    assert elsewhere.forget(home, damaged.stem).sha256 == damaged.stem
    assert not elsewhere.boards(home)[1]


def test_predictions_from_a_file_travel_without_their_recipe(home: Path, tmp_path: Path) -> None:
    """The recipe of the result names the file, so it stays; its key alone goes."""
    store = Store(tmp_path / "store")
    cell = run(tmp_path, "nb", store)
    n_test = store.open(cell.references["evaluate"]).table("predictions").num_rows
    answers = tmp_path / "answers.csv"
    answers.write_text("label\n" + "good\n" * n_test, "utf-8")
    key = run(tmp_path, f"file-predictions(path={str(answers)!r})", store).key
    packed.write(tmp_path / "board.parquet", packed.cells(tmp_path, Index(tmp_path).rows()))
    (line,) = [line for line in packed.read(tmp_path / "board.parquet") if line["cells"] == [key]]
    assert key in line["hidden"] and "evaluate" not in line["recipes"]
    assert str(tmp_path) not in json.dumps(line)
    with pytest.raises(InputError, match="nothing here can be computed again"):
        verification.sample([line], None)


def test_other_parquet_and_other_bytes_are_refused(lines: list[packed.Line], tmp_path: Path) -> None:
    path = tmp_path / "board.parquet"
    pa.parquet.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(InputError, match="no packed board"):
        packed.read(path)
    packed.write(path, lines)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="damaged"):
        packed.read(path)
    with pytest.raises(InputError, match="cannot be read"):
        packed.read(tmp_path / "none.parquet")


@settings(max_examples=30)
@given(place=st.floats(0, 1, exclude_max=True), by=st.integers(1, 255))
def test_any_altered_byte_is_noticed_or_changes_nothing(
    place: float, by: int, lines: list[packed.Line], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("altered") / "board.parquet"
    packed.write(path, lines)
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= by
    path.write_bytes(content)
    try:
        found = packed.read(path)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert found == lines


def test_an_added_board_stands_apart_and_what_was_run_here_counts_as_own(
    lines: list[packed.Line], tmp_path: Path
) -> None:
    path = tmp_path / "theirs.parquet"
    packed.write(path, lines)
    for _ in range(2):
        added = elsewhere.add(tmp_path / "home", str(path))
    assert [board.name for board in elsewhere.boards(tmp_path / "home")[0]] == [
        f"theirs.parquet ({added.sha256[:8]})"
    ]
    assert elsewhere.without_own(added.lines, []) == lines
    assert elsewhere.without_own(added.lines, [{"key": lines[0]["cells"][0]}]) == []
    elsewhere.forget(tmp_path / "home", "theirs.parquet")
    assert elsewhere.boards(tmp_path / "home") == ([], [])
    with pytest.raises(InputError, match="there are: none"):
        elsewhere.forget(tmp_path / "home", "theirs.parquet")


def test_an_address_is_not_fetched_offline(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="TEXTBENCH_OFFLINE"):
        elsewhere.add(tmp_path, "https://example.org/board.parquet")


def test_the_leaderboard_shows_it_as_from_elsewhere(
    lines: list[packed.Line],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    packed.write(tmp_path / "theirs.parquet", lines)
    elsewhere.add(tmp_path, str(tmp_path / "theirs.parquet"))
    leaderboard()
    said = capsys.readouterr().out
    assert "There are no finished runs yet" in said and "From elsewhere: theirs.parquet" in said
    assert f"films@{lines[0]['documents_sha256'][:8]}" in said


def test_computing_again_gives_the_same_bits_or_names_the_stage(home: Path) -> None:
    found = packed.cells(home, Index(home).rows(), with_paths=True)
    lied = json.loads(json.dumps(found[0])) | {"metrics": found[0]["metrics"] | {"accuracy": 0.123}}
    damaged = json.loads(json.dumps(found[0]))
    damaged["files"]["vectorize"]["terms.json"] = "0" * 64
    same, of_lie, of_damage = verification.verify([*found, lied, damaged], Store(home / "store"))
    assert same.is_same and "bits" in same.said
    assert not of_lie.is_same and "accuracy" in of_lie.said and "0.123" in of_lie.said
    assert not of_damage.is_same and of_damage.stage == "vectorize"


def test_a_damaged_file_of_ones_own_is_named_by_its_stage(home: Path) -> None:
    own = Store(home / "store")
    (line,) = packed.cells(home, Index(home).rows(), with_paths=True)
    (cell,) = plan(Request(**line["request"]))
    stored = own.folder(cell.references["vectorize"]) / "terms.json"
    content = stored.read_bytes()
    stored.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    try:
        (verdict,) = verification.verify([line], own)
    finally:
        stored.write_bytes(content)
    assert not verdict.is_same and verdict.stage == "vectorize"
    assert "terms.json does not have the recorded sha256" in verdict.said


@pytest.mark.parametrize(
    ("method", "protocol", "own"),
    [
        ("ensemble(nb, counts)", "honest", "evaluate"),
        ("ensemble(nb, counts, smooth=True)", "transductive", NEAR),
    ],
)
def test_an_ensemble_travels_and_is_computed_again_to_the_bit_or_its_members_stage_is_named(
    tmp_path: Path, method: str, protocol: Any, own: str
) -> None:
    store = Store(tmp_path / "store", isolated=False)
    cell = run(tmp_path, method, store, protocol=protocol)
    (line,) = packed.cells(tmp_path, Index(tmp_path).rows())
    packed.write(tmp_path / "board.parquet", [line])
    assert packed.read(tmp_path / "board.parquet") == [line]
    assert {"01 evaluate", "02 tune", "evaluate", own} <= line["recipes"].keys()
    without = line | {
        "recipes": {name: one for name, one in line["recipes"].items() if name != "01 evaluate"}
    }
    assert "is not in it" in packed._problem(without)

    (whole,) = packed.cells(tmp_path, Index(tmp_path).rows(), with_paths=True)
    (same,) = verification.verify([whole], store)
    assert same.is_same and "bits" in same.said
    found = json.loads(json.dumps(whole))
    for stage in ("tune", "evaluate", "02 evaluate"):
        found["files"][stage] = dict.fromkeys(found["files"][stage], "0" * 64)
    (differs,) = verification.verify([found], store)
    assert not differs.is_same and differs.stage == "02 evaluate"
    assert cell.references["02 evaluate"].key == packed.own_key(line["recipes"]["02 evaluate"])


def test_a_sample_is_of_what_can_be_computed_again(lines: list[packed.Line]) -> None:
    with pytest.raises(InputError, match="own documents"):
        verification.sample(lines, 5)
    known = packed.read(packed.FILE)
    assert verification.sample(known, 5, seed=1) == verification.sample(known, 5, seed=1)
    assert len(verification.sample(known, None)) == len(known)
    short = verification.sample(known, 5, longest=100)
    assert all(line["seconds"] * len(line["seeds"]) <= 100 for line in short) and len(short) == 5
    with pytest.raises(InputError, match=r"none of .* is known to take at most 0 s: say --longest, or --all"):
        verification.sample(known, 5, longest=0)


def test_commands_of_the_record_are_understood() -> None:
    requests = [
        verification.request_of(line)
        for line in packed.read(packed.FILE)
        if line["command"].startswith("textbench run --dataset")
    ]
    assert len(requests) > 100 and all(request.seeds for request in requests)


def test_the_packed_board_is_the_record() -> None:
    lines = packed.read(packed.FILE)
    assert lines == recorded.packed_lines(), "make pages writes it anew"

    def place(one: Summary) -> tuple[object, ...]:
        return one.dataset, one.protocol, one.method, one.trials, one.settings

    shown = sorted(board_page.summaries(lines), key=place)
    assert shown == sorted(recorded.summaries(), key=place)


def test_a_board_of_the_first_version_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = packed.read(packed.FILE)[:3]
    older = [{name: value for name, value in line.items() if name != "pairs"} for line in lines]
    with monkeypatch.context() as patch:
        patch.setattr(packed, "schema", partial(packed.schema, 1))
        patch.setattr(packed, "VERSION", 1)
        packed.write(tmp_path / "old.parquet", older)
    assert packed.read(tmp_path / "old.parquet") == [line | {"pairs": {}} for line in lines]


@pytest.mark.parametrize("pairs", [{"accuracy": 5}, {"accuracy": {"f" * 12: "y"}}, {"luck": {}}])
def test_paired_tests_are_p_of_known_metrics(pairs: dict[str, Any], tmp_path: Path) -> None:
    packed.write(tmp_path / "bad.parquet", [packed.read(packed.FILE)[0] | {"pairs": pairs}])
    with pytest.raises(InputError, match=r"its paired tests of '(accuracy|luck)' are none"):
        packed.read(tmp_path / "bad.parquet")


def test_the_page_is_one_file_with_ranks_that_sorts() -> None:
    lines = [line for line in packed.read(packed.FILE) if line["dataset"] == "r8"]
    page = board_page.page(lines, "board.parquet")
    assert page == board_page.page(lines, "board.parquet")
    assert "ranks</th>" in page and "ties</th>" in page and "http" not in page.split("<script>")[0]


def test_recorded_boards_are_shown_without_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    leaderboard(dataset=["r8"], method=["tfidf", "lsi"], recorded=True)
    assert "ranks" in capsys.readouterr().out
    leaderboard(dataset=["r8"], method=["tfidf"], recorded=True, json=True)
    assert json.loads(capsys.readouterr().out.splitlines()[0])["dataset"] == "r8"
    with pytest.raises(InputError, match="--metric"):
        leaderboard(metric="macro_f1", recorded=True)
    with pytest.raises(InputError, match="r9"):
        leaderboard(dataset=["r9"], recorded=True)
