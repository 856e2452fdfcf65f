"""Vectorize: turn texts into token ids in reading order, a vocabulary, and a csr count matrix; or leave them alone."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job


def reference(corpus: Reference, rule: Mapping[str, Any] | None, transductive: bool) -> Reference:
    """Return the vectors artifact of a corpus under a token rule (the fields of `tasks.tokens.TokenRule`).

    Files: terms.json, and for train and test `<part>_ids.npy` int32, `<part>_offsets.npy` int64 and `<part>_counts.npz`
    csr (n_documents, n_terms). Without a rule, as for a method that reads raw texts, there are no terms and nothing
    else: what stands in the vectors' place then depends on the corpus and the protocol alone.
    """
    params = {"rule": None if rule is None else dict(rule), "transductive": transductive}
    function = "leave_alone" if rule is None else "compute"
    return refer(f"textbench.tasks.vectorize:{function}", params, {"corpus": corpus})


def leave_alone(job: "Job") -> None:
    """Write that there are no terms: the texts are read as they are."""
    job.save_json("terms", [])


def compute(job: "Job") -> None:
    """Tokenise both parts under the rule; the vocabulary comes from training texts, or from both if transductive."""
    from textbench.tasks.corpus import read_corpus
    from textbench.tasks.tokens import TokenRule, vectorize

    corpus = read_corpus(job.open("corpus"))
    rule = TokenRule(**job.params["rule"])
    vectors = vectorize(corpus.train_texts, corpus.test_texts, rule, transductive=job.params["transductive"])
    for part in ("train", "test"):
        job.save_array(f"{part}_ids", getattr(vectors, f"{part}_ids"))
        job.save_array(f"{part}_offsets", getattr(vectors, f"{part}_offsets"))
        job.save_matrix(f"{part}_counts", getattr(vectors, f"{part}_counts"))
    job.save_json("terms", vectors.terms)
