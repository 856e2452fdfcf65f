"""Collections under fire: whatever stands in files of documents, topics and judgments, they are read or refused."""

import gzip
import json
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.guard import guarded, mutated
from tests.loading import FUZZ
from textbench.tasks.collections import Collection, _user

DOCUMENTS = {
    "trec": b"<DOC>\n<DOCNO> A-1 </DOCNO>\n<HEADLINE>Oil &amp; gas</HEADLINE>\n<TEXT>It rose.</TEXT>\n</DOC>\n"
    b"<DOC>\n<DOCNO>A-2</DOCNO>\n<!-- a note --><TEXT>Wheat &#233; fell.\n</DOC>\n",
    "smart": b".I 1\n.T\nOil\n.W\nIt rose.\n.I 2\n.W\nWheat fell.\n",
    "jsonl": b'{"id": "A-1", "title": "Oil", "text": "It rose."}\n{"_id": 2, "text": "Wheat fell."}\n',
}
QUERIES = {
    "trec": b"<top>\n<num> Number: 051\n<title> Topic: Airbus\n<desc> Description:\nWho pays?\n<narr>\nAll.\n</top>\n"
    b"<top>\n<num>52</num>\n<title>Wheat</title>\n</top>\n",
    "smart": b".I 001\n.W\nWho pays?\n.I 002\n.W\nWheat\n",
    "jsonl": b'{"query_id": "51", "text": "Who pays?"}\n{"id": 52, "text": "Wheat"}\n',
}
QRELS = {
    "trec": b"051 0 A-1 1\n052 0 A-2 -1\n",
    "smart": b"1 1 3\n2 2 -1\n",
    "jsonl": b'{"query_id": "51", "doc_id": "A-1", "relevance": 1}\n',
    "smart-four": b"01 0001 0 0\n02 0002 0 0\n",
    "smart-tabs": b"     1      1 \t0\t0.000000\n     2      2 \t0\t0.000000\n",
    "table": b"query-id\tcorpus-id\tscore\n51\tA-1\t2\n",
}
FRAGMENTS = st.sampled_from(
    [
        *(b"<DOC>", b"</DOC>", b"<DOCNO>", b"</DOCNO>", b"<TEXT>", b"</TEXT>", b"<top>", b"</top>", b"<num>"),
        *(b"<title>", b"Number:", b"<!--", b"-->", b"<", b">", b"&#0;", b"&#55555;", b"&#9999999;", b"&nope;"),
        *(b".I ", b".I", b".W\n", b".T\n", b".X\n", b"{", b"}", b"[", b'"id"', b'"text"', b"null", b"NaN"),
        *(b"Infinity", b"1e999", b"9" * 30, b"9" * 5000, b"\xd9\xa3", b"-", b"+", b'"\\ud800"', b"[" * 2000),
        *(b"\t", b"\n", b"\r", b"\0", b" ", b"\x0b", b"\x1c", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xff", b"\x1f\x8b"),
    ]
)  # fmt: skip


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def written(folder: Path, documents: bytes, queries: bytes, qrels: bytes) -> _user.OwnCollection:
    """Write a collection's three files and describe it."""
    paths = [folder / name for name in ("documents", "queries", "qrels")]
    for path, content in zip(paths, (documents, queries, qrels), strict=True):
        path.write_bytes(content)
    return _user.OwnCollection(*map(str, paths))


def load(own: _user.OwnCollection) -> Collection:
    """Load a collection and see that it can be stored: names and texts are Unicode, codes fit 64 bits."""
    collection = _user.load(own)
    for texts in (
        collection.document_ids, collection.documents, collection.query_ids, collection.queries
    ):  # fmt: skip
        assert pa.array(texts, pa.string()).to_pylist() == list(texts)
    pa.array([judgment.code for judgment in collection.judgments], pa.int64())
    json.dumps(collection.notes)
    return collection


@pytest.mark.parametrize("kind", DOCUMENTS)
@pytest.mark.parametrize("qrels", QRELS)
def test_sound_files_are_read(folder: Path, kind: str, qrels: str) -> None:
    collection = guarded(partial(load, written(folder, DOCUMENTS[kind], QUERIES[kind], QRELS[qrels])), folder)
    assert collection is not None
    assert len(collection.documents) == len(collection.queries) == 2
    assert len(collection.judgments) in (1, 2)


@pytest.mark.parametrize("kind", DOCUMENTS)
@FUZZ
@given(data=st.data())
def test_damaged_documents(kind: str, folder: Path, data: st.DataObject) -> None:
    content = data.draw(mutated(DOCUMENTS[kind], FRAGMENTS))
    own = written(folder, content, QUERIES[kind], QRELS["trec"])
    plain = guarded(partial(load, own), folder)
    (folder / "documents").write_bytes(gzip.compress(content, 1, mtime=0))
    unpacked = guarded(partial(load, own), folder)
    if not content.startswith(b"\x1f\x8b"):
        assert (plain and plain.documents) == (unpacked and unpacked.documents)


@pytest.mark.parametrize("kind", QUERIES)
@FUZZ
@given(data=st.data())
def test_damaged_queries(kind: str, folder: Path, data: st.DataObject) -> None:
    content = data.draw(mutated(QUERIES[kind], FRAGMENTS))
    found = guarded(partial(load, written(folder, DOCUMENTS[kind], content, QRELS["trec"])), folder)
    assert found is None or (
        len(found.documents) == 2 and len(found.queries) == len(set(found.query_ids)) > 0
    )


@pytest.mark.parametrize("kind", QRELS)
@FUZZ
@given(data=st.data())
def test_damaged_judgments(kind: str, folder: Path, data: st.DataObject) -> None:
    content = data.draw(mutated(QRELS[kind], FRAGMENTS))
    found = guarded(partial(load, written(folder, DOCUMENTS["trec"], QUERIES["trec"], content)), folder)
    assert found is None or len(found.documents) == len(found.queries) == 2


@pytest.mark.parametrize(
    "piece", ["<a", "<", "a", "<!--", "-", "&#", "&a", " ", "\n", "Number:", "<num>", "</TEXT"]
)
@pytest.mark.parametrize("opened", ["", "<", "<TEXT>", "&"])
def test_one_piece_over_and_over_is_read_to_its_end(folder: Path, opened: str, piece: str) -> None:
    inside = opened + piece * 500_000
    documents = f"<DOC><DOCNO>A-1</DOCNO>{inside}</DOC>".encode()
    queries = f"<top><num>1<title>{inside}</top>".encode()
    found = guarded(partial(load, written(folder, documents, QUERIES["trec"], QRELS["trec"])), folder)
    assert found is None or (len(found.documents), len(found.queries)) == (1, 2)
    found = guarded(partial(load, written(folder, DOCUMENTS["trec"], queries, QRELS["trec"])), folder)
    assert found is None or len(found.documents) == 2
