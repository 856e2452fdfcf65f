"""Words and topics that predict their context through a tensor: NTSG's model, its start and its training.

Source: P. Liu, X. Qiu and X. Huang, "Learning context-sensitive word embeddings with neural tensor skip-gram model",
IJCAI 2015, sections 3 and 4.
"""

from dataclasses import dataclass

import numpy as np

from textbench.featurizers._topical.embeddings import TopicReading
from textbench.featurizers._topical.products import aligned
from textbench.featurizers._topical.tensor_steps import _train_tensor, room_of

DEVIATION = 0.1  # of the tensor's numbers at the start


@dataclass(frozen=True)
class TensorModel:
    """The score of a context c is u . f(w' P_i Q_i t + V_ci . (w, t) + b_ci), i = 1 .. n_slices, all arrays float32.

    `words` w (n_known, n_dimensions); `topics` t (n_topics, n_dimensions); `contexts` V (n_known, n_slices, 2
    n_dimensions); `biases` b (n_known, n_slices); `left` P', its transpose, so that loops follow the memory, and
    `right` Q, both (n_slices, rank, n_dimensions); `mixture` u (n_slices,).
    """

    words: np.ndarray
    topics: np.ndarray
    contexts: np.ndarray
    biases: np.ndarray
    left: np.ndarray
    right: np.ndarray
    mixture: np.ndarray

    @classmethod
    def start(
        cls,
        words: np.ndarray,
        topics: np.ndarray,
        n_slices: int,
        rank: int,
        *,
        has_tensor: bool,
        rng: np.random.Generator,
    ) -> "TensorModel":
        """Return a model of these words and topics whose contexts are zero, of a random tensor or of none."""
        size = words.shape[1]
        left = rng.normal(0, DEVIATION, (n_slices, rank, size)) * has_tensor
        right = rng.normal(0, DEVIATION, (n_slices, rank, size)) * has_tensor
        arrays = (
            words,
            topics,
            np.zeros((len(words), n_slices, 2 * size)),
            np.zeros((len(words), n_slices)),
            left,
            right,
            np.full(n_slices, n_slices**-0.5),
        )
        return cls(*(aligned(array.astype(np.float32)) for array in arrays))

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Its arrays in the order above."""
        return (
            self.words,
            self.topics,
            self.contexts,
            self.biases,
            self.left,
            self.right,
            self.mixture,
        )

    def train(
        self,
        read: TopicReading,
        window: int,
        negative: int,
        n_epochs: int,
        state: np.ndarray,
        *,
        is_tanh: bool,
        has_tensor: bool,
        has_bias: bool = True,
    ) -> None:
        """Train all arrays in place; state: uint64 (1,). With a linear f the mixture stays as it is."""
        known = read.reading
        work = known.tokens, read.topics, known.offsets, known.kept, known.table
        flags = is_tanh, has_tensor, has_bias, is_tanh
        room = room_of(self.arrays, window)
        _train_tensor(work, self.arrays, (window, negative, flags), n_epochs, state, room)
