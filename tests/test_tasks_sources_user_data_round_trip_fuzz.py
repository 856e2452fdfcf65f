"""Own data under fire: what is written to a file of any kind is what is read."""

import csv
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from tests.loading import FUZZ, labelled, labels, outcome, texts


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


documents = st.lists(st.tuples(texts, labels), min_size=4, max_size=20).filter(
    lambda pairs: len({label for _, label in pairs}) > 1
)


def as_parts(n_documents: int) -> list[str]:
    """Put the even documents into training and the odd ones into the test."""
    return [("train", "test")[i % 2] for i in range(n_documents)]


@FUZZ
@given(pairs=documents)
def test_single_labels_come_back_from_every_file(folder: Path, pairs: list[tuple[str, str]]) -> None:
    # Training starts with two classes, whatever was drawn.
    pairs = [("", "x"), ("", "x"), ("", "y"), ("", "y"), *pairs]
    rows = [
        {"text": text, "label": label, "part": part}
        for (text, label), part in zip(pairs, as_parts(len(pairs)), strict=True)
    ]
    for kind, delimiter in (("csv", ","), ("tsv", "\t")):
        with (folder / f"a.{kind}").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, rows[0].keys(), delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    with (folder / "a.jsonl").open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    (folder / "a.json").write_text(json.dumps(rows), "utf-8")
    parquet.write_table(pa.Table.from_pylist(rows), folder / "a.parquet")
    for kind in ("csv", "tsv", "json", "jsonl", "parquet"):
        found = outcome(folder / f"a.{kind}", split_column="part")
        assert found.faults() == []
        corpus = found.corpus
        assert corpus is not None
        assert corpus.train_texts == [text for text, _ in pairs[::2]]
        assert corpus.test_texts == [text for text, _ in pairs[1::2]]
        read_labels = [corpus.target_names[i] for i in [*corpus.train_targets, *corpus.test_targets]]
        assert read_labels == [label for _, label in pairs[::2] + pairs[1::2]]


@FUZZ
@given(sets=st.lists(st.tuples(texts, st.sets(labels, min_size=1, max_size=4)), min_size=2, max_size=12))
def test_several_labels_come_back_from_every_file(folder: Path, sets: list[tuple[str, set[str]]]) -> None:
    separator = "\x1f\x1f"
    sets = [
        ("", {"x", "y"}),
        ("", {"x"}),
        *((t, {n.replace("\x1f", "_") for n in names}) for t, names in sets),
    ]
    rows = [{"text": text, "label": sorted(names)} for text, names in sets]
    with (folder / "a.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "label"])
        writer.writerows([text, separator.join(names)] for text, names in sets)
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    parquet.write_table(pa.Table.from_pylist(rows), folder / "a.parquet")
    expected = Counter((text, frozenset(names)) for text, names in sets)
    for kind, options in (("csv", {"label_separator": separator}), ("jsonl", {}), ("parquet", {})):
        found = outcome(folder / f"a.{kind}", **options)
        assert found.faults() == []
        if found.corpus is None:
            # Few documents may leave one label to training, whichever way they are drawn.
            assert len(sets) < 8
        else:
            assert labelled(found.corpus) == expected


@FUZZ
@given(
    texts_of=st.dictionaries(st.sampled_from("abcdefg"), st.lists(texts, min_size=2, max_size=5), min_size=2)
)
def test_folders_come_back(folder: Path, texts_of: dict[str, list[str]]) -> None:
    root = folder / "data"
    shutil.rmtree(root, ignore_errors=True)
    for label, contents in texts_of.items():
        (root / label).mkdir(parents=True)
        for i, text in enumerate(contents):
            (root / label / str(i)).write_bytes(text.encode())
    found = outcome(root)
    assert found.faults() == []
    assert found.corpus is not None
    assert labelled(found.corpus) == Counter(
        (text.removeprefix("\ufeff"), frozenset(label))
        for label, contents in texts_of.items()
        for text in contents
    )
