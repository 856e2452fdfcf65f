"""Several tuned methods that decide together: `ensemble(tfidf, nb-svm, lsi@letters)`, each by its probabilities.

What each counts is learned from out-of-fold scores, of training documents alone, and nothing is fitted again. A member
is a method of the catalogue, and after an @ maybe a token rule. `weights` are greedy (the default), equal or stacked.
With `smooth=True` test documents that are near one another decide together (`evaluation.ensembles.smoothed`), which is
transductive; by how much is learned from the training documents that one classifier scored out of fold.
"""

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError, catalogue, out_of_fold
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np

    from textbench.tasks.storage.store import Artifact, Job

INPUT = "texts"
ROLE = "classifier"
SCHEMES = ("greedy", "equal", "stacked")  # those of `evaluation.ensembles`, which imports numpy
RULE = "@"
SMOOTH = "smooth"
MEMBER = "member_"


def members(params: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Return the methods that decide, as people write them, each with its token rule, None for the data set's.

    Raises InputError for fewer than two, one named twice, what has no out-of-fold scores, and unknown parameters.
    """
    unknown = params.keys() - {"of", "weights", SMOOTH}
    if unknown or not isinstance(params.get("of"), str):
        raise InputError(
            f"{catalogue.ENSEMBLE} takes methods, as in ensemble(tfidf, nb-svm), weights and {SMOOTH}; got "
            f"{', '.join(params) or 'nothing'}"
        )
    scheme_of(params)
    if not isinstance(params.get(SMOOTH, False), bool):
        raise InputError(f"{SMOOTH} must be True or False, got {params[SMOOTH]!r}")
    found = [member(text) for text in _parted(params["of"])]
    if len(found) < 2:
        raise InputError(f"an ensemble needs at least two members, got {len(found)}")
    if twice := next((one for one in found if found.count(one) > 1), None):
        raise InputError(f"a member of an ensemble counts as often as is best, got {spelled([twice])} twice")
    return found


def scheme_of(params: Mapping[str, Any]) -> str:
    """Return how members are weighed. Raises InputError for what is none of SCHEMES."""
    scheme = params.get("weights", SCHEMES[0])
    return str(catalogue.pick("way to weigh members", str(scheme), {name: name for name in SCHEMES}))


def spelled(found: Sequence[tuple[str, str | None]]) -> str:
    """Return members as `members` reads them."""
    return ", ".join(f"{method}{RULE}{rule}" if rule else method for method, rule in found)


def titled(params: Mapping[str, Any]) -> str:
    """Return an ensemble as people write it."""
    scheme = scheme_of(params)
    others = [f"{SMOOTH}=True"] if params.get(SMOOTH) else []
    others += [] if scheme == SCHEMES[0] else [f"weights={scheme!r}"]
    return f"{catalogue.ENSEMBLE}({', '.join([params['of'], *others])})"


def _parted(text: str) -> list[str]:
    """Return what commas outside parentheses part."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except SyntaxError as error:
        raise InputError(f"an ensemble is of methods, as in ensemble(tfidf, nb-svm), got {text!r}") from error
    assert isinstance(call, ast.Call)
    return [ast.get_source_segment(f"f({text})", one) or "" for one in call.args]


def member(text: str) -> tuple[str, str | None]:
    """Return one of `members`, of its text. Raises InputError for what is no method of the catalogue."""
    method, at, rule = text.rpartition(RULE) if RULE in text.rpartition(")")[2] else (text, "", "")
    name, params = catalogue.parse_method(method)
    entry = catalogue.method(name)
    if entry.is_file or entry.is_ensemble or entry.is_own:
        raise InputError(f"a member of an ensemble is a method of the catalogue, got {name}")
    plain = method if entry.is_join else catalogue.spelled(name, params)
    return plain, (rule if at else None)


def choice(
    corpus: Reference,
    vectors: Reference,
    params: Mapping[str, Any],
    results: Sequence[Reference],
    seed: int,
    labels: Mapping[str, Any],
    near: Reference | None,
) -> Reference:
    """Return the artifact with the weights of the members, whose `results` are those of `tasks.predict`.

    near: the vectors that tell which documents are near one another, where they are smoothed; else None.

    choice.json as `tasks.tune` writes it, `values` the members' weights; ensemble.json: of each member its name,
    calibration, weight, quality, and that of the ensemble without it, and where documents are smoothed over others the
    neighbours' `share`; scores.npy and documents.npy: the ensemble's out-of-fold scores, in the form of
    `tasks.out_of_fold`.
    """
    recipe = {"method": catalogue.ENSEMBLE, "fixed": dict(params), "seed": seed, "trials": 0, "probe": None}
    recipe |= {"labels": dict(labels), "validation": {}, "search_seconds": None}
    inputs = {"corpus": corpus, "vectors": vectors} | ({"near": near} if near else {})
    inputs |= {_input(place): out_of_fold.reference(result) for place, result in enumerate(results)}
    return refer("textbench.tasks.ensemble:choose", recipe, inputs, stage="tune")


def reference(chosen: Reference, results: Sequence[Reference]) -> Reference:
    """Return the result artifact of an ensemble; its files are those of `tasks.predict.reference` without a probe's.

    Scores are log probabilities, of several labels log-odds.
    """
    params = {key: chosen.params[key] for key in ("method", "seed", "probe", "labels")}
    inputs = {name: own for name, own in chosen.inputs.items() if not name.startswith(MEMBER)}
    inputs |= {"choice": chosen}
    inputs |= {_input(place): result for place, result in enumerate(results)}
    return refer("textbench.tasks.ensemble:compute", params, inputs, stage="evaluate")


def _input(place: int) -> str:
    return f"{MEMBER}{place + 1:02}"


def _members_of(job: "Job") -> "list[Artifact]":
    return [job.open(name) for name in sorted(job.inputs) if name.startswith(MEMBER)]


def choose(job: "Job") -> None:
    """Calibrate the members and learn their weights, from out-of-fold scores.

    Raises ValueError where these are of other documents or of none.
    """
    import numpy as np

    from textbench.evaluation.ensembles import (
        Calibration,
        best_share,
        cross_fitted,
        learn,
        nearest,
        quality,
        smoothed,
        without_each,
    )
    from textbench.tasks.corpus import read_targets

    scheme, names = scheme_of(job.params["fixed"]), _names(job.params["fixed"])
    given = _members_of(job)
    documents = given[0].array("documents")
    if any(not np.array_equal(one.array("documents"), documents) for one in given):
        raise ValueError("the members' out-of-fold scores must be of the same training documents")
    if not len(documents):
        raise ValueError("an ensemble needs out-of-fold scores, and of one training document there are none")
    targets = read_targets(job.open("corpus"), "train")[documents]
    several = targets.ndim == 2
    read = [one.array("scores").astype(np.float64) for one in given]
    indicator = indicator_of(targets, read[0].shape[1])
    lines = [Calibration.fit(scores, indicator, several_labels=several) for scores in read]
    log_odds = np.stack([line.log_odds(scores) for line, scores in zip(lines, read, strict=True)])
    weights = learn(scheme, log_odds, indicator, several_labels=several)
    combined = weights.combine(log_odds, several_labels=several)
    apart = without_each(weights, log_odds, indicator, several_labels=several)
    about = [
        {
            "member": name,
            "weight": float(weight),
            "quality": quality(one, indicator, several_labels=several),
            "without": without,
            "slope": line.slope,
            "offset": line.offset,
        }
        for name, weight, one, without, line in zip(
            names, weights.members, log_odds, apart, lines, strict=True
        )
    ]
    whole = quality(combined, indicator, several_labels=several)
    score = cross_fitted(scheme, log_odds, indicator, several_labels=several)
    told = {"scheme": weights.scheme, "offset": weights.offset, "several_labels": several, "quality": whole,
            "cross_fitted": score, "n_documents": len(documents), "members": about}  # fmt: skip
    if job.params["fixed"].get(SMOOTH):
        near = nearest(_unit_rows(job, "train")[documents], out_of_fold.scored_together(given[0]))
        told["share"] = best_share(combined, near, indicator, several_labels=several)
        combined = smoothed(combined, near, told["share"], several_labels=several)
        told["quality"] = quality(combined, indicator, several_labels=several)
    job.save_json("ensemble", told)
    job.save_array("scores", combined.astype(np.float32))
    job.save_array("documents", documents)
    values = {
        name: round(float(weight), 3) for name, weight in zip(names, weights.members, strict=True) if weight
    }
    found = {"params": job.params["fixed"], "values": values, "settings": {}, "C": None, "on_border": []}
    job.save_json("choice", found | {"score": score, "n_folds": 0, "trials": [], "space": {}})


def _unit_rows(job: "Job", part: str) -> Any:
    """Return the TF-IDF vectors of a part of the documents, csr float64 rows of unit length, to tell what is near."""
    from sklearn.feature_extraction.text import TfidfTransformer

    vectors = job.open("near")
    weigh = TfidfTransformer(sublinear_tf=True).fit(vectors.matrix("train_counts"))
    return weigh.transform(vectors.matrix(f"{part}_counts"))


def _names(params: Mapping[str, Any]) -> list[str]:
    return [spelled([one]) for one in members(params)]


def indicator_of(targets: Any, n_labels: int) -> "np.ndarray":
    """Return class ids, (n_documents,), or an indicator, as bools (n_documents, n_labels)."""
    import numpy as np

    if targets.ndim == 2:
        from textbench.evaluation.probes.linear import dense_indicator

        return dense_indicator(targets)
    return targets[:, None] == np.arange(n_labels)


def weights_of(about: Mapping[str, Any]) -> Any:
    """Return the weights (`evaluation.ensembles.Weights`) and calibrations that ensemble.json describes."""
    import numpy as np

    from textbench.evaluation.ensembles import Calibration, Weights

    several = about["several_labels"]
    lines = [Calibration(one["slope"], one["offset"], several) for one in about["members"]]
    counts = np.array([one["weight"] for one in about["members"]])
    return Weights(about["scheme"], counts, about["offset"]), lines


def compute(job: "Job") -> None:
    """Combine what the members say of the test documents, and write what metrics are computed from."""
    import numpy as np

    from textbench.evaluation.ensembles import nearest, smoothed
    from textbench.tasks.predict import save_decisions

    chosen = job.open("choice")
    about = chosen.json("ensemble")
    weights, lines = weights_of(about)
    with job.timed("predict"):
        log_odds = np.stack(
            [line.log_odds(one.array("scores")) for line, one in zip(lines, _members_of(job), strict=True)]
        )
        scores = weights.combine(log_odds, several_labels=about["several_labels"])
        if about.get("share"):
            documents = _unit_rows(job, "test")
            near = nearest(documents, [np.arange(documents.shape[0])])
            scores = smoothed(scores, near, about["share"], several_labels=about["several_labels"])
    if not about["several_labels"]:
        save_decisions(job, scores.argmax(axis=1), scores)
        return
    thresholds = _thresholds(job, chosen)
    job.save_array("thresholds", thresholds)
    save_decisions(job, scores > thresholds, scores, thresholds)


def _thresholds(job: "Job", chosen: "Artifact") -> "np.ndarray":
    """Return the thresholds of the labels by scores out of fold; 0 for labels of fewer than three documents."""
    import numpy as np

    from textbench.evaluation.ensembles import dealt
    from textbench.evaluation.probes.thresholds import thresholds_that_pay
    from textbench.tasks.corpus import read_targets

    scores = chosen.array("scores").astype(np.float64)
    targets = read_targets(job.open("corpus"), "train")[chosen.array("documents")]
    indicator = indicator_of(targets, scores.shape[1])
    found, tunable = np.zeros(scores.shape[1]), indicator.sum(axis=0) >= 3
    if tunable.any():
        found[tunable] = thresholds_that_pay(scores[:, tunable], indicator[:, tunable], dealt(indicator, 3))
    return found
