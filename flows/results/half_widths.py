"""Half-widths of the 95 % intervals of a row of the leaderboard: over seeds, over test documents, and the wider one."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

ROUNDING = 1e-9  # half an interval that is no more than rounding


def over_documents(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> dict[str, float]:
    """Return the mean of the runs' half-widths over test documents, of the metrics for which all runs have one."""
    known = [row.get("documents_95") or {} for row in rows]
    kept = [name for name in metrics if all(name in halves for halves in known)]
    return {name: math.fsum(halves[name] for halves in known) / len(known) for name in kept}


def wider(
    seeds: Mapping[str, float], documents: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, str]]:
    """Return by metric the wider of both half-widths, and whether it is over seeds or documents."""
    half_width, over = {}, {}
    for name, of_seeds in seeds.items():
        of_documents = documents.get(name, math.nan)
        is_seeds = math.isnan(of_documents) or of_seeds > of_documents
        half_width[name] = of_seeds if is_seeds else of_documents
        if not math.isnan(half_width[name]):
            over[name] = "seeds" if is_seeds else "documents"
    return half_width, over


def is_told(half: float) -> bool:
    """Tell whether a half-width says something: one of 0, as where all answers are right, does not."""
    return half > ROUNDING


def in_words(over: Iterable[str | None]) -> str:
    """Say over what the intervals of a table are, with the letters by which its figures tell."""
    kinds = set(over) - {None}
    if kinds == {"documents"}:
        return "d: over test documents"
    if kinds == {"seeds"}:
        return "s: over seeds (Student t)"
    return "the wider of d: over test documents, and s: over seeds (Student t)"
