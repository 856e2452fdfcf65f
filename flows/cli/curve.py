"""`textbench curve`: the flow `label_budget`."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textbench.flows.cli.output import check_figure
from textbench.flows.cli.own import takes_own_data
from textbench.flows.cli.request import Address, CellsAsJson, DataDir, Engine, Folds, Jobs, Paper, Probe
from textbench.flows.cli.sweep import require_data
from textbench.flows.cli.voice import wrote
from textbench.flows.tables.table import of_texts
from textbench.flows.tables.terminal import print_table
from textbench.tasks import InputError

if TYPE_CHECKING:
    from textbench.flows.plan.cell import Cell
    from textbench.flows.plan.suites import Part
    from textbench.flows.results.learning_curves import BudgetPoint

BUDGETS = (100, 200, 500, 1000, 2000, 5000)


@takes_own_data
def curve(
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", "-d", help="Data set; repeat for more.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Method; repeat for more.")
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            help="Numbers of labelled training documents.",
            show_default=f"{','.join(map(str, BUDGETS))}; with fewer documents up to all of them",
        ),
    ] = None,
    draws: Annotated[int, typer.Option(help="Random draws of labels; every method gets the same.")] = 5,
    stratified: Annotated[bool, typer.Option("--stratified", help="Draw each class in proportion.")] = False,
    trials: Annotated[
        int, typer.Option(help="Settings tried for each method, on the labels of the budget.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the methods.")] = 0,
    protocol: Annotated[str, typer.Option(help="honest, transductive or faithful.")] = "honest",
    paper: Paper = None,
    probe: Probe = None,
    rule: Annotated[str | None, typer.Option(help="Token rule.", show_default="the data set's")] = None,
    folds: Folds = None,
    c_grid: Annotated[
        str | None, typer.Option(help="Values of the probe's C, such as 0.3,1,3,10,30.", show_default="six")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="What is shown.", show_default="accuracy")] = None,
    own: dict[str, Any] | None = None,
    data_dir: DataDir = None,
    engine: Engine = "threads",
    address: Address = None,
    jobs: Jobs = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw the curves to this file (.svg, .png or .pdf).", show_default=False),
    ] = None,
    json: CellsAsJson = False,
) -> None:
    """Draw label-budget curves: how good methods are with few labels.

    Features are learnt on all training texts; only the classifier is short of labels. Finished cells are kept.

    Example: textbench curve -d reuters65 -m tfidf -m lsi -m nb --budgets 500,1000,2000 --draws 5
    """
    from textbench.flows.cli.request import PROTOCOLS, read_engine, read_search
    from textbench.flows.cli.start import stopped_by_hand, use_data_dir
    from textbench.flows.plan.cell import Request
    from textbench.flows.plan.learning_curves import check_metric
    from textbench.flows.plan.suites import Part
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.catalogue import nearest
    from textbench.tasks.tracking.tracker import read_settings

    if not (dataset or own) or not method:
        raise InputError(
            "a curve needs --dataset or --data, and --method; textbench list methods shows what there is"
        )
    if protocol not in PROTOCOLS:
        raise InputError(f"there is no protocol {protocol!r}; {nearest(protocol, PROTOCOLS)}")
    for name, value, least in (("--draws", draws, 1), ("--trials", trials, 0)):
        if value < least:
            raise InputError(f"{name} must be at least {least}, got {value}")
    check_figure(figure)
    validation = read_search(None, {"n_folds": folds}, protocol, paper)["validation"]
    where = read_engine(engine, address)
    use_data_dir(data_dir)
    home = home_folder()
    read_settings(home)
    if c_grid is not None:
        validation["c_grid"] = [float(value) for value in _numbers("--c-grid", c_grid, float)]
    request = Request(dataset or [], method, [seed], protocol, trials, "curve", probe, rule,  # type: ignore[arg-type]
                      own=own, validation=validation, paper=paper)  # fmt: skip
    check_metric(request, metric)
    asked = BUDGETS if budgets is None else tuple(_numbers("--budgets", budgets, int))
    part = Part(request, False, asked, draws, stratified)
    if budgets is None:
        part = fitted(home, part)
    cells = plan_and_check(home, part, metric)
    with stopped_by_hand():
        rows = run_curves(home, part, cells, json, where, shown=False)
    _print(home, rows, metric, figure, json)
    if any(row["error"] for row in rows):
        raise typer.Exit(1)


def _numbers(option: str, text: str, kind: type) -> list[Any]:
    try:
        values = [kind(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"{option} is numbers parted by commas, got {text!r}") from error
    if not all(0 < value < math.inf for value in values):
        raise InputError(f"{option} must be above 0, got {text}")
    return values


def run_curves(
    home: Path,
    part: "Part",
    cells: "list[Cell]",
    as_json: bool,
    engine: str = "threads",
    *,
    shown: bool = True,
) -> list[dict[str, Any]]:
    """Run the flow `label_budget` and return a row a cell; where it is to be shown, print the curves as a table."""
    from textbench.flows.cli.start import run_flow
    from textbench.flows.plan.learning_curves import curve_arguments
    from textbench.flows.results.index import Index
    from textbench.tasks.storage.store import Store

    store = Store(home / "store")
    is_new = not all(store.has(cell.references["evaluate"]) for cell in cells)
    rows, _ = run_flow(
        home,
        "textbench.flows.label_budget:label_budget",
        curve_arguments(part),
        cells,
        engine=engine,
        as_json=as_json,
        is_new=is_new,
        index=Index(home),
    )
    if shown:
        _print(home, rows, None, None, as_json)
    return rows


def fitted(home: Path, part: "Part") -> "Part":
    """Return curves whose budgets their smallest data set can fill: where it cannot, the last is all its documents."""
    from dataclasses import replace

    from textbench.flows.plan.learning_curves import plan_curves
    from textbench.tasks.corpus import read_targets
    from textbench.tasks.storage.store import Store

    cells = plan_curves(part.request, part.budgets[:1], 1)
    require_data(home, cells)
    store = Store(home / "store")
    corpora = {cell.references["ingest"].key: cell.references["ingest"] for cell in cells}
    most = min(read_targets(store.open(corpus), "train").shape[0] for corpus in corpora.values())
    return replace(part, budgets=tuple(dict.fromkeys(min(budget, most) for budget in part.budgets)))


def plan_and_check(home: Path, part: "Part", metric: str | None = None) -> "list[Cell]":
    """Return the cells of curves, after ingesting what is not stored yet.

    Raises InputError for budgets that a data set's training part cannot fill, and for a metric, None for the default,
    that curves of the user's own documents would not have.
    """
    from textbench.flows.plan.checks import check_shown_metric
    from textbench.flows.plan.learning_curves import plan_curves
    from textbench.tasks import catalogue
    from textbench.tasks.corpus import read_targets
    from textbench.tasks.storage.store import Store

    cells = plan_curves(part.request, part.budgets, part.draws, stratified=part.stratified)
    require_data(home, cells)
    store = Store(home / "store")
    for name, cell in {cell.dataset: cell for cell in cells}.items():
        targets = read_targets(store.open(cell.references["ingest"]), "train")
        for text in part.request.methods if metric is not None and cell.request.own else ():
            method = catalogue.method(catalogue.parse_method(text)[0])
            check_shown_metric(str(metric), name, method, several_labels=targets.ndim == 2)
        if max(part.budgets) > targets.shape[0]:
            raise InputError(
                f"--budgets: {name} has {targets.shape[0]} training documents, got {max(part.budgets)}"
            )
    return cells


def _print(
    home: Path, rows: list[dict[str, Any]], metric: str | None, figure: Path | None, as_json: bool
) -> None:
    from textbench.flows.plan.corpora import keep_numbers, told_apart
    from textbench.flows.results.index import Index
    from textbench.flows.results.learning_curves import summarise, verdicts
    from textbench.flows.results.metric_names import heading, scale, unit

    failed = [row for row in rows if row["error"]]
    every = Index(home).rows()
    keep_numbers(home, every)
    done = told_apart(home, [row for row in rows if not row["error"]], among=every)
    curves = summarise(done, metric)
    if figure is not None:
        from textbench.flows.plots.curves import draw

        for name in dict.fromkeys(curve.dataset for curve in curves):
            own = [curve for curve in curves if curve.dataset == name]
            alone = len({curve.dataset for curve in curves}) == 1
            path = figure if alone else figure.with_stem(f"{figure.stem}-{name}")
            draw(own, path)
            wrote(path, as_json=as_json)
    if as_json:
        return
    from rich.console import Console

    console = Console()
    for name in dict.fromkeys(curve.dataset for curve in curves):
        own = [curve for curve in curves if curve.dataset == name]
        metric = own[0].metric
        title = f"{name}: {heading(metric)} in {unit(metric)} by labelled documents"
        points = [{point.budget: point for point in one.points} for one in own]
        lines = [
            [f"{budget:,}", *(_figure(of_method.get(budget), scale(metric)) for of_method in points)]
            for budget in sorted({budget for of_method in points for budget in of_method})
        ]
        print_table(console, of_texts(title, ("labels", *(one.method for one in own)), lines))
    console.print(
        "Mean over draws with the half width of its 95 % interval, none where draws are equal or one alone; the draws "
        "are the same for all methods."
    )
    for line in verdicts(done, metric):
        console.print(f"\n{line}", markup=False, highlight=False)
    for row in failed:
        console.print(f"{row['dataset']} {row['method']} {row['labels']}: {row['error']}", markup=False)


def _figure(point: "BudgetPoint | None", factor: int) -> str:
    """Return a point as text, times `factor`, with half of its interval if one draw differs from another."""
    if point is None:
        return "-"
    half = (point.high - point.low) / 2
    return f"{factor * point.mean:.1f}" + (f" ±{factor * half:.1f}" if half else "")
