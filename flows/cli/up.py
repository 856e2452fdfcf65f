"""`textbench up`: start the Prefect server, a worker for its page, and MLflow's page, and keep them."""

from contextlib import nullcontext
from json import dumps
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from textbench.flows.run.workspace import home_folder
from textbench.flows.servers import ports, prefect_server, services
from textbench.flows.servers.ports import HOST
from textbench.flows.servers.service import START_SECONDS
from textbench.flows.servers.services import NIGHTLY_CRON
from textbench.tasks import InputError

PREFECT_PORT, MLFLOW_PORT = 4200, 5000  # what both are known by
NO_SCHEDULE = "off"
Status = dict[str, dict[str, Any]]


def up(
    port: Annotated[
        int | None, typer.Option(help="Port of Prefect's page.", show_default="4200 or the next free one")
    ] = None,
    mlflow_port: Annotated[
        int | None, typer.Option(help="Port of MLflow's page.", show_default="5000 or the next free one")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on; other than loopback lets other machines in, without a password.",
            show_default=HOST,
        ),
    ] = None,
    nightly: Annotated[bool, typer.Option("--nightly", help="Run the flow nightly on a schedule.")] = False,
    cron: Annotated[
        str | None,
        typer.Argument(
            help="With --nightly: when, in UTC, or off.", metavar="CRON", show_default="0 2 * * *"
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Start what does not run yet, in the background, and print where the pages are: Prefect's and MLflow's.

    Runs can then be started from Prefect's page. All stays up until `textbench down`.

    Example: textbench up --nightly "0 3 * * 1-5"
    """
    from rich.console import Console

    home = home_folder()
    asked = _asked(nightly, cron)
    schedule = _schedule(asked)
    before = services.status(home)
    _require_same(before, port, mlflow_port, asked)
    listening = _require_same_host(home, host)
    for found_host in sorted({host or HOST, *listening}):
        if not ports.is_loopback(found_host):
            typer.echo(
                f"textbench: warning: --host {found_host} lets other machines in: whoever reaches the pages can read "
                "all results and start runs here, without a password",
                err=True,
            )
    held = nullcontext() if prefect_server.configured_api_url() else prefect_server.hold(home)
    with Console(stderr=True).status("starting Prefect, its worker, and MLflow's page"), held:
        _start(home, before, host or HOST, port, mlflow_port, schedule)
    found = services.status(home)
    if json:
        typer.echo(dumps(found))
        return
    typer.echo(f"Prefect  {found['prefect']['page']}")
    typer.echo(f"MLflow   {found['mlflow']['page'] or 'is not used: tracking_uri is none'}")
    when = found["worker"]["nightly"]
    typer.echo(
        f"worker   runs what is started on Prefect's page{f', and nightly at {when} UTC' if when else ''}"
    )
    typer.echo(f"logs     {services.folder(home)}, {prefect_server.folder(home) / 'server.log'}")


def _asked(nightly: bool, cron: str | None) -> str | None:
    """Return what `--nightly` asks for: a schedule, off, or None without it."""
    if cron is not None and not nightly:
        raise InputError(f"{cron!r} is a schedule of the flow nightly: textbench up --nightly {cron!r}")
    return (cron or NIGHTLY_CRON) if nightly else None


def _schedule(nightly: str | None) -> str | None:
    """Return the schedule that was asked for, None for none. Raises InputError for what is not cron."""
    if nightly in (None, NO_SCHEDULE):
        return None
    from prefect.client.schemas.schedules import CronSchedule

    try:
        CronSchedule(cron=nightly, timezone="UTC")
    except ValueError as error:
        raise InputError(
            f"--nightly is cron (minute hour day month weekday), such as {NIGHTLY_CRON!r}, or {NO_SCHEDULE}, "
            f"got {nightly!r}"
        ) from error
    return nightly


def _require_same(found: Status, port: int | None, mlflow_port: int | None, nightly: str | None) -> None:
    """Refuse to move or change what runs already: it may be at work."""
    for option, asked, name in (("--port", port, "prefect"), ("--mlflow-port", mlflow_port, "mlflow")):
        address = found[name]["address"]
        if asked is not None and address and urlsplit(address).port != asked:
            raise InputError(f"{option} {asked}: {name} already runs at {address}; textbench down stops it")
    worker = found["worker"]
    if nightly is not None and worker["address"] and worker["nightly"] != _schedule(nightly):
        raise InputError(
            f"--nightly {nightly}: the worker already runs, with nightly {worker['nightly'] or NO_SCHEDULE}; "
            "textbench down stops it"
        )
    address = found["prefect"]["address"]
    if address and worker["address"] not in (None, address):
        raise InputError(
            f"the worker runs for {worker['address']}, not for {address}; textbench down stops it"
        )


def _require_same_host(home: Path, host: str | None) -> list[str]:
    """Return what our running servers listen on. Raises InputError where another address is asked for."""
    running = {
        "prefect": prefect_server.supervised(prefect_server.folder(home)),
        "mlflow": services.mlflow_page(home),
    }
    found = {name: service.running_state().get("host") for name, service in running.items()}
    for name, listening in found.items():
        is_same = host == listening or (
            ports.is_loopback(host or HOST) and ports.is_loopback(listening or HOST)
        )
        if host and listening and not is_same:
            raise InputError(
                f"--host {host}: {name} already listens on {listening}; textbench down --all stops it"
            )
    return [listening for listening in found.values() if listening]


def _start(
    home: Path, found: Status, host: str, port: int | None, mlflow_port: int | None, cron: str | None
) -> None:
    """Start at once what is not found to run, and wait until all three answer."""
    taken: list[int] = []
    last = prefect_server.folder(home) / "port", services.folder(home) / "mlflow.port"
    if found["prefect"]["address"] is None:
        port, said = ports.choose("--port", host, port, ports.remembered(last[0]) or PREFECT_PORT)
        taken.append(port)
        _say(said)
    info = prefect_server.start(home, host, port)
    if found["mlflow"]["address"] is None and not found["mlflow"]["configured"]:
        usual = ports.remembered(last[1]) or MLFLOW_PORT
        chosen, said = ports.choose("--mlflow-port", host, mlflow_port, usual, taken)
        _say(said)
        services.start_mlflow(home, host, chosen)
        ports.remember(last[1], chosen)
    if info.port is not None:
        ports.remember(last[0], info.port)
    services.start_worker(home, info.api_url, cron)
    prefect_server.wait(info, START_SECONDS)
    if not found["mlflow"]["configured"]:
        services.mlflow_page(home).wait()
    services.worker(home).wait()


def _say(text: str) -> None:
    if text:
        typer.echo(f"textbench: {text}", err=True)
