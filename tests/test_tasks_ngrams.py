"""N-grams: against scikit-learn's CountVectorizer, hand-worked, and rebuilt from their names."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from textbench.tasks import InputError, catalogue
from textbench.tasks.tokens import TokenRule, count, encode, vectorize

TRAIN = ["to be or not to be", "", "be", "not to be", "or"]


@pytest.mark.parametrize("max_n", [2, 3, 4])
def test_training_counts_equal_scikit_learns(max_n: int) -> None:
    texts = catalogue.dataset("r8").load().load().train_texts[:300]
    vectors = vectorize(texts, texts[:1], TokenRule(max_n=max_n))
    theirs = CountVectorizer(token_pattern="[a-z]+", ngram_range=(1, max_n)).fit(texts)
    order = [theirs.vocabulary_[term] for term in vectors.terms]
    assert sorted(order) == list(range(len(order)))
    assert (theirs.transform(texts)[:, order] != vectors.train_counts).nnz == 0
    assert vectors.train_counts.has_canonical_format


def test_document_limits_hold_for_n_grams_too() -> None:
    vectors = vectorize(TRAIN, TRAIN, TokenRule(max_n=3, min_df=2))
    assert vectors.terms == ["be", "not", "or", "to", "not to", "to be", "not to be"]
    assert vectors.train_counts[0].toarray().tolist() == [[2, 1, 1, 2, 1, 2, 1]]


def test_no_n_gram_crosses_documents_and_unknown_words_do_not_part_their_neighbours() -> None:
    vectors = vectorize(["a b", "c a"], ["a zebra b", "b", "c"], TokenRule(max_n=2))
    assert vectors.terms == ["a", "b", "c", "a b", "c a"]
    assert vectors.test_counts.toarray().tolist() == [[1, 1, 0, 1, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0]]


def test_transductive_n_grams_come_from_both_parts() -> None:
    vectors = vectorize(["a b"], ["b a"], TokenRule(max_n=2), transductive=True)
    assert vectors.terms == ["a", "b", "a b", "b a"]
    assert vectors.train_counts.toarray().tolist() == [[1, 1, 1, 0]]


@pytest.mark.parametrize("max_n", [1, 2, 3])
def test_new_texts_are_counted_from_the_names_alone(max_n: int) -> None:
    texts = catalogue.dataset("r8").load().load().train_texts[:50]
    rule = TokenRule(max_n=max_n)
    vectors = vectorize(texts[:40], texts[40:], rule)
    counts = count(*encode(texts[40:], vectors.terms, rule), vectors.terms, rule)
    assert (counts != vectors.test_counts).nnz == 0
    assert counts.shape == vectors.test_counts.shape


def test_tokens_with_spaces_cannot_make_n_grams() -> None:
    with pytest.raises(InputError, match="without spaces"):
        vectorize(["a b. c d."], ["a b."], TokenRule(pattern=r"[a-z ]+", max_n=2))


def test_no_n_grams_leave_empty_levels() -> None:
    vectors = vectorize(["a", "b"], ["a b"], TokenRule(max_n=3))
    assert vectors.terms == ["a", "b"]
    np.testing.assert_array_equal(vectors.test_counts.toarray(), [[1, 1]])
