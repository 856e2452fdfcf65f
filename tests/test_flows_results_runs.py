"""Which finished run a name means: `best`, `last`, a method, an id; and what the commands say they took."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.made_runs import one_label, several_labels
from textbench.flows.cli import app
from textbench.flows.results.runs import find_run
from textbench.tasks import InputError

N = 60
TARGET = [number % 3 for number in range(N)]


def wrong(n: int) -> list[int]:
    """Predictions of which `n` are wrong."""
    return [(target + (number < n)) % 3 for number, target in enumerate(TARGET)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs on r8 and r52: lsi is best on r8 over two seeds, though a seed of tfidf is better; on r52 binary is."""
    home = tmp_path_factory.mktemp("finished")
    made = [
        ("r8", "tfidf", 1, 20, {}), ("r8", "tfidf", 0, 4, {}), ("r8", "lsi", 1, 5, {}), ("r8", "lsi", 0, 6, {}),
        ("r8", "nb", 0, 0, {"protocol": "transductive"}),
        ("r8", "tfidf", 2, 1, {"request": {"labels": {"budget": 100, "draw": 0, "stratified": False}}}),
        ("r52", "tfidf", 0, 9, {}), ("r52", "binary", 0, 2, {}), ("r52", "nb", 0, 30, {}),
    ]  # fmt: skip
    for created, (dataset, method, seed, n_wrong, others) in enumerate(made, 1):
        row: dict[str, Any] = {"seed": seed, "created": float(created), "run_id": f"{dataset}-{created:06}"}
        one_label(home, dataset, method, TARGET, wrong(n_wrong), **row, **others)
    return home


def found(home: Path, *names: str | None) -> tuple[str, str, int]:
    row = find_run(home, *names)  # type: ignore[arg-type]
    return row["dataset"], row["method"], row["seed"]


def test_last_is_the_newest_run_of_what_was_asked_for(home: Path) -> None:
    assert found(home, "last") == ("r52", "nb", 0)
    assert found(home, "last", "r8") == ("r8", "tfidf", 2)
    assert found(home, "last", None, "transductive") == ("r8", "nb", 0)


def test_best_is_the_lowest_seed_of_the_method_that_the_leaderboard_ranks_first(home: Path) -> None:
    assert found(home, "best", "r8") == ("r8", "lsi", 0)
    assert found(home, "best", "r52") == ("r52", "binary", 0)
    assert found(home, "best", "r8", "transductive") == ("r8", "nb", 0)
    assert found(home, "best", None, "transductive") == ("r8", "nb", 0)


def test_best_ranks_several_labels_by_their_metric(tmp_path: Path) -> None:
    target = [[0], [1], [0, 1], [2]] * 5
    several_labels(tmp_path, "reuters90", "tfidf", target, [[2], [0], [2], [1]] * 5)
    several_labels(tmp_path, "reuters90", "lsi", target, target)
    assert found(tmp_path, "best") == ("reuters90", "lsi", 0)


def test_best_mixes_neither_data_sets_nor_protocols(home: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"of one data set, and there are runs on r52, r8; say which with -d$"
    ):
        find_run(home, "best")
    one_label(tmp_path, "r8", "tfidf", TARGET, wrong(3), protocol="transductive")
    assert found(tmp_path, "best") == ("r8", "tfidf", 0)
    one_label(tmp_path, "r8", "tfidf", TARGET, wrong(4), protocol="faithful")
    with pytest.raises(
        InputError, match=r"there are faithful and transductive runs on r8; say which with --pro"
    ):
        find_run(tmp_path, "best")


def test_best_mixes_no_two_files_of_one_name(tmp_path: Path) -> None:
    for digit, method, n_wrong in (("1", "tfidf", 5), ("1", "lsi", 9), ("2", "nb", 1)):
        sizes = {"documents_sha256": digit * 64, "n_train": 140, "n_test": N, "n_labels": 3}
        request = {"own": {"path": f"/{digit}/data.csv"}}
        one_label(tmp_path, "data", method, TARGET, wrong(n_wrong), corpus=sizes, request=request)
    with pytest.raises(InputError, match=r"there are runs on data, data \(2\); say which with -d$"):
        find_run(tmp_path, "best")
    assert found(tmp_path, "best", "data") == ("data", "tfidf", 0)
    assert found(tmp_path, "best", "data (2)") == ("data (2)", "nb", 0)


def test_nothing_is_best_where_nothing_is_compared(tmp_path: Path) -> None:
    one_label(tmp_path, "r8", "tfidf", TARGET, wrong(3), seed=0)
    one_label(tmp_path, "r8", "lsi", TARGET, wrong(1), seed=1)
    with pytest.raises(InputError, match="no run on r8 is the best: no two methods ran the same seed"):
        find_run(tmp_path, "best")


def test_a_method_is_its_newest_run_on_all_labels(home: Path) -> None:
    assert found(home, "tfidf") == ("r52", "tfidf", 0)
    assert found(home, "tfidf", "r8") == ("r8", "tfidf", 0)
    assert found(home, "nb", "r8") == ("r8", "nb", 0)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("binary", "r8"), "no finished run of binary on r8; make one with: textbench run -d r8 -m binary"),
        (
            ("binary", None, "faithful"),
            "there are no finished runs under the faithful protocol; the latest are ",
        ),
        (("lsi", "r52"), "no finished run of lsi on r52; make one with: textbench run -d r52 -m lsi"),
        (
            ("nb", "r8", "honest"),
            "of nb on r8 under the honest protocol; make one with: textbench run -d r8 -m nb -",
        ),
        (("last", "r9"), "there is no data set 'r9'; did you mean r8"),
        (("last", "20ng"), "there are no finished runs on 20ng; the latest are "),
        (("best", "r8", "onest"), "there is no protocol 'onest'; did you mean honest?"),
        (("tfdif",), "got 'tfdif'; did you mean tfidf?"),
        (("bset",), "got 'bset'; did you mean best?"),
        (("r8-000001", "r52"), "there is no finished run 'r8-000001'; the latest are "),
    ],
)
def test_what_means_no_run_is_refused(names: tuple[str, ...], message: str, home: Path) -> None:
    with pytest.raises(InputError) as caught:
        find_run(home, *names)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_commands_say_which_run_they_took(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(home))
    key = find_run(home, "best", "r8")["key"]
    shown = CliRunner().invoke(app, ["show", "best", "-d", "r8", "--json"])
    assert shown.stderr == f"textbench: best is r8 lsi seed 0, honest, linear-svm, {key[:12]}\n"
    assert CliRunner().invoke(app, ["show", key[:8], "--json"]).stderr == ""
    compared = CliRunner().invoke(app, ["compare", "best", "tfidf", "-d", "r8"])
    assert [line.split(",")[0] for line in compared.stderr.splitlines()] == [
        "textbench: best is r8 lsi seed 0", "textbench: tfidf is r8 tfidf seed 0",
    ]  # fmt: skip
    assert "60 test documents" in " ".join(compared.stdout.split())


def test_a_point_of_a_curve_is_told_with_its_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    labels = {"budget": 60, "draw": 1, "stratified": True}
    one_label(tmp_path, "r8", "nb", [0, 1] * 5, [0, 1] * 5, request={"labels": labels}, probe=None)
    shutil.rmtree(tmp_path / "store")  # what is recorded is shown without what was computed
    shown = CliRunner().invoke(app, ["show", "last"])
    assert "60 labels, draw 1, stratified" in shown.stdout
    assert "r8 nb seed 0, honest, 60 labels, draw 1, stratified, " in shown.stderr
    assert "default settings\n" in "\n".join(line.rstrip() for line in shown.stdout.splitlines())
    assert "probe" not in shown.stdout
    assert "one seed has none." in " ".join(shown.stdout.split())
