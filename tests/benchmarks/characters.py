"""Character n-grams of the training texts of 20 Newsgroups: each distinct word cut once, beside scikit-learn."""

import time

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from textbench.featurizers import char_ngrams
from textbench.tasks import catalogue


def main() -> None:
    """Print the CPU seconds of both, and how many weights differ."""
    texts = [str(text) for text in catalogue.dataset("20ng").load().load().train_texts]
    method = char_ngrams.build()
    started = time.process_time()
    weights = method.fit_transform(texts)
    print(
        f"{weights.nnz:,} weights of {weights.shape[1]:,} n-grams: {time.process_time() - started:.1f} CPU s"
    )
    lengths = (method.min_n, method.max_n)
    theirs = TfidfVectorizer(analyzer="char_wb", ngram_range=lengths, min_df=method.min_df, sublinear_tf=True)
    started = time.process_time()
    expected = theirs.fit_transform(texts).astype(np.float32)
    print(
        f"scikit-learn: {time.process_time() - started:.1f} CPU s; weights that differ: {(weights != expected).nnz}"
    )
