"""The gallery: pictures remade by code."""

from pathlib import Path


def draw(folder: Path) -> None:
    """Draw every picture into a folder."""
