"""SCDV's table 3: what the stories that its script drops, the titles, and the members of the split are worth to TF-IDF.

The authors' script drops the unprocessed stories (TYPE="UNPROC"); the frame that it splits, and so its order, is not to
be had. Five random orders of the stories, each split 70/30; C as the faithful protocol chose it for the first split.
"""

import re

import numpy as np
from sklearn.model_selection import train_test_split

from tests.benchmarks.gaps._printing import over_draws
from textbench.evaluation.metrics.multilabel import coverage_error, lraps, precision_at, weighted_f1
from textbench.evaluation.probes.catalogue import build_probe
from textbench.featurizers.tfidf import TfIdf
from textbench.tasks import catalogue
from textbench.tasks.datasets import _reuters
from textbench.tasks.sources import archives
from textbench.tasks.tokens import token_rule, vectorize

C = 140.1
N_ORDERS = 5
Stories = list[_reuters.Story]


def unprocessed() -> set[str]:
    """The names of the stories that the news agency left without title and body."""
    return {
        match[1]
        for _, content in archives.read(_reuters.ARCHIVE)
        for sgml in content.decode("iso-8859-1").split("</REUTERS>")
        if re.search(r'<TEXT\b[^<>]*"UNPROC"', sgml) and (match := re.search(r'NEWID="(\d+)"', sgml))
    }


def body(story: _reuters.Story) -> str:
    """The text without its title, which is the first line."""
    return story.text.partition("\n")[2]


def figures(train: Stories, test: Stories, names: list[str], *, titles: bool) -> list[float]:
    """P@1, LRAPS and weighted F1 as shares, and coverage error in labels, over 100 to print alike."""
    texts = [[story.text if titles else body(story) for story in part] for part in (train, test)]
    vectors = vectorize(texts[0], texts[1], token_rule("scdv"), transductive=True)
    Y, target = (_reuters.indicator([story.topics for story in part], names) for part in (train, test))
    weighter = TfIdf().fit(vectors.train_counts)
    probe = build_probe("logistic-regression", C, scaled=False, max_iter=100)
    probe.fit(weighter.transform(vectors.train_counts), Y)
    X = weighter.transform(vectors.test_counts)
    scores = probe.decision_function(X)
    ranked = (precision_at(target, scores, 1), lraps(target, scores))
    return [*ranked, weighted_f1(target, probe.predict(X)), coverage_error(target, scores) / 100]


def main() -> None:
    every = [story for story in _reuters.stories() if story.topics]
    left_out = unprocessed()
    kept = [story for story in every if story.newid not in left_out]
    whole = [story for story in every if story.has_body]
    print(f"{len(every)} stories with a topic, {len(kept)} processed, {len(whole)} with a body")
    print("P@1, LRAPS, weighted F1, coverage error")
    entry = catalogue.dataset("reuters-random70").load()
    split = {"test_size": entry.TEST_SHARE, "random_state": entry.SEED}
    for name, chosen, titles in (
        ("all", every, True),
        ("processed", kept, True),
        ("with a body", whole, True),
        ("with a body, without titles", whole, False),
    ):
        names = sorted({topic for story in chosen for topic in story.topics})
        first = figures(*train_test_split(chosen, **split), names, titles=titles)
        print(f"{name}, order of the files: {', '.join(f'{100 * value:.2f}' for value in first)}")
        found = []
        for seed in range(N_ORDERS):
            order = np.random.default_rng(seed).permutation(len(chosen))
            parts = train_test_split([chosen[i] for i in order], **split)
            found.append(figures(*parts, names, titles=titles))
        print(f"{name}: {', '.join(over_draws(values) for values in zip(*found, strict=True))}")
