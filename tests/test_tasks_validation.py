"""Validation documents of the user's own data: tuning reads them and no others, with label budgets and searches too."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from textbench.evaluation.probes import tuning
from textbench.evaluation.probes.catalogue import build_probe
from textbench.evaluation.probes.thresholds import best_thresholds
from textbench.evaluation.probes.tuning import tune_thresholds
from textbench.tasks import featurize, predict, tune
from textbench.tasks.corpus import read_targets, read_validation
from textbench.tasks.sources.user_data import UserData
from textbench.tasks.sources.user_data import reference as own
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store
from textbench.tasks.tokens import token_rule
from textbench.tasks.vectorize import reference as vectorize

PARTS = ("train", "dev", "train", "test", "train")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Documents of two classes whose words tell them apart, those for validation less well than the others."""
    folder = tmp_path_factory.mktemp("made")
    rows = ["text,label,part"]
    draw = np.random.default_rng(0)
    for i in range(100):
        part, label = PARTS[i % 5], "ab"[draw.integers(2)]
        told = label if draw.random() < (0.7 if part == "dev" else 0.9) else "ab"[label == "a"]
        rows.append(f"common word{i % 7} sign{told} text{i},{label},{part}")
    (folder / "toy.csv").write_text("\n".join(rows))
    corpus = own(UserData(str(folder / "toy.csv"), split_column="part"))
    store = Store(folder / "store", isolated=False)
    vectors = vectorize(corpus, asdict(token_rule("words")), False)
    return {"store": store, "corpus": corpus, "vectors": vectors}


def choice(made: dict[str, Any], method: str = "tfidf", trials: int = 0, **options: Any) -> Reference:
    return tune.reference(made["corpus"], made["vectors"], method, 0, "linear-svm", trials=trials, **options)


def by_hand(made: dict[str, Any], chosen: dict[str, Any], rows: Sequence[int], held: Sequence[int]) -> float:
    """Return the accuracy on the rows that are held out of the probe that learned from the other rows."""
    X = made["store"].open(featurize.reference(made["vectors"], "tfidf", chosen["params"], 0)).matrix("train")
    y = read_targets(made["store"].open(made["corpus"]), "train")
    learned = np.setdiff1d(rows, held)
    probe = build_probe("linear-svm", chosen["C"], 0).fit(X[learned], y[learned])
    return float(accuracy_score(y[held], probe.predict(X[held])))


def test_tuning_scores_the_validation_documents_and_no_others(made: dict[str, Any]) -> None:
    chosen = made["store"].open(choice(made)).json("choice")
    held = read_validation(made["store"].open(made["corpus"]))
    assert held is not None and len(held) == 20
    assert chosen["n_folds"] == 1
    assert chosen["score"] == pytest.approx(by_hand(made, chosen, range(80), held), abs=1e-12)


def test_every_trial_of_a_search_is_scored_on_them(made: dict[str, Any]) -> None:
    trials = made["store"].open(choice(made, trials=3)).json("choice")["trials"]
    held = read_validation(made["store"].open(made["corpus"]))
    assert held is not None and len(trials) == 3
    for trial in trials:
        assert trial["score"] == pytest.approx(by_hand(made, trial, range(80), held), abs=1e-12)


def test_a_classifier_is_scored_on_them(made: dict[str, Any]) -> None:
    chosen = made["store"].open(choice(made, method="majority")).json("choice")
    y = read_targets(made["store"].open(made["corpus"]), "train")
    held = read_validation(made["store"].open(made["corpus"]))
    assert held is not None
    commonest = np.bincount(np.delete(y, held)).argmax()
    assert chosen["score"] == pytest.approx(np.mean(y[held] == commonest))


def test_a_label_budget_tunes_on_those_of_them_that_it_has(
    made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The labels of a budget are all that is seen; where it has none for validation, folds are made."""
    from textbench.evaluation.probes.budgets import labelled_documents

    seen: list[Any] = []
    plain = tuning.folds_of
    monkeypatch.setattr(tuning, "folds_of", lambda *given: seen.append(given[4]) or plain(*given))
    corpus = made["store"].open(made["corpus"])
    y, held = read_targets(corpus, "train"), read_validation(corpus)
    for budget in (40, 2):
        labels = {"budget": budget, "draw": 1}
        rows = labelled_documents(y, **labels)
        both = np.intersect1d(rows, held)
        chosen = made["store"].open(choice(made, labels=labels)).json("choice")
        if 0 < len(both) < budget:
            assert rows[seen[-1]].tolist() == both.tolist()
            assert chosen["score"] == pytest.approx(by_hand(made, chosen, rows, both), abs=1e-12)
        else:
            assert seen[-1] is None
    assert [given is None for given in seen] == [False, True]


def test_the_final_classifier_learns_from_training_and_validation_documents(made: dict[str, Any]) -> None:
    chosen = choice(made)
    result = made["store"].open(predict.reference(made["corpus"], made["vectors"], chosen))
    corpus, C = made["store"].open(made["corpus"]), made["store"].open(chosen).json("choice")["C"]
    features = made["store"].open(featurize.reference(made["vectors"], "tfidf", {}, 0))
    probe = build_probe("linear-svm", C, 0).fit(features.matrix("train"), read_targets(corpus, "train"))
    predictions = result.table("predictions")
    assert predictions["predicted"].to_pylist() == probe.predict(features.matrix("test")).tolist()
    assert predictions["id"].to_pylist() == [str(i + 2) for i in range(100) if PARTS[i % 5] == "test"]


def test_thresholds_of_several_labels_are_tuned_on_them() -> None:
    draw = np.random.default_rng(1)
    X = draw.normal(size=(60, 4))
    Y = (X + draw.normal(size=(60, 4)) > 0.5).astype(np.int8)
    held = list(range(0, 60, 3))
    rest = np.setdiff1d(range(60), held)
    found = tune_thresholds(X, Y, lambda: build_probe("linear-svm", 1.0, 0), held_out=held)
    scores = build_probe("linear-svm", 1.0, 0).fit(X[rest], Y[rest]).decision_function(X[held])
    assert found.tolist() == best_thresholds(scores, Y[held] > 0).tolist()
