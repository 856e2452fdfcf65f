"""Retrieval by example: against scikit-learn query by query, all orders of the ties, invariances."""

from itertools import permutations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics import average_precision_score, ndcg_score

from textbench.evaluation.metrics import query_by_example
from textbench.evaluation.metrics.query_by_example import asked, search_by_example
from textbench.evaluation.metrics.query_scores import QueryScores

PRECISIONS = {1: "precision_at_1", 3: "precision_at_3", 5: "precision_at_5", 10: "precision_at_10"}
PER_QUERY = ("average_precision", "ndcg_at_5", *PRECISIONS.values())


def small_counts(seed: int, n_train: int, n_test: int) -> tuple[np.ndarray, ...]:
    """Few small integers: equal documents, zero rows and classes without training documents are common."""
    rng = np.random.default_rng(seed)
    train = rng.integers(0, 3, (n_train, 3)).astype(np.float32)
    test = rng.integers(0, 3, (n_test, 3)).astype(np.float32)
    return train, rng.integers(0, 3, n_train), test, rng.integers(0, 4, n_test)


def cosines(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Cosines, rounded so that equal angles tie however they were computed."""
    norms = np.outer(np.linalg.norm(test, axis=1), np.linalg.norm(train, axis=1))
    return np.divide(test @ train.T, norms, out=np.zeros_like(norms), where=norms > 0).round(5)


def assert_equal(a: QueryScores, b: QueryScores) -> None:
    for name in PER_QUERY:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.n_without_relevant == b.n_without_relevant


def distinct_angles(train: np.ndarray) -> np.ndarray:
    """Rows along the axes and diagonals, whose equal cosines are equal in floating point too."""
    return np.sign(train) * np.max(train, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
@pytest.mark.parametrize("seed", range(15))
def test_agreement_with_scikit_learn(seed: int, kind: type) -> None:
    n_train = (1, 2, 4, 7, 30)[seed % 5]
    train, train_targets, test, test_targets = small_counts(seed, n_train, 12)
    train, test = distinct_angles(train), distinct_angles(test)
    queries = search_by_example(kind(train), train_targets, kind(test), test_targets)
    for row, scores in enumerate(cosines(train, test)):
        relevant = train_targets == test_targets[row]
        if not relevant.any():
            assert all(getattr(queries, name)[row] == 0 for name in PER_QUERY)
            continue
        expected = average_precision_score(relevant, scores)
        assert queries.average_precision[row] == pytest.approx(expected, abs=1e-12)
        if n_train > 1:  # scikit-learn has no nDCG of one document
            expected = ndcg_score([relevant], [scores], k=5)
            assert queries.ndcg_at_5[row] == pytest.approx(expected, abs=1e-12)
    assert queries.n_without_relevant == np.sum(~np.isin(test_targets, train_targets))


@pytest.mark.parametrize("seed", range(6))
def test_precision_is_the_mean_over_all_orders_of_the_ties(seed: int) -> None:
    train, train_targets, test, test_targets = small_counts(seed, 5, 6)
    train, test = distinct_angles(train), distinct_angles(test)
    queries = search_by_example(train, train_targets, test, test_targets)
    for row, scores in enumerate(cosines(train, test)):
        relevant = train_targets == test_targets[row]
        orders = [list(o) for o in permutations(range(5)) if (np.diff(scores[list(o)]) <= 0).all()]
        for k, name in PRECISIONS.items():
            expected = np.mean([relevant[order[:k]].sum() / k for order in orders])
            assert getattr(queries, name)[row] == pytest.approx(expected, abs=1e-12)


def test_real_valued_features_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    train = rng.standard_normal((60, 7)).astype(np.float32)
    test = rng.standard_normal((20, 7)).astype(np.float32)
    train_targets, test_targets = rng.integers(0, 4, 60), rng.integers(0, 4, 20)
    for kind in (np.asarray, csr_matrix):
        queries = search_by_example(kind(train), train_targets, kind(test), test_targets)
        for row, scores in enumerate(cosines(train.astype(float), test.astype(float))):
            relevant = train_targets == test_targets[row]
            assert queries.average_precision[row] == pytest.approx(average_precision_score(relevant, scores))
            assert queries.ndcg_at_5[row] == pytest.approx(ndcg_score([relevant], [scores], k=5))
            nearest = np.argsort(-scores)[:3]
            assert queries.precision_at_3[row] == pytest.approx(relevant[nearest].mean())


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
@pytest.mark.parametrize("n_features", [3, 17, 200])
def test_order_of_training_documents_does_not_matter(kind: type, n_features: int) -> None:
    rng = np.random.default_rng(n_features)
    train = rng.standard_normal((300, n_features)).astype(np.float32)
    train[150:] = train[rng.integers(0, 150, 150)]  # copies, of other classes too
    train[::40] = 0
    train_targets, test_targets = rng.integers(0, 5, 300), rng.integers(0, 5, 40)
    test = rng.standard_normal((40, n_features)).astype(np.float32)
    expected = search_by_example(kind(train), train_targets, kind(test), test_targets)
    for _ in range(3):
        order = rng.permutation(300)
        shuffled = search_by_example(kind(train[order]), train_targets[order], kind(test), test_targets)
        assert_equal(shuffled, expected)


def test_dense_columns_of_a_sparse_matrix_are_exact_like_an_array() -> None:
    """Both add without rounding, so that the scores are the same to the bit, ties between copies included."""
    rng = np.random.default_rng(5)
    train, test = (rng.integers(1, 9, (n, 12)) * (rng.random((n, 12)) < 0.9) for n in (200, 30))
    rare = [(rng.random((n, 40)) < 0.03) * rng.integers(1, 4, (n, 40)) for n in (200, 30)]
    train, test = np.hstack([train, rare[0]]), np.hstack([test, rare[1]])
    train[100:] = train[rng.integers(0, 100, 100)]
    train_targets, test_targets = rng.integers(0, 5, 200), rng.integers(0, 5, 30)
    full = query_by_example._dense_columns(csr_matrix(train))
    assert full[:12].all() and not full[12:].any()
    expected = search_by_example(train, train_targets, test, test_targets)
    assert_equal(
        search_by_example(csr_matrix(train), train_targets, csr_matrix(test), test_targets), expected
    )


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_blocks_and_scale_do_not_matter(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    train, test = rng.standard_normal((90, 11)), rng.standard_normal((23, 11))
    targets, test_targets = rng.integers(0, 3, 90), rng.integers(0, 3, 23)
    expected = search_by_example(kind(train), targets, kind(test), test_targets)
    assert_equal(search_by_example(kind(train * 1024), targets, kind(test / 4), test_targets), expected)
    monkeypatch.setattr(query_by_example, "BLOCK_BYTES", 4 * 90 * 7)
    assert_equal(search_by_example(kind(train), targets, kind(test), test_targets), expected)


def test_of_many_documents_some_ask_for_all() -> None:
    assert asked(20_000, 60_000).tolist() == list(range(60_000))
    assert asked(700_000, 3_999).tolist() == list(range(3_999))
    rows = asked(140_000, 60_000)
    assert len(np.unique(rows)) == len(rows) == 4_000
    assert rows.tolist() == sorted(rows)
    assert np.bincount(rows // 6_000).min() > 320
    assert rows.tolist() == asked(20_001, 60_000).tolist()
    assert len(asked(25_000, 25_000)) == 4_000  # IMDb


def test_an_empty_document_ties_with_all() -> None:
    train, test = np.array([[1.0, 0], [0, 1], [1, 1], [0, 0]]), np.zeros((1, 2))
    queries = search_by_example(train, np.array([0, 0, 0, 1]), test, np.array([0]))
    assert queries.average_precision[0] == 0.75
    assert queries.precision_at_1[0] == 0.75
    assert queries.precision_at_10[0] == 0.3


def test_counts_of_any_integer_type_are_left_as_they_were() -> None:
    train, targets, test, test_targets = small_counts(1, 20, 5)
    counts, queries = csr_matrix(train.astype(np.int32)), csr_matrix(test.astype(np.int32))
    before = counts.data.copy()
    result = search_by_example(counts, targets, queries, test_targets)
    np.testing.assert_array_equal(counts.data, before)
    assert_equal(result, search_by_example(csr_matrix(train), targets, csr_matrix(test), test_targets))


def test_bad_input_is_named() -> None:
    X, y = np.ones((2, 3)), np.array([0, 1])
    with pytest.raises(ValueError, match="received 3 and 2"):
        search_by_example(X, y, np.ones((2, 2)), y)
    with pytest.raises(ValueError, match="both be dense or both be csr"):
        search_by_example(X, y, csr_matrix(X), y)
    with pytest.raises(ValueError, match=r"train must have one row a target.*received 2 and 1"):
        search_by_example(X, y[:1], X, y)
    with pytest.raises(ValueError, match=r"test must have one row a target.*received 0 and 0"):
        search_by_example(X, y, X[:0], y[:0])
    with pytest.raises(ValueError, match="test features must be finite"):
        search_by_example(X, y, X * np.nan, y)


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
@pytest.mark.parametrize("density", [0.1, 0.9])
def test_unit_vectors_that_are_made_again_rank_alike_to_the_bit(
    kind: type, density: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where there are too many training documents to keep: blocks of 7 or so, and of 3 queries."""
    rng = np.random.default_rng(1)
    train, test = (rng.normal(size=(n, 9)) * (rng.random((n, 9)) < density) for n in (50, 8))
    given = (
        kind(train.astype(np.float32)),
        np.arange(50) % 3,
        kind(test.astype(np.float32)),
        np.arange(8) % 3,
    )
    whole = search_by_example(*given)
    monkeypatch.setattr(query_by_example, "KEPT_BYTES", 0)
    monkeypatch.setattr(query_by_example, "MADE_BYTES", 500)
    monkeypatch.setattr(query_by_example, "MANY_SCORES", 4 * 50 * 3)
    assert_equal(search_by_example(*given), whole)
