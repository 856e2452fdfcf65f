"""The corpus of some classes: documents and targets as chosen, in the data set's order."""

from pathlib import Path

import numpy as np
import pytest

from textbench.tasks import InputError
from textbench.tasks.corpus import Corpus, read_corpus, write_corpus
from textbench.tasks.derived import class_subset
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store

NAMES = ["red", "green", "blue"]
WORDS = np.random.default_rng(2).choice(list("abcde"), (18, 12))
TEXTS = [" ".join(f"{word}{word}" for word in row) for row in WORDS]
ABOUT = {"source": "made", "sha256": {"made.tar": "0" * 64}, "licence": "none", "citation": ""}


def make_corpus(job: Job) -> None:
    """Write eighteen texts of three classes."""
    targets = np.arange(18, dtype=np.int64) % 3
    write_corpus(
        job, Corpus(TEXTS[:12], targets[:12], TEXTS[12:], targets[12:], NAMES, "made", "Made."), ABOUT
    )


WHOLE = Reference("ingest", "tests.test_tasks_derived_class_subset:make_corpus", {"dataset": "made"})
SOME = class_subset.reference(WHOLE, ["blue", "red"])


def test_documents_of_the_classes_stay_in_order_and_targets_follow_the_names(tmp_path: Path) -> None:
    stored = Store(tmp_path, isolated=False).open(SOME)
    corpus = read_corpus(stored)
    assert corpus.target_names == ["blue", "red"]
    assert corpus.train_texts == [TEXTS[i] for i in range(12) if i % 3 != 1]
    assert corpus.train_targets.tolist() == [1, 0] * 4  # red, then blue, ...
    assert corpus.test_texts == [TEXTS[i] for i in range(12, 18) if i % 3 != 1]
    assert stored.json("corpus")["sha256"] == ABOUT["sha256"]


def test_an_unknown_class_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="made has no class 'gren'; did you mean green"):
        Store(tmp_path, isolated=False).open(class_subset.reference(WHOLE, ["gren"]))
