"""Room: what methods need in memory and time, said before anything is computed where that is more than there is."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from textbench.flows.plan.cell import Cell
from textbench.tasks import InputError, catalogue, featurize, joined, word_vectors
from textbench.tasks.corpus import identity
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store

SHARE = 0.8  # of the machine's memory: documents, the process and the system need some too
# Methods forecast what they need themselves: a linear SVM reads very many features where they lie. Other probes take up
# to 28 bytes a value (LIBLINEAR), and so does setting features side by side.
COPIED = 4.5
LONGEST = 86_400.0  # seconds of a stage, where no limit is given
FEW = 20_000  # training documents that are quick by any method: nothing is timed
TIMED = 50  # texts by which seconds are told


def require_room(
    store: Store, cells: Sequence[Cell], memory_limit: float | None, time_limit: float | None = None
) -> None:
    """Refuse methods whose own forecast, `megabytes` or `seconds`, is above what there is.

    That is of memory the limit, in megabytes, or SHARE of the machine's, and of time the limit of a stage, in seconds,
    or LONGEST. Data that is not stored here is not known, and refuses nothing. Of parameters that are searched the
    default counts. Raises InputError naming the method, the data, what it would need, what there is, and for memory the
    largest setting of each parameter that would fit.
    """
    import psutil

    there_is = min(memory_limit or float("inf"), SHARE * psutil.virtual_memory().total / 1e6)
    for cell in {(cell.references["ingest"].key, cell.method): cell for cell in cells}.values():
        corpus, asked = cell.references["ingest"], cell.references["tune"].params
        method, params = asked["method"], asked.get("fixed") or {}
        is_slow = "seconds" in catalogue.method(method).bound
        if not (is_slow or megabytes(method, params, 1)) or not store.has(corpus):
            continue
        known = identity(store.open(corpus))
        if known is None:
            continue
        is_copied = asked["probe"] != "linear-svm" and not catalogue.method(method).is_join
        n, copies = known["n_train"], COPIED if is_copied else 1.0
        needed = copies * megabytes(method, params, n)
        if needed > there_is:
            fitting = " or ".join([*settings_within(method, params, n, there_is / copies), "fewer documents"])
            raise InputError(
                f"{cell.method} would need about {needed:,.0f} MB for the {n:,} training documents of {cell.dataset}, "
                f"and has {there_is:,.0f}: choose {fitting}"
            )
        if is_slow and n > FEW:
            _require_time(store, cell, known, time_limit or LONGEST)


def _require_time(store: Store, cell: Cell, known: Mapping[str, Any], there_is: float) -> None:
    """Refuse a method whose longest stage would take more seconds than there are."""
    asked, corpus = cell.references["tune"].params, cell.references["ingest"]
    needed = seconds(store, corpus, asked["method"], asked.get("fixed") or {}, known)
    if needed > there_is:
        raise InputError(
            f"{cell.method} would need about {needed / 3600:,.0f} hours for the {known['n_train']:,} training and "
            f"{known['n_test']:,} test documents of {cell.dataset}, and has {there_is / 3600:,.0f}: choose fewer "
            "documents or a longer --time-limit"
        )


def seconds(
    store: Store, corpus: Reference, method: str, params: Mapping[str, Any], known: Mapping[str, Any]
) -> float:
    """Return what a method says its longest stage takes of a stored corpus, by some of its texts."""
    module = catalogue.method(method).load()
    texts = store.open(corpus).table("train", ["text"])["text"].slice(0, TIMED).to_pylist()
    built = module.build(**featurize.own_params(params))
    return float(module.seconds(built, texts, known["n_train"], known["n_test"]))


def megabytes(method: str, params: Mapping[str, Any], n_documents: int) -> float:
    """Return what a method says it needs for so many training documents; 0 where that grows with the tokens alone."""
    entry = catalogue.method(method)
    if entry.is_join:
        return COPIED * sum(megabytes(name, own, n_documents) for name, own in joined.split(params).values())
    if entry.is_file or "megabytes" not in entry.bound:
        return 0.0
    module = entry.load()
    vectors = word_vectors.DEFAULTS | featurize.params_of(params, featurize.PREFIX)
    return float(
        module.megabytes(module.build(**featurize.own_params(params)), n_documents, vectors["vector_size"])
    )


def settings_within(method: str, params: Mapping[str, Any], n_documents: int, there_is: float) -> list[str]:
    """Return, as name=value, the largest value of each whole-numbered parameter with which a method needs no more."""
    entry, found = catalogue.method(method), []
    if entry.is_join:
        return []
    own = entry.load().build(**featurize.own_params(params)).get_params()
    for name, value in own.items():
        if type(value) is not int:
            continue

        def is_more(smaller: int, name: str = name) -> bool:
            return megabytes(method, {**params, name: smaller}, n_documents) > there_is

        if largest := bisect_left(range(1, value), True, key=is_more):
            found.append(f"{name}={largest}")
    return found
