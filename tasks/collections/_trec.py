"""Reader of TREC's formats: SGML or XML documents (`<DOC>`), topics (`<top>`), judgments (qrels) of four columns.

A document's text is what stands in the elements of `TEXT_ELEMENTS`, in order, tags inside them left out; one without
any of them is its whole content. SGML may leave out end tags: an element that is not closed ends with its document.
"""

import html
import re
from collections.abc import Iterator, Sequence

from textbench.tasks import InputError
from textbench.tasks.collections import Judgment
from textbench.tasks.collections._smart import WHOLE_NUMBER, decoded, plain

# As the AP, WSJ, SJM, FT, FBIS, FR and LA Times documents name their headlines, leads and bodies.
TEXT_ELEMENTS = frozenset(["title", "headline", "head", "hl", "ttl", "ti", "h3", "lp", "leadpara", "text"])
TOPIC_FIELDS = ("title", "desc", "narr")
# Patterns that cannot run past the next tag, so that reading takes time in proportion to size.
DOCUMENT = re.compile(rb"<(/?)doc(?:\s[^<>]*)?>", re.IGNORECASE)
DOCNO = re.compile(rb"<docno>([^<>]*)</docno>", re.IGNORECASE)
TOPIC = re.compile(rb"<(/?)top>", re.IGNORECASE)
TAG = re.compile(r"<(/?)([a-zA-Z][\w.-]*+)[^<>]*+>")
COMMENT = re.compile(r"<!--[^<>]*-->")
REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|[A-Za-z]+);")
LABEL = re.compile(r"\A\s*(?:Number|Topic|Description|Narrative):", re.IGNORECASE)
NUMBER = re.compile(r"\d+")


def documents(content: bytes, place: str) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every document. Raises InputError naming file and byte for SGML that is cut off."""
    return ((name, text) for _, name, text in placed_documents(content, place))


def placed_documents(content: bytes, place: str) -> Iterator[tuple[str, str, str]]:
    """Yield (file and line, name, text) of every document, as `documents` does.

    Raises InputError for one without a <DOCNO>.
    """
    line, counted = 1, 0
    for begin, end in _elements(content, DOCUMENT, "DOC", place):
        inside = content[begin:end]
        name = DOCNO.search(inside)
        if name is None or not name[1].strip():
            raise InputError(f"{place}, byte {begin}: a document needs a <DOCNO>, got {_start(inside)}")
        line, counted = line + content.count(b"\n", counted, begin), begin
        text = _text(decoded(inside[: name.start()] + inside[name.end() :]))
        yield f"{place}, line {line}", decoded(name[1]).strip(), text


def _elements(content: bytes, tag: "re.Pattern[bytes]", name: str, place: str) -> Iterator[tuple[int, int]]:
    """Yield (first byte, end) of the content of every element; they may not nest and must be closed."""
    opened: int | None = None
    n_closed = 0
    for match in tag.finditer(content):
        if bool(match[1]) == (opened is None):
            wanted = f"<{name}>" if opened is None else f"</{name}>"
            raise InputError(
                f"{place}, byte {match.start()}: expected {wanted}, got {_start(match[0])[1:-1]}"
            )
        if opened is not None:
            yield opened, match.start()
            n_closed += 1
        opened = None if match[1] else match.end()
    if opened is not None:
        raise InputError(f"{place}, byte {opened}: this <{name}> is not closed before the end of the file")
    if not n_closed:
        raise InputError(f"{place}: it needs at least one <{name}>, got {_start(content)}")


def _start(content: bytes) -> str:
    return repr(decoded(content[:60]).strip())


def _text(sgml: str) -> str:
    sgml = COMMENT.sub(" ", sgml)
    parts: list[str] = []
    element, begin = "", 0
    for tag in TAG.finditer(sgml):
        name = tag[2].lower()
        if not element and not tag[1] and name in TEXT_ELEMENTS:
            element, begin = name, tag.end()
        elif element == name and tag[1]:
            parts.append(sgml[begin : tag.start()])
            element = ""
    if element:
        parts.append(sgml[begin:])
    return _plain("\n".join(parts) if parts else sgml)


def _plain(sgml: str) -> str:
    without_tags = TAG.sub(" ", sgml)
    return REFERENCE.sub(lambda reference: html.unescape(reference[0]), without_tags).strip()


def topics(content: bytes, place: str, fields: Sequence[str] = ("title",)) -> Iterator[tuple[str, str]]:
    """Yield (number, text) of every topic, the text from the fields asked for, numbers without leading zeros.

    Raises InputError naming file and byte.
    """
    return ((number, text) for _, number, text in placed_topics(content, place, fields))


def placed_topics(
    content: bytes, place: str, fields: Sequence[str] = ("title",)
) -> Iterator[tuple[str, str, str]]:
    """Yield (file and line, number, text) of every topic, as `topics` does.

    Raises InputError for one without a <num>.
    """
    line, counted = 1, 0
    for begin, end in _elements(content, TOPIC, "top", place):
        found = _fields(decoded(content[begin:end]))
        number = NUMBER.search(found.get("num", ""))
        if number is None:
            raise InputError(
                f"{place}, byte {begin}: a topic needs a <num>, got {_start(content[begin:end])}"
            )
        line, counted = line + content.count(b"\n", counted, begin), begin
        text = "\n".join(_plain(found.get(field, "")) for field in fields).strip()
        yield f"{place}, line {line}", plain(number[0]), text


def _fields(topic: str) -> dict[str, str]:
    """Return what follows each tag up to the next, without the label that TREC puts before it."""
    tags = list(TAG.finditer(topic))
    ends = [*(tag.start() for tag in tags), len(topic)][1:]
    return {
        tag[2].lower(): LABEL.sub("", topic[tag.end() : end], count=1).strip()
        for tag, end in zip(tags, ends, strict=True)
        if not tag[1]
    }


def judgments(content: bytes, place: str) -> list[Judgment]:
    """Return the judgments of a qrels file: query, iteration, document, code. Raises InputError naming the line."""
    found = []
    for number, line in enumerate(decoded(content).splitlines(), start=1):
        columns = line.split()
        if not columns:
            continue
        if len(columns) != 4 or not WHOLE_NUMBER.fullmatch(columns[3]):
            raise InputError(
                f"{place}, line {number}: a judgment is `query iteration document code`, got {line.strip()[:60]!r}"
            )
        found.append(Judgment(plain(columns[0]), columns[2], int(columns[3])))
    return found
