"""Static embeddings on a self-made model: the table piece by piece, means by hand, and stored tables."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.small_model import HIDDEN, PIECES, save_model, save_safetensors
from textbench.featurizers._encoders.encoder import encoder_of
from textbench.featurizers._encoders.places import NoModel
from textbench.featurizers.static import SIF, StaticVectors, source, table

TEXTS = ["w1 w2 w1", "w2 w3 abc", "", "漢字", "w1"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"distil:{save_model(tmp_path_factory.mktemp('model'))}"


def test_a_piece_is_embedded_alone_and_special_ones_have_no_vector(model: str) -> None:
    vectors, _ = table(model)
    assert vectors.shape == (len(PIECES), HIDDEN)
    alone = encoder_of(model.removeprefix("distil:"), backend="numpy").encode(["w1", "w2"])
    np.testing.assert_allclose(vectors[[PIECES.index("w1"), PIECES.index("w2")]], alone, atol=1e-5)
    assert np.flatnonzero(~vectors.any(axis=1)).tolist() == [1]  # the tokenizer's file calls no other special


@pytest.mark.parametrize("weights", ["mean", "idf", "sif"])
def test_a_text_is_the_weighted_mean_of_its_pieces(model: str, weights: str) -> None:
    vectors, _ = table(model)
    method = StaticVectors(model=model, weights=weights).fit(TEXTS)
    pieces = [["w1", "w2", "w1"], ["w2", "w3", "a", "##b", "##c"], [], [], ["w1"]]
    counts = [Counter(own) for own in pieces]
    total = sum(counts, Counter())
    weight = {
        "mean": lambda w: 1.0,
        "idf": lambda w: 1 + np.log((1 + len(TEXTS)) / (1 + sum(w in own for own in counts))),
        "sif": lambda w: SIF / (SIF + total[w] / total.total()),
    }[weights]
    expected = np.zeros((len(TEXTS), HIDDEN))
    for row, own in enumerate(counts):
        if own:
            rows = [vectors[PIECES.index(w)] for w in own]
            expected[row] = np.average(rows, axis=0, weights=[n * weight(w) for w, n in own.items()])
    np.testing.assert_allclose(method.transform(TEXTS), expected, rtol=1e-4, atol=1e-6)


def test_a_stored_table_may_map_pieces_to_rows_with_weights(tmp_path: Path, model: str) -> None:
    folder = save_model(tmp_path / "static")
    (folder / "modules.json").unlink()
    rows = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    mapping = np.arange(len(PIECES), dtype=np.float32) % 3
    weights = np.linspace(1, 2, len(PIECES)).astype(np.float32)
    save_safetensors(
        folder / "model.safetensors", {"embeddings": rows, "mapping": mapping, "weights": weights}
    )
    header = (folder / "model.safetensors").read_bytes()
    size = int.from_bytes(header[:8], "little")
    said = json.loads(header[8 : 8 + size])
    said["mapping"]["dtype"] = "I32"
    text = json.dumps(said).encode()
    body = header[8 + size :]
    at = slice(*said["mapping"]["data_offsets"])
    body = body[: at.start] + mapping.astype("<i4").tobytes() + body[at.stop :]
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + body)
    vectors, _ = table(str(folder))
    number = PIECES.index("w7")
    np.testing.assert_allclose(vectors[number], rows[number % 3] * weights[number])
    assert source(str(folder)) != source(model)


def test_what_is_no_static_model_is_refused(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "model")
    with pytest.raises(NoModel, match="a static model has a matrix `embeddings`, got embeddings"):
        table(str(folder))
    with pytest.raises(NoModel, match="is not on this machine"):
        table("distil:no/such")
