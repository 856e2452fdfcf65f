"""Compressive features: the paper's toy, invariances, new documents, bad input."""

import importlib
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from textbench.featurizers import _kernels as kernels
from textbench.featurizers._compressive import index
from textbench.featurizers._contract import stored_and_read
from textbench.featurizers.compressive import CompressiveKGrams, compression_path
from textbench.featurizers.tfidf import TfIdf

RNG = np.random.default_rng(30)
SENTENCES = [
    "as far as i know the new york office is closed",
    "would you please tell me if the new york office is open",
    "as far as i know nobody is in the new york office",
    "please tell me",
    "the office would be open as far as i know",
]
TRAIN = [RNG.choice(SENTENCES).split() + RNG.choice(["a", "b", "c", "d"], 6).tolist() for _ in range(25)]
METHODS = ["compressive", "kgrams", "lz77"]


def numbers(documents: list[list[str]]) -> list[np.ndarray]:
    vocabulary = sorted({word for document in TRAIN for word in document})
    return [np.array([vocabulary.index(word) for word in document], dtype=np.int32) for document in documents]


def recounted(method: CompressiveKGrams) -> float:
    """The cost of a solution from its pointers alone."""
    entries = len(method.pointers_) * method.pointer_cost
    return entries + sum(len(gram) for gram in method.dictionary_)


def test_weighted_features_are_tfidf_of_the_pointers() -> None:
    documents, new = numbers(TRAIN[:20]), [*numbers(TRAIN[20:]), np.array([], dtype=np.int32)]
    plain = CompressiveKGrams(pointer_cost=0.5)
    counts, weighter = plain.fit_transform(documents), TfIdf()
    method = CompressiveKGrams(pointer_cost=0.5, weighting="tfidf")
    expected = weighter.fit_transform(counts)
    np.testing.assert_array_equal(method.fit_transform(documents).toarray(), expected.toarray())
    assert not np.array_equal(expected.toarray(), counts.toarray())
    again = CompressiveKGrams.from_arrays(method.to_arrays())
    expected = weighter.transform(plain.transform(new)).toarray()
    np.testing.assert_array_equal(again.transform(new).toarray(), expected)
    nothing = [np.array([], dtype=np.int32)] * 2
    assert CompressiveKGrams(weighting="tfidf").fit_transform(nothing).nnz == 0
    with pytest.raises(ValueError, match="weighting must be one of counts, tfidf: got 'idf'"):
        CompressiveKGrams(weighting="idf").fit(documents)


@pytest.mark.parametrize(
    ("max_length", "pointer_cost", "cost", "dictionary"),
    [
        (8, 0, 3, {"m", "a", "n"}),
        (8, 1, 6, {"m a n a"}),
        (8, 8, 16, {"m a n a m a n a"}),
        (5, 0, 3, {"m", "a", "n"}),
        (5, 1, 6, {"m a n a"}),
        (5, 8, 20, None),
    ],
)
def test_toy_of_figure_1(
    max_length: int, pointer_cost: float, cost: float, dictionary: set[str] | None
) -> None:
    method = CompressiveKGrams(max_length=max_length, pointer_cost=pointer_cost).fit([list("manamana")])
    assert method.objective_ == cost
    assert method.lower_bound_ == pytest.approx(cost, rel=1e-5)
    if dictionary is not None:
        assert set(method.get_feature_names_out()) == dictionary


@pytest.mark.parametrize("max_iter", [0, 30])
@pytest.mark.parametrize("pointer_cost", [0.0, 0.03, 0.5, 3.0])
def test_pointers_rewrite_the_corpus_at_the_cost_stated(pointer_cost: float, max_iter: int) -> None:
    method = CompressiveKGrams(pointer_cost=pointer_cost, max_iter=max_iter)
    features = method.fit_transform(TRAIN)
    vocabulary, entry = method.terms_, {gram: i for i, gram in enumerate(method.dictionary_)}
    assert list(entry) == sorted(entry)
    uses = np.zeros(features.shape)
    covered = [np.zeros(len(document), dtype=bool) for document in TRAIN]
    for document, start, length in method.pointers_.tolist():
        assert start + length <= len(TRAIN[document])
        gram = tuple(vocabulary.index(word) for word in TRAIN[document][start : start + length])
        uses[document, entry[gram]] += 1
        covered[document][start : start + length] = True
    assert all(document.all() for document in covered)
    assert method.pointers_.tolist() == sorted(method.pointers_.tolist())
    np.testing.assert_array_equal(features.toarray(), uses)
    np.testing.assert_array_equal(method.usage_, uses.sum(axis=0))
    assert method.objective_ == pytest.approx(recounted(method))
    assert method.lower_bound_ <= method.objective_ + 1e-9


def test_order_of_the_documents_does_not_matter() -> None:
    order = RNG.permutation(len(TRAIN))
    methods = [CompressiveKGrams(pointer_cost=0.5, max_iter=30) for _ in range(2)]
    features = [methods[0].fit_transform(TRAIN), methods[1].fit_transform([TRAIN[d] for d in order])]
    assert methods[0].dictionary_ == methods[1].dictionary_
    assert (methods[0].objective_, methods[0].lower_bound_) == (
        methods[1].objective_,
        methods[1].lower_bound_,
    )
    np.testing.assert_array_equal(features[0].toarray()[order], features[1].toarray())


def test_number_of_cores_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for cores in (1, 3):
        for room in (index, kernels):
            monkeypatch.setattr(room, "n_cores", lambda cores=cores: cores)
        method = CompressiveKGrams(pointer_cost=0.5, max_iter=20).fit(TRAIN)
        results.append((method.dictionary_, method.objective_))
    assert results[0] == results[1]


def test_strings_and_numbers_are_one_corpus() -> None:
    strings, ids = (
        CompressiveKGrams(max_iter=10).fit(TRAIN),
        CompressiveKGrams(max_iter=10).fit(numbers(TRAIN)),
    )
    assert strings.dictionary_ == ids.dictionary_
    assert list(ids.get_feature_names_out(strings.terms_)) == list(strings.get_feature_names_out())


def test_new_documents_are_covered_by_the_fewest_pointers() -> None:
    method = CompressiveKGrams(pointer_cost=0.5, max_iter=20).fit(TRAIN)
    entries = {tuple(name.split()) for name in method.get_feature_names_out()}
    document = ["a", "b", "please", "tell", "me", "d", "please", "tell", "me"]
    spans = [(i, j) for i, j in combinations(range(len(document) + 1), 2) if tuple(document[i:j]) in entries]
    needed = next(
        n
        for n in range(1, 10)
        for chosen in combinations(spans, n)
        if {w for i, j in chosen for w in range(i, j)} == set(range(len(document)))
    )
    assert method.transform([document]).sum() == needed
    # A word that no phrase has costs the document something, but it is not a feature.
    alone, unknown = method.transform([document, [*document, "zebra"]]).toarray()
    np.testing.assert_array_equal(alone, unknown)


def test_word_known_only_inside_a_phrase_is_covered_by_it_or_alone() -> None:
    method = CompressiveKGrams(pointer_cost=1).fit([list("ab")] * 4)
    assert method.dictionary_ == [(0, 1)]
    assert method.transform([list("ab"), list("b"), list("ba"), list("abb")]).toarray().tolist() == [
        [1],
        [0],
        [0],
        [1],
    ]


def test_dictionary_grows_shorter_entries_as_pointers_cost_less() -> None:
    path = compression_path(TRAIN, [3, 0.5, 0.03], max_iter=40)
    assert [method.pointer_cost for method in path] == [3, 0.5, 0.03]
    n_pointers = [len(method.pointers_) for method in path]
    assert n_pointers == sorted(n_pointers)
    for method in path:
        alone = CompressiveKGrams(pointer_cost=method.pointer_cost, max_iter=40).fit(TRAIN)
        assert method.objective_ == pytest.approx(alone.objective_, rel=5e-3)
        assert method.lower_bound_ <= min(method.objective_, alone.objective_) + 1e-9
    assert compression_path(TRAIN, []) == []


def test_entries_may_cost_one_each() -> None:
    """Then the whole of two equal documents is one entry and two pointers."""
    method = CompressiveKGrams(dictionary_cost="entries", pointer_cost=1).fit([list("abc")] * 2)
    assert method.dictionary_ == [(0, 1, 2)]
    assert method.objective_ == 3


def test_terms_are_shown_by_use_and_by_length() -> None:
    method = CompressiveKGrams(pointer_cost=0.5, max_iter=20).fit(numbers(TRAIN))
    vocabulary = sorted({word for document in TRAIN for word in document})
    columns = method.term_columns(vocabulary, ["york"], 3)
    assert [heading for heading, _ in columns] == ["most used", "longest", "york"]
    uses = dict(zip(method.get_feature_names_out(vocabulary), method.usage_, strict=True))
    phrases = [name for name in uses if " " in name]
    most, longest, york = (pairs for _, pairs in columns)
    assert [n for _, n in most] == sorted((uses[name] for name in phrases), reverse=True)[:3]
    assert len(longest[0][0].split()) == max(len(name.split()) for name in phrases)
    assert all("york" in name.split() for name, _ in york)
    assert all(uses[name] == n for _, pairs in columns for name, n in pairs)


@pytest.mark.parametrize(
    "documents",
    [[], [[]], [[], [3], []], [[1]], [[0, 1], []], [[5] * 50], [[0, 1, 2]] * 3, [["a"], []]],
    ids=str,
)
def test_degenerate_corpora(documents: list[list[Any]]) -> None:
    for method in (CompressiveKGrams(), CompressiveKGrams(max_iter=0, pointer_cost=3)):
        features = method.fit_transform(documents)
        assert features.shape == (len(documents), len(method.get_feature_names_out()))
        assert method.objective_ == pytest.approx(recounted(method))
        assert method.lower_bound_ <= method.objective_ + 1e-9
        assert method.transform(documents).toarray().tolist() == features.toarray().tolist()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_length": 0}, "max_length must be a whole number from 1 to 255: got 0"),
        ({"max_length": 2.5}, "max_length must be .*: got 2.5"),
        ({"pointer_cost": -0.1}, "pointer_cost must be a number from 0: got -0.1"),
        ({"pointer_cost": float("nan")}, "pointer_cost must be .*: got nan"),
        ({"dictionary_cost": "letters"}, "dictionary_cost must be one of words, entries: got 'letters'"),
        ({"max_iter": -1}, "max_iter must be a whole number from 0: got -1"),
        ({"tol": -1.0}, "tol must be a number from 0: got -1.0"),
    ],
)
def test_impossible_parameters_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CompressiveKGrams(**params).fit(TRAIN)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ("a b c", "documents must be a list of sequences of words: got str"),
        (["a b c"], "a document must be a sequence of words: got 'a b c'"),
        ([3, 4], "a document must be a sequence of words: got 3"),
        ([[0, -1]], "term numbers must be from 0 to 2147483646: got -1"),
        ([[0, 2**40]], "term numbers must be from 0 to 2147483646: got 1099511627776"),
        ([[0.5, 1]], "words must be all strings or all term numbers from 0"),
        ([[0, 1], ["a"]], "words must be all strings or all term numbers from 0"),
    ],
)
@pytest.mark.parametrize("name", METHODS)
def test_what_is_no_list_of_documents_is_refused(name: str, documents: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        importlib.import_module(f"textbench.featurizers.{name}").build().fit(documents)


@pytest.mark.parametrize("name", METHODS)
def test_corpus_too_large_to_index_is_refused_before_memory_is_asked_for(name: str) -> None:
    large = np.broadcast_to(np.int32(1), 500_000_000)  # 4 bytes
    with pytest.raises(ValueError, match=r"at most 2,147,483,647 .* got 2,500,000,000 \(500,000,000 words"):
        importlib.import_module(f"textbench.featurizers.{name}").build().fit([large])


def test_numbers_after_strings_are_refused() -> None:
    method = CompressiveKGrams(max_iter=0).fit(TRAIN)
    with pytest.raises(ValueError, match="words must be strings, as they were in fit: got 3"):
        method.transform([[3]])


@pytest.fixture(params=METHODS)
def module(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(f"textbench.featurizers.{request.param}")


@pytest.mark.parametrize("documents", [TRAIN, [[], []]], ids=["strings", "empty"])
def test_strings_and_nothing_are_exported_too(module: Any, documents: list[Any]) -> None:
    method = module.build().fit(documents)
    again = type(method).from_arrays(stored_and_read(method.to_arrays()))
    assert (again.transform(documents) != method.transform(documents)).nnz == 0
    assert list(again.get_feature_names_out()) == list(method.get_feature_names_out())


def test_unseen_words_and_empty_documents_are_finite(module: Any) -> None:
    method = module.build().fit([[0, 1, 2, 0, 1], [], [0, 1]])
    features = method.transform([[], [7, 8], [0, 9, 1]]).toarray()
    assert np.isfinite(features).all()
    assert not features[:2].any()
