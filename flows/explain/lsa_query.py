"""Querying a library by latent semantic analysis: words in, documents above a cosine out, each one explained.

The seven steps of P. Tiňo's lecture notes on document mining, section 4, for `lsa-pca`: TF-IDF weights of equation (3),
eigenvectors U of their covariance, documents and query projected as U^T x, and the cosine between them. `lsi` does the
same with a truncated SVD of its own weights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from textbench.flows.plan.cell import OWN_RULE, own_name
from textbench.tasks import InputError, catalogue, collect, featurize, ingest, vectorize
from textbench.tasks.catalogue import nearest
from textbench.tasks.sources import user_data
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Artifact, Store

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

METHODS = ("lsa-pca", "lsi")
N_CONCEPTS = 3
N_TERMS = 8
START = 70  # characters of a document that stand for it


@dataclass(frozen=True)
class Question:
    """What is asked: words, of a data set's training documents or a collection's documents, by which method.

    `own` holds the fields of `tasks.sources.user_data.UserData`: the user's documents, in place of a data set.
    """

    dataset: str
    text: str
    method: str = "lsa-pca"
    threshold: float = 0.4
    top: int = 10
    seed: int = 0
    own: Mapping[str, Any] | None = None

    def check(self) -> None:
        """Raise InputError for a method that has no concepts and for numbers out of range."""
        name, _ = catalogue.parse_method(self.method)
        if name not in METHODS:
            raise InputError(
                f"a query needs a method of concepts, got {self.method!r}; {nearest(name, METHODS)}"
            )
        if not -1 <= self.threshold <= 1:
            raise InputError(f"--threshold is a cosine in -1 .. 1, got {self.threshold:g}")
        if self.top < 1:
            raise InputError(f"--top must be at least 1, got {self.top}")


@dataclass(frozen=True)
class Concept:
    """An axis of the concept space on which the query lies: its share of the query's length, and its top terms."""

    axis: int
    share: float
    terms: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Match:
    """A document above the threshold: its number in the library, cosine, and the query's terms that it has.

    `bits` is filled where an explanation was asked for: the document's TF-IDF weights as contributions to the
    cross-entropy, and its K-L divergence from the library, as printed and with Q normalised.
    """

    document: int
    name: str
    cosine: float
    start: str
    matched: Sequence[str]
    bits: dict[str, Any] | None = None


@dataclass(frozen=True)
class Answer:
    """What a query found: how the words were read, its concepts, and the documents, nearest first."""

    dataset: str
    method: str
    known: Sequence[str]
    n_unknown: int
    n_documents: int
    n_above: int
    concepts: Sequence[Concept]
    matches: Sequence[Match]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def ask(question: Question, store: Store, explain: bool = False) -> Answer:
    """Return the answer to a query from the store, which learns what is missing first.

    Raises InputError as `Question.check` does, and where no word of the query is known to the library.
    """
    import numpy as np

    from textbench.evaluation.metrics.ranked_retrieval import rank

    question.check()
    library = _Library(question, store)
    counts, n_unknown = library.read(question.text)
    cosines, projected = library.cosines(counts)
    ranked = rank(cosines[None, :], np.arange(len(cosines)), depth=len(cosines))[0]
    above = ranked.documents[ranked.scores > question.threshold]
    matches = [library.match(int(d), float(cosines[d]), counts, explain) for d in above[: question.top]]
    return Answer(
        dataset=library.name,
        method=question.method,
        known=[library.terms[i] for i in counts.indices],
        n_unknown=n_unknown,
        n_documents=len(cosines),
        n_above=len(above),
        concepts=library.concepts(projected),
        matches=matches,
    )


class _Library:
    """The documents that are asked, in the three forms that an answer needs: texts, counts, and concepts."""

    def __init__(self, question: Question, store: Store) -> None:
        from textbench.tasks.tokens import TokenRule

        corpus, vectors = _own_references(question.own) if question.own else _references(question.dataset)
        self.name = own_name(corpus) if question.own else question.dataset
        ingest.ensure(store, corpus)
        name, params = catalogue.parse_method(question.method)
        self._features = store.open(featurize.reference(vectors, name, params, question.seed))
        self._vectors = store.open(vectors)
        self._corpus: Artifact = store.open(corpus)
        self._module = catalogue.method(name).load()
        self._rule = TokenRule(**self._vectors.meta["recipe"]["params"]["rule"])
        self._counts: csr_matrix = self._vectors.matrix("train_counts")
        self.terms: list[str] = self._vectors.json("terms")
        self._texts = self._corpus.table("train")

    def read(self, text: str) -> "tuple[csr_matrix, int]":
        """Return the query as counts, csr (1, n_terms), and how many of its words the library does not know."""
        from textbench.tasks.tokens import count, encode, vectorize

        ids, offsets = encode([text], self.terms, self._rule)
        if not len(ids):
            raise InputError(
                f"no word of {text!r} is in the vocabulary of {len(self.terms)} terms; ask with words of the documents"
            )
        # What the rule makes of the text by itself: words it drops are not unknown.
        n_words = len(vectorize([text], [], self._rule).train_ids)
        return count(ids, offsets, self.terms, self._rule), n_words - len(ids)

    def cosines(self, counts: "csr_matrix") -> "tuple[np.ndarray, np.ndarray]":
        """Return the cosine of every document, float32 (n_documents,), and the projected query, (n_concepts,)."""
        from textbench.evaluation.rankers import cosines

        method = self._module.build().from_arrays(featurize.load_arrays(self._features, "model"))
        projected = method.transform(counts)
        self._components = method.components_
        return cosines(projected, self._features.matrix("train"))[0], projected[0]

    def concepts(self, projected: "np.ndarray") -> list[Concept]:
        """Return the axes on which most of the query lies, each with its heaviest terms."""
        import numpy as np

        squares = projected.astype(np.float64) ** 2
        if not squares.sum():
            return []
        axes = np.argsort(-squares, kind="stable")[:N_CONCEPTS]
        return [
            Concept(int(axis), float(squares[axis] / squares.sum()), self._top_terms(axis)) for axis in axes
        ]

    def _top_terms(self, axis: int) -> list[tuple[str, float]]:
        import numpy as np

        weights = self._components[axis]
        top = np.argsort(-np.abs(weights), kind="stable")[:N_TERMS]
        return [(self.terms[i], round(float(weights[i]), 4)) for i in top]

    def match(self, document: int, cosine: float, counts: "csr_matrix", explain: bool) -> Match:
        """Describe one document."""
        has = set(self._counts[document].indices.tolist())
        name = self._texts["id"][document].as_py() if "id" in self._texts.column_names else str(document)
        text = " ".join(self._texts["text"][document].as_py().split())
        return Match(
            document=document,
            name=name,
            cosine=cosine,
            start=text[:START],
            matched=[self.terms[i] for i in counts.indices if i in has],
            bits=self._bits(document) if explain else None,
        )

    def _bits(self, document: int) -> dict[str, Any]:
        import numpy as np

        from textbench.evaluation.metrics.cross_entropy import bits

        n_documents, n_terms = self._counts.shape
        frequency = np.bincount(self._counts.indices, minlength=n_terms)
        found = bits(self._counts[document].toarray()[0], frequency, n_documents)
        order = np.argsort(-found.weights, kind="stable")
        return {
            "terms": [
                {
                    "term": self.terms[found.terms[i]],
                    "p": float(found.p[i]),
                    "q": float(found.q[i]),
                    "bits": float(found.weights[i]),
                }
                for i in order
            ],
            "cross_entropy": found.cross_entropy,
            "entropy": found.entropy,
            "divergence": found.divergence,
            "divergence_normalised": found.divergence_normalised,
        }


def _references(name: str) -> tuple[Reference, Reference]:
    """Return the corpus and vectors artifacts of a data set or collection, under its own token rule."""
    if name in catalogue.collections():
        corpus, rule = collect.reference(name), catalogue.collection(name).constant("RULE")
    elif name in catalogue.datasets():
        corpus, rule = ingest.reference(name), catalogue.dataset(name).constant("RULE")
    else:
        known = [*catalogue.datasets(), *catalogue.collections()]
        raise InputError(f"there is no data set or collection {name!r}; {nearest(name, known)}")
    return corpus, _vectors(corpus, rule)


def _own_references(own: Mapping[str, Any]) -> tuple[Reference, Reference]:
    """Return the corpus and vectors artifacts of the user's own documents."""
    corpus = user_data.reference(user_data.UserData(**own))
    return corpus, _vectors(corpus, OWN_RULE)


def _vectors(corpus: Reference, rule: str) -> Reference:
    from textbench.tasks.tokens import token_rule

    return vectorize.reference(corpus, asdict(token_rule(rule)), False)
