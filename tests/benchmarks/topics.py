"""LDA by three libraries, and NMF, with 100 topics each, on Reuters-65 and 20 Newsgroups."""

import hashlib
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from textbench.evaluation.metrics.coherence import npmi, top_terms, umass
from textbench.evaluation.probes.catalogue import build_probe
from textbench.evaluation.probes.tuning import choose_c
from textbench.featurizers import lda, nmf
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize

N_TOPICS = 100
RULE = "letters-stop-stem"
# (alpha, eta), for each library the best of {0.02, 0.1, 0.5} x {0.01, 0.1} by the probe's cross-validated
# accuracy on the training documents of Reuters-65 (gensim without 0.5 and 0.1 together).
PRIORS = {"textbench": (0.5, 0.01), "gensim": (0.5, 0.01), "scikit-learn": (0.5, 0.01)}

# Topics (n_topics, n_terms), and what gives the proportions of documents.
Model = tuple[np.ndarray, Callable[[sp.csr_matrix], np.ndarray]]


def textbench(counts: sp.csr_matrix, alpha: float, eta: float, seed: int) -> Model:
    """Ours: tomotopy's Gibbs sampler, 200 sweeps, one worker; proportions by maximum a posteriori."""
    model = lda.build(n_topics=N_TOPICS, alpha=alpha, eta=eta, random_state=seed).fit(counts)
    return model.components_, model.transform


def gensim(counts: sp.csr_matrix, alpha: float, eta: float, seed: int) -> Model:
    """gensim's online variational Bayes: 10 passes in batches of 2,000."""
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    def corpus(part: sp.csr_matrix) -> list:
        return list(Sparse2Corpus(part, documents_columns=False))

    model = LdaModel(
        corpus(counts),
        num_topics=N_TOPICS,
        id2word={term: str(term) for term in range(counts.shape[1])},
        alpha=np.full(N_TOPICS, alpha, dtype=np.float32),
        eta=eta,
        passes=10,
        eval_every=None,
        random_state=seed,
    )

    def transform(part: sp.csr_matrix) -> np.ndarray:
        gamma = model.inference(corpus(part))[0]
        return gamma / gamma.sum(axis=1, keepdims=True)

    return model.get_topics(), transform


def scikit_learn(counts: sp.csr_matrix, alpha: float, eta: float, seed: int) -> Model:
    """scikit-learn's online variational Bayes: 10 passes in batches of 256."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        N_TOPICS,
        doc_topic_prior=alpha,
        topic_word_prior=eta,
        learning_method="online",
        batch_size=256,
        max_iter=10,
        random_state=seed,
    ).fit(counts)
    return model.components_, model.transform


LIBRARIES = {"textbench": textbench, "gensim": gensim, "scikit-learn": scikit_learn}


def factors(counts: sp.csr_matrix, alpha: float, eta: float, seed: int) -> Model:
    """Non-negative matrix factorisation of TF-IDF; it has no priors."""
    model = nmf.build(n_topics=N_TOPICS, random_state=seed).fit(counts)
    return model.components_, model.transform


def compare(dataset: str, *, repeat: bool) -> None:
    """Print a row a method: seconds, accuracy, held-out coherence, and with `repeat` whether the bits repeat."""
    corpus = catalogue.dataset(dataset).load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule(RULE))
    train, test = vectors.train_counts, vectors.test_counts
    print(f"-- {dataset}: {train.shape[0]} + {test.shape[0]} documents, {train.shape[1]} terms, {RULE}")
    print("                   fit s  transform s  accuracy  UMass    NPMI  same bits again")
    for name, learn in [*LIBRARIES.items(), ("NMF", factors)]:
        priors = PRIORS.get(name, (0.0, 0.0))
        started = time.perf_counter()
        topics, transform = learn(train, *priors, 0)
        fitted = time.perf_counter()
        features = transform(train).astype(np.float32), transform(test).astype(np.float32)
        ended = time.perf_counter()
        C = choose_c(features[0], corpus.train_targets).C
        assert C is not None
        predicted = build_probe("linear-svm", C).fit(features[0], corpus.train_targets).predict(features[1])
        accuracy = np.mean(predicted == corpus.test_targets)
        scores = " ".join(f"{score:7.3f}" for score in coherence(topics, test))
        again = same_bits(topics, learn(train, *priors, 0)[0]) if repeat else "not asked"
        print(
            f"{name:16s} {fitted - started:7.1f} {ended - fitted:12.1f} {accuracy:9.4f} {scores}  {again}",
        )


def coherence(topics: np.ndarray, held_out: sp.csr_matrix) -> tuple[float, float]:
    """Mean UMass and NPMI over the topics' first 10 terms, of those that held-out documents have."""
    known = np.flatnonzero(np.diff(held_out.tocsc().indptr))
    topics = topics[:, known]
    first = top_terms(topics[(topics > 0).sum(axis=1) >= 10])
    return float(umass(first, held_out[:, known]).mean()), float(npmi(first, held_out[:, known]).mean())


def same_bits(one: np.ndarray, other: np.ndarray) -> str:
    """Say whether two arrays are equal to the bit."""
    digests = {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() for array in (one, other)}
    return "yes" if len(digests) == 1 else "no"


def main() -> None:
    """Print both tables; the bits are compared on the smaller corpus."""
    compare("reuters65", repeat=True)
    compare("20ng", repeat=False)
