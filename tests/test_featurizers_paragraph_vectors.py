"""Paragraph vectors: documents about the same things come close, whatever gensim would do with them."""

import importlib
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from textbench.featurizers import _paragraph_vectors, pv_dbow, pv_dm

RNG = np.random.default_rng(8)
N_DOCUMENTS = 60


def documents(n_documents: int) -> list[np.ndarray]:
    """Even documents are of terms 0..19, odd ones of terms 20..39."""
    return [(RNG.integers(20, size=40) + 20 * (i % 2)).astype(np.int32) for i in range(n_documents)]


TRAIN, TEST = documents(N_DOCUMENTS), documents(10)


@pytest.fixture(params=["pv_dm", "pv_dbow"])
def module(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(f"textbench.featurizers.{request.param}")


def small(module: ModuleType, **params: Any) -> Any:
    return module.build(**{"n_components": 8, "min_count": 2, "epochs": 20, "random_state": 0, **params})


def test_new_documents_lie_with_the_training_documents_of_their_subject(module: ModuleType) -> None:
    method = small(module, epochs=60).fit(TRAIN)
    train, test = method.transform(TRAIN), method.transform(TEST)
    means = np.stack([train[0::2].mean(axis=0), train[1::2].mean(axis=0)])
    nearest = ((test[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(nearest, np.arange(len(TEST)) % 2)


def test_pv_dm_alone_has_word_vectors_and_a_window() -> None:
    for module in (pv_dm, pv_dbow):
        method = small(module).fit(TRAIN)
        assert ("window" in method.get_params()) == (module is pv_dm)
        assert method.term_vectors_.shape == ((40, 8) if module is pv_dm else (0, 8))


def test_defaults_are_the_published_size(module: ModuleType) -> None:
    assert module.build().n_components == 400


def test_another_seed_gives_other_vectors(module: ModuleType) -> None:
    one, other = (small(module, random_state=seed).fit_transform(TRAIN) for seed in (0, 1))
    assert one.tobytes() != other.tobytes()


def test_another_process_gives_the_same_bits() -> None:
    # gensim's own inference starts from Python's hash of a string, which every process seeds anew.
    source = (
        "import numpy as np; from textbench.featurizers import pv_dbow; X = [np.arange(9, dtype=np.int32) % 5] * 6; "
        "method = pv_dbow.build(n_components=4, min_count=1, epochs=3, random_state=0).fit(X); "
        "print(method.transform(X[:1]).tobytes().hex())"
    )
    outputs = {
        subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(outputs) == 1


def step_name(module: ModuleType) -> str:
    """The function of gensim that inference calls for each text."""
    return "train_document_dm" if module is pv_dm else "train_document_dbow"


def test_inference_brings_its_own_work_space(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without it gensim writes to memory it has freed: on thousands of documents the process dies.
    name, given = step_name(module), []
    step = getattr(_paragraph_vectors, name)
    monkeypatch.setattr(
        _paragraph_vectors, name, lambda *_, **named: given.append(named) or step(*_, **named)
    )
    small(module).fit(TRAIN).transform(TEST[:1])
    needed = {"work", "neu1"} if module is pv_dm else {"work"}
    assert given and all(needed <= named.keys() for named in given)


def test_unknown_terms_and_empty_documents(module: ModuleType) -> None:
    nothing = np.zeros(0, dtype=np.int32)
    method = small(module).fit([*TRAIN, nothing, np.array([39, 1000], dtype=np.int32)])
    assert method.n_empty_documents_ == 1
    unseen = np.array([1000, 77], dtype=np.int32)
    mixed = np.insert(TEST[0], [3, 8], 5000).astype(np.int32)
    features = method.transform([nothing, unseen, TEST[0], mixed])
    assert not features[:2].any()
    assert features[2].tobytes() == features[3].tobytes()


def test_terms_rarer_than_min_count_are_left_out(module: ModuleType) -> None:
    rare = [*TRAIN, np.array([50, 50, 51], dtype=np.int32)]
    assert set(small(module, min_count=3).fit(rare).terms_.tolist()) == set(range(40))
    assert set(small(module, min_count=2).fit(rare).terms_.tolist()) == {*range(40), 50}


def test_what_lies_beyond_gensims_limit_is_read(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Term 40 stands after the limit alone: it is learned, and each pass of inference reads it."""
    monkeypatch.setattr(_paragraph_vectors, "LONGEST_TEXT", 15)
    long = [np.append(document[:15], [40] * 5).astype(np.int32) for document in TRAIN]
    method = small(module).fit(long)
    assert 40 in method.terms_
    name, read = step_name(module), []
    step = getattr(_paragraph_vectors, name)

    def reading_step(model: Any, words: list[str], *others: Any, **named: Any) -> None:
        read.extend(words)
        step(model, words, *others, **named)

    monkeypatch.setattr(_paragraph_vectors, name, reading_step)
    method.transform(long[:1])
    assert read.count("40") == 5 * method.epochs


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number from 1: got 0"),
        ({"epochs": 2.5}, r"epochs must be a whole number from 1: got 2\.5"),
        ({"min_count": 10_000}, "no term occurs min_count = 10000 times"),
    ],
)
def test_impossible_parameters_are_refused(module: ModuleType, params: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(module, **params).fit(TRAIN)


def test_impossible_documents_are_refused(module: ModuleType) -> None:
    for document in (np.array([0.5]), np.array([[1, 2]]), np.array([3, -1])):
        with pytest.raises(ValueError, match="whole numbers from 0"):
            small(module).fit([*TRAIN, document])
    for token in (2**31, 2**32):  # as int32 they would be negative, or 0
        with pytest.raises(ValueError, match=f"a token id must be at most 2147483647: got {token}"):
            small(module).fit([*TRAIN, np.array([1, token])])
    with pytest.raises(ValueError, match="no term occurs"):
        small(module).fit([np.zeros(0, dtype=np.int32)])
