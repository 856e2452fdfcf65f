"""Tokens found in bytes: those of the regular expressions, for every text and rule, and the same stored bytes."""

import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from textbench.tasks import InputError, ingest
from textbench.tasks import vectorize as vectorize_stage
from textbench.tasks.storage.store import Store
from textbench.tasks.token_bytes import PATTERNS, Vocabulary, characters
from textbench.tasks.tokens import RULES, TokenRule, Vectors, vectorize
from textbench.tasks.vectors_of_columns import (
    WIDE,
    Block,
    Tally,
    _pack,
    count_columns,
    learn_blocks,
    terms_of,
)

RULES_READ = {name: rule for name, rule in RULES.items() if rule.pattern in PATTERNS}
LETTERS = "aAzZ09_ -'.!\0\x7f\x80éÉßİıΣσςKſ字𝒜𐐀\u0301\u00ad\u2028\n\t"
TEXTS = st.one_of(st.text(st.sampled_from(LETTERS)), st.text(), st.text("abAB é", max_size=40))


def _read(texts: list[str], rule: TokenRule, kind: pa.DataType) -> list[list[str]]:
    """The tokens of each text, which stand in the middle of an array."""
    known = characters(rule)
    assert known is not None
    vocabulary = Vocabulary(rule, known)
    ids, offsets = vocabulary.read(pa.array(["before", *texts, "after"], kind).slice(1, len(texts)))
    tokens = vocabulary.tokens()
    assert len(set(tokens)) == len(tokens) and [*dict.fromkeys(ids.tolist())] == [*range(len(tokens))]
    return [[tokens[i] for i in ids[a:b]] for a, b in pairwise(offsets)]


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(max_examples=60, deadline=None)
@example(["İSTANBUL ΟΔΟΣ ΣΑΣ Straße K", "abcdefg abcdefgh abcdefghi", "a\0b \0\0", ""], True)
@given(st.lists(TEXTS, max_size=5), st.booleans())
def test_tokens_are_those_of_the_regular_expression(pattern: str, texts: list[str], lowercase: bool) -> None:
    rule = TokenRule(pattern=pattern, lowercase=lowercase)
    expected = [re.findall(pattern, text.lower() if lowercase else text) for text in texts]
    for kind in (pa.string(), pa.large_string()):
        assert _read(texts, rule, kind) == expected


@pytest.mark.parametrize("pattern", ["[a-z]+", r"\w+|[^\w\s]"])
def test_every_character_is_read_as_the_regular_expression_reads_it(pattern: str) -> None:
    points = np.setdiff1d(np.r_[:0x20000, 0x20000:0x110000:97], np.arange(0xD800, 0xE000))
    texts = [" ".join(f"{chr(point)}x{chr(point)}" for point in some) for some in np.array_split(points, 100)]
    assert _read(texts, TokenRule(pattern=pattern), pa.string()) == [
        re.findall(pattern, text.lower()) for text in texts
    ]


def test_many_and_long_tokens_find_room() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"{i:x}" * (1 + i % 5) for i in rng.integers(0, 40_000, 3_000)) for _ in range(30)]
    texts.append("y" * 300_000)
    assert _read(texts, RULES["words"], pa.string()) == [re.findall(r"\w\w+", text) for text in texts]


def _blocks(texts: list[str], size: int) -> Iterator[pa.Array]:
    for start in range(0, len(texts), size):
        yield pa.array(texts[start : start + size], pa.string())


def _vectorize_blocks(*blocks: Iterator[pa.Array], rule: TokenRule, **options: Any) -> Vectors:
    known = characters(rule)
    assert known is not None
    learned, parts = learn_blocks(*blocks, rule, known, **options), {}
    for part in ("train", "test"):
        counted = list(learned.counted(part))
        ids, lengths, indices, data, sizes = (
            np.concatenate([np.zeros(0, dtype=kind), *(block[i] for block in counted)])
            for i, kind in enumerate((np.int32, np.int64, np.int32, np.int32, np.int64))
        )
        shape = len(lengths), len(learned.terms)
        counts = csr_matrix((data, indices, np.concatenate([[0], np.cumsum(sizes)])), shape=shape)
        assert counts.has_canonical_format
        parts |= {f"{part}_ids": ids, f"{part}_counts": counts}
        parts[f"{part}_offsets"] = np.concatenate([[0], np.cumsum(lengths)])
    return Vectors(**parts, terms=learned.terms)


def _check_same(found: Vectors, expected: Vectors) -> None:
    assert found.terms == expected.terms
    for part in ("train", "test"):
        for name in ("ids", "offsets"):
            mine, theirs = getattr(found, f"{part}_{name}"), getattr(expected, f"{part}_{name}")
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
        mine, theirs = getattr(found, f"{part}_counts"), getattr(expected, f"{part}_counts")
        assert mine.shape == theirs.shape and mine.has_canonical_format
        for name in ("indptr", "indices", "data"):
            assert getattr(mine, name).dtype == getattr(theirs, name).dtype
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(TEXTS, min_size=1, max_size=6),
    st.lists(TEXTS, max_size=4),
    st.sampled_from(
        [*RULES_READ.values(), TokenRule(min_df=2, max_df=0.7), TokenRule(stemmer="english", max_n=3)]
    ),
    st.booleans(),
    st.integers(1, 3),
)
def test_blocks_give_what_texts_give(
    train: list[str], test: list[str], rule: TokenRule, transductive: bool, n_threads: int
) -> None:
    blocks = _blocks(train, 2), _blocks(test, 2)
    options = {"rule": rule, "transductive": transductive, "n_threads": n_threads}
    try:
        expected = vectorize(train, test, rule, transductive=transductive)
    except InputError as error:
        with pytest.raises(InputError, match=re.escape(str(error))):
            _vectorize_blocks(*blocks, **options)
        return
    _check_same(_vectorize_blocks(*blocks, **options), expected)


BORDERS = [*range(62, 67), *range(4094, 4099), *range(2**18 - 2, 2**18 + 3)]


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([1, 2, *BORDERS, 2**20]), st.integers(1, 3))
def test_columns_are_counted_as_by_brute_force(data: st.DataObject, n_columns: int, n_levels: int) -> None:
    """Columns at the borders of words and groups, tokens and documents without any, one tally for two blocks."""
    near = [column for column in (0, *BORDERS, n_columns - 1) if column < n_columns]
    column = st.one_of(st.just(-1), st.sampled_from(near), st.integers(0, n_columns - 1))
    token = st.tuples(*[column] * n_levels)
    tally = Tally.of(n_columns)
    for _ in range(2):
        documents = data.draw(st.lists(st.lists(token, max_size=12), max_size=6))
        tokens = [token for document in documents for token in document]
        levels = np.array(tokens, dtype=np.int32).reshape(-1, n_levels).T.copy()
        lengths = np.array([len(document) for document in documents], dtype=np.int64)
        indices, counts, sizes = count_columns(levels, lengths, tally)
        found = list(zip(indices.tolist(), counts.tolist(), strict=True))
        for document, size in zip(documents, sizes.tolist(), strict=True):
            own = np.array(document, dtype=np.int64)
            different, often = np.unique(own[own >= 0], return_counts=True)
            assert found[:size] == list(zip(different.tolist(), often.tolist(), strict=True))
            found = found[size:]
        assert not found and not any(array.any() for array in tally)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 9), st.integers(WIDE - 2, WIDE + 2), st.integers(0, 2**18 - 1))))
def test_packed_numbers_are_unpacked_without_those_that_have_no_term(numbers: list[int]) -> None:
    ids = np.array(numbers, dtype=np.int32)
    of_token = np.arange(2**18, dtype=np.int32)[::-1].copy()
    of_token[::3] = -1
    packed = np.empty(len(ids) + 2 * np.count_nonzero(ids >= WIDE), dtype=np.uint16)
    _pack(ids, packed)
    middle = len(ids) // 2
    found, lengths = terms_of(Block(packed, np.array([0, middle, middle, len(ids)]), 0), [of_token])
    expected = [[of_token[i] for i in part if of_token[i] >= 0] for part in (ids[:middle], [], ids[middle:])]
    assert lengths.tolist() == [len(part) for part in expected]
    assert found.tolist() == [term for part in expected for term in part]


def test_a_rule_that_bytes_cannot_follow_is_left_to_the_regular_expression() -> None:
    assert characters(RULES["maas"]) is None
    assert characters(replace(RULES["letters"], pattern="[a-f]+")) is None


@pytest.mark.usefixtures("data_dir")
@pytest.mark.parametrize("dataset", ["r8", "20ng"])
def test_the_stored_files_are_the_same_either_way(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for many in (0, 2**40):
        monkeypatch.setattr(vectorize_stage, "MANY_BYTES", many)
        store = Store(tmp_path / str(many), isolated=False, workers=2)
        rule = asdict(RULES["words"])
        made.append(store.ensure(vectorize_stage.reference(ingest.reference(dataset), rule, False))["files"])
    assert made[0] == made[1] and len(made[0]) == 11
