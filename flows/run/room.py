"""Room: what methods need in memory and time, said before anything is computed where that is more than there is."""

import contextlib
import logging
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from textbench.flows.plan.base_cell import feature_stages
from textbench.flows.plan.cell import Cell, members
from textbench.tasks import InputError, catalogue, featurize, joined, word_vectors
from textbench.tasks.corpus import identity
from textbench.tasks.derived import sample
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store

SHARE = 0.8  # of the machine's memory: documents, the process and the system need some too
# Methods forecast what they need themselves: a linear SVM reads very many features where they lie. Other probes take up
# to 28 bytes a value (LIBLINEAR), and so does setting features side by side.
COPIED = 4.5
LONGEST = 86_400.0  # seconds of a stage, where no limit is given
FEW = 20_000  # training documents that are quick by any method: nothing is timed
TIMED = 50  # texts by which seconds are told
MANY = 200_000  # training documents: with more, a method that forecasts nothing itself is tried on samples of them
SAMPLES = 2_000, 8_000, 32_000
PATIENCE = 300.0  # seconds that a third sample may take, which tells more of memory

log = logging.getLogger("textbench.run")


def require_room(
    store: Store,
    cells: Sequence[Cell],
    memory_limit: float | None,
    time_limit: float | None = None,
    say: Callable[[str], None] = log.warning,
) -> None:
    """Refuse methods that would need more than there is, of cells that are not finished.

    That is of memory the limit, in megabytes, or SHARE of the machine's, and of time the limit of a stage, in seconds,
    or LONGEST. What a method needs it says itself, `megabytes` and `seconds`; of others that grows no faster than
    documents, and with more than MANY of them it is measured on samples (`by_samples`), which `say` is told. An
    ensemble needs what each of its members does; what it takes to find near documents, which decide together, is not
    told. Data that is not stored here is not known, and refuses nothing. Of parameters that are searched the default
    counts. Raises InputError naming the method, the data, what it would need, what there is, and where the method says
    what it needs of memory the largest setting of each parameter that would fit.
    """
    import psutil

    there_is = min(memory_limit or float("inf"), SHARE * psutil.virtual_memory().total / 1e6)
    missing = [cell for cell in cells if not store.has(cell.references["evaluate"])]
    missing = [own for cell in missing for own in members(cell) if not store.has(own.references["evaluate"])]
    corpora = {cell.references["ingest"].key: cell.references["ingest"] for cell in missing}
    found = {key: _known(store, corpus) for key, corpus in corpora.items()}
    for cell in {(cell.references["ingest"].key, cell.method): cell for cell in missing}.values():
        corpus, asked = cell.references["ingest"], cell.references["tune"].params
        method, params = asked["method"], asked.get("fixed") or {}
        known, entry = found[corpus.key], catalogue.method(method)
        if known is None:
            continue
        is_copied = asked["probe"] != "linear-svm" and not entry.is_join
        n, copies = known["n_train"], COPIED if is_copied else 1.0
        needed = copies * megabytes(method, params, n)
        if needed > there_is:
            fitting = " or ".join([*settings_within(method, params, n, there_is / copies), "fewer documents"])
            raise InputError(
                f"{cell.method} would need about {needed:,.0f} MB for the {n:,} training documents of {cell.dataset}, "
                f"and has {there_is:,.0f}: choose {fitting}"
            )
        if "seconds" in entry.bound:
            if n > FEW:
                _require_time(store, cell, known, time_limit or LONGEST)
        elif n > MANY and not all("megabytes" in part.bound for part in joined.entries(entry, params)):
            _require_by_samples(store, cell, n, Needs(time_limit or LONGEST, memory_limit or there_is), say)


class Needs(NamedTuple):
    """What a stage takes: seconds, and megabytes at most."""

    seconds: float
    megabytes: float


def _require_by_samples(
    store: Store, cell: Cell, n: int, there_is: Needs, say: Callable[[str], None]
) -> None:
    """Refuse a method of whose stages one would take more seconds or memory than there are, by samples."""
    if not (stages := _untold(store, cell)):
        return
    tried = f"{SAMPLES[0]:,} to {SAMPLES[-1]:,} of {n:,} training documents of {cell.dataset}"
    say(f"{cell.method}: trying it on {tried}")
    limited = replace(store, time_limit=there_is.seconds, memory_limit=there_is.megabytes)
    try:
        of_stages = by_samples(limited, cell, stages, n).values()
    except Exception as error:  # what fails on a sample may not on all, and if it does its cell says so
        say(f"{cell.method}: a sample tells nothing: {str(error).partition(chr(10))[0]}")
        return
    needed = Needs(*map(max, zip(*of_stages, strict=True)))
    if needed.seconds > there_is.seconds or needed.megabytes > there_is.megabytes:
        raise InputError(
            f"{cell.method} would need about {_said(needed)} for the {n:,} training documents of {cell.dataset}, by "
            f"samples, and has {_said(there_is)} for a stage: choose fewer documents, or a larger --memory-limit or "
            "--time-limit to try it all the same"
        )
    say(f"{cell.method}: all would take about {_said(needed)}")


def _said(needs: Needs) -> str:
    time = f"{needs.seconds:,.0f} seconds" if needs.seconds < 120 else f"{needs.seconds / 60:,.0f} minutes"
    return f"{needs.megabytes:,.0f} MB and {time}"


def by_samples(store: Store, cell: Cell, stages: Mapping[str, Reference], n: int) -> dict[str, Needs]:
    """Return what each of a cell's stages would take of n training documents, which grows evenly from few to many.

    Samples, and what is made of them, are stored. What is too much for the third is told by two.
    """
    few, many, most = SAMPLES
    small, large = (_spent(store, cell, stages, size) for size in (few, many))
    if sum(needs.seconds for needs in _grown(few, small, many, large, most).values()) <= PATIENCE:
        with contextlib.suppress(RuntimeError):
            few, small, many, large = many, large, most, _spent(store, cell, stages, most)
    return _grown(few, small, many, large, n)


def _grown(
    few: int, small: Mapping[str, Needs], many: int, large: Mapping[str, Needs], n: int
) -> dict[str, Needs]:
    """Return what n documents would take, by what few and many take."""
    share = (n - many) / (many - few)

    def at(then: float, now: float) -> float:
        return now + max(now - then, 0.0) * share

    return {stage: Needs(*map(at, small[stage], large[stage])) for stage in large}


def _untold(store: Store, cell: Cell) -> Mapping[str, Reference]:
    """Return the stages that make a cell's features, or of a classifier, which has none, its tuning and training.

    None where features are there already, of vectors that are paid for or read from a file, of a classifier whose
    parameters are searched, and of curves; none of those stages that are there.
    """
    asked = cell.references["tune"].params
    entry = catalogue.method(asked["method"])
    if entry.is_file or asked.get("labels"):
        return {}
    if entry.is_classifier and (asked.get("trials") or asked.get("search_seconds")):
        return {}
    if entry.is_classifier:
        stages = {stage: cell.references[stage] for stage in ("tune", "evaluate")}
    else:
        features = featurize.reference(
            cell.references["vectorize"], asked["method"], asked.get("fixed") or {}, cell.seed
        )
        stages = feature_stages(features)
    if store.has(list(stages.values())[-1]) or "text_vectors" in stages:
        return {}
    return {stage: reference for stage, reference in stages.items() if not store.has(reference)}


def _spent(store: Store, cell: Cell, stages: Mapping[str, Reference], n: int) -> dict[str, Needs]:
    """Return what each stage takes of a sample."""
    corpus = cell.references["ingest"]
    some = sample.reference(corpus, n)
    # What a stage reads is made before it, and not by its process.
    for reference in (some, _of_sample(cell.references["vectorize"], corpus, some)):
        store.ensure(reference)
    metas = {stage: store.ensure(_of_sample(reference, corpus, some)) for stage, reference in stages.items()}
    return {stage: Needs(meta["seconds"], meta["peak_mb"]) for stage, meta in metas.items()}


def _of_sample(reference: Reference, corpus: Reference, some: Reference) -> Reference:
    """Return what is made of a sample as the reference is of the corpus."""
    if reference.key == corpus.key:
        return some
    inputs = {name: _of_sample(one, corpus, some) for name, one in reference.inputs.items()}
    return replace(reference, inputs=inputs)


def _known(store: Store, corpus: Reference) -> Mapping[str, Any] | None:
    """Return what is known of a corpus; None of one that is not stored, or is damaged, as its cells say."""
    try:
        return identity(store.open(corpus)) if store.has(corpus) else None
    except (OSError, RuntimeError, ValueError):
        return None


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
