"""`textbench compare`: finished runs in pairs, with tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from textbench.flows.cli.output import check_figure, print_json
from textbench.flows.cli.take import take_run
from textbench.flows.cli.voice import wrote
from textbench.flows.results.metric_names import KNOWN
from textbench.tasks import InputError


def compare(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            help="Runs, each `last`, `best`, a method (its newest run), or the beginning of its MLflow id or key.",
            show_default=False,
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            "-d",
            help="With -m: a data set; repeat for more. With runs: the one they are on.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", "-m", help="Instead of runs: a method; repeat for more.", show_default=False
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="honest, transductive or faithful.", show_default="honest with -m"),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="With -d and -m: seeds 0 .. N-1.", show_default="all in common")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="The metric that is compared.", show_default="accuracy, or micro_f1")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            help="Draw average ranks over data sets to this file (.svg, .png, .pdf).", show_default=False
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines and nothing else.")] = False,
) -> None:
    """Test finished runs in pairs on the same test documents: exact McNemar, paired bootstrap, Holm.

    Over two data sets or more the methods' average ranks are compared too.

    Example: textbench compare -d r8 -d r52 -m tfidf -m lsi
    """
    from textbench.flows.plots.ranks import draw
    from textbench.flows.results.comparison import as_json, pairs, ranking
    from textbench.flows.run.workspace import home_folder

    check_figure(figure)
    home = home_folder()
    sides = entrants(home, run, dataset, method, protocol, seeds, metric)
    found = {name: pairs(home, name, group, metric) for name, group in sides.items()}
    ranks = ranking(found)
    if figure is not None:
        if ranks is None:
            raise InputError(
                "--figure draws average ranks, which need the same methods on two data sets or more"
            )
        draw(ranks, figure)
        wrote(figure, as_json=json)
    if json:
        for row in as_json(found, ranks):
            print_json(row)
        return
    from rich.console import Console

    from textbench.flows.explain.frames import PairedTests

    PairedTests(found, ranks).print(Console())


def entrants(
    home: Path,
    runs: Sequence[str] | None,
    datasets: Sequence[str] | None,
    methods: Sequence[str] | None,
    protocol: str | None,
    seeds: int | None,
    metric: str | None = None,
) -> Mapping[str, Any]:
    """Return what is compared, by data set. Raises InputError for options that do not go together."""
    from textbench.flows.plan.request import Protocol
    from textbench.flows.results.comparison import runs_by_name, runs_of_methods
    from textbench.tasks import catalogue

    if metric is not None:
        catalogue.pick("metric", metric, KNOWN)
    if protocol is not None:
        catalogue.pick("protocol", protocol, dict.fromkeys(get_args(Protocol)))
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds must be at least 1, got {seeds}")
    if runs:
        if methods or len(datasets or ()) > 1:
            raise InputError("compare either runs, or methods on data sets (-d and -m), not both")
        if seeds is not None:
            raise InputError("--seeds is of methods (-d and -m): a run has its own seed")
        dataset = datasets[0] if datasets else None
        return runs_by_name(home, [take_run(home, name, dataset, protocol)["key"] for name in runs])
    if not datasets or not methods:
        raise InputError("name at least two runs, or data sets with -d and methods with -m")
    return runs_of_methods(home, datasets, methods, protocol or "honest", seeds)
