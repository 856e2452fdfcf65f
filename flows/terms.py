"""The terms a method has learned, in columns: what dCoT makes of one word, the phrases that compression keeps.

A method that has something to show defines `term_columns(terms, words, n_shown)` on its fitted class. It is given the
vocabulary, those of its terms that the user asked about, and how many to show, and returns a list of columns, each
(heading, [(term, value), ...]), best first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cells import Request, plan
from flows.figure import INK, KINDS
from tasks import InputError, catalogue, featurize
from tasks.store import Artifact, Store

if TYPE_CHECKING:
    from tasks.catalogue import Entry

HOOK = "term_columns"
BAR = "#9ECAE1"


@dataclass(frozen=True)
class Question:
    """What to show: `words` of a data set by a method, `dcot` or `dcot(noise=0.9)`; `rule` None is the data set's."""

    words: Sequence[str]
    dataset: str
    method: str
    n_shown: int = 10
    rule: str | None = None
    protocol: str = "honest"
    seed: int = 0


@dataclass(frozen=True)
class Column:
    """A heading and its terms with their values, best first."""

    heading: str
    terms: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Answer:
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


def ask(question: Question, store: Store) -> Answer:
    """Fit the method on the data set, or read it from the store, and return its columns.

    Raises InputError for unknown names, a method with nothing to show, or a word that is no term of the vocabulary.
    """
    if question.n_shown < 1:
        raise InputError(f"--top must be at least 1, got {question.n_shown}")
    name, params = catalogue.parse_method(question.method)
    entry = catalogue.method(name)
    _require_hook(entry)
    request = Request(
        [question.dataset],
        [question.method],
        seeds=[question.seed],
        protocol=question.protocol,  # type: ignore[arg-type]
        rule=question.rule,
    )
    vectors = plan(request)[0].references["vectorize"]
    opened = store.open(vectors)
    terms = opened.json("terms")
    headings = {_term(word, terms, opened): word for word in question.words}
    fitted = store.open(featurize.reference(vectors, name, params, question.seed))
    method = entry.load().build().from_arrays(featurize.load_arrays(fitted, "model"))
    columns = getattr(method, HOOK)(terms, list(headings), question.n_shown)
    shown = [Column(_heading(heading, headings), pairs) for heading, pairs in columns]
    return Answer(question.dataset, question.method, shown)


def _require_hook(entry: "Entry") -> None:
    if f"def {HOOK}(" in entry.path.read_text("utf-8"):
        return
    able = [
        name for name, other in catalogue.methods().items() if f"def {HOOK}(" in other.path.read_text("utf-8")
    ]
    raise InputError(f"{entry.name} has no terms to show; {catalogue.nearest(entry.name, able)}")


def _term(word: str, terms: Sequence[str], vectors: Artifact) -> str:
    """Return the term that the token rule makes of a word."""
    from tasks.tokens import TokenRule, encode

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


def draw(answer: Answer, path: Path) -> None:
    """Draw the columns side by side to an SVG, PNG or PDF file; a bar is a value's share of its column's best.

    Raises InputError for another kind of file.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    if path.suffix.lower() not in KINDS:
        raise InputError(f"--figure must end in {', '.join(KINDS)}, got {path.name}")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "textbench", "font.size": 10}
    n_rows = max(len(column.terms) for column in answer.columns)
    figure, axes = plt.subplots(
        1,
        len(answer.columns),
        squeeze=False,
        figsize=(1.7 * len(answer.columns), 0.28 * n_rows + 0.8),
        layout="constrained",
    )
    for axis, column in zip(axes[0], answer.columns, strict=True):
        values = [value for _, value in column.terms]
        best = max(values[0], 1e-12)
        axis.barh(range(len(values)), [max(value, 0) / best for value in values], color=BAR, height=0.8)
        for place, (term, _) in enumerate(column.terms):
            axis.text(0.02, place, term, va="center", color=INK)
        axis.set(xlim=(0, 1), ylim=(n_rows - 0.5, -0.5), xticks=[], yticks=[])
        axis.set_title(column.heading, loc="left", fontsize=10, fontweight="bold", color=INK)
        for side in ("top", "right", "bottom", "left"):
            axis.spines[side].set_visible(False)
    figure.suptitle(f"{answer.dataset}, {answer.method}", x=0.01, ha="left", fontsize=10, color=INK)
    try:
        figure.savefig(path, metadata={"Date": None} if path.suffix.lower() != ".png" else None, dpi=150)
    except OSError as error:
        raise InputError(f"--figure {path} cannot be written: {error.strerror}") from error
    finally:
        plt.close(figure)
