"""The SCDV paper's exhibits beside cells: values (figure 3), maps (figure 5), topics and senses (tables 4 and 5)."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from textbench.evaluation.claims.published import read_claims
from textbench.evaluation.metrics.coherence import diversity
from textbench.flows.papers import Exhibit
from textbench.flows.papers.scdv import drawings
from textbench.flows.papers.scdv.answers import (
    DATASET,
    PAPER,
    PRINTED,
    TOPICS_BY,
    made,
    mean_of,
    n_shared,
    nearest_topic,
    read,
)
from textbench.flows.papers.scdv.results import rounded, summary
from textbench.tasks.corpus import read_targets
from textbench.tasks.derived.polysemy import PUBLISHED
from textbench.tasks.storage.files import META, read_meta
from textbench.tasks.storage.store import Store


def figure_3(home: Path) -> list[Exhibit]:
    """How the values of SCDV's vectors are distributed before the small ones become zero."""
    import numpy as np

    found = made(home, "values")
    if not found:
        return []
    piece, folder = found[0]
    about, counts = read(folder, "about"), np.load(folder / "histogram.npy", allow_pickle=False)
    n_values = about["values"]
    shares = {name: about[name] / n_values for name in ("zero", "below", "kept")}
    rows = [
        ["exactly zero before the threshold", about["zero"], _percent(shares["zero"])],
        ["below the threshold", about["below"], _percent(shares["below"])],
        ["kept", about["kept"], _percent(shares["kept"])],
    ]
    under = shares["zero"] + shares["below"]
    caption = (
        f"Values of the vectors of all training documents of {piece.dataset}, brought to unit length, before the "
        f"threshold of 4 percent, {about['threshold']:.5f}, makes the small ones zero; one run. Drawn are those that "
        f"are not zero already, from {-_reach(folder):g} to {_reach(folder):g}, more extreme ones (from "
        f"{about['smallest']:.2f} to {about['largest']:.2f}) at the ends. Published is a picture, and the figure "
        "that 4 percent saves 80 percent of the space. Documents without a known word have a vector of zeros: "
        f"{about['empty']['train']} in training, {about['empty']['test']} in test."
    )
    draw = partial(drawings.histogram, counts, _reach(folder), about["threshold"], under)
    header = ("values", "number", "percent")
    return [Exhibit("figure-3", "Figure 3: values of document vectors", caption, header, rows, draw)]


def _reach(folder: Path) -> float:
    return float(read_meta(folder / META)["recipe"]["params"]["reach"])


def _percent(share: float) -> float:
    return round(100 * share, 3)


def others(home: Path) -> list[Exhibit]:
    """Return table 4, figure 5 and table 5, those that are made."""
    found = (table_4(home), figure_5(home), table_5(home), every_topic(home))
    return [exhibit for exhibit in found if exhibit is not None]


def table_4(home: Path) -> Exhibit | None:
    """The coherence of 80 topics, of soft clusters and of LDA, and the topics nearest to the paper's."""
    pieces = made(home, "topics")
    rows: list[list[Any]] = []
    drawn: dict[str, tuple[Sequence[float], float | None]] = {}
    for name, method in TOPICS_BY.items():
        contents = [read(folder, "topics") for piece, folder in pieces if piece.method == method]
        if not contents:
            continue
        printed = _published(name, "umass-coherence@10")
        for metric, figure in (("umass", printed), ("npmi", None)):
            means = [mean_of(content["topics"], metric) for content in contents]
            what = f"mean of {_n_topics(contents)} topics, {METRICS[metric]}"
            rows.append([name, what, *summary(means), figure, "", "", None])
        rows += _topics(name, contents)
        drawn[name] = ([topic["umass"] for topic in contents[0]["topics"]], printed)
    if not rows:
        return None
    header = ("model", "what", "measured", "from", "to", "runs", "published", "first words, of the first run",
              "words of the paper", "shared")  # fmt: skip
    caption = (
        f"UMass coherence of the first ten words of each topic, counted over all {_n_documents(pieces):,} documents of "
        f"{DATASET}, headers kept; higher is better. A cluster's words are ranked by P(w|c) = P(c|w) P(w) / P(c) with "
        "P(c) summed over the vocabulary (the paper prints a sum over topics). The authors' code counts over the same "
        "texts, training and test, without stop words. NPMI, from -1 to 1, does not reward frequent words as UMass "
        "does. The topics below are those that share most words with the printed ones. LTSG's topics are of a "
        "reconstruction. Drawn: the first run."
    )
    draw = partial(drawings.coherence, drawn)
    return Exhibit("table-4", "Table 4: topics and their coherence", caption, header, rows, draw)


def every_topic(home: Path) -> Exhibit | None:
    """The coherence and the diversity of the topics of every model."""
    pieces = made(home, "topics")
    rows: list[list[Any]] = []
    for method in dict.fromkeys(piece.method for piece, _ in pieces):
        contents = [read(folder, "topics")["topics"] for piece, folder in pieces if piece.method == method]
        figures = [
            [mean_of(topics, "umass") for topics in contents],
            [mean_of(topics, "npmi") for topics in contents],
            [diversity([topic["words"] for topic in topics]) for topics in contents],
        ]
        means = [rounded(sum(values) / len(values)) for values in figures]
        rows.append([method, _n_topics([{"topics": topics} for topics in contents]), *means, len(contents)])
    if not rows:
        return None
    header = ("method", "topics", "UMass", "NPMI", "diversity", "runs")
    caption = (
        f"Means over topics of the coherence of their first ten words, counted over all {_n_documents(pieces):,} "
        f"documents of {DATASET}; higher is better. Diversity is the share of different words among the first ten of "
        "all topics: a model of few words again and again has little. NTSG and lda2vec keep the topics of the LDA that "
        "TWE-1 has; WTM and LTSG are reconstructions."
    )
    return Exhibit("topics", "Topics of every model", caption, header, sorted(rows, key=lambda row: -row[3]))


METRICS = {"umass": "UMass", "npmi": "NPMI"}


def _n_topics(contents: Sequence[Mapping[str, Any]]) -> str:
    """Return how many topics the runs have: fewer where one has no words of its own and was left out."""
    numbers = sorted({len(content["topics"]) for content in contents})
    return " to ".join(str(n) for n in dict.fromkeys((numbers[0], numbers[-1])))


def _topics(name: str, contents: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return the topics of a model that are nearest to the paper's, coherence over runs, words of the first run."""
    rows: list[list[Any]] = []
    for (place, model), words in PRINTED.items():
        nearest = [nearest_topic(content["topics"], words) for content in contents]
        known = [topic for topic in nearest if topic]
        if model != name or not known:
            continue
        first, printed = known[0], _published(name, f"umass-coherence@10:{place}")
        shared = n_shared(first["words"], words)
        figures = summary([topic["umass"] for topic in known])
        rows.append(
            [name, f"topic {place}, UMass", *figures, printed, " ".join(first["words"]), words, shared]
        )
    return rows


def _published(method: str, metric: str) -> float | None:
    found = next((c for c in read_claims() if (c.paper, c.method, c.metric) == (PAPER, method, metric)), None)
    return found.printed.value if found and found.printed else None


def _n_documents(pieces: Sequence[tuple[Any, Path]]) -> int:
    return int(read(pieces[0][1], "topics")["n_documents"])


def figure_5(home: Path) -> Exhibit | None:
    """The test documents in the plane, by SCDV and by paragraph vectors."""
    import numpy as np

    store = Store(home / "store", isolated=False)
    maps, rows, names = [], [], []
    for piece, folder in made(home, "embedding"):
        if not store.has(piece.references["ingest"]):
            continue
        corpus = store.open(piece.references["ingest"])
        names = corpus.json("corpus")["target_names"]
        about, positions = read(folder, "about"), np.load(folder / "positions.npy", allow_pickle=False)
        maps.append(drawings.Map(piece.method, positions, read_targets(corpus, "test"), about["agreement"]))
        rows.append(
            [piece.method, piece.seed, len(positions), _percent(about["agreement"]), about["divergence"]]
        )
    if not maps:
        return None
    caption = (
        f"The test documents of {DATASET} in the plane by t-SNE (perplexity 30, from the first two of 50 singular "
        "vectors of rows of unit length), coloured by the first part of their group's name, groups named at the "
        "middle of their documents; one run of each. Both methods have read the test texts, neither has seen "
        "labels. The share of the 10 nearest neighbours in the plane that are of a document's group says in a "
        "figure what the picture shows; the paper, which calls SCDV more discriminative, gives none and does not "
        "say which documents it drew."
    )
    header = ("method", "seed", "documents", "10 nearest of the same group, percent", "divergence")
    draw = partial(drawings.maps, maps, names)
    return Exhibit("figure-5", "Figure 5: documents in the plane", caption, header, rows, draw)


def table_5(home: Path) -> Exhibit | None:
    """The words of several senses, and the clusters that share them."""
    contents = [read(folder, "senses") for _, folder in made(home, "senses")]
    if not contents:
        return None
    rows: list[list[Any]] = []
    for word, senses in PUBLISHED.items():
        known = [content[word] for content in contents if content[word]]
        for number, words in enumerate(senses, start=1):
            found = [one["senses"][number - 1] for one in known]
            values = [one["probability"] for one in found if one["probability"] is not None]
            printed = _published("GMM", f"p-cluster-given-word:{word}:{number}")
            if values:
                rows.append([f"{word}, sense {number}", " ".join(words), printed, *summary(values), ""])
        for cluster in known[0]["clusters"] if known else ():
            text = " ".join(cluster["words"])
            rows.append(
                [f"{word}, a cluster", "", None, rounded(cluster["probability"]), None, None, 1, text]
            )
    header = ("word", "words of the paper's cluster", "published P(c|w)", "measured", "from", "to", "runs",
              "first words of the cluster, of the first run")  # fmt: skip
    n_several = _n_several(contents[0])
    caption = (
        "A published sense is looked for in the cluster to which the words printed for it belong most, on average; "
        "cluster numbers mean nothing from one run to the next. Then follow all clusters in which the word has 0.05 "
        f"or more, of the first run: {n_several} of {len(PUBLISHED)} words have more than one. 60 clusters with one "
        "full covariance, as in the authors' code; intervals are 95 % over runs (Student t)."
    )
    return Exhibit("table-5", "Table 5: words of several senses", caption, header, rows)


def _n_several(content: Mapping[str, Any]) -> int:
    return sum(bool(one) and len(one["clusters"]) > 1 for one in content.values())
