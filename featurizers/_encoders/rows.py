"""The rows of texts by their vectors: those that are known, and those that are made now."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np


def rows_of(
    texts: Sequence[str],
    known: Mapping[str, np.ndarray],
    encode: Callable[[Sequence[str]], np.ndarray],
    n_dimensions: int,
    *,
    normalize: bool,
) -> np.ndarray:
    """Return the first n_dimensions numbers of each text's vector, float32 (n_texts, n_dimensions).

    known: vectors by text, (at least n_dimensions,); `encode` makes those of the other texts, if there are any, each
    once. With `normalize` rows are of unit length, but for those of zeros.
    """
    missing = list(dict.fromkeys(text for text in texts if text not in known))
    made = dict(zip(missing, encode(missing), strict=True)) if missing else {}
    vectors = np.empty((len(texts), n_dimensions), dtype=np.float32)
    for row, text in enumerate(texts):
        vectors[row] = (made[text] if text in made else known[text])[:n_dimensions]
    if normalize:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, np.float32(1))
    return vectors
