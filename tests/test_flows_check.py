"""`textbench check`: a method that breaks a promise is told which, with what was expected and received."""

from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from textbench.featurizers._contract import CHECKS, Subject, run_checks
from textbench.flows.cli import app
from textbench.tasks import InputError

METHOD = '''"""Counts again.

Source: none.
"""
import numpy as np
from optuna.distributions import CategoricalDistribution, IntDistribution
from textbench.featurizers.counts import Counts

INPUT = "counts"
SEARCH_SPACE = {}


class Made(Counts):
    def transform(self, X):
        return super().transform(X)


def build(**params):
    return Made(**params)
'''
CLASSIFIER = METHOD.replace(
    "textbench.featurizers.counts import Counts", "textbench.featurizers.majority import Majority"
).replace(
    "class Made(Counts):\n    def transform(self, X):\n        return super().transform(X)",
    'ROLE = "classifier"\n\nclass Made(Majority):\n    def decision_function(self, X):\n'
    "        return super().decision_function(X)",
)
INIT = "    def __init__(self, *, n=1):\n        self.n = n{}\n\n    def transform"
# By check: what is put in place of what, and what is said of it.
BREAKS = {
    "describes_itself": ('"""Counts again.', '"""Counts again', "a first line that ends with a full stop"),
    "searches_around_its_defaults": (
        "SEARCH_SPACE = {}",
        'SEARCH_SPACE = {"n": IntDistribution(1, 2)}',
        "n of SEARCH_SPACE to be one of none, got 'n'",
    ),
    "keeps_its_parameters": ("    def transform", INIT.format(" + 1"), "expected|Cannot clone"),
    "is_unfitted_until_fit": (
        "super().transform(X)",
        "X.astype(np.float32) + 0",
        "expected NotFittedError before fit, got no error",
    ),
    "gives_one_row_a_document": (
        "super().transform(X)",
        "super().transform(X).astype(float)",
        "expected float32, got float64",
    ),
    "scores_every_class": (
        "super().decision_function(X)",
        "(lambda scores: scores[:, :2] if scores.ndim == 2 else scores)(super().decision_function(X))",
        r"expected of 3 classes decision values of shape \(12, 3\), got \(12, 2\)",
    ),
    "fits_and_transforms_at_once": (
        "    def transform",
        "    def fit_transform(self, X, y=None):\n        return 2 * self.fit(X).transform(X)\n\n    def transform",
        "expected the same bits from fit_transform, got",
    ),
    "repeats_to_the_bit": (
        "super().transform(X)",
        "super().transform(X) * np.float32(np.random.rand())",
        "expected the same bits from a second fit",
    ),
    "treats_documents_alone": (
        "super().transform(X)",
        "super().transform(X) / np.float32(X.sum())",
        "expected the same row for a document alone, got differences up to",
    ),
    "reads_any_dtype": (
        "super().transform(X)",
        "super().transform(X) * np.float32(X.dtype.itemsize)",
        "expected the same bits for int64 counts",
    ),
    "leaves_its_input_alone": (
        "return super().transform(X)",
        "X.sum_duplicates()\n        return super().transform(X)",
        "expected the documents as they were given",
    ),
    "survives_export": (
        "    def transform",
        "    def to_arrays(self):\n        return super().to_arrays() | {'more': {1, 2}}\n\n    def transform",
        "Object of type set is not JSON serializable",
    ),
    "runs_what_it_searches": (
        "SEARCH_SPACE = {}",
        'SEARCH_SPACE = {"n": CategoricalDistribution([1, 2])}',
        "with n=1: TypeError: .*takes no arguments",
    ),
    "stays_finite_on_odd_documents": (
        "return super().transform(X)",
        "found = super().transform(X).toarray()\n        return found / found.sum(axis=1, keepdims=True)",
        "expected finite values, got",
    ),
    "refuses_impossible_counts": (
        "    def transform",
        "    def fit(self, X, y=None):\n        return super().fit(abs(X))\n\n    def transform",
        "expected ValueError for a count of -1.0, got no error",
    ),
    "sees_labels_only_where_it_may": (
        "return super().transform(X)",
        "return super().transform(X) * self.seen\n\n    def fit(self, X, y=None):\n"
        "        self.seen = np.float32(1 if y is None else y[0] + 2)\n        return super().fit(X)",
        "expected the same bits whatever the labels",
    ),
}


def made(text: str) -> Subject:
    module = ModuleType("made")
    exec(text, module.__dict__)
    return Subject(module)


@pytest.mark.parametrize("text", [METHOD, CLASSIFIER])
def test_a_method_that_keeps_every_promise_passes(text: str) -> None:
    found = [outcome for _, outcome in run_checks(made(text))]
    assert len(found) == len(CHECKS)
    assert not [outcome for outcome in found if isinstance(outcome, Exception)]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.filterwarnings("ignore")
def test_every_check_finds_what_breaks_its_promise(check) -> None:  # type: ignore[no-untyped-def]
    old, new, said = BREAKS[check.__name__]
    text = METHOD if old in METHOD else CLASSIFIER
    assert old in text
    with pytest.raises(Exception, match=said):
        check(made(text.replace(old, new)))


def test_the_command_says_what_is_kept_and_what_is_not(tmp_path: Path) -> None:
    path = tmp_path / "made.py"
    path.write_text(METHOD)
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 0, result.output
    n_tried = len(CHECKS) - 3
    assert result.stdout.count("pass  ") == n_tried
    assert "survive export.\n      nothing to try: SEARCH_SPACE is empty" in result.stdout
    assert "\n      nothing to try: it is no classifier" in result.stdout
    assert f"made keeps {n_tried} of {n_tried} promises" in result.stdout
    path.write_text(METHOD.replace("super().transform(X)", "print('said') or 1 / 0"))
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 1
    assert (
        f"{path}, line 15: return print('said') or 1 / 0: ZeroDivisionError: division by zero"
        in result.stdout
    )
    assert "\nsaid" not in result.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import numpyy\n" + METHOD, "line 1: import numpyy"),
        (METHOD.replace("SEARCH_SPACE = {}", ""), "has no SEARCH_SPACE"),
        ("INPUT = 'counts'\n", "has no function build"),
        (METHOD.replace("INPUT", "1 / 0; INPUT"), "ZeroDivisionError"),
    ],
)
def test_a_file_that_is_no_method_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(text)
    result = CliRunner().invoke(app, ["check", str(tmp_path / "made.py")])
    assert isinstance(result.exception, InputError), result.output
    assert words in str(result.exception)


def test_a_name_and_parameters_may_be_given() -> None:
    assert CliRunner().invoke(app, ["check", "tfidf(norm='l1')"]).exit_code == 0
    for wrong in ("tfid", "tfidf(norm='l3')"):
        assert isinstance(CliRunner().invoke(app, ["check", wrong]).exception, InputError)
