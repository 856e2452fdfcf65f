"""Numbers of things in words."""

from collections.abc import Iterable


def counted(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: "1 run", "2 runs", "1,234 boxes"; `plural` is the noun's where that is not -s."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def spanned(counts: Iterable[int]) -> str:
    """Return the least and the greatest of some numbers: "3 to 10", or "3" where all are alike."""
    ends = sorted(set(counts))
    return f"{ends[0]:,}" if len(ends) == 1 else f"{ends[0]:,} to {ends[-1]:,}"
