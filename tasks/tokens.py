"""Token rules, token ids in reading order, vocabulary and term counts.

A rule turns a text into terms in this order: fold to ASCII, lower-case, find the tokens, drop short ones and
stop words, stem. A paper's rule has a name in `RULES`. What is learned from texts (the vocabulary and its
limits on document frequency) is learned from the training texts alone unless `transductive=True` is given.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from textbench.tasks import InputError, ngrams
from textbench.tasks.catalogue import nearest
from textbench.tasks.corpus import read_texts
from textbench.tasks.stopwords import STOP_LISTS, stop_words

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from textbench.tasks.storage.store import Artifact

STEMMERS = ("none", "porter", "english")


@dataclass(frozen=True)
class TokenRule:
    """How a text becomes terms.

    pattern: regular expression; each match is a token (its group, if it has one). `[a-z]+` knows the letters
        of ASCII only: an accented letter splits a word ("déjà" gives "d" and "j") unless `ascii_fold` is set.
    lowercase: lower-case the text before the pattern is applied.
    ascii_fold: decompose (NFKD) and keep ASCII alone, before lower-casing: "déjà" becomes "deja", and what
        has no ASCII part goes without leaving a space (a long dash between two words joins them).
    stop_words: name of a stop list (`tasks.stopwords`), asked about the token before stemming.
    stemmer: "none", "porter" (Porter, 1980) or "english" (its successor Porter2), both as in Snowball.
    min_length: shortest token kept, in characters, before stemming. A stem that comes out empty is dropped.
    min_df: fewest documents a term must occur in.
    max_df: largest share of the documents that a term may occur in, in (0, 1]; always a share: 1 means all.
    max_n: longest n-gram that is counted beside the single terms (`tasks.ngrams`), under the same limits.

    Raises InputError for a value outside these.
    """

    pattern: str = r"[a-z]+"
    lowercase: bool = True
    ascii_fold: bool = False
    stop_words: str = "none"
    stemmer: str = "none"
    min_length: int = 1
    min_df: int = 1
    max_df: float = 1.0
    max_n: int = 1

    def __post_init__(self) -> None:
        self._check_pattern()
        for name in ("lowercase", "ascii_fold"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"token rule: {name} must be true or false, got {getattr(self, name)!r}")
        for name, choices in (("stop_words", STOP_LISTS), ("stemmer", STEMMERS)):
            value = getattr(self, name)
            if value not in choices:
                raise InputError(f"token rule: there is no {name} {value!r}; {nearest(str(value), choices)}")
        for name in ("min_length", "min_df", "max_n"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"token rule: {name} must be a whole number of at least 1, got {value!r}")
        value = self.max_df
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1:
            raise InputError(f"token rule: max_df must be a share in (0, 1], got {value!r}")

    def _check_pattern(self) -> None:
        try:
            compiled = re.compile(self.pattern)
        except (re.error, TypeError) as error:
            raise InputError(
                f"token rule: pattern must be a regular expression, got {self.pattern!r} ({error})"
            ) from error
        if compiled.groups > 1:
            raise InputError(
                f"token rule: pattern may have one capturing group at most, got {self.pattern!r} "
                f"with {compiled.groups}"
            )


RULES = {
    # Bag of words as plain as it gets.
    "letters": TokenRule(),
    # Words of any script, two characters or more: scikit-learn's default, and ours for the user's own documents.
    "words": TokenRule(pattern=r"\w\w+"),
    # dCoT (CIKM 2012) does not state its rule. On its Reuters subset (title, body, training and test texts)
    # this one gives 19,351 terms, and 19,439 with scikit-learn's stop list; the paper has 18,933.
    "letters-stop-stem": TokenRule(stop_words="smart", stemmer="porter"),
    # SCDV (EMNLP 2017), as in its authors' code.
    "scdv": TokenRule(ascii_fold=True, stop_words="nltk", min_length=2),
    # Punctuation marks are tokens of their own: in reviews "!" and "?" carry opinion.
    "words-punctuation": TokenRule(pattern=r"\w+|[^\w\s]"),
    # Maas et al. (ACL 2011): words with the apostrophes and hyphens inside them, ! and ?, and emoticons.
    "maas": TokenRule(pattern=r"\w+(?:['’-]\w+)*|[:;=]['-]?[()\[\]dp/\\|*](?!\w)|[!?]"),
    "words-punctuation-2": TokenRule(pattern=r"\w+|[^\w\s]", max_n=2),
}


def token_rule(name: str) -> TokenRule:
    """Return the rule of that name; raises InputError for an unknown one, with the nearest."""
    if name not in RULES:
        raise InputError(f"there is no token rule {name!r}; {nearest(name, RULES)}")
    return RULES[name]


def check_tokens(name: str, corpus: Artifact, rule: TokenRule) -> None:
    """Raise InputError where no text of a part of a stored corpus has a token under the rule."""
    numbers = _Numbers(rule)
    for kind, part in (("training", "train"), ("test", "test")):
        if any(len(_encode([text], rule, numbers)[0]) for text in read_texts(corpus, part)):
            continue
        texts = list(read_texts(corpus, part))
        example = next((text for text in texts if text.strip()), "")
        raise InputError(
            f"{name}: none of the {len(texts)} {kind} texts has a token under its rule "
            f"(pattern {rule.pattern}, stop words {rule.stop_words}), got texts such as {example[:40]!r}; "
            "--rule names another rule"
        )


@dataclass(frozen=True, eq=False)
class Vectors:
    """A corpus as numbers: token ids in reading order, the vocabulary, and the counts.

    train_ids, test_ids: int32 `(n_tokens,)`, positions in `terms`; tokens outside it are left out.
    train_offsets, test_offsets: int64 `(n_documents + 1,)`; document i is `ids[offsets[i]:offsets[i + 1]]`.
    terms: the vocabulary, sorted by code point; where the rule counts n-grams, these follow the single terms.
    train_counts, test_counts: canonical csr int32 `(n_documents, n_terms)`.
    """

    train_ids: np.ndarray
    train_offsets: np.ndarray
    test_ids: np.ndarray
    test_offsets: np.ndarray
    terms: list[str]
    train_counts: csr_matrix
    test_counts: csr_matrix


def vectorize(
    train_texts: Sequence[str], test_texts: Sequence[str], rule: TokenRule, *, transductive: bool = False
) -> Vectors:
    """Learn the vocabulary from the training texts and return both parts encoded with it.

    With `transductive=True` the vocabulary and the limits `min_df` and `max_df` are learned from training and
    test texts together. Raises InputError when no term is left.
    """
    numbers = _Numbers(rule)
    train = _encode(train_texts, rule, numbers)
    test = _encode(test_texts, rule, numbers)
    seen = list(numbers.terms)  # in order of first occurrence; their final numbers are alphabetical

    learned_from = [train, test] if transductive else [train]
    n_documents = sum(len(offsets) - 1 for _, offsets in learned_from)
    df = np.sum([_document_frequency(ids, offsets, len(seen)) for ids, offsets in learned_from], axis=0)
    terms, final = kept_terms(seen, df, n_documents, rule)
    train, test = _renumber(*train, final), _renumber(*test, final)
    tables = tables_of_ngrams(train, test, terms, n_documents, rule, transductive)
    return Vectors(
        train_ids=train[0],
        train_offsets=train[1],
        test_ids=test[0],
        test_offsets=test[1],
        terms=terms + ngrams.names(terms, tables),
        train_counts=ngrams.count_all(*train, len(terms), tables),
        test_counts=ngrams.count_all(*test, len(terms), tables),
    )


def kept_terms(
    seen: Sequence[str], df: np.ndarray, n_documents: int, rule: TokenRule
) -> tuple[list[str], np.ndarray]:
    """Return the vocabulary, and the place in it of each term seen, int32 (n_seen,), -1 for those left out.

    df: int64 (n_seen,), how many of the documents that are learned from have the term. Raises InputError when no term
    is left, and where n-grams are asked of terms that have spaces.
    """
    kept = np.flatnonzero((df >= rule.min_df) & (df <= rule.max_df * n_documents)).tolist()
    if not kept:
        raise InputError(
            f"empty vocabulary: no term of the {n_documents} documents is left under {rule}; "
            "lower min_df or min_length, raise max_df, or change pattern"
        )
    kept.sort(key=seen.__getitem__)
    final = np.full(len(seen), -1, dtype=np.int32)
    final[kept] = np.arange(len(kept), dtype=np.int32)
    terms = [seen[i] for i in kept]
    if rule.max_n > 1 and any(" " in term for term in terms):
        raise InputError("n-grams need tokens without spaces; change pattern, or set max_n to 1")
    return terms, final


def tables_of_ngrams(
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    terms: Sequence[str],
    n_documents: int,
    rule: TokenRule,
    transductive: bool,
) -> list[np.ndarray]:
    """Return the n-grams that the rule counts (`ngrams.learn`), of encoded parts: `(ids, offsets)` each."""
    if rule.max_n == 1:
        return []
    sequence, ends = train
    if transductive:
        sequence = np.concatenate([train[0], test[0]])
        ends = np.concatenate([train[1], train[1][-1] + test[1][1:]])
    return ngrams.learn(sequence, ends, len(terms), rule.max_n, rule.min_df, rule.max_df * n_documents)


def numbered(vocabularies: Iterable[Sequence[str]], rule: TokenRule) -> tuple[list[str], list[np.ndarray]]:
    """Return the terms that the tokens of vocabularies become, and which one each token does, int32, -1 for none."""
    numbers = _Numbers(rule)
    places = [
        np.fromiter(map(numbers.__getitem__, tokens), dtype=np.int32, count=len(tokens))
        for tokens in vocabularies
    ]
    return list(numbers.terms), places


def encode(texts: Sequence[str], terms: Sequence[str], rule: TokenRule) -> tuple[np.ndarray, np.ndarray]:
    """Encode new texts with a learned vocabulary: `(ids, offsets)` as in `Vectors`, unknown terms out."""
    return _encode(texts, rule, _Numbers(rule, terms))


def encoder(
    terms: Sequence[str], rule: TokenRule
) -> Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]]:
    """Return `encode` for many calls with one vocabulary, whose terms are numbered once."""
    known = _Numbers(rule, terms)

    def encode_more(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        numbers = _Numbers(rule, ())  # what it learns of tokens goes with the call, or memory would grow
        numbers.terms = known.terms
        return _encode(texts, rule, numbers)

    return encode_more


def count(ids: np.ndarray, offsets: np.ndarray, terms: Sequence[str], rule: TokenRule) -> csr_matrix:
    """Count what `encode` gave: canonical csr int32 `(n_documents, n_terms)`, with n-grams if the rule has them."""
    if rule.max_n == 1:
        return ngrams.count(ids, offsets, len(terms))
    return ngrams.count_all(ids, offsets, *ngrams.tables_of(terms))


class _Numbers(dict[str, int]):
    """Token -> number of its term, or -1 if it has none: stop list and stemmer are asked once a token.

    With a vocabulary the numbers are its positions; without one, each new term gets the next number.
    """

    def __init__(self, rule: TokenRule, terms: Iterable[str] | None = None) -> None:
        super().__init__()
        self.terms = {term: i for i, term in enumerate(terms or ())}
        self._grows = terms is None
        self._min_length = rule.min_length
        self._stop_words = stop_words(rule.stop_words)
        self._stem = _stemmer(rule.stemmer)

    def __missing__(self, token: str) -> int:
        number = -1
        if len(token) >= self._min_length and token not in self._stop_words:
            term = self._stem(token)
            unseen = len(self.terms) if term and self._grows else -1
            number = self.terms.setdefault(term, unseen) if unseen >= 0 else self.terms.get(term, -1)
        self[token] = number
        return number


def _stemmer(name: str) -> Callable[[str], str]:
    if name == "none":
        return str
    from Stemmer import Stemmer

    return Stemmer(name).stemWord


def _encode(texts: Sequence[str], rule: TokenRule, numbers: _Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Return `(ids, offsets)` of the texts, the ids being whatever `numbers` gives, -1 left out."""
    find = re.compile(rule.pattern).findall
    number = numbers.__getitem__
    documents = []
    for text in texts:
        if rule.ascii_fold and not text.isascii():
            text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
        tokens = find(text.lower() if rule.lowercase else text)
        documents.append(np.fromiter(map(number, tokens), dtype=np.int32, count=len(tokens)))
    offsets = np.zeros(len(documents) + 1, dtype=np.int64)
    np.cumsum([len(document) for document in documents], out=offsets[1:])
    ids = np.concatenate([np.zeros(0, dtype=np.int32), *documents])
    return _drop_negative(ids, offsets)


def _drop_negative(ids: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    keep = ids >= 0
    before = np.zeros(len(ids) + 1, dtype=np.int64)  # tokens kept before each position
    np.cumsum(keep, out=before[1:])
    return ids[keep], before[offsets]


def _renumber(ids: np.ndarray, offsets: np.ndarray, final: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _drop_negative(final[ids], offsets)


def _document_frequency(ids: np.ndarray, offsets: np.ndarray, n_terms: int) -> np.ndarray:
    return np.bincount(ngrams.count(ids, offsets, n_terms).indices, minlength=n_terms)
