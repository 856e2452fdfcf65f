"""A table with a vector a piece: distilled from a sentence model, or that of a model2vec folder.

Source: model2vec (Minish, 2024): each piece of the vocabulary alone through the model; its later steps, PCA and Zipf
weights, are left out.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from textbench.featurizers._encoders.encoder import encoder_of, require
from textbench.featurizers._encoders.folder import fingerprint_of, model_files, read_safetensors
from textbench.featurizers._encoders.places import NoModel, find

DISTIL = "distil:"


@dataclass(frozen=True)
class PieceTable:
    """Vectors by piece, float32 (n_pieces, n_dimensions), zero for special ones, and the tokenizer as JSON."""

    vectors: np.ndarray
    tokenizer: str


def source_of(model: str) -> dict[str, Any]:
    """Return what shapes the table of a model, as JSON values. Raises NoModel where it is not on this machine."""
    if model.startswith(DISTIL):
        encoder = encoder_of(model.removeprefix(DISTIL))
        return {
            "fingerprint": encoder.folder.fingerprint,
            "pooling": encoder.pooling,
            "prompt": encoder.prompt,
        }
    require("numpy")
    folder = find(model)
    return {"fingerprint": fingerprint_of(folder, model_files(folder))}


def table_of(model: str) -> PieceTable:
    """Return the table of a model: a model2vec folder, or `distil:` before a sentence model.

    Raises NoModel where it is not on this machine or not understood.
    """
    return _distilled(model.removeprefix(DISTIL)) if model.startswith(DISTIL) else _stored(model)


def _distilled(model: str) -> PieceTable:
    encoder = encoder_of(model)
    text = (encoder.folder.transformer / "tokenizer.json").read_text("utf-8")
    n_pieces = encoder.tokenizer.get_vocab_size()
    vectors = np.zeros((n_pieces, encoder.n_dimensions), dtype=np.float32)
    special = _special(text)
    for number in range(n_pieces):
        if number not in special:
            vectors[number] = encoder.vector(np.array([number]))
    return PieceTable(vectors, text)


def _stored(model: str) -> PieceTable:
    folder = find(model)
    if not (folder / "tokenizer.json").is_file() or not (folder / "model.safetensors").is_file():
        raise NoModel(f"{folder} must hold tokenizer.json and model.safetensors, as model2vec writes them")
    text, arrays = (
        (folder / "tokenizer.json").read_text("utf-8"),
        read_safetensors(folder / "model.safetensors"),
    )
    if "embeddings" not in arrays:
        raise NoModel(
            f"{folder}: a static model has a matrix `embeddings`, got {', '.join(sorted(arrays)[:5])}"
        )
    vectors = arrays["embeddings"].astype(np.float32)
    if "mapping" in arrays:  # pieces that share a row
        vectors = vectors[arrays["mapping"]]
    if "weights" in arrays:
        vectors = vectors * arrays["weights"].astype(np.float32)[:, None]
    vectors = np.array(vectors)
    vectors[[number for number in _special(text) if number < len(vectors)]] = 0
    return PieceTable(vectors, text)


def _special(tokenizer: str) -> set[int]:
    """Return the pieces that stand for no text: special ones, and that for what is not known."""
    said = json.loads(tokenizer)
    special = {token["id"] for token in said.get("added_tokens", []) if token.get("special")}
    unknown = said["model"].get("unk_token")
    vocabulary = said["model"].get("vocab", {})
    return special | (
        {vocabulary[unknown]} if isinstance(vocabulary, dict) and unknown in vocabulary else set()
    )
