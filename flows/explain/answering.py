"""Requests to a model: what a body asks, and what is answered, whichever server brought it.

A request holds texts, as JSON or as plain text; its answer is JSON with the bits of `textbench transform` for as many
texts. What cannot be answered has a status of 4xx and a line that says why. Nothing of a request is kept.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError
from textbench.tasks.sources.new_texts import lines_of
from textbench.tasks.tracking.settings import shown

if TYPE_CHECKING:
    from textbench.flows.explain.export import Answers, Model

MOST_BYTES = 10_000_000  # of a request's body
MOST_TEXTS = 10_000
ACCEPTED = 'a JSON list of texts, {"texts": [...]}, or text/plain with a text a line'


@dataclass(frozen=True)
class Refused(Exception):
    """A request that is not answered: its HTTP status, and a line that says why."""

    status: int
    reason: str


def texts_of(body: bytes, content_type: str) -> list[str]:
    """Return the texts that a request's body holds. Raises Refused for any other body, and for a blank text."""
    if len(body) > MOST_BYTES:
        raise Refused(413, f"a request has at most {MOST_BYTES:,} bytes")
    kind = content_type.partition(";")[0].strip().lower()
    # As curl names what it was told nothing of.
    if kind not in ("", "application/json", "text/plain", "application/x-www-form-urlencoded"):
        raise Refused(415, f"a request is {ACCEPTED}; got {shown(kind)}")
    if not body.strip():
        raise Refused(400, f"the request is empty; send {ACCEPTED}")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(400, f"the request is not UTF-8 (byte {error.start:,})") from error
    found = list(lines_of(text)) if kind == "text/plain" else _listed(text)
    if not found:
        raise Refused(400, f"there is no text in the request; send {ACCEPTED}")
    if len(found) > MOST_TEXTS:
        raise Refused(413, f"a request has at most {MOST_TEXTS:,} texts, got {len(found):,}")
    for number, one in enumerate(found, 1):
        if not isinstance(one, str):
            raise Refused(400, f"texts are strings, got {shown(one)} as text {number}")
        if not one.strip():
            raise Refused(400, f"text {number} is blank")
        if any("\ud800" <= letter <= "\udfff" for letter in one) if not one.isascii() else False:
            raise Refused(400, f"text {number} is not Unicode: it has half of a surrogate pair")
    return found


def _listed(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the request is no JSON ({' '.join(str(error).split())[:80]})") from error
    if isinstance(found, dict):
        for name in ("texts", "inputs"):
            if found.keys() == {name}:
                found = found[name]
                break
    if not isinstance(found, list):
        raise Refused(400, f"a request is {ACCEPTED}; got {shown(found)[:100]}")
    return found


def rows_of(answers: "Answers") -> list[dict[str, Any]]:
    """Return a row a text: its label, or list of labels, its margin, and a value for each class."""
    values = [dict(zip(answers.classes, row, strict=True)) for row in answers.values.tolist()]
    return [
        {"label": label, "margin": margin, answers.kind: row}
        for label, margin, row in zip(answers.labels, answers.margins.tolist(), values, strict=True)
    ]


def answered(model: "Model", requests: Sequence[list[str]]) -> list[list[dict[str, Any]]]:
    """Return the rows of several requests, computed at once.

    A text means the same alone and among others: to the bit where features are sparse, else to rounding.

    Raises Refused where the model cannot read the texts.
    """
    try:
        rows = rows_of(model.answer([text for texts in requests for text in texts]))
    except InputError as error:
        raise Refused(400, " ".join(str(error).split())) from error
    found, start = [], 0
    for texts in requests:
        found.append(rows[start : start + len(texts)])
        start += len(texts)
    return found
