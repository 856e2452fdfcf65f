"""The ledger of claims on made runs: what is measured, what is judged, and what is run."""

import importlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import typer
from typer.testing import CliRunner

from tests.made_runs import CLASSES, FAITHFUL, empty_record, entry, finish, one_label
from textbench.evaluation.claims.published import METHODS, Claim, read_claims
from textbench.evaluation.claims.verdicts import Verdict
from textbench.evaluation.metrics.single_label import per_class
from textbench.evaluation.probes.tuning import choose_c, score_classifier
from textbench.flows.cli.claims import claims as command
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import Request
from textbench.flows.referee.ledger import (
    LedgerEntry,
    choose,
    ledger,
    left_to_suites,
    read_measured,
    record,
    requests,
)
from textbench.flows.referee.measurement import Measurement
from textbench.flows.referee.notes import notes_on
from textbench.flows.referee.sentences import judge_sentence
from textbench.flows.report.papers import verdict_counts
from textbench.tasks import InputError, catalogue

RNG = np.random.default_rng(0)
TARGET = np.repeat([0, 1, 2], 400)
BOW = np.where(RNG.random(1200) < 0.80, TARGET, (TARGET + 1) % 3)
BETTER = np.where(RNG.random(1200) < 0.6, TARGET, BOW)
CLAIMS = read_claims()
CEILINGS = {"reuters-random70": {"precision_at_5": 0.25, "precision_at_1": 1.0, "coverage_error": 1.3}}


@pytest.fixture(autouse=True)
def made_ceilings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No audit is computed, and nothing is written into the repository."""
    empty_record(monkeypatch, tmp_path, CEILINGS)


def test_an_empty_folder(tmp_path: Path) -> None:
    """Of 282 claims the impossible and suspect ones are derived, and those that cannot run are known."""
    entries = {found.claim.id: found for found in ledger(tmp_path, read_claims())}
    kinds = [found.verdict.kind for found in entries.values()]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "impossible": 7,  # the made ceilings are of precision at 5 alone
        "suspect": 10,
        "not runnable": 21,
        "not yet run": 244,
    }
    assert entries["scdv-2017/table-3/twe-1/precision@5"].verdict.reason.startswith(
        "precision_at_5 is at most 25.00"
    )
    assert entries["dcot-2012/abstract/speed"].verdict.kind == "suspect"
    assert entries["cfl-2013/figure-4/ag"].verdict.reason == "run it with: textbench run compressive"
    assert "--run" in entries["scdv-2017/table-1/bow/accuracy"].verdict.reason
    assert all("\n" not in found.verdict.reason for found in entries.values())


def test_a_method_without_chance_is_judged_by_rounding_alone(tmp_path: Path) -> None:
    one_label(tmp_path, "20ng", "counts", TARGET, BOW, **FAITHFUL)
    found = entry(tmp_path, "scdv-2017/table-1/bow/accuracy")
    assert found.fresh is not None
    assert found.fresh.basis == "documents"
    accuracy = np.mean(BOW == TARGET)
    assert found.fresh.value == pytest.approx(100 * accuracy)
    error = 100 * math.sqrt(accuracy * (1 - accuracy) / 1200)
    assert found.fresh.low == pytest.approx(100 * accuracy - 1.96 * error, abs=0.15)
    # 79.7 lies in our own interval over documents, which the paper's run shares.
    assert found.fresh.low is not None
    assert found.fresh.high is not None
    assert found.fresh.low < 79.7 < found.fresh.high
    assert found.verdict.kind == "undecided"
    assert "does not state the vocabulary" in found.verdict.reason
    assert "79.7 lies outside" in found.verdict.reason
    assert "q = 0" in found.verdict.algebra[0]
    assert entry(tmp_path, "scdv-2017/table-1/bow/macro-f1").fresh is not None


AVERAGES = "scdv-2017/table-1/weight-avgvec/accuracy"  # 81.9, one run


def averaged(home: Path, accuracies: dict[int, float]) -> LedgerEntry:
    for seed, accuracy in accuracies.items():
        own = {"seed": seed, "metrics": {"accuracy": accuracy}}
        one_label(home, "20ng", "tfidf-avgvec", TARGET, BOW, **own, **FAITHFUL)
    return entry(home, AVERAGES)


def test_seeds_of_a_random_method_say_where_a_published_one_may_lie(tmp_path: Path) -> None:
    found = averaged(tmp_path, {2: 0.814, 0: 0.810, 1: 0.812})
    assert found.fresh is not None
    assert (found.fresh.basis, found.fresh.value) == ("seeds", pytest.approx(81.2))
    # Our mean's own interval leaves 81.9 out; one more run may have it.
    assert found.fresh.high == pytest.approx(81.2 + 4.302653 * 0.2 / math.sqrt(3), abs=1e-4)
    assert found.fresh.high < 81.9 - 0.05
    assert found.verdict.kind == "reproduced"
    assert f"= {4.302653 * 0.2 * math.sqrt(1 + 1 / 3):.4g}" in found.verdict.algebra[1]
    assert found.as_json()["measured"]["seeds"] == [0, 1, 2]
    assert list(found.fresh.each.items()) == [(0, 81.0), (1, pytest.approx(81.2)), (2, pytest.approx(81.4))]
    assert [row["seed"] for row in found.fresh.rows] == [0, 1, 2]
    record(tmp_path, [found])
    again = entry(tmp_path / "empty", AVERAGES).verdict
    assert (again.kind, again.reason, again.algebra) == (
        found.verdict.kind,
        found.verdict.reason,
        found.verdict.algebra,
    )


def test_one_seed_of_a_random_method_decides_nothing(tmp_path: Path) -> None:
    found = averaged(tmp_path, {0: 0.60})
    assert found.verdict.kind == "undecided"
    assert "one run has no spread" in found.verdict.reason


def test_test_documents_of_another_split_count_on_both_sides(tmp_path: Path) -> None:
    """A share f of .3, of N = 3,411 test documents and 120 classes, as the recorded audit has counted them."""
    for seed in (0, 1, 2):
        own = {
            "seed": seed,
            "metrics": {"precision_at_1": 0.9 + 0.001 * seed, "coverage_error": 2.0 + 0.1 * seed},
        }
        finish(tmp_path, "reuters-random70", "avgvec", {"document": [seed]}, **own, **FAITHFUL)
    judged = entry(tmp_path, "scdv-2017/table-3/avgvec/precision@1").verdict
    error = 100 * math.sqrt(0.901 * 0.099 / 3411)
    assert f"e = {error:.4g} over the test documents, f = 0.3 of all" in judged.algebra[1]
    assert f"{0.1**2 * (1 + 1 / 3):.4g} + {1.4001 * error**2:.3g}" in judged.algebra[2]
    ranks = entry(tmp_path, "scdv-2017/table-3/avgvec/coverage-error").verdict
    assert f"e = {math.sqrt((120 - 2.1) * (2.1 - 1) / 3411):.4g}" in ranks.algebra[1]


@pytest.mark.parametrize(
    "other",
    [
        {"protocol": "honest", "paper": None},
        {"paper": "compressive-features-2013"},
        {"request": {"probe": "elastic-net"}},
        {"request": {"labels": {"budget": 100, "draw": 0}}},
        {"request": {"rule": "words"}},
        {"request": {"validation": {"n_folds": 2}}},
        {"error": "it failed"},
    ],
)
def test_other_runs_do_not_count(tmp_path: Path, other: dict[str, Any]) -> None:
    one_label(tmp_path, "20ng", "counts", TARGET, BOW, **(FAITHFUL | other))
    assert entry(tmp_path, "scdv-2017/table-1/bow/accuracy").fresh is None


def test_a_row_with_another_classifier_is_asked_for_by_it(tmp_path: Path) -> None:
    paper = {"protocol": "faithful", "paper": "compressive-features-2013"}
    one_label(tmp_path, "20ng", "counts", TARGET, BOW, request={"probe": "linear-svm"}, **paper)
    assert entry(tmp_path, "cfl-2013/table-1/20newsgroups/bow-svm/accuracy").fresh is not None


def test_the_most_thoroughly_tuned_runs_count(tmp_path: Path) -> None:
    for trials, accuracy in ((0, 0.5), (20, 0.7), (5, 0.9)):
        one_label(
            tmp_path, "20ng", "counts", TARGET, BOW, trials=trials, metrics={"accuracy": accuracy}, **FAITHFUL
        )
    found = entry(tmp_path, "scdv-2017/table-1/bow/accuracy").fresh
    assert found is not None
    assert found.value == pytest.approx(70)


def test_a_class_has_a_rate_a_seed(tmp_path: Path) -> None:
    one_label(tmp_path, "20ng", "counts", TARGET, BOW, **FAITHFUL)
    for seed in (0, 1):
        one_label(tmp_path, "20ng", "scdv", TARGET, np.roll(BETTER, 0), seed=seed, **FAITHFUL)
    judged = entry(tmp_path, "scdv-2017/table-2/scdv/precision:sci.med")
    rates = [per_class(TARGET, predicted, CLASSES)[1]["precision"] for predicted in (BETTER, BOW)]
    found = judged.fresh
    assert found is not None
    assert found.basis == "seeds"
    assert found.each == pytest.approx({0: 100 * rates[0], 1: 100 * rates[0]})
    is_better = 100 * rates[0] > float(judged.claim.text)
    assert judged.verdict.kind == ("better than published" if is_better else "not reproduced")
    own = entry(tmp_path, "scdv-2017/table-2/bow/precision:sci.med").fresh
    assert own is not None
    assert (own.basis, own.value, own.compared) == ("documents", pytest.approx(100 * rates[1]), own.value)
    unknown = entry(tmp_path, "scdv-2017/table-2/bow/precision:rec.autos")
    assert unknown.verdict.reason == "20ng has no class rec.autos"


def test_the_order_in_which_seeds_ran_changes_nothing(tmp_path: Path) -> None:
    predicted = [np.where(RNG.random(1200) < share, TARGET, BOW) for share in (0.2, 0.4, 0.6)]
    found = []
    for order in ((0, 1, 2), (2, 0, 1)):
        home = tmp_path / str(order[0])
        one_label(home, "20ng", "counts", TARGET, BOW, **FAITHFUL)
        for created, seed in enumerate(order):
            one_label(home, "20ng", "scdv", TARGET, predicted[seed], seed=seed, created=created, **FAITHFUL)
        fresh = entry(home, "scdv-2017/table-2/scdv/precision:sci.med").fresh
        assert fresh is not None
        assert [row["seed"] for row in fresh.rows] == [0, 1, 2]
        found.append((fresh.low, fresh.high, list(fresh.each)))
    assert found[0] == found[1]


def test_a_class_wider_than_a_point_is_undecided(tmp_path: Path) -> None:
    """As any other rate is: 200 of 400 documents, and seeds that differ by tens of them."""
    for seed in range(3):
        predicted = np.where(RNG.random(1200) < 0.9, TARGET, (TARGET + 1) % 3)
        predicted[400 : 400 + 20 * seed] = 0
        one_label(tmp_path, "20ng", "scdv", TARGET, predicted, seed=seed, **FAITHFUL)
    judged = entry(tmp_path, "scdv-2017/table-2/scdv/recall:sci.med").verdict
    assert (judged.kind, "wider than 1" in judged.reason) == ("undecided", True)


def test_a_sentence_on_every_class_is_measured_though_the_paper_denies_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert "measured" not in entry(home, "scdv-2017/section-4.2.1/scdv/every-class").verdict.reason
    found = {
        claim.id: Measurement("seeds", 80.0, 80.0, each={0: 80.0, 1: 80.01, 2: 79.99}) for claim in CLAIMS
    }
    found |= {id_: Measurement("documents", 79.0, 79.0) for id_ in found if "/table-2/bow/" in id_}
    (sentence,) = choose("scdv-2017/section-4.2.1")
    holds = judge_sentence(sentence, CLAIMS, lambda claim: found.get(claim.id))
    assert holds is not None
    assert (holds.kind, "all 40" in holds.reason) == ("reproduced", True)
    found["scdv-2017/table-2/scdv/recall:sci.med"] = Measurement(
        "seeds", 78.0, 78.0, each={0: 78.0, 1: 78.01, 2: 77.99}
    )
    denied = judge_sentence(sentence, CLAIMS, lambda claim: found.get(claim.id))
    assert denied is not None
    assert (denied.kind, "recall of sci.med" in denied.reason) == ("not reproduced", True)
    alone = {id_: Measurement("seeds", 80.0, 80.0) for id_ in found}  # no figure of each seed
    open_ = judge_sentence(sentence, CLAIMS, lambda claim: alone[claim.id])
    assert open_ is not None
    assert (open_.kind, "not significant" in open_.reason) == ("undecided", False)  # nothing was tested
    assert "40 of 40 differences have one repetition" in open_.reason


def test_a_sentence_on_speed_is_measured_though_the_paper_denies_it() -> None:
    (sentence,) = choose("dcot-2012/abstract/speed")
    ratio = {"LSI": (0.25, 0.2, 0.3), "LDA": (900.0, 700.0, 1200.0)}

    def found(claim: Claim, is_once: bool = False) -> Measurement:
        value, low, high = ratio[claim.method]
        return Measurement("times the seconds of dcot", 1.0, value, None if is_once else low, high)

    assert judge_sentence(sentence, CLAIMS, found) == Verdict("not reproduced", "0.25 over LSI, 900 over LDA")
    once = judge_sentence(sentence, CLAIMS, lambda claim: found(claim, is_once=True))
    assert once == Verdict("undecided", "0.25 over LSI, 900 over LDA, one timing each")
    ratio["LSI"] = (400.0, 310.0, 500.0)  # by logarithm three orders begin at 316
    assert judge_sentence(sentence, CLAIMS, found) == Verdict("reproduced", "400 over LSI, 900 over LDA")


def test_sizes_of_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 values in 100 rows of 1,000 columns: sparse 8 bytes a value and 4 an index, dense 8 a cell."""
    from scipy.sparse import random as random_matrix

    from textbench.flows.results.runs import Run
    from textbench.tasks.storage.store import Artifact

    one_label(tmp_path, "20ng", "scdv", TARGET, BOW, **FAITHFUL)
    features = Artifact(tmp_path / "features", {})
    features.folder.mkdir()
    for part in ("train", "test"):
        matrix = random_matrix(100, 1000, density=0.01, format="csr", dtype=np.float32, rng=0)
        scipy.sparse.save_npz(features.folder / f"{part}.npz", matrix, compressed=False)
    monkeypatch.setattr(Run, "open", lambda self, name: features)
    size = entry(tmp_path, "scdv-2017/section-5/scdv/feature-megabytes").fresh
    assert size is not None
    assert size.value == pytest.approx((1000 * (8 + 4) + 101 * 4) / 1e6)
    saved = entry(tmp_path, "scdv-2017/section-4.2.3/scdv/sparsity-at-4-percent").fresh
    assert saved is not None
    assert saved.value == pytest.approx(99)
    one_label(tmp_path, "20ng", "bowv(pooling='sum')", TARGET, BOW, **FAITHFUL)
    dense = entry(tmp_path, "scdv-2017/section-5/bowv/feature-megabytes").fresh
    assert dense is not None
    assert dense.value == pytest.approx(100 * 1000 * 8 / 1e6)
    assert not dense.is_random and dense.low == dense.value == dense.high


def test_the_papers_gigabyte_is_its_training_documents_dense() -> None:
    printed = {claim.id: claim for claim in CLAIMS}["scdv-2017/section-5/bowv/feature-megabytes"].printed
    assert printed is not None
    assert printed.low < 11_314 * 12_060 * 8 / 1e6 < printed.high


def timed(home: Path, method: str, seconds: float, seed: int, **row: Any) -> None:
    stages = {"featurize": seconds, "evaluate": 1.0}
    own = {"protocol": "faithful", "paper": "dcot-2012", "timed": True, "attempt": "1.0"}
    finish(home, "reuters65", method, {"document": [0]}, seconds=stages, seed=seed, **(own | row))


def test_seconds_are_ratios_within_one_timed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, factor in enumerate((1.0, 1.1, 0.9)):
        timed(tmp_path, "dcot", 2.0, seed)
        timed(tmp_path, "lsi", 50.0 * factor, seed)
        timed(tmp_path, "tfidf", 1.0, seed, timed=False)
    timed(tmp_path, "tfidf", 1.0, 0, attempt="2.0")
    lsi = entry(tmp_path, "dcot-2012/table-1/reuters65/lsi/seconds")
    assert lsi.fresh is not None
    assert lsi.fresh.value == pytest.approx(50)
    assert lsi.fresh.compared == pytest.approx(25 * (1.1 * 0.9) ** (1 / 3))
    # No seed changes what dCoT learns: three seeds timed it once.
    assert lsi.fresh.low is None
    assert lsi.verdict.kind == "undecided"
    assert "there is one timing" in lsi.verdict.reason
    monkeypatch.setattr("textbench.flows.referee.measurement.is_random", lambda method: True)
    logs = np.log([25.0, 27.5, 22.5])
    reach = 4.302653 * np.std(logs, ddof=1) * math.sqrt(1 + 1 / 3)
    assert entry(tmp_path, lsi.claim.id).fresh.high == pytest.approx(math.exp(logs.mean() + reach))  # type: ignore[union-attr]
    assert entry(tmp_path, "dcot-2012/table-1/reuters65/tf-idf/seconds").fresh is None  # not in the same run
    for seed in (0, 1):
        timed(tmp_path, "lda", 600.0 + seed, seed)
    own = entry(tmp_path, "dcot-2012/table-1/reuters65/dcot/seconds")
    assert own.fresh is not None
    assert own.fresh.basis == "times as fast as lda"
    assert own.fresh.compared == pytest.approx(math.sqrt(300 * 300.5))


def test_a_prefix_is_of_whole_parts() -> None:
    assert {claim.method for claim in choose("scdv-2017/table-1/bow")} == {"BoW"}
    assert {claim.place for claim in choose("scdv-2017/table-1/")} == {"table-1"}
    assert len(choose()) == 282


def test_an_impossible_figure_stays_impossible_when_measured(tmp_path: Path) -> None:
    metrics = {"metrics": {"precision_at_5": 0.24, "precision_at_1": 0.9}}
    for seed in (0, 1):
        finish(tmp_path, "reuters-random70", "counts", {"document": [seed]}, seed=seed, **metrics, **FAITHFUL)
    found = entry(tmp_path, "scdv-2017/table-3/scdv/precision@5")
    assert found.verdict.kind == "impossible"
    assert found.verdict.reason.startswith(
        "precision_at_5 is at most 25.00 (± 1.72 with another split) on the test documents of reuters-random70"
    )


def test_what_is_missing_is_run_one_seed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "LDA", "lsi")
    monkeypatch.setitem(METHODS, "dCoT", "binary")
    wanted = [*choose("scdv-2017/table-1"), *choose("dcot-2012/table-1/reuters65")]
    known = {
        name: entry
        for name, entry in catalogue.methods().items()
        if name in ("counts", "lsi", "tfidf", "binary")
    }
    monkeypatch.setattr(catalogue, "methods", lambda: known)
    one, more, last = requests(ledger(tmp_path, wanted))
    assert (one.datasets, one.methods, one.seeds) == (["20ng"], ["lsi", "counts"], [0])
    assert (one.protocol, one.paper, one.timed) == ("faithful", "scdv-2017", False)
    assert (more.methods, more.seeds) == (["lsi"], [1, 2, 3, 4])
    assert (last.datasets, last.paper, last.seeds, last.timed) == (
        ["reuters65"],
        "dcot-2012",
        [0, 1, 2],
        True,
    )
    assert set(last.methods) == {"tfidf", "lsi", "binary"}


def test_nothing_is_run_again(tmp_path: Path) -> None:
    one_label(tmp_path, "20ng", "counts", TARGET, BOW, **FAITHFUL)
    assert requests(ledger(tmp_path, choose("scdv-2017/table-1/bow/accuracy"))) == []


def test_claims_of_pieces_are_left_to_their_suite(tmp_path: Path) -> None:
    figures = ["cfl-2013/figure-4/ag", "cfl-2013/figure-4/bh"]
    assert left_to_suites(ledger(tmp_path, choose("cfl-2013/figure-4"))) == {"compressive": figures}
    entries = ledger(tmp_path, choose("cfl-2013"))
    run = {entry.claim.id for entry in entries if requests([entry])}
    assert run and run.isdisjoint(id_ for ids in left_to_suites(entries).values() for id_ in ids)


def test_trials_are_asked_for(tmp_path: Path) -> None:
    one_label(tmp_path, "20ng", "counts", TARGET, BOW, **FAITHFUL)
    (request,) = requests(ledger(tmp_path, choose("scdv-2017/table-1/bow")), trials=10)
    assert (request.trials, request.methods, request.timed) == (10, ["counts"], False)


PROTOCOLS = [
    (name, paper)
    for name, entry in catalogue.datasets().items()
    for paper in entry.constant("FAITHFUL", {})
    if not name.startswith("reuters-random")  # of several labels
]


@pytest.mark.parametrize(("dataset", "paper"), PROTOCOLS)
def test_a_papers_way_to_tune_suits_every_classifier(dataset: str, paper: str) -> None:
    """Its grids are of its own probe's constants; bag of words with another one, and Naive Bayes, are rows too."""
    rng = np.random.default_rng(0)
    X, y = scipy.sparse.csr_matrix(rng.poisson(1, (40, 5))), np.arange(40) % 2
    for method, probe in (("counts", None), ("counts", "linear-svm"), ("nb", None)):
        (cell,) = plan(Request([dataset], [method], protocol="faithful", paper=paper, probe=probe))
        asked = cell.references["tune"].params
        if asked["probe"]:
            found = choose_c(X, y, asked["probe"], **asked["validation"])
        else:
            found = score_classifier(catalogue.method(method).load().build, X, y, **asked["validation"])
        n_folds = 1 if "held_out" in asked["validation"] else asked["validation"].get("n_folds", 3)
        assert found.n_folds == n_folds


def run(*arguments: object, code: int = 0) -> str:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


def test_json_is_all_that_is_printed() -> None:
    rows = [json.loads(line) for line in run("--json").splitlines()]
    assert [row["id"] for row in rows] == [claim.id for claim in read_claims()]
    assert rows[0]["published"] == 84.6
    assert {"verdict", "reason", "measured", "recorded", "unit"} <= rows[0].keys()


def test_run_computes_what_is_missing_and_prints_the_ledger_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def run_flow(home: Path, request: Request, **_: Any) -> tuple[list[dict[str, Any]], None]:
        print("rows of cells")
        asked.append(request)
        return [one_label(home, "20ng", "counts", TARGET, BOW, **FAITHFUL)], None

    command = importlib.import_module("textbench.flows.cli.claims")  # the package has a function of that name
    monkeypatch.setattr(command, "run_flow", run_flow)
    id_ = "scdv-2017/table-1/bow/accuracy"
    (row,) = [json.loads(line) for line in run(id_, "--run", "--json").splitlines()]
    assert (row["id"], row["measured"]["basis"]) == (id_, "documents")
    assert [(request.methods, request.protocol) for request in asked] == [(["counts"], "faithful")]
    run(id_, "--run", "--record")
    assert len(asked) == 1  # nothing was missing
    assert list(read_measured()) == [id_]
    monkeypatch.setattr(command, "run_flow", lambda *_, **__: ([{"error": "it failed"}], None))
    run("cfl-2013/table-1/20newsgroups/naive-bayes", "--run", code=1)


def test_what_is_not_runnable_is_licensed_or_lost(tmp_path: Path) -> None:
    """As the legend says: of every claim some method here is the one that is meant."""
    entries = [e for e in ledger(tmp_path, CLAIMS) if e.verdict.kind == "not runnable"]
    assert {e.verdict.reason.partition(":")[0] for e in entries} == {"licensed", "lost"}
    (row,) = [row for row in verdict_counts(entries).rows if row[0].text == "not runnable"]
    assert row[-1].text == "data licensed or lost"


def test_the_table_counts_the_verdicts() -> None:
    text = " ".join(run("--paper", "dcot-2012").split())
    assert "13 claims: 1 suspect, 5 not runnable, 7 not yet run." in text
    assert "dcot-2012: three orders of magnitude over LSI and LDA: suspect" in text
    # Rates of classes are counted apart, and last.
    rates = " ".join(run("scdv-2017/table-2").split())
    assert "claims:" not in rates
    assert rates.endswith("80 rates of classes: 80 not yet run.")
    few = " ".join(run("dcot-2012/abstract").split())
    assert "the paper's own seconds give ratios of 26 over LSI on reuters65" in few


def test_a_claim_is_explained_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("TEXTBENCH_HOME", str(home))
    one_label(home, "20ng", "counts", TARGET, BOW, **FAITHFUL)
    id_ = "scdv-2017/table-1/bow/accuracy"
    found = entry(home, id_)
    text = " ".join(run(id_, "--explain").split())
    for part in (
        "79.7 percent",
        "table-1: BoW on 20newsgroups-bydate",
        "counts seed 0: C = 1.0",
        found.verdict.reason,
    ):
        assert part in text
    assert f"{found.fresh.value:.6g}" in text  # type: ignore[union-attr]
    (row,) = [json.loads(line) for line in run(id_, "--explain", "--json").splitlines()]
    assert list(row["explanation"])[:5] == ["published", "protocol", "measured here", "interval", "verdict"]
    noted = "cfl-2013/table-1/20newsgroups/naive-bayes/accuracy"
    figures = [figure for note in notes_on(noted) for one in note.experiments for figure in one.figures]
    shown = " ".join(run(noted, "--explain").split())
    assert figures and all(str(figure) in shown for figure in figures)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--paper", "scdv"], "did you mean scdv-2017?"),
        (
            ["scdv-2017/tabel-1/bow"],
            "no claim's id begins with 'scdv-2017/tabel-1/bow'; did you mean scdv-2017/table-1/bow",
        ),
        (["--trials", "-1"], "--trials must be at least 0, got -1"),
        (["--data-dir", "/nowhere"], "--data-dir /nowhere is not a folder"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        run(*arguments)
    assert message in str(caught.value)
