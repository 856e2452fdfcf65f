"""Ensembles of tuned methods: what is asked for, what is learned from, and what results."""

from dataclasses import asdict
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer

from tests.own_documents import write
from textbench.evaluation import ensembles
from textbench.evaluation.ensembles import as_probabilities
from textbench.evaluation.metrics.calibration import PROBABILITIES
from textbench.evaluation.probes import out_of_fold as out_of_fold_probes
from textbench.evaluation.probes import thresholds, tuning
from textbench.evaluation.probes.linear import dense_indicator
from textbench.flows.explain.answering import answered
from textbench.flows.explain.export import Model
from textbench.flows.plan.cell import SCORES, Cell, plan
from textbench.flows.plan.request import BenchmarkRequest, Request
from textbench.flows.results import calibrated
from textbench.flows.results.calibrated import calibration
from textbench.flows.results.leaderboard import FORMATS
from textbench.flows.results.method_names import is_pretrained
from textbench.flows.results.rows import result_row
from textbench.flows.results.runs import Run
from textbench.tasks import InputError, catalogue, ensemble, fold_scores, ngrams, out_of_fold, tokens
from textbench.tasks.corpus import read_targets
from textbench.tasks.storage.store import Artifact, Store

ROWS = [(f"w{i % 7} {'apple' if i % 2 else 'iron'} w{i % 5}", "ab"[i % 2]) for i in range(48)]
SEVERAL = [(text, f"{label}|{'c' if i % 3 else 'd'}") for i, (text, label) in enumerate(ROWS)]


def test_ways_to_weigh_are_those_that_can_be_learned() -> None:
    assert ensemble.SCHEMES == ensembles.SCHEMES


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ensembles")
    for name, rows in (("one", ROWS), ("several", SEVERAL)):
        write(folder, f"{name}.csv", "text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return folder


@pytest.fixture(scope="module")
def store(home: Path) -> Store:
    return Store(home / "store", isolated=False)


def cell_of(
    home: Path, method: str, data: str = "one", kind: type[Request] = Request, **options: Any
) -> Cell:
    own = {"path": str(home / f"{data}.csv")} | ({"label_separator": "|"} if data == "several" else {})
    return plan(kind([], [method], own=own, **options))[0]


def test_an_ensemble_is_spelled_as_it_is_read() -> None:
    asked = "ensemble(tfidf, lsi(n_components=5)@letters, join(tfidf, counts), weights='equal')"
    name, params = catalogue.parse_method(asked)
    assert catalogue.parse_method(catalogue.spelled(name, params)) == (name, params)
    assert ensemble.titled(params) == asked
    assert ensemble.members(params) == [
        ("tfidf", None),
        ("lsi(n_components=5)", "letters"),
        ("join(tfidf, counts)", None),
    ]
    assert is_pretrained("ensemble(tfidf, sentence)") and not is_pretrained(asked)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("ensemble(tfidf)", "an ensemble needs at least two members, got 1"),
        ("ensemble(tfidf, tfidf)", "a member of an ensemble counts as often as is best, got tfidf twice"),
        (
            "ensemble(nb, tfidf@words, tfidf)",
            "tfidf and tfidf@words are one on one, where words is the token rule of both",
        ),
        ("ensemble(tfidf, ensemble(nb, lsi))", "a member of an ensemble is a method of the catalogue"),
        ("ensemble(tfidf, nbb)", "there is no method 'nbb'; did you mean nb?"),
        ("ensemble(tfidf, nb@wordss)", "there is no token rule 'wordss'; did you mean words"),
        ("ensemble(tfidf, nb, weights='best')", "there is no way to weigh members 'best'"),
        (
            "ensemble(tfidf, nb, draws=3)",
            "ensemble takes methods, as in ensemble.tfidf, nb-svm., weights and smooth",
        ),
    ],
)
def test_what_is_no_ensemble_is_refused(home: Path, asked: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        cell_of(home, asked)


def test_members_are_runs_and_their_scores_are_of_training_documents_alone(home: Path, store: Store) -> None:
    cell = cell_of(home, "ensemble(tfidf, nb, nb@letters)")
    row = result_row(cell, store)
    assert cell.method == row["method"] == "ensemble(tfidf, nb, nb@letters)"
    assert row["metrics"]["accuracy"] == 1 and sum(row["params"].values()) == pytest.approx(1)
    assert row["seconds"].keys() == {"ingest", "vectorize", "featurize", "tune", "evaluate", SCORES}
    alone = [cell_of(home, "tfidf"), cell_of(home, "nb"), cell_of(home, "nb", rule="letters")]
    results = [cell.reference.inputs[name].key for name in ("member_01", "member_02", "member_03")]
    assert results == [one.key for one in alone]
    chosen = store.open(cell.references["tune"])
    n_train = store.open(cell.references["ingest"]).table("train").num_rows
    assert chosen.array("documents").tolist() == list(range(n_train))
    assert chosen.array("scores").shape == (n_train, 2)
    scores = store.open(cell.reference).array("scores")
    np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1, rtol=1e-6)
    again = plan(Request(**{k: v for k, v in asdict(cell.request).items() if k != "_kept"}))[0]
    assert (again.key, again.method) == (cell.key, cell.method)


def test_a_member_that_chose_an_end_of_its_search_marks_the_ensemble(
    home: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, read = cell_of(home, "ensemble(tfidf, nb)"), Artifact.json
    assert result_row(cell, store)["on_border"] == []

    def at_an_end(artifact: Artifact, name: str) -> Any:
        found = read(artifact, name)
        of_member = artifact.folder == store.open(cell.references["02 tune"]).folder
        return found | {"on_border": ["C", "smoothing"]} if of_member else found

    monkeypatch.setattr(Artifact, "json", at_an_end)
    assert result_row(cell, store)["on_border"] == ["C", "smoothing"]


def test_test_documents_decide_together_where_the_protocol_lets_them(home: Path, store: Store) -> None:
    asked = "ensemble(tfidf, nb, smooth=True)"
    with pytest.raises(
        InputError, match="reads the test texts that are near one another: say --protocol trans"
    ):
        cell_of(home, asked)
    cell = cell_of(home, asked, protocol="transductive")
    row = result_row(cell, store) | {"key": cell.key, "run_id": None, "request": asdict(cell.request)}
    assert row["metrics"]["accuracy"] == 1 and row["method"] == asked
    assert store.open(cell.references["tune"]).json("ensemble")["share"] in ensembles.SHARES
    with pytest.raises(InputError, match="there is no model of one text"):
        Model.from_run(Run(home, row))


def test_what_is_said_of_test_documents_is_smoothed_by_the_share_that_training_documents_chose(
    home: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensembles, "best_share", lambda *_, **__: 0.5)
    plain, cell = (
        cell_of(home, f"ensemble(tfidf, counts{smooth})", protocol="transductive")
        for smooth in ("", ", smooth=True")
    )
    for one in (plain, cell):
        result_row(one, store)
    vectors = store.open(cell.references["tune"].inputs["near"])
    weigh = TfidfTransformer(sublinear_tf=True).fit(vectors.matrix("train_counts"))
    rows = weigh.transform(vectors.matrix("test_counts"))
    before, after = (store.open(one.reference).array("scores") for one in (plain, cell))
    near = ensembles.nearest(rows, [np.arange(len(before))])
    expected = ensembles.smoothed(before, near, 0.5, several_labels=False)
    np.testing.assert_allclose(after, expected, atol=1e-5)
    assert np.abs(after - before).max() > 0.01


@pytest.mark.parametrize(
    ("method", "data"), [("tfidf", "one"), ("nb", "one"), ("tfidf", "several"), ("nb", "several")]
)
def test_what_tuning_saw_is_not_fitted_again(
    method: str, data: str, home: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out-of-fold scores and thresholds go by the scores of the choice, whose folds each document was left out of."""
    monkeypatch.setattr(out_of_fold_probes, "out_of_fold_scores", None)
    monkeypatch.setattr(tuning, "tune_thresholds", None)
    cell = cell_of(home, method, data, BenchmarkRequest, seeds=[7])
    result_row(cell, store)
    store.ensure(cell.references[SCORES])
    scores, seen = store.open(cell.references[SCORES]), store.open(cell.references["tune"])
    for name in ("scores.npy", "documents.npy", "folds.npy", "rounding.json"):
        files = [(one.folder / name).stat() for one in (seen, scores)]
        assert len({file.st_ino for file in files}) == 1 and files[0].st_nlink == 3, (
            f"{name} takes room twice"
        )
    documents, kind = scores.array("documents"), np.float16 if data == "one" else np.float32
    assert documents.tolist() == sorted(documents.tolist()) and scores.array("scores").dtype == kind
    parts = fold_scores.by_fold(scores)
    assert sum(len(some) for some, _ in parts) == len(documents)
    for fold, (some, said) in enumerate(parts):
        rows = scores.array("folds") == fold
        assert documents[rows].tolist() == some.tolist() and said.dtype == np.float64
        assert np.array_equal(said, scores.array("scores")[rows])


@pytest.mark.parametrize("labels", [{}, {"budget": 12, "draw": 2, "stratified": True}])
def test_training_documents_are_near_those_that_the_same_classifier_scored(
    home: Path, store: Store, labels: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another's was trained on the document itself: what it says of a neighbour knows the document's label."""
    together: list[list[int]] = []
    kept = tuning.fit_each

    def watched(build: Any, X: Any, y: Any, folds: Any) -> Any:
        together.extend(sorted(scored.tolist()) for _, scored in folds)
        return kept(build, X, y, folds)

    monkeypatch.setattr(tuning, "fit_each", watched)
    cell = cell_of(home, "ensemble(tfidf, nb)", labels=labels, seeds=[5])
    scores = store.open(cell.references["02 out_of_fold"])
    found = out_of_fold.scored_together(scores)
    assert [positions.tolist() for positions in found] == together
    assert sorted(np.concatenate(found).tolist()) == list(range(len(scores.array("documents"))))


def test_members_see_the_labels_of_a_budget_alone(home: Path, store: Store) -> None:
    labels = {"budget": 12, "draw": 1, "stratified": True}
    cell = cell_of(home, "ensemble(tfidf, nb, weights='stacked')", labels=labels)
    assert result_row(cell, store)["metrics"]["accuracy"] > 0.5
    assert len(store.open(cell.references["tune"]).array("documents")) == 12


def test_of_several_labels_thresholds_are_learned_out_of_fold(
    home: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[np.ndarray] = []

    def watched(*arguments: np.ndarray) -> np.ndarray:
        given.extend(arguments)
        return np.array([0.1, -0.1, 0.2, -0.2])

    monkeypatch.setattr(thresholds, "thresholds_that_pay", watched)
    cell = cell_of(home, "ensemble(tfidf, counts)", "several")
    row, result = result_row(cell, store), store.open(cell.reference)
    chosen, corpus = store.open(cell.references["tune"]), store.open(cell.references["ingest"])
    positive = dense_indicator(read_targets(corpus, "train"))[chosen.array("documents")]
    for found, expected in zip(
        given[-3:], (chosen.array("scores"), positive, ensembles.dealt(positive, 3)), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    assert result.array("thresholds").tolist() == [0.1, -0.1, 0.2, -0.2] and row["metrics"]["micro_f1"] > 0.7
    decided = result.array("scores") > result.array("thresholds")
    assert [np.flatnonzero(labels).tolist() for labels in decided] == result.table("predictions")[
        "predicted"
    ].to_pylist()


@pytest.mark.parametrize(
    ("of", "data"),
    [
        ("tfidf, nb, nb@letters", "one"),
        ("tfidf, lsi(n_components=3), weights='stacked'", "one"),
        ("tfidf, counts", "several"),
    ],
)
def test_an_exported_ensemble_is_one_model_with_the_bits_of_the_run(
    home: Path, store: Store, of: str, data: str
) -> None:
    cell = cell_of(home, f"ensemble({of})", data)
    row = result_row(cell, store) | {"key": cell.key, "run_id": None, "request": asdict(cell.request)}
    Model.from_run(Run(home, row)).save(home / "ensemble.npz")
    model, result = Model.load(home / "ensemble.npz"), store.open(cell.reference)
    texts = store.open(cell.references["ingest"]).table("test", ["text"])["text"].to_pylist()
    answers, scores = model.answer(texts), result.array("scores")
    np.testing.assert_array_equal(answers.values, as_probabilities(scores, several_labels=data == "several"))
    names = model.manifest["target_names"]
    predicted = result.table("predictions")["predicted"].to_pylist()
    said = [[names[one] for one in labels] if data == "several" else names[labels] for labels in predicted]
    assert answers.labels == model.predict(texts) == said
    (rows,) = answered(model, [texts[:2]])
    assert [one["label"] for one in rows] == said[:2] and rows[0]["probability"].keys() == set(names)
    weights = [one["weight"] for one in model.manifest["ensemble"]["members"]]
    assert len(model.manifest["members"]) == len(weights)
    assert min(weights) > 0 or "stacked" in of
    with pytest.raises(InputError, match="is a classifier: it gives labels, not features"):
        model.features(texts)


def test_what_a_model_learned_is_made_ready_once_not_for_each_request(
    home: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Encoder and fitted method of each member, and the tables of n-grams: nb-svm of 180,000 terms took 200 ms."""
    cell = cell_of(home, "ensemble(tfidf, nb-svm, weights='equal')")
    row = result_row(cell, store) | {"key": cell.key, "run_id": None, "request": asdict(cell.request)}
    model, made = Model.from_run(Run(home, row)), []
    learned, encoder, tables_of = Model._learned, tokens.encoder, ngrams.tables_of
    monkeypatch.setattr(Model, "_learned", lambda self, part: made.append(part) or learned(self, part))
    monkeypatch.setattr(tokens, "encoder", lambda *a: made.append("encoder") or encoder(*a))
    monkeypatch.setattr(ngrams, "tables_of", lambda terms: made.append("n-grams") or tables_of(terms))
    assert model.answer(["w1 apple w3"]).labels == ["b"]
    assert sorted(made) == ["encoder", "encoder", "featurizer", "n-grams", "probe", "probe"]
    assert model.answer(["iron w2"]).labels == ["a"]
    assert len(made) == 6


def test_an_ensemble_is_trained_on_all_documents(home: Path, store: Store) -> None:
    cell = cell_of(home, "ensemble(tfidf, nb, weights='equal')")
    row = result_row(cell, store) | {"key": cell.key, "run_id": None, "request": asdict(cell.request)}
    model = Model.from_run(Run(home, row), refit=True)
    parts = [model, *(Model(one, {}) for one in model.manifest["members"].values())]
    assert {one.manifest["training"]["documents"] for one in parts} == {"training and test"}
    assert model.predict(["w1 apple w3", "iron w2"]) == ["b", "a"]


@pytest.mark.parametrize("data", ["one", "several"])
def test_probabilities_of_a_run_are_judged_from_what_it_kept(home: Path, store: Store, data: str) -> None:
    cell = cell_of(home, "ensemble(tfidf, counts)", data)
    row = result_row(cell, store) | {"key": cell.key, "run_id": None, "request": asdict(cell.request)}
    together = calibration(Run(home, row))
    chosen = store.open(cell.references["tune"])
    line = ensemble.weights_of(chosen.json("ensemble"))[1][0]
    result = cell.reference.inputs["member_01"]
    member = Run(home, row | {"key": result.key, "method": "tfidf"})
    corpus = store.open(cell.references["ingest"])
    expected = calibrated.judged(
        ensemble.indicator_of(read_targets(corpus, "test"), chosen.array("scores").shape[1]),
        line.probabilities(store.open(result).array("scores")),
        several_labels=data == "several",
    )
    assert calibration(member) == pytest.approx(expected)
    assert together is not None and set(together) == set(PROBABILITIES)
    assert "log loss 0." in calibrated.shown(together)
    (told,) = calibrated.with_probabilities(home, [row])
    assert told["metrics"] == row["metrics"] | together
    assert calibrated.without_probabilities([told]) == [row]
    board = FORMATS["csv"]([told], "log_loss")
    assert str(together["log_loss"]) in board and "calibration_error" in board
    assert "log_loss" not in FORMATS["csv"]([row], None)
    rmtree(store.folder(out_of_fold.reference(result)))
    assert calibration(member) is None


def test_runs_keep_scores_unless_told_otherwise_and_their_results_have_the_same_keys(home: Path) -> None:
    kept = cell_of(home, "tfidf", kind=BenchmarkRequest)
    others = [
        cell_of(home, "tfidf", kind=BenchmarkRequest, no_scores=True),
        cell_of(home, "tfidf", kind=BenchmarkRequest, timed=True),
        cell_of(home, "tfidf"),
    ]
    assert SCORES in kept.references and list(kept.references)[-1] == SCORES
    for other in others:
        assert SCORES not in other.references and other.key == kept.key
