"""Files of the user's that are refused: which, and in which words."""

import gzip
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests import own_documents
from tests.own_documents import CSV, read, refusal
from textbench.tasks import InputError
from textbench.tasks.sources import user_files
from textbench.tasks.sources.user_data import digest

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return partial(own_documents.write, tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "there must be a text column 'text', got no columns"),
        (b"text,label\n", "a.csv: there must be documents of at least two classes, got none"),
        (
            b"text,labels,id\na,b,c\n",
            "must be a label column 'label', got the columns 'text', 'labels', 'id'",
        ),
        (b"text,labels\na,b\n", "did you mean 'labels'?"),
        (b"text,label,text\na,b,c\n", "a.csv: column names must differ, got 'text' twice"),
        (
            b"text,label\na,x\nb, \n",
            "a.csv, line 3: column 'label' must hold a label that is not empty, got ' '",
        ),
        (b"text,label\na,x\nb,x\n", "a.csv: the documents must be of at least two classes, got only 'x'"),
        (b'text,label\n"a\nb",x\nc\n', "a.csv, line 4: a row must have 2 columns like the header, got 1"),
        (b"text,label\na,x\nb,c,d\n", "a.csv, line 3: a row must have 2 columns like the header, got 3"),
        (b'text,label\na,x\n"b"c,x\n', "a.csv, line 3: a quoted field must double the quotes inside it"),
        (
            b'text,label\na,x\n"b,x\nc,y\n',
            "a.csv, line 3: a quoted field must end with a quote, got the end of the",
        ),
        (
            b"text,label\na,x\n\nb\xe9,x\n",
            "a.csv, line 4: text must be UTF-8, got byte 0xe9 at byte offset 1",
        ),
        (b"text,label\r\ra,x\rb,\xe9\r", "a.csv, line 4: text must be UTF-8, got byte 0xe9 at byte offset 2"),
        (b"text,label\na,x\nb,y\xc3", "a.csv, line 3: text must be UTF-8, got byte 0xc3 at byte offset 3"),
        (b"text,label\na,x\nb\0,x\n", "a.csv, line 3: text must hold no NUL byte"),
        (
            "text,label\na,x\n".encode("utf-16"),
            "a.csv, line 1: text must be UTF-8, got byte 0xff at byte offset 0",
        ),
        (b"text,label\na,x\nb,y\n", "to be split, a class must have two documents, got 2 classes of one"),
    ],
)
def test_csv_files_that_are_refused(write: Write, content: bytes, words: str) -> None:
    assert words in refusal(write("a.csv", content))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "text,label,part\na,x,train\nb,y,rest\n",
            "line 3: column 'part' must hold train, test or validation (valid, val, dev), got 'rest'",
        ),
        (
            "text,label,part\na,x,train\nb,y,train\n",
            "column 'part' must hold both train and test, got no test",
        ),
        (
            "text,label,part\na,x,train\nb,y,test\n",
            "the training documents must be of at least two classes, got only 'x'",
        ),
        ("text,label\na,x\nb,y\n", "there must be a split column 'part', got the columns 'text', 'label'"),
    ],
)
def test_splits_that_are_refused(write: Write, content: str, words: str) -> None:
    assert words in refusal(write("a.csv", content), split_column="part")


def test_an_empty_label_among_several(write: Write) -> None:
    path = write("a.csv", "text,label\na,x;y\nb,x;;y\n")
    expected = "line 3: column 'label' must hold a label that is not empty, got '' in 'x;;y'"
    assert expected in refusal(path, label_separator=";")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            '{"text": "a", "label": }',
            "line 2: a line must be one JSON object, got Expecting value at character 24",
        ),
        ("[1, 2]", "line 2: a line must be one JSON object, got a list"),
        ("3", "line 2: a line must be one JSON object, got 3"),
        (
            '{"text": "a", "labels": 1}',
            "line 2: there must be a label column 'label', got the columns",
        ),
        ('{"text": 7, "label": "x"}', "line 2: the text must be a string, got 7"),
        ('{"text": null, "label": "x"}', "line 2: the text must be a string, got null"),
        (
            '{"text": "a", "label": null}',
            "line 2: column 'label' must hold a label that is not empty, got null",
        ),
        (
            '{"text": "a", "label": {}}',
            "line 2: column 'label' must hold a label that is not empty, got an object",
        ),
        (
            '{"text": "a", "label": []}',
            "line 2: column 'label' must hold at least one label, got an empty list",
        ),
        ('{"text": "a", "label": NaN}', "line 2: a line must be one JSON object, got NaN, which is not JSON"),
        ('{"text": "a", "label": "x", "text": "b"}', "got the name 'text' twice in an object"),
        (
            r'{"text": "a\u0000", "label": "x"}',
            "line 2: the text must hold no NUL character, got one at position 1",
        ),
        (
            r'{"text": "a\ud800", "label": "x"}',
            "line 2: the text must be Unicode, got half a surrogate pair at 1",
        ),
        ("[" * 100_000, "line 2: a line must be one JSON object, got objects nested too deeply"),
        (
            '{"text": "a", "label": ' + "1" * 5000 + "}",
            "line 2: a line must be one JSON object, got Exceeds the limit",
        ),
    ],
)
def test_jsonl_files_that_are_refused(write: Write, line: str, words: str) -> None:
    assert words in refusal(write("a.jsonl", '{"text": "a", "label": "x"}\n' + line + "\n"))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"text": [1, 2], "label": ["a", "b"]}, "column 'text' must hold strings, got type 'int64'"),
        ({"text": [b"1", b"2"], "label": ["a", "b"]}, "column 'text' must hold strings, got type 'binary'"),
        (
            {"text": ["1", "2"], "label": [0.5, 1]},
            "must hold strings, integers or lists of strings, got type 'double'",
        ),
        ({"text": ["1", None], "label": ["a", "b"]}, "row 2: the text must be a string, got null"),
        (
            {"text": ["1", "2"], "label": ["a", None]},
            "row 2: column 'label' must hold a label that is not empty, got",
        ),
        (
            {"text": ["1", "2"], "tag": ["a", "b"]},
            "must be a label column 'label', got the columns 'text', 'tag'",
        ),
    ],
)
def test_parquet_files_that_are_refused(tmp_path: Path, columns: dict[str, list[Any]], words: str) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert words in refusal(tmp_path / "a.parquet")


def test_parquet_that_cannot_be_read(write: Write, tmp_path: Path) -> None:
    parquet.write_table(pa.table({"text": ["a"] * 9, "label": ["b"] * 9}), tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    for damaged in (b"", b"text", content[:-20], b"PAR1" + b"\0" * 40 + b"PAR1"):
        assert "a.parquet must be" in refusal(write("a.parquet", damaged))


def test_parquet_with_two_columns_of_one_name(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["a"])] * 3, names=["text", "label", "label"])
    parquet.write_table(table, tmp_path / "a.parquet")
    assert "column names must differ, got 'label' twice" in refusal(tmp_path / "a.parquet")


def test_missing_and_unknown_files(write: Write, tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.csv") == f"there is no file or folder {tmp_path / 'none.csv'}"
    accepted = ".csv, .csv.gz, .tsv, .tsv.gz, .json, .json.gz, .jsonl, .jsonl.gz, .parquet, .xlsx"
    assert f"ending in {accepted}, got {tmp_path}/a.xls" in refusal(write("a.xls", "x"))
    os.mkfifo(tmp_path / "a.csv")
    assert "data must be a folder of class folders or a file" in refusal(tmp_path / "a.csv")
    assert "no file or folder" in refusal(tmp_path / "line\nbreak.csv")
    assert "must be readable" in refusal(tmp_path / ("x" * 300 + ".csv"))


def test_damaged_gzip(write: Write) -> None:
    whole = gzip.compress(CSV.encode())
    for damaged in (CSV.encode(), whole[:-9], whole[:12] + b"\xff\xff" + whole[14:]):
        assert "a.csv.gz must be readable, got: " in refusal(write("a.csv.gz", damaged))
    path = write("b.csv.gz", gzip.compress(b"text,label\n\xff,x\n"))
    assert "b.csv.gz, line 2: text must be UTF-8, got byte 0xff" in refusal(path)


def test_a_field_of_ten_megabytes_is_read(write: Write) -> None:
    text = "word " * 2_000_000
    corpus = read(write("a.csv", f"text,label\n{text},x\nb,y\nc,x\nd,y\n"))
    assert text in corpus.train_texts + corpus.test_texts


def test_a_field_over_the_limit_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_files, "FIELD_LIMIT", 1000)
    path = write("a.csv", "text,label\na,x\n" + "b" * 1001 + ",x\n")
    assert "a.csv, line 3: a field must have at most 1000 characters, got more" in refusal(path)


FOLDERS: list[tuple[dict[str, bytes], list[str], str]] = [
    ({}, [], "data must hold one folder a class, got 0 files and no folder"),
    ({"a.txt": b"a", "b.txt": b"b"}, [], "data must hold one folder a class, got 2 files and no folder"),
    ({"x/a": b"a"}, ["y"], "data/y: a class folder must hold at least one file, got none"),
    ({"x/a": b"a", "y/.hidden": b"a"}, [], "data/y: a class folder must hold at least one file, got none"),
    ({"x/a": b"a", "y/z/a": b"b"}, [], "data/y: a class folder must hold files only, got"),
    ({"x/a": b"a", "x/b": b"b"}, [], "the documents must be of at least two classes, got only 'x'"),
    ({"x/a": b"a", "y/a": b"abc\xff"}, [], "data/y/a: text must be UTF-8, got byte 0xff at byte offset 3"),
    (
        {"x/a": b"a", "y/a": b"a\0"},
        [],
        "data/y/a: the text must hold no NUL character, got one at position 1",
    ),
    ({"x/a": b"a", " /a": b"a"}, [], "the name of its folder must hold a label that is not empty, got ' '"),
    (
        {"train/a": b"a", "test/b": b"b"},
        [],
        "data/train must hold one folder a class, got 1 files and no folder",
    ),
    ({"train/x/a": b"a", "train/y/a": b"a", "test/b": b"b"}, [], "data/test must hold one folder a class"),
]


@pytest.mark.parametrize(("files", "folders", "words"), FOLDERS)
def test_folders_that_are_refused(
    write: Write, tmp_path: Path, files: dict[str, bytes], folders: list[str], words: str
) -> None:
    for name in ["", *folders]:
        (tmp_path / "data" / name).mkdir(parents=True)
    for name, content in files.items():
        write(f"data/{name}", content)
    assert words in refusal(tmp_path / "data")


def test_links_that_lead_out_of_a_folder(write: Write, tmp_path: Path) -> None:
    for name in "xy":
        write(f"data/{name}/a", "a")
    outside, link = write("secret", "s"), tmp_path / "data/y/b"
    for target in (outside, tmp_path / "data/x", tmp_path / "nothing", link):
        link.symlink_to(target)
        assert f"{link}: a link must lead to a file in the same data, got" in refusal(tmp_path / "data")
        with pytest.raises(InputError, match="a link must lead"):
            digest(tmp_path / "data")
        link.unlink()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label_separator": ";"}, "--label-separator ';' is for files"),
        ({"text_column": "body"}, "--text-column 'body' is for files"),
        ({"split_column": "part"}, "--split-column 'part' is for files"),
        ({"test_size": 0.2}, "--test-size 0.2 is not for"),
    ],
)
def test_options_that_a_split_folder_does_not_take(
    write: Write, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    for name in ("train/x", "train/y", "test/x"):
        write(f"data/{name}/a", "a")
    assert words in refusal(tmp_path / "data", **options)
