"""The documents of an experiment that learns from training and test texts together."""

import numpy as np

from textbench.tasks.tokens import Vectors


def all_documents(vectors: Vectors) -> list[np.ndarray]:
    """Return the token ids of each document, int32 (n_tokens,), those of training first."""
    parts = (
        (vectors.train_ids, vectors.train_offsets),
        (vectors.test_ids, vectors.test_offsets),
    )
    return [document for ids, offsets in parts for document in np.split(ids, offsets[1:-1])]
