"""R8: newswire stories of Reuters-21578 in its eight largest single-topic classes (5,485 / 2,189).

ModApte split, documents with exactly one topic, the eight topics with most of them.
"""

from textbench.tasks.corpus import Corpus
from textbench.tasks.datasets import _cachopo

SOURCE = _cachopo.SOURCE
SHA256 = {
    "reuters-r8-train.tab": "a6c7542fabf80a285aa11815d507d65c8971af050554eedf75af3c6946c490bd",
    "reuters-r8-test.tab": "8c21d3ca16e720084e9a3e17db5048d214d73df1ffc68094c02d78cf8f366982",
}
LICENCE = f"{_cachopo.LICENCE}: Reuters-21578 (Reuters Ltd. and Carnegie Group, 1987)"
CITATION = _cachopo.CITATION
RULE = "letters"


def load() -> Corpus:
    """Return the corpus: 5,485 training and 2,189 test documents of 8 classes.

    Raises InputError when the package's files are missing or differ.
    """
    return _cachopo.load("r8", SHA256, "Reuters-21578, ModApte split, one topic, its 8 largest classes.")
