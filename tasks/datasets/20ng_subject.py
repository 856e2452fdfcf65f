"""20 Newsgroups by date: subject and body of messages of 20 discussion groups (11,314 / 7,532).

Of the headers only the subject is kept, without its name; footers and quotes are kept.
"""

from textbench.tasks.corpus import Corpus
from textbench.tasks.datasets import _newsgroups

SOURCE = _newsgroups.SOURCE
SHA256 = _newsgroups.SHA256
LICENCE = _newsgroups.LICENCE
CITATION = _newsgroups.CITATION
RULE = "letters"
WITHOUT_HEADERS = "20ng-stripped"


def load() -> Corpus:
    """Return the corpus: 11,314 training and 7,532 test documents of 20 classes.

    Raises InputError when the archive is missing or differs.
    """
    notes = "Subject and body; other headers out, footers and quotes kept."
    return _newsgroups.load("20ng-subject", _newsgroups.subject_and_body, notes)
