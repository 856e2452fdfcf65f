"""Reuters-90: newswire stories of Reuters-21578, several labels each, of 90 topics (7,770 / 3,019).

ModApte split; the topics with a training and a test document, and the documents with at least one of them.
"""

from textbench.tasks.corpus import Corpus
from textbench.tasks.datasets import _reuters

SOURCE = _reuters.SOURCE
SHA256 = _reuters.SHA256
LICENCE = _reuters.LICENCE
CITATION = _reuters.CITATION
RULE = "letters-stop-stem"
SEVERAL_LABELS = True
PARTS = ("train", "test")


def load() -> Corpus:
    """Return the corpus: 7,770 training and 3,019 test documents, targets csr int8 (n_documents, 90).

    A topic outside the 90 is left out of a document's labels. Raises InputError when the archive is missing
    or differs.
    """
    split = [(story.mod_apte, story) for story in _reuters.stories()]
    seen = {part: {topic for p, story in split if p == part for topic in story.topics} for part in PARTS}
    shared = seen["train"] & seen["test"]
    train, test = (
        [story for p, story in split if p == part and shared.intersection(story.topics)] for part in PARTS
    )
    notes = "Reuters-21578, ModApte split, the 90 topics in both parts."
    return _reuters.multi_label("reuters90", train, test, sorted(shared), notes)
