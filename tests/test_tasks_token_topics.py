"""The token-topics stage: a topic for every token that may be learned from, repeatable, refused in time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.test_tasks_word_vectors import TEST, TRAIN, vectors
from textbench.featurizers._topical.token_topics import sample
from textbench.tasks import InputError, featurize, token_topics
from textbench.tasks.storage.store import Store

PARAMS = {"n_topics": 3, "n_iter": 5}


def test_the_stage_samples_what_it_may_see(tmp_path: Path) -> None:
    store = Store(tmp_path, isolated=False)
    for transductive, texts in ((False, TRAIN), (True, [*TRAIN, *TEST])):
        found = token_topics.read(store.open(token_topics.reference(vectors(transductive), PARAMS, 4)))
        expected = sample(texts, 4, **{**token_topics.DEFAULTS, **PARAMS})
        assert found.topics.tobytes() == expected.topics.tobytes()
        assert (found.n_topics, found.alpha, found.eta) == (3, 50 / 3, 0.01)
        assert len(found.topics) == sum(map(len, texts))
    assert np.unique(found.topics).tolist() == [0, 1, 2]


def test_methods_share_one_sampling_and_only_topical_ones_ask_for_it() -> None:
    one, other = (featurize.reference(vectors(), "twe-1", params, 0) for params in ({}, {"window": 7}))
    assert one.inputs["token_topics"].key == other.inputs["token_topics"].key
    assert (
        one.inputs["word_vectors"].key
        != featurize.reference(vectors(), "scdv", {}, 0).inputs["word_vectors"].key
    )
    fewer = featurize.reference(vectors(), "twe-1", {"token_topics__n_topics": 5}, 0)
    assert fewer.inputs["token_topics"].key != one.inputs["token_topics"].key
    assert one.stage == "featurize" and one.params["params"] == {} and fewer.params["params"] == {}
    with pytest.raises(InputError, match="scdv needs no topics of tokens, got token_topics__n_topics"):
        featurize.reference(vectors(), "scdv", {"token_topics__n_topics": 5}, 0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"topics": 3}, "no parameter 'topics'; did you mean n_topics"),
        ({"n_topics": 0}, "n_topics must be a whole number from 1, got 0"),
        ({"alpha": 0.0}, r"alpha must be a number above 0 or None, got 0\.0"),
        ({"eta": "x"}, "eta must be a number above 0, got 'x'"),
        ({"n_iter": True}, "n_iter must be a whole number from 1, got True"),
    ],
)
def test_impossible_parameters_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        token_topics.reference(vectors(), params, 0)
