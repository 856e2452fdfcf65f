"""Comparing runs: pairs, refusals, ranks over data sets, what is printed, and the verdict in words."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from tests.made_runs import one_label, several_labels
from textbench.evaluation.statistics.significance import holm, mcnemar_exact
from textbench.flows.cli.compare import compare
from textbench.flows.results.comparison import pairs, ranking, runs_by_name, runs_of_methods
from textbench.flows.results.index import Index
from textbench.flows.results.placed import MIXED, placed
from textbench.flows.results.winner import verdicts
from textbench.tasks import InputError

N = 60
TARGET = [number % 3 for number in range(N)]


def answers(n_wrong: int, first_wrong: int = 0) -> list[int]:
    """Predictions that are wrong on so many documents, from one of them on."""
    wrong = {number % N for number in range(first_wrong, first_wrong + n_wrong)}
    return [(target + (number in wrong)) % 3 for number, target in enumerate(TARGET)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of three methods on two data sets, two seeds each: lsi is best, tfidf near it, binary bad."""
    home = tmp_path_factory.mktemp("finished")
    for dataset in ("r8", "r52"):
        for seed in (0, 1):
            costs = {"seed": seed, "run_id": f"{dataset}-{seed}-lsi", "seconds": {"featurize": 9.0}}
            one_label(home, dataset, "lsi", TARGET, answers(5 + seed), **costs)
            costs = {"seed": seed, "run_id": f"{dataset}-{seed}-tfidf", "seconds": {"featurize": 2.0}}
            one_label(home, dataset, "tfidf", TARGET, answers(6 + seed, 2), **costs)
            one_label(
                home, dataset, "binary", TARGET, answers(40, 20), seed=seed, run_id=f"{dataset}-{seed}-binary"
            )
    return home


@pytest.fixture
def home(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEXTBENCH_HOME", str(finished))
    monkeypatch.setenv("COLUMNS", "200")
    return finished


def run(*arguments: object) -> str:
    app = typer.Typer()
    app.command()(compare)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_pairs_by_hand(home: Path) -> None:
    """Over two seeds lsi is wrong on 5.5 documents and tfidf on 6.5; McNemar takes seed 0 alone."""
    found = runs_of_methods(home, ["r8"], ["lsi", "tfidf", "binary"], "honest")
    compared = {(pair.first, pair.second): pair for pair in pairs(home, "r8", found["r8"])}
    near = compared["lsi", "tfidf"]
    assert (near.metric, near.seeds, near.n_runs, near.n_documents) == ("accuracy", [0, 1], 2, N)
    assert near.first_value == pytest.approx(1 - 5.5 / N)
    assert near.difference.value == pytest.approx(1 / N)
    assert near.difference.low < 0 < near.difference.high
    assert (near.mcnemar.first_only, near.mcnemar.second_only) == (3, 2)  # wrong on 0..4 and on 2..7
    right = {name: np.array(answers(*args)) == TARGET for name, args in
             {"lsi": (5,), "tfidf": (6, 2), "binary": (40, 20)}.items()}  # fmt: skip
    exact = holm([mcnemar_exact(right[a], right[b]).p for a, b in compared])
    assert [pair.mcnemar_p for pair in compared.values()] == pytest.approx(exact)
    assert compared["lsi", "binary"].p < 0.001 <= near.p


def test_runs_of_which_fewer_documents_asked_are_not_compared(home: Path, tmp_path: Path) -> None:
    """An earlier version asked with all test documents, where now a sample does."""
    half, known = N // 2, {"documents_95": {"map": 0.05}}
    metrics = {"accuracy": 0.9, "map": 0.5}
    one_label(tmp_path, "r8", "nb", TARGET[:half], answers(5)[:half], metrics=metrics, **known)
    one_label(tmp_path, "r8", "lsi", TARGET, answers(6), **known)
    one_label(tmp_path, "r8", "tfidf", TARGET, answers(20), **known)
    rows = Index(tmp_path).rows()
    found = placed(rows, "map", tmp_path)
    assert {summary.ranked_by for summary in found} == {MIXED}
    (said,) = verdicts(tmp_path, rows, "map")
    assert "the metric is of 30 and 60 test documents: run the older ones again" in said
    with pytest.raises(InputError, match="of 30 and 60 test documents"):
        pairs(tmp_path, "r8", runs_of_methods(tmp_path, ["r8"], ["nb", "lsi"], "honest")["r8"], "map")


def test_ranks_over_data_sets(home: Path) -> None:
    found = runs_of_methods(home, ["r8", "r52"], ["lsi", "tfidf", "binary"], "honest")
    ranks = ranking({name: pairs(home, name, group) for name, group in found.items()})
    assert ranks is not None
    assert dict(zip(ranks.methods, ranks.average_ranks, strict=True)) == {"lsi": 1, "tfidf": 2, "binary": 3}
    assert ranks.critical_difference == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 2)), abs=2e-3)


def test_runs_by_name(home: Path) -> None:
    (dataset, entrants), *others = runs_by_name(home, ["r8-0-lsi", "r8-0-tfidf"]).items()
    assert not others
    assert dataset == "r8"
    assert [entrant.name for entrant in entrants] == ["lsi", "tfidf"]
    seeds = runs_by_name(home, ["r8-0-lsi", "r8-1-lsi"])["r8"]
    assert [entrant.name for entrant in seeds] == ["lsi seed 0", "lsi seed 1"]
    (pair,) = pairs(home, "r8", seeds, "macro_f1")
    assert (pair.metric, pair.n_runs, pair.seeds) == ("macro_f1", 1, [0, 1])


def test_different_documents_are_refused(home: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"lsi was tested on r8 and tfidf on r52, and tests in pairs need the same"
    ):
        runs_by_name(home, ["r8-0-lsi", "r52-0-tfidf"])
    one_label(tmp_path, "r8", "lsi", TARGET, answers(5))
    one_label(tmp_path, "r8", "tfidf", TARGET, answers(5), edition=2)
    with pytest.raises(InputError, match="whose documents have changed in between; run the older one again"):
        runs_of_methods(tmp_path, ["r8"], ["lsi", "tfidf"], "honest")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name at least two runs, or data sets with -d and methods with -m"),
        (["r8-0-lsi", "-m", "lsi"], "compare either runs, or methods on data sets"),
        (["r8-0-lsi", "-d", "r8", "-d", "r52"], "compare either runs, or methods on data sets"),
        (["lsi", "r8-0-tfidf", "-d", "r52"], "no finished run 'r8-0-tfidf'"),
        (["r8-0-lsi", "r8-0-lsi"], "at least two different runs, got 1"),
        (["-d", "r8", "-m", "lsi"], "at least two methods, got lsi"),
        (["-d", "r8", "-m", "lsi", "-m", "nmf"], "textbench run -d r8 -m nmf --protocol honest"),
        (["-d", "r8", "-m", "lsi", "-m", "tfdif"], "there is no method 'tfdif'; did you mean tfidf"),
        (["-d", "r9", "-m", "lsi", "-m", "tfidf"], "there is no data set 'r9'; did you mean r8"),
        (["-d", "r8", "-m", "lsi", "-m", "tfidf", "--seeds", "3"], "honest protocol for 3 seeds; run it"),
        (["-d", "r8", "-m", "lsi", "-m", "tfidf", "--seeds", "0"], "--seeds must be at least 1, got 0"),
        (["-d", "r8", "-m", "lsi", "-m", "tfidf", "--metric", "acuracy"], "did you mean accuracy"),
        (["-d", "r8", "-m", "lsi", "-m", "tfidf", "--metric", "coverage_error"], "not kept per document"),
        (["-d", "r8", "-m", "lsi", "-m", "tfidf", "--protocol", "honst"], "did you mean honest"),
        (["-d", "r8", "-m", "lsi", "-m", "tfidf", "--figure", "x.svg"], "same methods on two data sets or more"),
        (["-d", "r8", "-d", "r52", "-m", "lsi", "-m", "tfidf", "--figure", "x.gif"], "must end in .svg, .png, .pdf"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(home: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        run(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_json_is_all_that_is_printed(home: Path) -> None:
    options = [option for name in ("lsi", "tfidf", "binary") for option in ("-m", name)]
    rows = [json.loads(line) for line in run("-d", "r8", "-d", "r52", *options, "--json").splitlines()]
    assert [row["kind"] for row in rows] == ["pair"] * 6 + ["ranking"]
    assert {row["dataset"] for row in rows[:6]} == {"r8", "r52"}
    assert set(rows[0]["difference"]) == {"value", "low", "high", "p"}


def test_the_table_says_what_was_tested(home: Path) -> None:
    text = " ".join(run("-d", "r8", "-d", "r52", "-m", "lsi", "-m", "tfidf", "--metric", "map").split())
    assert "r8, MAP" in text
    assert "means over 2 seeds" in text
    assert "Average ranks over 2 data sets (1 is best): lsi 1.00, tfidf 2.00." in text


@pytest.mark.parametrize("kind", [".svg", ".png"])
def test_the_picture_names_every_method(home: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"ranks{kind}"
    options = [option for name in ("lsi", "tfidf", "binary") for option in ("-m", name)]
    run("-d", "r8", "-d", "r52", *options, "--figure", path)
    data = path.read_bytes()
    assert len(data) > 1000
    if kind == ".svg":
        assert all(name.encode() in data for name in ("lsi", "tfidf", "binary"))


def test_several_labels(tmp_path: Path) -> None:
    """Document 0 is right at the top for a alone, documents 1 and 2 for b alone; micro-F1 8/12 against 10/12."""
    target = [[0, 1], [2], [1], [0]] * 5
    first = [[1, 0], [0], [0], [0]] * 5
    second = [[2], [2], [1], [0]] * 5
    one, other = (several_labels(tmp_path, "reuters90", name, target, predicted)
                  for name, predicted in (("a", first), ("b", second)))  # fmt: skip
    entrants = runs_of_methods(tmp_path, ["reuters90"], ["a", "b"], "honest")["reuters90"]
    (pair,) = pairs(tmp_path, "reuters90", entrants)
    assert pair.metric == "micro_f1"
    assert pair.first_value == pytest.approx(one["metrics"]["micro_f1"])
    assert pair.second_value == pytest.approx(other["metrics"]["micro_f1"])
    assert (pair.mcnemar.first_only, pair.mcnemar.second_only) == (5, 10)
    (ranked,) = pairs(tmp_path, "reuters90", entrants, "lraps")
    assert ranked.first_value == pytest.approx(one["metrics"]["lraps"])


def rows_of(home: Path, **wanted: Any) -> list[dict[str, Any]]:
    from textbench.flows.results.index import Index

    return [row for row in Index(home).rows() if all(row[name] == value for name, value in wanted.items())]


def test_the_verdict_names_the_best_the_tied_and_the_cheapest(home: Path) -> None:
    first, second = verdicts(home, rows_of(home))
    assert first.startswith(
        "r52, honest protocol: lsi is best (accuracy 90.83). Statistically tied with it: tfidf (p = "
    )
    assert "The cheapest of them is tfidf: 2.0 s against 9.0 s." in first
    assert "binary" not in first
    assert second.startswith("r8, honest protocol:")
    # A row of a run has no key of the index; its run id leads there.
    without = [
        {k: v for k, v in row.items() if k not in ("key", "created")} for row in rows_of(home, dataset="r8")
    ]
    assert verdicts(home, without) == [second]


def test_the_verdict_of_a_clear_winner_and_of_one_method(home: Path) -> None:
    rows = [row for row in rows_of(home, dataset="r8") if row["method"] != "tfidf"]
    (clear,) = verdicts(home, rows, "macro_f1")
    assert "significantly better than the other one (p <= " in clear
    (alone,) = verdicts(home, [row for row in rows if row["method"] == "lsi"])
    assert alone.endswith("nothing else was run to compare it with.")
    assert verdicts(home, []) == []
    assert verdicts(home, [rows[0] | {"error": "no", "metrics": {}, "key": "x"}]) == []


def test_the_verdict_says_what_it_could_not_test(home: Path) -> None:
    rows = rows_of(home, dataset="r8", seed=0)
    lost = [row | {"key": "0" * 64} if row["method"] == "binary" else row for row in rows]
    (line,) = verdicts(home, lost)
    assert "Not tested: binary (the result of this run is no longer in the store; run it again with:" in line
    other_seed = [row | {"seed": 7} if row["method"] == "tfidf" else row for row in rows]
    assert "Not tested: tfidf (no seed in common with the best)." in verdicts(home, other_seed)[0]
    unkept = [row | {"metrics": row["metrics"] | {"coverage_error": 2.0}} for row in rows]
    assert "coverage_error is not kept per document" in verdicts(home, unkept, "coverage_error")[0]
