"""Progress of a run on standard error: a bar a sweep on a terminal, a line a cell elsewhere.

The flow speaks through the logger `textbench`, so that it needs to know nothing of the terminal.
"""

import json
import logging
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from flows.squares import Square


class Progress(logging.Handler):
    """Shows which stages run and which cells ended; with `as_json` it prints each cell's row to standard output."""

    def __init__(self, cells: "list[Square]", as_json: bool) -> None:
        super().__init__(logging.INFO)
        self._cells = cells
        self._out = sys.stdout if as_json else None
        self._console = Console(stderr=True)
        self.is_closed = False
        self._rows: dict[str, dict[str, Any]] = {}
        self._stages: dict[str, str] = {}
        self._labels = {cell.key: cell.label for cell in cells}
        self._bar = Bar(
            SpinnerColumn(),
            MofNCompleteColumn(),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", total=len(cells))

    def __enter__(self) -> Self:
        logger = logging.getLogger("textbench")
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(self)
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        logging.getLogger("textbench").removeHandler(self)

    def say(self, text: str) -> None:
        """Show what is going on before the first cell."""
        self._bar.update(self._task, description=text)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the cells that ended, in the order of the plan."""
        return [self._rows[cell.key] for cell in self._cells if cell.key in self._rows]

    def emit(self, record: logging.LogRecord) -> None:
        """Take one event of the flow."""
        cell = getattr(record, "cell", None)
        if cell is None:
            self._console.print(
                f"{record.levelname.lower()}: {record.getMessage()}", markup=False, soft_wrap=True
            )
        elif hasattr(record, "row"):
            self._end(cell, record)
        else:
            self._stages[cell] = record.stage  # type: ignore[attr-defined]
            self.say(", ".join(f"{self._labels[key]}: {stage}" for key, stage in self._stages.items()))

    def _end(self, cell: str, record: logging.LogRecord) -> None:
        row: dict[str, Any] = record.row  # type: ignore[attr-defined]
        self._rows[cell] = row
        self._stages.pop(cell, None)
        self._bar.advance(self._task)
        if self._out and not self.is_closed:
            try:
                print(json.dumps(row), file=self._out, flush=True)
            except OSError:  # a closed pipe or a full disk; the run goes on and is kept
                self.is_closed = True
        if row["error"] or not self._console.is_terminal:
            counted = f"[{len(self._rows)}/{len(self._cells)}]"
            self._console.print(
                f"{counted} {record.getMessage()}", markup=False, highlight=False, soft_wrap=True
            )
