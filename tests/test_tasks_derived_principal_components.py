"""Principal components: a plain eigendecomposition's scores, and the pair on which classes are told apart."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from textbench.tasks.derived import principal_components
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store

RNG = np.random.default_rng(8)
TARGETS = {"train": np.arange(45, dtype=np.int64) % 3, "test": np.arange(15, dtype=np.int64) % 3}
RATES = RNG.gamma(0.6, 1.5, (3, 40))
COUNTS = {part: csr_matrix(RNG.poisson(RATES[y]).astype(np.float32)) for part, y in TARGETS.items()}


def make_corpus(job: Job) -> None:
    """Write targets as a corpus has them."""
    for part, targets in TARGETS.items():
        job.save_table(part, {"text": ["-"] * len(targets), "target": targets})
    job.save_json("corpus", {"target_names": ["a", "b", "c"]})


def make_features(job: Job) -> None:
    """Write the counts as features."""
    for part, counts in COUNTS.items():
        job.save_matrix(part, counts)


def test_scores_are_those_of_the_covariance() -> None:
    X = COUNTS["train"].toarray().astype(float)
    scores, explained = principal_components.project(COUNTS["train"])
    shares = X / X.sum(axis=1, keepdims=True)
    scaled = (shares - shares.mean(axis=0)) / np.where(shares.std(axis=0) > 0, shares.std(axis=0), 1)
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    expected = (scaled @ vectors)[:, ::-1][:, :10]
    np.testing.assert_allclose(np.abs(scores), np.abs(expected), atol=1e-6)
    np.testing.assert_allclose(explained, values[::-1][:10] / values.sum(), rtol=1e-8)
    assert (scores[np.abs(scores).argmax(axis=0), np.arange(10)] > 0).all()


def test_columns_that_do_not_vary_are_left_out() -> None:
    X = np.column_stack([COUNTS["train"].toarray()[:, :20], np.zeros(45)])
    scores, _ = principal_components.project(csr_matrix(X))
    alone, _ = principal_components.project(csr_matrix(X[:, :20]))
    np.testing.assert_allclose(scores, alone, atol=1e-8)


def test_a_pair_that_shows_the_classes_has_no_error() -> None:
    targets = np.arange(60) % 2
    scores = RNG.normal(size=(60, 4))
    scores[:, 2] = targets - 0.5
    errors = principal_components.pair_errors(scores, targets)
    assert len(errors) == 6
    assert all((error == 0) == (2 in pair) for pair, error in errors.items())


def test_the_stage_places_all_documents(tmp_path: Path) -> None:
    module = "tests.test_tasks_derived_principal_components"
    corpus = Reference("classes", f"{module}:make_corpus", {})
    features = Reference("featurize", f"{module}:make_features", {})
    found = Store(tmp_path, isolated=False).open(principal_components.reference(corpus, features))
    about, scores = found.json("pair"), found.array("scores")
    assert scores.shape == (60, 10) and scores.dtype == np.float32
    np.testing.assert_array_equal(found.array("targets"), [*TARGETS["train"], *TARGETS["test"]])
    assert about["n_features"] == 40 and len(about["errors"]) == 45
    assert about["error"] == min(error for _, _, error in about["errors"]) < 1 / 3
    assert [*about["pair"], about["error"]] in about["errors"]


def test_there_are_fewer_components_than_documents() -> None:
    scores, explained = principal_components.project(COUNTS["train"][:4])
    assert scores.shape == (4, 3) and explained.sum() == pytest.approx(1)
