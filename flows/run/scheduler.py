"""The agenda of a sweep: which stages its cells still need, and which of them is to start next."""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Generic, TypeVar

from textbench.flows.plan.base_cell import BaseCell
from textbench.tasks.storage.recipe import Reference

AnyCell = TypeVar("AnyCell", bound=BaseCell)
FEATURES = "featurize"


class Scheduler(Generic[AnyCell]):
    """The stages of all cells, each once however many cells share it, those of the first cells first.

    `over` holds the cells that ended, each with its error or None. `has` says whether a stage is stored; it is asked
    once a stage, or once more for each earlier cell that comes to need it later. Whatever ends wakes only the cells
    that waited for it, so that n cells take time in n log n.

    A cell's stages come one after another, but the members of an ensemble side by side: those of a member follow one
    another, and what the ensemble makes itself waits for all of them.

    Features are made where something that is missing is made from them: a cell that is finished needs none
    (`flows.run.features`).
    """

    def __init__(self, cells: Sequence[AnyCell], has: Callable[[Reference], bool]) -> None:
        self.over: deque[tuple[AnyCell, str | None]] = deque()
        self._cells, self._has = cells, has
        self._outcome: dict[str, str | None] = {}
        self._had: dict[str, bool] = {}  # by the key of what is made from features: whether it was stored
        self._started: set[str] = set()
        # By the key of a stage that is not settled: the first cell that needs it next, the stage, and all such cells.
        self._steps: dict[str, tuple[int, str, Reference]] = {}
        self._waiting: dict[str, set[int]] = {}
        # Stages to start, as heaps of (cell, name, key), so that a member that began comes before those that did not:
        # nobody has looked whether they are stored; they are; they are not.
        self._unseen: list[tuple[int, str, str]] = []
        self._stored: list[tuple[int, str, str]] = []
        self._missing: list[tuple[int, str, str]] = []
        self._advance(range(len(cells)))

    @property
    def is_done(self) -> bool:
        """Whether every cell ended and was taken from `over`."""
        return not self._waiting and not self.over

    def take(self, *, may_read: bool, may_compute: bool) -> tuple[AnyCell, str, Reference, bool] | None:
        """Return a stage to start now, as its first cell, its name, its reference and whether it is stored.

        `may_read` allows one that is stored and `may_compute` one that is not. None when there is no such stage.
        """
        self._look(may_read, may_compute)
        for heap, is_allowed in ((self._stored, may_read), (self._missing, may_compute)):
            while is_allowed and heap:
                position, _, key = heappop(heap)
                if self._is_open(position, key):
                    self._started.add(key)
                    return self._cells[position], *self._steps[key][1:], heap is self._stored
        return None

    def settle(self, key: str, error: str | None) -> None:
        """Note that a stage ended, with its error or None: the cells that waited for it go on, or are over."""
        self._outcome[key] = error
        self._started.discard(key)
        del self._steps[key]
        self._advance(sorted(self._waiting.pop(key)))

    def _look(self, may_read: bool, may_compute: bool) -> None:
        """Ask of as many stages whether they are stored as it takes to know the first that may start."""
        while self._unseen and (
            (may_read and not self._stored)
            or (may_compute and (not self._missing or self._unseen[0] < self._missing[0]))
        ):
            position, stage, key = heappop(self._unseen)
            if self._is_open(position, key):
                is_stored = self._has(self._steps[key][2])
                heappush(self._stored if is_stored else self._missing, (position, stage, key))

    def _is_open(self, position: int, key: str) -> bool:
        return position in self._waiting.get(key, ()) and key not in self._started

    def _advance(self, positions: Iterable[int]) -> None:
        """Let cells wait for those of their stages that come next, or be over."""
        for position in positions:
            cell = self._cells[position]
            steps = self._next(cell)
            failed = [reference.key for _, reference in steps if reference.key in self._outcome]
            if failed or not steps:
                self.over.append((cell, self._outcome[failed[0]] if failed else None))
                if failed:
                    self._leave(position)
                continue
            for stage, reference in steps:
                waiting = self._waiting.setdefault(reference.key, set())
                if position not in waiting:
                    is_first = not waiting or position < self._steps[reference.key][0]
                    waiting.add(position)
                    if is_first:
                        self._bring(position, stage, reference)

    def _bring(self, position: int, stage: str, reference: Reference) -> None:
        """Put a stage on the agenda at the place of the first cell that needs it next."""
        self._steps[reference.key] = (position, stage, reference)
        heappush(self._unseen, (position, stage, reference.key))

    def _leave(self, position: int) -> None:
        """Let a cell that is over no longer wait: where a member failed, others of its may still be on their way."""
        for reference in self._cells[position].references.values():
            waiting = self._waiting.get(reference.key, set())
            if position not in waiting:
                continue
            waiting.remove(position)
            if waiting:
                self._bring(min(waiting), *self._steps[reference.key][1:])
            elif reference.key not in self._started:
                del self._waiting[reference.key], self._steps[reference.key]

    def _next(self, cell: AnyCell) -> list[tuple[str, Reference]]:
        """Return the stages of a cell that have not succeeded, that it needs, and that wait for no other of its own."""
        found: dict[str, tuple[str, Reference]] = {}  # by member, "" for the cell itself
        for stage, reference in cell.references.items():
            member = stage.rpartition(" ")[0]
            if found and (not member or "" in found):
                break
            is_done = self._outcome.get(reference.key, "to do") is None
            if (
                member not in found
                and not is_done
                and (reference.stage != FEATURES or self._is_read(cell, stage))
            ):
                found[member] = (stage, reference)
        return list(found.values())

    def _is_read(self, cell: AnyCell, features: str) -> bool:
        """Tell whether something that a cell, or its member, makes after these features is missing."""
        member = features.rpartition(" ")[0]
        later = itertools.dropwhile(lambda step: step[0] != features, cell.references.items())
        return any(
            not self._was_stored(reference)
            for stage, reference in later
            if reference.stage != FEATURES and stage.rpartition(" ")[0] == member
        )

    def _was_stored(self, reference: Reference) -> bool:
        if reference.key not in self._had:
            self._had[reference.key] = self._has(reference)
        return self._had[reference.key]
