"""Every ranker against its formula written out document by document, its limiting cases, and the common contract."""

import importlib
import inspect
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import textbench.evaluation.rankers
from textbench.evaluation.rankers import (
    CollectionIndex,
    bm25,
    cosine,
    cosines,
    lm,
    lm_features,
    lm_linear,
    lm_pv,
    mb,
    mb_features,
)

FILES = sorted(Path(textbench.evaluation.rankers.__file__).parent.glob("[!_]*.py"))
N_DOCUMENTS, N_QUERIES, N_TERMS = 40, 6, 30


@pytest.fixture(scope="module")
def index() -> CollectionIndex:
    rng = np.random.default_rng(0)
    documents = rng.poisson(0.5, (N_DOCUMENTS, N_TERMS)).astype(np.int32)
    documents[:, 0] += 1
    documents[7] = 0  # an empty document
    queries = rng.poisson(0.12, (N_QUERIES, N_TERMS)).astype(np.int32)
    queries[:, 0] = 0
    queries[0, 3:6] = (1, 2, 1)  # a word twice
    queries[5] = 0  # a query without a known word
    features = rng.normal(size=(N_DOCUMENTS, 8)).astype(np.float32)
    asked = rng.normal(size=(N_QUERIES, 8)).astype(np.float32)
    asked[5] = 0
    words = rng.normal(size=(N_TERMS, 8)).astype(np.float32)
    words[2] = 0  # a word without a vector
    return CollectionIndex(sp.csr_matrix(documents), sp.csr_matrix(queries), features, asked, words)


def table(matrix: sp.csr_matrix) -> list[list[int]]:
    return matrix.toarray().tolist()


def dirichlet(index: CollectionIndex, d: int, w: int, mu: float) -> float:
    documents = table(index.documents)
    background = sum(row[w] for row in documents) / sum(map(sum, documents))
    return (documents[d][w] + mu * background) / (sum(documents[d]) + mu)


def query_model(index: CollectionIndex, q: int) -> list[float]:
    counts = table(index.queries)[q]
    return [count / max(1, sum(counts)) for count in counts]


def linear(index: CollectionIndex, q: int, d: int, mu: float, model: list[float] | None = None) -> float:
    shares = query_model(index, q) if model is None else model
    return sum(share * dirichlet(index, d, w, mu) for w, share in enumerate(shares) if share)


def cosine_of(first: np.ndarray, second: np.ndarray) -> float:
    norms = math.hypot(*first) * math.hypot(*second)
    return float(first @ second) / norms if norms else 0.0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
class TestContract:
    def test_file(self, path: Path) -> None:
        module = importlib.import_module(f"textbench.evaluation.rankers.{path.stem}")
        assert "Source:" in module.__doc__
        parameters = [
            p for p in inspect.signature(module.score).parameters.values() if p.kind is p.KEYWORD_ONLY
        ]
        defaults = {p.name: p.default for p in parameters}
        assert module.SEARCH_SPACE.keys() == defaults.keys()
        for name, distribution in module.SEARCH_SPACE.items():
            assert distribution.low <= defaults[name] <= distribution.high
        assert set(module.NEEDS) <= {"features", "term_vectors"}

    def test_scores(self, path: Path, index: CollectionIndex) -> None:
        module = importlib.import_module(f"textbench.evaluation.rankers.{path.stem}")
        before = [
            table(index.documents), table(index.queries), index.document_features.copy(),
            index.query_features.copy(),
        ]  # fmt: skip
        scores = module.score(index)
        assert scores.shape == (N_QUERIES, N_DOCUMENTS) and scores.dtype == np.float32
        assert not np.isnan(scores).any() and not np.isposinf(scores).any()
        assert np.isneginf(scores[5]).all(), "a query without a known word retrieves nothing"
        assert np.isfinite(scores[0]).any()
        assert np.array_equal(scores, module.score(index))
        after = [
            table(index.documents), table(index.queries), index.document_features, index.query_features
        ]  # fmt: skip
        assert all(np.array_equal(first, second) for first, second in zip(before, after, strict=True))

    def test_the_order_of_documents_does_not_matter(self, path: Path, index: CollectionIndex) -> None:
        module = importlib.import_module(f"textbench.evaluation.rankers.{path.stem}")
        order = np.random.default_rng(1).permutation(N_DOCUMENTS)
        shuffled = CollectionIndex(
            index.documents[order], index.queries, index.document_features[order], index.query_features,
            index.term_vectors,
        )  # fmt: skip
        assert module.score(shuffled) == pytest.approx(module.score(index)[:, order], rel=1e-4, abs=1e-6)


def test_bm25_is_its_formula(index: CollectionIndex) -> None:
    k1, b = 1.4, 0.6
    documents, queries = table(index.documents), table(index.queries)
    lengths = [sum(row) for row in documents]
    mean = sum(lengths) / len(lengths)
    scores = bm25.score(index, k1=k1, b=b)
    for q, query in enumerate(queries):
        for d, row in enumerate(documents):
            expected = 0.0
            for w, times in enumerate(query):
                if times and row[w]:
                    n = sum(other[w] > 0 for other in documents)
                    idf = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
                    expected += times * idf * row[w] / (row[w] + k1 * (1 - b + b * lengths[d] / mean))
            assert scores[q, d] == pytest.approx(expected if expected else -np.inf, rel=1e-5)


def test_lm_ranks_as_the_product_of_probabilities(index: CollectionIndex) -> None:
    mu = 7.0
    scores = lm.score(index, mu=mu)
    for q, query in enumerate(table(index.queries)[:5]):
        likelihood = [
            sum(n * math.log(dirichlet(index, d, w, mu)) for w, n in enumerate(query) if n)
            for d in range(N_DOCUMENTS)
        ]
        matched = [
            any(n and row[w] for w, n in enumerate(query)) for row in table(index.documents)
        ]  # fmt: skip
        assert np.isfinite(scores[q]).tolist() == matched
        # Equal up to what all documents share.
        offsets = [s - x for s, x, m in zip(scores[q], likelihood, matched, strict=True) if m]
        assert offsets == pytest.approx([offsets[0]] * len(offsets), abs=1e-4)


def test_lm_features_is_the_printed_equation(index: CollectionIndex) -> None:
    scores = lm_features.score(index, mu=11.0, weight=0.3)
    for q in range(5):
        for d in range(N_DOCUMENTS):
            similar = cosine_of(index.query_features[q], index.document_features[d])
            assert scores[q, d] == pytest.approx(
                0.7 * linear(index, q, d, 11.0) + 0.3 * similar, rel=1e-4, abs=1e-6
            )


def test_lm_features_at_weight_zero_is_lm_linear(index: CollectionIndex) -> None:
    assert lm_features.score(index, mu=3.0, weight=0.0) == pytest.approx(lm_linear.score(index, mu=3.0))


def test_lm_features_at_weight_one_ranks_as_cosine(index: CollectionIndex) -> None:
    assert lm_features.score(index, weight=1.0) == pytest.approx(cosine.score(index), abs=1e-6)


def test_cosine_of_sparse_and_dense_features_agree() -> None:
    rng = np.random.default_rng(2)
    dense = rng.normal(size=(20, 9)) * (rng.random((20, 9)) < 0.5)
    first, second = dense[:4], dense[4:]
    expected = [[cosine_of(a, b) for b in second] for a in first]
    assert cosines(first, second) == pytest.approx(np.array(expected), abs=1e-6)
    assert cosines(sp.csr_matrix(first), sp.csr_matrix(second)) == pytest.approx(np.array(expected), abs=1e-6)


def test_cosine_of_counts_retrieves_what_shares_a_word(index: CollectionIndex) -> None:
    counts = CollectionIndex(index.documents, index.queries, index.documents, index.queries)
    shares = (index.queries @ index.documents.T).toarray() > 0
    assert np.isfinite(cosine.score(counts)).tolist() == shares.tolist()


def em_by_hand(counts: list[int], background: np.ndarray, noise: float, n: int) -> list[float]:
    model = [c / sum(counts) for c in counts]
    for _ in range(n):
        expected = [
            c * (1 - noise) * p / ((1 - noise) * p + noise * b) if c else 0.0
            for c, p, b in zip(counts, model, background, strict=True)
        ]
        model = [e / sum(expected) for e in expected]
    return model


def test_the_mixture_model_is_em_written_out(index: CollectionIndex) -> None:
    counts = sp.csr_matrix(index.documents[:5].sum(axis=0))
    found = mb.mixture_model(counts, index.background, 0.4).toarray()[0]
    expected = em_by_hand(table(counts)[0], index.background, 0.4, mb.N_ITERATIONS)
    assert found == pytest.approx(expected)
    assert found.sum() == pytest.approx(1.0)


def test_em_raises_the_likelihood_and_drops_what_the_collection_explains(index: CollectionIndex) -> None:
    counts = index.documents[10:13].sum(axis=0)
    row = np.asarray(counts).ravel()

    def likelihood(model: np.ndarray) -> float:
        return float((row[row > 0] * np.log((0.5 * model + 0.5 * index.background)[row > 0])).sum())

    found = mb.mixture_model(sp.csr_matrix(counts), index.background, 0.5).toarray()[0]
    assert likelihood(found) > likelihood(row / row.sum())
    shares = row / row.sum()
    common = np.argmax(index.background)
    assert found[common] < shares[common]


def test_without_noise_the_feedback_model_is_the_words_shares(index: CollectionIndex) -> None:
    counts = sp.csr_matrix(index.documents[:3].sum(axis=0))
    expected = counts.toarray()[0] / counts.sum()
    assert mb.mixture_model(counts, index.background, 0.0).toarray()[0] == pytest.approx(expected)


def test_feedback_of_weight_zero_ranks_as_lm(index: CollectionIndex) -> None:
    plain, without = lm.score(index, mu=50.0), mb.score(index, mu=50.0, alpha=0.0)
    lengths = np.maximum(index.query_lengths, 1)[:, None]
    assert without * lengths == pytest.approx(plain, rel=1e-4)


def test_mb_is_feedback_written_out(index: CollectionIndex) -> None:
    mu, alpha, noise, n = 30.0, 0.6, 0.3, 4
    documents, first = table(index.documents), lm.score(index, mu=mu)
    scores = mb.score(index, mu=mu, alpha=alpha, noise=noise, n_feedback=n)
    for q in range(4):
        best = np.argsort(-first[q], kind="stable")[:n]
        words = [sum(documents[d][w] for d in best) for w in range(N_TERMS)]
        feedback = em_by_hand(words, index.background, noise, mb.N_ITERATIONS)
        own = query_model(index, q)
        model = [(1 - alpha) * p + alpha * f for p, f in zip(own, feedback, strict=True)]
        model = [p if p >= mb.SMALLEST else 0.0 for p in model]
        expected = np.array(
            [
                sum(p * math.log(dirichlet(index, d, w, mu)) for w, p in enumerate(model) if p)
                for d in range(N_DOCUMENTS)
            ]
        )
        found = np.isfinite(scores[q])
        gaps = (scores[q] - expected)[found]
        assert gaps == pytest.approx(np.full(found.sum(), gaps[0]), abs=1e-4)


def test_mb_features_is_the_equation_with_the_updated_model(index: CollectionIndex) -> None:
    mu, weight, n = 20.0, 0.2, 3
    documents, first = table(index.documents), lm_features.score(index, mu=mu, weight=weight)
    scores = mb_features.score(index, mu=mu, weight=weight, n_feedback=n, alpha=0.7, noise=0.2)
    for q in range(3):
        best = np.argsort(-first[q], kind="stable")[:n]
        words = [sum(documents[d][w] for d in best) for w in range(N_TERMS)]
        feedback = em_by_hand(words, index.background, 0.2, mb.N_ITERATIONS)
        model = [0.3 * p + 0.7 * f for p, f in zip(query_model(index, q), feedback, strict=True)]
        model = [p if p >= mb.SMALLEST else 0.0 for p in model]
        for d in range(0, N_DOCUMENTS, 5):
            similar = cosine_of(index.query_features[q], index.document_features[d])
            expected = 0.8 * linear(index, q, d, mu, model) + 0.2 * similar
            assert scores[q, d] == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_top_documents_breaks_ties_by_position_and_skips_what_is_not_retrieved() -> None:
    scores = np.array([[1.0, 2.0, 1.0, 1.0], [-np.inf, -np.inf, 0.5, -np.inf], [-np.inf] * 4])
    assert mb.top_documents(scores, 2).toarray().tolist() == [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert mb.top_documents(scores, 9).toarray().sum(axis=1).tolist() == [4, 1, 0]


def test_lm_pv_is_its_formula(index: CollectionIndex) -> None:
    mu, weight = 9.0, 0.4
    scores = lm_pv.score(index, mu=mu, weight=weight)
    known = [w for w in range(N_TERMS) if index.term_vectors[w].any()]
    for q, query in enumerate(table(index.queries)[:4]):
        for d in range(0, N_DOCUMENTS, 7):
            products = {w: float(index.term_vectors[w] @ index.document_features[d]) for w in known}
            total = sum(map(math.exp, products.values()))
            expected = sum(
                n * math.log(
                    (1 - weight) * dirichlet(index, d, w, mu)
                    + weight * (math.exp(products[w]) / total if w in products else 0.0)
                )
                for w, n in enumerate(query)
                if n
            )  # fmt: skip
            assert scores[q, d] == pytest.approx(expected, rel=1e-4)


def test_the_softmax_sums_to_one_over_the_vocabulary(
    index: CollectionIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = lm_pv.softmax_model(index, np.arange(N_TERMS), slice(0, N_DOCUMENTS))
    assert whole.sum(axis=1) == pytest.approx(np.ones(N_DOCUMENTS))
    assert not whole[:, 2].any()
    at_once = lm_pv.score(index)
    monkeypatch.setattr(lm_pv, "BLOCK_BYTES", 8 * N_TERMS * 3)  # three documents at a time
    assert lm_pv.score(index) == pytest.approx(at_once, rel=1e-5)


def test_an_index_refuses_shapes_that_do_not_fit(index: CollectionIndex) -> None:
    with pytest.raises(ValueError, match="queries must have the documents' 30 terms; received 29"):
        CollectionIndex(index.documents, index.queries[:, 1:])
    with pytest.raises(ValueError, match="query_features must have 6 rows; received 2"):
        CollectionIndex(index.documents, index.queries, index.document_features, index.query_features[:2])
