"""Whether probabilities are right: log loss, Brier score and calibration error, each a line of `PROBABILITIES`.

They are of one label a document or several. Decision values become probabilities by `CALIBRATED_BY`, learned out of
fold (`evaluation.ensembles.Calibration`). Lower is better.

Sources: Brier, Verification of Forecasts Expressed in Terms of Probability, Monthly Weather Review 78 (1950); Naeini,
Cooper, Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian Binning, AAAI (2015), section 4.1.
"""

from typing import TYPE_CHECKING

from textbench.evaluation.metrics.single_label import Metric

if TYPE_CHECKING:  # the command line imports this module and has to stay instant
    import numpy as np

CALIBRATED_BY = "Platt's sigmoid, of one of more than two classes a softmax at the best temperature"
N_BINS = 15
TINY = 1e-15


def log_loss(indicator: "np.ndarray", probabilities: "np.ndarray", *, several_labels: bool) -> float:
    """Log loss in nats: minus the mean logarithm of the probability of a document's class, of several of each answer.

    indicator: bool (n_documents, n_labels); probabilities: floats in 0 .. 1 of that shape.
    """
    import numpy as np

    if several_labels:
        return float(
            -np.mean(np.log(np.maximum(np.where(indicator, probabilities, 1 - probabilities), TINY)))
        )
    return float(-np.mean(np.log(np.maximum(probabilities[indicator], TINY))))


def brier_score(indicator: "np.ndarray", probabilities: "np.ndarray", *, several_labels: bool) -> float:
    """Brier score: the mean over documents of the summed squared errors of its classes; of several labels their mean.

    indicator: bool (n_documents, n_labels); probabilities: floats of that shape. 0 at best, of one label 2 at worst.
    """
    squares = (probabilities - indicator) ** 2
    return float(squares.mean() if several_labels else squares.sum(axis=1).mean())


def calibration_error(indicator: "np.ndarray", probabilities: "np.ndarray", *, several_labels: bool) -> float:
    """Expected calibration error: how far confidence is from the share that is right, over 15 bins of equal width.

    indicator: bool (n_documents, n_labels); probabilities: floats of that shape. Of one label the confidence is that in
    the class predicted; of several every answer's counts.
    """
    import numpy as np

    if several_labels:
        confidence, right = (
            np.maximum(probabilities, 1 - probabilities).ravel(),
            ((probabilities > 0.5) == indicator).ravel(),
        )
    else:
        predicted = probabilities.argmax(axis=1)
        rows = np.arange(len(predicted))
        confidence, right = probabilities[rows, predicted], indicator[rows, predicted]
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    apart = np.bincount(bins, confidence - right, minlength=N_BINS)
    return float(np.abs(apart).sum() / len(confidence))


PROBABILITIES = {
    metric.name: metric
    for metric in (
        Metric(
            "log_loss",
            "surprise at the right answers, in nats: minus the mean logarithm of their probability",
            log_loss,
            "scores",
            higher_is_better=False,
        ),
        Metric(
            "brier_score",
            "mean squared error of the probabilities, summed over the classes of one label a document",
            brier_score,
            "scores",
            higher_is_better=False,
        ),
        Metric(
            "calibration_error",
            "how far confidence is from the share that is right, over 15 bins",
            calibration_error,
            "scores",
            higher_is_better=False,
        ),
    )
}
