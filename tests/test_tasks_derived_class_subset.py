"""The corpus of some classes: documents and targets as chosen, in the data set's order; labelled features on it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from textbench.featurizers.lz77 import ACCEPTS, READS_LABELS, Lz77
from textbench.flows.plan.cell import Request, plan
from textbench.tasks import InputError, featurize, labelled_features, vectorize
from textbench.tasks.corpus import Corpus, read_corpus, read_targets, write_corpus
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
RULE = {"pattern": "[a-z]+"}


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


@pytest.mark.parametrize("order", READS_LABELS["order"])
@pytest.mark.parametrize("transductive", [False, True])
def test_labels_of_training_documents_alone_are_read(tmp_path: Path, order: str, transductive: bool) -> None:
    store = Store(tmp_path, isolated=False)
    vectors = vectorize.reference(SOME, RULE, transductive)
    features = store.open(labelled_features.reference(vectors, "lz77", {"order": order}, 0))
    opened = store.open(vectors)
    train, test = (
        np.split(opened.array(f"{part}_ids"), opened.array(f"{part}_offsets")[1:-1])
        for part in ("train", "test")
    )
    method = Lz77(order=order, random_state=0).fit(train, read_targets(store.open(SOME), "train"))
    assert (features.matrix("train") != method.transform(train)).nnz == 0
    assert (features.matrix("test") != method.transform(test)).nnz == 0
    np.testing.assert_array_equal(features.arrays("model")["table_"], method.table_)


def test_only_a_method_that_says_so_reads_labels() -> None:
    vectors = vectorize.reference(SOME, RULE, False)
    by_class = featurize.reference(vectors, "lz77", {"order": "by_class"}, 0)
    assert by_class == labelled_features.reference(vectors, "lz77", {"order": "by_class"}, 0)
    assert (by_class.stage, by_class.inputs["corpus"]) == ("featurize", SOME)
    for method, params in (("lz77", {"order": "random"}), ("lz77", {}), ("compressive", {}), ("tfidf", {})):
        assert not labelled_features.reads_labels(method, params)
        assert "corpus" not in featurize.reference(vectors, method, params, 0).inputs


def test_labels_are_refused_under_a_budget() -> None:
    request = Request(["r8"], ["lz77(order='by_class')"], labels={"budget": 4, "draw": 0})
    with pytest.raises(InputError, match=r"lz77\(order='by_class'\) reads the classes .* got a budget of 4"):
        plan(request)
    assert plan(replace(request, labels={}))
    assert plan(replace(request, methods=["lz77(order='random')"]))


@pytest.mark.parametrize("order", ACCEPTS["order"])
def test_the_method_says_which_orders_read_labels(order: str) -> None:
    documents = [list("abab"), list("abba"), list("bbaa")]
    if order in READS_LABELS["order"]:
        with pytest.raises(ValueError, match="needs a class"):
            Lz77(order=order).fit(documents)
    else:
        Lz77(order=order, random_state=0).fit(documents)
