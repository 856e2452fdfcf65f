"""Senses: the clusters that share a word between them, and the probability of each.

Source: D. Mekala, V. Gupta, B. Paranjape and H. Karnick, "SCDV: Sparse Composite Document Vectors using soft clustering
over distributional representations", EMNLP 2017, section 4.4 and table 5.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textbench.tasks.derived.topics import memberships, read_counts
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np

    from textbench.tasks.storage.store import Job

# Table 5: words of several senses, and the words that stand for each sense's cluster.
PUBLISHED = {
    "subject": [["physics", "chemistry", "math", "science"], ["mail", "letter", "email", "gmail"]],
    "interest": [["information", "enthusiasm", "question"], ["bank", "market", "finance", "investment"]],
    "break": [
        ["vacation", "holiday", "trip", "spring"],
        ["encryption", "cipher", "security", "privacy"],
        ["if", "elseif", "endif", "loop", "continue"],
    ],
    "unit": [["calculation", "distance", "mass", "length"], ["electronics", "kwh", "digital", "signal"]],
}
N_WORDS = 10
LEAST = 0.05  # a cluster in which a word has less is none of its senses


def reference(
    vectors: Reference, features: Reference, asked: Mapping[str, Sequence[Sequence[str]]]
) -> Reference:
    """Return the senses artifact of a features artifact of soft clusters, such as SCDV's.

    `asked`: word -> for each sense that is looked for, words that stand for it. senses.json, by word (None: it has no
    vector): `clusters`, those with P(cluster | word) >= 0.05, a list of {cluster, probability, words}, most probable
    first, with the first ten words of each; `senses`, for each asked sense {cluster, probability, words, known,
    support}: the cluster to which the words that stand for it belong most, on average over those that are `known`, that
    mean (`support`), and P(cluster | word). Cluster numbers mean nothing from one training to the next.
    """
    params = {"asked": {word: [list(sense) for sense in senses] for word, senses in asked.items()}}
    return refer(
        "textbench.tasks.derived.polysemy:compute",
        params,
        {"vectors": vectors, "features": features},
        stage="senses",
    )


def compute(job: "Job") -> None:
    """Look up the clusters of the asked words."""
    import numpy as np

    from textbench.evaluation.metrics.coherence import term_probabilities_of_topics

    vectors, asked = job.open("vectors"), job.params["asked"]
    terms, counts = vectors.json("terms"), read_counts(vectors)
    shares = memberships(job.open("features"), len(terms))
    occurrences = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    probabilities = term_probabilities_of_topics(shares, occurrences)
    first = [
        [terms[term] for term in np.argsort(-row, kind="stable")[:N_WORDS] if row[term] > 0]
        for row in probabilities
    ]
    place = {term: number for number, term in enumerate(terms)}
    found: dict[str, Any] = {}
    for word, senses in asked.items():
        own = shares[place[word]] if word in place else np.zeros(shares.shape[1])
        found[word] = None
        if own.any():
            found[word] = {
                "clusters": _clusters(own, first),
                "senses": [_sense(own, sense, shares, place) | {"words": list(sense)} for sense in senses],
            }
    job.save_json("senses", found)


def _clusters(own: "np.ndarray", first: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Return the clusters in which a word has a share, (n_clusters,), that counts."""
    order = sorted(range(len(own)), key=lambda cluster: -own[cluster])
    return [
        {"cluster": cluster, "probability": float(own[cluster]), "words": list(first[cluster])}
        for cluster in order
        if own[cluster] >= LEAST
    ]


def _sense(
    own: "np.ndarray", words: Sequence[str], shares: "np.ndarray", place: Mapping[str, int]
) -> dict[str, Any]:
    """Return the cluster to which words belong most, and a word's share in it; nothing where none has a vector."""
    known = [word for word in words if word in place and shares[place[word]].any()]
    if not known:
        return {"cluster": None, "probability": None, "support": None, "known": []}
    support = shares[[place[word] for word in known]].mean(axis=0)
    cluster = int(support.argmax())
    return {
        "cluster": cluster,
        "probability": float(own[cluster]),
        "support": float(support[cluster]),
        "known": known,
    }
