"""The probes, by name: the classifiers that every representation is judged by; those that LIBLINEAR is the model for.

Source: Fan, Chang, Hsieh, Wang, Lin, LIBLINEAR: A Library for Large Linear Classification, JMLR 9 (2008).
"""

import inspect
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from textbench.evaluation.columns import full_columns
from textbench.evaluation.probes.linear import FoldPath, LinearProbe, check_documents, root_mean_square_norm
from textbench.evaluation.probes.nonlinear import NeighboursProbe, PerceptronProbe
from textbench.evaluation.probes.solvers.choice import (
    MOST_COPIED,
    Solver,
    choose_logistic_solver,
    choose_solver,
    liblinear_dual,
)
from textbench.evaluation.probes.wide import ElasticNetProbe

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from textbench.evaluation.probes.solvers.gram import GramDocuments

# On Reuters R8 predictions at 1e-3 and at 1e-5 are the same for counts and tf-idf, and differ for at most 3
# in 1,000 documents for 200 singular vectors; the large C take less than half the time.
TOLERANCE = 1e-3


class LiblinearProbe(LinearProbe):
    """A probe that LIBLINEAR fits, through scikit-learn, or what is quicker for its documents."""

    @abstractmethod
    def _solver(self, n_documents: int) -> Any:
        """The unfitted scikit-learn estimator for so many documents."""

    @abstractmethod
    def _chosen(self, X: "np.ndarray | csr_matrix") -> Solver:
        """Who solves the problems of these documents."""

    @abstractmethod
    def _gram_documents(self) -> "type[GramDocuments]":
        """How the solver wants documents that go by their inner products."""

    def _path(self, documents: Any, y: "np.ndarray | csr_matrix", c_grid: Sequence[float]) -> Iterator[Self]:
        if not hasattr(documents, "gram"):
            yield from super()._path(documents, y, c_grid)
            return
        documents.plan(c_grid)
        yield from super()._path(documents, y, c_grid)
        documents.pause()

    def _prepared(self, X: "np.ndarray | csr_matrix", y: "np.ndarray | csr_matrix") -> Any:
        if self._chosen(X) != "gram":
            return super()._prepared(X, y)
        from textbench.evaluation.probes.solvers.gram import gram_matrix

        check_documents(X, y)
        self.scale_ = self._scale(X)
        every = np.arange(X.shape[0])
        return self._gram_documents()(X, gram_matrix(X), every, self.scale_)

    def fit_folds(
        self,
        X: "np.ndarray | csr_matrix",
        y: "np.ndarray | csr_matrix",
        folds: Iterable[tuple[np.ndarray, np.ndarray]],
    ) -> Iterator[tuple[FoldPath[Self], Any]]:
        """Yield for each fold what fits probes for a grid of C, and what these are to be asked about.

        One Gram matrix serves all folds, where it is the quicker way; the probes then know no features, but
        the products with the fold's documents, which are what they are asked about.
        """
        if self._chosen(X) != "gram":
            yield from super().fit_folds(X, y, folds)
            return
        from scipy.sparse import eye_array

        from textbench.evaluation.probes.solvers.gram import gram_matrix

        gram = gram_matrix(X)
        for train, test in folds:
            check_documents(X[train], y[train])
            probe = copy(self)
            probe.scale_ = self._scale(X[train])
            documents = self._gram_documents()(X, gram, train, probe.scale_, held_out=test)
            yield partial(probe._path, documents, y[train]), eye_array(len(test), format="csr")

    def _fit_labels(self, documents: Any, labels: np.ndarray, indicator: np.ndarray) -> None:
        if not hasattr(documents, "gram"):
            super()._fit_labels(documents, labels, indicator)
            return
        self.coef_[labels], self.intercept_[labels], converged = documents.solve(
            indicator, self.C, self.max_iter
        )
        self.converged_ &= converged

    def _fit_label(self, documents: Any, label: int, y: np.ndarray) -> None:
        solver = self._solve(documents, y)
        self.coef_[label] = solver.coef_[0] / self.scale_
        self.intercept_[label] = solver.intercept_[0]

    def _solve(self, documents: Any, y: np.ndarray) -> Any:
        from sklearn.exceptions import ConvergenceWarning

        solver = self._solver(documents.shape[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `converged_` says it
            solver.fit(documents, y)
        self.converged_ &= bool(np.max(solver.n_iter_) < self.max_iter)
        return solver


class LinearSVMProbe(LiblinearProbe):
    """Linear support vector machine: L2-regularised squared hinge loss, each class against the rest.

    Arguments, shapes, errors: `LinearProbe`. Scores are margins, in units of the hinge. `choose_solver` says who
    solves the problem: Newton's method on the features, on the Gram matrix or in passes, or dual descent, with a
    certified duality gap, or LIBLINEAR. max_iter: Newton steps, passes of dual descent or LIBLINEAR's.
    """

    def _chosen(self, X: "np.ndarray | csr_matrix") -> Solver:
        return choose_solver(X)

    def _gram_documents(self) -> "type[GramDocuments]":
        from textbench.evaluation.probes.solvers.gram import HingeDocuments

        return HingeDocuments

    def fit_folds(
        self,
        X: "np.ndarray | csr_matrix",
        y: "np.ndarray | csr_matrix",
        folds: Iterable[tuple[np.ndarray, np.ndarray]],
    ) -> Iterator[tuple[FoldPath[Self], Any]]:
        """Yield for each of the folds, positions (train, test), what fits probes and what these are to be asked about.

        Of very many values the training documents are read where they lie.
        """
        n_values = X.size if isinstance(X, np.ndarray) else X.nnz
        if n_values <= MOST_COPIED:
            yield from super().fit_folds(X, y, folds)
            return
        for train, test in folds:
            if n_values * (len(train) / X.shape[0]) <= MOST_COPIED:
                yield from super().fit_folds(X, y, [(train, test)])
                continue
            check_documents(train, y[train])
            probe = copy(self)
            probe.scale_ = root_mean_square_norm(X, train) if self.scaled else 1.0
            yield partial(probe._path, probe._documents(X, "streamed", train), y[train]), X[test]

    def _solver(self, n_documents: int) -> Any:
        from sklearn.svm import LinearSVC

        dual = liblinear_dual(n_documents, self.C)
        return LinearSVC(
            C=self.C, dual=dual, tol=TOLERANCE, max_iter=self.max_iter, random_state=self.random_state
        )

    def _prepared(self, X: "np.ndarray | csr_matrix", y: "np.ndarray | csr_matrix") -> Any:
        solver = self._chosen(X)
        if solver in ("liblinear", "gram"):
            return super()._prepared(X, y)
        check_documents(X, y)
        self.scale_ = self._scale(X)
        return self._documents(X, solver)

    def _documents(self, X: "np.ndarray | csr_matrix", solver: Solver, rows: np.ndarray | None = None) -> Any:
        """All documents, or for the solver of very many those at some positions, as the solver wants them."""
        if solver == "primal":
            from textbench.evaluation.probes.solvers.primal_newton import PrimalPath

            return PrimalPath(X, self.scale_)
        if solver == "streamed":  # it loads numba, which takes a second, as the other does
            from textbench.evaluation.probes.solvers.streamed_newton import StreamedNewton

            return StreamedNewton(X, self.scale_, rows)
        from textbench.evaluation.probes.solvers.dual_descent import DualPath

        return DualPath(X, full_columns(X), self.scale_, self.random_state)

    def _fit_classes(self, documents: Any, y: np.ndarray) -> None:
        if hasattr(documents, "gram") or hasattr(documents, "solve_all"):
            super()._fit_classes(documents, y)
            return
        self.converged_ = True
        solver = self._solve(documents, y)  # LIBLINEAR goes through the classes itself
        self.coef_ = solver.coef_ / self.scale_
        self.intercept_ = solver.intercept_

    def _fit_labels(self, documents: Any, labels: np.ndarray, indicator: np.ndarray) -> None:
        if not hasattr(documents, "solve_all"):
            super()._fit_labels(documents, labels, indicator)
            return
        solved = documents.solve_all(indicator, self.C, self.max_iter)
        for label, (coefficients, intercept, converged) in zip(labels, solved, strict=True):
            self.coef_[label], self.intercept_[label] = coefficients, intercept
            self.converged_ &= converged


class LogisticRegressionProbe(LiblinearProbe):
    """Logistic regression: L2-regularised logistic loss, each class against the rest.

    Arguments, shapes, errors: `LinearProbe`. Scores are log odds, so that a score above 0 is a probability
    above one half. Solved for all labels together by Newton's method on the Gram matrix, with a certified duality
    gap, or by LIBLINEAR's trust region method (`choose_logistic_solver`), both without random numbers. max_iter: their
    steps.
    """

    def _chosen(self, X: "np.ndarray | csr_matrix") -> Solver:
        return choose_logistic_solver(X)

    def _gram_documents(self) -> "type[GramDocuments]":
        from textbench.evaluation.probes.solvers.gram import LogisticDocuments

        return LogisticDocuments

    def predict_proba(self, X: "np.ndarray | csr_matrix") -> np.ndarray:
        """Return probabilities (n_documents, n_classes): of classes normalised to sum to one, as scikit-learn's
        one-vs-rest does; of several labels each label's own.
        """
        from scipy.special import expit, log_expit, softmax

        scores = self.decision_function(X)
        if scores.ndim == 1:
            pair = np.column_stack([expit(-scores), expit(scores)])
            return pair if len(self.classes_) == 2 else np.ones((len(scores), 1))
        return expit(scores) if self.thresholds_ is not None else softmax(log_expit(scores), axis=1)

    def _solver(self, n_documents: int) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=self.C, solver="liblinear", tol=TOLERANCE, max_iter=self.max_iter)


PROBES: dict[str, type[LinearProbe]] = {
    "linear-svm": LinearSVMProbe,
    "logistic-regression": LogisticRegressionProbe,
    "elastic-net": ElasticNetProbe,
    "neighbours": NeighboursProbe,
    "perceptron": PerceptronProbe,
}


def probe_class(name: str) -> type[LinearProbe]:
    """The probe of that name; ValueError for a name that is not in PROBES, nearest first."""
    if name not in PROBES:
        nearest = get_close_matches(name, PROBES, n=len(PROBES), cutoff=0.0)
        raise ValueError(f"probe must be one of {', '.join(nearest)}; received {name!r}")
    return PROBES[name]


def build_probe(name: str, C: float = 1.0, random_state: int = 0, **settings: Any) -> LinearProbe:
    """The unfitted probe of that name; ValueError for a name that is not in PROBES, or a setting it lacks."""
    probe = probe_class(name)
    known = [key for key in inspect.signature(probe).parameters if key not in ("C", "random_state")]
    unknown = sorted(settings.keys() - set(known))
    if unknown:
        raise ValueError(f"a setting of {name} must be one of {', '.join(known)}; received {unknown[0]!r}")
    return probe(C=C, random_state=random_state, **settings)
