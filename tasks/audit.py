"""Audit of a corpus: what in its documents and labels limits or flatters every method alike.

Empty texts, identical texts inside a part and across the split, identical texts under different labels, test
classes without a training document, and the best scores that these leave possible. Texts are told apart by hashes of
128 bits, of which two among a million million are equal by chance once in 10^14 corpora, so that a text is in memory
only while it is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from textbench.tasks.corpus import Corpus, read_targets, read_texts
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job

BLOCK_DOCUMENTS = 2048
HASH_BYTES = 16


def reference(corpus: Reference) -> Reference:
    """Return the audit artifact of a stored corpus: audit.json."""
    return refer("textbench.tasks.audit:compute", {}, {"corpus": corpus})


class AuditedPart(NamedTuple):
    """The documents of a part.

    hashes: uint64 (n_documents, 2), of their texts. n_empty: how many are of spaces alone. targets: as in `Corpus`.
    """

    hashes: np.ndarray
    n_empty: int
    targets: Any


def compute(job: Job) -> None:
    """Audit the stored corpus."""
    corpus = job.open("corpus")
    train, test = (
        part_of(read_texts(corpus, part), read_targets(corpus, part)) for part in ("train", "test")
    )
    job.save_json("audit", audit_parts(train, test, corpus.json("corpus")["target_names"]))


def part_of(texts: Iterable[str], targets: Any) -> AuditedPart:
    """Return what the audit reads of the documents of a part."""
    hashes, n_empty = bytearray(), 0
    for text in texts:
        hashes += hashlib.blake2b(text.encode(), digest_size=HASH_BYTES).digest()
        n_empty += not text or text.isspace()
    return AuditedPart(np.frombuffer(hashes, dtype=np.uint64).reshape(-1, 2), n_empty, targets)


def audit(corpus: Corpus) -> dict[str, Any]:
    """Return the findings (`audit_parts`) of a corpus in memory."""
    return audit_parts(
        part_of(corpus.train_texts, corpus.train_targets),
        part_of(corpus.test_texts, corpus.test_targets),
        corpus.target_names,
    )


def audit_parts(train: AuditedPart, test: AuditedPart, target_names: list[str]) -> dict[str, Any]:
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
    texts, answers = _numbers(train, test), _answers(train.targets, test.targets)
    trained, tested = _classes(train.targets), _classes(test.targets)
    return {
        "documents": {"train": len(train.hashes), "test": len(test.hashes)},
        "classes": {"train": len(trained), "test": len(tested), "both": len(trained & tested)},
        **_several(train, test),
        "empty_texts": {"train": train.n_empty, "test": test.n_empty},
        "duplicates": {
            **{part: len(numbers) - len(np.unique(numbers)) for part, numbers in texts.items()},
            **_across(texts, answers),
        },
        "conflicts": _conflicts(texts, answers),
        "untrained": {
            "documents": _untrained(test.targets, tested - trained),
            "classes": [target_names[target] for target in sorted(tested - trained)],
        },
        "ceilings": _ceilings(train, test, texts["test"]),
    }


def _numbers(train: AuditedPart, test: AuditedPart) -> dict[str, np.ndarray]:
    """Return a number of each text of both parts, int64 (n_documents,), the same for the same texts."""
    high, low = np.concatenate([train.hashes, test.hashes]).T
    order = np.lexsort((low, high))
    high, low = high[order], low[order]
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(np.concatenate([[False], (high[1:] != high[:-1]) | (low[1:] != low[:-1])]))
    return dict(zip(("train", "test"), np.split(numbers, [len(train.hashes)]), strict=True))


def _answers(train: Any, test: Any) -> dict[str, np.ndarray]:
    """Return what each document is labelled with as a number: its class, or that of the set of its labels."""
    if train.ndim == 1:
        return {"train": train, "test": test}
    sets: dict[bytes, int] = {}
    return {
        part: np.array(
            [sets.setdefault(np.flatnonzero(row).tobytes(), len(sets)) for row in _rows(targets)],
            dtype=np.int64,
        )
        for part, targets in (("train", train), ("test", test))
    }


def _rows(targets: Any) -> Iterable[np.ndarray]:
    """Yield the rows of an indicator, few of them dense at once."""
    for start in range(0, targets.shape[0], BLOCK_DOCUMENTS):
        yield from targets[start : start + BLOCK_DOCUMENTS].toarray()


def _classes(targets: Any) -> set[int]:
    """Return the classes that some document has."""
    present = np.unique(targets) if targets.ndim == 1 else np.flatnonzero((targets != 0).sum(axis=0))
    return set(present.tolist())


def _several(train: AuditedPart, test: AuditedPart) -> dict[str, dict[str, Any]]:
    if train.targets.ndim == 1:
        return {}
    counts = {
        name: np.asarray((part.targets != 0).sum(axis=1)).ravel()
        for name, part in (("train", train), ("test", test))
    }
    return {
        "labels_per_document": {part: float(count.mean()) for part, count in counts.items()},
        "unlabelled": {part: int((count == 0).sum()) for part, count in counts.items()},
    }


def _untrained(targets: Any, untrained: set[int]) -> int:
    """Return the number of documents with one of these classes."""
    classes = sorted(untrained)
    if targets.ndim == 1:
        return int(np.isin(targets, classes).sum())
    return int(np.count_nonzero((targets[:, classes] != 0).sum(axis=1)))


def _across(texts: dict[str, np.ndarray], answers: dict[str, np.ndarray]) -> dict[str, int]:
    is_known = np.isin(texts["test"], texts["train"])
    n_answers = 1 + max(answer.max() for answer in answers.values())
    train, test = (texts[part] * n_answers + answers[part] for part in ("train", "test"))
    return {
        "across": int(is_known.sum()),
        "across_other_label": int((is_known & ~np.isin(test, train)).sum()),
    }


def _conflicts(texts: dict[str, np.ndarray], answers: dict[str, np.ndarray]) -> dict[str, int]:
    every = np.concatenate([texts["train"], texts["test"]])
    n_answers = 1 + max(answer.max() for answer in answers.values())
    pairs = np.unique(every * n_answers + np.concatenate([answers["train"], answers["test"]]))
    is_conflicting = np.bincount(pairs // n_answers) > 1
    return {"texts": int(is_conflicting.sum()), "documents": int(is_conflicting[every].sum())}


def _ceilings(train: AuditedPart, test: AuditedPart, texts: np.ndarray) -> dict[str, float]:
    from textbench.evaluation.metrics.ceilings import ceilings, multilabel_ceilings

    # Numbered by first occurrence: sums, and with them the last digit, go in the order of the documents.
    _, first, place = np.unique(texts, return_index=True, return_inverse=True)
    groups = np.argsort(np.argsort(first))[place]
    bounds = ceilings if test.targets.ndim == 1 else multilabel_ceilings
    return bounds(train.targets, test.targets, groups)
