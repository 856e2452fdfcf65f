"""The compressive-features paper's pieces, exhibits and answers, on a small corpus in the place of 20 Newsgroups."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from tests.made_runs import empty_record, one_label
from textbench.evaluation.claims.published import read_claims
from textbench.flows.papers.compressive import derived as plans
from textbench.flows.papers.compressive import exhibits
from textbench.flows.papers.compressive import results as figures
from textbench.flows.papers.compressive.answers import METRICS
from textbench.flows.plan.cell import plan
from textbench.flows.plan.derived import DerivedArtifact, plan_derived
from textbench.flows.plan.request import DerivedRequest, Request
from textbench.flows.plan.suites import parts
from textbench.flows.referee.ledger import _missing, _record, judge
from textbench.flows.referee.measurement import FaithfulRuns
from textbench.tasks.stages import STAGES
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store

CLAIMS = {claim.id: claim for claim in read_claims()}
MODULE = __name__
SHARES = (0.4, 0.6)


def make_corpus(job: Job) -> None:
    """Write the targets of 60 training and 40 test documents."""
    for part, n_documents in (("train", 60), ("test", 40)):
        targets = np.arange(n_documents) % job.params["n_classes"]
        job.save_table(part, {"text": ["-"] * n_documents, "target": targets})
    job.save_json("corpus", {"target_names": ["a", "b"], "sha256": {"made.tar": "0" * 64}})


def make_features(job: Job) -> None:
    """Write counts that tell the classes apart, better for compressed features than for others."""
    rng = np.random.default_rng(1)
    for part, n_documents in (("train", 60), ("test", 40)):
        targets = np.arange(n_documents) % job.params["n_classes"]
        weight = 6.0 if job.params["method"] == "compressive" else 0.7
        rates = np.full((n_documents, 20), 1.0)
        rates[np.arange(n_documents), targets] += weight
        job.save_matrix(part, csr_matrix(rng.poisson(rates).astype(np.float32)))


def make_path(job: Job) -> None:
    """Write two steps of a path."""
    steps = [(0.1, 900, 400, 1.2, 500.0, 499.0, 0.1, 0.2), (1.0, 500, 200, 2.2, 700.0, 698.0, 0.3, 0.2)]
    names = ("pointer_cost", "n_features", "n_pointers", "mean_length", "objective", "lower_bound")
    job.save_json("path", [dict(zip((*names, "cv_error", "error"), step, strict=True)) for step in steps])


def before(
    groups: Sequence[str], method: str, transductive: bool = True, seed: int = 0
) -> dict[str, Reference]:
    params = {"n_classes": len(groups)}
    corpus = Reference("classes", f"{MODULE}:make_corpus", params | {"groups": list(groups)})
    features = params | {"method": method, "seed": seed, "transductive": transductive}
    return {
        "ingest": corpus,
        "classes": corpus,
        "vectorize": corpus,
        "featurize": Reference("featurize", f"{MODULE}:make_features", features),
    }


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(plans, "_before", before)
    monkeypatch.setattr(plans, "SHARES", SHARES)
    monkeypatch.setattr(plans, "N_DRAWS", 4)
    monkeypatch.setattr(plans, "BLOCK", 2)
    monkeypatch.setattr(plans, "N_RANDOM", 2)
    monkeypatch.setattr(
        plans.compression_path,
        "reference",
        lambda *_: Reference("compression_path", f"{MODULE}:make_path", {}),
    )
    return tmp_path


def make(home: Path, pieces: Sequence[DerivedArtifact]) -> None:
    store = Store(home / "store", isolated=False)
    for piece in pieces:
        for reference in piece.references.values():
            store.ensure(reference)


def picture(exhibit: Any, folder: Path) -> str:
    path = folder / f"{exhibit.name}.svg"
    exhibit.draw(path)
    return path.read_text("utf-8")


def test_the_suite_plans_its_pieces_once_each_in_stages_that_are_there() -> None:
    suite = [part.request for part in parts("compressive") if isinstance(part.request, DerivedRequest)]
    planned = [piece for request in suite for piece in plan_derived(request)]
    assert {name for request in suite for name in request.pieces} == plans.PLANS.keys()
    # The compressed features of figure 2 are the end of a line of figure 4.
    assert len({piece.key for piece in planned}) == len(planned) - 1
    assert {stage for piece in planned for stage in piece.references} <= STAGES.keys()
    blocks = [p for p in planned if p.stage == "resamples" and p.reference.params["share"] < 1]
    draws = [
        (p.dataset, p.method, *[p.reference.params[n] for n in ("penalty", "known", "share")], draw)
        for p in blocks
        for draw in p.reference.params["draws"]
    ]
    wanted = sum(plans.BLOCK if line.known else plans.N_DRAWS for line in plans.LINES)
    assert len(set(draws)) == len(draws) == 2 * len(plans.SHARES) * wanted


def test_a_search_under_the_papers_protocol_is_of_the_pointer_cost_alone() -> None:
    for protocol, fixed in (("faithful", {"weighting": "counts"}), ("honest", {})):
        request = Request(["20ng"], ["compressive"], [0], protocol, trials=8)
        (cell,) = plan(request)
        assert cell.references["tune"].params["fixed"] == fixed
    (cell,) = plan(Request(["20ng"], ["compressive"], [0], "faithful"))
    assert cell.references["tune"].params["fixed"] == {}


@pytest.mark.parametrize(
    ("dataset", "norms", "ratios", "largest"),
    [
        ("20ng", {"row_norm": ["l1"]}, [0.01, 0.03, 0.1], 0.03),
        ("imdb", {}, [0.001, 0.003, 0.01, 0.03], 0.003),
    ],
)
def test_the_elastic_nets_grid_is_the_papers_own(
    dataset: str, norms: dict[str, list[str]], ratios: list[float], largest: float
) -> None:
    (cell,) = plan(Request([dataset], ["compressive"], [0], "faithful", paper="compressive-features-2013"))
    asked = cell.references["tune"].params["validation"]
    assert asked["settings"] == {**norms, "l1_ratio": ratios}
    assert (asked["n_folds"], max(asked["c_grid"])) == (10, largest)
    request = Request([dataset], ["counts"], [0], "faithful", probe="linear-svm", paper=cell.request.paper)
    (other,) = plan(request)
    assert other.references["tune"].params["validation"] == {"n_folds": 10}


def test_lz77_uses_labels_where_its_order_goes_by_them() -> None:
    for piece in plans.figure_2():
        uses = any(order in piece.method for order in ("by_class", "alternating"))
        assert ("labels" in piece.references["featurize"].params) == uses


def test_figure_2_has_the_error_of_every_order(home: Path) -> None:
    assert exhibits.figure_2(home) is None
    make(home, plans.figure_2())
    exhibit = exhibits.figure_2(home)
    assert exhibit is not None
    assert [row[:3] for row in exhibit.rows] == [
        [name, 2 if name == "random" else 1, 20] for name in figures.ROWS.values()
    ]
    store = Store(home / "store", isolated=False)
    piece = next(p for p in plans.figure_2() if p.method == "lz77(order='by_class')")
    (draw,) = store.open(piece.reference).json("draws")
    errors = [round(100 * draw[tuning]["error"], 3) for tuning in ("on_test", "tuned")]
    assert [exhibit.rows[0][3], exhibit.rows[0][5]] == errors
    share = errors[0] / 100
    assert exhibit.rows[0][4] == pytest.approx(100 * np.sqrt(share * (1 - share) / 40), rel=0.3)
    assert "LZ77 alternating" in picture(exhibit, home)


def test_figure_2_is_judged_in_pairs_once_it_is_whole(home: Path) -> None:
    claim = CLAIMS["cfl-2013/figure-2/order"]
    make(home, plans.figure_2()[:-1])
    assert FaithfulRuns(home).measure(claim, CLAIMS) is None
    make(home, plans.figure_2())
    found = FaithfulRuns(home).measure(claim, CLAIMS)
    assert found is not None and len(found.comparisons) == 7
    rows = {row.name: row for row in figures.orders(home)}
    assert all(comparison.detectable is not None for comparison in found.comparisons)
    for comparison in found.comparisons:
        better, _, worse = comparison.pair.replace("LZ77 ", "").partition(" against ")
        gap = rows[worse].error["on_test"] - rows[better].error["on_test"]
        assert comparison.difference == pytest.approx(gap)
    verdict = judge(claim, found, CLAIMS)
    assert verdict is not None and verdict.kind in ("undecided", "not reproduced")
    record = _record(home, claim, found, "0" * 40)
    assert record["command"] == "textbench run compressive" and record["data_sha256"].startswith("made.tar=")


def test_figure_3_draws_a_panel_for_what_is_there(home: Path) -> None:
    assert exhibits.figure_3(home) is None
    make(home, plans.figure_3()[:3])
    exhibit = exhibits.figure_3(home)
    assert exhibit is not None
    assert [row[:3] for row in exhibit.rows] == [
        ["A G", "compressed features", 20],
        ["A G", "all 5-grams", 20],
        ["A PC M S PM", "compressed features", 20],
    ]
    assert exhibit.rows[0][-1] < exhibit.rows[1][-1]
    assert "1 panel is not made yet" in exhibit.caption
    svg = picture(exhibit, home)
    assert svg.count("compressed features") == 2 and "PM" in svg


def test_figure_4_averages_over_draws_and_says_how_many(home: Path) -> None:
    make_some = partial(make, home)
    planned = plans.figure_4(plans.TWO)
    make_some(planned[:14])
    unfinished = exhibits.figure_4(home, "ag", "A and G", "resamples-ag")
    assert unfinished is not None and "2 to 4 of 4 draws are there" in unfinished.caption
    make_some(planned)
    exhibit = exhibits.figure_4(home, "ag", "A and G", "resamples-ag")
    assert exhibit is not None and "draws are there" not in exhibit.caption
    assert len(exhibit.rows) == len(plans.LINES) * 3
    assert [row[1:4] for row in exhibit.rows[:3]] == [[40, 24, 4], [60, 36, 4], [100, 60, 1]]
    lines = figures.lines(home, "resamples-ag")
    errors = lines["compressed"][0.4].errors["tuned"]
    assert sorted(errors) == [0, 1, 2, 3]
    assert exhibit.rows[0][6] == pytest.approx(100 * np.mean(list(errors.values())), abs=1e-3)
    assert all(name in picture(exhibit, home) for name in lines)


def test_figure_4_is_judged_at_every_share_without_the_line_that_is_not_the_papers(home: Path) -> None:
    claim = CLAIMS["cfl-2013/figure-4/ag"]
    planned = plans.figure_4(plans.TWO)
    make(home, [p for p in planned if p.reference.params["share"] < 1])
    assert FaithfulRuns(home).measure(claim, CLAIMS) is None
    make(home, planned)
    found = FaithfulRuns(home).measure(claim, CLAIMS)
    assert found is not None
    assert len(found.comparisons) == 2 * (len(SHARES) + 1)
    assert not any("known" in comparison.pair for comparison in found.comparisons)
    assert all(comparison.difference > 0 for comparison in found.comparisons)  # it was made so
    assert all(comparison.detectable and comparison.detectable > 0 for comparison in found.comparisons)
    assert FaithfulRuns(home).measure(CLAIMS["cfl-2013/figure-4/bh"], CLAIMS) is None


def test_the_path_is_shown_step_by_step(home: Path) -> None:
    assert exhibits.path_of_costs(home) is None
    make(home, plans.path())
    exhibit = exhibits.path_of_costs(home)
    assert exhibit is not None
    assert exhibit.rows[1] == [1.0, 500, 200, 2.2, round(700 / 698, 5), 30.0, 20.0]
    assert "pointer cost" in picture(exhibit, home)


def test_nothing_stored_shows_and_answers_nothing(home: Path) -> None:
    assert exhibits.exhibits(home) == []
    for claim in CLAIMS.values():
        if claim.metric in METRICS:
            assert FaithfulRuns(home).measure(claim, CLAIMS) is None
            assert _missing(claim) == "run it with: textbench run compressive"


def test_table_1_has_the_papers_rows_and_the_baselines_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exhibits, "_n_features", lambda *_: 12)
    empty_record(monkeypatch, tmp_path)
    assert exhibits.table_1(tmp_path) is None
    target, right = [0, 1] * 20, [0, 1] * 18 + [1, 0] * 2
    one_label(tmp_path, "20ng", "nb", target, right, protocol="faithful", paper=figures.PAPER)
    one_label(tmp_path, "imdb", "tfidf", target, right[::-1])
    one_label(tmp_path, "imdb", "compressive", target, right, request={"probe": "elastic-net"})
    exhibit = exhibits.table_1(tmp_path)
    assert exhibit is not None
    claims = [claim for claim in CLAIMS.values() if claim.id.startswith("cfl-2013/table-1")]
    assert [row[1] for row in exhibit.rows] == [
        *(claim.method for claim in claims),
        "tfidf",
        "compressive",
    ]
    by_name = {(row[0], row[1]): row for row in exhibit.rows}
    naive_bayes = by_name["20ng", "Naive Bayes"]
    assert naive_bayes[3:5] == [81.8, 90.0] and naive_bayes[5] < 90 < naive_bayes[6]
    assert by_name["20ng-body", "DRBM"][4:8] == [None, None, None, "not yet run"]
    assert by_name["imdb", "tfidf"][2:5] == ["honest", None, 10.0]
    assert by_name["imdb", "compressive"][2] == "honest, elastic-net"
    assert "3 of " in exhibit.caption and "Naive Bayes" in picture(exhibit, tmp_path)
