"""The part of `textbench run SUITE` that makes pieces."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.cli.output import print_json

if TYPE_CHECKING:
    from textbench.flows.plan.suites import Part


def run_pieces(home: Path, part: "Part", as_json: bool, engine: str = "threads") -> list[dict[str, Any]]:
    """Run the flow `pieces` for a part of a suite and return a row a piece."""
    from textbench.flows.cli.start import run_flow
    from textbench.flows.plan.derived import plan_derived
    from textbench.tasks.storage.store import Store

    request, store = part.request, Store(home / "store")
    planned = plan_derived(request, part.pieces)
    arguments = {"stages": list(part.pieces)} | {
        field: getattr(request, field)
        for field in ("datasets", "methods", "seeds", "protocol", "name", "rule", "paper")
    }
    is_new = not all(store.has(piece.reference) for piece in planned)
    rows, _ = run_flow(
        home,
        "textbench.flows.derived:pieces",
        arguments,
        planned,
        engine=engine,
        as_json=as_json,
        is_new=is_new,
    )
    return rows


def print_pieces(home: Path, part: "Part", as_json: bool) -> None:
    """Print the pieces of a part and whether each is stored; compute nothing."""
    from textbench.flows.plan.derived import plan_derived
    from textbench.tasks.storage.store import Store

    store = Store(home / "store")
    for piece in plan_derived(part.request, part.pieces):
        is_stored = store.has(piece.reference)
        if as_json:
            names = ("dataset", "method", "protocol", "seed", "stage")
            print_json({name: getattr(piece, name) for name in names} | {"stored": is_stored})
        else:
            print(f"{piece.label}: {'stored' if is_stored else 'to be made'}")
