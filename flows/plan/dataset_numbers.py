"""Numbers of data sets that share a name, `data (2)`: once shown they stay, whatever is forgotten or run again.

`<home>/dataset-numbers.json` holds by name the number of each data set's documents.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from textbench.tasks.storage.files import read_json, write_json
from textbench.tasks.storage.locks import locked

FILE = "dataset-numbers.json"
Numbers = dict[str, dict[str, int]]


def read(home: Path) -> Numbers:
    """Return the numbers that are kept; none where the file is missing or no JSON."""
    return read_json(home / FILE)


def numbered(kept: Mapping[str, int], documents: Sequence[str]) -> dict[str, int]:
    """Return a number for all `documents` of one name: that which is kept, else the next after all that were given."""
    last, found = max(kept.values(), default=0), {}
    for one in documents:
        if one not in kept:
            last += 1
        found[one] = kept.get(one, last)
    return found


def keep(home: Path, given: Numbers) -> None:
    """Keep numbers from now on; one that is kept already stays."""
    if all(numbers.items() <= read(home).get(name, {}).items() for name, numbers in given.items()):
        return
    with locked(home / f".{FILE}.lock"):
        kept = read(home)
        write_json(home / FILE, kept | {name: own | kept.get(name, {}) for name, own in given.items()})
