"""The contract of the package's first page as checks, which hold a method to it: one each, on small made documents.

The common test runs them over every method of the folder, and `textbench check` over a user's file. A check returns
None for a promise that is kept, or says why there was nothing to try, and raises `Broken` for one that is not kept.
"""

import contextlib
import functools
import inspect
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from textbench.featurizers._topical.token_topics import TokenTopics

N_TRAIN, N_TEST, N_TERMS, N_DIMENSIONS = 60, 12, 120, 5
TERMS = [f"w{number}" for number in range(N_TERMS)]
# What makes a method quick on few documents; a method takes those that it has.
SMALL = {
    "random_state": 0,
    "n_components": 5,
    "n_clusters": 6,
    "n_topics": 4,
    "n_prototypes": 20,
    "n_iter": 10,
    "max_iter": 5,
    "epochs": 3,
    "n_epochs": 3,
    "n_rounds": 2,
    "max_epochs": 10,
    "n_hidden": 10,
    "min_count": 1,
}


# Why there is nothing to try.
NO_COUNTS, NO_FEATURES, NO_SPACE = (
    "it reads no counts",
    "a classifier has no features",
    "SEARCH_SPACE is empty",
)


class Broken(AssertionError):
    """A promise that a method does not keep: what is expected, and what was received."""


@dataclass(frozen=True)
class Documents:
    """Made documents as a method reads them, their classes (n,) and their labels (n, 3), and vectors of the terms."""

    train: Any
    test: Any
    classes: np.ndarray
    labels: np.ndarray
    word_vectors: np.ndarray


@dataclass(frozen=True)
class Subject:
    """A method under test: its module, and the parameters it is to be tested with beside `SMALL`."""

    module: ModuleType
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_classifier(self) -> bool:
        """Whether it classifies by itself."""
        return getattr(self.module, "ROLE", None) == "classifier"

    @property
    def needs_labels(self) -> bool:
        """Whether `fit` cannot do without labels."""
        return self.is_classifier or getattr(self.module, "USES_LABELS", False) is True

    @property
    def reads_counts(self) -> bool:
        """Whether documents come as a matrix of counts, not as token ids."""
        return bool(self.module.INPUT == "counts")

    @functools.cached_property
    def documents(self) -> Documents:
        """The documents that the checks share."""
        rng = np.random.default_rng(20)
        classes = np.arange(N_TRAIN) % 3
        topics = rng.dirichlet(np.full(N_TERMS, 0.2), size=3)
        ids = [
            rng.choice(N_TERMS, size=rng.integers(5, 20), p=topics[i % 3]).astype(np.int32)
            for i in range(N_TRAIN + N_TEST)
        ]
        vectors = rng.normal(size=(N_TERMS, N_DIMENSIONS)).astype(np.float32)
        vectors[[2, 11]] = 0  # terms without a vector
        labels = np.column_stack([classes == 0, classes != 1, classes == 2]).astype(np.int8)
        return Documents(self.read(ids[:N_TRAIN]), self.read(ids[N_TRAIN:]), classes, labels, vectors)

    def read(self, ids: list[np.ndarray]) -> Any:
        """Return token ids as the method reads them: themselves, texts, or csr int32 (n_documents, n_terms)."""
        if self.module.INPUT == "texts":
            return [" ".join(TERMS[i] for i in document) for document in ids]
        if not self.reads_counts:
            return ids
        rows = [np.bincount(document, minlength=N_TERMS) for document in ids]
        counts = sp.csr_matrix(np.array(rows, dtype=np.int32).reshape(len(rows), N_TERMS))
        counts.data.flags.writeable = counts.indices.flags.writeable = False  # as a run's are
        return counts

    @functools.cached_property
    def accepted(self) -> set[str]:
        """The names of its parameters."""
        parameters = inspect.signature(self.module.build).parameters
        if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
            return {*parameters, *inspect.signature(type(self.module.build())).parameters}
        return set(parameters)

    def build(self, **params: Any) -> Any:
        """Return the method unfitted."""
        small = {name: value for name, value in SMALL.items() if name in self.accepted}
        return self.module.build(**{**small, **self.params, **params})

    def needs(self, train: Any = None) -> dict[str, Any]:
        """Return what `fit` takes beside documents, the shared ones where no others are given."""
        vectors = self.documents.word_vectors
        known: dict[str, Any] = {"word_vectors": vectors, "terms": list(TERMS), "text_vectors": {}}
        known["piece_vectors"] = None
        known |= {"output_vectors": vectors[::-1].copy() * vectors.any(axis=1, keepdims=True)}
        known |= {"vector_norms": np.where(vectors.any(axis=1), 2, 0).astype(np.float32)}
        needs = getattr(self.module, "NEEDS", ())
        if "token_topics" in needs:
            tokens = np.concatenate(self.documents.train if train is None else train)
            known["token_topics"] = TokenTopics(tokens * 7 % 3, 3, 0.5, 0.01)
        return {name: known[name] for name in needs}

    def fit(self, method: Any, train: Any = None, y: Any = None) -> Any:
        """Return the method fitted, to the shared documents where no others are given."""
        train = self.documents.train if train is None else train
        return method.fit(train, *self.labels(y), **self.needs(train))

    def labels(self, y: Any = None) -> list[Any]:
        """Return what `fit` is given after the documents: y, or the shared classes where it needs some."""
        y = self.documents.classes if y is None and self.needs_labels else y
        return [] if y is None else [y]

    @functools.cached_property
    def fitted(self) -> Any:
        """The method fitted to the shared documents; nothing changes it."""
        return self.fit(self.build())

    def output(self, method: Any, documents: Any = None) -> np.ndarray:
        """Return what the method makes of documents, dense: features, or decision values."""
        documents = self.documents.test if documents is None else documents
        return dense(
            method.decision_function(documents) if self.is_classifier else method.transform(documents)
        )


def dense(features: Any) -> np.ndarray:
    """Return a csr matrix or an array as an array."""
    return features.toarray() if sp.issparse(features) else np.asarray(features)


def expect(is_kept: Any, expected: str, received: Any) -> None:
    """Raise Broken unless a promise is kept."""
    if not is_kept:
        raise Broken(f"expected {expected}, got {received}")


def expect_finite(values: Any) -> None:
    """Raise Broken unless all values of a matrix are finite."""
    n_others = int((~np.isfinite(dense(values))).sum())
    expect(not n_others, "finite values", f"{n_others} that are not")


def expect_same(first: np.ndarray, second: np.ndarray, expected: str) -> None:
    """Raise Broken unless `first` and `second`, of any shape (n, ...), are the same to the bit."""
    if first.dtype != second.dtype or first.shape != second.shape:
        raise Broken(
            f"expected {expected}, got {first.dtype} {first.shape} and {second.dtype} {second.shape}"
        )
    if first.tobytes() != second.tobytes():
        raise Broken(
            f"expected {expected}, got {int((first != second).sum())} of {first.size} values that differ"
        )


def expect_error(kind: type[Exception], call: Callable[[], Any], expected: str) -> None:
    """Raise Broken unless a call raises an error of a kind."""
    try:
        call()
    except kind:
        return
    except Exception as error:
        raise Broken(f"expected {kind.__name__} {expected}, got {type(error).__name__}: {error}") from error
    raise Broken(f"expected {kind.__name__} {expected}, got no error")


def stored_and_read(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Write arrays as npz and the rest as JSON, without pickle, and return what is read back."""
    file = io.BytesIO()
    matrices: dict[str, Any] = {
        name: value for name, value in arrays.items() if isinstance(value, np.ndarray)
    }
    np.savez(file, allow_pickle=False, **matrices)
    text = json.dumps({name: value for name, value in arrays.items() if not isinstance(value, np.ndarray)})
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        return {**loaded, **json.loads(text)}


def describes_itself(subject: Subject) -> None:
    """The docstring's first line describes the method, and `Source:` cites it."""
    text = subject.module.__doc__ or ""
    first, _, rest = text.partition("\n")
    expect(first.endswith("."), "a first line that ends with a full stop", repr(first))
    has_source = re.search(r"^(Source|Reference): ", rest, flags=re.MULTILINE)
    expect(has_source, "a line `Source: ...`", "none")


def searches_around_its_defaults(subject: Subject) -> str | None:
    """SEARCH_SPACE holds distributions of parameters, whose defaults lie inside."""
    defaults = subject.module.build().get_params()
    for name, distribution in subject.module.SEARCH_SPACE.items():
        expect(
            name in defaults,
            f"{name} of SEARCH_SPACE to be one of {', '.join(defaults) or 'none'}",
            repr(name),
        )
        is_inside = distribution._contains(distribution.to_internal_repr(defaults[name]))
        expect(is_inside, f"the default of {name} to lie in {distribution}", repr(defaults[name]))
    return None if subject.module.SEARCH_SPACE else NO_SPACE


def keeps_its_parameters(subject: Subject) -> None:
    """Parameters are stored untouched and copied by clone; an unknown one is a TypeError."""
    expect_error(TypeError, lambda: subject.module.build(no_such_parameter=1), "for an unknown parameter")
    before = subject.build().get_params()
    copy = clone(subject.fitted)
    for params in (subject.fitted.get_params(), copy.get_params()):
        expect(params == before, f"the parameters {before} after fit and clone", params)


def is_unfitted_until_fit(subject: Subject) -> None:
    """Before `fit`, also as a clone, it raises scikit-learn's NotFittedError."""
    copy = clone(subject.fitted)
    expect_error(NotFittedError, lambda: subject.output(copy), "before fit")
    expect_error(NotFittedError, copy.to_arrays, "from to_arrays before fit")


def gives_one_row_a_document(subject: Subject) -> str | None:
    """Features are float32, csr or C-contiguous, a row a document, finite and not all zero; each has its own name."""
    if subject.is_classifier:
        return NO_FEATURES
    features = subject.fitted.transform(subject.documents.test)
    expect(features.dtype == np.float32, "float32", features.dtype)
    is_kind = features.format == "csr" if sp.issparse(features) else isinstance(features, np.ndarray)
    expect(is_kind, "a csr matrix or an array", type(features).__name__)
    expect(sp.issparse(features) or features.flags.c_contiguous, "rows that lie one after another", "columns")
    names = list(subject.fitted.get_feature_names_out())
    wanted = f"shape ({N_TEST}, {len(names)}), one name a column"
    expect(features.shape == (N_TEST, len(names)), wanted, features.shape)
    n_twice = len(names) - len(set(names))
    expect(not n_twice, "a name of its own for each feature", f"{n_twice} twice")
    expect_finite(features)
    expect(dense(features).any(), "features that are not all zero", "zeros")
    return None


def scores_every_class(subject: Subject) -> str | None:
    """A classifier scores every class, of two the second, and every label; it predicts the best, or those above 0."""
    if not subject.is_classifier:
        return "it is no classifier"
    test, labels = subject.documents.test, subject.documents.labels
    names = np.array([11, -3, 40])[subject.documents.classes]
    for y, shape in ((names, (N_TEST, 3)), (names[::-1] == 40, (N_TEST,)), (names * 0 + 6, (N_TEST,))):
        method = subject.fit(subject.build(), y=y)
        classes, scores = method.classes_, subject.output(method)
        expect(classes.tolist() == np.unique(y).tolist(), f"the classes {np.unique(y)}, sorted", classes)
        expect(
            scores.shape == shape, f"of {len(classes)} classes decision values of shape {shape}", scores.shape
        )
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0) & (len(classes) == 2)
        expect_finite(scores)
        expect_same(
            method.predict(test), classes[best.astype(int)], "the class of the highest decision value"
        )
        _expect_export(subject, method)
    # Columns: three labels, one that no document has, one that all have.
    more = np.column_stack([labels, labels[:, 0] * 0, labels[:, 0] * 0 + 1])
    for y in (more, sp.csr_matrix(more)):
        method = subject.fit(subject.build(), y=y)
        scores, predicted = subject.output(method), method.predict(test)
        expect(
            scores.shape == (N_TEST, 5), f"of 5 labels decision values of shape ({N_TEST}, 5)", scores.shape
        )
        expect_finite(scores)
        expect_same(dense(predicted).astype(bool), scores > 0, "the labels with scores above 0")
        is_constant = (scores[:, 3] <= 0).all() and (scores[:, 4] > 0).all()
        expect(is_constant, "no score above 0 for a label of no document, all for one of all", scores[0, 3:])
        _expect_export(subject, method)
    wrong = functools.partial(subject.fit, subject.build(), y=names[1:])
    expect_error(ValueError, wrong, "for another number of labels than documents")
    return None


def fits_and_transforms_at_once(subject: Subject) -> str | None:
    """`fit_transform` gives the bits of `fit`, then `transform`."""
    if subject.is_classifier:
        return NO_FEATURES
    train = subject.documents.train
    together = dense(subject.build().fit_transform(train, *subject.labels(), **subject.needs()))
    expect_same(together, subject.output(subject.fitted, train), "the same bits from fit_transform")
    return None


def repeats_to_the_bit(subject: Subject) -> None:
    """The same seed and documents give the same bits again."""
    again = subject.fit(subject.build())
    expect_same(subject.output(again), subject.output(subject.fitted), "the same bits from a second fit")


def treats_documents_alone(subject: Subject) -> None:
    """A document gets among others what it gets alone."""
    test = subject.documents.test
    alone = np.concatenate([subject.output(subject.fitted, test[i : i + 1]) for i in range(N_TEST)])
    worst = np.abs(alone - subject.output(subject.fitted)).max()
    is_same = np.allclose(alone, subject.output(subject.fitted), rtol=1e-5, atol=1e-6)
    expect(is_same, "the same row for a document alone", f"differences up to {worst:.2g}")


def reads_any_dtype(subject: Subject) -> str | None:
    """Counts of another dtype give the same bits."""
    if not subject.reads_counts:
        return NO_COUNTS
    train, test = subject.documents.train, subject.documents.test
    for dtype in (np.int64, np.float32, np.float64):
        method = subject.fit(subject.build(), train.astype(dtype))
        found = subject.output(method, test.astype(dtype))
        expect_same(found, subject.output(subject.fitted), f"the same bits for {np.dtype(dtype)} counts")
    return None


def _bits(documents: Any) -> list[bytes]:
    parts = (documents.data, documents.indices, documents.indptr) if sp.issparse(documents) else documents
    return [part.encode() if isinstance(part, str) else part.tobytes() for part in parts]


def leaves_its_input_alone(subject: Subject) -> None:
    """Documents and word vectors are untouched, also counts with duplicates and stored zeros, and not shared."""
    train = subject.documents.train
    if subject.reads_counts:
        train = train.astype(np.float32)
        half = train.data / 2  # each count as two entries in one place, and a zero stored in each row
        train = sp.csr_matrix(
            (np.column_stack([half, half]).ravel(), np.repeat(train.indices, 2), 2 * train.indptr),
            shape=train.shape,
        )
        train.data[train.indptr[0] : train.indptr[0] + 2] = [train.data[0] * 2, 0]
    before, vectors = _bits(train), subject.documents.word_vectors.tobytes()
    method = subject.fit(subject.build(), train)
    made = method.decision_function(train) if subject.is_classifier else method.transform(train)
    expect(_bits(train) == before, "the documents as they were given", "others after fit and transform")
    expect(subject.documents.word_vectors.tobytes() == vectors, "word vectors as they were given", "others")
    expect_same(
        subject.output(method), subject.output(subject.fitted), "the same bits for counts in two entries"
    )
    if subject.reads_counts:
        is_shared = np.shares_memory(made.data if sp.issparse(made) else made, train.data)
        expect(not is_shared, "features in memory of their own", "memory shared with the input")


def survives_export(subject: Subject) -> None:
    """`to_arrays` holds arrays and JSON values, and `from_arrays` of these gives the same bits, without pickle."""
    _expect_export(subject, subject.fitted)


def _expect_export(subject: Subject, method: Any) -> None:
    arrays = method.to_arrays()
    again = type(method).from_arrays(stored_and_read(arrays))
    params = again.get_params()
    expect(params == method.get_params(), f"the parameters {method.get_params()} after from_arrays", params)
    expect_same(subject.output(again), subject.output(method), "the same bits after from_arrays")
    expect(
        again.to_arrays().keys() == arrays.keys(), f"the arrays {list(arrays)} again", list(again.to_arrays())
    )
    if not subject.is_classifier:
        names = list(again.get_feature_names_out())
        expect(
            names == list(method.get_feature_names_out()),
            "the same feature names after from_arrays",
            names[:5],
        )


def runs_what_it_searches(subject: Subject) -> str | None:
    """Every choice of SEARCH_SPACE, the lower and, of fractions, the upper end run and survive export."""
    for name, distribution in subject.module.SEARCH_SPACE.items():
        ends = [distribution.low] if hasattr(distribution, "low") else []
        if ends and isinstance(distribution.high, float):
            ends.append(distribution.high)
        for value in getattr(distribution, "choices", ends):
            try:
                method = subject.fit(subject.build(**{name: value}))
                expect_finite(subject.output(method))
                _expect_export(subject, method)
            except Exception as error:
                raise Broken(f"with {name}={value!r}: {type(error).__name__}: {error}") from error
    return None if subject.module.SEARCH_SPACE else NO_SPACE


def stays_finite_on_odd_documents(subject: Subject) -> None:
    """An empty document and one of terms that no training document has are ordinary input, and finite."""
    rng = np.random.default_rng(3)
    ids = [rng.integers(4, N_TERMS - 4, size=30).astype(np.int32) for _ in range(N_TRAIN)]
    nothing, unseen = np.zeros(0, dtype=np.int32), np.array([0, 1, 2, 3, 0], dtype=np.int32)
    ids[3] = nothing
    method = subject.fit(subject.build(), subject.read(ids))
    odd, n_odd = subject.read([nothing, unseen, ids[0]]), 3
    if subject.module.INPUT == "texts":
        odd += ["\n\t ", "\x00\u200b", "Ünïcödé 漢字 🙂", "a" * 10_000]
        n_odd = len(odd)
    found = subject.output(method, odd)
    expect_finite(found)
    expect(found.shape[0] == n_odd, f"a row for each of {n_odd} documents", found.shape)


def refuses_impossible_counts(subject: Subject) -> str | None:
    """Negative counts, NaN, infinity and another number of terms than in `fit` are ValueErrors."""
    if not subject.reads_counts:
        return NO_COUNTS
    for value in (-1.0, np.nan, np.inf):
        wrong = subject.documents.train.astype(np.float64)
        wrong.data[7] = value
        expect_error(
            ValueError, functools.partial(subject.fit, subject.build(), wrong), f"for a count of {value}"
        )
    wider = sp.csr_matrix(np.ones((3, N_TERMS + 1), dtype=np.int32))
    expect_error(ValueError, lambda: subject.output(subject.fitted, wider), "for another number of terms")
    return None


def sees_labels_only_where_it_may(subject: Subject) -> str | None:
    """Labels change a representation where USES_LABELS says so and nowhere else; where it does, `fit` needs them."""
    if subject.is_classifier:
        return "it is a classifier"
    said = getattr(subject.module, "USES_LABELS", False)
    if said is not True:
        for y in (subject.documents.classes, subject.documents.classes[::-1].copy()):
            found = subject.output(subject.fit(subject.build(), y=y))
            expect_same(found, subject.output(subject.fitted), "the same bits whatever the labels")
    settings = [{}] if said is True else [{n: v} for n, values in (said or {}).items() for v in values]
    for params in settings:
        fit = functools.partial(subject.build(**params).fit, subject.documents.train, **subject.needs())
        expect_error(ValueError, fit, f"with {params} without labels" if params else "without labels")
        for y in (subject.documents.classes * 7, subject.documents.classes * 0):
            expect_finite(subject.output(fit(y)))
        with contextlib.suppress(ValueError):  # it may refuse several labels a document
            expect_finite(subject.output(fit(sp.csr_matrix(subject.documents.labels))))
    return None


CHECKS: tuple[Callable[[Subject], str | None], ...] = (
    describes_itself,
    searches_around_its_defaults,
    keeps_its_parameters,
    is_unfitted_until_fit,
    gives_one_row_a_document,
    scores_every_class,
    fits_and_transforms_at_once,
    repeats_to_the_bit,
    treats_documents_alone,
    reads_any_dtype,
    leaves_its_input_alone,
    survives_export,
    runs_what_it_searches,
    stays_finite_on_odd_documents,
    refuses_impossible_counts,
    sees_labels_only_where_it_may,
)


def run_checks(subject: Subject) -> Iterator[tuple[str, str | Exception | None]]:
    """Run every check; yield what it holds a method to, and what it returned or raised."""
    for check in CHECKS:
        said = " ".join((check.__doc__ or "").split())
        try:
            yield said, check(subject)
        except Exception as error:  # whatever the method raises
            yield said, error
