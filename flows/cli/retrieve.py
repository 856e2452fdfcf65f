"""`textbench retrieve`: the flow `retrieval`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textbench.flows.cli.options import (
    OUTPUT,
    Address,
    AllowUpload,
    Engine,
    Jobs,
    options_of,
    own_option,
    read_engine,
    takes,
)
from textbench.flows.cli.output import check_folder
from textbench.flows.cli.runner import run_flow, stopped_by_hand
from textbench.flows.cli.voice import wrote
from textbench.flows.plan.request import RetrievalRequest
from textbench.tasks import InputError

if TYPE_CHECKING:
    from textbench.flows.results.rankings import RankingCell
    from textbench.tasks.storage.store import Store


def own_collection(
    documents: Annotated[
        Path | None,
        own_option(
            "Your own collection: a file or folder of documents. SMART: .I NAME, .T, .W. TREC: <DOC>. "
            "JSON Lines: id, text, maybe title."
        ),
    ] = None,
    queries: Annotated[Path | None, own_option("With --documents: the file of queries or topics.")] = None,
    qrels: Annotated[
        Path | None,
        own_option(
            "With --documents: the file of judgments. SMART: query document code, or two columns that are not "
            "read. TREC: query iteration document code. JSON Lines: query, document, relevance."
        ),
    ] = None,
    format: Annotated[str, own_option("With --documents: auto, smart, trec or jsonl.", "auto")] = "auto",
    fields: Annotated[
        str, own_option("With --documents: the parts of TREC topics to ask: title,desc,narr.", "title")
    ] = "title",
    name: Annotated[
        str | None, own_option("With --documents: what to call the collection.", "its documents' folder")
    ] = None,
) -> dict[str, Any] | None:
    """Return the fields of `tasks.collections._user.OwnCollection` that are asked for, None without --documents.

    Raises InputError for the other options without it, and for files that are missing.
    """
    given = {"--documents": documents, "--queries": queries, "--qrels": qrels}
    if not any(given.values()):
        if format != "auto" or fields != "title":
            raise InputError("--format and --fields describe your own collection and need --documents")
        if name is not None:
            raise InputError("--name names your own collection and needs --documents")
        return None
    missing = [name for name, path in given.items() if path is None]
    if missing:
        raise InputError(f"your own collection needs {', '.join(given)}; {missing[0]} is missing")
    parts = [part.strip() for part in fields.split(",") if part.strip()]
    paths = {name.removeprefix("--"): str(path) for name, path in given.items()}
    return paths | {"kind": format, "fields": parts} | ({} if name is None else {"name": name})


@takes(asked=options_of(RetrievalRequest), own=own_collection)
def retrieve(
    asked: dict[str, Any],
    own: dict[str, Any] | None,
    engine: Engine = "threads",
    address: Address = None,
    jobs: Jobs = None,
    allow_upload: AllowUpload = False,
    write: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the rankings and judgments in TREC's formats.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(
            help="Score a TREC run file made elsewhere on the one collection, beside the rankers; repeat.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print JSON Lines, one object a ranker, and nothing else.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
) -> None:
    """Rank collections of documents for their queries, and compare rankers by paired tests.

    MAP is of queries that took no part in choosing parameters. Finished work is kept.

    Example: textbench retrieve -c cranfield -m bm25 -m lm -m lm+lsi

    Your own: textbench retrieve --documents CISI.ALL --queries CISI.QRY --qrels CISI.REL -m lm
    """
    from textbench.flows.results.rankings import plan
    from textbench.flows.run.preflight import require_collections
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.storage.store import Store
    from textbench.tasks.tracking.tracker import read_settings

    check_folder("--write", write)
    where = read_engine(engine, address)
    request = RetrievalRequest(**({"collections": [], "own": own} if own else {}) | asked)
    home = home_folder()
    read_settings(home)
    cells = plan(request)
    require_collections(home, cells, request.judgments)
    outside = _read_runs(run or [], cells)
    if write is not None:
        check_runs(Store(home / "store"), cells, write)
    with stopped_by_hand():
        rows, _ = run_flow(home, request, engine=where)
    done = [cell for cell, result in zip(cells, rows, strict=True) if result["error"] is None]
    _print(home, cells, rows, outside, json)
    if write is not None:
        write_runs(Store(home / "store"), done, write)
        wrote(write, as_json=json)
    if len(done) < len(cells):
        raise typer.Exit(1)


def _read_runs(files: list[Path], cells: "list[RankingCell]") -> dict[str, dict[str, dict[str, float]]]:
    from textbench.evaluation.metrics.ranked_retrieval import read_run

    if files and len({cell.dataset for cell in cells}) > 1:
        raise InputError("--run scores a run on one collection; name it with --collection")
    runs = {}
    for path in files:
        try:
            runs[path.stem] = read_run(path.read_text("utf-8").splitlines(), path.name)
        except OSError as error:
            raise InputError(f"--run {path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise InputError(str(error)) from error
    return runs


def check_runs(store: "Store", cells: "list[RankingCell]", folder: Path) -> None:
    """Refuse, before anything is computed, a folder where files of other runs have the names of these.

    A run that is not stored could not have been written: what has its name is another one.
    """
    from textbench.evaluation.metrics.ranked_retrieval import qrels_lines
    from textbench.tasks import collect

    contents: dict[Path, bytes | None] = {}
    for cell in cells:
        run, qrels = _files(cell, folder)
        reference = cell.references["evaluate"]
        contents[run] = (
            (store.open(reference).folder / "run.txt").read_bytes() if store.has(reference) else None
        )
        if qrels not in contents and qrels.exists():
            judged = collect.read_judged(store.open(cell.references["ingest"]), cell.settings["judgments"])
            contents[qrels] = "".join(f"{line}\n" for line in qrels_lines(judged.qrels)).encode()
    _refuse_others(contents, folder)


def write_runs(store: "Store", cells: "list[RankingCell]", folder: Path) -> None:
    """Write every ranking and the judgments it was scored on, for trec_eval and others, over no other file.

    Raises InputError where the folder cannot be written.
    """
    contents: dict[Path, bytes] = {}
    for cell in cells:
        result = store.open(cell.references["evaluate"]).folder
        run, qrels = _files(cell, folder)
        contents |= {run: (result / "run.txt").read_bytes(), qrels: (result / "qrels.txt").read_bytes()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_others(contents, folder)
        for path, content in contents.items():
            path.write_bytes(content)
    except OSError as error:
        raise InputError(f"--write {folder} cannot be written: {error.strerror}") from error


def _files(cell: "RankingCell", folder: Path) -> tuple[Path, Path]:
    """Return where the ranking of a cell and its judgments are written."""
    collection = cell.dataset.replace("/", "-").replace(":", "-")
    ranker = cell.method.replace("/", "-").replace(":", "-")
    return folder / f"{collection}-{ranker}-seed{cell.seed}.run", folder / f"{collection}.qrels"


def _refuse_others(contents: Mapping[Path, bytes | None], folder: Path) -> None:
    other = [
        path.name for path, content in contents.items() if path.exists() and path.read_bytes() != content
    ]
    if other:
        more = f" and {len(other) - 1} more" if len(other) > 1 else ""
        raise InputError(
            f"--write {folder}: {other[0]}{more} of another run is there, and nothing was written; "
            "name another folder, or another collection with --name"
        )


def _print(
    home: Path,
    cells: "list[RankingCell]",
    rows: list[dict[str, Any]],
    outside: dict[str, dict[str, dict[str, float]]],
    as_json: bool,
) -> None:
    from textbench.flows.results.ranking_tables import json_lines, outside_rows, render
    from textbench.tasks.storage.store import Store

    store = Store(home / "store")
    extra = outside_rows(outside, cells, store)
    if as_json:
        for line in json_lines(cells, rows, extra, store):
            print(line)
    else:
        render(cells, rows, extra, store)
