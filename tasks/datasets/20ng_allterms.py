"""20 Newsgroups by date: messages of 20 discussion groups, headers but the subject removed (11,293 / 7,528).

The by-date split without attachments, PGP keys, some duplicates, and the messages that this left empty. Of
the headers only the subject is kept; footers and quotes are kept.
"""

from textbench.tasks.corpus import Corpus
from textbench.tasks.datasets import _cachopo

SOURCE = _cachopo.SOURCE
SHA256 = {
    "20newsgroups-train.tab": "3287f997870c109a5ed8f58087afb95ae3f863c75092d47b07eebf1700d6ef9c",
    "20newsgroups-test.tab": "34a4c6261eda98d87f66d8e12a2cccba06918b7877442536ef6a13810a47ba39",
}
LICENCE = f"{_cachopo.LICENCE}: 20 Newsgroups (Ken Lang, 1995; Jason Rennie's by-date split)"
CITATION = _cachopo.CITATION
RULE = "letters"


def load() -> Corpus:
    """Return the corpus: 11,293 training and 7,528 test documents of 20 classes.

    Raises InputError when the package's files are missing or differ.
    """
    notes = "20 Newsgroups by date; headers but the subject, attachments, PGP keys and empty messages out."
    return _cachopo.load("20ng-allterms", SHA256, notes)
