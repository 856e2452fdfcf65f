"""The methods on word vectors: what they refuse, and what each computes, written out as loops."""

import importlib
import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from textbench.featurizers import avgvec, bowv, tfidf_avgvec, weight_boc
from textbench.featurizers._contract import dense
from textbench.featurizers.tfidf import TfIdf

METHODS = ["scdv", "bowv", "avgvec", "tfidf_avgvec", "weight_boc"]
RNG = np.random.default_rng(6)
N_TERMS, N_DIMENSIONS = 30, 5
VECTORS = RNG.normal(size=(N_TERMS, N_DIMENSIONS)).astype(np.float32)
VECTORS[[2, 11]] = 0
TRAIN = sp.csr_matrix(RNG.poisson(0.3, size=(40, N_TERMS)).astype(np.int32))
TEST = sp.csr_matrix(RNG.poisson(0.3, size=(15, N_TERMS)).astype(np.int32))
KNOWN = VECTORS.any(axis=1)


@pytest.fixture(params=METHODS)
def module(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(f"textbench.featurizers.{request.param}")


def small(module: ModuleType) -> Any:
    wanted = {"random_state": 0, "n_clusters": 4}
    accepted = inspect.signature(type(module.build())).parameters
    return module.build(**{name: value for name, value in wanted.items() if name in accepted})


def test_documents_without_known_terms_are_zero_and_counted(module: ModuleType) -> None:
    counts = TRAIN.toarray()
    counts[:, ~KNOWN] = 0
    counts[counts.sum(axis=1) == 0, 0] = 1
    counts[5], counts[9], counts[9, 11] = 0, 0, 3
    method = small(module).fit(sp.csr_matrix(counts), word_vectors=VECTORS)
    assert method.n_empty_documents_ == 2
    assert not dense(method.transform(sp.csr_matrix(counts)))[[5, 9]].any()


def test_terms_without_a_vector_change_nothing_but_themselves(module: ModuleType) -> None:
    with_them, without = TRAIN.toarray(), TRAIN.toarray()
    without[:, ~KNOWN] = 0
    first = small(module).fit(sp.csr_matrix(with_them), word_vectors=VECTORS)
    second = small(module).fit(sp.csr_matrix(without), word_vectors=VECTORS)
    assert dense(first.transform(TEST)).tobytes() == dense(second.transform(TEST)).tobytes()


def test_what_does_not_fit_is_refused(module: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"shape \(30, n_dimensions\), one row a term: got \(29, 5\)"):
        small(module).fit(TRAIN, word_vectors=VECTORS[:-1])
    with pytest.raises(ValueError, match="must be finite"):
        small(module).fit(TRAIN, word_vectors=np.full_like(VECTORS, np.nan))
    with pytest.raises(ValueError, match="got none for 30 terms; lower min_count"):
        small(module).fit(TRAIN, word_vectors=np.zeros_like(VECTORS))
    with pytest.raises(ValueError, match="negative: got -"):
        small(module).fit(-TRAIN, word_vectors=VECTORS)
    method = small(module).fit(TRAIN, word_vectors=VECTORS)
    with pytest.raises(ValueError, match="29 features"):
        method.transform(TEST[:, :-1])
    if "n_clusters" in method.get_params():
        with pytest.raises(ValueError, match="with a word vector, 28: got 29"):
            module.build(n_clusters=29).fit(TRAIN, word_vectors=VECTORS)


def tokens(counts: sp.csr_matrix) -> list[list[int]]:
    """Each document as a list of its tokens that have a vector."""
    return [[t for t in range(N_TERMS) for _ in range(row[t]) if KNOWN[t]] for row in counts.toarray()]


@pytest.mark.parametrize("method", ["scdv", "bowv"])
def test_counts_beyond_float32_are_refused_and_large_ones_change_no_direction(method: str) -> None:
    fitted = small(importlib.import_module(f"textbench.featurizers.{method}")).fit(
        TRAIN, word_vectors=VECTORS
    )
    features = dense(fitted.transform(TEST))
    np.testing.assert_allclose(dense(fitted.transform(TEST * 1e13)), features, atol=1e-6)
    for factor in (1e19, 3e38):
        with pytest.raises(ValueError, match=r"a weighted count must be at most 1e\+15: got \d"):
            fitted.transform(TEST * factor)


def test_avgvec_is_the_mean_over_tokens() -> None:
    features = avgvec.build().fit(TRAIN, word_vectors=VECTORS).transform(TEST)
    for row, document in zip(features, tokens(TEST), strict=True):
        np.testing.assert_allclose(row, VECTORS[document].mean(axis=0), atol=1e-6)


def test_tfidf_avgvec_is_the_mean_over_tokens_weighted_by_idf() -> None:
    features = tfidf_avgvec.build().fit(TRAIN, word_vectors=VECTORS).transform(TEST)
    idf = TfIdf().fit(TRAIN).idf_
    for row, document in zip(features, tokens(TEST), strict=True):
        np.testing.assert_allclose(
            row, np.average(VECTORS[document], axis=0, weights=idf[document]), atol=1e-6
        )


def test_tfidf_avgvec_is_avgvec_when_all_terms_are_as_frequent() -> None:
    square = sp.csr_matrix(np.where(np.eye(N_TERMS), 2, 1))  # every term in every document
    weighted = tfidf_avgvec.build().fit_transform(square, word_vectors=VECTORS)
    np.testing.assert_allclose(
        weighted, avgvec.build().fit_transform(square, word_vectors=VECTORS), atol=1e-6
    )


@pytest.mark.parametrize("pooling", ["mean", "sum"])
def test_bowv_pools_tokens_by_cluster(pooling: str) -> None:
    n_clusters = 4
    method = bowv.build(n_clusters=n_clusters, pooling=pooling, random_state=0).fit(
        TRAIN, word_vectors=VECTORS
    )
    cluster_of = dict(zip(method.terms_.tolist(), method.labels_.tolist(), strict=True))
    idf = TfIdf().fit(TRAIN).idf_
    for row, document in zip(method.transform(TEST).toarray(), tokens(TEST), strict=True):
        pooled, frequencies = np.zeros((n_clusters, N_DIMENSIONS)), np.zeros(n_clusters)
        for k in range(n_clusters):
            own = [term for term in document if cluster_of[term] == k]
            if own:
                pooled[k] = getattr(np, pooling)(VECTORS[own], axis=0)
                frequencies[k] = idf[own].sum()
        expected = [(pooled / np.linalg.norm(pooled)).ravel(), frequencies / np.linalg.norm(frequencies)]
        np.testing.assert_allclose(row, np.concatenate(expected), atol=1e-6)


def test_bowv_has_a_column_more_for_each_cluster() -> None:
    method = bowv.build(n_clusters=3, random_state=0).fit(TRAIN, word_vectors=VECTORS)
    assert method.transform(TEST).shape == (TEST.shape[0], 3 * N_DIMENSIONS + 3)
    with pytest.raises(ValueError, match="mean, sum: got 'max'"):
        bowv.build(n_clusters=3, pooling="max").fit(TRAIN, word_vectors=VECTORS)


def test_weight_boc_counts_concepts_by_cf_idf() -> None:
    method = weight_boc.build(n_clusters=9, random_state=0).fit(TRAIN, word_vectors=VECTORS)
    concept_of = dict(zip(method.terms_.tolist(), method.labels_.tolist(), strict=True))
    train, test = ([[concept_of[t] for t in document] for document in tokens(part)] for part in (TRAIN, TEST))
    for row, document in zip(method.transform(TEST).toarray(), test, strict=True):
        for concept in range(9):
            n_containing = sum(concept in other for other in train)
            expected = document.count(concept) / len(document) * np.log(len(train) / n_containing)
            assert row[concept] == pytest.approx(expected, abs=1e-6)


def test_weight_boc_does_not_see_the_lengths_of_vectors() -> None:
    longer = VECTORS * RNG.uniform(0.5, 2, size=(N_TERMS, 1)).astype(np.float32)
    build = {"n_clusters": 5, "random_state": 0}
    one = weight_boc.build(**build).fit_transform(TRAIN, word_vectors=VECTORS)
    two = weight_boc.build(**build).fit_transform(TRAIN, word_vectors=longer)
    np.testing.assert_allclose(one.toarray(), two.toarray())
