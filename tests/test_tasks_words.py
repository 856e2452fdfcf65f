"""Numbers of things in words."""

import pytest

from textbench.tasks.words import counted


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, "run"), "0 runs"),
        ((1, "run"), "1 run"),
        ((2, "run"), "2 runs"),
        ((1234, "test document"), "1,234 test documents"),
        ((1, "run waits", "runs wait"), "1 run waits"),
        ((3, "run waits", "runs wait"), "3 runs wait"),
    ],
)
def test_numbers_and_their_nouns(arguments: tuple[int, str], words: str) -> None:
    assert counted(*arguments) == words
