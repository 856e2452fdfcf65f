"""Raw texts as documents: the check that the methods which read them share."""

from typing import Any


def checked_texts(X: Any) -> list[str]:
    """Return X. Raises ValueError for what is no list of strings."""
    wrong = next((text for text in X if not isinstance(text, str)), None) if isinstance(X, list) else X
    if not isinstance(X, list) or wrong is not None:
        raise ValueError(f"documents must be a list of strings: got {type(wrong).__name__}")
    return X
