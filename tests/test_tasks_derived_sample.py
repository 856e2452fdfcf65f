"""The corpus of some documents: evenly apart, with their targets, all where there are fewer."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from textbench.tasks.corpus import Corpus, read_corpus, write_corpus
from textbench.tasks.derived import sample
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store

TEXTS = [f"number {i}" for i in range(30)]


def make_corpus(job: Job) -> None:
    """Write twenty training documents and ten test documents, with a label or several."""
    targets = np.arange(30, dtype=np.int64) % 3
    given = sp.csr_matrix(np.eye(3, dtype=np.int8)[targets]) if job.params["several"] else targets
    write_corpus(
        job, Corpus(TEXTS[:20], given[:20], TEXTS[20:], given[20:], list("abc"), "made", "Made."), {}
    )


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(("n", "train"), [(4, [0, 6, 12, 19]), (20, [*range(20)]), (99, [*range(20)])])
def test_documents_are_evenly_apart_and_keep_their_targets(
    n: int, train: list[int], several: bool, tmp_path: Path
) -> None:
    whole = Reference("ingest", f"{__name__}:make_corpus", {"dataset": "made", "several": several})
    corpus = read_corpus(Store(tmp_path, isolated=False).open(sample.reference(whole, n)))
    assert list(corpus.train_texts) == [TEXTS[i] for i in train]
    targets = corpus.train_targets.toarray().argmax(axis=1) if several else corpus.train_targets
    assert targets.tolist() == [i % 3 for i in train]
    assert len(corpus.test_texts) == min(n // 2, 10)
    assert corpus.test_texts[-1] == TEXTS[-1]
