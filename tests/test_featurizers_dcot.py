"""Dense cohort of terms, against explicit corruption and against equation (4) written out."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from textbench.featurizers import dcot
from textbench.featurizers._dcot.kernels import multiply
from textbench.featurizers._dcot.solvers import FirstLayer, deeper_layer, solve_positive_definite
from textbench.featurizers.dcot import DenseCohortOfTerms, prototypes

SOLVERS = ("primal", "dual", "cg")


def zipf_counts(n_documents: int, n_terms: int, seed: int = 0, mean_length: float = 12.0) -> sp.csr_matrix:
    """Documents of Zipf-distributed words with two topics, so that terms occur together."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, n_terms + 1)
    topics = np.array([shares * rng.gamma(0.5, size=n_terms) for _ in range(2)])
    topics /= topics.sum(axis=1, keepdims=True)
    return sp.csr_matrix(rng.poisson(mean_length * topics[rng.integers(2, size=n_documents)]))


WIDE, TALL, TEST = zipf_counts(40, 90), zipf_counts(150, 30), zipf_counts(9, 90, seed=8)


def closed_form(
    X: np.ndarray, xbar: np.ndarray, noise: float, ridge: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Equations (4) to (6), element by element: documents are columns, the constant feature is the last row."""
    with_bias = np.vstack([X.T, np.ones(len(X))])
    S = with_bias @ with_bias.T
    q = np.append(np.full(X.shape[1], 1 - noise), 1.0)
    Q, R = np.empty_like(S), np.empty((xbar.shape[1], len(q)))
    for a in range(len(q)):
        for b in range(len(q)):
            Q[a, b] = S[a, a] * q[a] if a == b else S[a, b] * q[a] * q[b]
    for b in range(len(q)):
        R[:, b] = xbar.T @ with_bias[b] * q[b]
    W = R @ np.linalg.pinv(Q + ridge * np.diag(np.append(np.ones(X.shape[1]), 0)), hermitian=True)
    return W[:, :-1], W[:, -1]


def fitted(X: sp.csr_matrix, **params: object) -> DenseCohortOfTerms:
    settings = {"n_prototypes": 8, "dtype": "float64", "tol": 1e-11, "max_iter": 2000, "n_layers": 1}
    return dcot.build(**(settings | params)).fit(X)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("noise", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("X", [WIDE, TALL], ids=["wide", "tall"])
def test_first_layer_is_equation_4(X: sp.csr_matrix, ridge: float, noise: float, solver: str) -> None:
    method = fitted(X, noise=noise, solver=solver, ridge=ridge)
    W, b = closed_form(X.toarray(), X[:, method.prototypes_].toarray(), noise, ridge)
    np.testing.assert_allclose(method.weights_[0], W, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(method.biases_[0], b, rtol=1e-7, atol=1e-8)


def test_solvers_agree_to_seven_digits() -> None:
    primal, dual = (
        fitted(zipf_counts(200, 300, seed), solver=solver) for seed, solver in ((3, "primal"), (3, "dual"))
    )
    difference = np.linalg.norm(primal.weights_[0] - dual.weights_[0])
    assert difference <= 1e-7 * np.linalg.norm(primal.weights_[0])
    np.testing.assert_allclose(primal.biases_[0], dual.biases_[0], rtol=1e-7, atol=1e-9)


def test_marginalised_corruption_is_the_mean_of_explicit_corruptions() -> None:
    # Equation (2) with m = 200,000 corruptions of each document, the bias's constant feature never corrupted.
    rng = np.random.default_rng(5)
    X = np.array([[2, 1, 0, 1], [0, 3, 1, 0], [1, 0, 2, 1], [0, 1, 0, 0], [4, 1, 1, 0]], dtype=np.float64)
    noise, m = 0.6, 200_000
    halves = []
    for _ in range(2):
        Q, R = np.zeros((5, 5)), np.zeros((2, 5))
        for x in X:
            kept = np.hstack([x * (rng.random((m // 2, 4)) >= noise), np.ones((m // 2, 1))])
            Q += kept.T @ kept
            R += np.outer(x[:2], kept.sum(axis=0))
        halves.append(R @ np.linalg.inv(Q))
    sampled, error = np.mean(halves, axis=0), np.abs(halves[0] - halves[1]).max()
    method = fitted(sp.csr_matrix(X), n_prototypes=2, noise=noise, solver="dual")
    assert list(method.prototypes_) == [0, 1]
    ours = np.column_stack([method.weights_[0], method.biases_[0]])
    assert np.abs(ours - sampled).max() <= 3 * error < 0.02


def test_the_bias_is_what_an_empty_document_gets() -> None:
    method = fitted(WIDE)
    (z,) = method.layers(sp.csr_matrix((1, WIDE.shape[1])))
    np.testing.assert_allclose(z[0], np.tanh(method.biases_[0]), rtol=1e-12)


def test_reconstruction_is_unbiased() -> None:
    # The bias is never corrupted, so the expected reconstruction has the prototypes' own mean.
    method = fitted(WIDE, noise=0.3)
    expected = 0.7 * WIDE.toarray().mean(axis=0) @ method.weights_[0].T + method.biases_[0]
    np.testing.assert_allclose(expected, WIDE[:, method.prototypes_].toarray().mean(axis=0), rtol=1e-9)


def test_limits_of_the_noise() -> None:
    # Almost none: the prototypes are read off. Almost all: each term alone votes, by its own regression coefficient.
    x = TALL.toarray()
    chosen = fitted(TALL).prototypes_
    copied = fitted(TALL, noise=1e-6, solver="primal").weights_[0]
    np.testing.assert_allclose(copied, np.eye(30)[chosen], atol=1e-4)
    scatter = np.maximum((x**2).sum(axis=0), 1)  # a term that no document has stays 0
    votes = (x - x.mean(axis=0))[:, chosen].T @ x / scatter
    for solver in SOLVERS:
        np.testing.assert_allclose(fitted(TALL, noise=1 - 1e-7, solver=solver).weights_[0], votes, atol=1e-5)


@pytest.mark.parametrize("noise", [0.2, 0.8])
def test_deeper_layers_read_and_reconstruct_the_layer_before(noise: float) -> None:
    method = fitted(WIDE, noise=noise, n_layers=3, ridge=0.1)
    z1, z2, z3 = method.layers(WIDE)
    assert [W.shape for W in method.weights_] == [(8, 90), (8, 8), (8, 8)]
    for k, (before, after) in enumerate([(z1, z2), (z2, z3)], start=1):
        W, b = closed_form(before, before, noise, ridge=0.1)
        np.testing.assert_allclose(method.weights_[k], W, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(method.biases_[k], b, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(after, np.tanh(before @ W.T + b), rtol=1e-7, atol=1e-9)


def test_a_feature_that_is_always_zero_stays_zero() -> None:
    Z = np.random.default_rng(2).normal(size=(30, 4))
    Z[:, 2] = 0
    solution = deeper_layer(Z, noise=0.5, ridge=0.0)
    assert not solution.weights[:, 2].any() and not solution.weights[2].any() and solution.bias[2] == 0
    W, b = closed_form(Z, Z, noise=0.5)
    np.testing.assert_allclose(solution.weights, W, atol=1e-9)
    np.testing.assert_allclose(solution.bias, b, atol=1e-9)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
def test_conjugate_gradients_keep_their_tolerance(tol: float) -> None:
    X = zipf_counts(200, 300, seed=3)
    method, exact = fitted(X, solver="cg", tol=tol), fitted(X, solver="dual")
    assert 0 < method.n_iter_ < 60 and 0 < method.residual_ <= 1.01 * tol
    # The system's smallest eigenvalue is 1 - p = 0.8 and its largest some 20: the error is near the residual.
    error = np.linalg.norm(method.weights_[0] - exact.weights_[0]) / np.linalg.norm(exact.weights_[0])
    assert 1e-3 * tol < error < 10 * tol


def test_conjugate_gradients_say_when_they_did_not_arrive() -> None:
    with pytest.warns(ConvergenceWarning, match="after 2 of at most 2 steps, above tol 1.0e-09"):
        method = fitted(WIDE, solver="cg", tol=1e-9, max_iter=2)
    assert method.n_iter_ == 2 and method.residual_ > 1e-9


def test_residual_is_that_of_the_system_in_the_docstring() -> None:
    method = fitted(WIDE, solver="cg", tol=0.05, noise=0.5)
    x = WIDE.toarray() - WIDE.toarray().mean(axis=0)
    scatter = (WIDE.toarray() ** 2).sum(axis=0)
    # W Lambda = M X: the rows of M come back by least squares, as there are fewer documents than terms.
    present = scatter > 0
    M = np.linalg.lstsq(
        WIDE.toarray()[:, present].T, (method.weights_[0] * scatter)[:, present].T, rcond=None
    )[0]
    M -= M.mean(axis=0)
    A = 0.5 * x[:, present] / scatter[present] @ x[:, present].T + 0.5 * np.eye(40)
    T = x[:, method.prototypes_]
    residuals = np.linalg.norm(T - A @ M, axis=0) / np.linalg.norm(T, axis=0)
    assert method.residual_ == pytest.approx(residuals.max(), rel=1e-6)


def test_single_precision_is_close_to_double() -> None:
    X = zipf_counts(700, 900, seed=4, mean_length=30)  # two panels of the factorisation
    exact = fitted(X, n_prototypes=70, solver="primal").weights_[0]
    for solver in ("dual", "cg"):
        W = fitted(X, n_prototypes=70, solver=solver, dtype="float32", tol=1e-5).weights_[0]
        assert W.dtype == np.float32
        assert np.linalg.norm(W - exact) < 1e-4 * np.linalg.norm(exact)


def test_cholesky_by_panels_solves() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(1100, 1100))
    A, M = root @ root.T / 1100 + np.eye(1100), rng.normal(size=(1100, 5))
    expected = np.linalg.solve(A, M)
    A[np.triu_indices(1100, 1)] = np.nan  # only the lower triangle is read
    solve_positive_definite(A, M)
    np.testing.assert_allclose(M, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_product(dtype: type) -> None:
    A = sp.random_array((70, 50), density=0.2, format="csr", rng=np.random.default_rng(0), dtype=dtype)
    B = np.random.default_rng(1).normal(size=(50, 9)).astype(dtype)
    product = multiply(sp.csr_matrix(A), B)
    assert product.dtype == dtype
    np.testing.assert_allclose(product, A.toarray() @ B, atol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("solver", SOLVERS)
def test_terms_that_no_document_has_count_for_nothing(solver: str) -> None:
    gaps = WIDE.toarray()
    gaps[:, [3, 20, 89]] = 0
    filled = np.delete(gaps, [3, 20, 89], axis=1)
    ours, theirs = (fitted(sp.csr_matrix(counts), solver=solver, ridge=0.2) for counts in (gaps, filled))
    assert not ours.weights_[0][:, [3, 20, 89]].any()
    np.testing.assert_allclose(
        np.delete(ours.weights_[0], [3, 20, 89], axis=1), theirs.weights_[0], atol=1e-8
    )
    unseen = sp.csr_matrix((np.ones(3), ([0, 0, 0], [3, 20, 89])), shape=(1, 90))
    np.testing.assert_array_equal(ours.layers(unseen)[0], ours.layers(unseen * 0)[0])


@pytest.mark.parametrize("solver", SOLVERS)
def test_empty_and_duplicate_documents(solver: str) -> None:
    X = sp.csr_matrix(sp.vstack([WIDE, WIDE[:10], WIDE[:10], sp.csr_matrix((3, 90))]))
    W, b = closed_form(X.toarray(), X[:, fitted(X).prototypes_].toarray(), 0.8)
    method = fitted(X, solver=solver)
    np.testing.assert_allclose(method.weights_[0], W, atol=1e-8)
    np.testing.assert_allclose(method.biases_[0], b, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_document_is_reconstructed_by_the_bias(solver: str) -> None:
    method = fitted(sp.csr_matrix([[3.0, 0.0, 1.0, 2.0]]), solver=solver)
    assert list(method.prototypes_) == [0, 3, 2]
    np.testing.assert_allclose(method.weights_[0], 0, atol=1e-12)
    np.testing.assert_allclose(method.biases_[0], [3, 2, 1], rtol=1e-12)


@pytest.mark.parametrize("n_prototypes", [30, 1000])
def test_as_many_prototypes_as_terms(n_prototypes: int) -> None:
    X = TALL[:, np.flatnonzero(TALL.sum(axis=0))]
    method = fitted(X, n_prototypes=n_prototypes)
    assert sorted(method.prototypes_) == list(range(X.shape[1]))
    W, _ = closed_form(X.toarray(), X[:, method.prototypes_].toarray(), 0.8)
    np.testing.assert_allclose(method.weights_[0], W, atol=1e-8)


def test_prototype_rules_on_a_corpus_that_tells_them_apart() -> None:
    # Term 0 is everywhere, term 1 often but in one document, term 2 in half of them, alone.
    X = sp.csr_matrix([[1, 9, 0, 1], [1, 0, 3, 1], [2, 0, 0, 0], [1, 0, 1, 0]])
    assert list(prototypes(X, "count", 4)) == [1, 0, 2, 3]
    assert list(prototypes(X, "df", 4)) == [0, 2, 3, 1]
    mass = dcot.TfIdf().fit_transform(X).toarray().sum(axis=0)
    assert list(prototypes(X, "tfidf", 4)) == list(np.argsort(-mass))


def test_one_gram_matrix_serves_every_noise_level_and_depth() -> None:
    build = functools.partial(dcot.build, n_prototypes=8, solver="dual")
    path = list(build(n_layers=3).fit_path(WIDE, [0.3, 0.6, 0.9]))
    for (method, layers), noise in zip(path, [0.3, 0.6, 0.9], strict=True):
        np.testing.assert_array_equal(layers, method.layers(WIDE))
        for n_layers in (1, 2, 3):
            alone = build(n_layers=n_layers, noise=noise).fit(WIDE)
            shallower = method.shallower(n_layers)
            assert shallower.get_params() == alone.get_params()
            assert shallower.transform(TEST).toarray().tobytes() == alone.transform(TEST).toarray().tobytes()
    with pytest.raises(ValueError, match="1 to 3, as many as are fitted: got 4"):
        path[0][0].shallower(4)


def test_features_are_the_input_and_every_layer() -> None:
    method = dcot.build(n_prototypes=8, n_layers=2).fit(WIDE)
    z1, z2 = method.layers(TEST)
    np.testing.assert_array_equal(method.transform(TEST).toarray(), np.hstack([TEST.toarray(), z1, z2]))
    names = list(method.get_feature_names_out())
    assert names[:2] == ["x0", "x1"]
    assert names[90] == f"z1_x{method.prototypes_[0]}" and names[-1] == f"z2_x{method.prototypes_[-1]}"
    dense = dcot.build(n_prototypes=8, n_layers=2, include_input=False).fit(WIDE)
    np.testing.assert_array_equal(dense.transform(TEST), np.hstack([z1, z2]))
    assert list(dense.get_feature_names_out()) == names[90:]


def test_weighted_input_is_what_is_corrupted_and_reconstructed() -> None:
    method = fitted(WIDE, weighting="tfidf", noise=0.6, n_layers=1)
    x = dcot.TfIdf().fit(WIDE).transform(WIDE).toarray().astype(np.float64)
    assert list(method.prototypes_) == list(fitted(WIDE).prototypes_)  # ranked by counts all the same
    W, b = closed_form(x, x[:, method.prototypes_], 0.6)
    np.testing.assert_allclose(method.weights_[0], W, atol=1e-8)
    np.testing.assert_allclose(method.layers(WIDE)[0], np.tanh(x @ W.T + b), atol=1e-8)
    np.testing.assert_allclose(method.transform(WIDE).toarray()[:, :90], x, rtol=1e-6)


def test_without_squashing_the_layers_are_linear() -> None:
    method = fitted(WIDE, squash=False, n_layers=2)
    z1, z2 = method.layers(TEST)
    np.testing.assert_allclose(z1, TEST @ method.weights_[0].T + method.biases_[0], rtol=1e-12)
    W, b = closed_form(method.layers(WIDE)[0], method.layers(WIDE)[0], 0.8)
    np.testing.assert_allclose(z2, z1 @ W.T + b, rtol=1e-7, atol=1e-8)


def test_normalised_blocks_have_unit_length_and_nothing_for_an_empty_document() -> None:
    plain, normed = (fitted(WIDE, block_norm=norm, n_layers=2, weighting="tfidf") for norm in (False, True))
    documents = sp.csr_matrix(sp.vstack([TEST, sp.csr_matrix((1, 90))]))
    features = normed.transform(documents).toarray()
    assert not features[-1].any()
    blocks = np.split(features[:-1], [90, 98], axis=1)
    for block in blocks:
        np.testing.assert_allclose(np.linalg.norm(block, axis=1), 1, rtol=1e-6)
    empty = plain.layers(sp.csr_matrix((1, 90)))
    for block, z, bias in zip(blocks[1:], plain.layers(TEST), empty, strict=True):
        expected = (z - bias) / np.linalg.norm(z - bias, axis=1, keepdims=True)
        np.testing.assert_allclose(block, expected, atol=1e-6)


def test_auto_takes_the_cheapest_of_its_estimates() -> None:
    few_terms, few_documents = zipf_counts(3000, 20), zipf_counts(30, 3000)
    assert FirstLayer(few_terms.astype(float), np.arange(10)).cheapest(0.2, 0.0, 1e-4) == "primal"
    assert FirstLayer(few_documents.astype(float), np.arange(10)).cheapest(0.2, 0.0, 1e-4) == "dual"
    assert fitted(few_documents, solver="auto").solver_ == "dual"
    large = zipf_counts(3000, 6000, mean_length=40).astype(float)
    assert FirstLayer(large, np.arange(300)).cheapest(0.1, 0.0, 1e-4) == "cg"


def test_columns_of_one_word_documents() -> None:
    terms = [f"term{i}" for i in range(90)]
    method = fitted(WIDE, n_layers=2)
    headings, columns = zip(*method.term_columns(terms, ["term4", "term7"], 3), strict=True)
    assert headings == ("(empty document)", "term4", "term7")
    empty = method.layers(sp.csr_matrix((1, 90)))[-1][0]
    best = np.argsort(-empty)[:3]
    assert columns[0] == [(terms[method.prototypes_[k]], pytest.approx(empty[k])) for k in best]
    word = method.layers(sp.csr_matrix(([1], ([0], [7])), shape=(1, 90)))[-1][0] - empty
    best = np.argsort(-word)[:3]
    assert columns[2] == [(terms[method.prototypes_[k]], pytest.approx(word[k])) for k in best]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"noise": 0}, "noise must be a number above 0 and below 1: got 0"),
        ({"noise": 1.0}, "noise must be a number above 0 and below 1: got 1.0"),
        ({"noise": float("nan")}, "got nan"),
        ({"n_prototypes": 0}, "n_prototypes must be a whole number from 1: got 0"),
        ({"n_layers": 1.5}, "n_layers must be a whole number from 1: got 1.5"),
        ({"max_iter": 0}, "max_iter must be a whole number from 1: got 0"),
        ({"tol": 0.0}, "tol must be a number above 0: got 0.0"),
        ({"ridge": -1.0}, "ridge must be a number from 0: got -1.0"),
        ({"solver": "qr"}, "solver must be one of auto, primal, dual, cg: got 'qr'"),
        ({"prototype_rule": "idf"}, "prototype_rule must be one of count, df, tfidf: got 'idf'"),
        ({"weighting": "idf"}, "weighting must be one of counts, tfidf: got 'idf'"),
        ({"dtype": "float16"}, "dtype must be one of float32, float64: got 'float16'"),
    ],
)
def test_parameters_outside_their_range_are_refused(params: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dcot.build(**params).fit(WIDE)
