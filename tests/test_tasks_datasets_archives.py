"""Data sets read from archives: pins (counts, first, middle, last document), and what independent sources say."""

import hashlib
import re

import numpy as np
import pytest

from tests.pins import PINS
from textbench.tasks import catalogue
from textbench.tasks.corpus import Corpus
from textbench.tasks.datasets import _newsgroups, _reuters
from textbench.tasks.sources import archives
from textbench.tasks.tokens import RULES


@pytest.fixture(scope="module")
def corpora(data_dir: object) -> dict[str, Corpus]:
    return {name: catalogue.dataset(name).load().load() for name in PINS}


@pytest.mark.parametrize("name", sorted(PINS))
@pytest.mark.parametrize("part", ["train", "test"])
def test_pins(corpora: dict[str, Corpus], name: str, part: str) -> None:
    corpus = corpora[name]
    n_documents, documents, n_per_label, n_empty = PINS[name][part]
    texts, targets = getattr(corpus, f"{part}_texts"), getattr(corpus, f"{part}_targets")
    assert len(texts) == n_documents
    for i, (labels, start, sha1) in zip((0, n_documents // 2, n_documents - 1), documents, strict=True):
        assert texts[i][:60] == start
        assert hashlib.sha1(texts[i].encode()).hexdigest() == sha1
        assert " ".join(labels_of(corpus, targets, i)) == labels
    counts = np.bincount(targets) if targets.ndim == 1 else targets.sum(axis=0, dtype=np.int64).A1
    padded = np.pad(counts, (0, len(corpus.target_names) - len(counts)))
    assert padded.tolist() == [int(count) for count in n_per_label.split()]
    assert sum(not text.strip() for text in texts) == n_empty


def labels_of(corpus: Corpus, targets: np.ndarray, i: int) -> list[str]:
    return [corpus.target_names[j] for j in ([targets[i]] if targets.ndim == 1 else targets[i].indices)]


@pytest.mark.parametrize("name", sorted(PINS))
def test_contract(corpora: dict[str, Corpus], name: str) -> None:
    corpus, module = corpora[name], catalogue.dataset(name).load()
    assert corpus.name == name
    assert corpus.target_names == sorted(corpus.target_names)
    for targets in (corpus.train_targets, corpus.test_targets):
        assert targets.dtype == (np.int64 if targets.ndim == 1 else np.int8)
        if targets.ndim == 2:
            assert targets.has_canonical_format
            assert set(targets.data) == {1}
            assert np.diff(targets.indptr).min() >= 1
    assert corpus.notes and module.SOURCE and module.LICENCE and module.CITATION
    assert all(len(digest) == 64 for digest in module.SHA256.values())
    assert catalogue.dataset(name).constant("RULE") in RULES
    assert catalogue.dataset(name).description.endswith(".")


WORD = re.compile("[A-Za-z]{4,}")


@pytest.mark.parametrize("name", sorted(PINS))
def test_ids_lead_back_to_the_source(corpora: dict[str, Corpus], name: str) -> None:
    """First, middle and last document are found in the archive under their ids, which no two documents share."""
    corpus, is_reuters = corpora[name], name.startswith("reuters")
    assert corpus.train_ids is not None and corpus.test_ids is not None
    assert len({*corpus.train_ids, *corpus.test_ids}) == len(corpus.train_texts) + len(corpus.test_texts)
    if name == "imdb":
        archive = catalogue.dataset("imdb").load().ARCHIVE
    else:
        archive = _reuters.ARCHIVE if is_reuters else _newsgroups.ARCHIVE
    wanted = {}
    for ids, texts in ((corpus.train_ids, corpus.train_texts), (corpus.test_ids, corpus.test_texts)):
        wanted |= {ids[i]: texts[i] for i in (0, len(ids) // 2, len(ids) - 1)}
    for member, content in archives.read(archive):
        plain = content.decode("iso-8859-1")
        stories = dict(re.findall(r'NEWID="(\d+)">(.*?)</REUTERS>', plain, re.S)) if is_reuters else {}
        sources = stories or {id: plain for id in wanted if member.endswith(id)}
        for id in wanted.keys() & sources.keys():
            assert set(WORD.findall(wanted.pop(id))) <= set(WORD.findall(sources[id]))
    assert not wanted


def test_reuters90_has_the_published_counts_of_its_largest_topics(corpora: dict[str, Corpus]) -> None:
    """Joachims, Text categorization with support vector machines, 1998; Debole and Sebastiani, 2005."""
    corpus = corpora["reuters90"]
    published = {"earn": (2877, 1087), "acq": (1650, 719), "money-fx": (538, 179), "grain": (433, 149)}
    for topic, counts in published.items():
        column = corpus.target_names.index(topic)
        assert (corpus.train_targets[:, [column]].sum(), corpus.test_targets[:, [column]].sum()) == counts


def test_reuters65_classes(corpora: dict[str, Corpus]) -> None:
    trained = set(corpora["reuters65"].train_targets.tolist())
    tested = corpora["reuters65"].test_targets.tolist()
    assert (len(trained), len(trained & set(tested))) == (58, 51)
    assert sum(target not in trained for target in tested) == 13


def test_random70_has_five_labels_without_a_training_document(corpora: dict[str, Corpus]) -> None:
    corpus = corpora["reuters-random70"]
    together = corpus.train_targets.sum(axis=0) + corpus.test_targets.sum(axis=0)
    assert together.min() >= 1
    assert len(corpus.target_names) == 120


def test_reuters_text_agrees_with_an_independent_preparation(corpora: dict[str, Corpus]) -> None:
    """Cardoso-Cachopo's R8, made from the same stories: title and body, everything but letters a space."""
    known = {text.strip() for text in catalogue.dataset("r8").load().load().train_texts}
    texts = corpora["reuters65"].train_texts
    ours = {" ".join(re.sub("[^a-z]", " ", text.lower()).split()) for text in texts}
    assert len(ours & known) / len(known) > 0.9


def test_stripped_is_what_scikit_learn_gives(corpora: dict[str, Corpus]) -> None:
    from sklearn.datasets import _twenty_newsgroups as rules

    whole, stripped = corpora["20ng"].test_texts, corpora["20ng-stripped"].test_texts
    for text, expected in zip(whole[::50], stripped[::50], strict=True):
        body = rules.strip_newsgroup_header(text)
        assert rules.strip_newsgroup_quoting(rules.strip_newsgroup_footer(body)) == expected


def test_imdb_keeps_no_line_break_marks(corpora: dict[str, Corpus]) -> None:
    assert not any("<br />" in text for text in corpora["imdb"].train_texts)


def test_content_digests_are_those_of_the_archives(data_dir: object) -> None:
    for archive in (_reuters.ARCHIVE, _newsgroups.ARCHIVE, catalogue.dataset("imdb").load().ARCHIVE):
        assert archives.content_digest(archives.read(archive)) == archive.content_sha256
