"""All k-grams, against a count with dictionaries."""

from collections import Counter

import numpy as np
import pytest

from textbench.featurizers.kgrams import AllKGrams

RNG = np.random.default_rng(40)
DOCUMENTS = [RNG.integers(12, size=n).astype(np.int32) for n in (30, 0, 1, 25, 4, 40, 18)]


def counted(document: np.ndarray, max_length: int) -> Counter[str]:
    words = [str(word) for word in document]
    return Counter(
        " ".join(words[i : i + t]) for t in range(1, max_length + 1) for i in range(len(words) - t + 1)
    )


@pytest.mark.parametrize("max_length", [1, 3, 5])
def test_kgrams_are_counted(max_length: int) -> None:
    method = AllKGrams(max_length=max_length)
    train = method.fit_transform(DOCUMENTS[:5])
    names = method.get_feature_names_out()
    known = set().union(*(counted(document, max_length) for document in DOCUMENTS[:5]))
    assert set(names) == known and len(names) == len(known)
    assert np.sum(method.n_of_length_) == len(names)
    test = method.transform(DOCUMENTS[5:])
    for row, document in zip([*train, *test], DOCUMENTS, strict=True):
        expected = {gram: n for gram, n in counted(document, max_length).items() if gram in known}
        assert dict(zip(names[row.indices], row.data, strict=True)) == expected
    assert train.has_sorted_indices and test.has_sorted_indices


def test_one_word_kgrams_are_the_bag_of_words() -> None:
    features = AllKGrams(max_length=1).fit_transform(DOCUMENTS)
    sums = np.sort(np.bincount(np.concatenate(DOCUMENTS)))
    np.testing.assert_array_equal(np.sort(features.toarray().sum(axis=0)), sums)


def test_long_text_repeats_nothing_but_itself() -> None:
    """A document of different words has n - t + 1 k-grams of t words, each once."""
    method = AllKGrams().fit([np.arange(50)])
    assert method.n_of_length_.tolist() == [50, 49, 48, 47, 46]
    assert method.transform([np.arange(10, 13)]).sum() == 3 + 2 + 1
