"""Flaws of a data set: what its audit found, in words, and how a run's accuracy changes without them."""

from collections.abc import Mapping
from typing import Any

from textbench.evaluation.metrics.multilabel import is_of_several_labels
from textbench.flows.plan.corpora import newest
from textbench.flows.results.index import Index
from textbench.flows.results.runs import Run
from textbench.tasks import catalogue
from textbench.tasks.corpus import read_corpus
from textbench.tasks.sources.user_source import named
from textbench.tasks.words import counted


def costs(run: Run) -> dict[str, Any]:
    """Return what the flaws of the run's data set do to its accuracy, as JSON values.

    - `copies`: test documents whose text is also a training text, and the accuracy `without` them;
    - `untrained`: test documents whose class has no training document, and the accuracy `without` them;
    - `headers`: for a data set with headers, the `accuracy` of the same method on the edition without (`dataset`), None
      until that has been run.

    Empty for documents of several labels.
    """
    if is_of_several_labels(run.row["metrics"]):
        return {}
    corpus = read_corpus(run.open("corpus"))
    predictions = run.open("result").table("predictions")
    right = predictions["target"].to_numpy() == predictions["predicted"].to_numpy()
    known, trained = set(corpus.train_texts), set(corpus.train_targets.tolist())
    found = {
        "copies": _without([text in known for text in corpus.test_texts], right),
        "untrained": _without([target not in trained for target in corpus.test_targets.tolist()], right),
    }
    twin = _twin(run)
    return found | ({"headers": twin} if twin else {})


def _without(flawed: list[bool], right: Any) -> dict[str, Any]:
    import numpy as np

    sound = ~np.array(flawed)
    return {"documents": int((~sound).sum()), "without": float(right[sound].mean()) if sound.any() else None}


def _twin(run: Run) -> dict[str, Any] | None:
    """Return the same method's accuracy on the data set's edition without headers, named by its `WITHOUT_HEADERS`."""
    row = run.row
    entry = catalogue.datasets().get(row.get("named", row["dataset"]))
    name = entry.constant("WITHOUT_HEADERS") if entry else None
    if not name:
        return None
    same = ("method", "protocol", "seed", "trials", "probe")
    rows = [other for other in newest(Index(run.home).rows()) if other["dataset"] == name]
    rows = [other for other in rows if all(other[column] == row[column] for column in same)]
    last = max(rows, key=lambda other: other["created"], default=None)
    return {"dataset": name, "accuracy": last["metrics"]["accuracy"] if last else None}


def in_words(found: Mapping[str, Any], accuracy: float) -> list[str]:
    """Return the costs as sentences, in points of accuracy; what costs nothing is left out."""
    lines = []
    for kind, what in (
        ("copies", "that are copies of training documents"),
        ("untrained", "of classes never trained"),
    ):
        flaw = found.get(kind)
        if flaw and flaw["documents"] and flaw["without"] is not None:
            change = 100 * (flaw["without"] - accuracy)
            lines.append(
                f"Without the {flaw['documents']:,} test documents {what} accuracy would be "
                f"{100 * flaw['without']:.2f} ({change:+.2f} points)."
            )
    headers = found.get("headers")
    if headers and headers["accuracy"] is None:
        lines.append(
            f"What headers, footers and quotes leak is not known yet; run the same method with: -d {headers['dataset']}"
        )
    elif headers:
        lost = 100 * (accuracy - headers["accuracy"])
        lines.append(
            f"Without headers, footers and quotes ({headers['dataset']}) accuracy is {100 * headers['accuracy']:.2f}: "
            f"they are worth {lost:.2f} points."
        )
    return lines


def audit_in_words(audit: Mapping[str, Any]) -> list[str]:
    """Return the findings of `tasks.audit` as sentences, those that found nothing left out."""
    documents, classes = audit["documents"], audit["classes"]
    empty, twice, mixed = audit["empty_texts"], audit["duplicates"], audit["conflicts"]
    untrained = audit["untrained"]
    lines = [
        f"{documents['train']:,} training and {documents['test']:,} test documents; "
        f"{classes['train']} classes in training, {classes['test']} in test, {classes['both']} in both."
    ]
    if "labels_per_document" in audit:
        mean, none = audit["labels_per_document"], audit["unlabelled"]
        lines.append(
            f"{mean['train']:.2f} labels a training document and {mean['test']:.2f} a test document; "
            f"{none['train']:,} and {none['test']:,} have none."
        )
    if empty["train"] or empty["test"]:
        lines.append(f"{empty['train']:,} training and {empty['test']:,} test texts are empty.")
    if twice["train"] or twice["test"]:
        lines.append(
            f"{twice['train']:,} training and {twice['test']:,} test documents "
            "repeat an earlier text of their part."
        )
    if twice["across"]:
        lines.append(
            f"{twice['across']:,} test texts are also training texts, "
            f"{twice['across_other_label']:,} of them only under other labels."
        )
    if mixed["texts"]:
        lines.append(
            f"{counted(mixed['texts'], 'text occurs', 'texts occur')} under several labels, "
            f"in {counted(mixed['documents'], 'document')}."
        )
    if untrained["documents"]:
        names = ", ".join(map(named, untrained["classes"]))
        lines.append(
            f"{untrained['documents']:,} test documents have a class without training documents: {names}."
        )
    lines.append("A ceiling is the highest value that any method can reach with such data.")
    return lines
