"""The word-vectors stage: aligned with the vocabulary, from the documents it may see, repeatable, refused in time."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gensim.models import Word2Vec

from tests.plumbing import numbers
from textbench.featurizers._topical import skip_gram as skip_gram_loops
from textbench.tasks import InputError, shared_negatives, skip_gram, word_vectors
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store

RNG = np.random.default_rng(9)
TERMS = [f"term{i:02}" for i in range(42)]
PARAMS = {"vector_size": 10, "min_count": 5, "epochs": 8, "window": 5}
UPSTREAM = numbers({"n": 1})


def documents(n_documents: int, *, first: int = 0) -> list[np.ndarray]:
    """Two subjects of 20 terms each; terms 40 and 41 occur in none."""
    return [
        (RNG.integers(20, size=30) + 20 * (i % 2)).astype(np.int32) for i in range(first, first + n_documents)
    ]


TRAIN, TEST = documents(60), documents(20)


def make_vectors(job: Job) -> None:
    """Write a vectors artifact of the documents above."""
    for part, texts in (("train", TRAIN), ("test", TEST)):
        job.save_array(f"{part}_ids", np.concatenate(texts))
        job.save_array(f"{part}_offsets", np.cumsum([0, *map(len, texts)]))
    job.save_json("terms", TERMS)


def vectors(transductive: bool = False) -> Reference:
    return Reference(
        "vectorize", "tests.test_tasks_word_vectors:make_vectors", {"transductive": transductive}
    )


def trained(texts: list[np.ndarray] = TRAIN, seed: int = 0, **params: Any) -> tuple[np.ndarray, dict]:
    reference = word_vectors.reference(UPSTREAM, {**PARAMS, **params}, seed)
    return skip_gram.train(texts, TERMS, reference.params["params"], seed)


def test_the_stage_writes_vectors_and_what_they_cost(tmp_path: Path) -> None:
    store = Store(tmp_path, isolated=False)
    artifact = store.open(word_vectors.reference(vectors(), PARAMS, seed=3))
    rows, about = artifact.array("vectors"), artifact.json("training")
    np.testing.assert_array_equal(rows, trained(seed=3)[0])
    assert (rows.shape, rows.dtype) == ((42, 10), np.float32)
    assert (about["n_terms"], about["n_known_terms"], about["n_tokens"], about["epochs"]) == (42, 40, 1800, 8)
    assert about["words_per_second"] == pytest.approx(1800 * 8 / about["seconds"])
    assert about["trained_words_per_second"] < about["words_per_second"]  # subsampling leaves tokens out


def test_test_documents_are_read_only_if_transductive(tmp_path: Path) -> None:
    store = Store(tmp_path, isolated=False)
    for transductive, texts in ((False, TRAIN), (True, [*TRAIN, *TEST])):
        rows = store.open(word_vectors.reference(vectors(transductive), PARAMS, 0)).array("vectors")
        np.testing.assert_array_equal(rows, trained(texts)[0])


def test_rows_are_of_unit_length_and_zero_for_rare_terms() -> None:
    rare = np.array([40, 40, 40, 41, 41, 41, 41, 41], dtype=np.int32)
    rows, about = trained([*TRAIN, rare])
    lengths = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(lengths[[*range(40), 41]], 1, rtol=1e-6)
    assert lengths[40] == 0
    assert about["n_known_terms"] == 41


@pytest.mark.parametrize("hs", [0, 1])
def test_rows_are_gensims_vectors_of_the_terms(hs: int) -> None:
    sentences = [[TERMS[i] for i in document] for document in TRAIN]
    params = {"vector_size": 10, "min_count": 5, "epochs": 8, "window": 5, "negative": 10, "sample": 1e-3}
    model = Word2Vec(sentences, sg=1, hs=hs, seed=0, workers=1, **params)
    rows, _ = trained(hs=hs)
    for i in range(40):
        np.testing.assert_allclose(rows[i], model.wv.get_vector(TERMS[i], norm=True), atol=1e-7)


def test_terms_of_one_subject_are_closer_than_those_of_two() -> None:
    rows, _ = trained(epochs=60)
    cosines = rows[:40] @ rows[:40].T
    same = np.equal.outer(np.arange(40) // 20, np.arange(40) // 20)
    assert cosines[same].mean() > cosines[~same].mean() + 0.2


def test_one_worker_repeats_to_the_bit_and_another_seed_does_not() -> None:
    one, two, other = trained()[0], trained()[0], trained(seed=1)[0]
    assert one.tobytes() == two.tobytes() != other.tobytes()


def test_what_lies_beyond_gensims_limit_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    # Terms 40 and 41 stand after the first 10,000 tokens of the only document.
    long = np.concatenate([np.resize(TRAIN[0], 10_000), np.full(50, 40), np.full(50, 41)]).astype(np.int32)
    rows, about = trained([long], epochs=1)
    start, _ = trained([long[:10_000], long[10_000:]], epochs=1)
    np.testing.assert_array_equal(rows, start)
    assert about["n_known_terms"] == len(np.unique(long))


def test_a_vocabulary_emptied_by_min_count_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"no term occurs min_count = 1000 times, the most frequent [0-9]+ times"
    ):
        trained(min_count=1000)
    with pytest.raises(InputError, match="the most frequent 0 times"):
        trained([])


def test_defaults_are_the_published_ones() -> None:
    params = word_vectors.reference(UPSTREAM, {}, seed=0).params["params"]
    assert params == {
        "vector_size": 200,
        "window": 10,
        "negative": 10,
        "min_count": 20,
        "sample": 1e-3,
        "epochs": 25,
        "hs": 0,
        "workers": 1,
    }


def test_methods_and_trials_share_one_training() -> None:
    one = word_vectors.reference(UPSTREAM, {}, seed=0)
    assert one.stage == "word_vectors"
    assert one.key == word_vectors.reference(UPSTREAM, {"window": 10}, seed=0).key
    others = [
        word_vectors.reference(UPSTREAM, {}, seed=1),
        word_vectors.reference(UPSTREAM, {"vector_size": 100}, seed=0),
        word_vectors.reference(numbers({"n": 2}), {}, seed=0),
        replace(one, libraries={**one.libraries, "gensim": "3.8"}),
    ]
    assert one.key not in {other.key for other in others}
    assert "gensim" in one.libraries


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"size": 100}, "no parameter 'size'"),
        ({"windows": 5}, "did you mean window"),
        ({"trainer": "glove"}, "trainer must be one of gensim, shared, file, got 'glove'"),
        ({"trainer": "shared", "workers": 2}, "the trainer shared has one worker"),
        ({"trainer": "shared", "hs": 1}, "the trainer shared has no hierarchical softmax"),
        ({"hs": 2}, "hs must be a whole number from 0 to 1, got 2"),
        ({"epochs": 0}, "epochs must be a whole number from 1, got 0"),
        ({"negative": 2.0}, r"negative must be a whole number from 1, got 2\.0"),
        ({"workers": True}, "workers must be a whole number from 1, got True"),
        ({"sample": 1}, "sample must be a number from 0 and below 1, got 1"),
    ],
)
def test_impossible_parameters_are_refused_before_anything_runs(params: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        word_vectors.reference(UPSTREAM, params, seed=0)


def shared(
    texts: list[np.ndarray] = TRAIN, seed: int = 0, **params: Any
) -> tuple[np.ndarray, dict[str, Any]]:
    chosen = {**PARAMS, **params, "trainer": "shared"}
    reference = word_vectors.reference(UPSTREAM, chosen, seed)
    return shared_negatives.train(texts, len(TERMS), reference.params["params"], seed)


def test_the_trainers_are_told_apart_and_gensims_name_changes_no_key() -> None:
    plain = word_vectors.reference(UPSTREAM, {}, 0)
    assert word_vectors.reference(UPSTREAM, {"trainer": "gensim"}, 0).key == plain.key
    assert word_vectors.reference(UPSTREAM, {"trainer": "shared"}, 0).key != plain.key


@pytest.mark.parametrize("workers", [1, 2])
def test_shared_negatives_write_the_same_files(workers: int, tmp_path: Path) -> None:
    store = Store(tmp_path, isolated=False, workers=workers)
    artifact = store.open(word_vectors.reference(vectors(), {**PARAMS, "trainer": "shared"}, seed=3))
    rows, about = artifact.array("vectors"), artifact.json("training")
    np.testing.assert_array_equal(rows, shared(seed=3)[0])
    assert (rows.shape, rows.dtype) == ((42, 10), np.float32)
    assert about.keys() == trained()[1].keys()
    assert (about["n_terms"], about["n_known_terms"], about["n_tokens"], about["epochs"]) == (42, 40, 1800, 8)
    assert about["words_per_second"] == pytest.approx(1800 * 8 / about["seconds"])
    assert 0 < about["trained_words_per_second"] < about["words_per_second"]


def test_shared_negatives_repeat_tell_subjects_apart_and_leave_rare_terms_out() -> None:
    rare = np.array([40, 40, 40, 41, 41, 41, 41, 41], dtype=np.int32)
    rows, about = shared([*TRAIN, rare], epochs=60)
    assert rows.tobytes() == shared([*TRAIN, rare], epochs=60)[0].tobytes()
    assert rows.tobytes() != shared([*TRAIN, rare], epochs=60, seed=1)[0].tobytes()
    lengths = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(lengths[[*range(40), 41]], 1, rtol=1e-6)
    assert lengths[40] == 0 and about["n_known_terms"] == 41
    cosines = rows[:40] @ rows[:40].T
    same = np.equal.outer(np.arange(40) // 20, np.arange(40) // 20)
    assert cosines[same].mean() > cosines[~same].mean() + 0.2
    with pytest.raises(InputError, match=r"no term occurs min_count = 1000 times, the most frequent [0-9]+"):
        shared(min_count=1000)


def test_tokens_are_kept_and_samples_drawn_as_gensim_does() -> None:
    rng = np.random.default_rng(2)
    texts = [rng.zipf(1.3, 200).clip(max=42) - 1 for _ in range(50)]
    model = Word2Vec([[TERMS[i] for i in text] for text in texts], sg=1, min_count=1, sample=1e-2, epochs=1)
    words = model.wv.index_to_key
    counts = np.array([model.wv.get_vecattr(word, "count") for word in words])
    kept = [model.wv.get_vecattr(word, "sample_int") / 2**32 for word in words]
    np.testing.assert_allclose(skip_gram_loops.kept_share(counts, 1e-2), kept, rtol=1e-3)
    drawn = np.bincount(skip_gram_loops.sample_table(counts), minlength=len(counts))
    np.testing.assert_allclose(drawn / drawn.sum(), np.diff(model.cum_table, prepend=0) / 2**31, atol=1e-6)
    np.testing.assert_array_equal(skip_gram_loops.kept_share(counts, 0.0), 1.0)


@pytest.mark.parametrize("n_drawn", [1, 4, 7])
def test_a_step_follows_the_slope_of_the_log_likelihood(n_drawn: int) -> None:
    """All changes are rate * (label - sigmoid(word.output)) times the other side, of the values before the step."""
    rng = np.random.default_rng(n_drawn)
    words, outputs = (rng.normal(0, 0.5, (9, 6)).astype(np.float32) for _ in range(2))
    around, drawn = np.int32([1, 4, 7]), np.int32([2, 0, 3, 5, 6, 8, 1][:n_drawn])
    label = (np.arange(n_drawn) == 0)[None]
    share = 0.1 * (label - 1 / (1 + np.exp(-words[around] @ outputs[drawn].T)))
    expected = words.copy(), outputs.copy()
    expected[0][around] += share @ outputs[drawn]
    expected[1][drawn] += share.T @ words[around]
    room = [np.empty((n, 6), np.float32) for n in (10, 10, skip_gram_loops.BLOCK)]
    skip_gram_loops._learn(words, outputs, around, drawn, np.float32(0.1), *room)
    np.testing.assert_allclose(words, expected[0], atol=1e-6)
    np.testing.assert_allclose(outputs, expected[1], atol=1e-6)


@pytest.mark.parametrize("trainer", word_vectors.WITH_OUTPUTS)
def test_with_outputs_the_vectors_are_the_same_to_the_bit(trainer: str, tmp_path: Path) -> None:
    store = Store(tmp_path, isolated=False)
    params = {**PARAMS, "trainer": trainer}
    alone, beside = (
        store.open(word_vectors.reference(vectors(), params, 3, with_outputs=asked))
        for asked in (False, True)
    )
    assert beside.array("vectors").tobytes() == alone.array("vectors").tobytes()
    outputs, norms = beside.array("outputs"), beside.array("norms")
    assert (outputs.shape, outputs.dtype, norms.shape, norms.dtype) == (
        (42, 10),
        np.float32,
        (42,),
        np.float32,
    )
    assert (norms[:40] > 0).all() and not norms[40:].any() and not outputs[40:].any()
    assert outputs[:40].any(axis=1).all()
    plain = word_vectors.train_with_outputs(TRAIN, TERMS, params, 3)
    assert [array.tobytes() for array in plain] == [
        beside.array(name).tobytes() for name in ("vectors", "outputs", "norms")
    ]
    with pytest.raises(InputError, match="no term occurs min_count = 1000 times"):
        word_vectors.train_with_outputs(TRAIN, TERMS, {**params, "min_count": 1000}, 0)
