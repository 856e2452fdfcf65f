"""Principal component analysis (PCA) of TF-IDF: what the dCoT paper names so, which `lsa-pca` is.

Source: Z. Xu, M. Chen, K. Weinberger and F. Sha, "From sBoW to dCoT", CIKM 2012, section 2, which names it; P. Tiňo,
lecture notes on document mining, sections 3 and 4.
"""

from typing import Any

from optuna.distributions import BaseDistribution, IntDistribution

from textbench.featurizers.lsa_pca import LsaPca

INPUT = "counts"
ACCEPTS = {"n_components": "[1, inf)"}
SEARCH_SPACE: dict[str, BaseDistribution] = {"n_components": IntDistribution(25, 400, log=True)}


class PCA(LsaPca):
    """Principal component analysis of TF-IDF: all is `LsaPca`'s, arrays, errors and source too."""

    def __init__(self, *, n_components: int = 100, random_state: int | None = None) -> None:
        super().__init__(n_components=n_components, random_state=random_state)


def build(**params: Any) -> PCA:
    """Return the unfitted transformer with these parameters."""
    return PCA(**params)
