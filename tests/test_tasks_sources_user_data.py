"""The user's own documents: what each kind of file gives, how they are split, and which options are refused."""

import csv
import gzip
import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.sparse import csr_matrix

from tests import own_documents
from tests.own_documents import CSV, DOCUMENTS, TWO_PARTS, pairs, read, texts_of_jsonl
from textbench.tasks import InputError
from textbench.tasks.corpus import Corpus
from textbench.tasks.sources import user_source
from textbench.tasks.sources.user_data import UserData, data_name, digest, load_columns

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return partial(own_documents.write, tmp_path)


def test_a_csv_gives_its_texts_and_labels(write: Write) -> None:
    corpus = read(write("films.csv", CSV))
    assert sorted(pairs(corpus)) == sorted(DOCUMENTS)
    assert corpus.target_names == ["neg", "pos"]
    assert corpus.name == "films"
    assert corpus.train_targets.dtype == np.int64


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_line_ends_and_byte_order_marks_change_nothing(write: Write, bom: bytes, end: str) -> None:
    rows = "text,label\na b,x\nc,y\n\nd,x\ne,y\n".replace("\n", end)
    assert sorted(pairs(read(write("a.csv", bom + rows.encode())))) == [
        ("a b", "x"),
        ("c", "y"),
        ("d", "x"),
        ("e", "y"),
    ]


def test_every_kind_of_file_gives_the_same(write: Write, tmp_path: Path) -> None:
    expected = pairs(read(write("films.csv", CSV)))
    tsv = CSV.replace("fine, really", "fine@ really").replace(",", "\t").replace("@", ",")
    rows = [{"text": text, "label": label, "stars": 3} for text, label in DOCUMENTS]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "films.parquet")
    paths = [
        tmp_path / "films.parquet",
        write("films.tsv", tsv),
        write("FILMS.JSONL", texts_of_jsonl(*rows) + "\n"),
        write("films.csv.gz", gzip.compress(CSV.encode())),
        write("films.tsv.gz", gzip.compress(tsv.encode())),
        write("films.jsonl.gz", gzip.compress(texts_of_jsonl(*rows).encode())),
    ]
    for path in paths:
        assert pairs(read(path)) == expected, path
        assert data_name(path).lower() == "films"


def test_a_folder_of_class_folders(write: Write, tmp_path: Path) -> None:
    for i, (text, label) in enumerate(DOCUMENTS):
        path = write(f"films/{label}/{i}.txt", text)
    write("films/.DS_Store", b"\xff\x00")
    write("films/pos/.hidden", b"\xff")
    write("films/README", "beside the classes")
    (path.parent / "0-link.txt").symlink_to(path)
    corpus = read(tmp_path / "films")
    assert sorted(pairs(corpus)) == sorted([*DOCUMENTS, DOCUMENTS[3]])


def test_a_folder_that_is_split(write: Write, tmp_path: Path) -> None:
    write("films/train/pos/1.txt", b"\xef\xbb\xbfgood\r\n")
    write("films/train/neg/1.txt", "bad")
    write("films/test/new/1.txt", "new")
    corpus = read(tmp_path / "films")
    assert (corpus.train_texts, corpus.test_texts) == (["bad", "good\r\n"], ["new"])
    assert corpus.target_names == ["neg", "new", "pos"]
    assert corpus.train_targets.tolist() == [0, 2]
    assert corpus.test_targets.tolist() == [1]


def test_a_split_column_is_the_split(write: Write) -> None:
    corpus = read(write("a.csv", TWO_PARTS), split_column="part")
    assert (corpus.train_texts, corpus.test_texts) == (["a", "b"], ["c", "d"])
    assert corpus.target_names == ["x", "y", "z"]
    assert corpus.test_targets.tolist() == [0, 2]


def test_labels_of_jsonl_are_any_scalar(write: Write) -> None:
    labels = [1, True, 1.5, "x", " x "]
    rows = [{"text": "", "label": label} for label in labels for _ in "ab"]
    corpus = read(write("a.jsonl", texts_of_jsonl(*rows)))
    assert corpus.target_names == ["1", "1.5", "true", "x"]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (pa.array([3, 4, 3, 4]), ["3", "4"]),
        (pa.array([True, False, True, False]), ["false", "true"]),
        (pa.array(["b", "a", "b", "a"]).dictionary_encode(), ["a", "b"]),
        (pa.array(["b", "a", "b", "a"], pa.large_string()), ["a", "b"]),
    ],
)
def test_labels_of_parquet(tmp_path: Path, labels: pa.Array, names: list[str]) -> None:
    parquet.write_table(pa.table({"text": ["a", "b", "c", "d"], "label": labels}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").target_names == names


INDICATOR = [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
LABELS = [["b", "a"], ["b"], ["a", "c", "a"]]


def test_several_labels_become_an_indicator(write: Write, tmp_path: Path) -> None:
    parts = ["train", "train", "test"]
    rows = [{"text": "t", "label": one, "part": part} for one, part in zip(LABELS, parts, strict=True)]
    single = texts_of_jsonl(*[row | {"label": "b"} if row["label"] == ["b"] else row for row in rows])
    lines = "".join(f"t,{' ; '.join(row['label'])},{row['part']}\n" for row in rows)
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    corpora = [
        read(tmp_path / "a.parquet", split_column="part"),
        read(write("a.jsonl", texts_of_jsonl(*rows)), split_column="part"),
        read(write("b.jsonl", single), split_column="part"),
        read(write("a.csv", "text,label,part\n" + lines), split_column="part", label_separator=";"),
    ]
    for corpus in corpora:
        assert isinstance(corpus.train_targets, csr_matrix)
        assert corpus.train_targets.dtype == np.int8
        assert corpus.target_names == ["a", "b", "c"]
        assert isinstance(corpus.test_targets, csr_matrix)
        both = [corpus.train_targets.toarray(), corpus.test_targets.toarray()]
        assert np.vstack(both).tolist() == INDICATOR


# The split.


def one_label(write: Write, counts: dict[str, int], **options: Any) -> Corpus:
    rows = [f"{label}{i},{label}\n" for label, count in counts.items() for i in range(count)]
    return read(write("split.csv", "text,label\n" + "".join(rows)), **options)


def per_class(corpus: Corpus, targets: np.ndarray) -> dict[str, int]:
    return dict(Counter(corpus.target_names[target] for target in targets))


def test_the_split_keeps_the_shares_of_the_classes(write: Write) -> None:
    corpus = one_label(write, {"a": 60, "b": 30, "c": 10})
    assert per_class(corpus, corpus.test_targets) == {"a": 18, "b": 9, "c": 3}
    assert per_class(corpus, corpus.train_targets) == {"a": 42, "b": 21, "c": 7}
    assert "stratified by class" in corpus.notes


def test_the_split_is_the_seeds_and_keeps_the_order(write: Write) -> None:
    first, again, other = (one_label(write, {"a": 40, "b": 40}, seed=seed) for seed in (1, 1, 2))
    assert first.test_texts == again.test_texts
    assert first.test_texts != other.test_texts
    order = {text: i for i, text in enumerate(sorted(first.train_texts + first.test_texts, key=_file_order))}
    for texts in (first.train_texts, first.test_texts):
        assert [order[text] for text in texts] == sorted(order[text] for text in texts)


def _file_order(text: str) -> tuple[str, int]:
    return text[0], int(text[1:])


def test_a_document_alone_in_its_class_goes_to_training(write: Write) -> None:
    corpus = one_label(write, {"a": 10, "b": 10, "c": 1, "d": 1}, test_size=0.5)
    assert per_class(corpus, corpus.train_targets) == {"a": 5, "b": 5, "c": 1, "d": 1}
    assert per_class(corpus, corpus.test_targets) == {"a": 5, "b": 5}
    assert "all in training: 2" in corpus.notes


def test_where_stratification_is_impossible_the_notes_say_so(write: Write) -> None:
    corpus = one_label(write, dict.fromkeys("abcdef", 2), test_size=0.1)
    assert len(corpus.test_texts) == 2
    assert "not stratified" in corpus.notes


@pytest.mark.parametrize("test_size", [0.001, 0.999])
def test_neither_part_is_ever_empty(write: Write, test_size: float) -> None:
    rows = "".join(f"t,a;b\nt,{label}\n" for label in "abab")
    corpus = read(write("a.csv", "text,label\n" + rows), test_size=test_size, label_separator=";")
    assert len(corpus.train_texts) + len(corpus.test_texts) == 8
    assert corpus.train_texts
    assert corpus.test_texts


def test_the_split_keeps_the_shares_of_several_labels(write: Write) -> None:
    draw = np.random.default_rng(0)
    rows = []
    for i in range(1000):
        labels = [label for label, share in (("a", 0.5), ("b", 0.2), ("c", 0.05)) if draw.random() < share]
        rows.append(f"t{i},{';'.join(labels or ['d'])}\n")
    path = write("a.csv", "text,label\n" + "".join(rows))
    corpus = read(path, label_separator=";", test_size=0.25)
    test, train = corpus.test_targets.sum(axis=0), corpus.train_targets.sum(axis=0)
    np.testing.assert_allclose(test / (test + train), 0.25, atol=0.02)
    assert read(path, label_separator=";", test_size=0.25).test_texts == corpus.test_texts
    assert "stratified over labels" in corpus.notes


def test_too_many_labels_are_not_stratified(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textbench.tasks.sources.user_split.MAX_STRATIFICATION", 10)
    corpus = read(write("a.csv", "text,label\n" + "t,a;b\nt,a\nt,b\n" * 5), label_separator=";")
    assert len(corpus.test_texts) == 5
    assert "not stratified: too many labels" in corpus.notes


# Names and digests.


def test_the_digest_of_a_file_is_its_sha256(write: Write) -> None:
    assert digest(write("a.csv", CSV)) == hashlib.sha256(CSV.encode()).hexdigest()


def test_the_digest_of_a_folder_follows_names_and_content(write: Write, tmp_path: Path) -> None:
    write("one/x/a", "1")
    write("one/y/b", "2")
    digests = [digest(tmp_path / "one")]
    write("one/y/b", "3")
    digests.append(digest(tmp_path / "one"))
    (tmp_path / "one/y/b").rename(tmp_path / "one/y/c")
    digests.append(digest(tmp_path / "one"))
    (tmp_path / "one/y/c").rename(tmp_path / "one/x/c")
    digests.append(digest(tmp_path / "one"))
    assert len(set(digests)) == 4
    (tmp_path / "one").rename(tmp_path / "two")
    assert digest(tmp_path / "two") == digests[-1]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/My reviews (v2).csv", "My-reviews-v2"),
        ("données.JSONL.GZ", "donnees"),
        ("v1.2", "v1-2"),
        ("отзывы.csv", "data"),
    ],
)
def test_names_are_safe(path: str, name: str) -> None:
    assert data_name(path) == name


def test_the_path_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert UserData("a.csv").path == str(tmp_path / "a.csv")


def test_naming_data_imports_nothing_slow() -> None:
    slow = {"numpy", "sklearn", "scipy", "pyarrow"}
    code = f"import sys, textbench.tasks.sources.user_data; print({slow} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"test_size": 0.0}, "--test-size must lie between 0 and 1, got 0.0"),
        ({"test_size": float("nan")}, "--test-size must lie between 0 and 1, got nan"),
        (
            {"test_size": 0.5, "split_column": "part"},
            "--test-size 0.5 and --split-column 'part' exclude each other",
        ),
        ({"text_column": ""}, "--text-column must be the name of a column, got ''"),
        ({"label_separator": ""}, "--label-separator must be one or more characters, got ''"),
        ({"split_column": "text"}, "got --text-column 'text', --label-column 'label', --split-column 'text'"),
        ({"seed": -1}, "the seed of the split must lie in 0..4294967295, got -1"),
    ],
)
def test_options_out_of_range(write: Write, options: dict[str, Any], words: str) -> None:
    own = UserData(str(write("a.csv", CSV)), **options)
    with pytest.raises(InputError) as caught:
        own.check()
    assert words in str(caught.value)


def test_a_csv_as_spreadsheets_write_it(write: Write) -> None:
    # Columns without a name (an index, trailing commas) repeat the empty name and harm nobody.
    text = "\ufeff,text,label,\r\n" + "".join(f"{i},t{i},{'xy'[i % 2]},\r\n" for i in range(6))
    corpus = read(write("a.csv", text))
    assert sorted(corpus.train_texts + corpus.test_texts) == [f"t{i}" for i in range(6)]


def test_what_csv_writes_is_read_back(tmp_path: Path) -> None:
    texts = ['say "so"', "a,b", " lead", "line\rbreak\r\n", "\u2028 é 日", "'"]
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(
            [["text", "label"], *([text, "xy"[i % 2]] for i, text in enumerate(texts))]
        )
    corpus = read(tmp_path / "a.csv")
    assert sorted(corpus.train_texts + corpus.test_texts) == sorted(texts)


def _n_read() -> int:
    """Bytes that this process has asked the system for."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_a_file_is_digested_once_and_read_once(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    rng = np.random.default_rng(0)
    rows = [{"text": "".join(rng.choice([*letters], 300)), "label": letters[i % 2]} for i in range(5_000)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    paths = [
        write("rows.csv", "\n".join(["text,label", *(f"{row['text']},{row['label']}" for row in rows)])),
        write("rows.jsonl", texts_of_jsonl(*rows)),
        tmp_path / "rows.parquet",
    ]
    read(paths[0])  # what is imported on the way is
    for path in paths:
        os.utime(path, (1, 1))  # as of old: what was written a moment ago may be written again unseen
        size, before = path.stat().st_size, _n_read()
        sha256 = digest(path)
        assert digest(path) == sha256 and size <= _n_read() - before < 1.1 * size
        with monkeypatch.context() as patch:
            patch.setattr(user_source.hashlib, "file_digest", lambda *_: pytest.fail("digested again"))
            before = _n_read()
            corpus = load_columns(UserData(str(path)), sha256)
            assert _n_read() - before < 1.1 * size
        assert len(corpus.train_texts) + len(corpus.test_texts) == len(rows)
        before = _n_read()
        user_source._known.clear()  # another process digests what it reads, on the way
        load_columns(UserData(str(path)), sha256)
        assert _n_read() - before < (2.2 if path.suffix == ".parquet" else 1.1) * size
