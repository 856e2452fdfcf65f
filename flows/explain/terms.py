"""The terms a method has learned, in columns: topics, what dCoT makes of one word, the phrases that compression keeps.

A method that has something to show defines `term_columns(terms, words, n_shown)` on its fitted class. It is given the
vocabulary, those of its terms that the user asked about, and how many to show, and returns a list of columns, each
(heading, [(term, value), ...]), best first. Of a method that learns topics, or soft clusters of terms, the columns are
topics: those in which the words asked about are most probable, or else the most coherent ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textbench.evaluation.metrics.coherence import npmi, top_terms
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import Request
from textbench.tasks import InputError, catalogue, featurize, ingest
from textbench.tasks.derived import topics
from textbench.tasks.storage.store import Artifact, Store

if TYPE_CHECKING:
    from textbench.tasks.catalogue import Entry

HOOK = "term_columns"
OF_CLUSTERS = "term_memberships_"  # what a method calls the soft clusters of its terms
N_TOPICS = 8  # that are shown where no word is asked about
Pairs = list[tuple[str, list[tuple[str, float]]]]


@dataclass(frozen=True)
class TermsQuestion:
    """What to show: `words` of a data set by a method, `dcot` or `dcot(noise=0.9)`; `rule` None is the data set's.

    `own` holds the fields of `tasks.sources.user_data.UserData`: the user's documents, in place of a data set.
    """

    words: Sequence[str]
    dataset: str
    method: str
    n_shown: int = 10
    rule: str | None = None
    protocol: str = "honest"
    seed: int = 0
    own: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Column:
    """A heading and its terms with their values, best first."""

    heading: str
    terms: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class TermColumns:
    """The columns of a method on a data set."""

    dataset: str
    method: str
    columns: Sequence[Column]

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        columns = [
            {"heading": c.heading, "terms": [{"term": term, "value": value} for term, value in c.terms]}
            for c in self.columns
        ]
        return {"dataset": self.dataset, "method": self.method, "columns": columns}


def ask(question: TermsQuestion, store: Store) -> TermColumns:
    """Fit the method on the data set, or read it from the store, and return its columns.

    Raises InputError for unknown names, a method with nothing to show, or a word that is no term of the vocabulary.
    """
    if question.n_shown < 1:
        raise InputError(f"--top must be at least 1, got {question.n_shown}")
    entry = catalogue.method(catalogue.parse_method(question.method)[0])
    _require_hook(entry)
    request = Request(
        [] if question.own else [question.dataset],
        [question.method],
        seeds=[question.seed],
        protocol=question.protocol,  # type: ignore[arg-type]
        rule=question.rule,
        own=question.own,
    )
    (cell,) = plan(request)
    vectors = cell.references["vectorize"]
    ingest.ensure(store, cell.references["ingest"])
    opened = store.open(vectors)
    terms = opened.json("terms")
    headings = {_term(word, terms, opened): word for word in question.words}
    fitted = store.open(cell.references["featurize"])
    if _has_hook(entry):
        method = entry.load().build().from_arrays(featurize.load_arrays(fitted, "model"))
        columns: Pairs = getattr(method, HOOK)(terms, list(headings), question.n_shown)
    else:
        columns = _topics(opened, fitted, list(headings), question.n_shown)
    shown = [Column(_heading(heading, headings), pairs) for heading, pairs in columns]
    return TermColumns(cell.dataset, question.method, shown)


def _require_hook(entry: "Entry") -> None:
    if _has_terms(entry):
        return
    able = [name for name, other in catalogue.methods().items() if _has_terms(other)]
    raise InputError(f"{entry.name} has no terms to show; {catalogue.nearest(entry.name, able)}")


def _has_terms(entry: "Entry") -> bool:
    return (_has_hook(entry) or _has_topics(entry)) and not entry.reads_texts_alone


def _has_hook(entry: "Entry") -> bool:
    return f"def {HOOK}(" in entry.path.read_text("utf-8")


def _has_topics(entry: "Entry") -> bool:
    has_own = "n_topics" in (entry.parameters or {}) or "token_topics" in entry.needs
    return has_own or OF_CLUSTERS in entry.path.read_text("utf-8")


def _topics(vectors: Artifact, features: Artifact, words: Sequence[str], n_shown: int) -> Pairs:
    """Return topics of a fitted method, first terms first: a word's, in which it is most probable, or most coherent."""
    import numpy as np

    terms, counts = vectors.json("terms"), topics.read_counts(vectors)
    probabilities = topics.term_probabilities(features, counts)
    found = [(f"{word}: topic", int(probabilities[:, terms.index(word)].argmax())) for word in words]
    if not words:
        whole = np.flatnonzero((probabilities > 0).sum(axis=1) >= topics.N_WORDS)
        order = np.argsort(-npmi(top_terms(probabilities[whole], topics.N_WORDS), counts), kind="stable")
        found = [("topic", int(number)) for number in whole[order[:N_TOPICS]]]
    best = [(heading, number, np.argsort(-probabilities[number], kind="stable")) for heading, number in found]
    return [
        (
            f"{heading} {number}",
            [
                (terms[t], float(probabilities[number, t]))
                for t in order[:n_shown]
                if probabilities[number, t]
            ],
        )
        for heading, number, order in best
    ]


def _term(word: str, terms: Sequence[str], vectors: Artifact) -> str:
    """Return the term that the token rule makes of a word."""
    from textbench.tasks.tokens import TokenRule, encode

    ids, _ = encode([word], terms, TokenRule(**vectors.meta["recipe"]["params"]["rule"]))
    if len(ids) != 1:
        found = f"{len(ids)} terms" if len(ids) else "no term of the training documents"
        raise InputError(
            f"a word must be one term under the token rule, but {word!r} is {found}; {_near(word, terms)}"
        )
    return terms[ids[0]]


def _near(word: str, terms: Sequence[str]) -> str:
    hint = catalogue.nearest(word, terms)
    return hint if hint.startswith("did") else "the vocabulary has nothing near"


def _heading(heading: str, words: dict[str, str]) -> str:
    """Return the user's word for a term, with the term where the token rule changed it."""
    word = words.get(heading, heading)
    return word if word == heading else f"{word} ({heading})"
