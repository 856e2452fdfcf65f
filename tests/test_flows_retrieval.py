"""`textbench retrieve`: planning, the flow from end to end on a small collection, its tables, and bad input."""

import contextlib
import json
import re
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.commands import textbench
from tests.test_tasks_retrieve import collection
from textbench.evaluation.metrics.ranked_retrieval import MEASURES, read_run
from textbench.flows.cli import app
from textbench.flows.plan.request import RetrievalRequest
from textbench.flows.results.ranking_tables import HEADINGS, ranking_tables, render
from textbench.flows.results.rankings import compare, plan, result_row, row
from textbench.tasks import InputError
from textbench.tasks.storage.store import Store

Command = Callable[..., Any]


@pytest.fixture
def refused() -> Command:
    """Return the one line with which a command refuses its input."""

    def invoke(*arguments: object) -> str:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert isinstance(result.exception, InputError), result.output
        assert "\n" not in str(result.exception)
        return str(result.exception)

    return invoke


def named(folder: Path) -> Path:
    """Return a folder of that name, made."""
    folder.mkdir(parents=True)
    return folder


def own(folder: Path) -> dict[str, Any]:
    files = collection(folder)
    return {"documents": files.documents, "queries": files.queries, "qrels": files.qrels}


def options(folder: Path) -> list[str]:
    return [part for name, path in own(folder).items() for part in (f"--{name}", path)]


def test_own_collections_are_called_after_their_folder_or_as_asked(tmp_path: Path) -> None:
    files = own(named(tmp_path / "wings"))
    cells = plan(RetrievalRequest([], ["lm"], own=files))
    assert [cell.dataset for cell in cells] == ["own-wings"]
    assert plan(RetrievalRequest([], ["lm"], own=files | {"name": "cranfield"}))[0].dataset == "own-cranfield"


def test_the_report_keeps_collections_of_one_name_apart(tmp_path: Path) -> None:
    from textbench.flows.report import search

    home = tmp_path / "home"
    store = Store(home / "store", isolated=False)
    first, second = own(named(tmp_path / "a" / "docs")), own(named(tmp_path / "b" / "docs"))
    Path(second["qrels"]).write_text("q0 0 d1 1\n")
    for number, files in enumerate((first, second)):
        cell = plan(RetrievalRequest([], ["bm25"], trials=0, own=files))[0]
        metrics = store.open(cell.references["evaluate"]).json("metrics")
        record = {"metrics": metrics, "created": float(number), "run_id": None}
        (home / "retrieval").mkdir(exist_ok=True)
        (home / "retrieval" / f"{cell.key}.json").write_text(json.dumps(record))
        runs = search.runs(home)
        assert len(runs) == number + 1
        if not number:
            assert runs[0]["collection"] == "own-docs"
    digests = [run["collection"].removeprefix("own-docs-") for run in runs]
    assert len(set(digests)) == 2 and all(len(digest) == 12 for digest in digests)
    assert len(search.tables(runs)) == 2
    commands = [row[-2].text for row in search.made(runs).rows]
    # A page that is handed on says what the files are called, not where they are.
    assert all(re.search(r"--documents [^/ ]+ --queries [^/ ]+ ", command) for command in commands), commands
    assert not any(str(tmp_path) in command for command in commands)
    assert all("--collection" not in command for command in commands)


def test_seeds_that_other_code_made_are_in_no_mean_of_search() -> None:
    from textbench.flows.report import search

    run = {"collection": "c", "judgments": "all", "trials": 0, "rule": "", "n_folds": 1, "label": "r"}
    run |= {"measures": dict.fromkeys(search.SHOWN, 0.5)}
    found: list[dict[str, Any]] = [
        run | {"ranker": "bm25", "seed": seed, "created": float(seed), "made_by": "first"}
        for seed in range(3)
    ]
    kept = search._newest([*found, found[0] | {"created": 9.0, "made_by": "edited"}])
    assert [(one["seed"], one["made_by"], one["n_otherwise"]) for one in kept] == [(0, "edited", 2)]
    assert "Left out: 2 runs of r, not known" in search.tables(kept)[0].note
    assert len(search._newest(found)) == 3 and "Left out" not in search.tables(found)[0].note


def test_collections_are_told_apart_on_the_terminal_and_one_content_has_one_name(tmp_path: Path) -> None:
    from textbench.flows.report import search
    from textbench.flows.results.rankings import shown_name

    home = tmp_path / "home"
    store = Store(home / "store", isolated=False)
    (home / "retrieval").mkdir(parents=True)
    files = own(named(tmp_path / "docs"))
    requests = [RetrievalRequest([], [ranker], trials=0, own=files | {"name": name})
                for name, ranker in (("old", "bm25"), ("new", "bm25"), ("new", "lm"))]  # fmt: skip
    for created, cell in enumerate(plan(request)[0] for request in requests):
        metrics = store.open(cell.references["evaluate"]).json("metrics")
        record = {"metrics": metrics, "created": float(created), "run_id": None}
        (home / "retrieval" / f"{cell.key}.json").write_text(json.dumps(record))
        assert shown_name(cell, store) == cell.dataset
    runs = search.runs(home)
    assert sorted((run["collection"], run["ranker"]) for run in runs) == [
        ("own-new", "bm25"),
        ("own-new", "lm"),
    ]
    first = plan(requests[1])[0]
    Path(files["qrels"]).write_text("q0 0 d1 1\n")
    second = plan(replace(requests[1]))[0]
    store.ensure(second.references["ingest"])
    for cell in (first, second):
        assert shown_name(cell, store) == f"own-new-{cell.references['ingest'].params['digest'][:12]}"
    plain = plan(RetrievalRequest(["cranfield"], ["bm25"]))[0]
    assert shown_name(plain, store) == "cranfield"


def test_a_report_of_search_alone_has_no_chapter_on_what_was_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from textbench.flows.report import page
    from textbench.flows.report.chapters import chapters
    from textbench.flows.report.evidence import gather

    cells, store = computed(tmp_path, ["bm25", "lm"], [0])
    (tmp_path / "retrieval").mkdir()
    means = {}
    for cell in cells:
        metrics = store.open(cell.references["evaluate"]).json("metrics")
        record = {"metrics": metrics, "created": 1.0, "run_id": None}
        (tmp_path / "retrieval" / f"{cell.key}.json").write_text(json.dumps(record))
        means[cell.method] = 100 * metrics["map"]
    evidence = gather(tmp_path)
    found = chapters(evidence)
    assert [chapter.name for chapter in found] == ["which", "made"]
    best = max(means, key=lambda name: means[name])
    said = f"{best} has the highest mean average precision of 2 rankers, {means[best]:.2f} %"
    assert said in found[0].answer[0]
    text = page.render(evidence, found)
    assert "2 rankings" in text
    assert "Nothing has been run" not in text and "Nothing was timed" not in text
    assert "Nothing has been run here yet" in chapters(gather(tmp_path / "empty"))[0].answer[0]
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    assert CliRunner().invoke(app, ["leaderboard"]).stdout == (
        "There are no finished runs yet (2 rankings: textbench retrieve or report shows them). "
        "Make some with: textbench run quick\n"
    )


def test_the_plan_has_a_cell_for_each_ranker_collection_and_seed(tmp_path: Path) -> None:
    cells = plan(RetrievalRequest(["cranfield"], ["lm", "lm+lsi", "lm"], [0, 1], own=own(tmp_path)))
    assert len({cell.key for cell in cells}) == len(cells) == 8
    assert {cell.dataset for cell in cells} == {"cranfield", f"own-{tmp_path.name}"}
    assert "featurize" in cells[2].references and "featurize" not in cells[0].references


def test_faithful_tunes_nothing() -> None:
    honest, faithful = (
        plan(RetrievalRequest(["cacm"], ["lm"], protocol=protocol, trials=9))[0]
        for protocol in ("honest", "faithful")
    )
    assert (honest.trials, honest.settings["n_folds"]) == (9, 5)
    assert (faithful.trials, faithful.settings["n_folds"]) == (0, 1)
    assert honest.key != faithful.key


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"collections": ["cranfeld"]}, "there is no collection 'cranfeld'; did you mean cranfield"),
        ({"rankers": ["lmm"]}, "there is no ranker 'lmm'"),
        ({"judgments": "all"}, "judgments must be 'positive' or 'nonzero', got 'all'"),
        ({"n_folds": 1}, "n_folds must be at least 2, got 1"),
        ({"trials": -1}, "trials must be at least 0, got -1"),
        ({"rule": "lettres"}, "there is no token rule 'lettres'; did you mean letters"),
        ({"seeds": []}, "at least one collection, one ranker and one seed"),
    ],
)
def test_bad_requests(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(RetrievalRequest(**({"collections": ["cranfield"], "rankers": ["lm"]} | change)))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--protocol", "fair"], "--protocol must be 'honest' or 'faithful', got 'fair'"),
        (["--seeds", "0"], "--seeds must lie in 1 .. 1000, got 0"),
        (["--format", "trec"], "--format and --fields describe your own collection and need --documents"),
        (["--name", "mine"], "--name names your own collection and needs --documents"),
        (
            ["--documents", "."],
            "your own collection needs --documents, --queries, --qrels; --queries is missing",
        ),
    ],
)
def test_bad_options(arguments: list[str], message: str, refused: Command) -> None:
    assert refused("retrieve", *arguments) == message


def test_bad_files_stop_the_run_before_it_begins(tmp_path: Path, refused: Command) -> None:
    asked = options(tmp_path)
    run = tmp_path / "theirs.run"
    run.write_text("q0 Q0 d0 1 0.5\n")
    found = refused("retrieve", *asked, "-m", "lm", "--run", run)
    assert found.startswith("theirs.run, line 1: a run's line is `query Q0 document rank score tag`")
    (tmp_path / "queries.jsonl").write_text("{}\n")
    assert "queries.jsonl, line 1: it needs id" in refused("retrieve", *asked, "-m", "lm")


def test_from_end_to_end(tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    asked = [
        *options(named(tmp_path / "documents")),
        "--trials",
        "6",
        "-m",
        "bm25",
        "-m",
        "lm+lsi(n_components=4)",
    ]
    output, _ = textbench(
        "retrieve", *asked, "-m", "lm+lsi(n_components=0)", "--json", "--write", str(out), home=home, code=1
    )
    lines = [json.loads(line) for line in output.splitlines()]
    assert [line["ranker"] for line in lines] == ["bm25", "lm+lsi(n_components=4)", "lm+lsi(n_components=0)"]
    assert "n_components must be a whole number from 1: got 0" in lines[2]["error"]
    for line in lines[:2]:
        assert line["collection"] == "own-documents" and line["judgments"] == "positive"
        assert line["measures"].keys() == set(MEASURES) and line["run_id"]
        assert line["left_out"]["queries without relevant documents"] == 0
        for name, value in line["measures"].items():
            assert value == pytest.approx(np.mean([query[name] for query in line["per_query"].values()]))
    written = read_run((out / "own-documents-bm25-seed0.run").read_text().splitlines(), "run")
    assert len(written) == 20 and (out / "own-documents.qrels").exists()
    # Again, with a run made elsewhere: nothing is computed, and no second MLflow run is made.
    theirs = tmp_path / "theirs.run"
    theirs.write_text((out / "own-documents-bm25-seed0.run").read_text())
    output, _ = textbench("retrieve", *asked, "--json", "--run", str(theirs), home=home)
    again = [json.loads(line) for line in output.splitlines()]
    assert [line.get("cached") for line in again] == [True, True, None]
    assert again[0]["run_id"] == lines[0]["run_id"]
    assert again[2]["ranker"] == "theirs"
    assert again[2]["measures"] == pytest.approx(again[0]["measures"])
    with contextlib.closing(sqlite3.connect(home / "mlflow.db")) as database:
        (finished,) = database.execute("SELECT count(*) FROM runs WHERE status = 'FINISHED'").fetchone()
    assert finished == 2


def computed(tmp_path: Path, rankers: list[str], seeds: list[int]) -> tuple[list[Any], Store]:
    store = Store(tmp_path / "store", isolated=False)
    cells = plan(RetrievalRequest([], rankers, seeds, trials=0, own=own(named(tmp_path / "documents"))))
    for cell in cells:
        store.ensure(cell.references["evaluate"])
    return cells, store


def test_runs_are_never_written_over_others(tmp_path: Path) -> None:
    from textbench.flows.cli.retrieve import write_runs

    cells, store = computed(tmp_path, ["bm25", "lm"], [0])
    out = tmp_path / "out"
    write_runs(store, cells, out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert set(before) == {
        "own-documents-bm25-seed0.run",
        "own-documents-lm-seed0.run",
        "own-documents.qrels",
    }
    write_runs(store, cells, out)  # the same again is no other run
    (out / "own-documents-lm-seed0.run").write_text("another's")
    (out / "own-documents.qrels").unlink()
    message = (
        f"--write {out}: own-documents-lm-seed0.run of another run is there, and nothing was written; "
        "name another folder, or another collection with --name"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        write_runs(store, cells, out)
    assert (out / "own-documents-lm-seed0.run").read_text() == "another's"
    assert not (out / "own-documents.qrels").exists()


def test_files_of_other_runs_are_refused_before_anything_is_computed(tmp_path: Path) -> None:
    from textbench.flows.cli.retrieve import check_runs, write_runs

    store = Store(tmp_path / "store", isolated=False)
    cells = plan(RetrievalRequest([], ["bm25", "lm"], [0], trials=0, own=own(named(tmp_path / "documents"))))
    store.ensure(cells[0].references["evaluate"])
    out = tmp_path / "out"
    check_runs(store, cells, out)  # nothing is there
    write_runs(store, cells[:1], out)
    check_runs(store, cells, out)  # the same run, and the same judgments
    (out / "own-documents-lm-seed0.run").write_text("another's")
    with pytest.raises(InputError, match=r"own-documents-lm-seed0\.run of another run is there"):
        check_runs(store, cells, out)
    assert not store.has(cells[1].references["evaluate"])
    (out / "own-documents-lm-seed0.run").unlink()
    (out / "own-documents.qrels").write_text("other judgments")
    with pytest.raises(InputError, match=r"own-documents\.qrels of another run is there"):
        check_runs(store, cells, out)


def test_all_pairs_are_compared_on_the_same_queries(tmp_path: Path) -> None:
    from textbench.evaluation.metrics.ranked_retrieval import randomisation_test

    cells, store = computed(tmp_path, ["bm25", "lm", "tfidf"], [0, 1])
    tests = compare(cells, store)
    assert len(tests) == 3
    assert all(test["difference"] >= 0 and test["p"] <= test["p_holm"] <= 1 for test in tests)
    values = {
        cell.method: store.open(cell.references["evaluate"]).table("per_query")["map"].to_numpy()
        for cell in cells
    }
    for test in tests:
        assert test["p"] == randomisation_test(values[test["better"]], values[test["worse"]])


def test_the_table_names_the_policy_and_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    cells, store = computed(tmp_path, ["bm25", "lm"], [0])
    rows = [result_row(cell, store) for cell in cells]
    rows[1] = row(cells[1], "ran over its time limit")
    render(cells, rows, [], store)
    printed = capsys.readouterr().out
    assert "own-documents, honest: 20 queries, codes from 1 count as relevant; nothing tuned" in printed
    assert f"{100 * rows[0]['metrics']['map']:.1f}" in printed
    assert "own-documents lm seed 0: ran over its time limit" in printed
    assert HEADINGS.keys() == MEASURES.keys()


def test_means_are_of_the_seeds_that_every_ranker_finished(tmp_path: Path) -> None:
    cells, store = computed(tmp_path, ["bm25", "lm"], [0, 1])
    rows = [result_row(cell, store) for cell in cells]
    assert "seeds" not in ranking_tables(cells, rows, [], store)[0].note
    lost = [place for place, cell in enumerate(cells) if (cell.method, cell.seed) == ("lm", 1)]
    rows[lost[0]] = row(cells[lost[0]], "ran over its time limit")
    for place, cell in enumerate(cells):
        if cell.seed == 1 and place not in lost:  # a figure that would be seen in a mean
            rows[place] = rows[place] | {"metrics": dict.fromkeys(rows[place]["metrics"], 0.0)}
    (table,) = ranking_tables(cells, rows, [], store)
    assert table.note.endswith("Of the seeds that all finished: 0.")
    first = {
        cell.method: row["metrics"]["map"] for cell, row in zip(cells, rows, strict=True) if not cell.seed
    }
    shown = {line[0].text: line[1].value for line in table.rows}
    assert shown == pytest.approx(first)


def test_p_is_against_the_best_ranker_that_was_run_here(tmp_path: Path) -> None:
    cells, store = computed(tmp_path, ["bm25", "lm"], [0])
    rows = [result_row(cell, store) for cell in cells]
    outside = [{"collection": "own-documents", "ranker": "theirs", "measures": dict.fromkeys(MEASURES, 1.0)}]
    (table,) = ranking_tables(cells, rows, outside, store)
    best = max(zip(cells, rows, strict=True), key=lambda one: one[1]["metrics"]["map"])[0].method
    assert f"of MAP against {best}, with Holm" in table.note
    place = [name for name, _ in table.headings].index("p")
    p = {line[0].text: line[place].text for line in table.rows}
    assert p["theirs"] == p[best] == "" and p[({"bm25", "lm"} - {best}).pop()]


def test_the_report_keeps_rankings_of_other_folds_and_rules_apart(tmp_path: Path) -> None:
    from textbench.flows.report import search

    home = tmp_path / "home"
    store = Store(home / "store", isolated=False)
    (home / "retrieval").mkdir(parents=True)
    asked = [
        {"n_folds": 2, "trials": 2},
        {"n_folds": 3, "trials": 2},
        {"trials": 0, "rule": "words"},
        {"trials": 0},
    ]
    files = own(named(tmp_path / "docs"))
    ranker = "lm+lsi(n_components=4)"
    for number, options in enumerate(asked):
        cell = plan(RetrievalRequest([], [ranker], own=files, **options))[0]
        metrics = store.open(cell.references["evaluate"]).json("metrics")
        record = {"metrics": metrics, "created": float(number), "run_id": None, "params": cell.settings}
        (home / "retrieval" / f"{cell.key}.json").write_text(json.dumps(record))
    runs = search.runs(home)
    labels = [f"{ranker} (2 folds)", f"{ranker} (3 folds)", f"{ranker} (rule words)"]
    rule = plan(RetrievalRequest([], [ranker], own=files))[0].settings["rule"]
    assert sorted(run["label"] for run in runs) == sorted([*labels, f"{ranker} (rule {rule})"])
    (table,) = search.tables(runs)
    assert len(table.rows) == 4
    commands = [line[-2].text for line in search.made(runs).rows]
    assert all(f"--method '{ranker}' " in command for command in commands)
    assert sum("--rule words" in command for command in commands) == 1


@pytest.mark.parametrize("width", [40, 80])
def test_names_and_headings_stand_whole_on_narrow_terminals(
    width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    long = "lsi(n_components=4, weighting='counts')"
    cells, store = computed(tmp_path, ["bm25", long], [0])
    render(cells, [result_row(cell, store) for cell in cells], [], store)
    printed = capsys.readouterr().out
    assert "…" not in printed and all(len(line) <= width for line in printed.splitlines())
    for part in [*long.split(), "MAP", "nDCG@10", "Holm's", "1 pair;"]:
        assert part in printed
    left_out = " ".join(printed.split()).partition("Left out for want of room: ")[2]
    table = printed.split("Left out")[0]
    assert all(heading in table.split() or heading in left_out for heading in HEADINGS.values())
    # With one ranker there is nothing to compare.
    render(cells[:1], [result_row(cells[0], store)], [], store)
    alone = capsys.readouterr().out
    assert "paired" not in alone and " p " not in alone


def test_several_collections_are_shown_in_the_shape_of_table_6(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    cells, store = computed(tmp_path, ["bm25", "lm"], [0, 1])
    rows = [result_row(cell, store) for cell in cells]
    others = [replace(cell, dataset="other") for cell in cells]
    render([*cells, *others], [*rows, *rows[:2], *(row(cell, "failed") for cell in cells[2:])], [], store)
    printed = capsys.readouterr().out
    figures = [f"{result['metrics']['map']:.4f}" for result in rows[::2]]
    lines = [line for line in printed.splitlines() if "own-documents" in line and figures[0] in line]
    assert figures[1] in lines[0]
    other = [line for line in printed.splitlines() if line.startswith("other ")][-1]  # below the errors
    assert figures[0] in other and "-" in other
