"""Methods of raw texts: words beside characters, hashing, and neighbours by gzip, each against its formula by hand."""

import gzip
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.murmurhash import murmurhash3_32

from textbench.featurizers._texts import titles
from textbench.featurizers.char_ngrams import CharNgrams
from textbench.featurizers.gzip_knn import CompressedNeighbours, compressed_size
from textbench.featurizers.hashing import Hashing
from textbench.featurizers.word_char import WORD, WordsAndCharacters

TEXTS = ["The cat sat :-)", "the  Cats\nsit!", "", "A dog, sitting; a cat 漢字"]
TOPICS = [
    f"{'oil crude barrels opec' if i % 2 else 'wheat grain corn harvest'} {i % 7} tonnes" for i in range(24)
]


def weighed(documents: list[Counter[str]]) -> tuple[list[str], np.ndarray]:
    """Return the terms, sorted, and sublinear TF-IDF with rows of unit length."""
    df = Counter(term for document in documents for term in document)
    idf = {term: 1 + np.log((1 + len(documents)) / (1 + n)) for term, n in df.items()}
    rows = np.array([[(1 + np.log(d[t])) * idf[t] if d[t] else 0 for t in sorted(df)] for d in documents])
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return sorted(df), rows / np.where(lengths, lengths, 1)


def test_both_kinds_stand_side_by_side_with_the_same_weight() -> None:
    method = WordsAndCharacters(min_df=1, max_words=2, max_characters=3).fit(TEXTS)
    words = [re.findall(WORD, text.lower()) for text in TEXTS]
    pairs = [Counter(own + [f"{a} {b}" for a, b in pairwise(own)]) for own in words]
    terms, first = weighed(pairs)
    characters = CharNgrams(min_n=1, max_n=3, min_df=1).fit(TEXTS)
    expected = np.hstack([first, characters.transform(TEXTS).toarray()]) / np.sqrt(2)
    np.testing.assert_allclose(method.transform(TEXTS).toarray(), expected, rtol=1e-5)
    assert list(method.get_feature_names_out()[: len(terms)]) == [f"word: {term}" for term in terms]


MESSAGES = [
    "From: a@b.c\nSubject: Re: Wing nuts\nLines: 2\n\nThe wing fell off.\nSubject: not this",
    "subject: nuts\n  and bolts\nArticle-I.D.: x\n\nThe bolts",
    "The wing\nSubject: of a bird",
    "Note: the wing\nfell off",
    "Subject: wing",
    "one line",
    "\nno title",
    "",
]
TITLES = [" Re: Wing nuts", " nuts\n  and bolts", "The wing", "Note: the wing", " wing", "", "", ""]


@pytest.mark.parametrize("characters", [0, 3])
def test_what_is_in_a_title_counts_as_often_as_is_asked(characters: int) -> None:
    assert titles(MESSAGES) == TITLES
    plain = {"min_df": 1, "max_words": 2, "max_characters": characters}
    method = WordsAndCharacters(**plain, title_weight=3).fit(MESSAGES)
    counted = []
    for text, title in zip(MESSAGES, TITLES, strict=True):
        kinds = [
            Counter(own + [f"{a} {b}" for a, b in pairwise(own)])
            for own in (re.findall(WORD, part.lower()) for part in (text, title))
        ]
        counted.append(kinds[0] + kinds[1] + kinds[1])
    terms, expected = weighed(counted)
    found = method.transform(MESSAGES).toarray()[:, : len(terms)]
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    np.testing.assert_allclose(found / np.where(lengths, lengths, 1), expected, rtol=1e-5)
    assert list(method.get_feature_names_out()[: len(terms)]) == [f"word: {term}" for term in terms]
    if characters:
        own = CharNgrams(min_n=1, max_n=characters, min_df=1)
        thrice = [f"{text} {title} {title}" for text, title in zip(MESSAGES, TITLES, strict=True)]
        own.fit(MESSAGES)
        own.idf_ = method.character_idf_
        rest = method.transform(MESSAGES).toarray()[:, len(terms) :] * np.sqrt(2)
        np.testing.assert_allclose(rest, own.transform(thrice).toarray(), rtol=1e-5)
    # Without a weight of its own a title is text like any other.
    same = WordsAndCharacters(**plain, title_weight=1).fit_transform(MESSAGES)
    assert (same != WordsAndCharacters(**plain).fit_transform(MESSAGES)).nnz == 0


def test_words_are_at_the_columns_and_with_the_signs_of_their_hash() -> None:
    method = Hashing(bits=4, use_idf=False).fit(TEXTS)
    expected = np.zeros((len(TEXTS), 16))
    for row, text in enumerate(TEXTS):
        for word in re.findall(r"\b\w\w+\b", text.lower()):
            hashed = murmurhash3_32(word, seed=0)
            expected[row, abs(hashed) % 16] += 1 if hashed >= 0 else -1
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(
        method.transform(TEXTS).toarray(), expected / np.where(lengths, lengths, 1), rtol=1e-6
    )
    n_with = (expected != 0).sum(axis=0)
    np.testing.assert_allclose(
        Hashing(bits=4).fit(TEXTS).idf_, 1 + np.log((1 + len(TEXTS)) / (1 + n_with)), rtol=1e-12
    )


def test_distances_are_those_of_gzip() -> None:
    y = np.array([0, 1, 0, 1])
    distances, neighbours = CompressedNeighbours(n_neighbors=4).fit(TEXTS, y).kneighbors(["A cat sat."])

    def size(text: str) -> int:
        return len(gzip.compress(text.encode()))

    own = size("A cat sat.")
    expected = [(size(f"A cat sat. {text}") - min(own, size(text))) / max(own, size(text)) for text in TEXTS]
    assert distances[0].tolist() == sorted(expected)
    assert [expected[i] for i in neighbours[0]] == sorted(expected)
    assert compressed_size("漢字".encode()) == size("漢字")


def test_of_two_neighbours_that_differ_the_nearest_decides_and_a_majority_before_it() -> None:
    y = np.arange(24) % 2
    one, two = (CompressedNeighbours(n_neighbors=k).fit(TOPICS, y) for k in (1, 2))
    mixed = ["oil wheat", "corn barrels opec", "tonnes", ""]
    assert one.predict(mixed).tolist() == two.predict(mixed).tolist()
    method = CompressedNeighbours(n_neighbors=3).fit(TOPICS, y * 7 + np.arange(24) % 3)
    votes = (y * 7 + np.arange(24) % 3)[method.kneighbors(mixed)[1]]
    for predicted, own in zip(method.predict(mixed), votes.tolist(), strict=True):
        best = max(own.count(label) for label in own)
        assert predicted == next(label for label in own if own.count(label) == best)


def test_gzip_tells_topics_apart_and_takes_several_labels() -> None:
    y = np.arange(24) % 2
    assert CompressedNeighbours().fit(TOPICS, y).predict(["crude oil", "corn harvest"]).tolist() == [1, 0]
    labels = np.column_stack([y, 1 - y, np.ones(24)]).astype(np.int8)
    found = CompressedNeighbours().fit(TOPICS, sp.csr_matrix(labels)).predict(["crude oil barrels opec"])
    assert found.toarray().tolist() == [[1, 0, 1]]
    with pytest.raises(ValueError, match="one row a document: got 24, 3 targets"):
        CompressedNeighbours().fit(TOPICS, y[:3])


@pytest.mark.parametrize("method", [WordsAndCharacters(), Hashing()])
def test_what_is_no_list_of_texts_is_refused(method: WordsAndCharacters | Hashing) -> None:
    with pytest.raises(ValueError, match="documents must be a list of strings: got int"):
        method.fit(["a", 3])
