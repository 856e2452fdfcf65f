"""Retrieval: queries a second by `lsi`, 500,000 documents ranked by `lm`, and every ranker on both open collections."""

import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from tests.commands import textbench
from textbench.evaluation.metrics.ranked_retrieval import rank, tie_order
from textbench.evaluation.rankers import cosines
from textbench.featurizers import lsi
from textbench.flows.plan.request import RANKERS
from textbench.tasks import collect, rankers, retrieve, vectorize
from textbench.tasks.collections._user import OwnCollection
from textbench.tasks.storage.store import Store
from textbench.tasks.tokens import count, encode, token_rule
from textbench.tasks.tokens import vectorize as tokenise

N_DOCUMENTS = 500_000
N_WORDS = 100  # a document
N_TERMS = 200_000
N_QUERIES = 100
REPEATS = 10


def main() -> None:
    """Print the three figures, each with what it was measured on."""
    queries_a_second()
    big_collection()
    everything()


def queries_a_second() -> None:
    """Cranfield's queries, from their texts to the first 1,000 documents, on one thread and one query at a time."""
    found = collect.load({"dataset": "cranfield"})
    rule = token_rule("letters-stop-stem")
    vectors = tokenise(found.documents, found.queries, rule)
    with threadpool_limits(1):
        method = lsi.build(random_state=0)
        documents = method.fit_transform(vectors.train_counts)
        ties = tie_order(found.document_ids)

        def answer(texts: list[str]) -> None:
            counts = count(*encode(texts, vectors.terms, rule), vectors.terms, rule)
            rank(cosines(method.transform(counts), documents), ties)

        started = time.perf_counter()
        for _ in range(REPEATS):
            answer(found.queries)
        together = REPEATS * len(found.queries) / (time.perf_counter() - started)
        started = time.perf_counter()
        for text in found.queries:
            answer([text])
        alone = len(found.queries) / (time.perf_counter() - started)
    print(
        f"lsi, Cranfield, one thread, text to ranking, {documents.shape[1]} dimensions: {together:.0f} queries a "
        f"second all together, {alone:.0f} one by one, each reading the vocabulary anew"
    )


def big_collection() -> None:
    """Write a Zipf-distributed collection, then read, index and rank it by the stages of `textbench retrieve`."""
    rng = np.random.default_rng(0)
    names = np.array([_word(i) for i in range(N_TERMS)])
    with tempfile.TemporaryDirectory() as folder:
        own = _write(Path(folder), names, rng)
        store = Store(Path(folder) / "store")
        corpus = collect.own_reference(own)
        vectors = vectorize.reference(corpus, asdict(token_rule("letters-stop-stem")), False)
        result = retrieve.reference(corpus, vectors, rankers.parse("lm"), trials=0, seed=0)
        metas = {reference.stage: store.ensure(reference) for reference in (corpus, vectors, result)}
        n_pairs = store.open(vectors).matrix("train_counts").nnz
    for stage, meta in metas.items():
        print(f"lm, {N_DOCUMENTS} documents: {stage} {meta['seconds']:.1f} s, peak {meta['peak_mb']:.0f} MB")
    total = sum(meta["seconds"] for meta in metas.values())
    peak = max(meta["peak_mb"] for meta in metas.values())
    print(
        f"lm, {N_DOCUMENTS} documents of {N_WORDS} words ({n_pairs / 1e6:.1f} million postings), {N_QUERIES} queries: "
        f"{total:.1f} s from files to measures, peak {peak:.0f} MB"
    )


def _word(number: int) -> str:
    letters = ""
    while True:
        number, digit = divmod(number, 20)
        letters += "bcdfghjklmnpqrstvwxz"[digit] + "aeiou"[digit % 5]
        if not number:
            return letters + "k"


def _write(folder: Path, names: np.ndarray, rng: np.random.Generator) -> OwnCollection:
    with (folder / "documents.jsonl").open("w") as stream:
        for first in range(0, N_DOCUMENTS, 10_000):
            words = names[(rng.zipf(1.2, (10_000, N_WORDS)) - 1) % N_TERMS]
            stream.writelines(
                json.dumps({"id": f"d{first + i}", "text": " ".join(row)}) + "\n"
                for i, row in enumerate(words)
            )
    queries = names[rng.integers(50, 20_000, (N_QUERIES, 4))]
    lines = [json.dumps({"id": f"q{i}", "text": " ".join(row)}) + "\n" for i, row in enumerate(queries)]
    (folder / "queries.jsonl").write_text("".join(lines))
    judged = [f"q{i} 0 d{rng.integers(N_DOCUMENTS)} 1\n" for i in range(N_QUERIES)]
    (folder / "qrels").write_text("".join(judged))
    return OwnCollection(*(str(folder / name) for name in ("documents.jsonl", "queries.jsonl", "qrels")))


def everything() -> None:
    """Run every ranker on Cranfield and CACM into an empty home, with the command line, servers and all."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        output, _ = textbench("retrieve", "--json", home=Path(folder))
        seconds = time.perf_counter() - started
    print(
        f"cranfield + cacm, {len(RANKERS)} rankers, 5 folds, 30 settings: {seconds:.0f} s, empty home to table"
    )
    for row in map(json.loads, output.splitlines()):
        spent = ", ".join(f"{stage} {value:.1f}" for stage, value in row["seconds"].items())
        print(
            f"  {row['collection']:<10} {row['ranker']:<8} MAP {row['measures']['map']:.4f}  seconds: {spent}"
        )
