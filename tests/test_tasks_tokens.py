"""Token rules, vocabulary and counts: against scikit-learn's CountVectorizer, by hand, and as properties."""

import importlib
import os
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from textbench.tasks import InputError
from textbench.tasks.stopwords import STOP_LISTS, stop_words
from textbench.tasks.tokens import RULES, TokenRule, Vectors, count, encode, encoder, token_rule, vectorize

LETTERS = RULES["letters"]


def _words(ids: np.ndarray, offsets: np.ndarray, terms: list[str]) -> list[list[str]]:
    """The documents as lists of terms in reading order."""
    return [[terms[i] for i in ids[a:b]] for a, b in pairwise(offsets)]


def _terms_of(text: str, rule: TokenRule) -> list[str]:
    vectors = vectorize([text, "filler"], [], rule)
    return _words(vectors.train_ids, vectors.train_offsets, vectors.terms)[0]


@pytest.fixture(scope="module")
def r8() -> tuple[list[str], list[str]]:
    corpus = importlib.import_module("textbench.tasks.datasets.r8").load()
    return corpus.train_texts[:800], corpus.test_texts[:300]


@pytest.mark.parametrize("limits", [{}, {"min_df": 5}, {"max_df": 0.3}, {"min_df": 3, "max_df": 0.29}])
def test_equals_count_vectorizer(r8: tuple[list[str], list[str]], limits: dict) -> None:
    train, test = r8
    theirs = CountVectorizer(token_pattern=r"[a-z]+", **limits)
    theirs_train, theirs_test = theirs.fit_transform(train), theirs.transform(test)
    ours = vectorize(train, test, TokenRule(**limits))
    assert ours.terms == theirs.get_feature_names_out().tolist()
    assert (ours.train_counts != theirs_train).nnz == 0
    assert (ours.test_counts != theirs_test).nnz == 0
    assert ours.train_counts.dtype == np.int32 and ours.train_counts.has_canonical_format


def test_equals_count_vectorizer_with_stop_words(r8: tuple[list[str], list[str]]) -> None:
    theirs = CountVectorizer(token_pattern=r"[a-z]{2,}", stop_words="english").fit(r8[0])
    ours = vectorize(*r8, TokenRule(stop_words="scikit-learn", min_length=2))
    assert ours.terms == theirs.get_feature_names_out().tolist()


def test_reading_order_gives_the_text_back(r8: tuple[list[str], list[str]]) -> None:
    train, test = r8
    vectors = vectorize(train, test, LETTERS)
    assert _words(vectors.train_ids, vectors.train_offsets, vectors.terms) == [text.split() for text in train]
    known = set(vectors.terms)
    expected = [[word for word in text.split() if word in known] for text in test]
    assert _words(vectors.test_ids, vectors.test_offsets, vectors.terms) == expected
    assert vectors.train_ids.dtype == np.int32 and vectors.train_offsets.dtype == np.int64


@pytest.mark.parametrize("rule", [*RULES.values(), TokenRule(min_df=4, max_df=0.5, stemmer="english")])
def test_encode_repeats_vectorize(r8: tuple[list[str], list[str]], rule: TokenRule) -> None:
    train, test = r8
    vectors = vectorize(train, test, rule)
    for part, texts in (("train", train), ("test", test)):
        ids, offsets = encode(texts, vectors.terms, rule)
        again = encoder(vectors.terms, rule)
        for some in (texts[:40], texts[20:40]):
            for found, wanted in zip(again(some), encode(some, vectors.terms, rule), strict=True):
                np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(ids, getattr(vectors, f"{part}_ids"))
        np.testing.assert_array_equal(offsets, getattr(vectors, f"{part}_offsets"))
        counts = getattr(vectors, f"{part}_counts")
        assert (count(ids, offsets, vectors.terms, rule) != counts).nnz == 0


def test_stop_words_come_before_the_stemmer() -> None:
    # SMART lists "having", "uses", "the", "and" and "are". It lists "us" too, but the "us" that
    # Porter makes of "usings" stays.
    rule = RULES["letters-stop-stem"]
    assert _terms_of("Having uses: the usings, caresses and ponies are relational.", rule) == [
        "us",
        "caress",
        "poni",
        "relat",
    ]


def test_stems_that_come_out_empty_are_dropped() -> None:
    assert _terms_of("s and cats", TokenRule(stemmer="porter")) == ["and", "cat"]


def test_min_length_is_that_of_the_token_not_of_its_stem() -> None:
    assert _terms_of("a is gas", TokenRule(stemmer="porter", min_length=2)) == ["i", "ga"]


def test_porter_and_its_successor_differ_as_published() -> None:
    assert _terms_of("generalization news", TokenRule(stemmer="porter")) == ["gener", "new"]
    assert _terms_of("generalization news", TokenRule(stemmer="english")) == ["general", "news"]


def test_folding() -> None:
    text = "Déjà vu: ﬁne Ångström — naïve—co-op Straße"
    assert _terms_of(text, TokenRule(ascii_fold=True)) == [
        "deja", "vu", "fine", "angstrom", "naiveco", "op", "strae",
    ]  # fmt: skip
    # Unfolded, an accented letter splits its word.
    assert _terms_of("Déjà vu", LETTERS) == ["d", "j", "vu"]
    assert _terms_of("Déjà vu", TokenRule(pattern=r"\w+")) == ["déjà", "vu"]


def test_case_and_group() -> None:
    assert _terms_of("Ab aB", TokenRule(pattern=r"[A-Za-z]+", lowercase=False)) == ["Ab", "aB"]
    assert _terms_of("#one two #three", TokenRule(pattern=r"#([a-z]+)")) == ["one", "three"]
    assert _terms_of("ab  c", TokenRule(pattern=r"[a-z]*")) == ["ab", "c"]


def test_scdv_rule() -> None:
    assert _terms_of("I don't think X's café was n't OPEN, v2", RULES["scdv"]) == ["think", "cafe", "open"]


def test_transductive_reads_the_test_texts() -> None:
    train, test = ["red red green", "red"], ["blue red", "blue green"]
    inductive = vectorize(train, test, LETTERS)
    assert inductive.terms == ["green", "red"]
    assert inductive.test_counts.toarray().tolist() == [[0, 1], [1, 0]]
    both = vectorize(train, test, LETTERS, transductive=True)
    assert both.terms == ["blue", "green", "red"]
    assert both.test_counts.toarray().tolist() == [[1, 0, 1], [1, 1, 0]]
    # "green" is in one training text and in two of all: the limits are learned where the vocabulary is.
    assert vectorize(train, test, TokenRule(min_df=2)).terms == ["red"]
    assert vectorize(train, test, TokenRule(min_df=2), transductive=True).terms == ["blue", "green", "red"]
    assert vectorize(train, test, TokenRule(max_df=0.5)).terms == ["green"]
    assert vectorize(train, test, TokenRule(max_df=0.5), transductive=True).terms == ["blue", "green"]


def test_test_texts_do_not_change_what_is_learned(r8: tuple[list[str], list[str]]) -> None:
    train, test = r8
    with_test, without = vectorize(train, test, LETTERS), vectorize(train, [], LETTERS)
    assert with_test.terms == without.terms
    np.testing.assert_array_equal(with_test.train_ids, without.train_ids)


def test_empty_texts_are_empty_rows() -> None:
    vectors = vectorize(["", "one two", " \n"], ["", "three"], LETTERS)
    assert vectors.train_offsets.tolist() == [0, 0, 2, 2]
    assert vectors.test_offsets.tolist() == [0, 0, 0]
    assert vectors.train_counts.toarray().tolist() == [[0, 0], [1, 1], [0, 0]]
    assert vectors.test_counts.shape == (2, 2) and vectors.test_counts.nnz == 0
    ids, offsets = encode([], vectors.terms, LETTERS)
    assert ids.tolist() == [] and offsets.tolist() == [0]
    assert count(ids, offsets, ["a", "b"], TokenRule()).shape == (0, 2)


def test_count_leaves_its_inputs_alone() -> None:
    ids, offsets = np.array([2, 0, 2], dtype=np.int32), np.array([0, 3])
    assert count(ids, offsets, ["a", "b", "c"], TokenRule()).toarray().tolist() == [[1, 0, 2]]
    assert ids.tolist() == [2, 0, 2]


@pytest.mark.parametrize("texts", [["", " "], ["1 2 3"], ["one", "two"]])
def test_empty_vocabulary_is_refused(texts: list[str]) -> None:
    with pytest.raises(InputError, match=rf"no term of the {len(texts)} documents is left .*min_df=2"):
        vectorize(texts, ["one two"], TokenRule(min_df=2))


def _check_properties(vectors: Vectors, texts: dict[str, list[str]]) -> None:
    assert vectors.terms == sorted(set(vectors.terms))
    for part, documents in texts.items():
        ids, offsets = getattr(vectors, f"{part}_ids"), getattr(vectors, f"{part}_offsets")
        counts = getattr(vectors, f"{part}_counts")
        assert len(offsets) == len(documents) + 1
        assert offsets[0] == 0 and offsets[-1] == len(ids) and np.all(np.diff(offsets) >= 0)
        np.testing.assert_array_equal(counts.sum(axis=1).A1, np.diff(offsets))
        assert counts.shape == (len(documents), len(vectors.terms))
        for document, words in zip(documents, _words(ids, offsets, vectors.terms), strict=True):
            tokens = iter(re.findall("[a-z]+", document.lower()))
            assert all(word in tokens for word in words)  # a subsequence: `in` reads the iterator on


DOCUMENTS = st.lists(st.text(alphabet="abC é\n7", max_size=12), min_size=1, max_size=6)


@given(DOCUMENTS, DOCUMENTS, st.integers(1, 2), st.sampled_from([0.5, 1.0]), st.booleans())
def test_properties(
    train: list[str], test: list[str], min_df: int, max_df: float, transductive: bool
) -> None:
    rule = TokenRule(min_df=min_df, max_df=max_df)
    learned_from = train + test if transductive else train
    documents = [set(re.findall("[a-z]+", text.lower())) for text in learned_from]
    expected = sorted(
        term
        for term in set().union(*documents)
        if min_df <= sum(term in document for document in documents) <= max_df * len(documents)
    )
    if not expected:
        with pytest.raises(InputError, match="empty vocabulary"):
            vectorize(train, test, rule, transductive=transductive)
        return
    vectors = vectorize(train, test, rule, transductive=transductive)
    assert vectors.terms == expected
    _check_properties(vectors, {"train": train, "test": test})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"pattern": "[a-z"}, r"must be a regular expression, got '\[a-z'"),
        ({"pattern": None}, "must be a regular expression, got None"),
        ({"pattern": "(a)(b)"}, "one capturing group at most.* with 2"),
        ({"stop_words": "smrt"}, "no stop_words 'smrt'; did you mean smart"),
        ({"stemmer": "Porter"}, "no stemmer 'Porter'; did you mean porter"),
        ({"stemmer": None}, "no stemmer None; "),
        ({"lowercase": "yes"}, "lowercase must be true or false, got 'yes'"),
        ({"min_length": 0}, "min_length must be a whole number of at least 1, got 0"),
        ({"min_df": 0}, "min_df must be a whole number of at least 1, got 0"),
        ({"min_df": 0.5}, "min_df must be .* got 0.5"),
        ({"max_df": 0}, r"max_df must be a share in \(0, 1\], got 0"),
        ({"max_df": 2}, r"max_df must be a share in \(0, 1\], got 2"),
        ({"max_df": float("nan")}, "got nan"),
    ],
)
def test_rule_refuses(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        TokenRule(**parameters)
    assert "\n" not in str(caught.value)


def test_unknown_rule_names_the_nearest() -> None:
    assert token_rule("scdv") is RULES["scdv"]
    with pytest.raises(InputError, match="no token rule 'leters'; did you mean letters"):
        token_rule("leters")


@pytest.mark.parametrize(
    ("name", "size"), [("none", 0), ("scikit-learn", 318), ("smart", 570), ("nltk", 179)]
)
def test_stop_lists(name: str, size: int) -> None:
    words = stop_words(name)
    assert name in STOP_LISTS and len(words) == size
    assert all(re.fullmatch("[a-z']+", word) for word in words)


def test_nltk_list_is_that_of_2018() -> None:
    # The edition before had no apostrophes and one after has "he'd"; both are told apart by these.
    words = stop_words("nltk")
    assert {"you're", "should've", "that'll", "won't", "any"} <= words
    assert not {"he'd", "i'd", "i've", "we've", "ain't", "cannot"} & words


def test_unknown_stop_list() -> None:
    with pytest.raises(InputError, match="no stop list 'ntlk'; did you mean nltk"):
        stop_words("ntlk")


@pytest.mark.skipif("TEXTBENCH_DATA_DIR" not in os.environ, reason="TEXTBENCH_DATA_DIR is not set")
@pytest.mark.parametrize("name", ["smart", "scikit-learn"])
def test_stop_lists_equal_the_published_files(name: str) -> None:
    file = Path(os.environ["TEXTBENCH_DATA_DIR"]) / "extras" / f"stopwords-{name}.txt"
    assert stop_words(name) == set(file.read_text("utf-8").split())
