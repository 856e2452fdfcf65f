"""Numbers of things in words."""

import pytest

from textbench.tasks.words import counted, spanned


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


def test_least_and_greatest_of_some_numbers() -> None:
    assert spanned([3]) == spanned([3, 3]) == "3"
    assert spanned(iter([10, 6, 8])) == "6 to 10"
    assert spanned([1000, 25000]) == "1,000 to 25,000"
