"""The forecast of a run: how long it still takes, by what its cells' like took and by how fast it goes itself."""

import time
from collections.abc import Mapping

PRIOR_SECONDS = (
    30.0  # for which a run is believed to go as fast as expected, before its own speed counts as much
)


class Forecast:
    """Seconds that are left of a run.

    `expected` holds by cell the seconds it is expected to take, 0 where it is stored, None where nothing is known: such
    cells count as the mean of those that this run computed, or else of the expected ones. `workers` cells are computed
    at once.
    """

    def __init__(self, expected: Mapping[str, float | None], workers: int | None = None) -> None:
        if workers is None:
            from textbench.evaluation.cores import n_cores

            workers = n_cores()
        self._expected = dict(expected)
        self._workers = workers
        self._running: dict[str, float] = {}
        self._ended: set[str] = set()
        self._taken: list[float] = []
        self._begun: float | None = None

    def begin(self, cell: str) -> None:
        """Note that a cell is under way."""
        now = time.monotonic()
        self._begun = now if self._begun is None else self._begun
        self._running.setdefault(cell, now)

    def end(self, cell: str, seconds: float) -> None:
        """Note that a cell ended, and what computing it took; 0 where it was stored, or failed."""
        self._running.pop(cell, None)
        self._ended.add(cell)
        if seconds:
            self._taken.append(seconds)

    def remaining(self) -> float | None:
        """Return the seconds that are left, None where there is nothing to go by."""
        known = self._taken or [seconds for seconds in self._expected.values() if seconds]
        mean = sum(known) / len(known) if known else None
        if mean is None and any(
            value is None for cell, value in self._expected.items() if cell not in self._ended
        ):
            return None
        work = {cell: (mean or 0.0) if value is None else value for cell, value in self._expected.items()}
        now = time.monotonic()
        elapsed = now - self._begun if self._begun is not None else 0.0
        done = sum(work[cell] for cell in self._ended.copy())
        done += sum(min(now - begun, work[cell]) for cell, begun in self._running.copy().items())
        speed = (done + PRIOR_SECONDS * self._workers) / (elapsed + PRIOR_SECONDS)
        return (sum(work.values()) - done) / speed
