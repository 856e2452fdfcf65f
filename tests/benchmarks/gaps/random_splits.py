"""TF-IDF and a linear SVM on 20 Newsgroups, printed as 93 elsewhere: all messages split at random, and by date."""

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from tests.benchmarks.gaps._printing import over_documents, over_draws
from textbench.featurizers.tfidf import TfIdf
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize

N_SPLITS = 5


def is_right(train: list[str], y: np.ndarray, test: list[str], target: np.ndarray) -> np.ndarray:
    """Whether each test document is given its class, bool (n_test,)."""
    vectors = vectorize(train, test, token_rule("letters"))
    weighter = TfIdf().fit(vectors.train_counts)
    model = LinearSVC(C=1.0, random_state=0).fit(weighter.transform(vectors.train_counts), y)
    return np.asarray(model.predict(weighter.transform(vectors.test_counts)) == target)


def main() -> None:
    for name in ("20ng", "20ng-stripped"):
        corpus = catalogue.dataset(name).load().load()
        texts = corpus.train_texts + corpus.test_texts
        targets = np.concatenate([corpus.train_targets, corpus.test_targets])
        given = (corpus.train_texts, corpus.train_targets, corpus.test_texts, corpus.test_targets)
        print(f"{name}, by date: {over_documents(is_right(*given))}")
        for share in (len(corpus.test_texts) / len(texts), 0.2):
            found = []
            for seed in range(N_SPLITS):
                train, test, y, target = train_test_split(texts, targets, test_size=share, random_state=seed)
                found.append(float(is_right(train, y, test, target).mean()))
            print(f"{name}, {share:.0%} for testing at random: {over_draws(found)}")
