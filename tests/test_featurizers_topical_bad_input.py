"""Every topical method on what it may be given by mistake: empty documents, too many topics, no vectors, bad priors."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tests.topical import DOCUMENTS, N_TERMS, NEEDS, TOPICS, VECTORS, WITHOUT
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
EVERY = pytest.mark.parametrize("module", QUICK, ids=lambda module: module.__name__.rpartition(".")[2])
# Two documents more: one of nothing, one of terms without a vector.
MORE = [*DOCUMENTS, np.zeros(0, dtype=np.int32), np.array(WITHOUT, dtype=np.int32)]


def fitted(module: Any, n_topics: int, vectors: np.ndarray = VECTORS, **params: Any) -> np.ndarray:
    """Fit on documents with the two of nothing among them; return the features of all."""
    own = QUICK[module] | params
    if module.INPUT == "counts":
        X: Any = sp.csr_matrix(np.array([np.bincount(d, minlength=N_TERMS) for d in MORE]))
        own = {"n_topics": n_topics} | own
    else:
        X = MORE
    topics = np.concatenate([TOPICS.topics % n_topics, np.zeros(len(WITHOUT), dtype=np.int32)])
    needs = {**NEEDS, "word_vectors": vectors, "token_topics": TokenTopics(topics, n_topics, 0.3, 0.01)}
    method = module.build(**own, random_state=0)
    return method.fit(X, **{name: needs[name] for name in module.NEEDS}).transform(X)


@EVERY
@pytest.mark.parametrize("n_topics", [1, len(MORE) + 20])
def test_one_topic_and_more_topics_than_documents_are_finite_and_nothing_is_a_row_of_zeros(
    module: Any, n_topics: int
) -> None:
    found = fitted(module, n_topics)
    assert np.isfinite(found).all() and len(found) == len(MORE)
    assert found[: len(DOCUMENTS)].any(axis=1).all()
    assert not found[len(DOCUMENTS) :].any()


@EVERY
def test_vectors_of_zeros_are_refused(module: Any) -> None:
    with pytest.raises(ValueError, match="at least one term must have a word vector"):
        fitted(module, 3, VECTORS * 0)


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
