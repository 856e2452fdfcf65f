"""IMDb: movie reviews, positive (rated 7 to 10) or negative (1 to 4), balanced (25,000 / 25,000).

No film is in both parts. Documents are sorted by part, label and the number in the file's name; the file, as in
train/pos/0_9.txt, is the id. The only change to the texts: `<br />`, the mark of a line break, becomes a space. Exact
copies were not removed: 123 training texts are also test texts.
"""

import numpy as np

from textbench.tasks import InputError
from textbench.tasks.corpus import Corpus
from textbench.tasks.sources import archives

ARCHIVE = archives.Archive(
    title="IMDb Large Movie Review Dataset v1.0",
    folder="imdb",
    file="aclImdb-labelled.tar.gz",
    urls=("https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",),
    sha256=(
        "d342d95d1b4c06d1d2277722fbb1d09a1c5204e7394f009b90e84e88669cc86f",  # the labelled reviews alone
        "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",  # at its public home
    ),
    size=84_125_825,
    wanted=r"(?:^|/)((?:train|test)/(?:neg|pos)/\d+_\d+\.txt)$",
    content_sha256="95da7b54fc4225d19db775308b48b77706fc1608aedce6fb188e2ac5a38757ef",
    max_bytes=1_000_000_000,
    max_members=150_000,
    terms="none stated, a citation is asked for; the reviews are by users of IMDb: research use",
    citation=(
        "Andrew L. Maas, Raymond E. Daly, Peter T. Pham, Dan Huang, Andrew Y. Ng, Christopher Potts, Learning "
        "Word Vectors for Sentiment Analysis, ACL 2011"
    ),
)
SOURCE = ARCHIVE.urls[0]
SHA256 = {ARCHIVE.file: ARCHIVE.sha256[0]}
LICENCE = f"research use: {ARCHIVE.terms}"
CITATION = ARCHIVE.citation
RULE = "words-punctuation"
# Training and test documents compressed together; here documents are not L1-normalised. The grids reach beyond what
# cross-validation takes: of absolute values a share of 0.003.
FAITHFUL = {
    "compressive-features-2013": {
        "rule": "letters",
        "transductive": True,
        "probe": "elastic-net",
        "validation": {
            "n_folds": 10,
            "c_grid": [0.00003, 0.0001, 0.0003, 0.001, 0.003],
            "settings": {"l1_ratio": [0.001, 0.003, 0.01, 0.03]},
        },
    },
    # The archive that is read has none of the 50,000 unlabelled reviews; the test texts stand in for them.
    "maas-2011": {
        "rule": "maas",
        "transductive": True,
        "probe": "linear-svm",
        "validation": {"n_folds": 5, "settings": {"scaled": [False]}},
    },
}

LABELS = ["neg", "pos"]


def load() -> Corpus:
    """Return the corpus: 25,000 training and 25,000 test documents of the classes neg and pos.

    Raises InputError when the archive is missing or differs.
    """
    parts: dict[str, list[tuple[int, int, str, str]]] = {"train": [], "test": []}
    for member, content in archives.read(ARCHIVE):
        part, label, file = member.split("/")
        number = int(file.partition("_")[0])
        parts[part].append((LABELS.index(label), number, member, review(content)))
    for reviews in parts.values():
        reviews.sort(key=lambda entry: entry[:2])
    targets = {
        part: np.array([label for label, *_ in reviews], dtype=np.int64) for part, reviews in parts.items()
    }
    return Corpus(
        train_texts=[text for *_, text in parts["train"]],
        train_targets=targets["train"],
        test_texts=[text for *_, text in parts["test"]],
        test_targets=targets["test"],
        target_names=LABELS,
        name="imdb",
        notes="The labelled reviews, sorted by label and number; `<br />` became a space.",
        train_ids=[member for *_, member, _ in parts["train"]],
        test_ids=[member for *_, member, _ in parts["test"]],
    )


def review(content: bytes) -> str:
    """Return a review's text (UTF-8), each `<br />` a space. InputError for bytes that are not UTF-8."""
    try:
        return content.decode("utf-8").replace("<br />", " ")
    except UnicodeDecodeError as error:
        raise InputError(
            f"a review must be UTF-8, got byte {content[error.start]:#04x} at {error.start}"
        ) from error
