"""How the user's files are read: separators, encodings, lists, workbooks; ids, validation, missing values."""

import gzip
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pandas._libs.parsers import STR_NA_VALUES
from pyarrow import parquet

from tests import own_documents
from tests.own_documents import read, refusal
from textbench.tasks import InputError
from textbench.tasks.corpus import read_corpus
from textbench.tasks.sources.user_data import MISSING, UserData, reference
from textbench.tasks.storage.store import Store

Write = Callable[..., Path]
ROWS = [("café, noir", "x"), ("thé", "y"), ("eau", "x"), ("vin", "y")]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return partial(own_documents.write, tmp_path)


def table(separator: str) -> str:
    return f"text{separator}label\n" + "".join(f'"{text}"{separator}{label}\n' for text, label in ROWS)


@pytest.mark.parametrize(
    ("separator", "said"), [(";", ";"), ("|", "|"), ("\t", "\t"), ("\t", r"\t"), ("\t", "tab")]
)
def test_a_separator_parts_the_columns(write: Write, separator: str, said: str) -> None:
    for name in ("a.csv", "a.tsv"):
        corpus = read(write(name, table(separator)), separator=said)
        assert sorted(corpus.train_texts + corpus.test_texts) == sorted(text for text, _ in ROWS)


@pytest.mark.parametrize(("separator", "said"), [(";", "';'"), ("\t", "tab"), ("|", "'|'")])
def test_a_separator_that_was_not_said_is_suggested(write: Write, separator: str, said: str) -> None:
    assert f"say what parts them: --separator {said}" in refusal(write("a.csv", table(separator)))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("a.csv", {"separator": ";;"}, "--separator must be one character that parts columns"),
        ("a.csv", {"separator": '"'}, "--separator must be one character"),
        ("a.jsonl", {"separator": ";"}, "--separator is for CSV and TSV files, got"),
        ("a.csv", {"encoding": "klingon"}, "--encoding must be an encoding that Python knows"),
        ("a.csv", {"encoding": "hex"}, "--encoding must be an encoding that Python knows"),
        ("a.parquet", {"encoding": "latin-1"}, "--encoding is for files of text; "),
    ],
)
def test_options_that_do_not_fit(write: Write, name: str, options: dict[str, Any], words: str) -> None:
    assert words in refusal(write(name, table(",")), **options)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "latin-1", "cp1252"])
def test_an_encoding_is_taken_at_its_word(write: Write, tmp_path: Path, encoding: str) -> None:
    content = table(",").encode(encoding)
    folders = write("data/x/1", "café".encode(encoding)), write("data/x/2", b""), write("data/y/1", b"")
    write("data/y/2", b"")
    for path in (write("a.csv", content), write("a.csv.gz", gzip.compress(content))):
        corpus = read(path, encoding=encoding)
        assert sorted(corpus.train_texts + corpus.test_texts) == sorted(text for text, _ in ROWS)
    corpus = read(folders[0].parent.parent, encoding=encoding)
    assert "café" in corpus.train_texts + corpus.test_texts


@pytest.mark.parametrize(
    ("written", "said", "words"),
    [
        (
            "latin-1",
            None,
            "a.csv, line 2: text must be UTF-8, got byte 0xe9 at byte offset 4; say its own: --encoding latin-1",
        ),
        (
            "utf-16",
            None,
            "line 1: text must be UTF-8, got byte 0xff at byte offset 0; say its own: --encoding utf-16",
        ),
        (
            "utf-16-le",
            None,
            "line 2: text must be UTF-8, got byte 0xe9 at byte offset 9; say its own: --encoding utf-16-le",
        ),
        (
            "latin-1",
            "utf-8",
            "line 2: text must be utf-8, got byte 0xe9 at byte offset 4; --encoding must be the one that",
        ),
        ("utf-8", "ascii", "line 2: text must be ascii, got byte 0xc3 at byte offset 4; --encoding must be"),
        ("latin-1", "utf-16", "text must be utf-16, got"),  # each Python has its own words for what it lacks
    ],
)
def test_a_wrong_encoding_is_named_with_byte_and_line(
    write: Write, written: str, said: str | None, words: str
) -> None:
    assert words in refusal(write("a.csv", table(",").encode(written)), encoding=said)


def test_ascii_in_utf_16_is_told_by_its_nul_bytes(write: Write) -> None:
    words = "a.csv, line 1: text must hold no NUL byte, got one; of UTF-16 say so: --encoding utf-16-le"
    assert words in refusal(write("a.csv", "text,label\na,x\n".encode("utf-16-le")))


def test_a_list_of_records_is_read(write: Write) -> None:
    rows = [{"text": text, "label": label, "stars": 3} for text, label in ROWS]
    content = json.dumps(rows, ensure_ascii=False, indent=1)
    lines = read(write("a.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    for path in (write("a.json", "\ufeff" + content), write("a.json.gz", gzip.compress(content.encode()))):
        assert own_documents.pairs(read(path)) == own_documents.pairs(lines)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            '{"text": {"0": "a"}}',
            "must be a list of objects, one a document, got an object; pandas writes one by",
        ),
        ("3", "a.json: JSON must be a list of objects, one a document, got 3"),
        (
            '[{"text": "a", "label": "x"}, 3]',
            "record 2: JSON must be a list of objects, one a document, got 3",
        ),
        ('[{"text": "a", "lable": "x"}]', "record 1: there must be a label column 'label'"),
        (
            '{"text": "a"}\n{"text": "b"}',
            "line 2: JSON must be a list of objects, one a document, got Extra data",
        ),
        ('{"text": "a"}\n{"text": "b"}', "with one object a line, its name must end in .jsonl"),
        ('[{"text": "a",\n "label": }]', "a.json, line 2: JSON must be a list of objects"),
        ('[{"text": NaN}]', "got NaN, which is not JSON"),
        ("[" * 100_000, "got objects nested too deeply"),
    ],
)
def test_json_that_is_refused(write: Write, content: str, words: str) -> None:
    assert words in refusal(write("a.json", content))


def test_a_workbook_is_read(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("stars", "text", "label"), (1, "a", 5), (), (2, "b", 4), (3, "c", 5), (3, "d", 4)]:
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    corpus = read(tmp_path / "a.xlsx")
    assert (sorted(corpus.train_texts + corpus.test_texts), corpus.target_names) == (list("abcd"), ["4", "5"])
    assert corpus.train_ids is not None and corpus.test_ids is not None
    assert sorted(corpus.train_ids + corpus.test_ids) == ["2", "4", "5", "6"]
    (tmp_path / "b.xlsx").write_bytes(b"no zip")
    assert "b.xlsx must be a sound Excel workbook" in refusal(tmp_path / "b.xlsx")


def test_a_workbook_without_its_library_says_the_way_out(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    words = "to read an Excel workbook, install openpyxl (pip install openpyxl), or save it as CSV"
    assert words in refusal(write("a.xlsx", b"PK"))


# Missing values.


def test_what_counts_as_missing_is_what_pandas_reads_so() -> None:
    assert MISSING == STR_NA_VALUES


@pytest.mark.parametrize("label", ["NaN", "NA", " nan ", "null", "None", "<NA>"])
def test_labels_spelled_like_missing_values_are_counted_with_the_first_line(write: Write, label: str) -> None:
    path = write("a.csv", f'text,label\na,x\nb,y\nc,"{label}"\nd,\ne,x\n')
    name = label.strip()
    assert f"a.csv, line 4: column 'label' must hold a label that is not empty, got {label!r}" in refusal(
        path
    )
    assert f"rename a class of that name, such as '{name}-class'" in refusal(path)
    assert "; 2 of 5 documents have no label" in refusal(path)
    rows = [{"text": "a", "label": "x"}, {"text": "b", "label": ["y", label]}]
    assert "line 2: column 'label' must hold a label" in refusal(
        write("a.jsonl", own_documents.texts_of_jsonl(*rows))
    )


def test_a_folder_may_be_called_like_a_missing_value(write: Write, tmp_path: Path) -> None:
    for name in ("NA/1", "NA/2", "x/1", "x/2"):
        write(f"data/{name}", name)
    assert read(tmp_path / "data").target_names == ["NA", "x"]


def test_texts_spelled_like_missing_values_are_kept_and_told(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = read(write("a.csv", "text,label\na,x\nNaN,y\nNULL,y\nd,x\n"))
    assert sorted(corpus.train_texts + corpus.test_texts) == ["NULL", "NaN", "a", "d"]
    assert "Texts spelled like a missing value, kept: 2, first " in corpus.notes
    assert "a.csv, line 3: 'NaN'." in caplog.text


# Ids and validation documents.


def test_documents_are_known_by_line_row_record_or_file(write: Write, tmp_path: Path) -> None:
    rows = [("a\nb", "x", "train"), ("c", "y", "train"), ("d", "x", "test"), ("e", "y", "test")]
    names = ("text", "label", "part")
    records = [dict(zip(names, row, strict=True)) for row in rows]
    parquet.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
    lines = "text,label,part\n" + "".join(f'"{text}",{label},{part}\n' for text, label, part in rows)
    for path, ids in (
        (write("a.csv", lines), ["2", "4", "5", "6"]),
        (write("a.jsonl", own_documents.texts_of_jsonl(*records)), ["1", "2", "3", "4"]),
        (write("a.json", json.dumps(records)), ["1", "2", "3", "4"]),
        (tmp_path / "a.parquet", ["1", "2", "3", "4"]),
    ):
        corpus = read(path, split_column="part")
        assert (corpus.train_ids, corpus.test_ids) == (ids[:2], ids[2:])
    for text, label, part in rows:
        write(f"data/{part}/{label}/{text[0]}.txt", text)
    corpus = read(tmp_path / "data")
    assert (corpus.train_ids, corpus.test_ids) == (
        ["train/x/a.txt", "train/y/c.txt"],
        ["test/x/d.txt", "test/y/e.txt"],
    )


PARTS = ["train", "validation", "train", "DEV", "test", "val", "train", "valid"]


def test_validation_documents_are_training_documents_that_are_told_apart(
    write: Write, tmp_path: Path
) -> None:
    rows = "".join(f"t{i},{'xy'[i // 2 % 2]},{part}\n" for i, part in enumerate(PARTS))
    path = write("a.csv", "text,label,part\n" + rows)
    store, own = (
        Store(tmp_path / "store", isolated=False),
        reference(UserData(str(path), split_column="part")),
    )
    corpus = read_corpus(store.open(own))
    assert corpus.train_texts == ["t0", "t1", "t2", "t3", "t5", "t6", "t7"]
    assert corpus.validation is not None
    assert [corpus.train_texts[i] for i in corpus.validation] == ["t1", "t3", "t5", "t7"]
    assert corpus.test_texts == ["t4"]
    assert "4 training documents are for validation" in corpus.notes
    assert store.open(own).json("corpus")["n_validation"] == 4


@pytest.mark.parametrize("name", ["val", "dev", "valid", "validation"])
def test_a_folder_of_validation_documents(write: Write, tmp_path: Path, name: str) -> None:
    for file in ("train/x/1", "train/y/1", f"{name}/x/2", f"{name}/y/3", "test/x/4"):
        write(f"data/{file}", file)
    corpus = read(tmp_path / "data")
    assert corpus.validation is not None and corpus.train_ids is not None
    assert [corpus.train_ids[i] for i in corpus.validation] == [f"{name}/x/2", f"{name}/y/3"]
    assert corpus.test_ids == ["test/x/4"]


def test_validation_documents_alone_are_nothing_to_learn_from(write: Write) -> None:
    path = write("a.csv", "text,label,part\na,x,train\nb,y,val\nc,x,test\n")
    words = "the training documents must be of at least two classes, got only 'x'"
    assert words in refusal(path, split_column="part")


# What is read, and how often.


def test_a_file_that_changes_after_the_plan_is_noticed_where_it_is_read(write: Write, tmp_path: Path) -> None:
    path = write("a.csv", table(","))
    write("data/x/1", "a"), write("data/x/2", "b"), write("data/y/1", "a"), write("data/y/2", "b")
    store = Store(tmp_path / "store", isolated=False)
    planned = [reference(UserData(str(place))) for place in (path, tmp_path / "data")]
    path.write_text(table(",").replace("eau", "bon"))
    write("data/README", "beside the classes")
    for own in planned:
        with pytest.raises(InputError, match="has changed while it was used"):
            store.open(own)
