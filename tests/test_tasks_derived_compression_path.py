"""The path over pointer costs: the models of `compression_path`, their cost recounted, an error by each tuning."""

from pathlib import Path

import numpy as np

from textbench.featurizers.compressive import compression_path
from textbench.tasks import vectorize
from textbench.tasks.corpus import Corpus, write_corpus
from textbench.tasks.derived import compression_path as stage
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store

RNG = np.random.default_rng(4)
PHRASES = [
    "one of the",
    "in the beginning",
    "as far as",
    "thanks in advance",
    "on the other hand",
    "so",
    "it",
    "is",
]
TARGETS = np.arange(36, dtype=np.int64) % 2
TEXTS = [" ".join(RNG.choice(PHRASES[y * 3 :][:5], 8)) for y in TARGETS]
COSTS = [5.0, 0.5, 0.01]


def make_corpus(job: Job) -> None:
    """Write texts of two classes that repeat phrases."""
    corpus = Corpus(TEXTS[:24], TARGETS[:24], TEXTS[24:], TARGETS[24:], ["a", "b"], "made", "Made.")
    write_corpus(job, corpus, {})


def test_each_step_is_a_model_of_the_path(tmp_path: Path) -> None:
    corpus = Reference("ingest", "tests.test_tasks_derived_compression_path:make_corpus", {})
    vectors = vectorize.reference(corpus, {"pattern": "[a-z]+"}, True)
    store = Store(tmp_path, isolated=False)
    steps = store.open(stage.reference(corpus, vectors, COSTS)).json("path")
    opened = store.open(vectors)
    documents = [
        document
        for part in ("train", "test")
        for document in np.split(opened.array(f"{part}_ids"), opened.array(f"{part}_offsets")[1:-1])
    ]
    models = compression_path(documents, COSTS)
    assert [step["pointer_cost"] for step in steps] == COSTS
    for step, model in zip(steps, models, strict=True):
        words = sum(map(len, model.dictionary_))
        assert step["objective"] == model.objective_
        assert np.isclose(step["objective"], words + step["pointer_cost"] * step["n_pointers"])
        assert (step["n_features"], step["n_pointers"]) == (len(model.dictionary_), len(model.pointers_))
        assert step["lower_bound"] <= step["objective"] * (1 + 1e-9)
        assert 0 <= step["error"] <= 1 and 0 <= step["cv_error"] <= 1
    assert steps[0]["mean_length"] > steps[-1]["mean_length"] >= 1  # dear pointers point to long phrases
    assert steps[0]["n_pointers"] < steps[-1]["n_pointers"]
