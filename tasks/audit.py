"""Audit of a corpus: what in its documents and labels limits or flatters every method alike.

Empty texts, identical texts inside a part and across the split, identical texts under different labels, test
classes without a training document, and the best scores that these leave possible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from textbench.tasks.corpus import Corpus
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job


def reference(corpus: Reference) -> Reference:
    """Return the audit artifact of a stored corpus: audit.json."""
    return refer("textbench.tasks.audit:compute", {}, {"corpus": corpus})


def compute(job: Job) -> None:
    """Audit the stored corpus."""
    from textbench.tasks.corpus import read_corpus

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
      trained classes only (`evaluation.metrics.ceilings`).

    Where documents have several labels, a class is one of these, copies and conflicts compare whole sets of
    labels, a document is untrained if any of its labels is, and two more findings stand there:

    - `labels_per_document`: mean over `train` and over `test`.
    - `unlabelled`: documents without any label in `train` and `test`.
    """
    train, test = _answers(corpus.train_targets), _answers(corpus.test_targets)
    trained, tested = _classes(corpus.train_targets), _classes(corpus.test_targets)
    return {
        "documents": {"train": len(corpus.train_texts), "test": len(corpus.test_texts)},
        "classes": {"train": len(trained), "test": len(tested), "both": len(trained & tested)},
        **_several(corpus),
        "empty_texts": {"train": _empty(corpus.train_texts), "test": _empty(corpus.test_texts)},
        "duplicates": {
            "train": _repeats(corpus.train_texts),
            "test": _repeats(corpus.test_texts),
            **_across(corpus, train, test),
        },
        "conflicts": _conflicts(corpus, train, test),
        "untrained": {
            "documents": _untrained(corpus.test_targets, tested - trained),
            "classes": [corpus.target_names[target] for target in sorted(tested - trained)],
        },
        "ceilings": _ceilings(corpus),
    }


def _answers(targets: Any) -> list[Hashable]:
    """Return what a document is labelled with, comparable: its class, or the set of its labels."""
    if targets.ndim == 1:
        return targets.tolist()
    return [frozenset(np.flatnonzero(row).tolist()) for row in targets.toarray()]


def _classes(targets: Any) -> set[int]:
    """Return the classes that some document has."""
    present = targets if targets.ndim == 1 else np.flatnonzero(targets.toarray().any(axis=0))
    return set(present.tolist())


def _several(corpus: Corpus) -> dict[str, dict[str, Any]]:
    parts: dict[str, Any] = {"train": corpus.train_targets, "test": corpus.test_targets}
    if parts["train"].ndim == 1:
        return {}
    counts = {part: (targets.toarray() != 0).sum(axis=1) for part, targets in parts.items()}
    return {
        "labels_per_document": {part: float(count.mean()) for part, count in counts.items()},
        "unlabelled": {part: int((count == 0).sum()) for part, count in counts.items()},
    }


def _untrained(targets: Any, untrained: set[int]) -> int:
    """Return the number of documents with one of these classes."""
    classes = sorted(untrained)
    if targets.ndim == 1:
        return int(np.isin(targets, classes).sum())
    return int(targets.toarray()[:, classes].any(axis=1).sum())


def _empty(texts: list[str]) -> int:
    return sum(not text.strip() for text in texts)


def _repeats(texts: list[str]) -> int:
    return len(texts) - len(set(texts))


def _across(corpus: Corpus, train: list[Hashable], test: list[Hashable]) -> dict[str, int]:
    labels = _labels(zip(corpus.train_texts, train, strict=True))
    known = [
        answer in labels[text] for text, answer in zip(corpus.test_texts, test, strict=True) if text in labels
    ]
    return {"across": len(known), "across_other_label": known.count(False)}


def _conflicts(corpus: Corpus, train: list[Hashable], test: list[Hashable]) -> dict[str, int]:
    texts = corpus.train_texts + corpus.test_texts
    labels = _labels(zip(texts, train + test, strict=True))
    conflicting = {text for text, answers in labels.items() if len(answers) > 1}
    return {"texts": len(conflicting), "documents": sum(text in conflicting for text in texts)}


def _labels(documents: Iterable[tuple[str, Hashable]]) -> dict[str, set[Hashable]]:
    """Return the labels, or sets of labels, that each text occurs under."""
    labels = defaultdict(set)
    for text, answer in documents:
        labels[text].add(answer)
    return dict(labels)


def _ceilings(corpus: Corpus) -> dict[str, float]:
    from textbench.evaluation.metrics.ceilings import ceilings, multilabel_ceilings

    group: dict[str, int] = {}
    groups = np.array([group.setdefault(text, len(group)) for text in corpus.test_texts], dtype=np.int64)
    if corpus.test_targets.ndim == 1:
        return ceilings(corpus.train_targets, corpus.test_targets, groups)
    return multilabel_ceilings(corpus.train_targets, corpus.test_targets, groups)
