"""Every method that classifies by itself keeps the contract; each against an independent formula."""

import importlib
import inspect
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from optuna.distributions import CategoricalDistribution
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from featurizers import complement_nb, knn, majority, nb, nb_svm, tfidf
from featurizers._classifiers import CONSTANT
from featurizers._contract import stored_and_read
from tasks import catalogue

METHODS = sorted(
    entry.module.partition(".")[2]
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
    return importlib.import_module(f"featurizers.{request.param}")


def same(a: Any, b: Any) -> bool:
    a, b = (m.toarray() if sp.issparse(m) else m for m in (a, b))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_the_classifiers_are_found() -> None:
    assert {"nb", "complement_nb", "nb_svm", "knn", "majority"} <= set(METHODS)


def test_search_space_holds_the_defaults(module: Any) -> None:
    parameters = inspect.signature(type(module.build())).parameters
    for name, distribution in module.SEARCH_SPACE.items():
        assert distribution._contains(distribution.to_internal_repr(parameters[name].default))


def test_unknown_parameter_is_refused_and_clone_copies(module: Any) -> None:
    with pytest.raises(TypeError, match="no_such_parameter"):
        module.build(no_such_parameter=1)
    fitted = module.build().fit(X, Y)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(TEST)
    with pytest.raises(NotFittedError):
        copy.to_arrays()


def test_classes_are_told_apart(module: Any) -> None:
    method = module.build().fit(X, NAMES[Y])
    predicted, scores = method.predict(TEST), method.decision_function(TEST)
    assert method.classes_.tolist() == [-3, 11, 40]
    assert scores.shape == (40, 3) and np.isfinite(scores).all()
    assert (predicted == method.classes_[scores.argmax(axis=1)]).all()
    wanted = 1.0 if module is not majority else np.mean(np.bincount(Y).argmax() == TEST_Y)
    assert np.mean(predicted == NAMES[TEST_Y]) >= 0.95 * wanted


def test_two_classes_have_one_score(module: Any) -> None:
    method = module.build().fit(X, np.where(Y == 2, 8, 5))
    scores = method.decision_function(TEST)
    assert scores.shape == (40,)
    assert (method.predict(TEST) == np.where(scores > 0, 8, 5)).all()
    if module is not majority:
        assert np.mean((scores > 0) == (TEST_Y == 2)) >= 0.95


def test_one_class_is_predicted(module: Any) -> None:
    method = module.build().fit(X, np.full(90, 6))
    assert (method.predict(TEST) == 6).all()
    assert method.decision_function(TEST).shape == (40,)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_several_labels_one_against_the_rest(module: Any, form: Any) -> None:
    method = module.build().fit(X, form(INDICATOR))
    scores, predicted = method.decision_function(TEST), method.predict(TEST)
    assert scores.shape == (40, 5) and np.isfinite(scores).all()
    assert predicted.format == "csr" and predicted.dtype == np.int8
    assert same(predicted, (scores > 0).astype(np.int8))
    assert (scores[:, 2] < 0).all() and (scores[:, 3] > 0).all()  # never seen; always seen
    assert (scores[:, [2]] <= scores).all() and (scores[:, [3]] >= scores).all()
    if module is not majority:
        truth = np.column_stack([TEST_Y == 0, TEST_Y == 1, TEST_Y != 1])
        assert np.mean(predicted.toarray()[:, [0, 1, 4]] == truth) >= 0.95


def test_a_label_is_scored_as_if_alone(module: Any) -> None:
    together = module.build().fit(X, INDICATOR).decision_function(TEST)
    alone = module.build().fit(X, INDICATOR[:, [1]]).decision_function(TEST)
    assert alone.shape == (40, 1)
    np.testing.assert_allclose(alone[:, 0], together[:, 1], rtol=1e-12)


@pytest.mark.parametrize("y", [NAMES[Y], Y % 2, np.zeros(90, int), INDICATOR], ids=["3", "2", "1", "labels"])
def test_export_without_pickle_gives_the_same_bits(module: Any, y: np.ndarray) -> None:
    method = module.build().fit(X, y)
    arrays = stored_and_read(method.to_arrays())
    again = type(method).from_arrays(arrays)
    assert again.get_params() == method.get_params()
    assert same(again.decision_function(TEST), method.decision_function(TEST))
    assert same(again.predict(TEST), method.predict(TEST))
    assert arrays.keys() == again.to_arrays().keys()


def test_every_choice_of_the_search_space_classifies_and_exports(module: Any) -> None:
    for name, distribution in module.SEARCH_SPACE.items():
        if isinstance(distribution, CategoricalDistribution):
            for choice in distribution.choices:
                method = module.build(**{name: choice}).fit(X, Y)
                assert np.mean(method.predict(TEST) == TEST_Y) >= 0.9
                again = type(method).from_arrays(stored_and_read(method.to_arrays()))
                assert same(again.decision_function(TEST), method.decision_function(TEST))


def test_same_bits_again_and_input_untouched(module: Any) -> None:
    raw = sp.csr_matrix(
        ([1, 2, 0, 3, 1, 4], [2, 0, 1, 0, 0, 3], [0, 3, 5, 6]), shape=(3, 4), dtype=np.float64
    )
    clean = sp.csr_matrix(np.array([[2.0, 0, 1, 0], [4, 0, 0, 0], [0, 0, 0, 4]]))
    before = [array.tobytes() for array in (raw.data, raw.indices, raw.indptr)]
    y = np.array([0, 1, 1])
    scores = module.build().fit(raw, y).decision_function(raw)
    assert [array.tobytes() for array in (raw.data, raw.indices, raw.indptr)] == before
    assert same(scores, module.build().fit(clean, y).decision_function(clean))
    assert same(*(module.build().fit(X, Y).decision_function(TEST) for _ in range(2)))


def test_empty_documents_and_unseen_terms_are_finite(module: Any) -> None:
    train, test = X.toarray(), TEST.toarray()
    train[3], test[0] = 0, 0
    train[:, :4] = 0
    test[1], test[1, :4] = 0, 2  # a document of nothing but unseen terms
    for y in (Y, INDICATOR):
        method = module.build().fit(sp.csr_matrix(train), y)
        assert np.isfinite(method.decision_function(sp.csr_matrix(test))).all()
        assert method.predict(sp.csr_matrix(test)).shape[0] == 40


@pytest.mark.parametrize("counts", [np.zeros((4, 3)), np.ones((4, 3)), np.ones((4, 1))], ids=str)
def test_degenerate_collections_are_finite(module: Any, counts: np.ndarray) -> None:
    documents, y = sp.csr_matrix(counts.astype(np.int32)), np.array([0, 1, 1, 2])
    assert np.isfinite(module.build().fit(documents, y).decision_function(documents)).all()


def test_bad_input_is_refused(module: Any) -> None:
    with pytest.raises(ValueError, match="got 90 rows, 89 targets"):
        module.build().fit(X, Y[:89])
    with pytest.raises(ValueError, match="negative: got -1"):
        module.build().fit(-X, Y)
    with pytest.raises(ValueError, match="49 features"):
        module.build().fit(X, Y).predict(TEST[:, :49])


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
