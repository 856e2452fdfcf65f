"""Progress of a run on standard error: a bar a sweep on a terminal, a line a cell elsewhere.

The flow speaks through the logger `textbench`, so that it needs to know nothing of the terminal.
"""

import json
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from textbench.flows.cli.forecast import Forecast
from textbench.flows.cli.voice import VOICE

if TYPE_CHECKING:
    from textbench.flows.plan.base_cell import BaseCell

MOST_LINES = 6  # of cells under way, below the bar
LOGGERS = {"textbench": logging.INFO, "textbench.steps": logging.DEBUG}


@dataclass
class Step:
    """Where a cell is: its stage, since when (seconds of a monotonic clock), and what it waits for, if it does.

    A stage that is over waits for the cell's next one to start.
    """

    stage: str
    since: float
    waits: str = ""
    is_over: bool = False


class Progress(logging.Handler):
    """Shows which stages run and which cells ended; with `as_json` it prints each cell's row to standard output.

    `expected` are the seconds that cells are expected to take, by key: None, or left out, where nobody knows.
    """

    def __init__(
        self,
        cells: "Sequence[BaseCell]",
        as_json: bool,
        expected: Mapping[str, float | None] | None = None,
        console: Console | None = None,
    ) -> None:
        super().__init__(logging.DEBUG)
        self._planned = list(cells)
        self._cells = {cell.key: cell for cell in cells}
        self.n_ended = 0
        self._out = sys.stdout if as_json else None
        self._console = console or Console(stderr=True)
        self._voice = VOICE.get()
        self.is_closed = False
        self._steps: dict[str, dict[str, Step]] = {}  # by cell and stage
        self._said = ""
        self._begun = time.monotonic()
        self._forecast = Forecast({key: (expected or {}).get(key) for key in self._cells})
        self._live = Live(self, console=self._console, transient=True, refresh_per_second=4)

    def __enter__(self) -> Self:
        for name, level in LOGGERS.items():
            logger = logging.getLogger(name)
            logger.setLevel(level)
            logger.propagate = False
            logger.addHandler(self)
        if self._console.is_terminal and self._voice != "quiet":
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
        for name in LOGGERS:
            logging.getLogger(name).removeHandler(self)
            logging.getLogger(name).setLevel(logging.NOTSET)
            logging.getLogger(name).propagate = True

    def say(self, text: str) -> None:
        """Show what is going on before the first cell."""
        self._said = text

    def emit(self, record: logging.LogRecord) -> None:
        """Take one event of the flow or of the store."""
        cell = getattr(record, "cell", None)
        if hasattr(record, "artifact"):
            self._wait(record.artifact, record.waits)  # type: ignore[attr-defined]
        elif cell is None:
            if self._voice != "quiet" or record.levelno >= logging.WARNING:
                self._print(f"{record.levelname.lower()}: {record.getMessage()}")
        elif hasattr(record, "row"):
            self._end(cell, record)
        else:
            waits = getattr(record, "waits", "")
            of_cell = self._steps.setdefault(cell, {})
            of_cell[record.stage] = Step(record.stage, time.monotonic(), waits, bool(waits))  # type: ignore[attr-defined]
            self._forecast.begin(cell)
            if self._voice == "verbose" and not waits:
                self._print(f"{self._cells[cell].label}: {record.stage}")  # type: ignore[attr-defined]

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _wait(self, artifact: str, waits: str) -> None:
        """Note what the cell in whose stage an artifact is made waits for; nothing where it goes on."""
        for cell, steps in self._steps.copy().items():
            for step in steps.copy().values():
                if self._cells[cell].references[step.stage].key == artifact and not step.is_over:
                    step.waits = waits

    def _end(self, cell: str, record: logging.LogRecord) -> None:
        row: dict[str, Any] = record.row  # type: ignore[attr-defined]
        self.n_ended += 1
        self._steps.pop(cell, None)
        self._forecast.end(cell, 0.0 if row["cached"] else sum(row["seconds"].values()))
        if self._out and not self.is_closed:
            try:
                print(json.dumps(row), file=self._out, flush=True)
            except OSError:  # a closed pipe or a full disk; the run goes on and is kept
                self.is_closed = True
        is_told = self._voice == "verbose" or (self._voice == "normal" and not self._console.is_terminal)
        if row["error"] or is_told:
            self._print(f"[{self.n_ended}/{len(self._planned)}] {record.getMessage()}")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the bar with its figures, which always fit, and below it the cells under way, cut if need be."""
        n_ended, n_cells = self.n_ended, len(self._planned)
        left = self._forecast.remaining()
        counted = f"{n_ended}/{n_cells}"
        times = f"{_clock(time.monotonic() - self._begun)}, {'?' if left is None else _clock(left)} left"
        bar = ProgressBar(n_cells, n_ended, max(1, options.max_width - len(counted) - len(times) - 2))
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_row(counted, bar, times)
        yield grid
        dots = "..." if options.ascii_only else "…"
        for line in self._lines():
            yield Text(_cut(line, options.max_width, dots))

    def _lines(self) -> list[str]:
        """Return a line for each cell under way, what runs before what waits, then how many more there are."""
        shown = [(cell, step) for cell, steps in self._steps.copy().items() for step in _shown(steps.copy())]
        shown.sort(key=lambda item: bool(item[1].waits))
        lines = [f"{step.waits or step.stage}: {self._cells[cell].label}" for cell, step in shown]
        more = len(lines) - MOST_LINES
        if more > 0:
            lines = [*lines[:MOST_LINES], f"and {more} more under way"]
        return lines or [self._said] * bool(self._said)


def _shown(steps: Mapping[str, Step]) -> list[Step]:
    """Return a cell's stages that are under way, several where an ensemble's members are made; else its last one."""
    return [step for step in steps.values() if not step.is_over] or list(steps.values())[-1:]


def _clock(seconds: float) -> str:
    """Return a time as m:ss or h:mm:ss."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def _cut(line: str, width: int, dots: str) -> str:
    """Return a line that fits; what is left out stands in its middle, for its ends tell cells apart."""
    if len(line) <= width:
        return line
    kept = max(width - len(dots), 2)
    return f"{line[: kept - kept // 2]}{dots}{line[len(line) - kept // 2 :]}"
