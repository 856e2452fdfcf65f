"""Before a run: documents are read and what machines share is asked; what is bad or missing stops it at once."""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from textbench.flows.plan.base_cell import BaseCell
from textbench.flows.plan.cell import Cell, plan, text_vectors_of
from textbench.flows.plan.checks import check_shown_metric, check_tuning_metric, check_validation
from textbench.flows.plan.request import FieldError, LabelBudgetRequest
from textbench.flows.run.room import require_room
from textbench.tasks import InputError, catalogue, collect, file_vectors, ingest, method_files, text_vectors
from textbench.tasks.corpus import read_targets
from textbench.tasks.sources import user_data
from textbench.tasks.storage.recipe import Reference, canonical_json
from textbench.tasks.storage.remote import Remote, check_databases
from textbench.tasks.storage.store import STORE, Store
from textbench.tasks.tokens import TokenRule, check_tokens
from textbench.tasks.tracking.tracker import Tracker, read_settings

log = logging.getLogger("textbench.run")


def check_shared() -> None:
    """See that what machines share can be used."""
    check_databases()
    if url := os.environ.get(STORE):
        Remote(url).check()


def require_data(
    home: Path,
    cells: Sequence[Cell],
    tracker: Tracker | None = None,
    say: Callable[[str], None] = log.warning,
    memory_limit: float | None = None,
    time_limit: float | None = None,
) -> None:
    """Ingest what is not stored yet, so that methods and documents that are missing or bad stop a run before it begins.

    Without a tracker runs are tracked where mlflow.yaml says. `say` is told what a reader may want to know.
    `memory_limit` is in megabytes, `time_limit` in seconds.

    Raises InputError for a method's file that cannot be loaded, for documents that are none, a part without a token,
    folds that are asked for where the data has validation documents of its own, and a metric that tuning cannot compute
    on the user's documents, a method that needs more memory or time than there is, or a database that machines share
    and that does not answer; TrackingError where MLflow, which something new is to be written to, does not answer.
    """
    store = Store(home / "store")
    missing = [cell for cell in cells if not store.has(cell.references["evaluate"])]
    if missing:
        check_databases()
        (tracker or Tracker(read_settings(home))).require()
    for cell in {
        cell.references["tune"].inputs["corpus"].key + cell.method: cell for cell in missing
    }.values():
        _require_file(store, cell, say)
    for own in {
        canonical_json(cell.request.own): cell.request.own for cell in missing if cell.request.own
    }.values():
        if user_data.has_unread_split(user_data.UserData(**own)):
            say(
                "the column split is not read, and the test documents are drawn; to train and test as it says: "
                "--split-column split"
            )
    embedded = filter(None, map(text_vectors_of, missing))
    for reference in {vectors.key: vectors for vectors in embedded}.values():
        _require_endpoint(store, reference, say)
    methods = dict.fromkeys(cell.references["tune"].params["method"] for cell in missing)
    for path in [method for method in methods if method.endswith(".py")]:
        method_files.check(path)
    for cell in {cell.references["vectorize"].key: cell for cell in cells}.values():
        corpus, vectors = cell.references["ingest"], cell.references["vectorize"]
        validation = cell.request.validation if cell.request.own else {}
        if store.has(corpus) and store.has(vectors) and not validation:
            continue
        try:
            ingest.ensure(store, corpus)
            if not (cell.request.own or cell.request.rule):
                continue  # by its own rule a data set of the catalogue has tokens
            found = store.open(corpus)
        except OSError:
            continue  # not the documents' fault: the cells say so, each for itself
        if (rule := vectors.params["rule"]) is not None:
            check_tokens(cell.dataset, found, TokenRule(**rule))
        check_tuning_metric(
            validation.get("metric"), cell.dataset, several_labels=read_targets(found, "train").ndim == 2
        )
        check_validation(validation, cell.dataset, found)
    require_room(store, missing, memory_limit, time_limit, say)


def _require_file(store: Store, cell: Cell, say: Callable[[str], None]) -> None:
    """See that the file that a cell reads in a method's place is of its documents, and say if it does not name them."""
    entry = catalogue.method(cell.references["tune"].params["method"])
    if entry.is_file:
        corpus, params = cell.references["ingest"], cell.references["tune"].params["fixed"]
        if not entry.is_classifier:
            file_vectors.check_columns(Path(params["path"]))
        ingest.ensure(store, corpus)
        if not entry.load().check(params, store.open(corpus)):
            say(f"{Path(params['path']).name} has no ids: its rows count in the order of `textbench texts`")


def _require_endpoint(store: Store, vectors: Reference, say: Callable[[str], None]) -> None:
    """See that texts may be sent to the endpoint that embeds them, if one does, and say where they go."""
    if store.has(vectors):
        return
    encoder = text_vectors.encoder_of(catalogue.method(vectors.params["method"]), vectors.params["encoding"])
    if text_vectors.is_sent(encoder):
        try:
            encoder.require()
        except ValueError as error:
            raise InputError(f"{vectors.params['method']}: {error}") from error
        say(f"the texts of {vectors.inputs['corpus'].params['dataset']} are sent to {encoder.host}")


def checked_curves(
    home: Path,
    request: LabelBudgetRequest,
    metric: str | None = None,
    *,
    may_cut: bool = False,
    tracker: Tracker | None = None,
    say: Callable[[str], None] = log.warning,
) -> LabelBudgetRequest:
    """Return curves that can be drawn, after ingesting what is not stored yet; all documents of a data set once.

    Budgets that the smallest data set cannot fill become all of its documents if they may be cut. Raises FieldError
    where they may not, and InputError for a metric, None for the default, that curves of the user's own documents would
    not have.
    """
    cells = plan(request)
    require_data(home, cells, tracker, say)
    store, sizes = Store(home / "store"), {}
    for name, cell in {cell.dataset: cell for cell in cells}.items():
        targets = read_targets(store.open(cell.references["ingest"]), "train")
        sizes[name] = targets.shape[0]
        for text in request.methods if metric is not None and cell.request.own else ():
            method = catalogue.method(catalogue.parse_method(text)[0])
            check_shown_metric(str(metric), name, method, several_labels=targets.ndim == 2)
    smallest = min(sizes, key=lambda name: sizes[name])
    size, most = sizes[smallest], max(request.budgets)
    request = replace(request, n_documents=sizes)
    if most > size and not may_cut:
        raise FieldError(
            lambda named: f"{named('budgets')}: {smallest} has {size} training documents, got {most}"
        )
    if most > size:
        request = replace(request, budgets=sorted({min(budget, size) for budget in request.budgets}))
    if not plan(request):
        raise FieldError(
            lambda named: (
                f"{named('first_draw')}: all documents are drawn once, by draw 0; no other budget is asked for"
            )
        )
    return request


def require_collections(home: Path, cells: Sequence[BaseCell], judgments: str) -> None:
    """Load what is not stored yet, so that collections that are missing or bad stop the run before it begins."""
    store = Store(home / "store", isolated=False)
    for corpus in {cell.dataset: cell.references["ingest"] for cell in cells}.values():
        collect.read_judged(store.open(corpus), judgments)
