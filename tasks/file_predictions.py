"""Predictions that were made elsewhere, a file with a row a test document: a result like that of a method.

The file has a column `label`, or a column of scores for every class under the class's name, or both: then the label is
what was predicted, and the scores rank. Where documents have several labels, `label` is a list of them, in text parted
by "|", and of scores alone a label is predicted above a threshold.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError
from textbench.tasks.sources import given_files
from textbench.tasks.storage.recipe import Reference, refer
from textbench.tasks.tracking.settings import shown

if TYPE_CHECKING:
    import numpy as np

    from textbench.tasks.storage.store import Artifact, Job

INPUT = "texts"
ROLE = "classifier"
BETWEEN = "|"


def pinned(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with the file's absolute path and its sha256; InputErrors are those of `given_files`."""
    return given_files.pinned("predictions", params, given_files.TABLES)


def choice(corpus: Reference, vectors: Reference, method: str, params: Mapping[str, Any]) -> Reference:
    """Return what stands where a method's choice of settings would: nothing was chosen here."""
    recipe = {"method": method, "fixed": dict(params), "seed": 0, "trials": 0, "probe": None, "labels": {}}
    inputs = {"corpus": corpus, "vectors": vectors}
    return refer("textbench.tasks.file_predictions:choose", recipe, inputs, stage="tune")


def choose(job: "Job") -> None:
    """Write that nothing was chosen."""
    nothing = {
        "params": job.params["fixed"],
        "values": {},
        "settings": {},
        "C": None,
        "on_border": [],
        "score": None,
    }
    job.save_json("choice", nothing | {"n_folds": 0, "trials": [], "space": {}})


def reference(corpus: Reference, vectors: Reference, chosen: Reference) -> Reference:
    """Return the result artifact of a file; its files are those of `tasks.predict.reference` without a probe's."""
    params = {key: chosen.params[key] for key in ("method", "seed", "probe", "labels")}
    inputs = {"corpus": corpus, "vectors": vectors, "choice": chosen}
    return refer(
        "textbench.tasks.file_predictions:compute",
        params | dict(chosen.params["fixed"]),
        inputs,
        stage="evaluate",
    )


def compute(job: "Job") -> None:
    """Read what was predicted, set it beside the test labels, and write what metrics are computed from."""
    from textbench.tasks.predict import save_decisions

    save_decisions(job, *read(given_files.read_pinned(job.params), job.open("corpus")))


def check(params: Mapping[str, Any], corpus: "Artifact") -> bool:
    """Return whether the file has ids. Raises InputError for one that is not of these documents (`read`)."""
    path = given_files.read_pinned(params)
    read(path, corpus)
    return given_files.ID in given_files.read_table(path).column_names


def read(path: Path, corpus: "Artifact") -> "tuple[np.ndarray, np.ndarray]":
    """Return what was predicted and scores, float64 (n_test, n_labels).

    Predicted are ints (n_test,), or an indicator, int8 (n_test, n_labels). Without scores they are 1 for what was
    predicted and else 0. A threshold is 0.5 where all scores lie in 0 .. 1, else 0. Raises InputError for rows that do
    not name each test document once, labels that the data set has not, scores that are none or not finite.
    """
    import numpy as np
    import pyarrow

    from textbench.tasks.corpus import read_targets

    table, names = given_files.read_table(path), corpus.json("corpus")["target_names"]
    several = read_targets(corpus, "test").ndim == 2
    ids = (
        [str(one) for one in table[given_files.ID].to_pylist()]
        if given_files.ID in table.column_names
        else None
    )
    rows = given_files.rows_of(path, ids, table.num_rows, corpus, ["test"])
    table = table.take(pyarrow.array(rows))
    scored = [name for name in names if name in table.column_names]
    if scored and len(scored) < len(names) and "label" not in table.column_names:
        lacking = next(name for name in names if name not in scored)
        raise InputError(
            f"{path.name} must have a column of scores for each of {len(names)} classes, got none for {shown(lacking)}"
        )
    if not scored and "label" not in table.column_names:
        raise InputError(
            f"{path.name} must have a column label, or one of scores a class ({shown(names[0])}, ...), got "
            f"{', '.join(table.column_names)}"
        )
    scores = _scores(path, table, names) if len(scored) == len(names) else None
    if "label" in table.column_names:
        predicted = _indicator(path, table["label"].to_pylist(), names, several=several)
        scores = predicted.astype(np.float64) if scores is None else scores
    else:
        assert scores is not None
        is_share = scores.min() >= 0 and scores.max() <= 1
        best = scores.argmax(axis=1)[:, None] == np.arange(len(names))
        predicted = (scores > (0.5 if is_share else 0.0) if several else best).astype(np.int8)
    return (predicted if several else predicted.argmax(axis=1)), scores


def _scores(path: Path, table: Any, names: Sequence[str]) -> "np.ndarray":
    import numpy as np

    try:
        scores = np.column_stack([table[name].to_numpy().astype(np.float64) for name in names])
    except (ValueError, TypeError) as error:
        raise InputError(f"{path.name} must hold numbers in the columns of classes: {error}") from error
    if not np.isfinite(scores).all():
        row, label = np.argwhere(~np.isfinite(scores))[0]
        raise InputError(
            f"{path.name} must hold finite scores, got {scores[row, label]} of {shown(names[label])} for test-{row}"
        )
    return scores


def _indicator(path: Path, labels: Sequence[Any], names: Sequence[str], *, several: bool) -> "np.ndarray":
    import numpy as np

    from textbench.tasks.catalogue import nearest

    place = {name: number for number, name in enumerate(names)}
    found = np.zeros((len(labels), len(names)), dtype=np.int8)
    for row, said in enumerate(labels):
        if several:
            own = said if isinstance(said, list) else (said or "").split(BETWEEN)
            own = [one.strip() for one in own if one.strip()]
        else:
            own = [str(said).strip()]
        for one in own:
            if one not in place:
                raise InputError(
                    f"{path.name}: test-{row} has a label that the data set has not, {shown(one)}; "
                    f"{nearest(one, names)}"
                )
            found[row, place[one]] = 1
    return found
