"""Paragraph vectors, distributed bag of words (PV-DBOW, doc2vec): a document's vector alone predicts its words.

Source: Q. Le and T. Mikolov, "Distributed representations of sentences and documents", ICML 2014, section 2.3.
"""

from typing import Any

from optuna.distributions import BaseDistribution, IntDistribution

from textbench.featurizers._paragraph_vectors import ParagraphVectors
from textbench.featurizers._parameters import check_parameters

INPUT = "tokens"
PAPER = "scdv-2017"
ACCEPTS = {
    "n_components": "[1, inf)",
    "negative": "[1, inf)",
    "min_count": "[1, inf)",
    "epochs": "[1, inf)",
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_components": IntDistribution(100, 400, step=100),
    "epochs": IntDistribution(10, 40, step=5),
}


class PvDbow(ParagraphVectors):
    """PV-DBOW: a document's vector predicts each of its words; their order does not matter.

    Trained by gensim with `negative` samples for `epochs` passes on terms that occur `min_count` times; SCDV (EMNLP
    2017) states 400 dimensions for its row of this name, the rest is as for its word vectors.

    X: a list of int32 arrays of token ids, one a document. Features: dense float32, (n_documents, n_components); a
    document without a known term is a row of zeros, and `fit` counts them in `n_empty_documents_`. `output_vectors_`:
    float32, (n_known_terms, n_components), rows for `terms_`. Raises ValueError on parameters that are no whole numbers
    from 1, or when no term occurs `min_count` times.

    Source: Le and Mikolov (2014), section 2.3.
    """

    is_dm = False

    def __init__(
        self,
        *,
        n_components: int = 400,
        negative: int = 10,
        min_count: int = 20,
        epochs: int = 25,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.negative = negative
        self.min_count = min_count
        self.epochs = epochs
        self.random_state = random_state

    def _check(self) -> None:
        check_parameters(self, ACCEPTS)


def build(**params: Any) -> PvDbow:
    """Return the unfitted transformer with these parameters."""
    return PvDbow(**params)
