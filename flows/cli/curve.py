"""`textbench curve`: the flow `label_budget`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textbench.flows.cli.options import (
    OUTPUT,
    Address,
    CellsAsJson,
    DataDir,
    Engine,
    Jobs,
    options_of,
    own_options,
    read_engine,
    takes,
)
from textbench.flows.cli.output import check_figure
from textbench.flows.cli.runner import require_data, run_flow, stopped_by_hand, use_data_dir
from textbench.flows.cli.voice import wrote
from textbench.flows.plan.request import LabelBudgetRequest
from textbench.flows.tables.table import of_texts
from textbench.flows.tables.terminal import print_table
from textbench.tasks import InputError

if TYPE_CHECKING:
    from textbench.flows.results.learning_curves import BudgetPoint


@takes(asked=options_of(LabelBudgetRequest), own=own_options)
def curve(
    asked: dict[str, Any],
    own: dict[str, Any] | None,
    data_dir: DataDir = None,
    engine: Engine = "threads",
    address: Address = None,
    jobs: Jobs = None,
    metric: Annotated[
        str | None, typer.Option(help="What is shown.", show_default="accuracy", rich_help_panel=OUTPUT)
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            help="Draw the curves to this file (.svg, .png or .pdf).",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: CellsAsJson = False,
) -> None:
    """Draw label-budget curves: how good methods are with few labels.

    Features are learnt on all training texts; only the classifier, and a method that uses labels, is short of them.
    Finished cells are kept.

    Example: textbench curve -d reuters65 -m tfidf -m lsi -m nb --budgets 500,1000,2000 --draws 5
    """
    from textbench.flows.plan.checks import check_metric
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.tracking.tracker import read_settings

    if not ("datasets" in asked or own) or "methods" not in asked:
        raise InputError(
            "a curve needs --dataset or --data, and --method; textbench list methods shows what there is"
        )
    check_figure(figure)
    request = LabelBudgetRequest(**{"datasets": [], "own": own} | asked)
    where = read_engine(engine, address)
    use_data_dir(data_dir)
    home = home_folder()
    read_settings(home)
    check_metric(request, metric)
    request = checked(home, request, metric, may_cut="budgets" not in asked)
    with stopped_by_hand():
        rows, _ = run_flow(home, request, engine=where, as_json=json)
    print_curves(home, rows, metric, figure, as_json=json)
    if any(row["error"] for row in rows):
        raise typer.Exit(1)


def checked(
    home: Path, request: LabelBudgetRequest, metric: str | None = None, *, may_cut: bool = False
) -> LabelBudgetRequest:
    """Return curves that can be drawn, after ingesting what is not stored yet.

    Budgets that the smallest data set cannot fill become all of its documents if that may be, else InputError says so;
    also for a metric, None for the default, that curves of the user's own documents would not have.
    """
    from textbench.flows.plan.cell import plan
    from textbench.flows.plan.checks import check_shown_metric
    from textbench.tasks import catalogue
    from textbench.tasks.corpus import read_targets
    from textbench.tasks.storage.store import Store

    cells = plan(request)
    require_data(home, cells)
    store, sizes = Store(home / "store"), {}
    for name, cell in {cell.dataset: cell for cell in cells}.items():
        targets = read_targets(store.open(cell.references["ingest"]), "train")
        sizes[name] = targets.shape[0]
        for text in request.methods if metric is not None and cell.request.own else ():
            method = catalogue.method(catalogue.parse_method(text)[0])
            check_shown_metric(str(metric), name, method, several_labels=targets.ndim == 2)
    smallest = min(sizes, key=lambda name: sizes[name])
    if max(request.budgets) <= sizes[smallest]:
        return request
    if not may_cut:
        raise InputError(
            f"--budgets: {smallest} has {sizes[smallest]} training documents, got {max(request.budgets)}"
        )
    return replace(request, budgets=sorted({min(budget, sizes[smallest]) for budget in request.budgets}))


def print_curves(
    home: Path,
    rows: list[dict[str, Any]],
    metric: str | None = None,
    figure: Path | None = None,
    *,
    as_json: bool = False,
) -> None:
    """Draw the curves, if they are to be drawn, and print them as a table, unless rows are printed as JSON."""
    from textbench.flows.plan.corpora import keep_numbers, told_apart
    from textbench.flows.results.index import Index
    from textbench.flows.results.learning_curves import summarise, verdicts
    from textbench.flows.results.method_names import explained
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
        print_table(console, of_texts(title, ("labels", *(one.label for one in own)), lines))
    console.print(
        "Mean over draws with the half width of its 95 % interval, none where draws are equal or one alone; the draws "
        f"are the same for all methods.{explained(curve.label for curve in curves)}"
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
