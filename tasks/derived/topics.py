"""Topics: the first words of what a method has learned, and how coherent they are.

Source: D. Mekala, V. Gupta, B. Paranjape and H. Karnick, "SCDV: Sparse Composite Document Vectors using soft clustering
over distributional representations", EMNLP 2017, section 4.3 and table 4.
"""

from typing import TYPE_CHECKING

from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

    from textbench.tasks.storage.store import Artifact, Job

N_WORDS = 10


def reference(vectors: Reference, features: Reference) -> Reference:
    """Return the topics artifact of a features artifact: of topics of terms (`components_`), or of clusters of them.

    topics.json: `topics`, a list of {topic, words, umass, npmi}, the first ten words best first; `left_out`, the
    numbers of topics with fewer than ten terms; `n_documents`, those that coherence is counted over: the training
    part, transductive: both.
    """
    return refer(
        "textbench.tasks.derived.topics:compute",
        {"n_words": N_WORDS},
        {"vectors": vectors, "features": features},
    )


def compute(job: "Job") -> None:
    """Find the first words of each topic, and count in how many documents they occur together.

    Raises ValueError where no topic has as many words.
    """
    import numpy as np

    from textbench.evaluation.metrics.coherence import npmi, top_terms, umass

    vectors, n_words = job.open("vectors"), job.params["n_words"]
    terms, counts = vectors.json("terms"), read_counts(vectors)
    probabilities = term_probabilities(job.open("features"), counts)
    is_whole = (probabilities > 0).sum(axis=1) >= n_words
    kept = np.flatnonzero(is_whole)
    if not len(kept):
        raise ValueError(f"no topic has {n_words} terms, the most that one has is {n_most(probabilities)}")
    top = top_terms(probabilities[kept], n_words)
    coherence = zip(kept.tolist(), top, umass(top, counts), npmi(top, counts), strict=True)
    topics = [
        {"topic": number, "words": [terms[term] for term in words], "umass": float(u), "npmi": float(n)}
        for number, words, u, n in coherence
    ]
    left_out = np.flatnonzero(~is_whole).tolist()
    job.save_json("topics", {"topics": topics, "left_out": left_out, "n_documents": counts.shape[0]})


def n_most(probabilities: "np.ndarray") -> int:
    """Return how many terms the topic with most of them has."""
    return int((probabilities > 0).sum(axis=1).max(initial=0))


def read_counts(vectors: "Artifact") -> "csr_matrix":
    """Return the counts of the documents that may be learned from, csr (n_documents, n_terms)."""
    from scipy.sparse import vstack

    is_transductive = vectors.meta["recipe"]["params"]["transductive"]
    parts = ["train", "test"] if is_transductive else ["train"]
    return vstack([vectors.matrix(f"{part}_counts") for part in parts], format="csr")


def term_probabilities(features: "Artifact", counts: "csr_matrix") -> "np.ndarray":
    """Return P(term | topic), (n_topics, n_terms), of a fitted topic model or, by Bayes' rule, of soft clusters.

    Raises ValueError for a method that has learned neither.
    """
    import numpy as np

    from textbench.evaluation.metrics.coherence import term_probabilities_of_topics

    model = features.arrays("model")
    if "components_" in model and (model["components_"] >= 0).all():
        return model["components_"]
    occurrences = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    return term_probabilities_of_topics(memberships(features, counts.shape[1]), occurrences)


def memberships(features: "Artifact", n_terms: int) -> "np.ndarray":
    """Return P(cluster | term), float64 (n_terms, n_clusters), zero for a term without a vector.

    Raises ValueError for a method whose terms have no soft clusters.
    """
    import numpy as np

    model = features.arrays("model")
    if "term_memberships_" not in model:
        method = features.meta["recipe"]["params"]["method"]
        raise ValueError(
            f"topics are those of a topic model or of soft clusters of terms, {method} has neither"
        )
    found = np.zeros((n_terms, model["term_memberships_"].shape[1]))
    found[model["terms_"]] = model["term_memberships_"]
    return found
