"""The search: fair, pruned by the rule, the same for any number of workers, and resumed to the bit."""

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from statistics import median
from typing import Any

import optuna
import pytest

from textbench.tasks import tune
from textbench.tasks.sources.user_data import UserData
from textbench.tasks.sources.user_data import reference as own
from textbench.tasks.storage import isolate
from textbench.tasks.storage.files import META, read_meta
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store
from textbench.tasks.vectorize import reference as vectorize

METHOD = '''
"""A made method: its score depends on its parameters alone.

Source: none.
"""
import time
from pathlib import Path
import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from textbench.featurizers.counts import Counts

INPUT = "counts"
SEARCH_SPACE = {"noise": FloatDistribution(0.0, 3.0), "kind": CategoricalDistribution(["good", "bad", "nan"])}


class Made(Counts):
    def __init__(self, *, noise=1.5, kind="good"):
        self.noise = noise
        self.kind = kind

    def transform(self, X):
        features = super().transform(X).toarray()
        rng = np.random.default_rng(int(1000 * self.noise))
        features += rng.normal(0, self.noise, features.shape).astype(np.float32)
        if self.kind == "bad":
            raise RuntimeError("kind is bad")
        if self.kind == "nan":
            features[0, 0] = np.nan
        with open(Path(__file__).with_suffix(".count"), "a") as stream:
            stream.write("x")
        time.sleep(0.05)
        return features


def build(**params):
    return Made(**params)
'''


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Documents of two classes that share most of their words, and a method."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "made.py").write_text(METHOD)
    rows = ["text,label"]
    for i in range(60):
        rows.append(f"common word{i % 7} word{i % 5} {'red' if i % 2 else 'blue'},{'a' if i % 2 else 'b'}")
    (folder / "toy.csv").write_text("\n".join(rows))
    corpus = own(UserData(str(folder / "toy.csv")))
    from dataclasses import asdict

    from textbench.tasks.tokens import token_rule

    vectors = vectorize(corpus, asdict(token_rule("words")), transductive=False)
    return {"corpus": corpus, "vectors": vectors, "method": str(folder / "made.py")}


def study(made: dict[str, Any], trials: int = 12, **options: Any) -> Reference:
    return tune.reference(**made, seed=3, probe="linear-svm", trials=trials, **options)


def choice(store: Store, reference: Reference) -> dict[str, Any]:
    """Return the choice without what depends on the clock."""
    found = store.open(reference).json("choice")
    del found["seconds"]
    found["trials"] = [{k: v for k, v in trial.items() if k != "seconds"} for trial in found["trials"]]
    return found


@pytest.fixture(scope="module")
def alone(made: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, dict[str, Any]]:
    """The study by one worker."""
    store = Store(tmp_path_factory.mktemp("alone") / "store")
    return store, choice(store, study(made))


def test_failed_trials_have_their_reason_and_the_best_is_chosen(alone: tuple[Store, dict[str, Any]]) -> None:
    found = alone[1]
    trials = found["trials"]
    assert [trial["number"] for trial in trials] == list(range(12))
    assert trials[0]["values"] == {"noise": 1.5, "kind": "good"}
    assert trials[0]["params"] == {}
    reasons = {trial["values"]["kind"]: trial["error"] for trial in trials if trial["state"] == "failed"}
    assert "kind is bad" in reasons["bad"]
    assert "NaN" in reasons["nan"]
    scored = [trial for trial in trials if trial["state"] == "complete"]
    assert found["score"] == max(trial["score"] for trial in scored)
    assert all(trial["values"]["kind"] == "good" for trial in scored)


@pytest.mark.parametrize("workers", [2, 3])
def test_any_number_of_workers_gives_the_same_study(
    workers: int, made: dict[str, Any], alone: tuple[Store, dict[str, Any]], tmp_path: Path
) -> None:
    assert choice(Store(tmp_path / "store", workers=workers), study(made)) == alone[1]


def _search(root: Path, made: dict[str, Any]) -> None:
    os.setpgid(0, 0)
    Store(root, workers=2, isolated=False).ensure(study(made))


def test_a_killed_study_is_resumed_to_the_bit_and_repeats_nothing(
    made: dict[str, Any], alone: tuple[Store, dict[str, Any]], tmp_path: Path
) -> None:
    root = tmp_path / "store"
    child = multiprocessing.get_context("spawn").Process(target=_search, args=(root, made))
    child.start()
    while len(finished := list((root / "trial").glob("*/meta.json"))) < 3:
        time.sleep(0.01)
        assert child.is_alive()
    os.killpg(child.pid or 0, signal.SIGKILL)
    child.join()
    for journal in (tmp_path / "studies").glob("*.log"):
        assert not {"RUNNING", "WAITING"} & {state for state, *_ in _journal(journal)}
    kept = {path: read_meta(path)["created"] for path in (root / "trial").glob("*/meta.json")}
    assert len(kept) >= len(finished)
    assert choice(Store(root), study(made)) == alone[1]
    assert {path: read_meta(path)["created"] for path in kept} == kept


def _journal(path: Path) -> list[tuple[Any, ...]]:
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    (name,) = optuna.get_all_study_names(storage)
    trials = optuna.load_study(study_name=name, storage=storage).trials
    return [(trial.state.name, trial.params, trial.value, trial.user_attrs.get("error")) for trial in trials]


def test_a_longer_search_repeats_nothing(made: dict[str, Any], tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    created = []
    for n in (4, 12):
        assert len(choice(store, study(made, trials=n))["trials"]) == n
        metas = (tmp_path / "store" / "trial").glob("*/meta.json")
        created.append({path: read_meta(path)["created"] for path in metas})
    assert created[0]
    assert created[0].items() < created[1].items()


def test_the_journal_holds_every_trial(alone: tuple[Store, dict[str, Any]]) -> None:
    store, found = alone
    (path,) = (store.root.parent / "studies").glob("*.log")
    states = {"complete": "COMPLETE", "failed": "FAIL", "pruned": "PRUNED"}
    wanted = [
        (states[trial["state"]], trial["values"], trial.get("score"), trial["error"])
        for trial in found["trials"]
    ]
    assert [row[:2] for row in _journal(path)] == [row[:2] for row in wanted]
    for row, trial in zip(_journal(path), wanted, strict=True):
        assert row[3] == trial[3]
        assert trial[0] != "COMPLETE" or row[2] == trial[2]


def test_a_trial_is_pruned_when_it_falls_behind_half_of_the_trials(
    made: dict[str, Any], tmp_path: Path
) -> None:
    trials = choice(Store(tmp_path / "store"), study(made, trials=32, fixed={"kind": "good"}))["trials"]
    assert any(trial["state"] == "pruned" for trial in trials)
    for trial in trials[8:]:
        before = [t["fold_scores"] for t in trials[: trial["number"] // 4 * 4] if t["state"] != "failed"]
        step = len(trial["fold_scores"]) - 1
        behind = [score < median(course[i] for course in before if len(course) > i)
                  for i, score in enumerate(trial["fold_scores"][:2])]  # fmt: skip
        assert behind == [False] * step + [True] if trial["state"] == "pruned" else not any(behind)
    assert all(trial["state"] != "pruned" for trial in trials[:8])


def test_a_study_whose_trials_all_fail_is_a_failed_cell(made: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(isolate.CellError, match=r"^all 4 trials failed.*kind is bad") as caught:
        Store(tmp_path / "store").ensure(study(made, trials=4, fixed={"kind": "bad"}))
    first = next(line for line in caught.value.details.splitlines() if line.startswith("  File "))
    assert made["method"] in first  # the traceback begins in the method's file


def test_a_space_of_few_settings_is_gone_through_each_once(tmp_path: Path, made: dict[str, Any]) -> None:
    reference = tune.reference(**made | {"method": "tfidf"}, seed=0, probe="linear-svm", trials=50)
    trials = Store(tmp_path / "store").open(reference).json("choice")["trials"]
    assert len({json.dumps(trial["values"]) for trial in trials}) == len(trials) == 12


def test_seconds_bound_a_search_by_what_its_trials_cost(tmp_path: Path, made: dict[str, Any]) -> None:
    store = Store(tmp_path / "store")
    reference = study(made, trials=0, seconds=0.5)
    trials = store.open(reference).json("choice")["trials"]
    costs = [trial["seconds"] for trial in trials]
    assert sum(costs) >= 0.5 > sum(costs[:-4])
    assert len(trials) % 4 == 0


def test_labels_outside_the_budget_are_never_seen(tmp_path: Path, made: dict[str, Any]) -> None:
    """With ten labels, three folds: no score can have been made on more than ten documents."""
    store = Store(tmp_path / "store")
    labels = {"budget": 10, "draw": 0}
    found = store.open(study(made, trials=0, labels=labels)).json("choice")
    scores = {row["mean"] for row in found["table"]}
    assert all(abs(score * 3 * 12 - round(score * 3 * 12)) < 1e-6 for score in scores)  # folds of 3, 3 and 4


def test_trials_share_the_artifact_of_a_representation(
    alone: tuple[Store, dict[str, Any]], made: dict[str, Any]
) -> None:
    store, found = alone
    features = list((store.root / "featurize").glob(f"*/{META}"))
    different = {json.dumps(trial["values"]) for trial in found["trials"] if trial["state"] != "failed"}
    assert len(features) == len(different)
