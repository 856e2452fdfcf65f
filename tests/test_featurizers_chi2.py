"""Chi-squared selection: the statistic against contingency tables, the selection by hand, one label or several."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2_contingency
from sklearn.feature_selection import chi2 as presence_chi2

from textbench.featurizers.chi2 import ChiSquared, chi_squared
from textbench.featurizers.tfidf import TfIdf

RNG = np.random.default_rng(11)
Y = RNG.integers(0, 3, size=80)
COUNTS = RNG.poisson(0.3 + 1.2 * (Y[:, None] == np.arange(24) % 5), size=(80, 24))
X = sp.csr_matrix(COUNTS)
LABELS = np.column_stack([Y == 0, Y != 1, RNG.random(80) < 0.3]).astype(np.int8)


def statistic(has_term: np.ndarray, is_member: np.ndarray) -> float:
    table = [[np.sum((has_term == i) & (is_member == j)) for j in (True, False)] for i in (True, False)]
    return float(chi2_contingency(table, correction=False).statistic)


def scores(y: np.ndarray, average: str) -> np.ndarray:
    members = y.T if y.ndim == 2 else np.array([y == one for one in np.unique(y)])
    found = np.array([[statistic(term, column > 0) for term in COUNTS.T > 0] for column in members])
    return found.max(axis=0) if average == "max" else members.mean(axis=1) @ found


@pytest.mark.parametrize("y", [Y, LABELS], ids=["classes", "labels"])
@pytest.mark.parametrize("average", ["max", "mean"])
def test_scores_are_those_of_contingency_tables(y: np.ndarray, average: str) -> None:
    expected = scores(y, average)
    for given in [y] if y.ndim == 1 else [y, sp.csr_matrix(y)]:
        method = ChiSquared(n_terms=7, average=average).fit(X, given)
        assert method.selected_.tolist() == sorted(np.argsort(-expected)[:7].tolist())
        np.testing.assert_allclose(method.scores_, expected[method.selected_], rtol=1e-10)


def test_the_statistic_is_scikit_learns_of_presence_with_the_documents_that_lack_the_term() -> None:
    """Its chi2 sums over documents with a term alone; those without add N / (N - n) times as much in all."""
    has_term, is_member = COUNTS > 0, Y == 2
    n = has_term.sum(axis=0)
    found = chi_squared(has_term[is_member].sum(axis=0), n, is_member.sum(), len(Y))
    np.testing.assert_allclose(
        found, presence_chi2(has_term, is_member)[0] * len(Y) / (len(Y) - n), rtol=1e-10
    )


def test_terms_that_tell_nothing_come_last_the_frequent_first() -> None:
    # Term 0 is the class, 1 is in all documents, 2 in none, 3 and 4 are as frequent in either class.
    counts = sp.csr_matrix([[1, 1, 0, 1, 0], [2, 1, 0, 0, 0], [0, 3, 0, 1, 0], [0, 1, 0, 0, 0]])
    order = [ChiSquared(n_terms=n).fit(counts, np.array([0, 0, 1, 1])) for n in (1, 2, 3, 9)]
    assert [method.selected_.tolist() for method in order] == [[0], [0, 1], [0, 1, 3], [0, 1, 2, 3, 4]]
    assert order[-1].scores_.tolist() == [4.0, 0, 0, 0, 0]  # N, where a term is a class


def test_features_are_tfidf_of_the_selected_terms_alone() -> None:
    method = ChiSquared(n_terms=6).fit(X[:60], Y[:60])
    selected = X[:, method.selected_]
    expected = TfIdf().fit(selected[:60]).transform(selected[60:])
    np.testing.assert_array_equal(method.transform(X[60:]).toarray(), expected.toarray())
    names = [f"t{i}" for i in range(24)]
    assert list(method.get_feature_names_out(names)) == [names[i] for i in method.selected_]


@pytest.mark.parametrize(("given", "said"), [(None, "none"), (Y[:-1], "those of 79")])
def test_documents_without_labels_are_refused(given: np.ndarray | None, said: str) -> None:
    with pytest.raises(ValueError, match=f"a label is needed for each of 80 documents: got {said}"):
        ChiSquared().fit(X, given)
