"""Settings files: YAML of plain keys, read so that whatever stands in one costs a line of refusal at most."""

import reprlib
from pathlib import Path
from typing import Any

from textbench.tasks import InputError

# Reading takes time in proportion to size, a second for this.
MAX_CHARACTERS = 100_000

_shown = reprlib.Repr()
_shown.maxlevel = 2
_shown.maxstring = _shown.maxother = 80


def read_settings_file(path: Path) -> dict[Any, Any]:
    """Return the `key: value` lines of a YAML file, {} for an empty one.

    Raises InputError naming the file where it is not YAML, not of this form, or too long.
    """
    import yaml

    try:
        content = path.read_text("utf-8")
        if len(content) > MAX_CHARACTERS:
            raise InputError(f"{path} must have at most {MAX_CHARACTERS} characters, got {len(content)}")
        found = yaml.safe_load(content)
    except InputError:
        raise
    except Exception as error:  # the YAML reader's own, and IndexError for `!!int`, KeyError for `!!bool x`
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else _one_line(error)
        raise InputError(f"{path} is not YAML: {reason}") from error
    if found is not None and not isinstance(found, dict):
        raise InputError(f"{path} must hold `key: value` lines, got {type(found).__name__}")
    return found or {}


def shown(value: Any) -> str:
    """Return a value for a message: cut short, also where it holds itself many times over."""
    return _shown.repr(value)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)[:1000]
