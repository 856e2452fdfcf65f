"""What the SCDV paper says of topics and clusters of words, and the artifacts that answer it.

Numbers of topics and clusters mean nothing from one training to the next, so that a published one is looked for by its
words: the topic that shares most of its first ten, the cluster to which they belong most.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from textbench.evaluation.claims.published import METHODS, Claim, read_claims
from textbench.flows.plan.derived import DerivedArtifact, plan_derived
from textbench.flows.plan.request import DerivedRequest
from textbench.flows.plan.suites import parts
from textbench.flows.referee.measurement import FaithfulRuns, Measurement, over_seeds
from textbench.tasks.storage.store import Store

SUITE, PAPER, DATASET = "scdv", "scdv-2017", "20ng"
METRICS = ("umass-coherence@10", "p-cluster-given-word")  # what their names begin with
# By the paper's names: who learns the 80 topics of section 4.3 and table 4.
TOPICS_BY = {"GMM": "scdv(n_clusters=80)", "LTSG": METHODS["LTSG"], "LDA": "lda(n_topics=80)"}
# Table 4: the first words of three topics, as printed; "heath" is as printed too.
PRINTED = {
    ("image", "GMM"): "file bit image files color format images jpeg gif program",
    ("image", "LTSG"): "image jpeg file gif format files convert color formats images",
    ("image", "LDA"): "image file color gif jpeg file format bit images quality",
    ("health", "GMM"): "heath study medical drug test drugs studies disease education age",
    ("health", "LTSG"): "stimulation diseases disease toxin toxic newsletter staff volume heaths aids",
    ("health", "LDA"): "doctor disease coupons treatment pain medical day microorganism medicine body",
    ("mail", "GMM"): "ftp mail internet phone email send opinions fax address box",
    ("mail", "LTSG"): "anonymous faq send ftp mailing server mail alt archive email",
    ("mail", "LDA"): "list mail information internet send posting email group news anonymous",
}


def made(home: Path, *stages: str) -> list[tuple[DerivedArtifact, Path]]:
    """Return the suite's pieces of these stages that are stored, each once, by seed, with the folder of its files."""

    store = Store(home / "store")
    asked = [part.request for part in parts(SUITE) if isinstance(part.request, DerivedRequest)]
    planned = [piece for request in asked for piece in plan_derived(request)]
    found = {piece.key: piece for piece in planned if piece.stage in stages and store.has(piece.reference)}
    return [(p, store.folder(p.reference)) for p in sorted(found.values(), key=lambda piece: piece.seed)]


def answers(results: FaithfulRuns) -> Callable[[Claim], Measurement | None]:
    """Return what answers a claim about one of `METRICS`: None while its artifacts are missing."""
    known = cache(lambda: figures(results.home))

    def answer(claim: Claim) -> Measurement | None:
        values, rows = known().get(claim.id, ((), ()))
        return over_seeds(values, rows) if values else None

    return answer


def figures(home: Path) -> dict[str, tuple[list[float], list[dict[str, Any]]]]:
    """Return by claim what topics and clusters say, a figure a seed, and the artifacts as rows like those of runs."""
    pieces = [(piece, read(folder, piece.stage)) for piece, folder in made(home, "topics", "senses")]
    found: dict[str, tuple[list[float], list[dict[str, Any]]]] = {}
    for claim in read_claims() if pieces else ():
        if claim.paper != PAPER:
            continue
        for piece, content in pieces:
            value = _value(claim, piece, content)
            if value is not None:
                values, rows = found.setdefault(claim.id, ([], []))
                values.append(value)
                rows.append(_row(piece))
    return found


def read(folder: Path, name: str) -> Any:
    """Return an artifact's JSON file."""
    import json

    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def _row(piece: DerivedArtifact) -> dict[str, Any]:
    names = ("dataset", "method", "protocol", "seed", "trials", "key", "stage")
    about = {name: getattr(piece, name) for name in names}
    return about | {"paper": PAPER, "params": {}, "run_id": None, "documents": piece.references["ingest"]}


def _value(claim: Claim, piece: DerivedArtifact, content: Any) -> float | None:
    """Return what a piece says of a claim; None where it says nothing."""
    metric, _, place = claim.metric.partition(":")
    if metric == "umass-coherence@10" and piece.method == TOPICS_BY.get(claim.method):
        if not place:
            return mean_of(content["topics"], "umass")
        topic = nearest_topic(content["topics"], PRINTED[place, claim.method])
        return topic["umass"] if topic else None
    if metric == "p-cluster-given-word" and piece.stage == "senses":
        word, _, number = place.partition(":")
        known = content[word]
        return known["senses"][int(number) - 1]["probability"] if known else None
    return None


def mean_of(topics: Sequence[Mapping[str, Any]], name: str) -> float:
    """Return the mean coherence of topics."""
    return float(sum(topic[name] for topic in topics) / len(topics))


def nearest_topic(topics: Sequence[Mapping[str, Any]], printed: str) -> Mapping[str, Any] | None:
    """Return the topic that shares most of its first words with those printed, of equals the most coherent.

    None where no topic shares any.
    """
    best = max(topics, key=lambda topic: (n_shared(topic["words"], printed), topic["umass"]))
    return best if n_shared(best["words"], printed) else None


def n_shared(words: Sequence[str], printed: str) -> int:
    """Return how many words are among those printed."""
    return len({*words} & {*printed.split()})
