"""Own data under fire: any bytes give a valid corpus or an InputError, and what was written is what is read."""

import csv
import gzip
import io
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy.sparse import issparse

from tasks import InputError
from tasks.datasets import Corpus
from tasks.own_data import OwnData, digest, load

FUZZ = settings(
    max_examples=int(os.environ.get("TEXTBENCH_FUZZ_EXAMPLES", "500")),
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
MAX_SECONDS = 2
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = (
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "shutil.",
)

written: list[str] = []
is_watching = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note whatever Python writes, anywhere, while a file is read."""
    if not is_watching:
        return
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
        written.append(str(arguments[0]))
    elif event.startswith(CHANGES):
        written.append(f"{event} {arguments}")


sys.addaudithook(_watch)


@pytest.fixture(scope="module", autouse=True)
def libraries() -> None:
    """Import what `load` imports, so that no example pays for it or is seen to write byte code."""
    import iterstrat.ml_stratifiers
    import sklearn.model_selection

    assert iterstrat.ml_stratifiers
    assert sklearn.model_selection


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def outcome(path: Path, **options: Any) -> Corpus | None:
    """Load a path: a valid corpus, or None where it is refused in one printable line; nothing is written."""
    global is_watching
    written.clear()
    start = perf_counter()
    is_watching = True
    try:
        digest(path)
        corpus = load(OwnData(str(path), **options))
    except InputError as error:
        corpus = None
        assert str(error).isprintable(), repr(str(error))
        assert len(str(error)) < 3000
    finally:
        is_watching = False
    assert perf_counter() - start < MAX_SECONDS
    assert written == []
    if corpus is not None:
        check(corpus)
    return corpus


def check(corpus: Corpus) -> None:
    """What every corpus keeps: texts that can be stored, and names that are used, sorted and not empty."""
    texts = corpus.train_texts + corpus.test_texts
    assert pa.array(texts, pa.string()).to_pylist() == texts
    assert corpus.target_names == sorted(set(corpus.target_names))
    assert all(name and name == name.strip() and name.encode() for name in corpus.target_names)
    used: set[int] = set()
    targets: Any
    for targets in (corpus.train_targets, corpus.test_targets):
        used |= set((targets.indices if issparse(targets) else targets).tolist())
    assert used == set(range(len(corpus.target_names)))
    assert json.dumps(corpus.notes).isascii()


def labelled(corpus: Corpus) -> Counter[tuple[str, frozenset[str]]]:
    """Return every document with its labels, and how often it occurs."""
    documents: Counter[tuple[str, frozenset[str]]] = Counter()
    targets: Any
    for texts, targets in (
        (corpus.train_texts, corpus.train_targets),
        (corpus.test_texts, corpus.test_targets),
    ):
        for i, text in enumerate(texts):
            row = targets[i].indices if issparse(targets) else [targets[i]]
            documents[text, frozenset(corpus.target_names[k] for k in row)] += 1
    return documents


# Text is what UTF-8 can carry, without NUL; a folder's file cannot begin with a byte-order mark of its own.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
labels = names.map(str.strip).filter(bool)
OPTIONS = st.sampled_from(
    [
        {},
        {"label_separator": ";"},
        {"split_column": "part"},
        {"label_separator": ",", "split_column": "part"},
        {"test_size": 0.01},
        {"test_size": 0.99, "label_separator": " "},
    ]
)
FRAGMENTS = st.sampled_from(
    [
        *(b"text", b"label", b"part", b"train", b"test", b"x", b"y", b"x;y", b"x,y", b" "),
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
            "part": ("train", "test")[i // 6 % 2],
        }
        for i in range(12)
    ]
    if kind == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="," if kind == "csv" else "\t")
    writer.writerows([list(rows[0]), *(list(row.values()) for row in rows)])
    return stream.getvalue().encode()


def mutated(content: bytes) -> st.SearchStrategy[bytes]:
    """Draw `content` with some of its stretches replaced by fragments or bytes."""
    place = st.integers(0, len(content))
    edit = st.tuples(place, st.integers(0, 12), st.one_of(FRAGMENTS, st.binary(max_size=6)))

    def apply(edits: list[tuple[int, int, bytes]]) -> bytes:
        changed = content
        for start, length, new in edits:
            changed = changed[:start] + new + changed[start + length :]
        return changed

    return st.lists(edit, min_size=1, max_size=4).map(apply)


def test_unchanged_files_are_read(folder: Path) -> None:
    for kind in ("csv", "tsv", "jsonl"):
        path = folder / f"a.{kind}"
        path.write_bytes(whole(kind))
        corpus = outcome(path, label_separator=";", split_column="part")
        assert corpus is not None
        assert corpus.target_names == ["a", "b", "c", "x", "y"]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "csv.gz", "jsonl.gz", "parquet"])
@FUZZ
@given(
    content=st.one_of(st.binary(max_size=200), st.lists(FRAGMENTS, max_size=30).map(b"".join)),
    options=OPTIONS,
)
def test_any_bytes(kind: str, folder: Path, content: bytes, options: dict[str, Any]) -> None:
    path = folder / f"a.{kind}"
    path.write_bytes(content)
    outcome(path, **options)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
@FUZZ
@given(data=st.data(), options=OPTIONS)
def test_damaged_files(kind: str, folder: Path, data: st.DataObject, options: dict[str, Any]) -> None:
    content = data.draw(mutated(whole(kind)))
    path = folder / f"a.{kind}"
    path.write_bytes(content)
    plain = outcome(path, **options)
    packed = folder / f"a.{kind}.gz"
    packed.write_bytes(gzip.compress(content, mtime=0))
    unpacked = outcome(packed, **options)
    assert (plain is None) == (unpacked is None)
    if plain is not None and unpacked is not None:
        assert labelled(plain) == labelled(unpacked)


@FUZZ
@given(data=st.data())
def test_damaged_gzip(folder: Path, data: st.DataObject) -> None:
    path = folder / "a.csv.gz"
    path.write_bytes(data.draw(mutated(gzip.compress(whole("csv"), mtime=0))))
    outcome(path)


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2)
)


@FUZZ
@given(rows=st.lists(st.fixed_dictionaries({"text": texts | JSON, "label": labels | JSON}), max_size=8))
def test_json_of_any_values(folder: Path, rows: list[dict[str, Any]]) -> None:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = outcome(path)
    is_refusable = any(not isinstance(row["text"], str) or "\0" in row["text"] for row in rows)
    assert corpus is None or not is_refusable


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
    outcome(folder / "a.parquet", **options)


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
    path.write_bytes(data.draw(mutated(sound_parquet)))
    outcome(path)


PATHS = st.lists(
    st.sampled_from(["train", "test", "x", "y", ".z", "a.txt", "\udcff", "n\nl"]), min_size=1, max_size=4
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
    outcome(root, test_size=test_size)


# What is written is read back.

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
    parquet.write_table(pa.Table.from_pylist(rows), folder / "a.parquet")
    for kind in ("csv", "tsv", "jsonl", "parquet"):
        corpus = outcome(folder / f"a.{kind}", split_column="part")
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
        corpus = outcome(folder / f"a.{kind}", **options)
        if corpus is None:
            # Few documents may leave one label to training, whichever way they are drawn.
            assert len(sets) < 8
        else:
            assert labelled(corpus) == expected


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
    corpus = outcome(root)
    assert corpus is not None
    assert labelled(corpus) == Counter(
        (text.removeprefix("\ufeff"), frozenset(label))
        for label, contents in texts_of.items()
        for text in contents
    )
