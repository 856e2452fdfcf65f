"""Notes of the ledger: what explains the gap between a published figure and a measured one, experiments included.

A paper's folder (`flows/papers/*/notes.yaml`) keeps them under a claim's id, or the first parts of one:

    scdv-2017/table-1/weight-avgvec:
      text: What explains the gap, in a few sentences.
      experiments:
      - settings: What was run, and all in which it departs from the faithful protocol; how many seeds.
        of: accuracy, percent
        figures:
        - {change: as here, value: 77.8}
        - {change: a hierarchical softmax too, value: 81.8, half_width: 0.3, worth: 4.0}
        command: the command, if one makes it
        commit: that of the code that ran

      origin: own run; copied from which paper; or unknown
      certainty: how sure it is that the method here is the one that was meant, where it is not

A figure has a `value`, what the change is `worth` against the figure that it departs from, or both, in the unit of
`of`; `half_width` is half of its 95 % interval. All but the text may be missing of a note, and of an experiment
`command` and `commit`. A text with a comma or a colon in it stands in quotes.
"""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from textbench.flows.plan.papers import FOLDER
from textbench.tasks import InputError
from textbench.tasks.tracking.settings import read_settings_file, shown

KNOWN_KEYS = {"extra": "forbid"}  # how pydantic reads a class


@dataclass(frozen=True)
class Tried:
    """One figure of an experiment: what was changed, what came of it, and what the change is worth."""

    __pydantic_config__: ClassVar[Any] = KNOWN_KEYS
    change: str
    value: float | None = None
    half_width: float | None = None
    worth: float | None = None

    def __str__(self) -> str:
        half = f" ± {self.half_width:g}" if self.half_width is not None else ""
        worth = f"worth {self.worth:+g}" if self.worth is not None else ""
        value = f"{self.value:g}{half}" if self.value is not None else ""
        return f"{self.change}: {', '.join(filter(None, [value, worth]))}"


@dataclass(frozen=True)
class Experiment:
    """What was run to explain a gap: the settings, what its figures are `of`, and the figures."""

    __pydantic_config__: ClassVar[Any] = KNOWN_KEYS
    settings: str
    of: str
    figures: list[Tried]
    command: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Note:
    """A note on the claims whose id begins with the parts of `about`."""

    __pydantic_config__: ClassVar[Any] = KNOWN_KEYS
    about: str
    text: str
    experiments: list[Experiment] = field(default_factory=list)
    origin: str = ""
    certainty: str = ""

    def is_about(self, id_: str) -> bool:
        """Tell whether it is about a claim."""
        parts = self.about.split("/")
        return id_.split("/")[: len(parts)] == parts


def notes_on(id_: str) -> list[Note]:
    """Return the notes on a claim, those on most claims first. Raises InputError for a file that is no notes."""
    found = [note for path in sorted(FOLDER.glob("*/notes.yaml")) for note in _of_file(path)]
    return sorted((note for note in found if note.is_about(id_)), key=lambda note: note.about.count("/"))


@cache
def _of_file(path: Path) -> tuple[Note, ...]:
    return tuple(read_notes(path))


def read_notes(path: Path) -> list[Note]:
    """Return the notes of a file. Raises InputError naming the file, the note and the key for what is none."""
    from pydantic import TypeAdapter, ValidationError

    reader, found = TypeAdapter(Note), []
    for about, content in read_settings_file(path).items():
        try:
            own = content if isinstance(content, dict) else {}
            found.append(reader.validate_python({"about": about} | own))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, (about, *first["loc"])))
            raise InputError(f"{path}: {place}: {first['msg']}, got {shown(first['input'])}") from error
    return found
