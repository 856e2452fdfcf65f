"""Errors to look at: the test documents that one finished run, or of two only one, gets wrong, and why.

Of each document it says what its label is and what both runs answered, whether a training document is nearly the same
(cosine of counts of rarer terms), and of a linear probe on terms which terms spoke for the wrong label. Nothing holds a
text unless it is asked for; terms are single words of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.results.predictions import corpus_key, is_right, is_several, predictions
from textbench.flows.results.runs import Run
from textbench.flows.tables.table import NOTHING, Datum, Table, number, slug
from textbench.tasks import InputError, catalogue

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

    from textbench.tasks.storage.store import Artifact

NEAR = 0.9  # a cosine from which on two documents are called nearly the same
COMMON = 0.05  # of the training documents: a term in more of them tells no two apart, and takes the most time
MANY = 50  # training documents: a term in as many or fewer is never too common
N_TERMS = 5
AT_ONCE = 128  # documents whose cosines with all training documents are in memory at a time
MOST_CLASSES = 25  # of which a confusion matrix is shown whole
NEITHER, BOTH = "neither", "both"
COLUMNS = {"document", "label", "right", "nearest_cosine", "nearest_train", "text", NEITHER, BOTH}
SHORT = 8  # characters of a key that are shown
# Which documents are shown: by whether the first and the second run are right.
ONLY = {
    "different": lambda first, second: first != second,
    "first-wrong": lambda first, second: ~first & second,
    "second-wrong": lambda first, second: first & ~second,
    "both-wrong": lambda first, second: ~first & ~second,
    "wrong": lambda first, second: ~first | ~second,
}


@dataclass(frozen=True)
class ErrorList:
    """What one or two runs on the same test documents answered; `names` are theirs, `classes` those of the labels.

    Arrays have a place a test document: `target` and for each run `predicted`, classes' numbers, and `right`, bool.
    `rows` are the documents that were chosen, ascending; `only` is the name of that choice.
    """

    dataset: str
    names: Sequence[str]
    classes: Sequence[str]
    target: "np.ndarray"
    predicted: Sequence["np.ndarray"]
    right: Sequence["np.ndarray"]
    rows: "np.ndarray"
    only: str
    runs: Sequence[Run]

    @cached_property
    def confusions(self) -> list["np.ndarray"]:
        """Of each run how many documents of each class were said to be of each, (n_classes, n_classes)."""
        import numpy as np

        n = len(self.classes)
        return [np.bincount(self.target * n + own, minlength=n * n).reshape(n, n) for own in self.predicted]

    @property
    def answer(self) -> str:
        """How many documents each run gets wrong, in a line."""
        parts = [
            f"{name} gets {int((~right).sum()):,} wrong"
            for name, right in zip(self.names, self.right, strict=True)
        ]
        of = f"of {len(self.target):,} test documents"
        if len(self.names) == 1:
            return f"{self.dataset}: {of}, {parts[0]}."
        first, second = self.right
        alone = f"{int((~first & second).sum()):,} and {int((first & ~second).sum()):,} of them alone"
        return f"{self.dataset}: {of}, {parts[0]} and {parts[1]}, {alone}; {int((~first & ~second).sum()):,} both."

    @property
    def confusion_answers(self) -> list[str]:
        """What each run takes for another class most often, in a line a run."""
        found = []
        for i, name in enumerate(self.names):
            rows = self.confused(i, 1).rows
            texts = [one.text for one in rows[0]] if rows else []
            most = f"{texts[0]} for {texts[1]}, documents: {texts[2]}" if rows else "nothing for another"
            found.append(f"{name} takes most often {most}.")
        return found

    @cached_property
    def _vectors(self) -> "list[Artifact | None]":
        """The vectors behind each run, None where it has none; those of several runs are opened, and checked, once."""
        references = [run.reference.inputs.get("vectors") for run in self.runs]
        opened = {
            one.key: run.open("vectors")
            for one, run in {
                one.key: (one, run) for one, run in zip(references, self.runs, strict=True) if one
            }.values()
        }
        return [opened[one.key] if one else None for one in references]

    def near(self, rows: "np.ndarray") -> list[tuple[float, int]] | None:
        """Return of test documents the cosine with the training document nearest by rarer terms, and its number.

        Cosine 0 and number -1 where no training document shares such a term; None where the runs keep no counts.
        """
        import numpy as np

        # Methods that read texts alone keep no counts.
        counted = (one for one in self._vectors if one and one.meta["recipe"]["params"]["rule"] is not None)
        vectors = next(counted, None)
        if vectors is None:
            return None
        counts: list[csr_matrix] = [vectors.matrix(f"{part}_counts") for part in ("train", "test")]
        train, test = counts
        rare = np.bincount(train.indices, minlength=train.shape[1]) <= max(COMMON * train.shape[0], MANY)
        asked = _unit(test[rows][:, rare])
        # Terms of no document that is asked about add to the lengths alone.
        used = np.unique(asked.indices)
        known = _unit(train[:, rare])[:, used].T.tocsr()
        found: list[tuple[float, int]] = []
        for start in range(0, len(rows), AT_ONCE):
            cosines = (asked[start : start + AT_ONCE, used] @ known).toarray()
            best = cosines.argmax(axis=1)
            values = cosines[np.arange(len(best)), best]
            found += [(float(c), int(n)) if c > 0 else (0.0, -1) for c, n in zip(values, best, strict=True)]
        return found

    def deciding(self, run: int, rows: "np.ndarray") -> list[str]:
        """Return of test documents the terms that spoke most for what a run answered, against the true label.

        "" where it was right, and all "" for a run whose probe does not weigh terms.
        """
        import numpy as np

        weights = _weights(self.runs[run], self._vectors[run], len(self.classes))
        if weights is None:
            return [""] * len(rows)
        features, coefficients, terms = weights
        found = []
        for row in rows:
            said, true = self.predicted[run][row], self.target[row]
            if said == true:
                found.append("")
                continue
            own = features[row]
            parts = own.data * (coefficients[said] - coefficients[true])[own.indices]
            best = [i for i in np.argsort(-parts, kind="stable")[:N_TERMS] if parts[i] > 0]
            found.append(", ".join(terms[own.indices[i]] for i in best))
        return found

    def texts(self, rows: "np.ndarray") -> list[str]:
        """Return the texts of test documents."""
        return (
            self.runs[0].open("corpus").table("test", ["text"])["text"].take(list(map(int, rows))).to_pylist()
        )

    def who_is_right(self, rows: "np.ndarray") -> list[str]:
        """Return of test documents which run is right: its name, "neither" or "both"."""
        found = []
        for row in rows:
            right = [name for name, own in zip(self.names, self.right, strict=True) if own[row]]
            found.append(BOTH if len(right) > 1 else right[0] if right else NEITHER)
        return found

    def chosen(self, top: int | None) -> "np.ndarray":
        """Return `top` of the documents that were chosen, evenly from first to last; all of them for None."""
        import numpy as np

        if top is None or top >= len(self.rows):
            return self.rows
        return self.rows[np.linspace(0, len(self.rows) - 1, top).astype(int)]

    def records(self, top: int | None = None, *, with_texts: bool = False) -> list[dict[str, Any]]:
        """Return the chosen documents as JSON values, at most `top` of them; with texts only where asked for."""
        rows = self.chosen(top)
        columns: dict[str, list[Any]] = {"document": [int(row) for row in rows]}
        columns["label"] = [self.classes[i] for i in self.target[rows]]
        for name, own in zip(self.names, self.predicted, strict=True):
            columns[name] = [self.classes[i] for i in own[rows]]
        columns["right"] = self.who_is_right(rows)
        nearest: Sequence[tuple[float, int] | None] = self.near(rows) or [None] * len(rows)
        columns["nearest_cosine"] = [round(one[0], 4) if one else None for one in nearest]
        columns["nearest_train"] = [one[1] if one and one[0] >= NEAR else None for one in nearest]
        for i, name in enumerate(self.names):
            columns[f"terms of {name}"] = self.deciding(i, rows)
        if with_texts:
            columns["text"] = self.texts(rows)
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def documents(self, top: int | None, *, with_texts: bool = False) -> Table:
        """Return at most `top` of the chosen documents as a table."""
        found = self.records(top, with_texts=with_texts)
        runs = [(name, name) for name in self.names]
        terms = [f"terms of {name}" for name in self.names]
        terms = [name for name in terms if any(one[name] for one in found)]
        of_two = [("right", "right")] if len(runs) > 1 else []
        columns = [("document", "test document"), ("label", "label"), *runs, *of_two]
        columns += [("nearest_cosine", "nearest"), *((name, name) for name in terms)]
        columns += [("text", "text")] * with_texts
        rows = [[_datum(name, one[name]) for name, _ in columns] for one in found]
        headings = [(slug(name) if name not in COLUMNS else name, title) for name, title in columns]
        left = len(self.rows) - len(found)
        note = f"Shown: {self.only}" + (f", {left:,} more left out" if left else "") + ". "
        note += f"Nearest: cosine with a training document, of counts of terms in one of twenty documents or in {MANY} "
        note += "at most; "
        note += f"from {NEAR} on nearly the same."
        note += " Terms: what spoke most for a wrong answer against the label." if terms else ""
        title = f"Errors on {self.dataset}"
        filters = ["label", *map(slug, self.names), *(name for name, _ in of_two)]
        return Table("errors", title, headings, rows, note, filters=filters if rows else ())

    def matrix(self, run: int) -> Table | None:
        """Return a run's confusion matrix, a row a label; None of more than MOST_CLASSES classes."""
        if len(self.classes) > MOST_CLASSES:
            return None
        counts = self.confusions[run]
        headings = [("label", "label"), *((f"taken-{i}", name) for i, name in enumerate(self.classes))]
        rows = [
            [Datum(name), *(Datum(f"{n:,}", int(n), is_strong=i == j) for j, n in enumerate(counts[i]))]
            for i, name in enumerate(self.classes)
        ]
        note = "A row is a label, a column what was answered."
        return Table(f"matrix-{run}", f"Confusion matrix of {self.names[run]}", headings, rows, note)

    def confused(self, run: int, top: int = 15) -> Table:
        """Return the classes that a run takes for others most often."""
        import numpy as np

        counts = self.confusions[run].copy()
        of_class = counts.sum(axis=1)
        np.fill_diagonal(counts, 0)
        order = [place for place in np.argsort(-counts, axis=None, kind="stable")[:top] if counts.flat[place]]
        rows = []
        for place in order:
            true, said = divmod(int(place), len(self.classes))
            n = int(counts.flat[place])
            rows.append([
                Datum(self.classes[true]), Datum(self.classes[said]), Datum(f"{n:,}", n),
                number(n / int(of_class[true]), 1, scale=100),
            ])  # fmt: skip
        headings = [("label", "label"), ("taken", "taken for"), ("n", "documents")]
        headings += [("share", "% of the label's")]
        return Table(f"confused-{run}", f"What {self.names[run]} confuses", headings, rows)


def errors(
    home: Path, rows: Sequence[Mapping[str, Any]], only: str = "", classes: Sequence[str] = ()
) -> ErrorList:
    """Return the errors of one or two finished runs, rows of the index.

    only: a name of ONLY, by default "wrong" of one run and "different" of two. classes: documents whose label, or an
    answer, is one of these. Raises InputError for runs on other documents, documents of several labels, and names that
    there are not.
    """
    import numpy as np

    if len(rows) == 2 and corpus_key(home, rows[0]) != corpus_key(home, rows[1]):
        raise InputError("the two runs were tested on different documents: there is nothing to compare")
    if len(rows) == 2 and rows[0]["key"] == rows[1]["key"]:
        raise InputError("that is one run twice: name another")
    only = only or ("different" if len(rows) == 2 else "wrong")
    catalogue.pick("choice of documents", only, ONLY if len(rows) == 2 else {"wrong": None})
    tables = [predictions(home, row) for row in rows]
    if any(map(is_several, tables)):
        raise InputError(
            f"documents of {rows[0]['dataset']} have several labels each: right and wrong is of labels there"
        )
    runs = [Run(home, row) for row in rows]
    names = runs[0].open("corpus").json("corpus")["target_names"]
    for name in classes:
        catalogue.pick("class", name, dict.fromkeys(names))
    target = tables[0]["target"].to_numpy()
    predicted = [table["predicted"].to_numpy() for table in tables]
    right = [is_right(table) for table in tables]
    chosen = np.asarray(ONLY[only](right[0], right[-1]))
    if classes:
        wanted = [names.index(name) for name in classes]
        chosen &= np.any([np.isin(column, wanted) for column in [target, *predicted]], axis=0)
    found = np.flatnonzero(chosen)
    return ErrorList(rows[0]["dataset"], _named(rows), names, target, predicted, right, found, only, runs)


def _datum(name: str, value: Any) -> Datum:
    """Return what a table shows in a column of `ErrorList.records`."""
    if name == "nearest_cosine":
        return number(value, 2, mark="nearly the same" if value is not None and value >= NEAR else "")
    return Datum(str(value), value if name == "document" else None) if value != "" else NOTHING


def _named(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return runs' methods, with the beginnings of their keys where methods do not tell them apart."""
    names = [str(row["method"]) for row in rows]
    if len(set(names)) == len(names) and COLUMNS.isdisjoint(names):
        return names
    return [f"{name} {row['key'][:SHORT]}" for name, row in zip(names, rows, strict=True)]


def _unit(counts: "csr_matrix") -> "csr_matrix":
    """Return rows of length one, float32; an empty row stays empty."""
    import numpy as np
    import scipy.sparse

    counts = counts.astype(np.float32)
    lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1))).ravel()
    return scipy.sparse.csr_matrix(scipy.sparse.diags(1 / np.where(lengths == 0, 1, lengths)) @ counts)


def _weights(
    run: Run, vectors: "Artifact | None", n_classes: int
) -> "tuple[csr_matrix, np.ndarray, list[str]] | None":
    """Return a run's test features, its probe's weights and the terms, None where features are no terms."""
    if vectors is None or run.reference.params.get("probe") is None:
        return None
    result, terms = run.open("result"), vectors.json("terms")
    if "probe.npz" not in result.meta["files"]:
        return None
    coefficients = result.arrays("probe").get("coef")
    if coefficients is None or coefficients.ndim != 2 or coefficients.shape[1] != len(terms):
        return None
    coefficients = coefficients if len(coefficients) > 1 else _both(coefficients)
    try:
        features = run.open("features")
    except InputError:  # the code has changed since
        return None
    # Dense features are none of terms, and may be large.
    if len(coefficients) != n_classes or not (features.folder / "test.npz").exists():
        return None
    return features.matrix("test"), coefficients, terms


def _both(coefficients: "np.ndarray") -> "np.ndarray":
    """Return the weights of two classes, of whom the probe keeps the second's alone."""
    import numpy as np

    return np.vstack([-coefficients, coefficients])
