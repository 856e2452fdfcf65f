"""Character n-grams, cut out by hand and weighed by the formula."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from textbench.featurizers.char_ngrams import CharNgrams

TEXTS = ["The cat sat.", "the  Cats\nsit", "", "A dog, sitting; 漢字"]


def cut(text: str, lengths: range) -> Counter[str]:
    """Return the n-grams of each word with a blank at either end; a word shorter than n is one, once."""
    words = [f" {word} " for word in text.split()]
    found: Counter[str] = Counter()
    for word in words:
        for n in lengths:
            found.update(word[i : i + n] for i in range(max(1, len(word) - n + 1)))
            if n >= len(word):
                break
    return found


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize(("min_n", "max_n", "min_df"), [(3, 3, 1), (2, 5, 1), (1, 4, 2)])
def test_weights_are_tfidf_of_the_ngrams(min_n: int, max_n: int, min_df: int, lowercase: bool) -> None:
    method = CharNgrams(min_n=min_n, max_n=max_n, min_df=min_df, lowercase=lowercase).fit(TEXTS)
    grams = [cut(text.lower() if lowercase else text, range(min_n, max_n + 1)) for text in TEXTS]
    df = Counter(gram for document in grams for gram in document)
    kept = sorted(gram for gram, n in df.items() if n >= min_df)
    assert list(method.get_feature_names_out()) == kept
    idf = {gram: 1 + np.log((1 + len(TEXTS)) / (1 + df[gram])) for gram in kept}
    expected = np.array([[(1 + np.log(d[g])) * idf[g] if d[g] else 0 for g in kept] for d in grams])
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(
        method.transform(TEXTS).toarray(), expected / np.where(lengths, lengths, 1), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("params", "texts", "message"),
    [
        ({}, "a text", "documents must be a list of strings: got str"),
        ({}, ["a text", 3], "documents must be a list of strings: got int"),
        ({"min_n": 0}, TEXTS, "min_n must be a whole number from 1: got 0"),
        ({"min_n": 4, "max_n": 3}, TEXTS, "must not be longer than the longest: got \\(4, 3\\)"),
        ({"min_df": 4}, TEXTS, "none is in min_df=4 of 4 documents"),
        ({}, ["", " "], "none of 2 documents has a word"),
    ],
)
def test_what_cannot_be_read_is_refused(params: dict[str, Any], texts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CharNgrams(**params).fit(texts)
