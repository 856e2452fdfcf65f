"""Small pieces of Markdown: tables, and docstrings as prose."""

import re
from collections.abc import Iterable, Sequence

CODE = re.compile(r"(`[^`]+`)")
SPECIAL = re.compile(r"([\\*_\[\]#>])")  # what a backslash takes its meaning from


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table, and an empty one."""
    lines = [_row(heads), _row(["---"] * len(heads))]
    return [*lines, *(_row([cell(value) for value in row]) for row in rows), ""]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def cell(value: object) -> str:
    """Return a value as it stands in a table: on one line, no pipe ends it."""
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(str(value).split())) or "-"


def code(value: object) -> str:
    """Return a value as code, in a table too."""
    return f"`{value}`"


def plain(text: str) -> str:
    """Return a text so that Markdown shows it as it stands; what stands in backticks is code already."""
    parts = CODE.split(text)
    escaped = (part if number % 2 else SPECIAL.sub(r"\\\1", part) for number, part in enumerate(parts))
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in escaped)


def prose(docstring: str) -> list[str]:
    """Return a docstring as Markdown: paragraphs, lists, and what is indented or a session as it stands."""
    lines: list[str] = []
    for block in docstring.strip().split("\n\n"):
        rows = block.splitlines()
        if block.startswith((" ", ">>>")):
            lines += ["```python" if block.startswith(">>>") else "```text", *rows, "```", ""]
        elif rows[0].lstrip().startswith("- "):
            joined = re.sub(r"\n\s+(?!- )", " ", block)
            lines += [f"- {plain(row.removeprefix('- '))}" for row in joined.splitlines()] + [""]
        else:
            lines += [plain(" ".join(row.strip() for row in rows)), ""]
    return lines
