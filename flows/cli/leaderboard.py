"""`textbench leaderboard`: what every finished run found, best first."""

import sys
from collections.abc import Mapping, Sequence
from json import dumps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from textbench.flows.cli.output import check_figure
from textbench.flows.cli.voice import wrote
from textbench.tasks import InputError
from textbench.tasks.words import counted

TABLE = "table"


def leaderboard(
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", "-d", help="Only this data set; repeat for more.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Only this method; repeat for more.")
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="Only this protocol: honest, transductive or faithful.", show_default=False),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="The metric that ranks (`textbench list metrics`).", show_default="accuracy, or micro_f1"
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--format", help="table, csv, markdown, latex or json (JSON Lines).")
    ] = TABLE,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    figure: Annotated[
        Path | None, typer.Option(help="Draw it to this file (.svg, .png or .pdf) too.", show_default=False)
    ] = None,
    from_mlflow: Annotated[
        bool,
        typer.Option(
            "--from-mlflow", help="Read the runs from MLflow instead of the results folder; slower."
        ),
    ] = False,
    recorded: Annotated[
        bool,
        typer.Option(
            "--recorded", help="What the repository records, with ranks and ties, instead of runs here."
        ),
    ] = False,
) -> None:
    """Compare finished runs: the mean over seeds with its 95 % interval, best first.

    Of runs of the same cell the newest counts. Boards that were added (`textbench results add`) stand apart, below.

    Example: textbench leaderboard -d r8 --metric macro_f1 --format latex > table.tex
    """
    from textbench.flows.plan.corpora import choose_datasets, choose_methods
    from textbench.flows.results.doubt import with_doubt
    from textbench.flows.results.leaderboard import FORMATS, render_table
    from textbench.flows.results.summary import latest
    from textbench.flows.run.workspace import home_folder

    if json:
        output = "json"
    _check(metric, protocol, output, [TABLE, *FORMATS])
    check_figure(figure)
    if recorded:
        _print_recorded(
            dataset or (), method or (), protocol, output, others=bool(metric or figure or from_mlflow)
        )
        return
    home = home_folder()
    found = _mlflow_rows(home) if from_mlflow else _index_rows(home)
    dataset, method = choose_datasets(found, dataset or ()), choose_methods(found, method or ())
    chosen = latest(
        row
        for row in found
        if (not dataset or row["dataset"] in dataset)
        and (not method or row["method"] in method)
        and (not protocol or row["protocol"] == protocol)
    )
    rows = with_doubt(home, _judged(home, chosen, metric))
    if not rows:
        _say_how_to_make_some(home, dataset, method, protocol, output, found)
    elif output == TABLE:
        from rich.console import Console

        from textbench.flows.results.winner import verdicts

        console = Console()
        render_table(rows, console, metric, home)
        for line in verdicts(home, rows, metric):
            console.print(f"\n{line}", markup=False, highlight=False)
    else:
        print(FORMATS[output](rows, metric, home))
    if output == TABLE:
        _print_elsewhere(home, found, dataset, method, protocol)
    if figure is not None:
        from textbench.flows.plots.leaderboard import draw

        draw(rows, figure, metric)
        wrote(figure, as_json=output == "json")


def _judged(home: Path, rows: Sequence[Mapping[str, Any]], metric: str | None) -> Sequence[Mapping[str, Any]]:
    """Return rows with metrics of probabilities where one of these ranks, and else without."""
    from textbench.evaluation.metrics.calibration import PROBABILITIES
    from textbench.flows.results.calibrated import with_probabilities, without_probabilities

    if metric not in PROBABILITIES:
        return without_probabilities(rows)
    found = with_probabilities(home, rows)
    if rows and not any(metric in row["metrics"] for row in found):
        raise InputError(
            f"none of these runs has out-of-fold scores, which {metric} needs: --no-scores and --timed keep none, "
            "predictions read from a file have none, and pruned ones are made by running again"
        )
    return found


def _print_recorded(
    datasets: Sequence[str], methods: Sequence[str], protocol: str | None, output: str, *, others: bool
) -> None:
    """Print the board that the repository records."""
    from textbench.flows.results import packed
    from textbench.flows.tables.formats import FORMATS

    if others:
        raise InputError(
            "--recorded is ranked as it was recorded: leave out --metric, --figure and --from-mlflow"
        )
    lines = _lines(packed.read(packed.FILE), datasets, methods, protocol)
    if output == "json":
        print("\n".join(dumps(line, ensure_ascii=False) for line in lines))
        return
    from textbench.flows.report import board_page
    from textbench.flows.tables.table import RECORDED

    tables = board_page.tables(lines, RECORDED)
    if output == TABLE:
        _print_tables(tables, "Nothing like that is recorded.")
    else:
        convert = {"csv": "csv", "markdown": "md", "latex": "tex"}[output]
        print("\n".join(FORMATS[convert](table) for table in tables).rstrip("\n"))


def _lines(
    lines: Sequence[dict[str, Any]], datasets: Sequence[str], methods: Sequence[str], protocol: str | None
) -> list[dict[str, Any]]:
    from textbench.tasks.catalogue import pick

    for asked, name in ((datasets, "dataset"), (methods, "method")):
        for one in asked:
            pick("data set" if name == "dataset" else name, one, dict.fromkeys(line[name] for line in lines))
    return [
        line
        for line in lines
        if (not datasets or line["dataset"] in datasets)
        and (not methods or line["method"] in methods)
        and protocol in (None, line["protocol"])
    ]


def _print_tables(tables: Sequence[Any], nothing: str = "") -> None:
    from rich.console import Console

    from textbench.flows.tables.terminal import print_table

    console = Console()
    for table in tables:
        print_table(console, table)
    if not tables and nothing:
        print(nothing)


def _print_elsewhere(
    home: Path,
    rows: Sequence[Mapping[str, Any]],
    datasets: Sequence[str],
    methods: Sequence[str],
    protocol: str | None,
) -> None:
    """Print each board that was added, without what was run here too."""
    from textbench.flows.results import elsewhere

    if not (home / elsewhere.FOLDER).is_dir():
        return
    from textbench.flows.report import board_page

    boards, damaged = elsewhere.boards(home)
    for reason in damaged:
        print(f"textbench: not shown: {reason}", file=sys.stderr)
    for board in boards:
        lines = [
            line
            for line in elsewhere.without_own(board.lines, rows)
            if (not datasets or line["dataset"] in datasets)
            and (not methods or line["method"] in methods)
            and protocol in (None, line["protocol"])
        ]
        n_own = len(board.lines) - len(elsewhere.without_own(board.lines, rows))
        also = f", {counted(n_own, 'line')} of it run here too" if n_own else ""
        print(
            f"\nFrom elsewhere: {board.name}, added {board.added}{also}. Nobody here has checked these figures:"
        )
        print("textbench results verify computes some again.")
        _print_tables(board_page.tables(lines, "from elsewhere"))


def _check(metric: str | None, protocol: str | None, output: str, formats: Sequence[str]) -> None:
    from textbench.flows.plan.request import Protocol
    from textbench.flows.results.metric_names import KNOWN
    from textbench.tasks.catalogue import pick

    if metric is not None:
        pick("metric", metric, KNOWN)
    pick("format", output, dict.fromkeys(formats))
    if protocol is not None:
        pick("protocol", protocol, dict.fromkeys(get_args(Protocol)))


def _index_rows(home: Path) -> Sequence[Mapping[str, Any]]:
    from textbench.flows.plan.corpora import keep_numbers
    from textbench.flows.results.index import Index
    from textbench.flows.results.rescore import rescored

    rows = Index(home).rows()
    keep_numbers(home, rows)
    # What a part of the labels gave is for `textbench curve`.
    return rescored(home, (row for row in rows if not row["request"]["labels"]))


def _mlflow_rows(home: Path) -> Sequence[Mapping[str, Any]]:
    from textbench.flows.plan.corpora import told_apart
    from textbench.flows.results.index import Index
    from textbench.tasks.tracking.tracker import Tracker, read_settings

    tracker = Tracker(read_settings(home))
    if tracker.settings.is_on and not tracker.exists():
        uri = tracker.settings.tracking_uri
        raise InputError(f"there is no tracking database {uri}; make it with: textbench run quick")
    tracker.prepare()
    # What MLflow does not hold, the index knows of the runs that were made here.
    names = ("key", "request", "documents_95", "on_border", "uses_labels", "made_by", "asked")
    here = {row["run_id"]: {n: row[n] for n in names if n in row} for row in Index(home).rows()}
    rows = [{"on_border": []} | here.get(row["run_id"], {}) | row for row in tracker.runs()]
    if n := tracker.n_foreign:
        said = f"{counted(n, 'run')} of others in {tracker.settings.experiment} passed over"
        print(f"textbench: {said}", file=sys.stderr)
    return told_apart(home, rows)


def _say_how_to_make_some(
    home: Path,
    datasets: Sequence[str],
    methods: Sequence[str],
    protocol: str | None,
    output: str,
    rows: Sequence[Mapping[str, Any]],
) -> None:
    if output != TABLE:
        return
    from textbench.flows.results.runs import command_to_run

    asked = bool(datasets or methods or protocol)
    command = command_to_run(datasets, methods, rows, protocol) if asked else "textbench run quick"
    n_rankings = len(list((home / "retrieval").glob("*.json")))
    rankings = (
        f" ({counted(n_rankings, 'ranking')}: textbench retrieve or report shows them)" if n_rankings else ""
    )
    said = f"There are no finished runs {'like that ' if asked else ''}yet{rankings}."
    print(f"{said} Make some with: {command}")
