"""TF-IDF as bits: a weight is a term's contribution to the cross-entropy from a document to its library.

Source: P. Tiňo, lecture notes on document mining, sections 1 and 2, equations (1) to (6) and definition 2.2.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Bits:
    """What a document's terms cost in bits: arrays (n_terms,) of the terms it has, and sums over them.

    terms: positions in the vocabulary, ascending. p: P(t) = N_k^i / |d^i|, equation (1). q: Q(t) = N_k / N, equation
    (2). weights: the TF-IDF weights P log2(1/Q), equation (3). cross_entropy: their sum, H^c(P, Q), equation (6).
    entropy: H(P). divergence: H^c - H, the K-L divergence as printed; since Q does not sum to one it can be negative.
    divergence_normalised: with Q over its sum, never negative.
    """

    terms: np.ndarray
    p: np.ndarray
    q: np.ndarray
    weights: np.ndarray
    cross_entropy: float
    entropy: float
    divergence: float
    divergence_normalised: float


def bits(counts: np.ndarray, document_frequency: np.ndarray, n_documents: int) -> Bits:
    """Return the cross-entropy from a document to the library, term by term, and the K-L divergence both ways.

    counts: (n_terms,), N_k^i of one document; document_frequency: (n_terms,), N_k in a library of n_documents. A term
    that no document of the library has (N_k = 0) is left out. Raises ValueError for shapes that differ and for a
    document that has no term of the library.
    """
    if counts.shape != document_frequency.shape or counts.ndim != 1:
        raise ValueError(
            f"counts and document_frequency must be vectors of one length; received {counts.shape} "
            f"and {document_frequency.shape}"
        )
    terms = np.flatnonzero((counts > 0) & (document_frequency > 0))
    if not len(terms):
        raise ValueError("a document needs at least one term of the library; received none")
    p = counts[terms] / counts[terms].sum()
    q = document_frequency[terms] / n_documents
    weights = p * np.log2(1 / q)
    entropy = float((p * np.log2(1 / p)).sum())
    divergence = float(weights.sum()) - entropy
    total = float(document_frequency.sum()) / n_documents
    return Bits(
        terms=terms,
        p=p,
        q=q,
        weights=weights,
        cross_entropy=float(weights.sum()),
        entropy=entropy,
        divergence=divergence,
        # Of two distributions it is never negative; what is below zero is rounding.
        divergence_normalised=max(0.0, divergence + float(np.log2(total))),
    )
