"""What metrics are called, which of them are shown, and in what unit."""

from textbench.evaluation.metrics.calibration import PROBABILITIES
from textbench.evaluation.metrics.multilabel import MULTILABEL_METRICS
from textbench.evaluation.metrics.single_label import METRICS

# What a table shows, the first of them ranking, where a document has one label and where it has several.
SHOWN = ("accuracy", "macro_f1", "map")
SHOWN_SEVERAL = ("micro_f1", "macro_f1", "precision_at_1", "lraps")
# What people call a metric, wherever it is shown: `_zero` metrics decide by a threshold of 0.
HEADINGS = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "micro_f1": "micro-F1",
    "weighted_f1": "weighted F1",
    "macro_f1_zero": "macro-F1 at 0",
    "micro_f1_zero": "micro-F1 at 0",
    "weighted_f1_zero": "weighted F1 at 0",
    "macro_precision": "macro-precision",
    "macro_recall": "macro-recall",
    "map": "MAP",
    **{f"precision_at_{k}": f"P@{k}" for k in (1, 3, 5, 10)},
    **{f"ndcg_at_{k}": f"nDCG@{k}" for k in (1, 3, 5, 10)},
    **{f"ndcg_fixed_norm_at_{k}": f"nDCG@{k} (fixed norm)" for k in (1, 3, 5)},
    "r_precision": "R-prec",
    "reciprocal_rank": "RR",
    "lraps": "LRAPS",
    "coverage_error": "coverage error",
    "log_loss": "log loss",
    "brier_score": "Brier score",
    "calibration_error": "calibration error",
}
# PROBABILITIES are in no row: stored out-of-fold scores give them when they are asked for (`flows.results.calibrated`).
KNOWN = METRICS | MULTILABEL_METRICS | PROBABILITIES
# What is not a fraction, and in what it counts.
UNITS = {"coverage_error": "labels", "log_loss": "nats", "brier_score": "squared errors"}
SHORT = 8  # characters of a run's id in a table


def heading(name: str) -> str:
    """Return what people call a metric."""
    return HEADINGS.get(name, name)


def scale(name: str) -> int:
    """Return what a metric is multiplied by to be shown: fractions are shown in percent."""
    return 1 if name in UNITS else 100


def unit(name: str) -> str:
    """Return what a metric is shown in: percent, or one of UNITS."""
    return UNITS.get(name, "percent")


def places(name: str) -> int:
    """Return with how many decimal places a metric is shown."""
    return 3 if name in ("log_loss", "brier_score") else 2
