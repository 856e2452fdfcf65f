"""Room: what methods need in memory, said before anything is computed where that is more than there is."""

from collections.abc import Mapping, Sequence
from typing import Any

from textbench.flows.plan.cell import Cell
from textbench.tasks import InputError, catalogue, featurize, joined, word_vectors
from textbench.tasks.corpus import identity
from textbench.tasks.storage.store import Store

SHARE = 0.8  # of the machine's memory: documents, the process and the system need some too


def require_room(store: Store, cells: Sequence[Cell], memory_limit: float | None) -> None:
    """Refuse methods whose own forecast, `megabytes`, is above the limit, in megabytes, or SHARE of the memory.

    Data that is not stored here is not known, and refuses nothing. Of parameters that are searched the default counts.
    Raises InputError naming the method, the data, what it would need and what there is.
    """
    import psutil

    there_is = min(memory_limit or float("inf"), SHARE * psutil.virtual_memory().total / 1e6)
    for cell in {(cell.references["ingest"].key, cell.method): cell for cell in cells}.values():
        corpus, asked = cell.references["ingest"], cell.references["tune"].params
        method, params = asked["method"], asked.get("fixed") or {}
        if not megabytes(method, params, 1) or not store.has(corpus):
            continue
        known = identity(store.open(corpus))
        needed = megabytes(method, params, known["n_train"]) if known else 0.0
        if known and needed > there_is:
            raise InputError(
                f"{cell.method} would need about {needed:,.0f} MB for the {known['n_train']:,} training documents "
                f"of {cell.dataset}, and has {there_is:,.0f}: choose smaller parameters or fewer documents"
            )


def megabytes(method: str, params: Mapping[str, Any], n_documents: int) -> float:
    """Return what a method says it needs for so many training documents; 0 where that grows with the tokens alone."""
    entry = catalogue.method(method)
    if entry.is_join:
        parts = [megabytes(name, own, n_documents) for name, own in joined.split(params).values()]
        return max(parts) + sum(parts) / 2  # one is made while the other's features are kept
    if entry.is_file or "megabytes" not in entry.bound:
        return 0.0
    module = entry.load()
    vectors = word_vectors.DEFAULTS | featurize.params_of(params, featurize.PREFIX)
    return float(
        module.megabytes(module.build(**featurize.own_params(params)), n_documents, vectors["vector_size"])
    )
