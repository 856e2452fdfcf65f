"""Claims: the figures that the papers published, read from `claims.csv`, and what speaks against them on paper.

A claim keeps its paper's spelling of data sets, methods and metrics; `DATASETS`, `METHODS` and `METRICS` are the
one table that maps it to names used here. Where a paper contradicts itself is worked out from the claims
alone. `evaluation.claims.verdicts` says how a claim is judged.
"""

import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from textbench.evaluation.claims.verdicts import Interval

FILE = Path(__file__).parents[1] / "claims.csv"
# The papers' spelling, and the name here, of a method with the parameters that make it the paper's. A method that is
# missing has no implementation here.
DATASETS = {
    "20newsgroups-bydate": "20ng",
    "imdb": "imdb",
    "reuters65": "reuters65",
    "reuters21578-multilabel-random70": "reuters-random70",
}
# Data sets that are not to be had, the word first that says why; what has no method here is "unwritten".
OBSTACLES = dict.fromkeys(
    ("trec-ap", "trec-sjm", "trec-wsj", "trec-robust04"), "licensed: the documents are on TREC's disks"
) | {"dmoz16": "lost: the data set was never published"}
# TWE's and NTSG's vectors as SCDV has them; no paper says the window of the others.
TOPICAL = "word_vectors__vector_size=400, word_vectors__window=5"
METHODS = {
    "All 5-grams": "kgrams",
    "AvgVec": "avgvec",
    "BoW": "counts",
    "BoW SVM": "counts",
    "BoWV": "bowv(pooling='sum')",  # what the code behind the published rows does
    "Compressed": "compressive",
    "DRBM": "drbm(generative=0.1, n_hidden=300)",  # the figure is that of its authors' hybrid machine
    "GMM": "scdv",
    "LDA": "lda",
    "LM": "lm",
    "LTSG": f"ltsg({TOPICAL})",
    "LM+SCDV": "lm+scdv",
    "LSI": "lsi",
    "LZ77": "lz77",
    "MB": "mb",
    "MB+SCDV": "mb+scdv",
    "MvTM": "mvtm",
    "NTSG-1": f"ntsg(variant=1, {TOPICAL})",
    "NTSG-2": f"ntsg(variant=2, {TOPICAL})",
    "NTSG-3": f"ntsg(variant=3, {TOPICAL})",
    "Naive Bayes": "nb",
    "PV-DBoW": "pv-dbow",
    "PV-DM": "pv-dm",
    "SCDV": "scdv",
    "TF-IDF": "tfidf",
    "TV+MeanWV": "topicvec",
    "TWE-1": f"twe-1({TOPICAL})",
    "WTM": f"wtm({TOPICAL})",
    "Word Vectors": "maas-vectors(beside='bnc')",  # without ratings, which move nothing, or unlabelled reviews
    "dCoT": "dcot",
    "lda2vec": f"lda2vec({TOPICAL})",
    "w2v-LDA": "lf-lda",
    "tfidf-AvgVec": "tfidf-avgvec",
    "weight-AvgVec": "tfidf-avgvec",
    "weight-BoC": "weight-boc",
}
# Rows whose classifier is not their paper's own.
PROBES = {"BoW SVM": "linear-svm"}
# Rows that are copied from other papers, and follow these papers' protocols.
SOURCES = {"DRBM": "drbm-2008", "Word Vectors": "maas-2011"}
# Of these, what reads other texts than the rest of its table.
OTHER_TEXTS = {"DRBM": "20ng-body"}
METRICS = {
    "accuracy": "accuracy",
    "coverage-error": "coverage_error",
    "lraps": "lraps",
    "macro-f1": "macro_f1",
    "macro-precision": "macro_precision",
    "macro-recall": "macro_recall",
    "ndcg@1": "ndcg_at_1",
    "ndcg_fixed_norm@5": "ndcg_fixed_norm_at_5",
    "precision@1": "precision_at_1",
    "precision@5": "precision_at_5",
    "weighted-f1": "weighted_f1_zero",  # SCDV's code decides at probability 0.5, a score of 0
}
# Seconds of a stage, or of a part of the last one; the paper's own method is the yardstick of its table.
SECONDS = {
    "feature-learning-seconds": "featurize",
    "document-vectors-seconds": "featurize",
    "training-seconds": "train",
    "prediction-seconds": "predict",
}
TOTALS = ("training-seconds", "prediction-seconds")
OWN = {"dcot-2012": "dCoT", "scdv-2017": "SCDV", "compressive-features-2013": "Compressed"}
BAG_OF_WORDS = "BoW"
CLASS_RATES = ("precision", "recall")
# What a paper prints in one column with another metric, being the same number: no claim of its own.
TWINS = {"ndcg@1": "precision@1"}
SHARED_FIGURES = 3  # that two rows of a table may not both have by accident
# Figures that the source of their row does not print: what they are, as long as both are printed alike.
TAKEN = {"scdv-2017/table-1/tv+meanwv/accuracy": "scdv-2017/table-1/lda/accuracy"}
# What TWE's authors put in the place of their F columns later, in percent: it is the harmonic mean of macro precision
# and macro recall, where the first figures, which SCDV still prints, are means of the classes' F1.
CORRECTED = {
    "scdv-2017/table-1/twe-1/macro-f1": 80.9,
    "scdv-2017/table-1/bow/macro-f1": 79.2,
    "scdv-2017/table-1/lda/macro-f1": 70.7,
    "scdv-2017/table-1/pv-dm/macro-f1": 71.8,
    "scdv-2017/table-1/pv-dbow/macro-f1": 74.6,
}
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4}
# Figures printed coarser than their last digit says: dCoT's table 1 has whole minutes from a minute on, "1.1 GB" stands
# here as 1,100 MB, and "two orders of magnitude" is a power of ten.
MINUTES = ("dcot-2012", "feature-learning-seconds")
COARSE = {
    "scdv-2017/section-5/bowv/feature-megabytes": (1050.0, 1150.0),
    "cfl-2013/section-5/size": (10**1.5, 10**2.5),
}
# By the first parts of an id. How many runs a figure is the mean of, where the paper says that it is one.
MEANS = {"scdv-2017/table-1/scdv": 5, "scdv-2017/table-3/scdv": 5}
# What neither the paper states nor the code that it links to, as that was when the paper appeared.
COPIED = "the settings of a figure that it took from elsewhere"
FORMAT = "the format of its 236 MB"
TOTAL = "which stages its total of seconds has"
PARAGRAPHS = "the window, the passes and the words left out of its paragraph vectors"
TOPICS = "the priors and the passes of its LDA"
VOCABULARY = "the vocabulary and the weights of its bag of words"
SEARCHED = "the grids of its cross-validation and what that chose"
REBUILT = "how the method that it took from elsewhere is defined, of which only an outline is known here"
UNSTATED = {
    # "Reported results" of other papers, in SCDV's own words, and TWE-1's row, which stands so in TWE's paper: learned
    # there from training texts alone, with a C that is not printed.
    **dict.fromkeys(
        (f"scdv-2017/table-1/{row}" for row in ("lda", "lda2vec", "mvtm", "tv+meanwv", "twe-1", "w2v-lda")),
        COPIED,
    ),
    **dict.fromkeys(
        (f"scdv-2017/table-1/{row}" for row in ("ltsg", "ntsg-1", "ntsg-2", "ntsg-3", "wtm")), REBUILT
    ),
    "scdv-2017/section-4.3/ltsg": REBUILT,
    "scdv-2017/table-4/ltsg": REBUILT,
    "scdv-2017/table-1/bow": VOCABULARY,
    "scdv-2017/table-1/weight-boc": "the number of concepts",
    "scdv-2017/table-1/pv-dbow": PARAGRAPHS,
    "scdv-2017/table-1/pv-dm": PARAGRAPHS,
    "scdv-2017/table-2/bow": VOCABULARY,
    "scdv-2017/table-3/avgvec": "the dimensions and the training of its word vectors",
    "scdv-2017/table-3/pv-dbow": PARAGRAPHS,
    "scdv-2017/table-3/pv-dm": PARAGRAPHS,
    "scdv-2017/table-3/twe-1": TOPICS,
    "scdv-2017/section-4.3/lda": TOPICS,
    "scdv-2017/table-4/lda": TOPICS,
    # "Reduces the storage space by 80 %" and "from 1.1 GB to 236 MB"; counted here are zeros, which are no space.
    "scdv-2017/section-4.2.3/scdv/sparsity-at-4-percent": FORMAT,
    "scdv-2017/section-5/scdv/feature-megabytes": FORMAT,
    # The paper's "total" training is forty to seventy seconds more than its vectors take, whatever the method.
    **dict.fromkeys(
        (f"scdv-2017/table-7/{row}/{total}" for row in ("bowv", "scdv", "twe-1") for total in TOTALS), TOTAL
    ),
    "dcot-2012": "the number of prototypes, the sizes of LSI and LDA, or the classifier's C and scaling",
    "cfl-2013/table-1/20newsgroups/bow-svm": COPIED,
    "cfl-2013/table-1/imdb/bow-svm": COPIED,
    "cfl-2013/table-1/20newsgroups/naive-bayes": COPIED,
    # Other sizes of the machine and other rates than here; and with 50,000 unlabelled reviews that are not to be had.
    "cfl-2013/table-1/20newsgroups/drbm": COPIED,
    "cfl-2013/table-1/imdb/word-vectors": COPIED,
    "cfl-2013/table-1/20newsgroups/all-5-grams": SEARCHED,
    "cfl-2013/table-1/imdb/all-5-grams": SEARCHED,
    "cfl-2013/table-1/20newsgroups/compressed": SEARCHED,
    "cfl-2013/table-1/imdb/compressed": SEARCHED,
    "cfl-2013/section-5/gap": SEARCHED,  # the largest of all pointer costs that are searched
    "cfl-2013/section-5/size": SEARCHED,
}
# Data sets whose documents the paper split in a way of its own that is not to be had.
OTHER_SPLITS = {"reuters21578-multilabel-random70"}
# Probabilities: bounded, and of two modes.
BOUNDS = {"p-cluster-given-word": (0.0, 1.0)}
# What each paper says of its own method first: these verdicts are its headline.
HEADLINES = {
    "scdv-2017": (
        "scdv-2017/table-1/scdv/accuracy",
        "scdv-2017/table-3/scdv/weighted-f1",
        "scdv-2017/section-4.2.3/scdv/sparsity-at-4-percent",
    ),
    "dcot-2012": ("dcot-2012/figure-4/reuters65/order", "dcot-2012/abstract/speed"),
    "compressive-features-2013": (
        "cfl-2013/table-1/20newsgroups/compressed/accuracy",
        "cfl-2013/table-1/imdb/compressed/accuracy",
        "cfl-2013/section-5/size",
    ),
}


@dataclass(frozen=True)
class Claim:
    """One published figure, or a sentence that orders methods; the fields are the columns of claims.csv."""

    id: str
    paper: str
    place: str
    dataset: str
    protocol: str
    method: str
    metric: str
    text: str
    unit: str
    note: str

    @property
    def printed(self) -> Interval | None:
        """The figure, and all that rounds to it; None for a sentence."""
        try:
            value = float(self.text)
        except ValueError:
            return None
        if self.id in COARSE:
            return Interval(value, *COARSE[self.id])
        half = 0.5 * 10.0 ** -len(self.text.partition(".")[2])
        if (self.paper, self.metric) == MINUTES and value >= 60:
            half = 30.0
        return Interval(value, value - half, value + half)

    @property
    def dataset_here(self) -> str | None:
        """Its data set's name here, None if there is none."""
        return OTHER_TEXTS.get(self.method, DATASETS.get(self.dataset))

    @property
    def source(self) -> str:
        """The paper whose protocol made it: its own, or the one that its row was copied from."""
        return SOURCES.get(self.method, self.paper)

    @property
    def method_here(self) -> str | None:
        """Its method's name here, None if nothing here implements it."""
        return METHODS.get(self.method)

    @property
    def metric_here(self) -> str | None:
        """Its metric's name here, None for the rate of a class and for what is no metric of a run."""
        return METRICS.get(self.metric)

    @property
    def class_rate(self) -> tuple[str, str] | None:
        """The rate and the class of a figure of one class, such as ("precision", "sci.med")."""
        rate, _, label = self.metric.partition(":")
        return (rate, label) if rate in CLASS_RATES and label else None

    @property
    def scale(self) -> float:
        """What a figure measured here is multiplied by to have the claim's unit."""
        return 100.0 if self.unit == "percent" else 1.0

    @property
    def obstacle(self) -> str | None:
        """Why it cannot be run, if it cannot, in one word and then in more."""
        if self.dataset in OBSTACLES:
            return OBSTACLES[self.dataset]
        return None if self.method_here else f"unwritten: nothing here implements {self.method}"

    @property
    def twin(self) -> str | None:
        """The id of the claim that it is printed in one with, being the same number; it does not count beside that."""
        rest, _, metric = self.id.rpartition("/")
        return f"{rest}/{TWINS[metric]}" if metric in TWINS else None

    @property
    def corrected(self) -> float | None:
        """What its source put in its place later, in another definition: the harmonic mean of the macro rates."""
        return CORRECTED.get(self.id)

    @property
    def n_published(self) -> int:
        """How many runs the figure is the mean of: one, where the paper does not say."""
        return _of_prefix(MEANS, self.id) or 1

    @property
    def unstated(self) -> str | None:
        """What it depends on and neither its paper nor the code that it links to states; None if nothing is known."""
        found: str | None = _of_prefix(UNSTATED, self.id)
        return found

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Between what it lies, where that matters to its interval."""
        return BOUNDS.get(self.metric.partition(":")[0])

    @property
    def is_of_other_split(self) -> bool:
        """Whether its test documents are others than ours."""
        return self.dataset in OTHER_SPLITS


def _of_prefix(table: Mapping[str, Any], id_: str) -> Any:
    """Return what a table says of the first parts of an id; None where that is nothing."""
    parts = id_.split("/")
    return next((table[p] for n in range(len(parts), 0, -1) if (p := "/".join(parts[:n])) in table), None)


@cache
def read_claims() -> tuple[Claim, ...]:
    """Return every claim, in the order of the file."""
    with FILE.open(encoding="utf-8", newline="") as stream:
        return tuple(
            Claim(**{("text" if name == "value" else name): value for name, value in row.items()})
            for row in csv.DictReader(stream)
        )


def contradictions(claims: Iterable[Claim]) -> dict[str, str]:
    """Return what in its own paper speaks against a claim: claim id -> reason, in one line."""
    known = list(claims)
    return _shared_figures(known) | _taken(known) | _denied_improvement(known) | _denied_speed_up(known)


def _tables(claims: Sequence[Claim]) -> Iterator[tuple[tuple[str, str, str], dict[str, dict[str, Claim]]]]:
    """Yield every table, by paper, place and data set, as method -> metric -> claim."""
    tables: dict[tuple[str, str, str], dict[str, dict[str, Claim]]] = defaultdict(lambda: defaultdict(dict))
    for claim in claims:
        if claim.printed:
            tables[claim.paper, claim.place, claim.dataset][claim.method][claim.metric] = claim
    yield from tables.items()


def _shared_figures(claims: Sequence[Claim]) -> dict[str, str]:
    """Two methods of one table with three or more figures alike: the row that is printed later is the suspect copy.

    Of the two such pairs one shows it otherwise too: TWE-1's LRAPS, BoWV's, is above its precision at 1, which no other
    row's is.
    """
    found: dict[str, str] = {}
    for (_, place, _), rows in _tables(claims):
        for first, second in combinations(rows, 2):
            alike = [
                m for m in rows[first] if m in rows[second] and rows[first][m].text == rows[second][m].text
            ]
            if len(alike) >= SHARED_FIGURES:
                reason = f"{second} prints the {', '.join(alike)} of {first} in {place}"
                found |= {rows[second][metric].id: reason for metric in alike}
    return found


def _taken(claims: Sequence[Claim]) -> dict[str, str]:
    """Figures of `TAKEN` that are printed like the one they are taken for: the row's source has none."""
    by_id, found = {claim.id: claim for claim in claims}, {}
    for id_, other in TAKEN.items():
        own, source = by_id.get(id_), by_id.get(other)
        if own and source and own.text == source.text:
            found[id_] = (
                f"the source of {own.method}'s row prints no {own.metric}; {own.text} is that of {source.method} "
                f"in {source.place}"
            )
    return found


def _denied_improvement(claims: Sequence[Claim]) -> dict[str, str]:
    """Sentences like "A improves on B in every class" against the paper's figures of classes."""
    found = {}
    for claim in claims:
        said = re.fullmatch(r"(\S+) improves on (\S+) in every class", claim.text)
        if not said:
            continue
        worse = []
        for (paper, place, _), rows in _tables(claims):
            if paper != claim.paper:
                continue
            ours, theirs = (rows.get(method, {}) for method in said.groups())
            worse += [
                f"{metric.replace(':', ' of ')} {theirs[metric].text} -> {own.text} in {place}"
                for metric, own in ours.items()
                if own.class_rate and metric in theirs and float(own.text) < float(theirs[metric].text)
            ]
        if worse:
            found[claim.id] = f"denied by the paper's own figures: {'; '.join(worse)}"
    return found


def _denied_speed_up(claims: Sequence[Claim]) -> dict[str, str]:
    """Sentences like "three orders of magnitude over A and B" against the paper's seconds, rounding granted."""
    found = {}
    for claim in claims:
        said = re.fullmatch(r"(\w+) orders of magnitude over (.+)", claim.text)
        if not said:
            continue
        short = []
        for (paper, place, dataset), rows in _tables(claims):
            for other in said[2].split(" and "):
                theirs, ours = (_figure(rows, method, MINUTES[1]) for method in (other, claim.method))
                if paper == claim.paper and theirs and ours:
                    ratio = theirs.over(ours)
                    if round(math.log10(ratio.high)) < NUMBERS[said[1]]:
                        short.append(f"{ratio.value:.0f} over {other} on {dataset} in {place}")
        if short:
            found[claim.id] = f"the paper's own seconds give ratios of {', '.join(short)}"
    return found


def _figure(rows: Mapping[str, Mapping[str, Claim]], method: str, metric: str) -> Interval | None:
    claim = rows.get(method, {}).get(metric)
    return claim.printed if claim else None


def published(claim: Claim, claims: Mapping[str, Claim]) -> tuple[Interval, str | None] | None:
    """Return what of a claim is judged, and the method it is compared with, in the paper's spelling, if any.

    Seconds are judged as ratio of the slower to the paper's own method, any other figure as it is; None for a sentence.
    `claims` go by id.
    """
    if claim.printed is None:
        return None
    if claim.metric in SECONDS:
        own = OWN[claim.paper]
        if claim.method != own:
            base = _beside(claim, claims, own)
            return (claim.printed.over(base.printed), own) if base and base.printed else None
        slowest = _slowest_here(claim, claims)
        return (slowest.printed.over(claim.printed), slowest.method) if slowest and slowest.printed else None
    return claim.printed, None


def _beside(claim: Claim, claims: Mapping[str, Claim], method: str) -> Claim | None:
    """Return the same figure of another method, from the same table."""
    return next((other for other in _column(claim, claims) if other.method == method), None)


def _slowest_here(claim: Claim, claims: Mapping[str, Claim]) -> Claim | None:
    """Return the slowest other method of the table that is implemented here."""
    others = [other for other in _column(claim, claims) if other.method != claim.method and other.method_here]
    return max(others, key=lambda other: float(other.text), default=None)


def _column(claim: Claim, claims: Mapping[str, Claim]) -> list[Claim]:
    place = (claim.paper, claim.place, claim.dataset, claim.metric)
    return [
        c
        for c in claims.values()
        if (c.paper, c.place, c.dataset, c.metric) == place and c.printed is not None
    ]
