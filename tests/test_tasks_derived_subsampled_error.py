"""Errors by share of the training documents: draws as asked, both ways to tune, sums of all or of known features."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from textbench.evaluation.probes.budgets import labelled_documents
from textbench.evaluation.probes.wide import GRIDS, RidgeProbe
from textbench.tasks.derived import subsampled_error
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store

RNG = np.random.default_rng(5)
TARGETS = {"train": np.arange(40) % 2, "test": np.arange(30) % 2}
RATES = RNG.gamma(0.5, 1.0, (2, 50))
COUNTS = {part: csr_matrix(RNG.poisson(RATES[y]).astype(np.float32)) for part, y in TARGETS.items()}


def make_corpus(job: Job) -> None:
    """Write targets as a corpus has them."""
    for part, targets in TARGETS.items():
        job.save_table(part, {"text": ["-"] * len(targets), "target": targets})
    job.save_json("corpus", {"target_names": ["a", "b"]})


def make_features(job: Job) -> None:
    """Write the counts as features."""
    for part, counts in COUNTS.items():
        job.save_matrix(part, counts)


CORPUS = Reference("classes", "tests.test_tasks_derived_subsampled_error:make_corpus", {})
FEATURES = Reference("featurize", "tests.test_tasks_derived_subsampled_error:make_features", {})


def draws(folder: Path, *arguments: Any, **options: Any) -> Any:
    store = Store(folder, isolated=False)
    return store.open(subsampled_error.reference(CORPUS, FEATURES, *arguments, **options))


@pytest.mark.parametrize("penalty", ["elastic-net", "ridge"])
def test_every_draw_is_tuned_both_ways(tmp_path: Path, penalty: str) -> None:
    found = draws(tmp_path, penalty, 0.5, [3, 4]).json("draws")
    assert [(one["draw"], one["documents"]) for one in found] == [(3, 20), (4, 20)]
    for one in found:
        assert one["on_test"]["error"] <= one["tuned"]["error"]
        assert one["tuned"]["cv_error"] <= one["on_test"]["cv_error"]
        for tuning in ("on_test", "tuned"):
            assert all(one[tuning][name] in values for name, values in GRIDS[penalty].items())


def test_errors_are_those_of_the_documents_drawn(tmp_path: Path) -> None:
    (one,) = draws(tmp_path, "ridge", 0.5, [7]).json("draws")
    rows = labelled_documents(TARGETS["train"], 20, 7, stratified=True)
    X, X_test = subsampled_error.scaled(COUNTS["train"][rows], COUNTS["test"], known=False)
    probe = RidgeProbe(C=one["tuned"]["C"]).fit(X, TARGETS["train"][rows])
    assert np.mean(probe.predict(X_test) != TARGETS["test"]) == one["tuned"]["error"]


def test_a_draw_of_all_documents_keeps_its_predictions(tmp_path: Path) -> None:
    artifact = draws(tmp_path, "ridge", 1.0, [0])
    table, (one,) = artifact.table("predictions"), artifact.json("draws")
    for tuning in ("tuned", "on_test"):
        wrong = table[tuning].to_numpy() != table["target"].to_numpy()
        assert wrong.mean() == one[tuning]["error"]


def test_a_block_of_draws_is_those_draws_one_by_one(tmp_path: Path) -> None:
    both = draws(tmp_path, "ridge", 0.4, [0, 1]).json("draws")
    assert both == [draws(tmp_path, "ridge", 0.4, [draw]).json("draws")[0] for draw in (0, 1)]


def test_documents_are_divided_by_all_their_features_or_by_the_known_ones() -> None:
    X, X_test = csr_matrix([[1.0, 3, 0, 0]]), csr_matrix([[1.0, 1, 2, 4], [0, 0, 0, 5]])
    for known, share in ((False, 1 / 8), (True, 1 / 2)):
        train, test = subsampled_error.scaled(X, X_test, known=known)
        np.testing.assert_allclose(train.toarray(), [[0.25, 0.75]])
        np.testing.assert_allclose(test.toarray(), [[share, share], [0.0, 0.0]])
