"""SCDV and weight-AvgVec on 20 Newsgroups with word vectors trained on sentences, as in the authors' code.

Until June 2020 that code cut texts into sentences, kept stop words and single letters in them, and so clustered those
too; documents were without them. Here a sequence is a document, without them. Each change is added to the one before,
all else is as in the faithful protocol, and one C serves all: 3 for SCDV, 5 for weight-AvgVec, near what its folds
choose. The code's sentences are those of NLTK's Punkt, whose learned abbreviations no package carries; here one ends at
a full stop, a question or an exclamation mark before a space.
"""

import re
from collections.abc import Iterator, Mapping

import numpy as np
import scipy.sparse as sp

from tests.benchmarks.gaps._printing import over_draws
from tests.benchmarks.gaps.scdv import N_CLUSTERS, of_all_terms, with_clusters
from textbench.evaluation.probes.catalogue import LinearSVMProbe
from textbench.featurizers._gaussian_mixture import fit_mixture
from textbench.featurizers.scdv import Scdv
from textbench.featurizers.tfidf_avgvec import TfidfAvgVec
from textbench.tasks import catalogue, word_vectors
from textbench.tasks.tokens import RULES, TokenRule, vectorize

EVERY_WORD = TokenRule(ascii_fold=True)  # that of `scdv`, stop words and single letters kept
# Signs in whose place the authors' code puts a space before it looks for sentences.
SIGNS = re.compile(r"[\n|><\-+^\[\]#]|``|`")
END = re.compile(r"(?<=[.!?])[\"')]*\s+")
C = {"SCDV": 3.0, "weight-AvgVec": 5.0}
SPARSITY = 0.04
# How training texts are cut, by which rule, and whether stop words are clustered too.
CHANGES: Mapping[str, tuple[bool, TokenRule, bool]] = {
    "as here": (False, RULES["scdv"], False),
    "sentences": (True, RULES["scdv"], False),
    "sentences with stop words and single letters": (True, EVERY_WORD, False),
    "the same, clustered too": (True, EVERY_WORD, True),
}


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, in order."""
    yield from END.split(SIGNS.sub(" ", text).strip())


def trained(texts: list[str], rule: TokenRule, seed: int) -> tuple[list[str], np.ndarray]:
    """Return the terms of these sequences and their vectors, float32 (n_terms, 200), zero for rare ones."""
    vectors = vectorize(texts, texts[:1], rule)
    ids = np.split(vectors.train_ids, vectors.train_offsets[1:-1])
    return vectors.terms, word_vectors.train([one for one in ids if len(one)], vectors.terms, {}, seed)


def clustered_with_all(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Return P(cluster | term) of all terms that have a vector (n_terms, 200), zeros for the others."""
    known = np.flatnonzero(vectors.any(axis=1))
    shares = fit_mixture(vectors[known], N_CLUSTERS, "tied", seed=seed).memberships
    return of_all_terms(shares, known, len(vectors))


def run(*names: str, seeds: tuple[int, ...] = (0,)) -> None:
    """Print the accuracy of both methods for each of these changes and each seed, and the means."""
    corpus = catalogue.dataset("20ng").load().load()
    y, target = corpus.train_targets, corpus.test_targets
    texts = [*corpus.train_texts, *corpus.test_texts]
    cut = [sentence for text in texts for sentence in sentences(text)]
    vectors = vectorize(corpus.train_texts, corpus.test_texts, RULES["scdv"], transductive=True)
    train, test = vectors.train_counts, vectors.test_counts
    print(f"{len(texts)} texts, {len(cut)} sentences, {len(vectors.terms)} terms of documents")
    figures: dict[str, list[float]] = {}
    for seed in seeds:
        known: dict[tuple[bool, TokenRule], tuple[list[str], np.ndarray]] = {}
        for name in names:
            in_sentences, rule, clustered = CHANGES[name]
            if (in_sentences, rule) not in known:
                known[in_sentences, rule] = trained(cut if in_sentences else texts, rule, seed)
            terms, own = known[in_sentences, rule]
            place = {term: number for number, term in enumerate(terms)}
            rows = own[[place[term] for term in vectors.terms]]
            counts = sp.vstack([train, test], format="csr")
            model = Scdv(n_clusters=N_CLUSTERS, sparsity=SPARSITY, random_state=seed)
            fitted = {"SCDV": model.fit(counts, word_vectors=rows)}
            if clustered:
                shares = clustered_with_all(own, seed)[[place[vectors.terms[term]] for term in model.terms_]]
                with_clusters(model, shares, counts).threshold_ *= SPARSITY
            else:
                fitted["weight-AvgVec"] = TfidfAvgVec().fit(counts, word_vectors=rows)
            for method, features in fitted.items():
                probe = LinearSVMProbe(C[method], max_iter=1000, scaled=False).fit(
                    features.transform(train), y
                )
                right = probe.predict(features.transform(test)) == target
                figures.setdefault(f"{method}, {name}", []).append(float(right.mean()))
                print(f"seed {seed}: {method}, {name}: {right.mean():.4f}", flush=True)
    for what, values in figures.items():
        print(f"{what}: {over_draws(values)}")


def main() -> None:
    """Print all changes, of one seed."""
    run(*CHANGES)
