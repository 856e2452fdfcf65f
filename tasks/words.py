"""Numbers of things in words."""


def counted(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: "1 run", "2 runs", "1,234 boxes"; `plural` is the noun's where that is not -s."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"
