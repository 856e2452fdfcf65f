"""Reader of Reuters-21578, Distribution 1.0: 21,578 newswire stories of 1987 in 22 SGML files.

The SGML is regular enough for regular expressions: one element a story, no nesting but `<D>` in the lists of
categories. Documents keep the order of the files and, within each, of the stories. A story's NEWID is its id.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from textbench.tasks import InputError
from textbench.tasks.corpus import Corpus
from textbench.tasks.sources import archives

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

ARCHIVE = archives.Archive(
    title="Reuters-21578",
    folder="reuters21578",
    file="reuters21578.tar.gz",
    urls=("https://archive.ics.uci.edu/ml/machine-learning-databases/reuters21578-mld/reuters21578.tar.gz",),
    sha256=(
        "b218111e8d48c542707848b3ca3e9903ab6b6f37bc8b2e62a1f27f41a0a14498",  # packed with sorted names
        "3bae43c9b14e387f76a61b6d82bf98a4fb5d3ef99ef7e7075ff2ccbcf59f9d30",  # at its public home
    ),
    size=8_150_596,
    wanted=r"(?:^|/)(reut2-\d{3}\.sgm)$",
    content_sha256="b6d36e7b72d64dcf70879f24dec73e3a74d69ead1856e2d4e618deb501973ac7",
    max_bytes=100_000_000,
    max_members=1_000,
    terms=(
        "the copyright of the articles and annotations resides with Reuters Ltd.; Reuters Ltd. and Carnegie "
        "Group, Inc. allow free distribution for research purposes only"
    ),
    citation="Reuters-21578, Distribution 1.0, prepared by David D. Lewis, 1997",
)
SOURCE = ARCHIVE.urls[0]
SHA256 = {ARCHIVE.file: ARCHIVE.sha256[0]}
LICENCE = f"research use: {ARCHIVE.terms}"
CITATION = ARCHIVE.citation
EDITION = (
    "Text: title, line break, body; an unprocessed story (TYPE=UNPROC) whole, having neither; character "
    "references resolved, control characters made spaces."
)

# Tags are found by patterns that cannot run past the next tag, so that reading takes time in proportion to size.
STORY = re.compile(r"<REUTERS\b([^<>]*)>")
ATTRIBUTE = re.compile(r'\b(\w+)="([^"]*)"')
TOPIC = re.compile(r"<D>([^<]*)</D>")
TEXT = re.compile(r"<TEXT\b([^<>]*)>")
# Complete references only: the stories have bare ampersands too ("S&P").
REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|[A-Za-z]+);")
# References to control characters are marks of the news agency's wire.
CONTROL_REFERENCE = re.compile(r"&#(?:[0-9]|[12][0-9]|3[01]|127);")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Story:
    """One story: its NEWID, text, topics as listed, the attributes of its split, and whether it has a body."""

    newid: str
    text: str
    topics: tuple[str, ...]
    split: str
    has_topics: str
    has_body: bool

    @property
    def mod_apte(self) -> str | None:
        """Its part, "train" or "test", of the modified Apte split (README, section VIII.B), or None."""
        return {"TRAIN": "train", "TEST": "test"}.get(self.split) if self.has_topics == "YES" else None


def stories() -> list[Story]:
    """Return all 21,578 stories; InputError as `tasks.sources.archives.find`."""
    return [story for name, content in archives.read(ARCHIVE) for story in parse(content, name)]


def parse(content: bytes, name: str) -> Iterator[Story]:
    """Yield the stories of one SGML file (ISO-8859-1). InputError for one that is cut off or lacks its text."""
    *closed, rest = content.decode("iso-8859-1").split("</REUTERS>")
    for number, sgml in enumerate(closed, start=1):
        yield _story(sgml, f"{name}, story {number}")
    if "<REUTERS" in rest:
        raise InputError(f"{name}: every story must be closed, got none after story {len(closed)}")


def _story(sgml: str, place: str) -> Story:
    begin = STORY.search(sgml)
    values = dict(ATTRIBUTE.findall(begin[1])) if begin else {}
    topics, tag = _between(sgml, "<TOPICS>", "</TOPICS>"), TEXT.search(sgml)
    if topics is None or tag is None or not {"LEWISSPLIT", "TOPICS", "NEWID"} <= values.keys():
        raise InputError(
            f"{place}: it needs LEWISSPLIT, TOPICS, NEWID, <TOPICS> and <TEXT>, got {sgml[:60]!r}"
        )
    content = sgml[tag.end() :].partition("</TEXT>")[0]
    title, body = _between(content, "<TITLE>", "</TITLE>"), _between(content, "<BODY>", "</BODY>")
    parts = [content] if "UNPROC" in tag[1] else [part for part in (title, body) if part is not None]
    return Story(
        newid=values["NEWID"],
        text=_plain("\n".join(parts)),
        topics=tuple(TOPIC.findall(topics)),
        split=values["LEWISSPLIT"],
        has_topics=values["TOPICS"],
        has_body=body is not None,
    )


def _between(content: str, begin: str, end: str) -> str | None:
    """Return what stands between the first `begin` and the next `end`, or None without both."""
    _, begun, rest = content.partition(begin)
    inside, ended, _ = rest.partition(end)
    return inside if begun and ended else None


def _plain(sgml: str) -> str:
    """Return text without character references and control characters, and without blanks at its ends."""
    text = REFERENCE.sub(lambda reference: html.unescape(reference[0]), CONTROL_REFERENCE.sub(" ", sgml))
    return CONTROL.sub(" ", text).strip()


def single_label(name: str, train: Sequence[Story], test: Sequence[Story], notes: str) -> Corpus:
    """Return the corpus of stories that have one topic each; `target_names` are sorted."""
    target_names = sorted({story.topics[0] for story in (*train, *test)})
    number = {topic: i for i, topic in enumerate(target_names)}
    return Corpus(
        train_texts=[story.text for story in train],
        train_targets=np.array([number[story.topics[0]] for story in train], dtype=np.int64),
        test_texts=[story.text for story in test],
        test_targets=np.array([number[story.topics[0]] for story in test], dtype=np.int64),
        target_names=target_names,
        name=name,
        notes=f"{notes} {EDITION}",
        train_ids=[story.newid for story in train],
        test_ids=[story.newid for story in test],
    )


def multi_label(
    name: str, train: Sequence[Story], test: Sequence[Story], target_names: list[str], notes: str
) -> Corpus:
    """Return the corpus of stories with their topics among `target_names`, as csr indicators."""
    return Corpus(
        train_texts=[story.text for story in train],
        train_targets=indicator([story.topics for story in train], target_names),
        test_texts=[story.text for story in test],
        test_targets=indicator([story.topics for story in test], target_names),
        target_names=target_names,
        name=name,
        notes=f"{notes} {EDITION}",
        train_ids=[story.newid for story in train],
        test_ids=[story.newid for story in test],
    )


def indicator(labels: Sequence[Sequence[str]], names: Sequence[str]) -> csr_matrix:
    """Return the csr int8 indicator (n_documents, n_names) of each document's labels; others are left out."""
    from scipy.sparse import csr_matrix

    number = {name: i for i, name in enumerate(names)}
    columns = [sorted({number[label] for label in document if label in number}) for document in labels]
    offsets = np.cumsum([0, *map(len, columns)])
    indices = np.array([column for document in columns for column in document], dtype=np.int32)
    ones = np.ones(len(indices), dtype=np.int8)
    return csr_matrix((ones, indices, offsets), shape=(len(labels), len(names)))
