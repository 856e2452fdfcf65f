"""Cells: one data set, method, protocol and seed each, with the references of every artifact that makes its result."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

from textbench.flows.plan import checks
from textbench.flows.plan.base_cell import NEAR, BaseCell, feature_stages, member_stage
from textbench.flows.plan.corpora import stored_identity, told_apart
from textbench.flows.plan.request import SPLITS, BenchmarkRequest, Request, once
from textbench.tasks import (
    InputError,
    audit,
    catalogue,
    ensemble,
    featurize,
    file_predictions,
    ingest,
    joined,
    out_of_fold,
    predict,
    tune,
    vectorize,
)
from textbench.tasks.sources.given_files import titled
from textbench.tasks.storage.recipe import Reference, at_one_time
from textbench.tasks.storage.store import Store

PROBE = "linear-svm"
OWN_RULE = "words"  # the token rule of the user's own documents
SCORES = "out_of_fold"  # the stage that ensembles are made of, which is part of what they took alone


@dataclass(frozen=True)
class Cell(BaseCell):
    """A method on one data set under one protocol, with one seed.

    `probe` is None for a method that classifies by itself; `request` is what asks for this cell alone.
    """

    probe: str | None
    request: Request = field(repr=False)

    @property
    def label(self) -> str:
        """Its name for people, with the labels it may see if these are not all."""
        labels = self.request.labels
        budget = f", {labels['budget']} labels, draw {labels['draw']}" if labels else ""
        return f"{super().label}{budget}"


@dataclass(frozen=True)
class _Terms:
    """What a protocol settles for one data set and method before anything is tuned."""

    dataset: str
    corpus: Reference
    rule: str
    transductive: bool
    probe: str
    validation: Mapping[str, Any]
    paper: str | None = None


@once
@at_one_time()
def plan(request: Request) -> list[Cell]:
    """Return the cells of a request, their keys worked out and nothing computed. Raises InputError for bad names."""
    from textbench.evaluation.probes.catalogue import PROBES

    if request.probe is not None:
        catalogue.pick("probe", request.probe, PROBES)
    methods = [_method(text) for text in dict.fromkeys(request.methods)]
    _check_methods(methods)
    for name in [*request.datasets, *([None] if request.own else [])]:
        # Of the user's documents that is known when they are read.
        several = None if name is None else catalogue.dataset(name).constant("SEVERAL_LABELS", False)
        checks.check_tuning_metric(
            request.validation.get("metric"), name or "your own documents", several_labels=several
        )
    own = _own_corpus(request, request.own) if request.own else None
    tables = [
        _table(request, _terms(request, dataset, method, own), method)
        for dataset in [*dict.fromkeys(request.datasets), *([None] if own else [])]
        for method in methods
    ]
    return [
        _cell(request, table, labels, seed)
        for labels in request.labels_in_turn()
        for table in tables
        if not request.is_again(table.terms.dataset, labels)
        for seed in dict.fromkeys(request.seeds)
    ]


def key_now(asked: Mapping[str, Any], **others: Any) -> str:
    """Return the key that a cell which was asked for so has by the code and libraries of today; `others` differ.

    It is "" where nobody can ask so any more.
    """
    try:
        return _key_now(json.dumps({**asked, **others}, sort_keys=True))
    except InputError:
        return ""


@cache
def _key_now(asked: str) -> str:
    (cell,) = plan(Request(**json.loads(asked)))
    return cell.key


def text_vectors_of(cell: Cell) -> Reference | None:
    """Return the vectors of texts that a cell's method needs, by its defaults where they are searched; None without."""
    if "text_vectors" in cell.references:
        return cell.references["text_vectors"]
    asked = cell.references["tune"].params
    entry, fixed = catalogue.method(asked["method"]), asked.get("fixed") or {}
    if entry.is_file or not any("text_vectors" in part.needs for part in joined.entries(entry, fixed)):
        return None
    features = featurize.reference(cell.references["vectorize"], asked["method"], fixed, cell.seed)
    return feature_stages(features)["text_vectors"]


@dataclass(frozen=True)
class _Method:
    """A method as it was asked for: its file, its fixed parameters, and how recipes name it."""

    asked: str
    entry: catalogue.Entry
    params: Mapping[str, Any]

    @property
    def recipe_name(self) -> str:
        """Its name, or the path of the user's file."""
        return str(self.entry.path) if self.entry.is_own else self.entry.name

    @property
    def reads_texts_alone(self) -> bool:
        """Whether no token rule matters to it: all its parts read texts alone."""
        return all(part.reads_texts_alone for part in joined.entries(self.entry, self.params))


def _method(text: str) -> _Method:
    name, params = catalogue.parse_method(text)
    entry = catalogue.method(name)
    if entry.is_own:
        checks.check_file(entry)
    if entry.is_file:
        params = entry.load().pinned(params)
    if entry.is_ensemble:
        members = ensemble.members(params)
        for method, rule in members:
            _method(method)
            _check_rule(rule)
        return _Method(text, entry, params | {"of": ensemble.spelled(members)})
    if entry.is_join:
        joined.check(params)
        for name, own in joined.split(params).values():
            checks.check_parameters(catalogue.method(name), own)
    checks.check_parameters(entry, params)
    return _Method(text, entry, params)


def _check_rule(rule: str | None) -> None:
    from textbench.tasks.tokens import token_rule

    if rule is not None:
        token_rule(rule)


def _check_methods(methods: Sequence[_Method]) -> None:
    """Refuse files that would share a name: results go by the name."""
    places = {name: entry.path for name, entry in catalogue.methods().items()}
    for method in methods:
        entry = method.entry
        if places.setdefault(entry.name, entry.path) != entry.path:
            raise InputError(f"{method.asked} has the name of another method, {entry.name}; rename the file")


def _terms(request: Request, dataset: str | None, method: _Method, own: Reference | None) -> _Terms:
    """Return the terms of a data set (None: the user's `own`) for a method; `faithful` takes a paper's."""
    if dataset is None:
        assert own is not None
        return _own_terms(request, own)
    entry = catalogue.dataset(dataset)
    paper, terms = _paper(request, entry, method) if request.protocol == "faithful" else (None, {})
    return _Terms(
        dataset=dataset,
        corpus=ingest.reference(dataset),
        rule=request.rule or terms.get("rule", entry.constant("RULE")),
        transductive=terms.get("transductive", request.protocol == "transductive"),
        probe=request.probe or terms.get("probe", PROBE),
        validation=_asked_validation(request, terms, method),
        paper=paper,
    )


def reads_texts_alone(method: str) -> bool:
    """Tell whether no token rule matters to a method, as people write it."""
    return _method(method).reads_texts_alone


def own_rule(request: Request, dataset: str, method: str) -> str:
    """Return the token rule that a run of a method on a data set has where none is asked for."""
    if request.own:
        return OWN_RULE
    return _terms(replace(request, rule=None), dataset, _method(method), None).rule


def _paper(request: Request, entry: catalogue.Entry, method: _Method) -> tuple[str, Mapping[str, Any]]:
    """Return the paper whose protocol is meant: the one asked for, else the method's, else the data set's first."""
    known = entry.constant("FAITHFUL", {})
    if not known:
        raise InputError(
            f"protocol 'faithful' repeats what a paper did to its data, and no paper's protocol is known for "
            f"{entry.name}; choose honest or transductive"
        )
    own = method.entry.constant("PAPER")
    paper = request.paper or (own if own in known else next(iter(known)))
    return paper, catalogue.pick(f"protocol of a paper for {entry.name}", paper, known)


def _asked_validation(request: Request, terms: Mapping[str, Any], method: _Method) -> dict[str, Any]:
    """Return how is tuned: a protocol's way, and what was asked for instead. Folds and documents held out exclude."""
    own = _validation(**_own_validation(request, terms, method))
    if SPLITS & request.validation.keys():
        own = {name: value for name, value in own.items() if name not in SPLITS}
    return own | dict(request.validation)


def _own_validation(request: Request, terms: Mapping[str, Any], method: _Method) -> dict[str, Any]:
    """Return a protocol's way to tune; its grids are for its own probe, and no other classifier reads them."""
    known = dict(terms.get("validation", {}))
    if method.entry.is_classifier or request.probe not in (None, terms.get("probe")):
        return {name: value for name, value in known.items() if name not in {"c_grid", "c_steps", "settings"}}
    return known


def _validation(c_steps: Sequence[float] = (), **others: Any) -> dict[str, Any]:
    """Return what `choose_c` is told; `c_steps` (first, last, step) is how papers give a grid of C."""
    if not c_steps:
        return others
    first, last, step = c_steps
    n_steps = round((last - first) / step)
    return others | {"c_grid": [round(first + i * step, 6) for i in range(n_steps + 1)]}


def _own_corpus(request: Request, own: Mapping[str, Any]) -> Reference:
    """Return the corpus of the user's own documents, which are read whole for their digest."""
    from textbench.tasks.sources import user_data

    if request.protocol == "faithful":
        raise InputError(
            "protocol 'faithful' repeats a paper; for your own data choose honest or transductive"
        )
    return user_data.reference(user_data.UserData(**own))


def _own_terms(request: Request, corpus: Reference) -> _Terms:
    is_transductive = request.protocol == "transductive"
    rule, probe = request.rule or OWN_RULE, request.probe or PROBE
    return _Terms(own_name(corpus), corpus, rule, is_transductive, probe, request.validation)


def own_name(corpus: Reference) -> str:
    """Return the name of the user's own documents in results: r8.csv is not the data set r8."""
    name = corpus.params["dataset"]
    return f"own-{name}" if name in {**catalogue.datasets(), **catalogue.collections()} else name


@dataclass(frozen=True)
class _Table:
    """What the cells of one data set and method share, whatever their seed."""

    terms: _Terms
    method: _Method
    label: str
    shared: Mapping[str, Reference]


def _table(request: Request, terms: _Terms, method: _Method) -> _Table:
    from textbench.tasks.tokens import token_rule

    parts = joined.entries(method.entry, method.params)
    rule = None if method.reads_texts_alone else asdict(token_rule(terms.rule))
    if rule is not None:
        rule["max_n"] = max(rule["max_n"], *(part.constant("MAX_N", 1) for part in parts))
    shared = {
        "ingest": terms.corpus,
        "audit": audit.reference(terms.corpus),
        "vectorize": vectorize.reference(terms.corpus, rule, terms.transductive),
    }
    return _Table(terms, method, _label(method), shared)


def _label(method: _Method) -> str:
    """Return how tables call a method."""
    if method.entry.is_file:
        return titled(method.params)
    if method.entry.is_join:
        return joined.titled(method.params)
    if method.entry.is_ensemble:
        return ensemble.titled(method.params)
    return catalogue.spelled(method.entry.name, method.params)


def _cell(request: Request, table: _Table, labels: Mapping[str, Any], seed: int) -> Cell:
    terms, method, name = table.terms, table.method, table.method.recipe_name
    if method.entry.is_ensemble:
        return _ensemble_cell(request, table, labels, seed)
    corpus, vectors = table.shared["ingest"], table.shared["vectorize"]
    is_searched = bool(request.trials or request.search_seconds)
    is_papers = terms.paper is not None and terms.paper == method.entry.constant("PAPER")
    fixed = method.entry.constant("UNSEARCHED", {}) if is_searched and is_papers else {}
    references = dict(table.shared)
    if method.entry.name == catalogue.PREDICTIONS:
        choice = file_predictions.choice(corpus, vectors, name, method.params)
    else:
        choice = tune.reference(
            corpus,
            vectors,
            name,
            seed,
            terms.probe,
            trials=request.trials,
            seconds=request.search_seconds,
            validation=terms.validation,
            fixed={**fixed, **method.params},
            labels=labels,
        )
    if not method.entry.is_classifier and not is_searched:  # a search makes the features it wants
        references |= feature_stages(featurize.reference(vectors, name, method.params, seed, labels))
    result = file_predictions if method.entry.name == catalogue.PREDICTIONS else predict
    references |= {"tune": choice, "evaluate": result.reference(corpus, vectors, choice)}
    if _keeps_scores(request) and result is predict:
        references[SCORES] = out_of_fold.reference(references["evaluate"])
    return _made(request, table, labels, seed, references)


def _ensemble_cell(request: Request, table: _Table, labels: Mapping[str, Any], seed: int) -> Cell:
    """Return the cell of an ensemble, whose stages are those of its members, each after its number, and its own."""
    from textbench.tasks.tokens import token_rule

    corpus, vectors = table.shared["ingest"], table.shared["vectorize"]
    near = None
    if table.method.params.get(ensemble.SMOOTH):
        if not table.terms.transductive:
            raise InputError(
                f"{table.method.asked} reads the test texts that are near one another: say --protocol transductive"
            )
        near = vectorize.reference(corpus, asdict(token_rule(table.terms.rule)), transductive=True)
    references = dict(table.shared) | ({NEAR: near} if near else {})
    results: list[Reference] = []
    for place, (text, rule) in enumerate(ensemble.members(table.method.params), start=1):
        method = _method(text)
        asked = replace(request, rule=rule) if rule else request
        own = corpus if corpus.params.get("own") else None
        terms = _terms(asked, None if own else table.terms.dataset, method, own)
        member = _cell(asked, _table(asked, terms, method), labels, seed)
        result = member.references["evaluate"]
        if result in results:
            same = ensemble.members(table.method.params)[results.index(result)]
            why = (
                "no token rule matters to them"
                if method.reads_texts_alone
                else f"{terms.rule} is the token rule of both"
            )
            raise InputError(
                f"{ensemble.spelled([(text, rule)])} and {ensemble.spelled([same])} are one on "
                f"{table.terms.dataset}, where {why}: leave one of them out"
            )
        stages = dict(member.references) | {SCORES: out_of_fold.reference(result)}
        references |= {member_stage(place, stage): one for stage, one in stages.items() if stage != "audit"}
        results.append(result)
    chosen = ensemble.choice(corpus, vectors, table.method.params, results, seed, labels, near)
    references |= {"tune": chosen, "evaluate": ensemble.reference(chosen, results)}
    return _made(request, table, labels, seed, references)


def members(cell: Cell) -> list[Cell]:
    """Return the cells of an ensemble's members, each called as the ensemble calls it; of another cell that alone."""
    asked = cell.references["tune"].params
    if not catalogue.method(asked["method"]).is_ensemble:
        return [cell]
    found = []
    for place, member in enumerate(ensemble.members(asked["fixed"]), start=1):
        begins = member_stage(place, "")
        stages = {
            name.removeprefix(begins): one for name, one in cell.references.items() if name.startswith(begins)
        }
        found.append(replace(cell, method=ensemble.spelled([member]), references=stages))
    return found


def _made(
    request: Request,
    table: _Table,
    labels: Mapping[str, Any],
    seed: int,
    references: Mapping[str, Reference],
) -> Cell:
    """Return a cell with what asks for it alone."""
    terms, method = table.terms, table.method
    # The path is absolute, so that a run is known again from any folder.
    own = (
        {**request.own, "path": read["path"]}
        if request.own and (read := terms.corpus.params.get("own"))
        else None
    )
    alone = request.alone(
        datasets=[] if own else [terms.dataset],
        methods=[catalogue.spelled(method.recipe_name, method.params)],
        seeds=[seed],
        own=own,
        paper=terms.paper,
        labels=labels,
    )
    probe = references["tune"].params["probe"]
    return Cell(terms.dataset, table.label, request.protocol, seed, request.trials, references, probe, alone)


def _keeps_scores(request: Request) -> bool:
    """Tell whether out-of-fold scores are kept: of sweeps, but for those whose seconds are measured."""
    return isinstance(request, BenchmarkRequest) and not request.no_scores and not request.timed


def estimate(
    cells: Sequence[BaseCell], store: Store, records: Sequence[Mapping[str, Any]]
) -> list[float | None]:
    """Return the seconds each cell is expected to take: 0 if stored, else what its like took, else None."""
    taken: dict[tuple[str, str, int], list[float]] = {}
    for record in records:
        like = (record["dataset"], record["method"], record["trials"])
        taken.setdefault(like, []).append(sum(record["seconds"].values()))
    means = {like: sum(seconds) / len(seconds) for like, seconds in taken.items()}
    # One a name: a request has no two.
    corpora = {cell.dataset: cell.references.get("ingest") for cell in cells}
    asked = [
        {"dataset": name, "corpus": stored_identity(store, corpus) if corpus else None}
        for name, corpus in corpora.items()
    ]
    names = {row["named"]: row["dataset"] for row in told_apart(store.root.parent, asked, among=records)}
    return [
        0.0
        if store.has(cell.references["evaluate"])
        else means.get((names[cell.dataset], cell.method, cell.trials))
        for cell in cells
    ]
