"""Topics, senses, values and embedding: what is made of features, against counts made by hand and in other ways."""

import json
import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import textbench.tasks.storage.store
from textbench.featurizers.scdv import Scdv
from textbench.tasks.derived import polysemy, topics, tsne_map, value_histogram
from textbench.tasks.featurize import save_arrays
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store

TERMS = ["bat", "ball", "cave", "wing", "rare", "lost"]
# Three sentences of sport, three of animals; "lost" has no vector, "rare" is in one document.
TRAIN = csr_matrix([[2, 1, 0, 0, 0, 0], [1, 2, 0, 0, 0, 1], [1, 0, 2, 1, 0, 0], [1, 0, 1, 1, 0, 0]])
TEST = csr_matrix([[0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0]])
MEMBERSHIPS = np.array([[0.7, 0.3], [1.0, 0.0], [0.0, 1.0], [0.1, 0.9], [0.5, 0.5]], dtype=np.float32)
VECTORS = Reference("vectorize", "made:vectors", {"transductive": True})
TRAINING_ALONE = Reference("vectorize", "made:vectors", {"transductive": False})
FEATURES = Reference("featurize", "made:features", {"method": "scdv"})


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Store]:
    """Give a store with artifacts that `write` fills, by reference."""
    store = Store(tmp_path / "store", isolated=False)
    call = textbench.tasks.storage.store._call

    def make(written: dict[str, Callable[[Job], None]]) -> Store:
        def one(function: str, job: Job) -> None:
            written[function](job) if function in written else call(function, job)

        monkeypatch.setattr(textbench.tasks.storage.store, "_call", one)
        return store

    return make


def write_vectors(job: Job) -> None:
    job.save_json("terms", TERMS)
    job.save_matrix("train_counts", TRAIN)
    job.save_matrix("test_counts", TEST)


def write_clusters(job: Job) -> None:
    model = {"term_memberships_": MEMBERSHIPS, "terms_": np.arange(5, dtype=np.int32), "n_clusters": 2}
    save_arrays(job, "model", model)


def probability(term: int, cluster: int, counts: np.ndarray) -> float:
    """P(w|c), by Bayes' rule, term by term."""
    shares = [MEMBERSHIPS[w, cluster] * counts[:, w].sum() / counts.sum() for w in range(5)]
    return shares[term] / sum(shares)


def documents_with(counts: np.ndarray, *terms: int) -> int:
    return sum(all(row[term] > 0 for term in terms) for row in counts)


@pytest.mark.parametrize("vectors", [VECTORS, TRAINING_ALONE])
def test_topics_of_clusters(
    made: Callable[..., Store], monkeypatch: pytest.MonkeyPatch, vectors: Reference
) -> None:
    monkeypatch.setattr(topics, "N_WORDS", 3)
    store = made({"made:vectors": write_vectors, "made:features": write_clusters})
    found = store.open(topics.reference(vectors, FEATURES)).json("topics")
    parts = [TRAIN, TEST] if vectors is VECTORS else [TRAIN]
    counts = np.vstack([part.toarray() for part in parts])
    assert found["n_documents"] == len(counts)
    assert found["left_out"] == []
    for topic in found["topics"]:
        order = sorted(range(5), key=lambda term: (-probability(term, topic["topic"], counts), term))
        assert topic["words"] == [TERMS[term] for term in order[:3]]
        pairs = list(combinations(order[:3], 2))
        umass = sum(
            math.log((documents_with(counts, a, b) + 1) / documents_with(counts, a)) for a, b in pairs
        )
        assert topic["umass"] == pytest.approx(umass)
        n, npmi = len(counts), []
        for a, b in pairs:
            joint = documents_with(counts, a, b) / n
            apart = documents_with(counts, a) * documents_with(counts, b) / n**2
            npmi.append(math.log(joint / apart) / -math.log(joint) if joint else -1.0)
        assert topic["npmi"] == pytest.approx(np.mean(npmi))


def test_topics_of_a_topic_model_are_its_own(
    made: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No rule of Bayes there; a topic with too few terms is left out and said to be."""
    monkeypatch.setattr(topics, "N_WORDS", 3)
    components = np.array([[0.1, 0.0, 0.6, 0.3, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]], dtype=np.float32)
    written = {
        "made:vectors": write_vectors,
        "made:features": lambda job: save_arrays(job, "model", {"components_": components}),
    }
    found = made(written).open(topics.reference(VECTORS, FEATURES)).json("topics")
    assert [topic["words"] for topic in found["topics"]] == [["cave", "wing", "bat"]]
    assert found["left_out"] == [1]


def test_methods_without_topics_are_refused(made: Callable[..., Store]) -> None:
    written = {
        "made:vectors": write_vectors,
        "made:features": lambda job: save_arrays(job, "model", {"idf_": np.ones(6)}),
    }
    with pytest.raises(ValueError, match="scdv has neither"):
        made(written).open(topics.reference(VECTORS, FEATURES))
    with pytest.raises(ValueError, match="no topic has 10 terms, the most that one has is 4"):
        written["made:features"] = write_clusters
        other = Reference("featurize", "made:features", {"method": "bowv"})
        made(written).open(topics.reference(VECTORS, other))


def test_senses(made: Callable[..., Store]) -> None:
    asked = {
        "bat": [["ball"], ["cave", "wing", "unheard"], ["unheard"]],
        "lost": [["ball"]],
        "unheard": [["ball"]],
    }
    store = made({"made:vectors": write_vectors, "made:features": write_clusters})
    found = store.open(polysemy.reference(VECTORS, FEATURES, asked)).json("senses")
    assert (found["lost"], found["unheard"]) == (None, None)
    bat = found["bat"]
    assert [(one["cluster"], round(one["probability"], 4)) for one in bat["clusters"]] == [(0, 0.7), (1, 0.3)]
    assert bat["clusters"][1]["words"][:2] == ["cave", "wing"]
    sport, animal, unknown = bat["senses"]
    assert (sport["cluster"], sport["probability"], sport["support"]) == (0, pytest.approx(0.7), 1.0)
    assert (animal["cluster"], animal["probability"]) == (1, pytest.approx(0.3))
    assert animal["support"] == pytest.approx((1.0 + 0.9) / 2)
    assert (animal["known"], animal["words"]) == (["cave", "wing"], ["cave", "wing", "unheard"])
    assert (unknown["cluster"], unknown["probability"], unknown["known"]) == (None, None, [])


def test_a_share_that_is_too_small_is_no_sense(made: Callable[..., Store]) -> None:
    store = made({"made:vectors": write_vectors, "made:features": write_clusters})
    found = store.open(polysemy.reference(VECTORS, FEATURES, {"cave": [["ball"]]})).json("senses")["cave"]
    assert [one["cluster"] for one in found["clusters"]] == [1]
    assert found["senses"][0]["probability"] == 0.0


def test_published_senses_are_those_of_the_claims() -> None:
    from textbench.evaluation.claims.published import read_claims

    metrics = [c.metric.split(":") for c in read_claims() if c.metric.startswith("p-cluster-given-word")]
    counted = {word: max(int(number) for _, w, number in metrics if w == word) for _, word, _ in metrics}
    assert counted == {word: len(asked) for word, asked in polysemy.PUBLISHED.items()}


def test_values_are_those_of_the_vectors(made: Callable[..., Store], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is what the method itself keeps, and nothing is lost between the bins."""
    monkeypatch.setattr(value_histogram, "DOCUMENTS_AT_ONCE", 7)
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.4, (40, 30))
    counts[3] = 0  # a document without a word
    train = csr_matrix(counts)
    word_vectors = rng.normal(size=(30, 6)).astype(np.float32)
    method = Scdv(n_clusters=4, sparsity=0.3, random_state=0).fit(train, word_vectors=word_vectors)
    sparse = method.transform(train)

    def write_features(job: Job) -> None:
        save_arrays(job, "model", method.to_arrays())
        job.save_matrix("train", sparse)
        job.save_matrix("test", sparse[:5])

    written = {
        "made:vectors": lambda job: job.save_matrix("train_counts", train),
        "made:features": write_features,
    }
    artifact = made(written).open(value_histogram.reference(VECTORS, FEATURES))
    about, histogram = artifact.json("about"), artifact.array("histogram")
    assert about["kept"] == sparse.nnz
    assert about["values"] == 40 * 4 * 6
    assert histogram.sum() == about["values"] - about["zero"] == about["kept"] + about["below"]
    assert about["threshold"] == pytest.approx(method.threshold_)
    assert about["empty"] == {"train": 1, "test": 1}
    # Without a threshold the method gives every value.
    everything = Scdv(n_clusters=4, sparsity=0.0, random_state=0).fit(train, word_vectors=word_vectors)
    whole = everything.transform(train).data
    assert about["kept"] + about["below"] == len(whole)
    assert (about["smallest"], about["largest"]) == pytest.approx((whole.min(), whole.max()))
    assert histogram[100:300].sum() == (np.abs(whole) < value_histogram.REACH / 2).sum()
    assert histogram[0] >= (whole < -value_histogram.REACH).sum() > 0  # the ends hold what lies beyond


def corpus_of(targets: np.ndarray) -> Callable[[Job], None]:
    def write(job: Job) -> None:
        job.save_json("corpus", {"target_names": ["a", "b"], "multi_label": False})
        job.save_table("test", {"text": [""] * len(targets), "target": targets})

    return write


CORPUS = Reference("ingest", "made:corpus", {})


@pytest.mark.parametrize("is_sparse", [True, False])
def test_an_embedding_keeps_apart_what_is_apart(made: Callable[..., Store], is_sparse: bool) -> None:
    rng = np.random.default_rng(0)
    targets = np.repeat([0, 1], 40)
    rows = np.abs(rng.normal(size=(80, 60))).astype(np.float32)
    rows[:40, :30] = 0
    rows[40:, 30:] = 0
    written = {
        "made:corpus": corpus_of(targets),
        "made:features": lambda job: job.save_matrix("test", csr_matrix(rows) if is_sparse else rows),
    }
    store = made(written)
    artifact = store.open(tsne_map.reference(CORPUS, FEATURES))
    positions = artifact.array("positions")
    assert (positions.shape, positions.dtype) == ((80, 2), np.float32)
    assert np.isfinite(positions).all()
    assert artifact.json("about")["agreement"] == 1.0
    assert artifact.json("about")["divergence"] >= 0


@pytest.mark.parametrize("n_documents", [1, 10])
def test_an_embedding_of_few_documents_is_refused(made: Callable[..., Store], n_documents: int) -> None:
    rows = np.eye(12, dtype=np.float32)[:n_documents]
    written = {
        "made:corpus": corpus_of(np.zeros(n_documents, dtype=np.int64)),
        "made:features": lambda job: job.save_matrix("test", rows),
    }
    with pytest.raises(
        ValueError,
        match=f"more test documents than the 10 neighbours whose labels it compares, got {n_documents}",
    ):
        made(written).ensure(tsne_map.reference(CORPUS, FEATURES))


def test_an_embedding_of_eleven_documents_is_made(made: Callable[..., Store]) -> None:
    rows = np.eye(11, dtype=np.float32)
    written = {
        "made:corpus": corpus_of(np.zeros(11, dtype=np.int64)),
        "made:features": lambda job: job.save_matrix("test", rows),
    }
    artifact = made(written).open(tsne_map.reference(CORPUS, FEATURES))
    assert artifact.array("positions").shape == (11, 2) and artifact.json("about")["agreement"] == 1.0


def test_agreement_by_distances() -> None:
    rng = np.random.default_rng(1)
    positions, targets = rng.normal(size=(25, 2)), rng.integers(0, 3, 25)
    shares = []
    for place, own in enumerate(positions):
        order = sorted((k for k in range(25) if k != place), key=lambda k: math.dist(positions[k], own))
        shares.append(np.mean([targets[k] == targets[place] for k in order[:4]]))
    assert tsne_map.agreement(positions, targets, 4) == pytest.approx(np.mean(shares))


def test_rows_are_reduced_to_unit_length_and_few_dimensions() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]])
    expected = [[0.6, 0.8], [0.0, 1.0], [0.0, 0.0]]
    for features in (rows, csr_matrix(rows)):
        np.testing.assert_allclose(tsne_map.reduced(features, 50, 0), expected, atol=1e-6)
    wide = np.random.default_rng(0).normal(size=(30, 80))
    assert tsne_map.reduced(wide, 5, 0).shape == (30, 5)


def test_pieces_are_made_once(made: Callable[..., Store]) -> None:
    """Equal references are one artifact; another token rule, method or question is another."""
    n_made: list[str] = []

    def note(job: Job) -> None:
        n_made.append("features")
        write_clusters(job)

    store = made({"made:vectors": write_vectors, "made:features": note})
    first: Any = polysemy.reference(VECTORS, FEATURES, {"bat": [["ball"]]})
    for _ in range(2):
        store.ensure(polysemy.reference(VECTORS, FEATURES, {"bat": [["ball"]]}))
    assert n_made == ["features"]
    others = [
        polysemy.reference(TRAINING_ALONE, FEATURES, {"bat": [["ball"]]}),
        polysemy.reference(VECTORS, FEATURES, {"bat": [["cave"]]}),
    ]
    assert len({first.key, *(other.key for other in others)}) == 3
    assert json.loads(json.dumps(first.to_json())) == first.to_json()
