"""A fitted TF-IDF model of three classes, made in memory: no run, no store, no process beside this one."""

from functools import cache
from typing import Any

import numpy as np

from textbench.evaluation.probes.catalogue import probe_class
from textbench.flows.explain.export import Model, _digest
from textbench.tasks import catalogue
from textbench.tasks.tokens import count, encode, token_rule

CLASSES = {"corn": "wheat corn tonnes", "earn": "profit cents share", "crude": "oil opec barrels"}


@cache
def made_model(n_terms: int = 0) -> Model:
    """Return a model as `Model.from_run` gives it; `n_terms` more terms than it needs make it of a real one's size."""
    names = list(CLASSES)
    texts = [f"{CLASSES[name]} report{i % 5}" for i in range(14) for name in names]
    terms = [
        *sorted({word for text in texts for word in text.split()}),
        *(f"word{i}" for i in range(n_terms)),
    ]
    rule = token_rule("words")
    counts = count(*encode(texts, terms, rule), terms, rule)
    featurizer = catalogue.method("tfidf").load().build().fit(counts)
    y = np.array([i % 3 for i in range(len(texts))])
    probe = probe_class("linear-svm")(C=1.0).fit(featurizer.transform(counts), y)
    return _model(featurizer.to_arrays(), probe.to_arrays(), names, terms, vars(rule))


def _model(
    learned: dict[str, Any], probe: dict[str, Any], names: list[str], terms: list[str], rule: dict[str, Any]
) -> Model:
    parts = {"featurizer": learned, "probe": probe}
    arrays = {f"{p}/{n}": v for p, own in parts.items() for n, v in own.items() if isinstance(v, np.ndarray)}
    run = {
        "dataset": "made",
        "protocol": "honest",
        "seed": 0,
        "params": {},
        "metrics": {"accuracy": 1.0},
        "run_id": None,
    }
    manifest: dict[str, Any] = {
        "format": "textbench model", "version": 1, "run": run, "cell": "0" * 64, "method": "tfidf", "parts": {},
        "classifier": "linear-svm", "libraries": {}, "threads": 1, "token_rule": rule, "target_names": names,
        "terms": terms, "training": {}, "sha256": {name: _digest(array) for name, array in arrays.items()},
    }  # fmt: skip
    for part, own in parts.items():
        manifest[part] = {name: value for name, value in own.items() if f"{part}/{name}" not in arrays}
    return Model(manifest, arrays)
