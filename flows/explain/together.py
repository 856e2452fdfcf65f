"""An ensemble as one exported file: its members' models, and what is learned of them, applied to new texts.

The file is that of `flows.explain.export`. The arrays of a member stand under its name, `member_01/probe/coef`, the
rest of it in the manifest's `members`; `ensemble` is ensemble.json of the run (`tasks.ensemble.choice`). Members that
do not count are left out.
"""

from collections.abc import Iterable
from typing import Any

from textbench.flows.explain.export import FORMAT, THRESHOLDS, VERSION, Answers, Model, of_run
from textbench.flows.results.runs import Run
from textbench.tasks import catalogue, ensemble


def gathered(run: Run, *, refit: bool = False) -> Model:
    """Return the model of an ensemble's finished run; with `refit` its members are trained on all documents first.

    What each member counts, and thresholds, are as learned out of fold. Raises InputError when artifacts are gone, and
    for a member that cannot be exported.
    """
    about, result = run.open("choice").json("ensemble"), run.open("result")
    spelled = ensemble.members(catalogue.parse_method(run.row["request"]["methods"][0])[1])
    counted = [
        place for place, one in enumerate(about["members"]) if one["weight"] or about["scheme"] == "stacked"
    ]
    models = {
        f"member_{place + 1:02}": Model.from_run(_member(run, place, *spelled[place]), refit=refit)
        for place in counted
    }
    arrays = {f"{name}/{own}": array for name, model in models.items() for own, array in model.arrays.items()}
    if about["several_labels"]:
        arrays[THRESHOLDS] = result.array("thresholds")
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        **of_run(run, arrays, refit=refit),
        "method": run.row["method"],
        "classifier": None,
        "libraries": result.meta["recipe"]["libraries"],
        "threads": result.meta["threads"],
        "ensemble": about | {"members": [about["members"][place] for place in counted]},
        "members": {name: model.manifest for name, model in models.items()},
    }
    return Model(manifest, arrays)


def _member(run: Run, place: int, method: str, rule: str | None) -> Run:
    """Return the run of a member: the result that the ensemble's was made of."""
    asked = run.row["request"] | {"methods": [method]} | ({"rule": rule} if rule else {})
    key = run.reference.inputs[f"member_{place + 1:02}"].key
    return Run(run.home, {**run.row, "method": method, "key": key, "request": asked})


def answer(model: Model, texts: Iterable[str]) -> Answers:
    """Return what an ensemble says of each text; values are probabilities."""
    import numpy as np

    from textbench.evaluation.ensembles import as_probabilities
    from textbench.tasks.predict import margin

    given, about, names = list(texts), model.manifest["ensemble"], model.manifest["target_names"]
    several = about["several_labels"]
    weights, lines = ensemble.weights_of(about)
    scores = [_part(model, name).scores(given) for name in model.manifest["members"]]
    with model.as_in_the_run():
        log_odds = np.stack([line.log_odds(one) for line, one in zip(lines, scores, strict=True)])
        combined = weights.combine(log_odds, several_labels=several)
    values = as_probabilities(combined, several_labels=several)
    if not several:
        labels = [names[label] for label in combined.argmax(axis=1)]
        return Answers(labels, margin(combined), "probability", names, values)
    thresholds = model.arrays[THRESHOLDS]
    chosen = [[names[label] for label in row.nonzero()[0]] for row in combined > thresholds]
    return Answers(chosen, abs(combined - thresholds).min(axis=1), "probability", names, values)


def _part(model: Model, name: str) -> Model:
    """Return a member as a model of its own."""
    prefix = f"{name}/"
    arrays: dict[str, Any] = {
        key.removeprefix(prefix): array for key, array in model.arrays.items() if key.startswith(prefix)
    }
    return Model(model.manifest["members"][name], arrays)
