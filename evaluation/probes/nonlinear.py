"""Probes that draw no hyperplanes: k-nearest neighbours by cosine, and a perceptron with one hidden layer.

They answer whether a linear probe favours some representations over others. Each has one constant C like the others:
the number of neighbours, and 1 / alpha, alpha being the perceptron's L2 penalty.

Sources: Yang, Liu, A Re-examination of Text Categorization Methods, SIGIR (1999), section 2.2; Kingma, Ba, Adam, ICLR
(2015).
"""

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from textbench.evaluation.probes.linear import CONSTANT, LinearProbe, dense_indicator

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BLOCK = 1024  # documents whose similarities are held at once
# Of the perceptron: so many steps of this size bring its loss on training documents near to where it stays, so that the
# penalty decides how near. BATCH is scikit-learn's.
N_HIDDEN, N_PASSES, N_STEPS, BATCH, STEP = 64, 15, 2000, 200, 0.003
FLAT = 1e-4  # eleven passes in a row that better the lowest mean loss by less end it


class NonlinearProbe(LinearProbe):
    """What the probes here share: targets as an indicator, a column a class, and constant labels.

    Arguments, shapes and errors are those of `LinearProbe`; there are no `coef_` and `intercept_`. Of one label a
    document the highest score wins, of several those above 0.
    """

    @abstractmethod
    def _learn(self, documents: Any, indicator: np.ndarray) -> None:
        """Learn from documents, divided by `scale_`, and a boolean indicator (n_documents, n_columns)."""

    @abstractmethod
    def _columns(self, documents: Any) -> np.ndarray:
        """Scores of documents, divided by `scale_`, (n_documents, n_columns): above 0 what is likelier than not."""

    @abstractmethod
    def _arrays(self) -> dict[str, Any]:
        """What `_learn` has learned."""

    @abstractmethod
    def _restore(self, arrays: Mapping[str, Any]) -> None:
        """Take over what `_arrays` gave."""

    def _fit_label(self, documents: Any, label: int, y: np.ndarray) -> None:
        """Learn one label alone, as a problem of one column; `_fit` learns all of them together."""
        self._learn(documents, y[:, None])

    def _fit(self, documents: Any, y: "np.ndarray | csr_matrix") -> Self:
        if not self.C > 0:
            raise ValueError(f"C must be positive; received {self.C!r}")
        self.n_features_, self.converged_ = documents.shape[1], True
        if y.ndim == 2:
            self.classes_, self.thresholds_ = np.arange(y.shape[1]), np.zeros(y.shape[1])
            indicator = dense_indicator(y)
        else:
            self.classes_, self.thresholds_ = np.unique(y), None
            indicator = y[:, None] == self.classes_
        n_positive = indicator.sum(axis=0)
        self.known_ = (n_positive > 0) & (n_positive < len(indicator))
        self.constant_ = np.where(n_positive == 0, -CONSTANT, CONSTANT)
        if self.known_.any():
            self._learn(documents, indicator[:, self.known_])
        return self

    def decision_function(self, X: "np.ndarray | csr_matrix") -> np.ndarray:
        """Signed scores: (n_documents, n_classes), or (n_documents,) for the second of two classes.

        ValueError for another number of features than in `fit`.
        """
        if X.shape[1] != self.n_features_:
            raise ValueError(
                f"X must have the {self.n_features_} features of training; received {X.shape[1]}"
            )
        scores = np.tile(self.constant_, (X.shape[0], 1)).astype(np.float64)
        if self.known_.any():
            scores[:, self.known_] = self._columns(X / self.scale_)
        if self.thresholds_ is not None or len(self.classes_) > 2:
            return scores
        return (scores[:, 1] - scores[:, 0]) / 2 if len(self.classes_) == 2 else scores[:, 0]

    def to_arrays(self) -> dict[str, Any]:
        """Return everything that prediction needs, as arrays and JSON values."""
        names = ("C", "random_state", "max_iter", "scaled")
        learned = ("classes", "scale", "converged", "known", "constant", "n_features")
        arrays = {name: getattr(self, name) for name in names}
        arrays |= {name: getattr(self, f"{name}_") for name in learned}
        arrays |= {} if self.thresholds_ is None else {"thresholds": self.thresholds_}
        return arrays | (self._arrays() if self.known_.any() else {})

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """The fitted probe that `to_arrays` described."""
        probe = cls(float(arrays["C"]), int(arrays["random_state"]), int(arrays["max_iter"]))
        probe.scaled, probe.converged_ = bool(arrays["scaled"]), bool(arrays["converged"])
        probe.scale_, probe.n_features_ = float(arrays["scale"]), int(arrays["n_features"])
        for name in ("classes", "known", "constant"):
            setattr(probe, f"{name}_", np.asarray(arrays[name]))
        probe.thresholds_ = np.asarray(arrays["thresholds"]) if "thresholds" in arrays else None
        if probe.known_.any():
            probe._restore(arrays)
        return probe


def _n_passes(n_documents: int) -> int:
    """Return how often the perceptron goes over the documents."""
    return max(N_PASSES, math.ceil(N_STEPS / math.ceil(n_documents / BATCH)))


def _of_network(indicator: np.ndarray, *, several: bool) -> np.ndarray:
    """Return class ids, or labels as 0 and 1, of an indicator, bool (n_documents, n_columns)."""
    if not several:
        return indicator.argmax(axis=1)
    return indicator[:, 0].astype(int) if indicator.shape[1] == 1 else indicator.astype(int)


class NeighboursProbe(NonlinearProbe):
    """k-nearest neighbours by cosine, each voting with its similarity (Yang and Liu 1999); C is k, rounded.

    The score of a class is 2 v - 1, v being its share of the votes; a document without a feature in common with any
    other has the classes' shares of the training documents.
    """

    def _learn(self, documents: Any, indicator: np.ndarray) -> None:
        from sklearn.preprocessing import normalize

        self.documents_, self.indicator_ = normalize(documents).astype(np.float32), indicator

    def _columns(self, documents: Any) -> np.ndarray:
        from sklearn.preprocessing import normalize

        asked, votes = normalize(documents).astype(np.float32), self.indicator_.astype(np.float64)
        k = int(np.clip(round(self.C), 1, len(votes)))
        found = []
        for start in range(0, asked.shape[0], BLOCK):
            products = asked[start : start + BLOCK] @ self.documents_.T
            similar = products if isinstance(products, np.ndarray) else products.toarray()
            # Stable, so that of equally similar documents the first ones count.
            nearest = np.argsort(-similar, axis=1, kind="stable")[:, :k]
            weights = np.maximum(np.take_along_axis(similar, nearest, axis=1), 0).astype(np.float64)
            total = weights.sum(axis=1, keepdims=True)
            shares = np.einsum("nk,nkc->nc", weights, votes[nearest]) / np.where(total > 0, total, 1)
            found.append(np.where(total > 0, shares, votes.mean(axis=0)))
        return 2 * np.concatenate(found) - 1

    def _arrays(self) -> dict[str, Any]:
        if isinstance(self.documents_, np.ndarray):
            return {"documents": self.documents_, "indicator": self.indicator_}
        csr = self.documents_.tocsr()
        return {"indicator": self.indicator_} | {
            name: getattr(csr, name) for name in ("data", "indices", "indptr")
        }

    def _restore(self, arrays: Mapping[str, Any]) -> None:
        from scipy.sparse import csr_matrix

        self.indicator_ = np.asarray(arrays["indicator"])
        if "documents" in arrays:
            self.documents_ = np.asarray(arrays["documents"])
            return
        parts = tuple(np.asarray(arrays[name]) for name in ("data", "indices", "indptr"))
        self.documents_ = csr_matrix(parts, shape=(len(self.indicator_), self.n_features_))


class PerceptronProbe(NonlinearProbe):
    """A multilayer perceptron with one hidden layer of N_HIDDEN rectified units, by scikit-learn; C is 1 / alpha.

    Adam goes over the documents N_PASSES times, of up to 26,600 until it has made N_STEPS steps, or until the loss
    is FLAT, in an order that `random_state` draws, with steps of STEP on features divided by their scale. Classes are
    learned together (softmax), labels each by a sigmoid. Scores of classes are 2 p - 1, of labels log odds within +-30.
    """

    DRAWS = True

    def _learn(self, documents: Any, indicator: np.ndarray) -> None:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier

        several = self.thresholds_ is not None
        network = MLPClassifier(
            (N_HIDDEN,),
            alpha=1 / self.C,
            learning_rate_init=STEP,
            max_iter=_n_passes(len(indicator)),
            random_state=self.random_state,
            tol=FLAT,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # so many steps are what was asked for
            network.fit(documents, _of_network(indicator, several=several))
        self.layers_ = [np.asarray(one) for one in (*network.coefs_, *network.intercepts_)]

    def _columns(self, documents: Any) -> np.ndarray:
        first, second, first_bias, second_bias = self.layers_
        output = np.maximum(documents @ first + first_bias, 0) @ second + second_bias
        if self.thresholds_ is not None:
            return np.clip(output, -30, 30)
        if output.shape[1] == 1:
            output = np.column_stack([np.zeros(len(output)), output])
        shares = np.exp(output - output.max(axis=1, keepdims=True))
        return 2 * shares / shares.sum(axis=1, keepdims=True) - 1

    def _arrays(self) -> dict[str, Any]:
        return {f"layer_{place}": layer for place, layer in enumerate(self.layers_)}

    def _restore(self, arrays: Mapping[str, Any]) -> None:
        self.layers_ = [np.asarray(arrays[f"layer_{place}"]) for place in range(4)]
