"""Sentence embeddings on a self-made model: three forward passes that agree, cutting, pooling, and what is refused."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.small_model import CONFIG, HIDDEN, save_model, save_safetensors, weights
from textbench.featurizers._encoders import bert, onnx_graph, places
from textbench.featurizers._encoders.encoder import LIBRARIES, encoder_of
from textbench.featurizers._encoders.folder import open_model, read_safetensors
from textbench.featurizers._encoders.places import NoModel
from textbench.featurizers.sentence import MINILM, SentenceVectors

TEXTS = [
    "w1 w2 w3",
    "w7",
    "",
    "w4 W5 abc w6 w8 w9",
    " ".join(f"w{i}" for i in range(60)),
    "漢字 \x00",
    "w3 w1 w2",
]
BACKENDS = [
    name for name, (libraries, _) in LIBRARIES.items() if all(map(importlib.util.find_spec, libraries))
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_model(tmp_path_factory.mktemp("model")))


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "numpy"])
def test_backends_agree_with_the_plain_forward_pass(model: str, backend: str) -> None:
    plain = encoder_of(model, backend="numpy").encode(TEXTS)
    np.testing.assert_allclose(encoder_of(model, backend=backend).encode(TEXTS), plain, atol=1e-5)
    assert np.linalg.norm(plain, axis=1)[[0, 1, 3]] == pytest.approx(1.0)
    assert not plain[2].any() and (plain[0] != plain[6]).any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_text_has_the_same_bits_alone_and_in_any_order(model: str, backend: str) -> None:
    encoder = encoder_of(model, backend=backend)
    together = encoder.encode(TEXTS)
    assert (encoder.encode(TEXTS[::-1])[::-1] == together).all()
    assert all((encoder.encode([text])[0] == row).all() for text, row in zip(TEXTS, together, strict=True))


def test_a_long_text_is_cut_where_the_model_ends_not_where_its_tokenizer_does(model: str) -> None:
    encoder = encoder_of(model, backend="numpy")
    assert [len(pieces) for pieces in encoder.ids(TEXTS)][:5] == [3, 1, 0, 8, 60]
    assert (encoder.encode([TEXTS[4]]) == encoder.encode([" ".join(TEXTS[4].split()[:18])])).all()
    assert encoder.n_read(np.array([3, 60])).tolist() == [3, 18]


def test_chunks_are_averaged_by_their_lengths(model: str) -> None:
    words = TEXTS[4].split()
    parts = [" ".join(words[start : start + 18]) for start in range(0, 60, 18)]
    own = encoder_of(model, backend="numpy").encode(parts)
    mean = unit(np.average(own, axis=0, weights=[18, 18, 18, 6]))
    chunks = encoder_of(model, backend="numpy", long="chunks")
    np.testing.assert_allclose(chunks.encode([TEXTS[4]])[0], mean, rtol=1e-5)
    assert chunks.n_read(np.array([60])).tolist() == [60]


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken"])
def test_pooling_is_over_the_pieces_with_the_special_ones(model: str, pooling: str) -> None:
    encoder = encoder_of(model, backend="numpy", pooling=pooling)
    layer = bert.forward(weights(), CONFIG, np.array([2, *encoder.ids(["w1 w2 w3"])[0], 3]))
    by_hand = {"mean": layer.mean(axis=0), "cls": layer[0], "max": layer.max(axis=0), "lasttoken": layer[-1]}
    np.testing.assert_allclose(encoder.encode(["w1 w2 w3"])[0], unit(by_hand[pooling]), rtol=1e-5)


def test_without_attention_and_layers_the_forward_pass_is_a_lookup() -> None:
    """Limiting case: values and outer layers of zero leave normalised embeddings, normalised again."""
    flat = {
        name: array * (0 if "dense" in name or ".value." in name else 1) for name, array in weights().items()
    }
    for name in flat:
        if "LayerNorm" in name:
            flat[name] = np.full(HIDDEN, float(name.endswith("weight")), dtype=np.float32)
    ids = np.array([2, 9, 9, 3])
    rows = flat["embeddings.word_embeddings.weight"][ids] + flat["embeddings.position_embeddings.weight"][:4]
    rows = rows + flat["embeddings.token_type_embeddings.weight"][0]
    expected = (rows - rows.mean(axis=1, keepdims=True)) / rows.std(axis=1, keepdims=True)
    np.testing.assert_allclose(bert.forward(flat, CONFIG, ids), expected, rtol=1e-4, atol=1e-5)


def test_prompts_are_read_from_the_model(model: str) -> None:
    plain = encoder_of(model, backend="numpy")
    expected = plain.encode(["w1 w2 w7"])
    for prompt in ("query", "w1 w2 "):
        assert (encoder_of(model, backend="numpy", prompt=prompt).encode(["w7"]) == expected).all()


def test_linear_layers_after_pooling(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    matrix, bias = rng.normal(size=(5, HIDDEN)).astype(np.float32), rng.normal(size=5).astype(np.float32)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"}
    modules = [{"type": f"models.{kind}", "path": path} for path, kind in kinds.items()]
    folder = save_model(tmp_path / "dense", **{"modules.json": modules})
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "config.json").write_text(
        '{"activation_function": "torch.nn.modules.activation.Tanh"}'
    )
    save_safetensors(folder / "2_Dense" / "model.safetensors", {"linear.weight": matrix, "linear.bias": bias})
    encoder = encoder_of(str(folder), backend="numpy")
    layer = bert.forward(weights(), CONFIG, np.array([2, *encoder.ids(["w1"])[0], 3]))
    np.testing.assert_allclose(
        encoder.encode(["w1"])[0], np.tanh(matrix @ layer.mean(axis=0) + bias), rtol=1e-4
    )


@pytest.mark.parametrize(
    ("mode", "switch"), [("cls", "cls_token"), ("max", "max_tokens"), ("lasttoken", "lasttoken")]
)
def test_pooling_is_read_as_sentence_transformers_writes_it(tmp_path: Path, mode: str, switch: str) -> None:
    """A mode since its version 5.4, before that a switch for each; the longest text moved to the tokenizer's file."""
    since = {
        "1_Pooling/config.json": {
            "embedding_dimension": HIDDEN,
            "pooling_mode": mode,
            "include_prompt": True,
        },
        "sentence_bert_config.json": {"transformer_task": "feature-extraction"},
        "tokenizer_config.json": {"model_max_length": 20},
    }
    new = encoder_of(str(save_model(tmp_path / "new", **since)), backend="numpy")
    old = {"1_Pooling/config.json": {f"pooling_mode_{switch}": True, "pooling_mode_mean_tokens": False}}
    before = encoder_of(str(save_model(tmp_path / "old", **old)), backend="numpy")
    assert (new.pooling, new.max_tokens) == (before.pooling, before.max_tokens) == (mode, 20)
    assert (new.encode(TEXTS) == before.encode(TEXTS)).all()


def test_positions_of_roberta_begin_after_that_of_padding(tmp_path: Path) -> None:
    changed = {"config.json": CONFIG | {"model_type": "xlm-roberta"}, "sentence_bert_config.json": {}}
    endless = {"tokenizer_config.json": {"model_max_length": 10**30}}
    folder = open_model(str(save_model(tmp_path / "model", **changed, **endless)))
    assert (folder.max_tokens, folder.most_tokens) == (38, 38)


def test_a_prompt_that_pooling_leaves_out_is_refused(tmp_path: Path) -> None:
    said = {"pooling_mode": "mean", "include_prompt": False}
    folder = str(save_model(tmp_path / "model", **{"1_Pooling/config.json": said}))
    assert encoder_of(folder, backend="numpy").pooling == "mean"
    with pytest.raises(NoModel, match="leaves its prompt out of pooling"):
        encoder_of(folder, backend="numpy", prompt="query")


@pytest.mark.parametrize(
    ("config", "weights_too", "said"),
    [({"use_residual": True}, True, "a residual is not known"), ({}, False, "must hold model.safetensors")],
)
def test_linear_layers_that_are_not_understood_are_refused(
    tmp_path: Path, config: dict[str, Any], weights_too: bool, said: str
) -> None:
    with pytest.raises(NoModel, match=said):
        encoder_of(str(dense_model(tmp_path, np.eye(HIDDEN), config, weights_too)), backend="numpy").encode(
            ["w1"]
        )


@pytest.mark.parametrize("n", [5, HIDDEN])
def test_a_file_that_pools_has_the_linear_layers_too(tmp_path: Path, n: int) -> None:
    """By the length of its vectors, where that tells; pooling cannot be another then."""
    matrix = np.full((n, HIDDEN), 0.5, dtype=np.float32)
    encoder = encoder_of(str(dense_model(tmp_path, matrix)), backend="numpy")
    whole = np.arange(n, dtype=np.float32)
    vars(encoder)["forward"] = lambda ids: whole
    assert (encoder.encode(["w1"])[0] == whole).all()
    if n != HIDDEN:
        half = np.arange(HIDDEN, dtype=np.float32)
        vars(encoder)["forward"] = lambda ids: half
        assert (encoder.encode(["w1"])[0] == matrix @ half).all()
    other = encoder_of(encoder.folder.path.as_posix(), backend="numpy", pooling="cls")
    vars(other)["forward"] = lambda ids: whole
    with pytest.raises(NoModel, match="pooling can only be 'auto'"):
        other.encode(["w1"])


def dense_model(
    folder: Path, matrix: np.ndarray, config: dict[str, Any] | None = None, weights_too: bool = True
) -> Path:
    """The small model with a linear layer after pooling."""
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"}
    modules = [{"type": f"models.{kind}", "path": path} for path, kind in kinds.items()]
    model = save_model(folder / "dense", **{"modules.json": modules, "2_Dense/config.json": config or {}})
    if weights_too:
        save_safetensors(
            model / "2_Dense" / "model.safetensors", {"linear.weight": matrix.astype(np.float32)}
        )
    return model


def test_vectors_that_are_known_are_not_made_again_and_another_model_is_refused(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "model")
    known = {"w1": np.arange(HIDDEN, dtype=np.float32)}
    method = SentenceVectors(model=str(folder), backend="numpy", dimensions=4, normalize=False)
    method.fit(TEXTS, text_vectors=known)
    assert method.transform(["w1"]).tolist() == [[0, 1, 2, 3]]
    assert method.transform(["w2"]).shape == (1, 4)
    save_model(folder, seed=1)
    assert method.transform(["w1"]).tolist() == [[0, 1, 2, 3]]
    with pytest.raises(ValueError, match="another model than this was fitted with: its fingerprint must be"):
        method.transform(["w2"])


def test_a_model_is_found_in_the_hubs_cache_and_where_it_was_looked_for_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    cache = tmp_path / "models--org--name"
    with pytest.raises(NoModel) as caught:
        places.find("org/name")
    assert f"looked in ./org/name, package org-name, {cache}" in str(caught.value)
    assert "textbench models get org/name -o FOLDER, then model=FOLDER" in str(caught.value)
    save_model(cache / "snapshots" / "abc")
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("abc")
    assert places.find("org/name") == cache / "snapshots" / "abc"
    assert ("org/name", cache / "snapshots" / "abc") in list(places.known())
    with pytest.raises(NoModel, match="no installed package 'no-such-thing' with a model in it"):
        places.find("package:no-such-thing")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"modules.json": [{"type": "models.CLIP", "path": ""}]}, "Transformer, Pooling, Dense, Normalize, got CLIP"),
        ({"1_Pooling/config.json": {"pooling_mode_weightedmean_tokens": True}}, "pooling must be one of mean, cls"),
        ({"config.json": CONFIG | {"model_type": "mpnet"}}, "reads BERT with gelu, got 'mpnet' with 'gelu'"),
        ({"config.json": {}}, "must hold config.json and tokenizer.json"),
        ({"1_Pooling/config.json": {"pooling_mode": ["mean", "cls"]}}, "pooling must be one of .*, got mean, cls"),
        ({"1_Pooling/config.json": {"embedding_dimension": HIDDEN}}, "pooling must be one of .*, got none"),
    ],
)  # fmt: skip
def test_a_model_that_is_not_understood_is_refused(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    folder = save_model(tmp_path / "model", **changed)
    with pytest.raises(NoModel, match=said):
        encoder_of(str(folder), backend="numpy").encode(["w1"])


def test_settings_and_libraries_that_are_not_there(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoModel, match=r"must lie in 3 \.\. 40, got 41"):
        encoder_of(model, max_tokens=41)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NoModel, match=r"needs onnx and onnxruntime and tokenizers, .*'textbench\[neural\]'"):
        encoder_of(model)


def test_the_output_that_holds_vectors_is_chosen() -> None:
    def output(name: str, kind: str, *shape: Any) -> SimpleNamespace:
        return SimpleNamespace(name=name, type=f"tensor({kind})", shape=list(shape))

    echo, layer = output("ids", "int64", "b", "n"), output("last", "float", "b", "n", 8)
    whole, row = output("sentence_embedding", "float", "b", 8), output("pooler", "float", "b", 8)
    assert onnx_graph._output([echo, layer, row], 8) == "last"
    assert onnx_graph._output([echo, layer, whole], 8) == "last"
    assert onnx_graph._output([echo, row, whole], 8) == "sentence_embedding"
    assert onnx_graph._output([echo, row], 8) == "pooler"
    with pytest.raises(NoModel, match=r"got ids tensor\(int64\) \['b', 'n'\]"):
        onnx_graph._output([echo], 8)


def test_what_is_no_safetensors_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for content in (b"", b"\x05\x00\x00\x00\x00\x00\x00\x00hello", json.dumps({}).encode()):
        path.write_bytes(content)
        with pytest.raises(NoModel, match="is no safetensors file"):
            read_safetensors(path)


def test_the_real_model_knows_what_is_alike() -> None:
    """all-MiniLM-L6-v2: both backends agree to 1e-5, and a paraphrase is nearer than another topic."""
    pytest.importorskip("onnxruntime", reason="make encoders")
    texts = ["A man is eating food.", "Someone eats a meal.", "The stock market fell sharply today."]
    fast = encoder_of(MINILM).encode(texts)
    np.testing.assert_allclose(encoder_of(MINILM, backend="numpy").encode(texts), fast, atol=1e-5)
    cosines = fast @ fast.T
    assert cosines[0, 1] > 0.6 > 0.2 > cosines[0, 2]
