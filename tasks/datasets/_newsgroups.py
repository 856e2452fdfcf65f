"""Reader of 20 Newsgroups by date: 18,846 Usenet messages of 1993, one file each, as they were posted.

Bytes are read as ISO-8859-1, line ends kept. Documents are sorted by part, group and the number that is the
file's name; group/number is its id. What of a message is kept is a data set's own policy: headers alone are
worth about 15 points.
"""

import re
from collections.abc import Callable

import numpy as np

from textbench.tasks.corpus import Corpus
from textbench.tasks.sources import archives

ARCHIVE = archives.Archive(
    title="20 Newsgroups",
    folder="20newsgroups",
    file="20news-bydate.tar.gz",
    urls=(
        "https://ndownloader.figshare.com/files/5975967",
        "https://people.csail.mit.edu/jrennie/20Newsgroups/20news-bydate.tar.gz",
    ),
    sha256=(
        "aa358c9ebfed3a0ccbf9e8530ec565dead26a289c6e9170f4c663454d3b992d9",  # packed with sorted names
        "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",  # at its public homes
    ),
    size=14_464_277,
    wanted=r"(?:^|/)(20news-bydate-(?:train|test)/[a-z.-]+/\d+)$",
    content_sha256="8ed3bdad4b4132d2f328c8b544afc5dca44edb9ea37e667ba0a673efe12d9c6e",
    max_bytes=200_000_000,
    max_members=50_000,
    terms="none stated; public Usenet messages by their authors, distributed for research",
    citation="Ken Lang, NewsWeeder: Learning to filter netnews, ICML 1995; by-date version by Jason Rennie",
)
SOURCE = "https://people.csail.mit.edu/jrennie/20Newsgroups/"
SHA256 = {ARCHIVE.file: ARCHIVE.sha256[0]}
LICENCE = f"research use: {ARCHIVE.terms}"
CITATION = ARCHIVE.citation

SUBJECT = re.compile(r"^Subject:[ \t]*(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)


def load(name: str, policy: Callable[[str], str], notes: str) -> Corpus:
    """Return the messages, each as `policy` makes it a document; an empty one is kept.

    Raises InputError as `tasks.sources.archives.find`.
    """
    parts: dict[str, list[tuple[str, int, str]]] = {"train": [], "test": []}
    for member, content in archives.read(ARCHIVE):
        part, group, number = member.removeprefix("20news-bydate-").split("/")
        parts[part].append((group, int(number), policy(content.decode("iso-8859-1"))))
    for messages in parts.values():
        messages.sort(key=lambda message: message[:2])
    target_names = sorted({group for messages in parts.values() for group, _, _ in messages})
    target = {group: i for i, group in enumerate(target_names)}
    targets = {
        part: np.array([target[group] for group, _, _ in messages], dtype=np.int64)
        for part, messages in parts.items()
    }
    return Corpus(
        train_texts=[text for _, _, text in parts["train"]],
        train_targets=targets["train"],
        test_texts=[text for _, _, text in parts["test"]],
        test_targets=targets["test"],
        target_names=target_names,
        name=name,
        notes=f"20 Newsgroups by date, sorted by group and number. {notes}",
        train_ids=[f"{group}/{number}" for group, number, _ in parts["train"]],
        test_ids=[f"{group}/{number}" for group, number, _ in parts["test"]],
    )


def whole(message: str) -> str:
    """Return the message as it is."""
    return message


def subject_and_body(message: str) -> str:
    """Return the subject (its continuation lines included), a line break and the body.

    The body is what follows the first blank line. Without a subject the body alone is returned.
    """
    headers, _, body = message.partition("\n\n")
    subject = SUBJECT.search(headers)
    return "\n".join([*([" ".join(subject[1].split())] if subject else []), body])


def body(message: str) -> str:
    """Return what follows the first blank line."""
    return message.partition("\n\n")[2]


def stripped(message: str) -> str:
    """Return the body without quotes and signature, by scikit-learn's rules (fetch_20newsgroups)."""
    from sklearn.datasets import _twenty_newsgroups as rules

    body = rules.strip_newsgroup_header(message)
    return rules.strip_newsgroup_quoting(rules.strip_newsgroup_footer(body))
