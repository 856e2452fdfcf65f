"""Methods as scikit-learn estimators of raw texts: tokens, counts, word vectors and the method itself in one `fit`.

Fitted to the training texts of a data set under its token rule, an estimator gives to the bit what the stages of a run
give under the honest protocol.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from textbench.featurizers._topical.token_topics import sample
from textbench.flows.explain.export import as_read
from textbench.flows.plan import checks
from textbench.flows.plan.cell import OWN_RULE
from textbench.tasks import InputError, catalogue, token_topics, word_vectors
from textbench.tasks.featurize import OF_OUTPUTS, PREFIX, TOPICS_PREFIX, own_params, params_of
from textbench.tasks.sources.user_frame import checked_texts, is_missing
from textbench.tasks.storage.store import THREADS
from textbench.tasks.tokens import encode, token_rule, vectorize
from textbench.tasks.tracking.settings import shown

if TYPE_CHECKING:
    from types import ModuleType


class _OnTexts(BaseEstimator):
    """A method on raw texts: `name` in the catalogue (or the path of a Python file), its parameters, and the rest.

    `rule` is the name of a token rule (`tasks.tokens.RULES`). `random_state` is the seed of a method that draws random
    numbers, and of what is made for it. Other parameters are those of the method itself, and, where they begin with
    `word_vectors__` or `token_topics__`, those of what it needs (`tasks.word_vectors`, `tasks.token_topics`); what is
    left out has its default, and is not among `get_params`.

    Learned: `terms_`, the vocabulary, none for a method that reads the texts themselves; `rule_`, the token rule, of
    n-grams as long as the method reads; `method_`, the fitted method. Raises InputError for unknown names and
    parameters, and for texts that are none.
    """

    def __init__(self, name: str, *, rule: str = OWN_RULE, random_state: int = 0, **params: Any) -> None:
        self.name = name
        self.rule = rule
        self.random_state = random_state
        self.params = params

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters that were given, those of the method among them."""
        own = {"name": self.name, "rule": self.rule, "random_state": self.random_state}
        return own | dict(self.params)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of the method, and of its word vectors (`word_vectors__epochs`)."""
        for name in ("name", "rule", "random_state"):
            setattr(self, name, params.pop(name, getattr(self, name)))
        self.params = dict(self.params) | params
        self._checked()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "method_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags

    def _checked(self) -> tuple[catalogue.Entry, "ModuleType", dict[str, Any]]:
        """Return the method's file, loaded too, and its own parameters, all checked."""
        entry = catalogue.method(self.name)
        if entry.is_join:
            raise InputError(
                "join is no estimator: put two of them side by side by scikit-learn's FeatureUnion, which scales them "
                "by transformer_weights"
            )
        checks.check_parameters(entry, self.params)
        checks.check_seed(self.random_state)
        own = own_params(self.params)
        own |= {"random_state": self.random_state} if entry.is_seeded else {}
        return entry, entry.load(), own

    def _learn(self, texts: Iterable[str]) -> tuple[Any, Any, dict[str, Any]]:
        """Learn the vocabulary; return the method unfitted, what it reads of the texts, and what `fit` takes beside."""
        entry, module, own = self._checked()
        rule, given = token_rule(self.rule), checked_texts(texts)
        self.rule_ = replace(rule, max_n=max(rule.max_n, entry.constant("MAX_N", 1)))
        self.terms_, self._input = [], module.INPUT
        if entry.reads_texts_alone:
            return module.build(**own), given, {}
        found = vectorize(given, [], self.rule_)
        self.terms_ = found.terms
        ids = np.split(found.train_ids, found.train_offsets[1:-1])
        needed = self._needed(entry.needs, ids, found.terms)
        if entry.reads_texts:
            return module.build(**own), given, needed
        documents = as_read(found.train_ids, found.train_offsets, found.terms, self.rule_, module.INPUT)
        return module.build(**own), documents, needed

    def _needed(self, needs: Sequence[str], ids: "list[np.ndarray]", terms: list[str]) -> dict[str, Any]:
        """Return what `fit` takes beside documents and labels, made of these documents' token ids."""
        found: dict[str, Any] = {"terms": terms}
        training, seed = params_of(self.params, PREFIX), self.random_state
        if OF_OUTPUTS & set(needs):
            made = word_vectors.train_with_outputs(ids, terms, training, seed)
            found |= zip(("word_vectors", "output_vectors", "vector_norms"), made, strict=True)
        elif "word_vectors" in needs:
            found["word_vectors"] = word_vectors.train(ids, terms, training, seed)
        if "token_topics" in needs:
            topics = {**token_topics.DEFAULTS, **params_of(self.params, TOPICS_PREFIX)}
            found["token_topics"] = sample(ids, seed, **topics)
        return {name: found[name] for name in needs}

    def _read(self, texts: Iterable[str]) -> Any:
        check_is_fitted(self)
        given = checked_texts(texts)
        if self._input == "texts":
            return given
        ids, offsets = encode(given, self.terms_, self.rule_)
        return as_read(ids, offsets, self.terms_, self.rule_, self._input)


class TextFeatures(TransformerMixin, _OnTexts):
    """A representation of raw texts, as a scikit-learn transformer: csr or float32 (n_texts, n_features).

    A method that uses labels takes them as `y`: a label a text, or an indicator (n_texts, n_labels).
    """

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Learn the vocabulary and the representation from texts."""
        self.fit_transform(texts, y)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None, **_: Any) -> "np.ndarray | csr_matrix":
        """Learn from texts, and return their features."""
        with threadpool_limits(THREADS):
            method, documents, needed = self._learn(texts)
            if catalogue.method(self.name).uses_labels(self.params):
                features = method.fit(documents, _targets(y)[1], **needed).transform(documents)
            else:
                features = method.fit_transform(documents, **needed)
        self.method_ = method
        return features

    def transform(self, texts: Iterable[str]) -> "np.ndarray | csr_matrix":
        """Return the features of texts; terms that were not learned from are passed over."""
        documents = self._read(texts)
        with threadpool_limits(THREADS):
            return self.method_.transform(documents)

    def get_feature_names_out(self, input_features: object = None) -> "np.ndarray":
        """Return a name for each column of `transform`, from the terms; `input_features` are not read."""
        check_is_fitted(self)
        terms = None if self._input == "texts" else self.terms_
        return np.asarray(self.method_.get_feature_names_out(terms), dtype=object)


def _has_probabilities(estimator: "TextClassifier") -> bool:
    return hasattr(estimator._checked()[1].build(), "predict_proba")


class TextClassifier(ClassifierMixin, _OnTexts):
    """A method that classifies by itself, as a scikit-learn classifier of raw texts.

    `classes_` are the labels in order, of an indicator (n_texts, n_labels) its columns.
    """

    def fit(self, texts: Iterable[str], y: Any) -> Self:
        """Learn from texts and their labels."""
        classes, targets = _targets(y)
        with threadpool_limits(THREADS):
            method, documents, needed = self._learn(texts)
            self.method_ = method.fit(documents, targets, **needed)
        self.classes_ = classes
        return self

    def predict(self, texts: Iterable[str]) -> "np.ndarray | csr_matrix":
        """Return the label of each text, of several an indicator, csr int8 (n_texts, n_labels)."""
        found = self._asked("predict", texts)
        return self.classes_[found] if found.ndim == 1 else found

    def decision_function(self, texts: Iterable[str]) -> "np.ndarray":
        """Return a decision value for each class, (n_texts, n_classes); of two classes (n_texts,), the second one's."""
        return np.asarray(self._asked("decision_function", texts))

    @available_if(_has_probabilities)
    def predict_proba(self, texts: Iterable[str]) -> "np.ndarray":
        """Return the probability of each class, (n_texts, n_classes)."""
        return np.asarray(self._asked("predict_proba", texts))

    def _asked(self, question: str, texts: Iterable[str]) -> Any:
        documents = self._read(texts)
        with threadpool_limits(THREADS):
            return getattr(self.method_, question)(documents)


def _targets(y: Any) -> "tuple[np.ndarray, np.ndarray | csr_matrix]":
    """Return the classes, and the targets as a method takes them: positions in the classes, or an indicator, csr int8.

    y: a label a text, or an indicator (n_texts, n_labels). Raises InputError for anything else.
    """
    if y is None:
        raise InputError("this method uses labels: fit it with y")
    if issparse(y) or np.ndim(y) == 2:
        try:
            given = csr_matrix(y if issparse(y) else np.asarray(y).astype(float))
        except (TypeError, ValueError) as error:
            raise InputError(f"an indicator has two columns or more of 0 and 1, got {shown(y)}") from error
        if given.shape[1] < 2 or not np.isin(given.data, (0, 1)).all():
            values = ", ".join(f"{value:g}" for value in np.unique(given.data)[:3])
            raise InputError(
                f"an indicator has two columns or more of 0 and 1, got {given.shape[1]} with {values}; labels of one "
                "class a text are a list"
            )
        return np.arange(given.shape[1]), given.astype(np.int8)
    if np.ndim(y) != 1:
        raise InputError(
            f"labels must be one a text, or an indicator (n_texts, n_labels), got {np.ndim(y)} dimensions"
        )
    listed = list(y)
    if missing := [place for place, label in enumerate(listed) if is_missing(label)]:
        raise InputError(f"every text needs a label, got none at position {missing[0]}")
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    return classes, codes.astype(np.int64)


def method(text: str, **params: Any) -> TextFeatures | TextClassifier:
    """Return a method unfitted, its parameters checked: `scdv`, `lsi(n_components=100)` or the path of a Python file.

    Raises InputError for an unknown name or parameter, with the nearest.
    """
    name, fixed = catalogue.parse_method(text)
    kind = TextClassifier if catalogue.method(name).is_classifier else TextFeatures
    made = kind(name, **fixed | params)
    made._checked()
    return made
