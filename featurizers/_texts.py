"""Raw texts as documents: the check that the methods which read them share, and their titles."""

import re
from collections.abc import Sequence
from typing import Any

# Lines of a head have a name before a colon, and go on in lines that begin with a blank.
HEAD = re.compile(r"(?:[!-9;-~]+:.*(?:\n|\Z)(?:[ \t].*(?:\n|\Z))*)+")
SUBJECT = re.compile(r"^subject:(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)


def checked_texts(X: Any) -> list[str]:
    """Return X. Raises ValueError for what is no list of strings."""
    wrong = next((text for text in X if not isinstance(text, str)), None) if isinstance(X, list) else X
    if not isinstance(X, list) or wrong is not None:
        raise ValueError(f"documents must be a list of strings: got {type(wrong).__name__}")
    return X


def titles(texts: Sequence[str]) -> list[str]:
    """Return the title of each text, "" where it has none.

    It is what stands after "Subject:" in the head of a message (RFC 5322, section 2.2); where there is no such head,
    the first of several lines.
    """
    return [_title(text) for text in texts]


def _title(text: str) -> str:
    head = HEAD.match(text)
    if head and (subject := SUBJECT.search(head[0])):
        return subject[1]
    first, _, rest = text.partition("\n")
    return first if rest else ""
