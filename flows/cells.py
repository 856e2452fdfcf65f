"""Cells: one data set, method, protocol and seed each, with the references of every artifact that makes its result."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tasks import InputError, audit, catalogue, evaluate, featurize, ingest, tune, vectorize
from tasks.recipe import PROJECT, Reference
from tasks.store import META, Store, read_meta, write_json

Protocol = Literal["honest", "transductive", "faithful"]
PROBE = "linear-svm"
OWN_RULE = "words"  # the token rule of the user's own documents
SUITES = PROJECT / "flows" / "suites"
SUITE_KEYS = {"description": str, "datasets": list, "methods": list, "seeds": int, "trials": int}


@dataclass(frozen=True)
class Request:
    """What is asked of one sweep: every method on every data set, once a seed, under one protocol.

    `own` holds the fields of `tasks.own_data.OwnData`: the user's documents, beside or instead of `datasets`. `probe`
    and `rule` replace the protocol's classifier and the data sets' token rules.
    """

    datasets: Sequence[str]
    methods: Sequence[str]
    seeds: Sequence[int] = (0,)
    protocol: Protocol = "honest"
    trials: int = 0
    name: str = "custom"
    probe: str | None = None
    rule: str | None = None
    own: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Cell:
    """One square of the table, and the artifacts behind it by stage."""

    dataset: str
    method: str
    protocol: str
    seed: int
    trials: int
    probe: str
    references: Mapping[str, Reference] = field(repr=False)

    @property
    def key(self) -> str:
        """The key of its result, known before anything is computed."""
        return self.references["evaluate"].key

    @property
    def label(self) -> str:
        """Its name for people."""
        return f"{self.dataset} {self.method} seed {self.seed}"


def suites() -> dict[str, Path]:
    """Return the suites by name."""
    return {path.stem: path for path in sorted(SUITES.glob("*.yaml"))}


def read_suite(name: str) -> dict[str, Any]:
    """Return a suite's settings. Raises InputError for an unknown suite or key, naming the nearest."""
    import yaml

    path = catalogue.pick("suite", name, suites())
    settings = yaml.safe_load(path.read_text("utf-8"))
    for key, value in settings.items():
        wanted = SUITE_KEYS.get(key)
        if wanted is None:
            raise InputError(f"{path.name}: unknown key {key!r}; {catalogue.nearest(key, SUITE_KEYS)}")
        if not isinstance(value, wanted):
            raise InputError(f"{path.name}: {key} must be a {wanted.__name__}, got {value!r}")
    return settings


@dataclass(frozen=True)
class _Terms:
    """What a protocol settles for one data set before any method is chosen."""

    dataset: str
    corpus: Reference
    rule: str
    transductive: bool
    probe: str
    validation: Mapping[str, Any]


def plan(request: Request) -> list[Cell]:
    """Return the cells of a request, their keys worked out and nothing computed. Raises InputError for bad names."""
    from evaluation.probes import PROBES
    from tasks.tokens import token_rule

    if not (request.datasets or request.own) or not request.methods or not request.seeds:
        raise InputError("a run needs at least one data set, one method and one seed")
    if request.probe is not None:
        catalogue.pick("probe", request.probe, PROBES)
    _check_methods(request.methods)
    all_terms = [_terms(request, dataset) for dataset in dict.fromkeys(request.datasets)]
    if request.own:
        all_terms.append(_own_terms(request, request.own))
    cells = []
    for terms in all_terms:
        rule = asdict(token_rule(request.rule or terms.rule))
        vectors = vectorize.reference(terms.corpus, rule, terms.transductive)
        shared = {"ingest": terms.corpus, "audit": audit.reference(terms.corpus), "vectorize": vectors}
        for method in dict.fromkeys(request.methods):
            for seed in dict.fromkeys(request.seeds):
                cells.append(_cell(request, terms, method, seed, shared))
    return cells


def _check_methods(methods: Sequence[str]) -> None:
    """Refuse unknown methods, and files that would share a name: results go by the name."""
    places = {name: entry.path for name, entry in catalogue.methods().items()}
    for method in methods:
        entry = catalogue.method(method)
        if places.setdefault(entry.name, entry.path) != entry.path:
            raise InputError(f"{method} has the name of another method, {entry.name}; rename the file")


def _terms(request: Request, dataset: str) -> _Terms:
    """Return a data set's terms; `faithful` takes them from its `FAITHFUL`, what a paper's own protocol was."""
    entry = catalogue.dataset(dataset)
    paper: Mapping[str, Any] = {}
    if request.protocol == "faithful":
        paper = entry.constant("FAITHFUL")
        if paper is None:
            raise InputError(
                f"protocol 'faithful' repeats what a paper did to its data, and no paper's protocol is known for "
                f"{dataset}; choose honest or transductive"
            )
    return _Terms(
        dataset=dataset,
        corpus=ingest.reference(dataset),
        rule=paper.get("rule", entry.constant("RULE")),
        transductive=paper.get("transductive", request.protocol == "transductive"),
        probe=request.probe or paper.get("probe", PROBE),
        validation=_validation(**paper.get("validation", {})),
    )


def _validation(c_steps: Sequence[float] = (), **others: Any) -> dict[str, Any]:
    """Return what `choose_c` is told; `c_steps` (first, last, step) is how papers give a grid of C."""
    if not c_steps:
        return others
    first, last, step = c_steps
    n_steps = round((last - first) / step)
    return others | {"c_grid": [round(first + i * step, 6) for i in range(n_steps + 1)]}


def _own_terms(request: Request, own: Mapping[str, Any]) -> _Terms:
    from tasks import own_data

    if request.protocol == "faithful":
        raise InputError(
            "protocol 'faithful' repeats a paper; for your own data choose honest or transductive"
        )
    corpus = own_data.reference(own_data.OwnData(**own))
    is_transductive = request.protocol == "transductive"
    name = corpus.params["dataset"]
    name = f"own-{name}" if name in catalogue.datasets() else name  # r8.csv is not the data set r8
    return _Terms(name, corpus, OWN_RULE, is_transductive, request.probe or PROBE, {})


def _cell(request: Request, terms: _Terms, method: str, seed: int, shared: dict[str, Reference]) -> Cell:
    corpus, vectors = shared["ingest"], shared["vectorize"]
    entry = catalogue.method(method)
    path_or_name = str(entry.path) if method.endswith(".py") else method
    choice = tune.reference(
        corpus, vectors, path_or_name, request.trials, seed, terms.probe, terms.validation
    )
    references = shared | {
        "featurize": featurize.reference(vectors, path_or_name, {}, seed),
        "tune": choice,
        "evaluate": evaluate.reference(corpus, vectors, choice),
    }
    return Cell(terms.dataset, entry.name, request.protocol, seed, request.trials, terms.probe, references)


def result_row(cell: Cell, store: Store) -> dict[str, Any]:
    """Return a finished cell as a row: what it was, its metrics, seconds by stage and peak memory."""
    choice = store.open(cell.references["tune"])
    chosen = choice.json("choice")
    used = dict(cell.references) | {"featurize": evaluate.features_of(cell.references["vectorize"], choice)}
    del used["audit"]
    metas = {stage: read_meta(store.folder(reference) / META) for stage, reference in used.items()}
    return row(cell) | {
        "params": chosen["params"] | {"C": chosen["C"]},
        "on_border": ["C"] if chosen["on_border"] else [],
        "metrics": store.open(cell.references["evaluate"]).json("metrics"),
        "seconds": {stage: round(meta["seconds"], 3) for stage, meta in metas.items()},
        "peak_mb": round(max(meta["peak_mb"] for meta in metas.values()), 1),
    }


def row(cell: Cell, error: str | None = None) -> dict[str, Any]:
    """Return a cell as a row with no result yet, or with the error that took its place."""
    return {
        "dataset": cell.dataset,
        "method": cell.method,
        "protocol": cell.protocol,
        "seed": cell.seed,
        "trials": cell.trials,
        "probe": cell.probe,
        "params": {},
        "on_border": [],
        "metrics": {},
        "seconds": {},
        "peak_mb": None,
        "run_id": None,
        "cached": False,
        "error": error,
    }


# What a record of the index has beside its row.
RECORDED = {"dataset", "method", "protocol", "seed", "trials", "metrics", "seconds", "run_id", "created"} | {
    "attempt", "tracking_uri", "sweeps",
}  # fmt: skip


class Index:
    """The store's index: one small file a finished cell, `<home>/index/<key>.json`, written with its run."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "index"

    def get(self, cell: Cell) -> dict[str, Any] | None:
        """Return the recorded row of a cell, or None."""
        return _read(self.folder / f"{cell.key}.json")

    def put(self, cell: Cell, record: Mapping[str, Any]) -> None:
        """Record a row; it appears whole or not at all."""
        write_json(self.folder / f"{cell.key}.json", dict(record))

    def rows(self) -> list[dict[str, Any]]:
        """Return every recorded row, with its `key`."""
        found = ((path.stem, _read(path)) for path in sorted(self.folder.glob("*.json")))
        return [record | {"key": key} for key, record in found if record is not None]


def _read(path: Path) -> dict[str, Any] | None:
    import json

    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    # What is not a record is made again, like one that is missing.
    return record if isinstance(record, dict) and record.keys() >= RECORDED else None


def estimate(cells: Iterable[Cell], store: Store, records: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """Return the seconds each cell is expected to take: 0 if stored, else what its like took, else None."""
    return [0.0 if store.has(cell.references["evaluate"]) else _like(cell, records) for cell in cells]


def _like(cell: Cell, records: Sequence[Mapping[str, Any]]) -> float | None:
    seconds = [
        sum(r["seconds"].values())
        for r in records
        if (r["dataset"], r["method"], r["trials"]) == (cell.dataset, cell.method, cell.trials)
    ]
    return sum(seconds) / len(seconds) if seconds else None
