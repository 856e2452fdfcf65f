"""The groups in which `--help` shows the options of long commands."""

import inspect
from collections.abc import Callable
from typing import Any

from typer.models import OptionInfo

PANELS = {
    "What to compare": (
        *("dataset", "method", "collection", "seed", "seeds", "protocol", "paper", "probe", "rule"),
        *("budgets", "draws", "stratified", "judgments"),
    ),
    "Your own documents": (
        *("data", "text_column", "label_column", "label_separator", "split_column", "test_size", "separator"),
        *("encoding", "documents", "queries", "qrels", "format", "fields", "name"),
    ),
    "Tuning": ("trials", "search_seconds", "folds", "held_out", "tune_metric", "c_grid"),
    "Resources": (
        *("data_dir", "engine", "address", "jobs", "time_limit", "memory_limit", "timed", "fresh"),
    ),
    "Output": ("dry_run", "json", "metric", "figure", "write", "run"),
}
PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}


def in_panels(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give every option of a command its group; those of no group stay under "Options"."""
    for name, parameter in inspect.signature(command).parameters.items():
        for info in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(info, OptionInfo):
                info.rich_help_panel = PANEL_OF.get(name)
    return command
