"""Collections and their formats: made cases of each kind, what is wrong named where it is, pins of known ones."""

import gzip
import hashlib
import json
import sys
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textbench.tasks import InputError, catalogue, collect
from textbench.tasks.collections import Collection, Judgment, _ir_datasets, _jsonl, _smart, _trec, _user, gain
from textbench.tasks.collections._user import OwnCollection

SMART_DOCUMENTS = b""".I 1
.T
The first title
.A
An Author
.W
words of
the first
.X
1 5 1
.I 02
.W
second
"""
SMART_QUERIES = b".I 003\n.W\nfirst words\n.I 007\n.W\nsecond\n"
TREC_DOCUMENTS = b"""<DOC>
<DOCNO> AP880212-0001 </DOCNO>
<FILEID>AP-NR-02-12</FILEID>
<HEAD>Reports &amp; Rumours</HEAD>
<DATELINE>NOWHERE (AP)</DATELINE>
<TEXT>
<!-- a comment --> First <P>paragraph</P> costs &lt; 5.
</TEXT>
<TEXT>Second text</TEXT>
</DOC>
<doc><docno>B-2</docno> no elements here </doc>
"""
TREC_TOPICS = b"""<top>
<head> Tipster Topic Description
<num> Number:  051
<dom> Domain:  International Economics
<title> Topic:  Airbus Subsidies

<desc> Description:
Document will discuss government assistance.

<narr> Narrative:
A relevant document will cite.
</top>
<top><num>52</num><title>South African Sanctions</title><desc>Sanctions</desc></top>
"""


def test_smart_records_are_title_and_words() -> None:
    assert list(_smart.records(SMART_DOCUMENTS, "docs")) == [
        ("1", "The first title\nwords of\nthe first"),
        ("02", "second"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b".I 1\n.W\na\n.I \n.W\nb\n", "docs, line 4: a record begins with `.I NAME`, got '.I'"),
        (b".I 1\nloose\n", "docs, line 2: text belongs to a field such as `.W`, got 'loose'"),
        (b"\n", "docs: SMART records begin with `.I NAME`, got none"),
    ],
)
def test_bad_smart_names_the_line(content: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        list(_smart.records(content, "docs"))
    assert str(caught.value) == message


def test_smart_judgments_in_both_kinds() -> None:
    assert _smart.judgments(b"1 184 2 \r\n1 29 -1\n", "q") == [
        Judgment("1", "184", 2),
        Judgment("1", "29", -1),
    ]
    assert _smart.judgments(b"01 1410  0 0\n", "q") == [Judgment("1", "1410", 1)]
    with pytest.raises(InputError, match=r"q, line 1: a judgment is .* got '1 2'"):
        _smart.judgments(b"1 2\n", "q")


def test_trec_documents_keep_headline_and_texts() -> None:
    (name, text), (other, rest) = _trec.documents(TREC_DOCUMENTS, "ap")
    assert name == "AP880212-0001"
    assert " ".join(text.split()) == "Reports & Rumours First paragraph costs < 5. Second text"
    assert (other, rest) == ("B-2", "no elements here")


def test_an_element_without_end_tag_ends_with_its_document() -> None:
    content = b"<DOC><DOCNO>1</DOCNO><HL>head</HL><TEXT>body <F P=100>more</DOC>"
    assert [text.split() for _, text in _trec.documents(content, "x")] == [["head", "body", "more"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ab<DOC><DOCNO>1</DOCNO>", "f.sgm, byte 7: this <DOC> is not closed before the end of the file"),
        (b"<DOC><DOCNO>1</DOCNO><DOC>", "f.sgm, byte 21: expected </DOC>, got <DOC>"),
        (b"text</DOC>", "f.sgm, byte 4: expected <DOC>, got </DOC>"),
        (b"<DOC><TEXT>a</TEXT></DOC>", "f.sgm, byte 5: a document needs a <DOCNO>, got '<TEXT>a</TEXT>'"),
        (b"<DOC><DOCNO> </DOCNO></DOC>", "f.sgm, byte 5: a document needs a <DOCNO>, got '<DOCNO> </DOCNO>'"),
        (b"nothing", "f.sgm: it needs at least one <DOC>, got 'nothing'"),
    ],
)
def test_malformed_sgml_names_file_and_byte(content: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        list(_trec.documents(content, "f.sgm"))
    assert str(caught.value) == message


def test_reading_hostile_sgml_takes_time_in_proportion_to_its_size() -> None:
    content = b"<DOC><DOCNO>1</DOCNO>" + b"<TEXT" * 200_000 + b"<!--" * 200_000 + b"</DOC>"
    assert len(list(_trec.documents(content, "x"))) == 1  # quadratic patterns would take minutes


def test_topics_with_and_without_end_tags() -> None:
    assert list(_trec.topics(TREC_TOPICS, "t")) == [
        ("51", "Airbus Subsidies"),
        ("52", "South African Sanctions"),
    ]
    both = dict(_trec.topics(TREC_TOPICS, "t", ("title", "desc")))
    assert both["51"] == "Airbus Subsidies\nDocument will discuss government assistance."
    with pytest.raises(InputError, match="t, byte 5: a topic needs a <num>"):
        list(_trec.topics(b"<top><title>x</top>", "t"))
    with pytest.raises(InputError, match="t, byte 5: a topic needs a <num>, got ''"):
        list(_trec.topics(b"<top></top>", "t"))


def test_qrels() -> None:
    assert _trec.judgments(b"51 0 AP880212-0001 1\n", "q") == [Judgment("51", "AP880212-0001", 1)]
    with pytest.raises(InputError, match="q, line 2: a judgment is `query iteration document code`"):
        _trec.judgments(b"51 0 a 1\n51 0 b\n", "q")


def test_jsonl_and_tables() -> None:
    lines = b'{"_id": 1, "title": "T", "text": "x"}\n\n{"id": "2", "text": "y"}\n'
    assert list(_jsonl.records(lines, "d")) == [("1", "T\nx"), ("2", "y")]
    judged = b'{"query": "a", "document": "1", "relevance": 2}\n'
    assert _jsonl.judgments(judged, "q") == [Judgment("a", "1", 2)]
    table = b"query-id\tcorpus-id\tscore\na\t1\t2\n"
    assert _jsonl.judgments(table, "q") == [Judgment("a", "1", 2)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"id": 1}\n', "d, line 1: it needs text, got id"),
        (b'{"text": "a"}\n', "d, line 1: it needs id or _id or doc_id or query_id, got text"),
        (b'{"id": 1, "text": 5}', "d, line 1: text must be a string, got '5'"),
        (b'{"id": 1, "text": ""}\n[1]\n', "d, line 2: it must be a JSON object, got '[1]'"),
        (b'{"id": ', "d, line 1: it must be a JSON object"),
    ],
)
def test_bad_json_lines(content: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        list(_jsonl.records(content, "d"))
    assert str(caught.value).startswith(message)


def test_a_collection_refuses_what_does_not_fit() -> None:
    def made(document_ids: list[str], query_ids: list[str]) -> Collection:
        return Collection(document_ids, ["x"] * 2, query_ids, ["y"] * len(query_ids), [], "c", "")

    with pytest.raises(InputError, match="collection c: document names must differ, got 'a' 2 times"):
        made(["a", "a"], ["1"])
    with pytest.raises(InputError, match="at least one query, got none"):
        made(["a", "b"], [])
    with pytest.raises(InputError, match="every document needs a name, got 1 names and 2 texts"):
        made(["a"], ["1"])


def test_policies_and_gains() -> None:
    assert [gain(code, "positive", graded=False) for code in (-1, 0, 1, 4)] == [0, 0, 1, 1]
    assert [gain(code, "nonzero", graded=False) for code in (-1, 0, 1, 4)] == [1, 0, 1, 1]
    assert [gain(code, "positive", graded=True) for code in (-2, 0, 1, 2)] == [0, 0, 1, 2]
    with pytest.raises(InputError, match="positive or nonzero, got 'all'"):
        gain(1, "all", graded=True)


def own_files(folder: Path, documents: bytes, queries: bytes, qrels: bytes) -> OwnCollection:
    for name, content in (("documents", documents), ("queries", queries), ("qrels", qrels)):
        (folder / name).write_bytes(content)
    return OwnCollection(*(str(folder / name) for name in ("documents", "queries", "qrels")))


def test_own_smart_numbers_by_position_where_names_do_not_serve(tmp_path: Path) -> None:
    found = _user.load(own_files(tmp_path, SMART_DOCUMENTS, SMART_QUERIES, b"1 1 1\n2 2 -1\n"))
    assert found.query_ids == ["1", "2"] and found.document_ids == ["1", "2"]
    assert "by position" in found.notes and not found.graded
    named = _user.load(own_files(tmp_path, SMART_DOCUMENTS, SMART_QUERIES, b"3 1 1\n7 2 1\n"))
    assert named.query_ids == ["3", "7"]


NUMBERED = b"".join(b".I %d\n.W\nwords of %d\n" % (i, i) for i in range(1, 31))


@pytest.mark.parametrize(
    "qrels",
    [
        b"     1     28 \t0\t0.000000\n     2     13 \t0\t0.000000\n",  # CISI.REL
        b"1 28 0 0.000000\n2 13 0 0.000000\n",  # MED.REL.OLD, ADI.REL
        b"1 0 28 1\n2 0 13 1\n",  # MED.REL, as TREC
        b"1 28 7 3\n2 13 7 3\n",  # whatever else stands in the third and fourth column
        b"01 0028  0 0\r\n02 0013  0 0\r\n",  # CACM
        b"1\t28\t1\n2\t13\t1\n",
        b"\xef\xbb\xbf1 0 28 1\n2 0 13 1\n",
    ],
)
def test_own_judgments_in_every_layout(tmp_path: Path, qrels: bytes) -> None:
    found = _user.load(own_files(tmp_path, NUMBERED, b".I 1\n.W\nfirst\n.I 2\n.W\nsecond\n", qrels))
    assert found.judgments == [Judgment("1", "28", 1), Judgment("2", "13", 1)]


def test_own_judgments_between_smart_and_trec_go_by_the_documents_named(tmp_path: Path) -> None:
    documents = b"".join(b'{"id": %d, "text": "t"}\n' % i for i in range(3))
    # Document 0 exists, and so every column may be one of documents; of the last one nothing is known.
    own = own_files(tmp_path, documents, b'{"id": 1, "text": "t"}', b"1 0 2 0\n1 0 1 2\n1 0 99 1\n")
    assert _user.load(own).judgments == [Judgment("1", "2", 0), Judgment("1", "1", 2), Judgment("1", "99", 1)]


@pytest.mark.parametrize(
    ("documents", "queries", "qrels", "kept"),
    [
        ('{"id": "d", "text": "t"}', '{"id": "%02d", "text": "q"}', "%02d 0 d 1", ["01", "02", "10"]),
        ('{"id": "%03d", "text": "t"}', '{"id": "%d", "text": "q"}', "%d %03d 1", ["1", "2", "10"]),
        (".I %d\n.W\nt", ".I %d\n.W\nq", "%d 0 %03d 1", ["1", "2", "10"]),
    ],
    ids=["queries of JSON Lines, TREC", "documents of JSON Lines, three columns", "SMART, TREC"],
)
def test_zeros_that_a_number_begins_with_lose_no_judgment(
    tmp_path: Path, documents: str, queries: str, qrels: str, kept: list[str]
) -> None:
    def lines(text: str) -> bytes:
        every = (text % ((i,) * text.count("%")) for i in (1, 2, 10))
        return "".join(f"{line}\n" for line in dict.fromkeys(every)).encode()

    found = _user.load(own_files(tmp_path, lines(documents), lines(queries), lines(qrels)))
    assert [one.query for one in found.judgments] == found.query_ids == kept
    assert {one.document for one in found.judgments} == set(found.document_ids)


def test_a_judged_name_that_several_may_be_stays() -> None:
    judged = [Judgment("1", "7", 1), Judgment("02", "007", 1)]
    named = _user._as_named(judged, ["01", "001", "2"], ["7", "07"])
    assert named == [Judgment("1", "7", 1), Judgment("2", "007", 1)]


def test_a_text_of_json_lines_may_hold_other_ends_of_lines(tmp_path: Path) -> None:
    text = "one\u2028two\u0085three"
    line = json.dumps({"id": 1, "text": text}, ensure_ascii=False).encode()
    own = own_files(tmp_path, line + b"\r\n", line, b"1 0 1 1\n")
    found = _user.load(own)
    assert found.documents == found.queries == [text]


def test_a_table_of_judgments_is_known_by_its_header(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="qrels, line 2: it needs relevance or score, got qid, docid"):
        _user.load(own_files(tmp_path, SMART_DOCUMENTS, SMART_QUERIES, b"qid\tdocid\trel\n1\t1\t1\n"))


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (
            b".I 1\n.W\na\n.I 01\n.W\nb\n.I 2\n.W\nc\n",
            "documents, line 4: document names must differ, got '1' 2 times, before in documents, line 1",
        ),
        (
            b"<DOC><DOCNO>A</DOCNO>a</DOC>\n\n<DOC><DOCNO>B</DOCNO></DOC>\n<DOC>\n<DOCNO>A</DOCNO></DOC>\n",
            "documents, line 4: document names must differ, got 'A' 2 times, before in documents, line 1",
        ),
        (
            b'{"id": "a", "text": "1"}\n\n{"id": "a", "text": "2"}\n{"id": "a", "text": "3"}\n',
            "documents, line 3: document names must differ, got 'a' 3 times, before in documents, line 1",
        ),
    ],
)
def test_a_name_that_occurs_twice_is_reported_where_it_stands(
    tmp_path: Path, documents: bytes, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        _user.load(own_files(tmp_path, documents, SMART_QUERIES, b"1 1 1\n"))
    assert str(caught.value) == message


def test_queries_and_files_of_a_folder_are_looked_through_for_equal_names(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_bytes(b".I 7\n.W\nword\n")
    own = own_files(tmp_path, SMART_DOCUMENTS, b".I 1\n.W\na\n.I 1\n.W\nb\n", b"1 1 1\n")
    with pytest.raises(
        InputError, match=r"^b.txt, line 1: document names must differ, got '7' 2 times, before in a"
    ):
        _user.load(OwnCollection(str(folder), own.queries, own.qrels))
    with pytest.raises(
        InputError, match=r"^queries, line 4: query names must differ, got '1' 2 times, before in q"
    ):
        _user.load(own)


def test_an_own_collection_is_named_after_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "My cisi!"
    folder.mkdir()
    own = own_files(folder, SMART_DOCUMENTS, SMART_QUERIES, b"1 1 1\n")
    assert own.name == _user.load(own).name == "My-cisi"
    assert OwnCollection(str(folder), own.queries, own.qrels).name == "My-cisi"
    assert OwnCollection(**{**own.__dict__, "name": "med.v2"}).name == "med.v2"


def test_own_trec_from_a_folder_of_gzip_files_with_notes_beside(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    (disk / "ap").mkdir(parents=True)
    (disk / "ap" / "ap880212.gz").write_bytes(gzip.compress(TREC_DOCUMENTS))
    (disk / "readme").write_text("about this disk")
    own = own_files(tmp_path, b"", TREC_TOPICS, b"51 0 AP880212-0001 1\n52 0 B-2 2\n")
    found = _user.load(OwnCollection(str(disk), own.queries, own.qrels, fields=("title", "desc")))
    assert found.document_ids == ["AP880212-0001", "B-2"] and found.query_ids == ["51", "52"]
    assert found.graded and "assistance" in found.queries[0]
    before = OwnCollection(str(disk), own.queries, own.qrels).digest()
    (disk / "readme").write_text("changed")
    assert OwnCollection(str(disk), own.queries, own.qrels).digest() != before


def test_own_json_lines(tmp_path: Path) -> None:
    documents = b"".join(json.dumps({"id": i, "text": f"t{i}"}).encode() + b"\n" for i in range(3))
    own = own_files(
        tmp_path, documents, b'{"id": "q", "text": "t1"}', b"query-id\tcorpus-id\tscore\nq\t1\t1\n"
    )
    found = _user.load(own)
    assert found.documents == ["t0", "t1", "t2"] and found.judgments == [Judgment("q", "1", 1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"documents": "/nowhere"}, "--documents /nowhere: there is no such file or folder"),
        ({"kind": "xml"}, "--format must be one of auto, smart, trec, jsonl, got 'xml'"),
        ({"fields": ("title", "body")}, "--fields takes title, desc, narr, got body"),
        ({"fields": ()}, "--fields takes title, desc, narr, got none"),
        (
            {"name": "a/b"},
            "--name is 1 to 60 letters, digits, dots, hyphens and underscores, and begins with a letter or digit; "
            "got 'a/b'",
        ),
    ],
)
def test_own_options_are_checked(tmp_path: Path, change: dict[str, str], message: str) -> None:
    own = own_files(tmp_path, SMART_DOCUMENTS, SMART_QUERIES, b"1 1 1\n")
    with pytest.raises(InputError) as caught:
        OwnCollection(**{**own.__dict__, **change})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("documents", "qrels", "message"),
    [
        (b"plain text", b"1 1 1\n", "documents: SMART begins with `.I`, TREC with `<`, JSON Lines with `{`"),
        (SMART_DOCUMENTS, b"\n", "qrels: it needs at least one judgment, got none"),
        (b"\x1f\x8b\x08broken", b"1 1 1\n", "cannot be read"),
        (b".I 1\n.W\na\n.I 1\n.W\nb\n", b"1 1 1\n", "document names must differ, got '1' 2 times"),
    ],
)
def test_own_files_that_cannot_be_read(tmp_path: Path, documents: bytes, qrels: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        _user.load(own_files(tmp_path, documents, SMART_QUERIES, qrels))
    assert message in str(caught.value)


def test_a_folder_without_documents_and_lzw_files(tmp_path: Path) -> None:
    own = own_files(tmp_path, b"", SMART_QUERIES, b"1 1 1\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(InputError, match="none of its files is SMART, TREC or JSON Lines"):
        _user.load(OwnCollection(str(folder), own.queries, own.qrels))
    (folder / "ap.Z").write_bytes(b"\x1f\x9d")
    with pytest.raises(InputError, match=r"ap\.Z: unpack it first"):
        _user.load(OwnCollection(str(folder), own.queries, own.qrels))


MARKS = [
    b"<DOC>",
    b"</DOC>",
    b"<DOCNO>",
    b"</DOCNO>",
    b"<TEXT>",
    b"<top>",
    b"</top>",
    b"<num>",
    b"<title>",
    b"\n.I 1",
]
PIECES = st.lists(
    st.one_of(st.binary(max_size=8), st.sampled_from([*MARKS, b"\n.W\n", b"\n", b'{"id": 1', b"1 2 3"]))
)
READERS = [
    _smart.records, _smart.judgments, _trec.documents, _trec.topics, _trec.judgments, _jsonl.records, _jsonl.judgments,
]  # fmt: skip


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: f"{reader.__module__[19:]}.{reader.__name__}")
@given(pieces=PIECES)
@settings(max_examples=200, derandomize=True)
def test_any_bytes_are_read_or_refused_in_one_line(reader: Callable[..., Any], pieces: list[bytes]) -> None:
    try:
        found = list(reader(b"".join(pieces), "file"))
    except InputError as error:
        assert str(error).startswith("file") and "\n" not in str(error)
    else:
        assert all(isinstance(record[0], str) and isinstance(record[1], str) for record in found)


def fake_library(monkeypatch: pytest.MonkeyPatch, is_present: bool) -> None:
    """Put a library in ir_datasets' place that would download if it were let."""

    class RequestsDownload:
        url = "http://nowhere/documents.gz"

        def __iter__(self) -> object:
            raise AssertionError("it went to the network")

    class Source:
        def docs_iter(self) -> object:
            if not is_present:
                list(RequestsDownload())
            return iter([types.SimpleNamespace(doc_id="d1", text="one")])

        def queries_iter(self) -> object:
            return iter([types.SimpleNamespace(query_id=1, title="ask")])

        def qrels_iter(self) -> object:
            return iter([types.SimpleNamespace(query_id=1, doc_id="d1", relevance=2)])

    def load(name: str) -> Source:
        if name != "vaswani":
            raise KeyError(name)
        return Source()

    library = types.ModuleType("ir_datasets")
    library.load = load  # type: ignore[attr-defined]
    util, download = types.ModuleType("ir_datasets.util"), types.ModuleType("ir_datasets.util.download")
    download.RequestsDownload = RequestsDownload  # type: ignore[attr-defined]
    for module in (library, util, download):
        monkeypatch.setitem(sys.modules, module.__name__, module)


def test_ir_datasets_that_are_present(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_library(monkeypatch, is_present=True)
    found = _ir_datasets.load("vaswani")
    assert (found.documents, found.queries) == (["one"], ["ask"])
    assert found.judgments == [Judgment("1", "d1", 2)] and found.graded


def test_ir_datasets_never_go_to_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_library(monkeypatch, is_present=False)
    with pytest.raises(InputError, match=r"http://nowhere/documents\.gz has not been downloaded yet"):
        _ir_datasets.load("vaswani")
    with pytest.raises(InputError, match="ir_datasets has no collection 'vaswan'"):
        _ir_datasets.load("vaswan")
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(InputError, match="not installed"):
        _ir_datasets.load("vaswani")


def test_unknown_collections_get_the_nearest() -> None:
    with pytest.raises(InputError, match="there is no collection 'cranfeld'; did you mean cranfield"):
        collect.reference("cranfeld")


# Documents, queries and judgments by code; below, the first, middle and last document: start, sha1 of the text.
PINS = {
    "cranfield": (1400, 225, {3: 734, 2: 387, 4: 363, -1: 225, 1: 128}),
    "cacm": (3204, 64, {1: 796}),
}


@pytest.mark.parametrize("name", PINS)
def test_pins(name: str, data_dir: Path) -> None:
    found = collect.load({"dataset": name})
    n_documents, n_queries, codes = PINS[name]
    assert (len(found.documents), len(found.queries)) == (n_documents, n_queries)
    assert Counter(judgment.code for judgment in found.judgments) == codes
    known = set(found.document_ids), set(found.query_ids)
    assert all(j.document in known[0] and j.query in known[1] for j in found.judgments)
    module = catalogue.collection(name).load()
    archive = data_dir / module.ARCHIVE.folder / module.ARCHIVE.file
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == module.SHA256[module.ARCHIVE.file]
    texts = [found.documents[i] for i in (0, n_documents // 2, n_documents - 1)]
    assert [
        (text.partition("\n")[0][:40], hashlib.sha1(text.encode()).hexdigest()) for text in texts
    ] == TEXTS[name]


TEXTS = {
    "cranfield": [
        ("experimental investigation of the aerody", "534e11c759ed0f1b6f27491ce08daeac07e6fd05"),
        ("numerical determination of indical lift ", "e2a809123c2a90d93fad8d99b3f85c4dc5a3d6e1"),
        ("the buckling shear stress of simply-supp", "b28626bcd367f13a051f49bc3c8c21d185bfe33d"),
    ],
    "cacm": [
        ("Preliminary Report-International Algebra", "874bd9826b71a72d06d15154f79529324697e622"),
        ("A Multiprogramming Monitor for Small Mac", "688fe1a3ef9eb89fd9602ff1b35b740d9fb9cee8"),
        ("An On-Line Program for Non-Numerical Alg", "ae4b004c50b90a5e1d0b5870019bb2727c5a94ea"),
    ],
}


def test_cranfield_has_one_negative_code_a_query(data_dir: Path) -> None:
    negative = [j.query for j in collect.load({"dataset": "cranfield"}).judgments if j.code == -1]
    assert len(negative) == len(set(negative)) == 225


def test_the_trec_edition_of_cranfield_says_the_same(data_dir: Path, tmp_path: Path) -> None:
    import tarfile

    with tarfile.open(data_dir / "ir" / "cranfield-trec.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    files = ("cran.all.1400.xml", "cran.qry.xml", "cranqrel.trec.txt")
    theirs = _user.load(OwnCollection(*(str(tmp_path / name) for name in files)))
    ours = collect.load({"dataset": "cranfield"})
    assert theirs.document_ids == ours.document_ids and theirs.query_ids == ours.query_ids
    assert [q.split() for q in theirs.queries] == [q.split() for q in ours.queries]
    alike = sum(a.split() == b.split() for a, b in zip(theirs.documents, ours.documents, strict=True))
    assert alike == 1397  # three of its abstracts were edited
    relevant = {(j.query, j.document) for j in ours.judgments if j.code > 0}
    assert {(j.query, j.document) for j in theirs.judgments if j.code > 0} == relevant
