"""How the files of the archives are read: stories of Reuters, messages of newsgroups, reviews."""

import pytest

from textbench.tasks import InputError
from textbench.tasks.datasets import _newsgroups, _reuters

STORY = """<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" OLDID="1" NEWID="1">
<TOPICS><D>grain</D><D>wheat</D></TOPICS><PLACES><D>usa</D></PLACES>
<TEXT{type}>&#2;
{text}</TEXT>
</REUTERS>
"""


def story(text: str, type: str = "") -> _reuters.Story:
    (parsed,) = _reuters.parse(STORY.format(text=text, type=type).encode("iso-8859-1"), "toy.sgm")
    return parsed


def test_a_story() -> None:
    parsed = story(
        "<TITLE>A &lt;B> &amp;lt; C</TITLE><DATELINE>X</DATELINE><BODY>S&P, AT&T\n Z\xfcrich &#3;</BODY>"
    )
    assert parsed.text == "A <B> &lt; C\nS&P, AT&T\n Z\xfcrich"
    assert parsed.topics == ("grain", "wheat")
    assert (parsed.mod_apte, parsed.has_body, parsed.newid) == ("train", True, "1")


def test_a_story_without_body_is_its_title_and_an_unprocessed_one_its_whole_text() -> None:
    assert story("<TITLE>BRIEF</TITLE>", ' TYPE="BRIEF"').text == "BRIEF"
    assert story("WHOLE&#127;TEXT", ' TYPE="UNPROC"').text == "WHOLE TEXT"


@pytest.mark.parametrize(
    ("sgml", "message"),
    [
        ("<REUTERS TOPICS='YES'>", r"toy\.sgm: every story must be closed, got none after story 0"),
        ("<REUTERS>x</REUTERS>", r"toy\.sgm, story 1: it needs LEWISSPLIT"),
    ],
)
def test_a_bad_story_is_named(sgml: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(_reuters.parse(sgml.encode(), "toy.sgm"))


def test_indicator_leaves_out_other_labels_and_repeats() -> None:
    found = _reuters.indicator([["b", "a", "b"], ["z"], ["c"]], ["a", "b", "c"])
    assert found.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("From: a\nSubject: Re: x\nLines: 2\n\nbody\n\nmore", "Re: x\nbody\n\nmore"),
        ("subject: long\n\tand longer\nFrom: a\n\nbody", "long and longer\nbody"),
        ("From: a\n\nSubject: of the body", "Subject: of the body"),
        ("no headers at all", ""),
    ],
)
def test_subject_and_body(message: str, expected: str) -> None:
    assert _newsgroups.subject_and_body(message) == expected


def test_a_review_that_is_not_utf8() -> None:
    from textbench.tasks.datasets import imdb

    assert imdb.review("na\xefve<br /><br />good".encode()) == "na\xefve  good"
    with pytest.raises(InputError, match="a review must be UTF-8, got byte 0xff at 2"):
        imdb.review(b"ab\xff")
