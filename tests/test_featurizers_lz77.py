"""LZ77 phrases: the paper's example, the orders, and a parse written with strings."""

import numpy as np
import pytest

from textbench.featurizers.lz77 import Lz77

PAPER = [list("abcd"), list("ceab"), list("bce")]


def phrases(method: Lz77) -> set[str]:
    return {name.replace(" ", "") for name in method.get_feature_names_out()}


@pytest.mark.parametrize(("order", "expected"), [([0, 1, 2], {"ab", "bc"}), ([1, 2, 0], {"ce", "ab"})])
def test_order_of_the_papers_example_matters(order: list[int], expected: set[str]) -> None:
    method = Lz77().fit([PAPER[d] for d in order])
    assert {phrase for phrase in phrases(method) if len(phrase) > 1} == expected
    assert {phrase for phrase in phrases(method) if len(phrase) == 1} == set("abcde")


@pytest.mark.parametrize("max_length", [1, 2, 5])
def test_parse_takes_the_longest_phrase_of_the_past(max_length: int) -> None:
    rng = np.random.default_rng(50)
    documents = ["".join(rng.choice(list("abc"), n)) for n in (30, 1, 0, 20, 15)]
    past, expected = "", set("".join(documents))
    for document in documents:
        i = 0
        while i < len(document):
            pieces = (document[i : i + t] for t in range(max_length, 0, -1) if i + t <= len(document))
            longest = next((piece for piece in pieces if piece in past + document[:i]), document[i])
            expected.add(longest)
            i += len(longest)
        past += document + "|"
    assert phrases(Lz77(max_length=max_length).fit([list(document) for document in documents])) == expected


def test_documents_are_read_by_the_longest_phrase() -> None:
    method = Lz77().fit(PAPER)
    row = method.transform([list("abcabce")])
    counts = {name: n for name, n in zip(method.get_feature_names_out(), row.toarray()[0], strict=True) if n}
    assert counts == {"a b": 2, "c": 2, "e": 1}


def test_orders_by_class() -> None:
    y = [1, 0, 1, 1, 0]
    assert Lz77(order="by_class")._sequence(5, y).tolist() == [1, 4, 0, 2, 3]
    assert Lz77(order="by_class_reversed")._sequence(5, y).tolist() == [0, 2, 3, 1, 4]
    assert Lz77(order="by_class")._sequence(3, [1, 0, 0]).tolist() == [1, 2, 0]  # by number, not by size
    assert Lz77(order="by_class")._sequence(3, [1, 1, 0]).tolist() == [2, 0, 1]
    assert Lz77(order="alternating")._sequence(5, y).tolist() == [1, 0, 4, 2, 3]
    assert Lz77()._sequence(5, y).tolist() == [0, 1, 2, 3, 4]
    method = Lz77(order="by_class").fit(PAPER, [1, 0, 0])
    assert phrases(method) == phrases(Lz77().fit([PAPER[d] for d in (1, 2, 0)]))


def test_random_order_follows_the_seed() -> None:
    documents = [list(np.random.default_rng(d).choice(list("abcd"), 12)) for d in range(20)]
    names = [
        tuple(Lz77(order="random", random_state=s).fit(documents).get_feature_names_out()) for s in (1, 1, 2)
    ]
    assert names[0] == names[1] != names[2]


@pytest.mark.parametrize(
    ("params", "y", "message"),
    [
        ({"order": "sorted"}, None, "order must be one of given, by_class, .*: got 'sorted'"),
        ({"order": "by_class"}, None, "order 'by_class' needs a class for each of 3 documents: got none"),
        (
            {"order": "alternating"},
            [0, 1],
            r"needs a class for each of 3 documents: got an array of shape \(2,\)",
        ),
        ({"max_length": 0}, None, "max_length must be a whole number from 1 to 255: got 0"),
    ],
)
def test_impossible_orders_are_refused(params: dict, y: list[int] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Lz77(**params).fit(PAPER, y)
