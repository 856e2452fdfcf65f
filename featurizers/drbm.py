"""Discriminative restricted Boltzmann machine (DRBM, HDRBM): hidden units between binary words and the class.

Source: H. Larochelle and Y. Bengio, "Classification using discriminative restricted Boltzmann machines", ICML 2008,
sections 2 to 4.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.special
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution

from textbench.featurizers._classifiers import CONSTANT, CountClassifier
from textbench.featurizers._drbm import Machine
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.dcot import prototypes

INPUT = "counts"
ROLE = "classifier"
ACCEPTS = {
    "n_hidden": "[1, inf)",
    "learning_rate": "(0, inf)",
    "generative": "[0, inf)",
    "max_epochs": "[1, inf)",
    "patience": "[1, inf)",
    "held_out": "[0, 1)",
    "n_features": "[1, inf)",
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_hidden": IntDistribution(20, 1000, log=True),
    "learning_rate": FloatDistribution(1e-4, 0.1, log=True),
    "generative": FloatDistribution(0.0, 1.0),
}
BATCH = 20  # documents of one step of contrastive divergence
PARTS = ("W", "U", "b", "c", "d")


class DiscriminativeRBM(CountClassifier):
    """Restricted Boltzmann machine of words, hidden units and a class: p(y | x) = softmax_y(-F(y, x)).

    -F(y, x) = d_y + sum_j softplus(c_j + W_j x + U_jy) over `n_hidden` units, with x the `n_features` terms of the
    highest total count, each present or not. Learning climbs log p(y | x) + `generative` log p(y, x): by exact
    gradients one document at a time, the second part (0: the discriminative machine, else the hybrid one) by one step
    of contrastive divergence for each 20 documents. `learning_rate`: the size of a step. It stops when a share
    `held_out` of the training documents was not predicted better for `patience` epochs (of equal accuracies the higher
    likelihood is better), or after `max_epochs`, and keeps the best epoch; with none held out, the last. Departure: the
    paper has validation documents of its own. Of several labels each has a machine of its own. `random_state`: the seed
    of what is drawn and held out.

    `terms_`: the columns of X that are read, (n_words,); `machines_`: one, or one a label, None for a label that no
    document has, or all; `n_epochs_`: the epoch that each was kept of.

    X, y, shapes and errors: `CountClassifier`; ValueError too for parameters outside their range, and where learning
    diverges.

    Source: Larochelle and Bengio (2008), sections 2 to 4.
    """

    def __init__(
        self,
        *,
        n_hidden: int = 50,
        learning_rate: float = 0.01,
        generative: float = 0.0,
        max_epochs: int = 100,
        patience: int = 10,
        held_out: float = 0.15,
        n_features: int = 5000,
        random_state: int | None = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.learning_rate = learning_rate
        self.generative = generative
        self.max_epochs = max_epochs
        self.patience = patience
        self.held_out = held_out
        self.n_features = n_features
        self.random_state = random_state

    def _fit_classes(self, counts: sp.csr_matrix, codes: np.ndarray) -> None:
        self._fit_machines(counts, [codes if len(self.classes_) > 1 else None])

    def _fit_labels(self, counts: sp.csr_matrix, indicator: np.ndarray) -> None:
        n_with = indicator.sum(axis=0)
        self.always_: np.ndarray = n_with == len(indicator)
        is_constant = self.always_ | (n_with == 0)
        labels = indicator.T.astype(np.int64)
        self._fit_machines(counts, [None if c else y for c, y in zip(is_constant, labels, strict=True)])

    def _fit_machines(self, counts: sp.csr_matrix, targets: "list[np.ndarray | None]") -> None:
        check_parameters(self, ACCEPTS)
        self.terms_ = prototypes(counts, "count", self.n_features)
        X = self._words(counts)
        learned = [(None, 0) if y is None else self._learn(X, y) for y in targets]
        self.machines_ = [machine for machine, _ in learned]
        self.n_epochs_ = np.array([n_epochs for _, n_epochs in learned])

    def _words(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        """Return which of the terms that are read each document has: csr (n_documents, n_words), only its places."""
        return counts[:, self.terms_]

    def _learn(self, X: sp.csr_matrix, codes: np.ndarray) -> tuple[Machine, int]:
        """Return the machine of the best epoch, and its number."""
        rng = np.random.default_rng(self.random_state)
        machine = Machine.initial(X, codes.max() + 1, self.n_hidden, rng)
        order = rng.permutation(len(codes))
        held, train = np.split(order, [int(self.held_out * len(codes))])
        best: tuple[tuple[float, float], Machine, int] | None = None
        for epoch in range(1, self.max_epochs + 1):
            with np.errstate(all="ignore"):  # what is not finite is refused below
                self._climb(machine, X, codes, rng.permutation(train), rng)
            if not machine.is_finite():
                raise ValueError(
                    f"learning diverged in epoch {epoch} with learning_rate {self.learning_rate:g} and generative "
                    f"{self.generative:g}: a smaller one of them is needed"
                )
            quality = _quality(machine, X[held], codes[held])
            if best is None or quality > best[0] or not len(held):
                best = (quality, machine.copy(), epoch)
            elif epoch - best[2] >= self.patience:
                break
        assert best is not None
        return best[1:]

    def _climb(
        self,
        machine: Machine,
        X: sp.csr_matrix,
        codes: np.ndarray,
        order: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        """Visit the documents once in this order."""
        X, codes = X[order], codes[order]
        if not self.generative:
            machine.ascend(X, codes, self.learning_rate)
            return
        for low in range(0, len(codes), BATCH):
            batch = slice(low, low + BATCH)
            machine.ascend(X[batch], codes[batch], self.learning_rate)
            machine.diverge(X[batch], codes[batch], self.learning_rate * self.generative, rng)

    def _scores(self, counts: sp.csr_matrix) -> np.ndarray:
        X = self._words(counts)
        if not self.several_labels_:
            machine = self.machines_[0]
            return np.zeros((X.shape[0], 1)) if machine is None else machine.free_energies(X)
        scores = np.empty((X.shape[0], len(self.machines_)))
        for column, machine, always in zip(scores.T, self.machines_, self.always_, strict=True):
            if machine is None:
                column[:] = CONSTANT if always else -CONSTANT
            else:
                energies = machine.free_energies(X)
                column[:] = energies[:, 1] - energies[:, 0]
        return scores

    def _learned(self) -> dict[str, Any]:
        learned = {"terms_": self.terms_, "n_epochs_": self.n_epochs_}
        if self.several_labels_:
            learned["always_"] = self.always_
        machines = [(k, machine) for k, machine in enumerate(self.machines_) if machine is not None]
        return learned | {f"{part}_{k}": getattr(machine, part) for k, machine in machines for part in PARTS}

    def _restore(self, arrays: dict[str, Any]) -> None:
        self.terms_, self.n_epochs_ = arrays["terms_"], arrays["n_epochs_"]
        if self.several_labels_:
            self.always_ = arrays["always_"]
        self.machines_ = [
            Machine(*(arrays[f"{part}_{k}"] for part in PARTS)) if f"W_{k}" in arrays else None
            for k in range(len(self.n_epochs_))
        ]


def _quality(machine: Machine, X: sp.csr_matrix, codes: np.ndarray) -> tuple[float, float]:
    """Return the accuracy and the mean log p(y | x) of documents, csr (n, n_words), and their classes."""
    if not len(codes):
        return 0.0, 0.0
    energies = machine.free_energies(X)
    logs = scipy.special.log_softmax(energies, axis=1)[np.arange(len(codes)), codes]
    return float(np.mean(energies.argmax(axis=1) == codes)), float(logs.mean())


def build(**params: Any) -> DiscriminativeRBM:
    """Return the unfitted classifier with these parameters."""
    return DiscriminativeRBM(**params)
