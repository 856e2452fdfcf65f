"""Notebooks, executed without Jupyter: cells run in one namespace, the last expression's text is the output.

`python -m infra.docs notebooks` runs them and stores what they show; the tests run them and compare.
"""

import ast
import contextlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infra.docs.record import DOCS

NOTEBOOKS = tuple(sorted((DOCS / "tutorial").glob("*.ipynb")))


def run(path: Path) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each cell of code of a notebook with its outputs, run in order in the working folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield cell, outputs_of("".join(cell["source"]), names)


def outputs_of(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, found = io.StringIO(), []
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        found.append({"output_type": "stream", "name": "stdout", "text": text})
    if shown is not None:
        data = {"text/plain": repr(shown).splitlines(keepends=True)}
        if hasattr(shown, "_repr_html_"):
            data["text/html"] = shown._repr_html_().splitlines(keepends=True)
        result = {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}
        found.append(result)
    return found


def text_of(outputs: list[Mapping[str, Any]]) -> str:
    """Return what outputs show as plain text."""
    parts = [one.get("text") or one["data"]["text/plain"] for one in outputs]
    return "\n".join("".join(part).rstrip() for part in parts)


def store(path: Path) -> None:
    """Run a notebook and store its outputs."""
    notebook = json.loads(path.read_text("utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, (_, outputs)) in enumerate(zip(cells, run(path), strict=True), 1):
        for one in outputs:
            if "execution_count" in one:
                one["execution_count"] = number
        cell |= {"execution_count": number, "outputs": outputs}
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
