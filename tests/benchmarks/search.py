"""Searching parameters: seconds of 20 trials on Reuters-65, and what a trial costs beyond its own computing."""

import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from textbench.evaluation.cores import n_cores
from textbench.tasks import ingest, tune, vectorize
from textbench.tasks.storage.store import Store
from textbench.tasks.tokens import token_rule

N_TRIALS = 20


def main() -> None:
    """Print both in seconds; the first needs the archive of Reuters-21578."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store", workers=n_cores())
        for dataset, method in (("r8", "counts"), ("reuters65", "tfidf"), ("reuters65", "lsi")):
            _search(store, dataset, method)
    with tempfile.TemporaryDirectory() as folder:
        _overhead(Path(folder))


def _references(dataset: str) -> dict[str, object]:
    corpus = ingest.reference(dataset)
    vectors = vectorize.reference(corpus, asdict(token_rule("letters-stop-stem")), transductive=False)
    return {"corpus": corpus, "vectors": vectors}


def _search(store: Store, dataset: str, method: str) -> None:
    inputs = _references(dataset)
    store.ensure(inputs["vectors"])  # type: ignore[arg-type]
    reference = tune.reference(**inputs, method=method, seed=0, probe="linear-svm", trials=N_TRIALS)  # type: ignore[arg-type]
    begun = time.perf_counter()
    trials = store.open(reference).json("choice")["trials"]
    seconds = time.perf_counter() - begun
    own = sum(trial["seconds"] for trial in trials)
    print(
        f"{dataset} {method}: {len(trials)} trials in {seconds:.1f} s on {store.workers} workers; "
        f"one after another they cost {own:.1f} s"
    )


METHOD = '''"""A method that costs next to nothing.

Source: none.
"""
from optuna.distributions import FloatDistribution, IntDistribution
from textbench.featurizers.counts import Counts

INPUT = "counts"
SEARCH_SPACE = {"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1), "c": IntDistribution(0, 1000)}


class Free(Counts):
    def __init__(self, *, a=0.5, b=0.5, c=5):
        self.a, self.b, self.c = a, b, c


def build(**params):
    return Free(**params)
'''


def _overhead(folder: Path, n_trials: int = 100) -> None:
    from textbench.tasks.sources.user_data import UserData
    from textbench.tasks.sources.user_data import reference as own

    (folder / "free.py").write_text(METHOD)
    lines = [f"word{i % 7} {'red' if i % 2 else 'blue'},{'a' if i % 2 else 'b'}" for i in range(60)]
    (folder / "toy.csv").write_text("\n".join(["text,label", *lines]))
    corpus = own(UserData(str(folder / "toy.csv")))
    vectors = vectorize.reference(corpus, asdict(token_rule("words")), transductive=False)
    method = str(folder / "free.py")
    store = Store(folder / "store")
    store.ensure(vectors)
    reference = tune.reference(corpus, vectors, method, 0, "linear-svm", trials=n_trials)
    begun = time.perf_counter()
    trials = store.open(reference).json("choice")["trials"]
    beyond = time.perf_counter() - begun - sum(trial["seconds"] for trial in trials)
    print(f"a trial beyond its own computing: {1000 * beyond / len(trials):.1f} ms, mean of {len(trials)}")


if __name__ == "__main__":
    main()
