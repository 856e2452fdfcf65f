"""Audit of a corpus: what in its documents and labels limits or flatters every method alike.

Empty texts, identical texts inside a part and across the split, identical texts under different labels, test
classes without a training document, and the best scores that these leave possible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks import InputError
from tasks.datasets import Corpus
from tasks.recipe import Reference, refer

if TYPE_CHECKING:
    from tasks.store import Job


def reference(corpus: Reference) -> Reference:
    """Return the audit artifact of a stored corpus: audit.json."""
    return refer("tasks.audit:compute", {}, {"corpus": corpus})


def compute(job: Job) -> None:
    """Audit the stored corpus."""
    from tasks.ingest import read_corpus

    job.save_json("audit", audit(read_corpus(job.open("corpus"))))


def audit(corpus: Corpus) -> dict[str, Any]:
    """Return the findings as JSON values; texts are identical when they are equal character by character.

    - `documents`, `empty_texts`: numbers of documents in `train` and `test`, and of those of spaces alone.
    - `classes`: number with a `train` and with a `test` document, and with `both`.
    - `duplicates`: documents of `train` and `test` that repeat an earlier text of their part; `across`, test
      documents whose text is also a training text; `across_other_label`, those whose label none of their
      training copies carries.
    - `conflicts`: `texts` that occur under several labels in the corpus, and the `documents` that carry them.
    - `untrained`: test `documents` whose class has no training document, and the names of these `classes`.
    - `ceilings`: metric -> bound on what a method reaches that gives equal texts equal answers and knows the
      trained classes only (`evaluation.ceilings`).

    Raises InputError for a corpus of several labels a document.
    """
    train, test = _targets(corpus, corpus.train_targets), _targets(corpus, corpus.test_targets)
    trained, tested = set(train.tolist()), set(test.tolist())
    return {
        "documents": {"train": len(corpus.train_texts), "test": len(corpus.test_texts)},
        "classes": {"train": len(trained), "test": len(tested), "both": len(trained & tested)},
        "empty_texts": {"train": _empty(corpus.train_texts), "test": _empty(corpus.test_texts)},
        "duplicates": {
            "train": _repeats(corpus.train_texts),
            "test": _repeats(corpus.test_texts),
            **_across(corpus, train, test),
        },
        "conflicts": _conflicts(corpus, train, test),
        "untrained": {
            "documents": sum(target not in trained for target in test.tolist()),
            "classes": [corpus.target_names[target] for target in sorted(tested - trained)],
        },
        "ceilings": _ceilings(corpus, train, test),
    }


def _targets(corpus: Corpus, targets: Any) -> np.ndarray:
    if targets.ndim != 1:
        raise InputError(
            f"data set {corpus.name}: an audit needs one label a document, "
            f"got an indicator of {targets.shape[1]} labels"
        )
    return targets


def _empty(texts: list[str]) -> int:
    return sum(not text.strip() for text in texts)


def _repeats(texts: list[str]) -> int:
    return len(texts) - len(set(texts))


def _across(corpus: Corpus, train: np.ndarray, test: np.ndarray) -> dict[str, int]:
    labels = _labels(zip(corpus.train_texts, train.tolist(), strict=True))
    known = [
        target in labels[text]
        for text, target in zip(corpus.test_texts, test.tolist(), strict=True)
        if text in labels
    ]
    return {"across": len(known), "across_other_label": known.count(False)}


def _conflicts(corpus: Corpus, train: np.ndarray, test: np.ndarray) -> dict[str, int]:
    texts = corpus.train_texts + corpus.test_texts
    labels = _labels(zip(texts, train.tolist() + test.tolist(), strict=True))
    conflicting = {text for text, targets in labels.items() if len(targets) > 1}
    return {"texts": len(conflicting), "documents": sum(text in conflicting for text in texts)}


def _labels(documents: Iterable[tuple[str, int]]) -> dict[str, set[int]]:
    """Return the labels that each text occurs under."""
    labels = defaultdict(set)
    for text, target in documents:
        labels[text].add(target)
    return dict(labels)


def _ceilings(corpus: Corpus, train: np.ndarray, test: np.ndarray) -> dict[str, float]:
    from evaluation.ceilings import ceilings

    group: dict[str, int] = {}
    groups = [group.setdefault(text, len(group)) for text in corpus.test_texts]
    values = ceilings(train, test, np.array(groups, dtype=np.int64))
    return {metric: float(value) for metric, value in values.items()}
