"""R52: newswire stories of Reuters-21578 with one of 52 topics, very unevenly (6,532 / 2,568).

ModApte split, documents with exactly one topic, the topics that occur in both training and test documents.
"""

from textbench.tasks.corpus import Corpus
from textbench.tasks.datasets import _cachopo

SOURCE = _cachopo.SOURCE
SHA256 = {
    "reuters-r52-train.tab": "29011931c08bc029f92a97947be41e88ef431240f7030719e3cc395bf2b8c877",
    "reuters-r52-test.tab": "c16097ef18ec357c5054578b58da977425461e23dc414192b802e4b52b295ce2",
}
LICENCE = f"{_cachopo.LICENCE}: Reuters-21578 (Reuters Ltd. and Carnegie Group, 1987)"
CITATION = _cachopo.CITATION
RULE = "letters"


def load() -> Corpus:
    """Return the corpus: 6,532 training and 2,568 test documents of 52 classes.

    Raises InputError when the package's files are missing or differ.
    """
    return _cachopo.load(
        "r52", SHA256, "Reuters-21578, ModApte split, one topic, the 52 classes in both parts."
    )
