"""The methods that classify by themselves: classes told apart, and each against an independent formula."""

import importlib
from statistics import mode
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from textbench.featurizers import complement_nb, knn, majority, nb, nb_svm, tfidf
from textbench.featurizers._classifiers import CONSTANT
from textbench.tasks import catalogue

METHODS = sorted(
    entry.module.rpartition(".")[2]
    for entry in catalogue.methods().values()
    if entry.is_classifier and entry.constant("INPUT") == "counts"
)
RNG = np.random.default_rng(7)
TOPICS = RNG.dirichlet(np.full(50, 0.1), size=4)


def documents_of(classes: np.ndarray) -> sp.csr_matrix:
    return sp.csr_matrix(RNG.poisson(20 * TOPICS[classes] + 0.05).astype(np.int32))


Y = RNG.integers(0, 3, size=90)
TEST_Y = RNG.integers(0, 3, size=40)
X, TEST = documents_of(Y), documents_of(TEST_Y)
NAMES = np.array([11, -3, 40])  # classes need not be 0, 1, 2, nor sorted
# Columns: label 0, label 1, both of no document, of all, and label 2.
INDICATOR = np.column_stack([Y == 0, Y == 1, Y < 0, Y >= 0, Y != 1]).astype(np.int8)


@pytest.fixture(params=METHODS)
def module(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(f"textbench.featurizers.{request.param}")


def built(module: Any, **params: Any) -> Any:
    """A method with a seed, if it takes one."""
    is_seeded = "random_state" in module.build().get_params()
    return module.build(**params, **({"random_state": 0} if is_seeded else {}))


def test_classes_are_told_apart(module: Any) -> None:
    settings = [
        {name: choice} for name, d in module.SEARCH_SPACE.items() for choice in getattr(d, "choices", ())
    ]
    for params in ({}, *settings):
        for y, truth in ((NAMES[Y], NAMES[TEST_Y]), (Y == 2, TEST_Y == 2)):
            wanted = 0.95 if module is not majority else 0.95 * np.mean(truth == mode(y.tolist()))
            assert np.mean(built(module, **params).fit(X, y).predict(TEST) == truth) >= wanted


def test_several_labels_one_against_the_rest(module: Any) -> None:
    method = built(module).fit(X, INDICATOR)
    scores, predicted = method.decision_function(TEST), method.predict(TEST)
    assert predicted.format == "csr" and predicted.dtype == np.int8
    assert (scores[:, [2]] <= scores).all() and (scores[:, [3]] >= scores).all()  # never seen; always seen
    if module is not majority:
        truth = np.column_stack([TEST_Y == 0, TEST_Y == 1, TEST_Y != 1])
        assert np.mean(predicted.toarray()[:, [0, 1, 4]] == truth) >= 0.95


def test_a_label_is_scored_as_if_alone(module: Any) -> None:
    together = built(module).fit(X, INDICATOR).decision_function(TEST)
    alone = built(module).fit(X, INDICATOR[:, [1]]).decision_function(TEST)
    assert alone.shape == (40, 1)
    np.testing.assert_allclose(alone[:, 0], together[:, 1], rtol=1e-12)


@pytest.mark.parametrize(
    ("module", "params"),
    [
        (nb, {"alpha": 0.0}),
        (nb, {"weighting": "bm25"}),
        (complement_nb, {"alpha": float("nan")}),
        (complement_nb, {"weighting": "tf"}),
        (nb_svm, {"alpha": -1}),
        (nb_svm, {"C": 0}),
        (nb_svm, {"beta": 1.5}),
        (nb_svm, {"weighting": None}),
        (knn, {"n_neighbors": 0}),
        (knn, {"n_neighbors": 2.5}),
        (knn, {"votes": "rank"}),
    ],
)
def test_the_refused_value_is_named(module: Any, params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"got {next(iter(params.values()))!r}"):
        module.build(**params).fit(X, Y)


def test_multinomial_nb_by_hand() -> None:
    # Manning, Raghavan, Schuetze (2008), example 13.1: Chinese Beijing Chinese; Chinese Chinese Shanghai;
    # Chinese Macao | Tokyo Japan Chinese, and the test document Chinese Chinese Chinese Tokyo Japan.
    counts = np.array([[2, 1, 0, 0, 0, 0], [2, 0, 1, 0, 0, 0], [1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 1, 1]])
    method = nb.build().fit(sp.csr_matrix(counts), np.array([1, 1, 1, 0]))
    odds = method.decision_function(sp.csr_matrix([[3, 0, 0, 0, 1, 1]]))
    china = 3 / 4 * (3 / 7) ** 3 * (1 / 14) * (1 / 14)
    other = 1 / 4 * (2 / 9) ** 3 * (2 / 9) * (2 / 9)
    np.testing.assert_allclose(odds, np.log(china / other), rtol=1e-12)


def test_complement_nb_reads_the_documents_outside_the_class() -> None:
    method = complement_nb.build(alpha=0.5, weighting="counts").fit(X, Y)
    outside = np.array([X[c != Y].toarray().sum(axis=0) + 0.5 for c in range(3)])
    expected = -np.log(outside / outside.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(method.decision_function(TEST), TEST.toarray() @ expected.T, rtol=1e-10)


def test_log_count_ratios_count_documents() -> None:
    weights = sp.csr_matrix([[0.5, 2.0, 0], [0, 3.0, 0.1], [0.7, 0, 0]])
    ratios = nb_svm.log_count_ratios(weights, np.array([True, True, False]), alpha=1.0)
    p, q = np.array([2, 3, 2]) / 7, np.array([2, 1, 1]) / 4
    np.testing.assert_allclose(ratios, np.log(p / q), rtol=1e-12)


def test_nb_svm_interpolates_to_multinomial_nb() -> None:
    # With beta = 0 all terms weigh alike, and the ratios of binary counts rank the documents: Naive Bayes.
    y = (Y == 0).astype(int)
    naive = nb.build(weighting="binary").fit(X, y).decision_function(TEST)
    ratios = nb_svm.build(beta=0.0, alpha=1.0, weighting="binary").fit(X, y).decision_function(TEST)
    assert np.corrcoef(naive, ratios)[0, 1] == pytest.approx(1.0, abs=1e-9)


def test_nb_svm_is_the_svm_on_scaled_terms() -> None:
    from sklearn.svm import LinearSVC

    y = Y == 1
    ratios = nb_svm.log_count_ratios(X, y, alpha=1.0)
    svm = LinearSVC(C=0.1, tol=1e-8, max_iter=100_000).fit((X.toarray() > 0) * ratios, y)
    expected = svm.decision_function((TEST.toarray() > 0) * ratios)
    ours = nb_svm.build(C=0.1, alpha=1.0, weighting="binary").fit(X, y.astype(int)).decision_function(TEST)
    np.testing.assert_allclose(ours, expected, atol=0.01 * np.abs(expected).max())


@pytest.mark.parametrize("votes", ["cosine", "equal"])
def test_knn_votes_by_brute_force(votes: str) -> None:
    weigher = tfidf.build().fit(X)
    cosines = (weigher.transform(TEST) @ weigher.transform(X).T).toarray()
    expected = np.zeros((40, 3))
    for row, scores in zip(expected, cosines, strict=True):
        for d in np.argsort(-scores)[:7]:
            row[Y[d]] += scores[d] if votes == "cosine" else 1.0
    expected /= expected.sum(axis=1, keepdims=True)
    ours = knn.build(n_neighbors=7, votes=votes).fit(X, Y).decision_function(TEST)
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_knn_without_a_common_term_gives_the_shares_of_the_classes() -> None:
    train = sp.csr_matrix(np.array([[1, 0, 0], [2, 0, 0], [0, 1, 0], [0, 3, 0]]))
    method = knn.build(n_neighbors=3).fit(train, np.array([0, 1, 1, 2]))
    scores = method.decision_function(sp.csr_matrix(np.array([[0, 0, 4], [0, 0, 0], [0, 1, 0]])))
    np.testing.assert_allclose(scores[:2], [[0.25, 0.5, 0.25]] * 2)
    # Two of the three neighbours share the term; the third has no say.
    np.testing.assert_allclose(scores[2], [0, 0.5, 0.5], atol=1e-6)


def test_majority_scores_are_shares() -> None:
    method = majority.build().fit(X, NAMES[Y])
    np.testing.assert_allclose(method.decision_function(TEST)[0], np.bincount(Y)[[1, 0, 2]] / 90)
    labels = sp.csr_matrix(majority.build().fit(X, INDICATOR).predict(TEST))
    assert (labels.toarray() == (INDICATOR.mean(axis=0) > 0.5)).all()


def test_constant_labels_score_beyond_any_margin() -> None:
    scores = nb.build().fit(X, INDICATOR).decision_function(TEST)
    assert (scores[:, 2] == -CONSTANT).all() and (scores[:, 3] == CONSTANT).all()


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_nb_svm_of_many_weights_is_that_of_few(n_classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimum is unique, whoever finds it: one class after another, or several at once."""
    rng = np.random.default_rng(n_classes)
    y = np.arange(240) % n_classes
    X = sp.csr_matrix(rng.poisson(0.2 + 0.5 * (np.arange(30) % n_classes == y[:, None])).astype(np.int32))
    monkeypatch.setattr(nb_svm, "TOLERANCE", 1e-6)
    few = nb_svm.build(beta=0.7).fit(X, y)
    monkeypatch.setattr(nb_svm, "LARGE", 0)
    monkeypatch.setattr(nb_svm, "LARGE_TOLERANCE", 1e-6)
    many, again = (nb_svm.build(beta=0.7).fit(X, y) for _ in range(2))
    np.testing.assert_allclose(many.coef_, few.coef_, atol=2e-5)
    np.testing.assert_allclose(many.intercept_, few.intercept_, atol=2e-5)
    assert many.coef_.tobytes() == again.coef_.tobytes()


@pytest.mark.parametrize("n_documents", [4, 90])
def test_of_coefficients_mostly_zero_the_others_alone_are_kept(n_documents: int) -> None:
    wide = sp.csr_matrix(sp.hstack([X[:n_documents], sp.csr_matrix((n_documents, 1000), dtype=X.dtype)]))
    for counts, is_sparse in ((wide, True), (X[:n_documents], None)):
        fitted = nb_svm.build().fit(counts, Y[:n_documents])
        kept = fitted.to_arrays()
        assert is_sparse is None or ("coef_" not in kept) is is_sparse
        assert (
            sum(value.nbytes for name, value in kept.items() if name.startswith("coef_"))
            <= fitted.coef_.nbytes
        )
        found = nb_svm.NBSVM.from_arrays(kept)
        assert (found.coef_ == fitted.coef_).all() and found.coef_.shape == fitted.coef_.shape
        assert found.decision_function(counts).tobytes() == fitted.decision_function(counts).tobytes()
    dense = complement_nb.build().fit(X, Y).to_arrays()
    assert "coef_" in dense
