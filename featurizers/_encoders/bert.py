"""The forward pass of BERT in numpy: slow and plain, what the fast ones are held to.

Source: J. Devlin, M. Chang, K. Lee and K. Toutanova, "BERT: pre-training of deep bidirectional transformers for
language understanding", NAACL 2019, section 3; A. Vaswani et al., "Attention is all you need", NIPS 2017, equation 1.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import erf

from textbench.featurizers._encoders.places import NoModel

PREFIXES = ("", "bert.", "model.")


def weights_of(arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return a BERT's weights by their plain names; arrays: those of its file, of any shape (n_rows, n_columns).

    Raises NoModel for another architecture.
    """
    is_bert = config.get("model_type") == "bert" and config.get("hidden_act", "gelu") == "gelu"
    is_absolute = config.get("position_embedding_type", "absolute") == "absolute"
    for prefix in PREFIXES:
        if f"{prefix}embeddings.word_embeddings.weight" in arrays and is_bert and is_absolute:
            return {
                name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)
            }
    raise NoModel(
        f"this backend reads BERT with gelu, got {config.get('model_type')!r} with {config.get('hidden_act')!r}; "
        "backend='torch' reads others"
    )


def forward(weights: Mapping[str, np.ndarray], config: Mapping[str, Any], ids: np.ndarray) -> np.ndarray:
    """Return the last layer of one text's pieces, float32 (n_pieces, hidden_size).

    weights: as `weights_of` gives them; ids: ints (n_pieces,).
    """
    n_heads, epsilon = config["num_attention_heads"], config["layer_norm_eps"]

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normalized(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(epsilon))
        return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def heads(x: np.ndarray) -> np.ndarray:
        return x.reshape(len(ids), n_heads, -1).transpose(1, 0, 2)

    embeddings = "embeddings"
    x = weights[f"{embeddings}.word_embeddings.weight"][ids]
    x = x + weights[f"{embeddings}.position_embeddings.weight"][: len(ids)]
    x = normalized(x + weights[f"{embeddings}.token_type_embeddings.weight"][0], f"{embeddings}.LayerNorm")
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        query, key, value = (
            heads(dense(x, f"{layer}.attention.self.{name}")) for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[-1]))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = (shares @ value).transpose(1, 0, 2).reshape(len(ids), -1)
        x = normalized(
            x + dense(mixed, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm"
        )
        inner = dense(x, f"{layer}.intermediate.dense")
        inner = inner * (1 + erf(inner / np.float32(np.sqrt(2)))) / 2
        x = normalized(x + dense(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    return np.ascontiguousarray(x, dtype=np.float32)
