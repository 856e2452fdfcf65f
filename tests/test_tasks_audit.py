"""The audit: corpora worked by hand, and the figures of the data sets in the repository."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from textbench.tasks import catalogue
from textbench.tasks.audit import audit
from textbench.tasks.corpus import Corpus


def _corpus(train: list[tuple[str, int]], test: list[tuple[str, int]]) -> Corpus:
    return Corpus(
        train_texts=[text for text, _ in train],
        train_targets=np.array([target for _, target in train]),
        test_texts=[text for text, _ in test],
        test_targets=np.array([target for _, target in test]),
        target_names=["a", "b", "c", "d"],
        name="toy",
        notes="",
    )


def test_worked_by_hand() -> None:
    train = [("one", 0), ("one", 0), ("one", 1), ("two", 1), ("", 0), (" \n", 1), ("three", 2)]
    test = [("one", 1), ("two", 0), ("two", 3), ("three", 2), ("four", 3), ("", 0), ("four", 0), ("One", 0)]
    found = audit(_corpus(train, test))
    assert found["documents"] == {"train": 7, "test": 8}
    assert found["classes"] == {"train": 3, "test": 4, "both": 3}
    assert found["empty_texts"] == {"train": 2, "test": 1}
    # Training repeats "one" twice. Test repeats "two" and "four". Across: one, two, two, three and the empty
    # text; "two" is 1 in training and 0 or 3 in the test part; a training copy of "one" has label 1 as well.
    assert found["duplicates"] == {"train": 2, "test": 2, "across": 5, "across_other_label": 2}
    # "one" is 0 and 1 (4 documents), "two" 1, 0 and 3 (3 documents), "four" 3 and 0 (2 documents).
    assert found["conflicts"] == {"texts": 3, "documents": 9}
    assert found["untrained"] == {"documents": 2, "classes": ["d"]}
    # Right at best: one, one of the two "two", three, one "four" (as 0; 3 was never trained), "", "One".
    assert found["ceilings"]["accuracy"] == 6 / 8


def test_nothing_to_find() -> None:
    found = audit(_corpus([("one", 0), ("two", 1)], [("three", 0), ("four", 1)]))
    assert found["duplicates"] == {"train": 0, "test": 0, "across": 0, "across_other_label": 0}
    assert found["conflicts"] == {"texts": 0, "documents": 0}
    assert found["untrained"] == {"documents": 0, "classes": []}
    assert found["ceilings"]["accuracy"] == found["ceilings"]["macro_f1"] == 1.0


def test_several_labels_by_hand() -> None:
    rows = {"a": [1, 0, 0, 0], "ab": [1, 1, 0, 0], "bd": [0, 1, 0, 1], "": [0, 0, 0, 0]}
    train = [("one", "a"), ("one", "ab"), ("two", "ab"), ("three", ""), ("four", "a")]
    test = [("one", "ab"), ("two", "a"), ("five", "bd"), ("five", ""), ("six", "a")]
    corpus = Corpus(
        train_texts=[text for text, _ in train],
        train_targets=csr_matrix(np.array([rows[labels] for _, labels in train])),
        test_texts=[text for text, _ in test],
        test_targets=csr_matrix(np.array([rows[labels] for _, labels in test])),
        target_names=["a", "b", "c", "d"],
        name="toy",
        notes="",
    )
    found = audit(corpus)
    assert json.loads(json.dumps(found)) == found
    assert found["documents"] == {"train": 5, "test": 5}
    assert found["classes"] == {"train": 2, "test": 3, "both": 2}
    assert found["labels_per_document"] == {"train": 6 / 5, "test": 6 / 5}
    assert found["unlabelled"] == {"train": 1, "test": 1}
    # "two" has both labels in training and one in the test part; "one" has its set in one training copy.
    assert found["duplicates"] == {"train": 1, "test": 1, "across": 2, "across_other_label": 1}
    assert found["conflicts"] == {"texts": 3, "documents": 7}
    assert found["untrained"] == {"documents": 1, "classes": ["d"]}
    # The first three and the last document have a label to put first, but two of them share a text.
    assert found["ceilings"]["precision_at_1"] == 4 / 5
    assert found["ceilings"]["coverage_error"] == (2 + 1 + 4 + 0 + 1) / 5


FOUND = {
    "r8": {
        "documents": {"train": 5485, "test": 2189},
        "classes": {"train": 8, "test": 8, "both": 8},
        "duplicates": {"train": 62, "test": 13, "across": 4, "across_other_label": 0},
        "conflicts": {"texts": 4, "documents": 10},
    },
    "r52": {
        "documents": {"train": 6532, "test": 2568},
        "classes": {"train": 52, "test": 52, "both": 52},
        "duplicates": {"train": 82, "test": 15, "across": 6, "across_other_label": 0},
        "conflicts": {"texts": 4, "documents": 10},
    },
    "20ng-allterms": {
        "documents": {"train": 11293, "test": 7528},
        "classes": {"train": 20, "test": 20, "both": 20},
        "duplicates": {"train": 20, "test": 7, "across": 7, "across_other_label": 2},
        "conflicts": {"texts": 6, "documents": 12},
    },
}


@pytest.mark.parametrize("name", sorted(FOUND))
def test_data_sets_of_the_repository(name: str) -> None:
    corpus = catalogue.dataset(name).load().load()
    found = audit(corpus)
    assert json.loads(json.dumps(found)) == found
    assert found["empty_texts"] == {"train": 0, "test": 0}
    assert found["untrained"] == {"documents": 0, "classes": []}
    assert {key: found[key] for key in FOUND[name]} == FOUND[name]
    # All conflicting texts involve a training document, so the test parts themselves bound nothing below 1.
    test_labels = set(zip(corpus.test_texts, corpus.test_targets.tolist(), strict=True))
    assert len(test_labels) == len(set(corpus.test_texts))
    assert found["ceilings"]["accuracy"] == found["ceilings"]["macro_f1"] == 1.0
    # A class of fewer than ten training documents cannot fill a list of ten.
    n_relevant = np.bincount(corpus.train_targets)[corpus.test_targets]
    assert found["ceilings"]["precision_at_10"] == pytest.approx(np.minimum(n_relevant, 10).mean() / 10)


@given(
    st.lists(
        st.tuples(st.sampled_from(["one", "One", "", " \n", "\x1f", "é", "e"]), st.integers(0, 3)), min_size=2
    ),
    st.integers(1, 40),
    st.booleans(),
)
def test_hashes_find_what_comparing_every_pair_finds(
    documents: list[tuple[str, int]], cut: int, is_several: bool
) -> None:
    cut = min(cut, len(documents) - 1)
    train, test = documents[:cut], documents[cut:]
    corpus = _corpus(train, test)
    if is_several:  # a label as the two bits of its number
        bits = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]], dtype=np.int8)
        several = [csr_matrix(bits[targets]) for targets in (corpus.train_targets, corpus.test_targets)]
        corpus = replace(corpus, train_targets=several[0], test_targets=several[1])
    found = audit(corpus)
    assert found["duplicates"] == {
        **{
            name: sum(part[i][0] in [text for text, _ in part[:i]] for i in range(len(part)))
            for name, part in (("train", train), ("test", test))
        },
        "across": sum(any(text == other for other, _ in train) for text, _ in test),
        "across_other_label": sum(
            any(text == other for other, _ in train) and (text, label) not in train for text, label in test
        ),
    }
    torn = [
        text for text, label in documents if any(text == other and label != own for other, own in documents)
    ]
    assert found["conflicts"] == {"texts": len(set(torn)), "documents": len(torn)}
    assert found["empty_texts"] == {
        "train": sum(not text.strip() for text, _ in train),
        "test": sum(not text.strip() for text, _ in test),
    }
