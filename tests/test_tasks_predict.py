"""Ingest, tune and evaluate on small artifacts: what is stored is what the parts compute, one label or several."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from scipy import stats
from scipy.sparse import csr_matrix
from sklearn.metrics import coverage_error, label_ranking_average_precision_score

from textbench.evaluation.metrics import query_by_example
from textbench.evaluation.metrics.label_ranking import label_ranking_average_precision, precision_at_k
from textbench.evaluation.metrics.multilabel import MULTILABEL_METRICS, score_multilabel
from textbench.evaluation.metrics.single_label import METRICS, score_labels
from textbench.evaluation.probes.catalogue import PROBES, build_probe, probe_class
from textbench.evaluation.probes.tuning import tune_thresholds
from textbench.flows.results.predictions import document_intervals, tally
from textbench.tasks import fold_scores, ingest, predict, score
from textbench.tasks.corpus import Corpus, label_lists, read_corpus, read_targets
from textbench.tasks.featurize import load_arrays
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Artifact, Job

NAMES = ["acq", "corn", "earn", "ship"]


def documents(n: int, several: bool, seed: int) -> tuple[np.ndarray, Any]:
    """Points, and labels that are half-spaces or the nearest axis; nobody has the last of several labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (n, 4)).astype(np.float32)
    if not several:
        return X, X.argmax(axis=1)
    Y = X + rng.normal(0, 0.4, (n, 4)) > 0.6
    Y[:, 3] = False
    return X, csr_matrix(Y.astype(np.int8))


class Desk:
    """A folder that jobs write to, and the artifacts that they open."""

    def __init__(self, folder: Path, several: bool, probe: str) -> None:
        self.train, self.test = documents(60, several, 0), documents(40, several, 1)
        self.folder, self.probe = folder, probe

    def job(self, name: str, params: dict[str, Any], opened: dict[str, Artifact]) -> Job:
        """Return a job that writes to the folder `name`."""
        (self.folder / name).mkdir()
        store: Any = SimpleNamespace(open=lambda reference: opened[getattr(reference, "stage", reference)])
        choice = Reference("choice", "made:up", {"seed": 5, "trials": 0, "search_seconds": None})
        references: Any = {known: known for known in opened} | {"choice": choice}
        return Job(params, references, self.folder / name, store)

    def artifact(self, name: str) -> Artifact:
        """Return what a job wrote."""
        return Artifact(self.folder / name, {})

    def corpus(self, monkeypatch: pytest.MonkeyPatch) -> Artifact:
        """Ingest the documents."""
        given = Corpus(
            train_texts=[f"train {i}" for i in range(60)],
            train_targets=self.train[1],
            test_texts=[f"test {i}" for i in range(40)],
            test_targets=self.test[1],
            target_names=NAMES,
            name="toy",
            notes="",
        )
        about = dict.fromkeys(("SOURCE", "SHA256", "LICENCE", "CITATION", "RULE"), "")
        module = SimpleNamespace(load=lambda: given, **about)
        entry = SimpleNamespace(load=lambda: module)
        monkeypatch.setattr(ingest.catalogue, "dataset", lambda name: entry)
        ingest.compute(self.job("corpus", {"dataset": "toy"}, {}))
        return self.artifact("corpus")

    def result(self, monkeypatch: pytest.MonkeyPatch) -> Artifact:
        """Evaluate the probe at C = 3."""
        features = self.job("features", {}, {})
        features.save_matrix("train", self.train[0])
        features.save_matrix("test", self.test[0])
        self.job("choice", {}, {}).save_json("choice", {"C": 3.0, "n_folds": 4, "params": {}})
        opened = {"corpus": self.corpus(monkeypatch), "choice": self.artifact("choice")}
        opened |= {"vectors": self.artifact("features"), "featurize": self.artifact("features")}
        features = Reference("featurize", "made:up", {})
        monkeypatch.setattr(predict, "features_of", lambda vectors, choice: features)
        predict.compute(
            self.job("result", {"method": "toy", "seed": 5, "probe": self.probe, "labels": {}}, opened)
        )
        return self.artifact("result")


@pytest.mark.parametrize("several", [False, True])
def test_a_corpus_is_read_back_as_it_was(
    several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, several, "linear-svm")
    artifact = desk.corpus(monkeypatch)
    read = read_corpus(artifact)
    assert read.test_texts == [f"test {i}" for i in range(40)]
    for part, (_, targets) in {"train": desk.train, "test": desk.test}.items():
        for found in (read_targets(artifact, part), getattr(read, f"{part}_targets")):
            assert found.dtype == targets.dtype
            assert type(found) is type(targets)
            assert found.shape == targets.shape
            assert abs(found - targets).sum() == 0


@pytest.mark.parametrize("rows", [[[0, 0, 0]], [[0, 0, 0], [1, 0, 1], [0, 0, 0]], [[1, 1, 1]]])
def test_lists_of_labels(rows: list[list[int]], tmp_path: Path) -> None:
    indicator = csr_matrix(np.array(rows))
    explicit = indicator.copy()
    explicit.data[:1] = 0  # a stored zero is no label
    for given in (indicator, explicit):
        column = label_lists(given)
        assert column.to_pylist() == [np.flatnonzero(row).tolist() for row in given.toarray()]
        pyarrow.parquet.write_table(pyarrow.table({"target": column}), tmp_path / "train.parquet")
        (tmp_path / "corpus.json").write_text(json.dumps({"target_names": ["a", "b", "c"]}))
        read = read_targets(Artifact(tmp_path, {}), "train")
        np.testing.assert_array_equal(read.toarray(), given.toarray())


@pytest.mark.parametrize("probe", PROBES)
def test_one_label(probe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, False, probe)
    result = desk.result(monkeypatch)
    (X, y), (X_test, y_test) = desk.train, desk.test
    fitted = build_probe(probe, 3.0, 5).fit(X, y)
    predicted = fitted.predict(X_test)
    metrics = score.metrics(result)
    assert metrics.keys() == METRICS.keys()
    assert metrics | score_labels(y_test, predicted) == metrics
    table = result.table("predictions").to_pydict()
    assert list(table) == ["document", "target", "predicted", "margin", "average_precision"]
    assert table["predicted"] == predicted.tolist()
    assert np.mean(table["average_precision"]) == pytest.approx(metrics["map"])
    highest = np.sort(fitted.decision_function(X_test), axis=1)
    np.testing.assert_array_equal(table["margin"], highest[:, -1] - highest[:, -2])
    indicator = np.eye(4)[y_test]
    scores = fitted.decision_function(X_test)
    assert metrics["lraps"] == pytest.approx(label_ranking_average_precision_score(indicator, scores))
    assert metrics["coverage_error"] == pytest.approx(coverage_error(indicator, scores))
    assert result.array("scores").dtype == np.float64


def test_of_very_many_documents_some_are_asked_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FEW", 59), ("N_ASKED", 10)):
        monkeypatch.setattr(query_by_example, name, value)
    desk = Desk(tmp_path, False, "linear-svm")
    result = desk.result(monkeypatch)
    (X, y), (X_test, y_test) = desk.train, desk.test
    rows = query_by_example.asked(60, 40)
    reached = query_by_example.search_by_example(X, y, X_test[rows], y_test[rows]).average_precision
    table = result.table("predictions")
    column = table["average_precision"].to_numpy()
    np.testing.assert_array_equal(column[rows], reached)
    assert np.isnan(column).sum() == 30
    assert score.metrics(result)["map"] == pytest.approx(reached.mean())
    spread = stats.t.ppf(0.975, 9) * reached.std(ddof=1) / np.sqrt(10)
    assert document_intervals(table, ["map", "accuracy"])["map"] == pytest.approx(spread, rel=1e-3)
    assert tally([table, table], "map").columns.shape == (10, 2)


@pytest.mark.parametrize(
    ("decisions", "classes", "expected"),
    [
        ([0.5, -2.0], [0, 1], [[-0.5, 0.5, -1.5], [2.0, -2.0, -3.0]]),
        ([[1.0, 0.0], [3.0, 4.0]], [0, 2], [[1.0, -1.0, 0.0], [3.0, 2.0, 4.0]]),
        ([0.0, 0.0], [1], [[-1.0, 0.0, -1.0], [-1.0, 0.0, -1.0]]),
    ],
)
def test_every_class_has_a_value_and_untrained_ones_stand_last(
    decisions: list[Any], classes: list[int], expected: list[list[float]]
) -> None:
    found = fold_scores.every_class(np.array(decisions), np.array(classes), 3)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("probe", PROBES)
def test_several_labels(probe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, True, probe)
    result = desk.result(monkeypatch)
    (X, Y), (X_test, Y_test) = desk.train, desk.test
    fitted = build_probe(probe, 3.0, 5).fit(X, Y)
    thresholds = tune_thresholds(X, Y, lambda: build_probe(probe, 3.0, 5), 4, 5)
    scores = fitted.decision_function(X_test)
    metrics = score.metrics(result)
    assert metrics.keys() == MULTILABEL_METRICS.keys()
    assert metrics == score_multilabel(Y_test, scores, scores > thresholds)

    table = result.table("predictions").to_pydict()
    assert table["target"] == [np.flatnonzero(row).tolist() for row in Y_test.toarray()]
    assert table["predicted"] == [np.flatnonzero(row).tolist() for row in scores > thresholds]
    assert table["top"] == np.argsort(-scores, axis=1, kind="stable").tolist()
    assert table["top_scores"] == (-np.sort(-scores, axis=1)).tolist()
    assert table["precision_at_1"] == precision_at_k(Y_test, scores, 1).tolist()
    average_precision = label_ranking_average_precision(Y_test, scores)
    assert table["label_ranking_average_precision"] == average_precision.tolist()

    rows = result.json("per_class")
    assert [row["class"] for row in rows] == NAMES[:3]
    assert [row["threshold"] for row in rows] == thresholds[:3].tolist()
    restored = probe_class(probe).from_arrays(load_arrays(result, "probe"))
    np.testing.assert_array_equal(restored.predict(X_test).toarray(), scores > thresholds)
