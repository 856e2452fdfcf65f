"""Running a sweep from a command."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textbench.flows.plan.cell import Cell, Request


def run_cells(
    home: Path,
    request: "Request",
    cells: "list[Cell]",
    engine: str,
    options: Mapping[str, Any],
    as_json: bool,
) -> list[dict[str, Any]]:
    """Run the flow `benchmark` and return a row a cell; without `as_json` print what was found.

    `options` are those of the flow beside the request: timed, fresh, time_limit, memory_limit.
    """
    from textbench.flows.cli.start import run_flow
    from textbench.flows.cli.summary import print_summary
    from textbench.flows.results.index import Index
    from textbench.tasks.storage.store import Store

    store = Store(home / "store")
    is_new = (
        options.get("timed")
        or options.get("fresh")
        or not all(store.has(cell.references["evaluate"]) for cell in cells)
    )
    arguments = asdict(request) | dict(options)
    rows, info = run_flow(
        home,
        "textbench.flows.benchmark:benchmark",
        arguments,
        cells,
        engine=engine,
        as_json=as_json,
        is_new=bool(is_new),
        index=Index(home),
    )
    if not as_json:
        print_summary(home, rows, info.ui_url)
    return rows


def require_data(home: Path, cells: "list[Cell]") -> None:
    """Ingest what is not stored yet, so that methods and documents that are missing or bad stop a run before it begins.

    Raises InputError for a method's file that cannot be loaded, for documents that are none, a part without a token,
    folds that are asked for where the data has validation documents of its own, and a metric that tuning cannot compute
    on the user's documents, or a database that machines share and that does not answer; TrackingError where MLflow,
    which something new is to be written to, does not answer.
    """
    from textbench.flows.plan.checks import check_tuning_metric, check_validation
    from textbench.tasks import ingest, method_files
    from textbench.tasks.corpus import read_corpus
    from textbench.tasks.storage.remote import check_databases
    from textbench.tasks.storage.store import Store
    from textbench.tasks.tokens import TokenRule, check_tokens
    from textbench.tasks.tracking.tracker import Tracker, read_settings

    store = Store(home / "store")
    missing = [cell for cell in cells if not store.has(cell.references["evaluate"])]
    if missing:
        check_databases()
        Tracker(read_settings(home)).require()
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
            found = read_corpus(store.open(corpus))
        except OSError:
            continue  # not the documents' fault: the cells say so, each for itself
        check_tokens(cell.dataset, found, TokenRule(**vectors.params["rule"]))
        check_tuning_metric(
            validation.get("metric"), cell.dataset, several_labels=found.train_targets.ndim == 2
        )
        check_validation(validation, cell.dataset, found)
