"""20 Newsgroups by date: bodies of messages of 20 discussion groups, without any header (11,314 / 7,532).

The body is what follows the first blank line; footers and quotes are kept. So read the edition of the data that
Larochelle and Bengio (ICML 2008) used.
"""

from textbench.tasks.corpus import Corpus
from textbench.tasks.datasets import _newsgroups

SOURCE = _newsgroups.SOURCE
SHA256 = _newsgroups.SHA256
LICENCE = _newsgroups.LICENCE
CITATION = _newsgroups.CITATION
RULE = "letters"
WITHOUT_HEADERS = "20ng-stripped"
# Larochelle and Bengio, whose figure is a row of the compressive-features paper's table 1. They choose on
# validation documents, 15 percent of the training ones.
FAITHFUL = {"drbm-2008": {"rule": "letters", "validation": {"held_out": 0.15}}}


def load() -> Corpus:
    """Return the corpus: 11,314 training and 7,532 test documents of 20 classes.

    Raises InputError when the archive is missing or differs.
    """
    return _newsgroups.load("20ng-body", _newsgroups.body, "Bodies; headers out, footers and quotes kept.")
