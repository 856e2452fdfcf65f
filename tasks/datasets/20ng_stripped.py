"""20 Newsgroups by date: messages of 20 groups without headers, footers and quotes (11,314 / 7,532).

Stripped by scikit-learn's rules, in its order: headers, footers, quotes. 215 test documents become empty;
they are kept and count as any other.
"""

from textbench.tasks.corpus import Corpus
from textbench.tasks.datasets import _newsgroups

SOURCE = _newsgroups.SOURCE
SHA256 = _newsgroups.SHA256
LICENCE = _newsgroups.LICENCE
CITATION = _newsgroups.CITATION
RULE = "letters"


def load() -> Corpus:
    """Return the corpus: 11,314 training and 7,532 test documents of 20 classes.

    Raises InputError when the archive is missing or differs.
    """
    notes = "Headers, footers and quotes out, by scikit-learn's rules; emptied messages kept."
    return _newsgroups.load("20ng-stripped", _newsgroups.stripped, notes)
