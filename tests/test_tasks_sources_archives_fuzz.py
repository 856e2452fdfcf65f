"""Fuzz: whatever the bytes, the readers give documents or one InputError, end, and write nothing."""

import contextlib
import gzip
import io
import os
import random
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import guard
from textbench.tasks import InputError
from textbench.tasks.datasets import _newsgroups, _reuters
from textbench.tasks.sources.tar_stream import members

fuzz = settings(
    max_examples=int(os.environ.get("TEXTBENCH_FUZZ_EXAMPLES", "500")),
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def test_what_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "HANG_SECONDS", 0.05)
    with pytest.raises(guard.Hang), guard.no_hang(), contextlib.suppress(Exception):
        while True:
            pass


PIECES = st.sampled_from(
    [
        '<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="1">', "</REUTERS>", "<REUTERS", "<TOPICS>", "<D>grain</D>",
        "<D>",
        "</TOPICS>", "<TEXT>", '<TEXT TYPE="UNPROC">', "</TEXT>", "<TITLE>", "</TITLE>", "<BODY>", "</BODY>",
        "&lt;", "&amp;", "&#3;", "&#9999999;", "&#55555;", "&", "\n", 'TOPICS="',
    ]
)  # fmt: skip
SGML = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=40).map("".join)


@fuzz
@given(st.one_of(SGML.map(lambda text: text.encode("utf-8", "ignore")), st.binary(max_size=500)))
def test_sgml(content: bytes) -> None:
    try:
        stories = list(_reuters.parse(content, "fuzz.sgm"))
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert len(stories) == content.count(b"</REUTERS>")
        assert not any(_reuters.CONTROL.search(story.text) for story in stories)


@pytest.mark.parametrize(
    "piece", ["<REUTERS ", "<TOPICS><D>", "<TEXT>", "<BODY>", "&#", "<TITLE>", 'A="', "&a", "</REUTERS"]
)
def test_sgml_of_one_piece_over_and_over_is_read_to_its_end(piece: str) -> None:
    begin = '<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="1"><TOPICS></TOPICS><TEXT>'
    content = f"{begin}{piece * 1_000_000}</TEXT></REUTERS>"
    with guard.no_hang(), contextlib.suppress(InputError):
        list(_reuters.parse(content.encode(), "fuzz.sgm"))


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["Subject: x", "subject:", " folded", "\tmore", "", "> quoted", "--", "In article", "\r"]
        ),
        st.text(max_size=20),
    ),
    max_size=20,
)


@fuzz
@given(st.one_of(LINES.map("\n".join), st.binary(max_size=300).map(lambda b: b.decode("iso-8859-1"))))
def test_messages(message: str) -> None:
    assert _newsgroups.whole(message) == message
    body = message.partition("\n\n")[2]
    assert _newsgroups.subject_and_body(message).endswith(body)
    kept = _newsgroups.stripped(message).split("\n")
    assert all(line in body for line in kept)


def test_a_folded_subject_without_end_is_read_to_its_end() -> None:
    folded = "\n \t" * 1_000_000
    with guard.no_hang():
        assert _newsgroups.subject_and_body(f"Subject: x{folded}") == "x\n"


def plain_tar() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in ("a/1.txt", "a/2.txt", "b/" + "long" * 40 + ".txt", "b/\xfc.txt"):
            header = tarfile.TarInfo(name)
            header.size = 600
            tar.addfile(header, io.BytesIO(name.encode() * 600))
    return packed.getvalue()


TAR = plain_tar()


@fuzz
@given(st.data())
def test_altered_tar(tmp_path: Path, data: st.DataObject) -> None:
    """Bytes of the headers are changed, or of the packed archive; it may be cut off, or be no archive at all."""
    content = bytearray(TAR)
    draw = random.Random(data.draw(st.integers(0, 2**32)))
    for _ in range(data.draw(st.integers(0, 8))):
        header = 512 * draw.randrange(len(TAR) // 512)
        content[header + draw.choice((draw.randrange(512), *range(124, 157)))] = draw.choice(
            (0, 0x80, 0xFF, 49, 76, 83, 120)
        )
        if draw.random() < 0.8:  # let the checksum hold, so that what is in the header counts
            content[header + 148 : header + 156] = b" " * 8
            content[header + 148 : header + 156] = b"%06o\0 " % sum(content[header : header + 512])
    packed = bytearray(gzip.compress(bytes(content), 1, mtime=0))
    if data.draw(st.booleans()):
        packed[draw.randrange(len(packed))] ^= 1 << draw.randrange(8)
    if data.draw(st.booleans()):
        del packed[draw.randrange(len(packed)) :]
    path = tmp_path / "fuzz.tar.gz"
    path.write_bytes(packed)
    try:
        with guard.no_hang():
            found = list(members(path, r"(.+\.txt)$", max_bytes=1_000_000, max_members=50))
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert sum(len(content) for _, content in found) <= 1_000_000
        assert [name for name, _ in found] == sorted(name for name, _ in found)
    assert list(tmp_path.iterdir()) == [path]
