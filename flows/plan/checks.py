"""What a request may ask for, checked before anything is computed: methods' files and parameters, metrics."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textbench.evaluation.metrics.multilabel import scored_metrics, tuning_metrics
from textbench.evaluation.metrics.single_label import Metric
from textbench.featurizers._parameters import Rule
from textbench.flows.plan.request import Request
from textbench.tasks import InputError, catalogue, token_topics, word_vectors
from textbench.tasks.corpus import read_validation
from textbench.tasks.featurize import INPUTS, NEEDED, PREFIX, TOPICS_PREFIX
from textbench.tasks.storage.definitions import PACKAGE

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Artifact

MAX_SEED = 2**32 - 1


@dataclass(frozen=True)
class Shared:
    """What methods may need that is made apart from them: its name in `NEEDS`, in words, and its parameters."""

    need: str
    said: str
    prefix: str
    accepts: Mapping[str, Any]
    check: Callable[..., None]


SHARED = (
    Shared("word_vectors", "word vectors", PREFIX, word_vectors.ACCEPTS, word_vectors.check),
    Shared("token_topics", "token topics", TOPICS_PREFIX, token_topics.ACCEPTS, token_topics.check),
)


def check_seed(seed: Any) -> None:
    """Refuse what random numbers cannot be drawn by: InputError for anything but a whole number in 0 .. 2^32 - 1."""
    if type(seed) is not int or not 0 <= seed <= MAX_SEED:
        raise InputError(f"a seed must be a whole number in 0 .. 2^32 - 1, got {seed!r}")


def check_file(entry: catalogue.Entry) -> None:
    """Refuse a method's file that has no `build`, an `INPUT` that is none, or an import that cannot be found.

    Raises InputError naming the file, the line and what is accepted.
    """
    bound = entry.bound
    if "*" in bound:
        return  # what the file has shows when it is loaded
    if "build" not in bound:
        raise InputError(f"{entry.path} has no function build(**params), which returns the method unfitted")
    choices = f'"{INPUTS[0]}", ' + " or ".join(f'"{kind}"' for kind in INPUTS[1:])
    if "INPUT" not in bound:
        raise InputError(f"{entry.path} has no INPUT, which says what the method reads: {choices}")
    found = entry.constant("INPUT", INPUTS[0])
    if found not in INPUTS:
        raise InputError(f"{entry.path}, line {bound['INPUT']}: INPUT must be {choices}, got {found!r}")
    needed = entry.constant("NEEDS", ())
    if not isinstance(needed, tuple | list) or not set(needed) <= set(NEEDED):
        raise InputError(
            f"{entry.path}, line {bound['NEEDS']}: NEEDS must hold some of {', '.join(NEEDED)}, got {needed!r}"
        )
    if needed and entry.is_classifier:
        raise InputError(
            f"{entry.path}, line {bound['NEEDS']}: a classifier is given documents and labels alone"
        )
    if (said := entry.constant("USES_LABELS", False)) not in (True, False) and not isinstance(said, dict):
        raise InputError(
            f"{entry.path}, line {bound['USES_LABELS']}: USES_LABELS must be True, or the values of parameters with "
            f"which it does such as {{'order': ('by_class',)}}, got {said!r}"
        )
    for line, text, module in entry.imports:
        if not _is_there(module):
            hint = f"; it is {PACKAGE}.{module}" if _is_there(f"{PACKAGE}.{module}") else ""
            raise InputError(f"{entry.path}, line {line}: {text}: there is no module {module!r}{hint}")


def _is_there(module: str) -> bool:
    """Tell whether a module can be found, without importing more than the project's own packages."""
    root = module.partition(".")[0]
    try:
        return importlib.util.find_spec(module if root == PACKAGE else root) is not None
    except (ImportError, ValueError):
        return False


def check_parameters(entry: catalogue.Entry, params: Mapping[str, Any]) -> None:
    """Refuse parameters that the method's file does not take, and values it does not.

    Raises InputError naming the method, the parameter and the nearest.
    """
    known, accepts = entry.parameters, _accepts(entry)
    shared = [one for one in SHARED if one.need in entry.needs]
    own = dict(params)
    for one in shared:
        theirs = {name: own.pop(name) for name in params if name.startswith(one.prefix)}
        plain = {name.removeprefix(one.prefix): value for name, value in theirs.items()}
        one.check(plain, f"{entry.name}'s {one.said}", one.prefix)
    for name, value in own.items():
        if name == "random_state" and entry.is_seeded:
            raise InputError(
                f"{entry.name} has no parameter 'random_state' to fix; the seed of a run is --seed"
            )
        if known is None and name not in accepts:
            continue  # the file hides its parameters
        if known is None or name in known:
            _check_value(entry, name, value, Rule.read((known or {}).get(name, ""), accepts.get(name)))
        else:
            raise InputError(f"{entry.name} has no parameter {name!r}; {_meant(name, known, shared)}")


def _meant(name: str, known: Mapping[str, str], shared: Sequence[Shared]) -> str:
    """Say which parameter could have been meant."""
    for one in shared:
        if name in one.accepts:
            return f"its {one.said} have: {one.prefix}{name}"
    choices = sorted(known) + [f"{one.prefix}..." for one in shared]
    return catalogue.nearest(name, choices) if choices else "it has none"


def _check_value(entry: catalogue.Entry, name: str, value: Any, rule: Rule) -> None:
    if not rule.allows(value):
        raise InputError(f"{entry.name}: {name} must be {rule}, got {value!r}")


def _accepts(entry: catalogue.Entry) -> Mapping[str, Any]:
    """Return a file's `ACCEPTS`, checked."""
    accepts = entry.constant("ACCEPTS", {})
    if not isinstance(accepts, dict):
        raise InputError(f"{entry.path}: ACCEPTS must be a dictionary by parameter, got {accepts!r}")
    for name, accepted in accepts.items():
        try:
            Rule.read("", accepted)
        except ValueError as error:
            raise InputError(f"{entry.path}: ACCEPTS[{name!r}]: {error}") from error
    return accepts


def check_tuning_metric(metric: str | None, dataset: str, *, several_labels: bool | None) -> None:
    """Refuse a metric that cross-validation cannot compute where documents have one label, or several; None: either.

    Raises InputError naming the metrics that it can.
    """
    kinds = (False, True) if several_labels is None else (several_labels,)
    known = {name: found for kind in kinds for name, found in tuning_metrics(several_labels=kind).items()}
    if metric is not None and metric not in known:
        raise InputError(_no_metric("tuning cannot go by", metric, dataset, several_labels, known))


def check_validation(validation: Mapping[str, Any], dataset: str, corpus: "Artifact") -> None:
    """Refuse another way to validate where the documents, a stored corpus, have validation documents among them.

    Raises InputError naming the option.
    """
    options = {"n_folds": "--folds", "held_out": "--held-out"}
    given = sorted(options.keys() & validation.keys())
    if given and (rows := read_validation(corpus)) is not None:
        raise InputError(
            f"{options[given[0]]}: {dataset} has {len(rows):,} validation documents of its own, on which "
            "tuning is done; leave the option out"
        )


def check_shown_metric(metric: str, dataset: str, method: catalogue.Entry, *, several_labels: bool) -> None:
    """Refuse a metric that the runs of a method on a data set do not have.

    Raises InputError naming those that they have.
    """
    known = scored_metrics(several_labels=several_labels, is_classifier=method.is_classifier)
    if metric not in known:
        raise InputError(_no_metric(f"{method.name} has no", metric, dataset, several_labels, known))


def check_metric(request: Request, metric: str | None) -> None:
    """Refuse a metric, None for the default, that a curve of the request would not have on a data set."""
    for dataset in request.datasets if metric is not None else ():
        several = catalogue.dataset(dataset).constant("SEVERAL_LABELS", False)
        for text in request.methods:
            method = catalogue.method(catalogue.parse_method(text)[0])
            check_shown_metric(str(metric), dataset, method, several_labels=several)


def _no_metric(
    said: str, metric: str, dataset: str, several: bool | None, known: Mapping[str, Metric]
) -> str:
    labels = {
        None: "",
        False: ", where a document has one label",
        True: ", where documents have several labels",
    }
    return f"{said} {metric!r} on {dataset}{labels[several]}; {catalogue.nearest(metric, known)}"
