"""Finished runs by name: find one in the store's index, and open the artifacts that made it."""

import contextlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from textbench.flows.plan.cell import plan
from textbench.flows.plan.corpora import choose_datasets
from textbench.flows.plan.request import LabelBudgetRequest, Protocol, Request, fields_of
from textbench.flows.results.index import Index
from textbench.flows.results.metric_names import SHORT
from textbench.flows.results.summary import columns, latest, of_best, settings_of, summarise
from textbench.tasks import InputError, audit, catalogue, predict, refit
from textbench.tasks.joined import PARTS
from textbench.tasks.sources.user_data import UserData
from textbench.tasks.storage.files import META, Damaged, read_meta
from textbench.tasks.storage.garbage import behind
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Artifact, Store
from textbench.tasks.words import counted

SHORTEST = 6
LAST, BEST, HONEST = "last", "best", "honest"


def find_run(
    home: Path, name: str, dataset: str | None = None, protocol: str | None = None
) -> dict[str, Any]:
    """Return the index row (with its `key`) of a run.

    name: `last`; `best`, the lowest seed of what the leaderboard of a data set ranks first; a method as the leaderboard
    spells it, of which the newest run counts; or the beginning of a run's MLflow id or cell key. `best` and methods
    mean runs that saw all labels. dataset, protocol: the only ones to look among; `best` takes honest runs unless told
    otherwise. Raises InputError when there is none, or it is not clear which, with the candidates.
    """
    rows = _among(home, dataset, protocol)
    whole = list(filter(is_whole, rows))
    if name == LAST:
        return rows[0]
    if name == BEST:
        return _best(whole)
    if of_method := [row for row in whole if row["method"] == name]:
        return of_method[0]
    if name in catalogue.methods():
        datasets = [dataset] if dataset else []
        raise InputError(
            f"there is no finished run of {name}{_where(dataset, protocol)}; "
            f"make one with: {command_to_run(datasets, [name], rows, protocol)}"
        )
    return _by_id(rows, name)


def _among(home: Path, dataset: str | None, protocol: str | None) -> list[dict[str, Any]]:
    """Return the rows to look among, the newest first."""
    every = sorted(Index(home).rows(), key=lambda row: -row["created"])
    if not every:
        raise InputError(f"there are no finished runs in {home}; make some with: textbench run quick")
    if dataset is not None:
        dataset = choose_datasets(every, [dataset])[0]
    if protocol is not None:
        catalogue.pick("protocol", protocol, dict.fromkeys(get_args(Protocol)))
    rows = [row for row in every if dataset in (None, row["dataset"]) and protocol in (None, row["protocol"])]
    if not rows:
        raise InputError(f"there are no finished runs{_where(dataset, protocol)}; {_some(every)}")
    return rows


def _where(dataset: str | None, protocol: str | None) -> str:
    return (f" on {dataset}" if dataset else "") + (f" under the {protocol} protocol" if protocol else "")


def _best(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    datasets = sorted({row["dataset"] for row in rows})
    if len(datasets) != 1:
        raise InputError(
            f"the best run is that of one data set, and there are runs on {', '.join(datasets) or 'none'}; "
            "say which with -d"
        )
    protocols = sorted({row["protocol"] for row in rows})
    protocol = HONEST if HONEST in protocols else protocols[0]
    if protocol != HONEST and len(protocols) > 1:
        raise InputError(
            f"the best run is that of one protocol, and there are {' and '.join(protocols)} runs on {datasets[0]}; "
            "say which with --protocol"
        )
    ranked = latest(row for row in rows if row["protocol"] == protocol)
    first = next((summary for summary in summarise(ranked) if summary.is_best), None)
    if first is None:
        raise InputError(
            f"no run on {datasets[0]} is the best: no two methods ran the same seed; name a method or an id"
        )
    return dict(min((row for row in ranked if first.holds(row)), key=lambda row: row["seed"]))


def of_best_run(home: Path, row: Mapping[str, Any]) -> str:
    """Say of the run that `best` is on which seeds it is the best, and what has a better figure from others."""
    table = summarise(latest(filter(is_whole, _among(home, row["dataset"], row["protocol"]))))
    return of_best(table, columns(table, None)[0])


def _by_id(rows: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the row whose MLflow id or cell key begins so."""
    wanted = name.lower()
    if len(wanted) < SHORTEST:
        words = [LAST, BEST, *dict.fromkeys(row["method"] for row in rows)]
        close = get_close_matches(wanted, words, n=1)
        hint = f"; did you mean {close[0]}?" if close else f"; {_some(rows)}"
        raise InputError(
            f"a run is named by `last`, `best`, a method, or at least {SHORTEST} characters of its id, "
            f"got {name!r}{hint}"
        )
    found = [row for row in rows if is_id_of(row, wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{name!r} begins {len(found)} runs: {_listed(found)}; give more characters")
    raise InputError(f"there is no finished run {name!r}; {_some(rows)}")


def is_whole(row: Mapping[str, Any]) -> bool:
    """Tell whether a run is finished and saw all training labels."""
    return not row.get("error") and not (row.get("request") or {}).get("labels")


def labels_in_words(row: Mapping[str, Any]) -> str:
    """Say which labels a point of a label-budget curve saw, such as "60 labels, draw 1, stratified"; "" for all."""
    labels = (row.get("request") or {}).get("labels")
    if not labels:
        return ""
    words = f"{counted(labels['budget'], 'label')}, draw {labels['draw']}"
    return words + (", stratified" if labels["stratified"] else "")


def short_id(row: Mapping[str, Any]) -> str:
    """Return the id of a run as leaderboards show it: the beginning of MLflow's, of a run without one of its key."""
    return str(row.get("run_id") or row["key"])[:SHORT]


def in_words(row: Mapping[str, Any]) -> str:
    """Say which run it is: data set, method, seed, protocol, how it was tuned, and which labels it saw if not all."""
    trials = int(row["trials"])
    words = [f"{row['dataset']} {row['method']} seed {row['seed']}", row["protocol"]]
    words += [counted(trials, "trial") if trials else "", *settings_of(row), labels_in_words(row)]
    return ", ".join(filter(None, words))


def is_id_of(row: Mapping[str, Any], name: str) -> bool:
    """Tell whether a run's MLflow id or cell key begins with a name."""
    wanted = name.lower()
    return bool(row["key"].startswith(wanted) or _id(row).startswith(wanted))


def _id(row: Mapping[str, Any]) -> str:
    return row["run_id"] or ""


def _some(rows: Sequence[Mapping[str, Any]]) -> str:
    return f"the latest are {_listed(rows[:3])}"


def _listed(rows: Sequence[Mapping[str, Any]]) -> str:
    shown = [f"{row['key'][:12]} ({row['dataset']} {row['method']} seed {row['seed']})" for row in rows[:5]]
    return ", ".join(shown) + (", ..." if len(rows) > 5 else "")


@dataclass(frozen=True)
class Run:
    """A finished run: its index row, and its artifacts opened on demand.

    An artifact that was pruned is computed again if the code still is what made it; else InputError says so.
    """

    home: Path
    row: Mapping[str, Any]

    @property
    def command(self) -> str:
        """The command that makes this run."""
        return command_of(Request(**self.row["request"]))

    @cached_property
    def reference(self) -> Reference:
        """The recipe of the result, from its meta.json. Raises InputError when that is gone or damaged."""
        path = self._store.root / "evaluate" / self.row["key"] / META
        try:
            return Reference.from_json(read_meta(path)["recipe"])
        except (OSError, Damaged) as error:
            raise InputError(
                f"the result of this run is no longer in the store; run it again with: {self.command}"
            ) from error

    def open(self, name: str) -> Artifact:
        """Return the artifact "result", or the "corpus", "vectors", "choice" or "features" behind it.

        InputError for features of a classifier.
        """
        if name == "result":
            return self._open(self.reference)
        if name == "features":
            # Their recipe is worked out anew, so it is this run's only as long as the code is the same.
            self._require_current(f"the features of {self.row['method']} in this run are worked out anew")
            features = predict.features_of(self.reference.inputs["vectors"], self.open("choice"))
            if features is None:
                raise InputError(f"{self.row['method']} is a classifier: it makes no features")
            return self._open(features)
        return self._open(self.reference.inputs[name])

    def open_fitted(self) -> tuple[Artifact, Artifact, Artifact]:
        """Return the vectors, the features (of a classifier the result), and the result."""
        result = self.open("result")
        is_classifier = self.reference.params["probe"] is None
        return self.open("vectors"), result if is_classifier else self.open("features"), result

    def open_refitted(self) -> tuple[Artifact, Artifact, Artifact]:
        """Return the same of the method trained on all documents with the settings of this run."""
        refitted = refit.reference(self.reference)
        result, vectors = self._store.open(refitted), refitted.inputs["vectors"]
        features = predict.features_of(vectors, self.open("choice"))
        made = result if features is None else self._store.open(features)
        return self._store.open(vectors), made, result

    def parts_of(self, made: Artifact) -> dict[str, Artifact]:
        """Return the features that joined features are made of, by their part; none of others."""
        inputs = made.meta["recipe"]["inputs"]
        return {part: self._store.open(Reference.from_json(inputs[part])) for part in PARTS if part in inputs}

    @property
    def zero_rows(self) -> dict[str, int] | None:
        """How many training and test documents have no feature but zeros; None where nothing in the store tells."""
        choice = self.reference.inputs["choice"]
        if not self._is_current or not self._store.has(choice):
            return None
        features = predict.features_of(self.reference.inputs["vectors"], self._store.open(choice))
        if features is None:
            return None
        try:
            return read_meta(self._store.folder(features) / META).get("zero_rows")
        except (OSError, Damaged):
            return None

    def _open(self, reference: Reference) -> Artifact:
        if not self._store.has(reference):
            self._require_current(f"the {reference.stage} artifact of this run is gone")
        return self._store.open(reference)

    def _require_current(self, why: str) -> None:
        if not self._is_current:
            raise InputError(f"{why}, and {changed(self.home, self.row)}; run it again with: {self.command}")

    @property
    def _store(self) -> Store:
        return Store(self.home / "store")

    @cached_property
    def _is_current(self) -> bool:
        return is_current(self.row)


def is_current(row: Mapping[str, Any]) -> bool:
    """Tell whether the request of a run would lead to the same result today."""
    try:
        return plan(Request(**row["request"]))[0].key == row["key"]
    except InputError:
        return False


def changed(home: Path, row: Mapping[str, Any]) -> str:
    """Say why the request of a run leads to another result today, or to none: "its documents have changed since"."""
    try:
        corpus = plan(Request(**row["request"]))[0].references["ingest"]
    except InputError as error:
        return f"it cannot be asked for any more ({error})"
    with contextlib.suppress(InputError):
        if Run(home, row).reference.inputs["corpus"].params != corpus.params:
            return "its documents have changed since"
    return "its code, or a library, has changed since"


def made_from(home: Path, rows: Iterable[Mapping[str, Any]]) -> set[Path]:
    """Return the folders of runs' results and of all that they were made from, their features among it.

    A result's recipe does not name the features that tuning settled on: those are what today's code would make of them.
    """
    store = Store(home / "store")
    results = []
    for row in rows:
        with contextlib.suppress(InputError):
            results.append(Run(home, row).reference)
    found = behind(results)
    for reference in [one for one in found.values() if one.stage == "evaluate" and "choice" in one.inputs]:
        folder = store.folder(reference.inputs["choice"])
        # Nothing is made to find out what stays: what is gone, or of a method that is gone, keeps no features.
        with contextlib.suppress(OSError, Damaged, InputError):
            chosen = Artifact(folder, read_meta(folder / META))
            features = predict.features_of(reference.inputs["vectors"], chosen)
            found |= behind([features] if features else [])
    return {store.folder(reference) for reference in found.values()}


def command_to_run(
    datasets: Sequence[str],
    methods: Sequence[str],
    rows: Sequence[Mapping[str, Any]] = (),
    protocol: str | None = None,
    n_seeds: int | None = None,
) -> str:
    """Return the command that runs methods on data sets, which are named as in `rows`: own documents are read as there.

    What is None, or neither a data set nor a method, is left to the command's defaults.
    """
    own = {row["dataset"]: row["request"]["own"] for row in rows if (row.get("request") or {}).get("own")}
    words = ["textbench", "run"]
    for dataset in datasets:
        words += _own_words(own[dataset]) if dataset in own else ["-d", dataset]
    for method in methods:
        words += ["-m", method]
    words += ["--protocol", protocol] if protocol else []
    words += ["--seeds", str(n_seeds)] if n_seeds else []
    return shlex.join(words)


def _own_words(own: Mapping[str, Any]) -> list[str]:
    """Return the options that read the user's documents so, without those that say what is so anyway."""
    defaults = {one.name: one.default for one in fields(UserData)}
    words = ["--data", str(own["path"])]
    for name, value in own.items():
        if name not in ("path", "seed") and value != defaults[name]:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def command_of(request: Request, n_draws: int | None = None) -> str:
    """Return the command that asks for one cell.

    Of a cell of a label-budget curve it is the curve of its budget with `n_draws` draws, the fewest with it if None.
    """
    asked: Request = request
    if labels := request.labels:
        draws = {"draws": n_draws or labels["draw"] + 1, "stratified": labels["stratified"]}
        asked = LabelBudgetRequest(**asdict(request) | draws | {"budgets": [labels["budget"]]})
    words = _own_words(request.own) if request.own else []
    for one in fields_of(type(asked)):
        values = vars(asked)[one.group] if one.group else vars(asked)
        value = values.get(one.name)
        flag = one.flag
        if one.is_list and one.type is float:
            words += [flag, ",".join(f"{c:g}" for c in value)] if value else []
        elif one.is_list:
            words += [word for each in value or () for word in (flag, str(each))]
        elif value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return shlex.join(["textbench", "curve" if labels else "run", *words])


def read_audit(run: Run) -> dict[str, Any]:
    """Return the findings of the audit of the run's data set."""
    return Store(run.home / "store").open(audit.reference(run.reference.inputs["corpus"])).json("audit")
