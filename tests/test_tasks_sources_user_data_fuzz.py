"""Own data under fire: any bytes give a valid corpus or an InputError."""

import csv
import gzip
import io
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from tests.guard import damaged
from tests.loading import FUZZ, labelled, labels, outcome, texts


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


OPTIONS = st.sampled_from(
    [
        {},
        {"label_separator": ";"},
        {"split_column": "part"},
        {"label_separator": ",", "split_column": "part"},
        {"test_size": 0.01},
        {"test_size": 0.99, "label_separator": " "},
        {"encoding": "latin-1", "split_column": "part"},
        {"encoding": "utf-16"},
        {"encoding": "utf-16-le", "label_separator": ";"},
        {"separator": ";"},
        {"separator": "tab", "encoding": "cp1252"},
    ]
)
FRAGMENTS = st.sampled_from(
    [
        *(
            b"text",
            b"label",
            b"part",
            b"train",
            b"test",
            b"dev",
            b"NaN",
            b";",
            b"x",
            b"y",
            b"x;y",
            b"x,y",
            b" ",
        ),
        *(
            b",",
            b"\t",
            b'"',
            b'""',
            b"\n",
            b"\r",
            b"\r\n",
            b"\0",
            b"\xef\xbb\xbf",
            b"\xff",
            b"\xc3",
            b"\xed\xa0\x80",
        ),
        *(b"{", b"}", b"[", b"]", b":", b"\\ud800", b"\\u0000", b"null", b"true", b"NaN", b"1e999", b"-0"),
        *(
            b"text,label\n",
            b'{"text": "a", "label": "x"}\n',
            b'{"text": "a", "label": ["x", "y"]}\n',
            b"[" * 2000,
        ),
    ]
)


def whole(kind: str) -> bytes:
    """Return a sound file of a kind, for mutation."""
    rows = [
        {
            "text": f'{i} "é", so\n',
            "label": f"{'xy'[i % 2]};{'abc'[i % 3]}",
            "part": ("train", "test")[i // 6 % 2] if i else "val",
        }
        for i in range(12)
    ]
    if kind == "json":
        return json.dumps(rows, ensure_ascii=False).encode()
    if kind == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="," if kind == "csv" else "\t")
    writer.writerows([list(rows[0]), *(list(row.values()) for row in rows)])
    return stream.getvalue().encode()


def test_unchanged_files_are_read(folder: Path) -> None:
    for kind in ("csv", "tsv", "json", "jsonl"):
        path = folder / f"a.{kind}"
        path.write_bytes(whole(kind))
        found = outcome(path, label_separator=";", split_column="part")
        assert found.faults() == []
        assert found.corpus is not None and found.corpus.validation is not None
        assert found.corpus.validation.tolist() == [0]
        assert found.corpus.target_names == ["a", "b", "c", "x", "y"]


def test_faults_are_found(folder: Path) -> None:
    """What the tests below rely on: each rule is broken by an outcome that breaks it, and by no other."""
    path = folder / "a.csv"
    path.write_bytes(whole("csv"))
    found = outcome(path)
    assert found.corpus is not None and found.faults() == []
    bad: list[dict[str, Any]] = [
        {"refusal": "two\nlines"},
        {"refusal": "x" * 3000},
        {"written": ["a"]},
        {"corpus": replace(found.corpus, target_names=found.corpus.target_names[::-1])},
        {"corpus": replace(found.corpus, target_names=[" " + n for n in found.corpus.target_names])},
        {"corpus": replace(found.corpus, target_names=[*found.corpus.target_names, "zz"])},
        {"corpus": replace(found.corpus, test_ids=["2"] * len(found.corpus.test_texts))},
    ]
    assert [len(replace(found, **change).faults()) for change in bad] == [1] * len(bad)


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "csv.gz", "jsonl.gz", "parquet", "xlsx"])
@FUZZ
@given(
    content=st.one_of(st.binary(max_size=200), st.lists(FRAGMENTS, max_size=30).map(b"".join)),
    options=OPTIONS,
)
def test_any_bytes(kind: str, folder: Path, content: bytes, options: dict[str, Any]) -> None:
    path = folder / f"a.{kind}"
    path.write_bytes(content)
    assert outcome(path, **options).faults() == []


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl"])
@FUZZ
@given(data=st.data(), options=OPTIONS)
def test_damaged_files(kind: str, folder: Path, data: st.DataObject, options: dict[str, Any]) -> None:
    content = data.draw(damaged(whole(kind), FRAGMENTS))
    path = folder / f"a.{kind}"
    path.write_bytes(content)
    plain = outcome(path, **options)
    packed = folder / f"a.{kind}.gz"
    packed.write_bytes(gzip.compress(content, mtime=0))
    unpacked = outcome(packed, **options)
    assert plain.faults() == unpacked.faults() == []
    assert (plain.corpus is None) == (unpacked.corpus is None)
    if plain.corpus is not None and unpacked.corpus is not None:
        assert labelled(plain.corpus) == labelled(unpacked.corpus)


@FUZZ
@given(data=st.data())
def test_damaged_gzip(folder: Path, data: st.DataObject) -> None:
    path = folder / "a.csv.gz"
    path.write_bytes(data.draw(damaged(gzip.compress(whole("csv"), mtime=0), FRAGMENTS)))
    assert outcome(path).faults() == []


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2)
)


@FUZZ
@given(rows=st.lists(st.fixed_dictionaries({"text": texts | JSON, "label": labels | JSON}), max_size=8))
def test_json_of_any_values(folder: Path, rows: list[dict[str, Any]]) -> None:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = outcome(path)
    assert found.faults() == []
    is_refusable = any(not isinstance(row["text"], str) or "\0" in row["text"] for row in rows)
    assert found.corpus is None or not is_refusable
    (folder / "a.json").write_text(json.dumps(rows))
    listed = outcome(folder / "a.json")
    assert listed.faults() == []
    assert (listed.corpus is None) == (found.corpus is None)


ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "latin-1", "cp1252", "shift_jis")


@FUZZ
@given(
    rows=st.lists(st.tuples(texts, labels), min_size=2, max_size=8),
    written=st.sampled_from(ENCODINGS),
    read=st.sampled_from([None, *ENCODINGS]),
    separator=st.sampled_from(",;|\t"),
)
def test_any_encoding(
    folder: Path, rows: list[tuple[str, str]], written: str, read: str | None, separator: str
) -> None:
    """What is read in the encoding in which it was written is what was written; in another it may be refused."""
    rows = [(text.encode(written, "ignore").decode(written), "xy"[i % 2]) for i, (text, _) in enumerate(rows)]
    rows = [*rows, ("a", "x"), ("b", "y")]
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator).writerows([("text", "label"), *rows])
    path = folder / "a.csv"
    path.write_bytes(stream.getvalue().encode(written))
    found = outcome(path, encoding=read, separator=separator)
    assert found.faults() == []
    if read == written and all("\0" not in text for text, _ in rows):
        assert found.corpus is not None
        assert labelled(found.corpus) == Counter((text, frozenset(label)) for text, label in rows)


@FUZZ
@given(data=st.data())
def test_damaged_workbooks(folder: Path, workbook: bytes, data: st.DataObject) -> None:
    path = folder / "a.xlsx"
    path.write_bytes(data.draw(damaged(workbook, FRAGMENTS)))
    assert outcome(path, split_column="part").faults() == []


@pytest.fixture(scope="module")
def workbook() -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book, stream = openpyxl.Workbook(), io.BytesIO()
    for row in [
        ("text", "label", "part"),
        *((f"t{i}", i % 2, "train" if i % 3 else "test") for i in range(9)),
    ]:
        book.active.append(row)
    book.save(stream)
    return stream.getvalue()


TYPES = [
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.null()),
    *(pa.int8(), pa.uint64(), pa.float64(), pa.bool_()),
    *(pa.list_(pa.string()), pa.large_list(pa.int32()), pa.struct([("x", pa.string())])),
]


def columns_of(kind: pa.DataType, n_rows: int) -> st.SearchStrategy[list[Any]]:
    values: dict[str, st.SearchStrategy[Any]] = {
        "string": st.sampled_from(["a", "b", "", "train", "test", "é\0"]),
        "binary": st.binary(max_size=3),
        "int8": st.integers(-128, 127),
        "uint64": st.integers(0, 2**64 - 1),
        "double": st.floats(),
        "bool": st.booleans(),
        "null": st.none(),
        "struct<x: string>": st.just({"x": "a"}),
        "list<item: string>": st.lists(st.sampled_from(["a", "b", "", None]), max_size=3),
        "large_list<item: int32>": st.lists(st.integers(0, 3), max_size=3),
    }
    name = (
        "string" if "string" in str(kind) and "<" not in str(kind) else str(kind).replace("element", "item")
    )
    value = st.one_of(st.none(), values[name]) if name != "null" else st.none()
    return st.lists(value, min_size=n_rows, max_size=n_rows)


@FUZZ
@given(data=st.data(), options=OPTIONS)
def test_parquet_of_any_types(folder: Path, data: st.DataObject, options: dict[str, Any]) -> None:
    n_rows = data.draw(st.integers(0, 6))
    columns = {}
    for name in ("text", "label", "part"):
        kind = data.draw(st.sampled_from([*TYPES, pa.string(), pa.string()]))
        columns[name] = pa.array(data.draw(columns_of(kind, n_rows)), kind)
    parquet.write_table(pa.table(columns), folder / "a.parquet")
    assert outcome(folder / "a.parquet", **options).faults() == []


@pytest.fixture(scope="module")
def sound_parquet() -> bytes:
    rows = [{"text": f"text {i}", "label": ["x", "y"][: i % 2 + 1], "part": "train"} for i in range(12)]
    stream = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), stream)
    return stream.getvalue()


@FUZZ
@given(data=st.data())
def test_damaged_parquet(folder: Path, sound_parquet: bytes, data: st.DataObject) -> None:
    path = folder / "a.parquet"
    path.write_bytes(data.draw(damaged(sound_parquet, FRAGMENTS)))
    assert outcome(path).faults() == []


PATHS = st.lists(
    st.sampled_from(["train", "test", "dev", "x", "y", ".z", "a.txt", "\udcff", "n\nl"]),
    min_size=1,
    max_size=4,
)


@FUZZ
@given(
    files=st.lists(st.tuples(PATHS, st.binary(max_size=5) | texts.map(str.encode)), max_size=8),
    empty=st.lists(PATHS, max_size=2),
    links=st.lists(
        st.tuples(PATHS, st.sampled_from(["..", ".", "x", "/etc/hostname", "x/a.txt", "none"])), max_size=1
    ),
    test_size=st.sampled_from([None, 0.5]),
)
def test_any_folder(
    folder: Path,
    files: list[tuple[list[str], bytes]],
    empty: list[list[str]],
    links: list[tuple[list[str], str]],
    test_size: float | None,
) -> None:
    root = folder / "data"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    # A drawn name may already stand for a file where a folder is wanted; such a draw is passed over.
    makers: list[tuple[list[str], Callable[[Path], Any]]] = [
        *((parts, Path.mkdir) for parts in empty),
        *((parts, lambda path, content=content: path.write_bytes(content)) for parts, content in files),
        *((parts, lambda path, target=target: path.symlink_to(root / target)) for parts, target in links),
    ]
    for parts, make in makers:
        path = root.joinpath(*parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            make(path)
        except OSError:
            continue
    assert outcome(root, test_size=test_size).faults() == []
