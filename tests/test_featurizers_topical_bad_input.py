"""Every topical method on what it may be given by mistake: empty documents, too many topics, no vectors, bad priors.

And on one thread or two.
"""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from tests.topical import DOCUMENTS, KNOWN, N_TERMS, NEEDS, TOPICS, VECTORS, WITHOUT
from textbench.featurizers import gaussian_lda, lda2vec, lf_lda, ltsg, mvtm, ntsg, topicvec, twe_1, wtm
from textbench.featurizers._topical.token_topics import TokenTopics

# By method few repetitions.
QUICK: dict[Any, dict[str, Any]] = {
    twe_1: {},
    ntsg: {"epochs": 1, "rank": 2},
    ltsg: {"n_rounds": 1, "n_sweeps": 1},
    wtm: {"n_sweeps": 2},
    lf_lda: {"n_iter": 2},
    lda2vec: {"epochs": 1, "infer_epochs": 1},
    topicvec: {"max_iter": 2},
    mvtm: {"max_iter": 2},
    gaussian_lda: {"n_iter": 2},
}
# Each method, and its parts that other settings reach.
SETTINGS: list[tuple[Any, dict[str, Any]]] = [
    *((module, {}) for module in QUICK),
    (twe_1, {"joint": True, "epochs": 1}),
    (ntsg, {"variant": 2}),
    (ntsg, {"variant": 3}),
    (topicvec, {"topics": "by_class"}),
    (mvtm, {"n_bases": 2, "overlapping": True}),
    (mvtm, {"max_kappa": None}),
]


def each(settings: list[tuple[Any, dict[str, Any]]]) -> Any:
    """Run a test with each of these methods and parameters, under their names."""
    names = [
        " ".join([module.__name__.rpartition(".")[2], *(f"{name}={value}" for name, value in params.items())])
        for module, params in settings
    ]
    return pytest.mark.parametrize(("module", "params"), settings, ids=names)


EVERY = each(SETTINGS)
ON_TOKENS = each([own for own in SETTINGS if own[0].INPUT == "tokens"])
ON_COUNTS = each([own for own in SETTINGS if own[0].INPUT == "counts"])
# Two documents more: one of nothing, one of terms without a vector.
NOTHING = [np.zeros(0, dtype=np.int32), np.array(WITHOUT, dtype=np.int32)]
MORE = [*DOCUMENTS, *NOTHING]


def fitted(
    module: Any,
    n_topics: int,
    vectors: np.ndarray = VECTORS,
    documents: list[np.ndarray] = MORE,
    **params: Any,
) -> np.ndarray:
    """Fit on documents, of which those of nothing are a class of their own; return the features of all."""
    own = QUICK[module] | params
    if module.INPUT == "counts":
        X: Any = sp.csr_matrix(np.array([np.bincount(d, minlength=N_TERMS) for d in documents]))
        own = {"n_topics": n_topics} | own
    else:
        X = documents
    topics = np.concatenate([TOPICS.topics % n_topics, np.zeros(len(WITHOUT), dtype=np.int32)])
    topics = topics[: sum(len(document) for document in documents)]
    needs = {**NEEDS, "word_vectors": vectors, "token_topics": TokenTopics(topics, n_topics, 0.3, 0.01)}
    labels = [i % 3 if np.isin(document, KNOWN).any() else 3 for i, document in enumerate(documents)]
    method = module.build(**own, random_state=0)
    return method.fit(X, np.array(labels), **{name: needs[name] for name in module.NEEDS}).transform(X)


@EVERY
@pytest.mark.parametrize("n_topics", [1, len(MORE) + 20])
def test_one_topic_and_more_topics_than_documents_are_finite_and_nothing_is_a_row_of_zeros(
    module: Any, params: dict[str, Any], n_topics: int
) -> None:
    found = fitted(module, n_topics, **params)
    assert np.isfinite(found).all() and len(found) == len(MORE)
    assert found[: len(DOCUMENTS)].any(axis=1).all()
    assert not found[len(DOCUMENTS) :].any()


@ON_TOKENS
def test_documents_without_a_known_term_are_refused(module: Any, params: dict[str, Any]) -> None:
    for documents, n in (([], 0), (NOTHING[:1], 0), (NOTHING, 2)):
        said = f"term that has a word vector: got none of {n} tokens of {len(documents)} documents; lower min_count"
        with pytest.raises(ValueError, match=f"^at least one token must be of a {said}$"):
            fitted(module, 3, documents=documents, **params)


@ON_COUNTS
def test_counts_without_a_known_term_are_rows_of_zeros(module: Any, params: dict[str, Any]) -> None:
    found = fitted(module, 3, documents=NOTHING, **params)
    assert found.shape[0] == 2 and not found.any()


@EVERY
def test_one_known_token_is_enough(module: Any, params: dict[str, Any]) -> None:
    found = fitted(module, 3, documents=[KNOWN[:1].astype(np.int32), *NOTHING], **params)
    assert np.isfinite(found).all() and found[0].any() and not found[1:].any()


@EVERY
def test_vectors_of_zeros_are_refused(module: Any, params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least one term must have a word vector"):
        fitted(module, 3, VECTORS * 0, **params)


@pytest.fixture(scope="module")
def large() -> tuple[list[np.ndarray], dict[str, Any]]:
    """Documents and vectors that two threads share the products of, along few of whose directions most of them lie.

    So a fit takes many steps, and what is added up in another order shows.
    """
    n_terms, n_dimensions, n_topics, rng = 1000, 100, 40, np.random.default_rng(0)
    of_topic = rng.normal(size=(n_topics, n_dimensions))[np.arange(n_terms) % n_topics]
    vectors = (of_topic + rng.normal(size=of_topic.shape)) * 10.0 ** -np.linspace(0, 2, n_dimensions)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    documents = [
        (rng.integers(n_terms // n_topics, size=30) * n_topics + i % n_topics).astype(np.int32)
        for i in range(200)
    ]
    tokens = np.concatenate(documents)
    is_odd = rng.random(len(tokens)) < 0.3
    topics = np.where(is_odd, rng.integers(n_topics, size=len(tokens)), tokens % n_topics).astype(np.int32)
    norms = rng.uniform(1, 3, n_terms).astype(np.float32)
    return documents, {
        "word_vectors": vectors,
        "output_vectors": vectors,
        "vector_norms": norms,
        "token_topics": TokenTopics(topics, n_topics, 0.3, 0.01),
    }


@pytest.mark.parametrize("module", QUICK, ids=lambda module: module.__name__.rpartition(".")[2])
def test_one_thread_and_two_give_the_same_bits(module: Any, large: Any) -> None:
    documents, needs = large
    own, X = QUICK[module], documents
    if module.INPUT == "counts":
        X = sp.csr_matrix(np.array([np.bincount(d, minlength=1000) for d in documents]))
        own = {"n_topics": 6 if module is gaussian_lda else 40} | own
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            method = module.build(**own, random_state=0)
            method.fit(X, **{name: needs[name] for name in module.NEEDS})
            learned = {name: getattr(method, name) for name in method.learned}
            found.append({name: np.asarray(value).tobytes() for name, value in learned.items()})
            found[-1]["features"] = method.transform(X).tobytes()
    one, two = found
    assert [name for name in one if one[name] != two[name]] == []


@pytest.mark.parametrize(
    ("module", "params"),
    [
        (lf_lda, {"alpha": 0.0}),
        (lf_lda, {"share": 1.5}),
        (lf_lda, {"share": -0.1}),
        (wtm, {"share": 1.01}),
        (wtm, {"share": float("nan")}),
        (topicvec, {"alpha": -1.0}),
        (topicvec, {"alpha": float("nan")}),
        (mvtm, {"alpha": 0.0}),
        (gaussian_lda, {"alpha": 0.0}),
        (gaussian_lda, {"alpha": float("inf")}),
        (lda2vec, {"prior": -1.0}),
    ],
)
def test_priors_and_shares_out_of_range_are_named(module: Any, params: dict[str, Any]) -> None:
    (name, value), *_ = params.items()
    with pytest.raises(ValueError, match=f"{name} must be .*: got {value!r}"):
        fitted(module, 3, **params)
