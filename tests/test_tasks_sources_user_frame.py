"""Documents that a program holds are kept as a file, which reads back as what was given."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.own_documents import pairs, read
from textbench.tasks import InputError
from textbench.tasks.sources.user_frame import keep

TEXTS = ["good film", "bad film", "", "fine, really\nfine"]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["pos", "neg", "neg", "pos"], ["pos", "neg", "neg", "pos"]),
        (np.array([1, 0, 0, 1]), ["1", "0", "0", "1"]),
        (pd.Series([True, False, False, True]), ["true", "false", "false", "true"]),
        (pd.Categorical(["b", "a", "a", "b"]), ["b", "a", "a", "b"]),
    ],
)
def test_labels_of_any_kind_read_back_as_text(labels: Any, names: list[str], tmp_path: Path) -> None:
    path = keep(tmp_path, pd.Series(TEXTS), labels, ["train", "train", "test", "test"])
    assert pairs(read(path, split_column="split")) == [*zip(TEXTS, names, strict=True)]


def test_several_labels_a_document(tmp_path: Path) -> None:
    path = keep(tmp_path, TEXTS, [["a", "b"], "a", ("c",), ["b"]], ["train", "train", "test", "test"])
    corpus = read(path, split_column="split")
    assert corpus.target_names == ["a", "b", "c"]
    assert corpus.train_targets.toarray().tolist() == [[1, 1, 0], [1, 0, 0]]
    assert corpus.test_targets.toarray().tolist() == [[0, 0, 1], [0, 1, 0]]


def test_arrays_and_sets_of_labels_are_lists(tmp_path: Path) -> None:
    """As pandas reads lists from Parquet; sets have no order of their own."""
    plain = keep(tmp_path, TEXTS, [["a", "b"], ["a"], ["c"], ["b"]])
    assert keep(tmp_path, TEXTS, [np.array(one) for one in (["a", "b"], ["a"], ["c"], ["b"])]) == plain
    assert keep(tmp_path, TEXTS, [{"b", "a"}, frozenset({"a"}), {"c"}, {"b"}]) == plain
    ones = keep(tmp_path, TEXTS, [np.array([one]) for one in "aacb"])  # one label each is still a list
    assert ones == keep(tmp_path, TEXTS, [[one] for one in "aacb"]) != keep(tmp_path, TEXTS, [*"aacb"])


def test_the_same_documents_are_kept_once(tmp_path: Path) -> None:
    def lazily() -> Iterator[str]:
        yield from TEXTS

    first = keep(tmp_path, TEXTS, ["x", "y", "x", "y"])
    assert keep(tmp_path, lazily(), np.array(["x", "y", "x", "y"])) == first
    assert keep(tmp_path, TEXTS, ["x", "y", "y", "x"]) != first
    assert keep(tmp_path, TEXTS, ["x", "y", "x", "y"], ["train", "test"] * 2) != first
    assert len([*tmp_path.iterdir()]) == 3


REFUSED = {
    "every text must have a label, got 4 texts and 3 labels": (TEXTS, ["x", "y", "x"]),
    "every text must have a split, got 4 texts and 1 splits": (TEXTS, ["x", "y", "x", "y"], ["train"]),
    "texts must be strings, got null at position 1": (["a", None], ["x", "y"]),
    "texts must be a list, got 'a text'": ("a text", ["x"]),
    "texts must be a list, got a table; give its column": (pd.DataFrame({"text": TEXTS}), ["x"] * 4),
    "labels must be a list, got an array of 2 dimensions": (TEXTS, np.eye(4)),
    "a label must be a string or a number, or a list of them, got an object": (["a"], [{"x": 1}]),
    'a label must be a string or a number, or a list of them, got "[[x': (["a"], [np.array([["x", "y"]])]),
    "texts and labels must be Unicode, got half a surrogate pair": (["a\ud800"], ["x"]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_are_no_documents_is_refused_and_nothing_written(message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        keep(tmp_path, *REFUSED[message])
    assert message in str(caught.value)
    assert not [*tmp_path.iterdir()]


def test_a_missing_label_is_named_when_it_is_read(tmp_path: Path) -> None:
    path = keep(tmp_path, TEXTS, ["x", float("nan"), None, pd.NA])
    with pytest.raises(InputError, match=r"row 2: .*; 3 of 4 documents have no label"):
        read(path)
