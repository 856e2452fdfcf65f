"""Reuters-65: newswire stories of Reuters-21578 with a body and exactly one topic (5,946 / 2,347).

ModApte split. 65 classes, of which 58 have a training document and 51 one in both parts: 13 test documents
are of a class that is never seen in training. The Reuters of dCoT (CIKM 2012).
"""

from textbench.tasks.corpus import Corpus
from textbench.tasks.datasets import _reuters

SOURCE = _reuters.SOURCE
SHA256 = _reuters.SHA256
LICENCE = _reuters.LICENCE
CITATION = _reuters.CITATION
RULE = "letters-stop-stem"
# Features are learned from the training texts alone. Neither the SVM's C nor the folds are stated, so ours are used.
FAITHFUL = {"dcot-2012": {"rule": "letters-stop-stem", "transductive": False}}


def load() -> Corpus:
    """Return the corpus: 5,946 training and 2,347 test documents of 65 classes.

    Raises InputError when the archive is missing or differs.
    """
    chosen = [story for story in _reuters.stories() if len(story.topics) == 1 and story.has_body]
    train, test = ([s for s in chosen if s.mod_apte == part] for part in ("train", "test"))
    return _reuters.single_label(
        "reuters65", train, test, "Reuters-21578, ModApte split, one topic and a body."
    )
