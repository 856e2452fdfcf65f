"""Whether a run's probabilities are right: log loss, Brier score and calibration error, from what is stored of it.

Decision values become probabilities by Platt's sigmoid (`evaluation.ensembles.Calibration`), fitted to the out-of-fold
scores of training documents that the run kept, and are judged on the test documents. Nothing is trained or predicted
again, and no key changes.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textbench.flows.results.runs import Run
from textbench.tasks import ensemble, out_of_fold
from textbench.tasks.storage.store import Store

if TYPE_CHECKING:
    import numpy as np

    from textbench.tasks.storage.store import Artifact

HEADINGS = {"log_loss": "log loss, nats", "brier": "Brier score", "error": "calibration error, %"}


def calibration(run: Run) -> dict[str, float] | None:
    """Return log loss, Brier score and calibration error (a fraction) of a run on its test documents.

    None where out-of-fold scores were not kept (`--no-scores`, `--timed`, labels of a budget, a file's predictions),
    are gone, or are of no document.
    """
    from textbench.evaluation.ensembles import Calibration
    from textbench.tasks.corpus import read_targets

    scores = _out_of_fold(run)
    if scores is None or not len(documents := scores.array("documents")):
        return None
    corpus, known = run.open("corpus"), scores.array("scores")
    several = (targets := read_targets(corpus, "train")[documents]).ndim == 2
    line = Calibration.fit(known, ensemble.indicator_of(targets, known.shape[1]), several_labels=several)
    shares = line.probabilities(run.open("result").array("scores"))
    indicator = ensemble.indicator_of(read_targets(corpus, "test"), known.shape[1])
    return judged(indicator, shares, several_labels=several)


def judged(indicator: "np.ndarray", shares: "np.ndarray", *, several_labels: bool) -> dict[str, float]:
    """Return what probabilities, (n_documents, n_labels), are worth for a bool indicator of that shape, by HEADINGS."""
    from textbench.evaluation.metrics.calibration import brier_score, calibration_error, log_loss

    metrics = {"log_loss": log_loss, "brier": brier_score, "error": calibration_error}
    return {
        name: metric(indicator, shares, several_labels=several_labels) for name, metric in metrics.items()
    }


def shown(found: Mapping[str, float]) -> str:
    """Return the figures as a line."""
    return ", ".join(f"{HEADINGS[name]} {_figure(name, value)}" for name, value in found.items())


def _figure(name: str, value: float) -> str:
    return f"{100 * value:.1f}" if name == "error" else f"{value:.3f}"


def _out_of_fold(run: Run) -> "Artifact | None":
    """Return what holds a run's out-of-fold scores; of an ensemble that is its choice."""
    store, choice = Store(run.home / "store"), run.reference.inputs["choice"]
    if "validation" not in choice.params:
        return None
    is_ensemble = "member_01" in run.reference.inputs
    found = choice if is_ensemble else out_of_fold.reference(run.reference)
    return store.open(found) if store.has(found) else None
