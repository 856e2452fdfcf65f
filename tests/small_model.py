"""A sentence model of 100 kB, made here: a BERT of 2 layers and 32 numbers with seeded weights, and 200 pieces."""

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.embeddings_stub import small_endpoint

FOLDER = tempfile.TemporaryDirectory()
HIDDEN, INNER, LAYERS, HEADS, LONGEST = 32, 64, 2, 4, 40
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
PIECES = [
    *SPECIAL,
    *(f"w{i}" for i in range(120)),
    *"abcdefghijklmnopqrstuvwxyz",
    *(f"##{c}" for c in "abcdefghijklmnopqrst"),
]
CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": LONGEST,
    "type_vocab_size": 2,
    "vocab_size": len(PIECES),
    "architectures": ["BertModel"],
}


def weights(seed: int = 0) -> dict[str, np.ndarray]:
    """Return the weights by their names in a file of BERT."""
    rng = np.random.default_rng(seed)
    found: dict[str, np.ndarray] = {}

    def add(name: str, *shape: int) -> None:
        found[name] = rng.normal(scale=0.3, size=shape).astype(np.float32)

    def normalization(name: str) -> None:
        found[f"{name}.weight"] = rng.uniform(0.5, 1.5, size=HIDDEN).astype(np.float32)
        add(f"{name}.bias", HIDDEN)

    for name, n in (("word", len(PIECES)), ("position", LONGEST), ("token_type", 2)):
        add(f"embeddings.{name}_embeddings.weight", n, HIDDEN)
    normalization("embeddings.LayerNorm")
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            add(f"{layer}.attention.{name}.weight", HIDDEN, HIDDEN)
            add(f"{layer}.attention.{name}.bias", HIDDEN)
        normalization(f"{layer}.attention.output.LayerNorm")
        for name, n_out, n_in in (("intermediate", INNER, HIDDEN), ("output", HIDDEN, INNER)):
            add(f"{layer}.{name}.dense.weight", n_out, n_in)
            add(f"{layer}.{name}.dense.bias", n_out)
        normalization(f"{layer}.output.LayerNorm")
    return found


def save_safetensors(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write float32 arrays as the format's page says."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(a.tobytes() for a in arrays.values()))


def save_model(folder: Path, seed: int = 0, **changed: Any) -> Path:
    """Write the model to a folder and return it; the tokenizer's file pads and truncates, as real ones do."""
    pytest.importorskip("tokenizers", reason="make encoders")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(7)
    tokenizer.enable_padding(length=7)
    tokenizer.save(str(folder / "tokenizer.json"))
    save_safetensors(folder / "model.safetensors", weights(seed))
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    files: dict[str, Any] = {
        "config.json": CONFIG,
        "modules.json": [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(kinds.items())
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": HIDDEN, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": 20},
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"},
        "config_sentence_transformers.json": {"prompts": {"query": "w1 w2 "}},
    }
    for name, content in (files | changed).items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
    return folder


@functools.cache
def small_model() -> str:
    """Return the folder of a model that all tests of a process share."""
    return str(save_model(Path(FOLDER.name)))


def small_params(name: str) -> dict[str, Any]:
    """Return the parameters with which a method that stands on a model reads the small one, none for another."""
    if name == "api":
        return small_endpoint()
    model = {"sentence": "", "static": "distil:"}
    return {"model": model[name] + small_model()} if name in model else {}
