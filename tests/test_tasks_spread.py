"""Stages that workers compute together: the bytes of one machine, whoever computes a block and whoever writes it."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import scipy.sparse as sp

from textbench.featurizers import _block_krylov, _weights, lsi
from textbench.tasks import featurize, vectorize
from textbench.tasks.spread import lsi as spread_lsi
from textbench.tasks.spread import spans
from textbench.tasks.spread import vectorize as spread_vectorize
from textbench.tasks.storage import cluster
from textbench.tasks.storage import store as stores
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store
from textbench.tasks.tokens import RULES

AROUND = cluster.Cluster("tcp://127.0.0.1:9", "code")


class Here(cluster.Workers):
    """Workers that compute in this process, when they are asked."""

    n_threads = 2  # type: ignore[assignment]

    def __init__(self) -> None:
        self.calls: list[str] = []

    def hold(self, fn: Callable[..., Any], /, *args: Any, at: float | None = None, **_: Any) -> Any:
        assert at is None or 0 <= at < 1
        return self.submit(fn, *args)

    def everywhere(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> list[Any]:
        return [self.submit(fn, *args) for _ in range(2)]

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> "Future[Any]":
        self.calls.append(cluster.name_of(fn))
        done: Future[Any] = Future()
        done.set_result(fn(*map(_block_krylov._given, args)))
        return done

    def spread(self, value: Any) -> Any:
        return value


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Here:
    found = Here()

    @contextmanager
    def executor(_: cluster.Cluster) -> Iterator[Here]:
        yield found

    monkeypatch.setattr(cluster, "executor", executor)
    return found


def write_texts(job: Job) -> None:
    """Write a corpus of documents in row groups of 32; some are empty, one group has no token at all."""
    rng = np.random.default_rng(job.params["seed"])
    words = ["Red", "blue", "the", "Déjà", "ΣΑΣ", "x", "running", "runs", *(f"word{i}" for i in range(60))]
    for part, n in (("train", 170), ("test", 75)):
        given = [" ".join(rng.choice(words, rng.integers(0, 9))) for _ in range(n)]
        given[32:64] = ["."] * 32
        table = pyarrow.table({"text": given, "target": [0] * n})
        pyarrow.parquet.write_table(table, job.folder / f"{part}.parquet", row_group_size=32)


def write_counts(job: Job) -> None:
    """Write counts of 400 and 130 documents of 150 terms; some documents have none."""
    rng = np.random.default_rng(0)
    for part, n in (("train", 400), ("test", 130)):
        topics = rng.dirichlet(0.2 / np.arange(1, 151) ** 0.5, size=9)
        rows = np.array([rng.multinomial(30 if i % 40 else 0, topics[i % 9]) for i in range(n)])
        job.save_blocks(f"{part}_counts", [sp.csr_matrix(rows.astype(np.int32))])


TEXTS = Reference("ingest", f"{__name__}:write_texts", {"seed": 0})
COUNTS = Reference("vectorize", f"{__name__}:write_counts", {"transductive": False})


def computed(function: Callable[[Job], None], reference: Reference, store: Store, folder: Path) -> Job:
    folder.mkdir()
    job = Job(dict(reference.params), reference.inputs, folder, store)
    function(job)
    return job


def digests(job: Job) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in job.folder.iterdir()}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store(tmp_path / "store", remote=None, isolated=False, workers=2)
    for given in (TEXTS, COUNTS):
        found.ensure(given)
    return found


@pytest.mark.parametrize("transductive", [False, True])
@pytest.mark.parametrize("rule", ["words", "letters-stop-stem", "words-punctuation"])
@pytest.mark.parametrize(("n_threads", "sees"), [(1, True), (3, False)])
def test_blocks_of_texts_give_the_files_of_one_machine(
    rule: str,
    transductive: bool,
    n_threads: int,
    sees: bool,
    store: Store,
    workers: Here,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reference = vectorize.reference(TEXTS, asdict(replace(RULES[rule], min_df=2)), transductive)
    alone = computed(vectorize.compute, reference, store, tmp_path / "alone")
    monkeypatch.setattr(spread_vectorize, "MANY_BYTES", 1)
    workers.n_threads = n_threads  # type: ignore[misc]
    if not sees:  # the files of another machine
        count = spread_vectorize.count
        gone = tmp_path / "gone"

        def elsewhere(*given: Any) -> Any:
            *first, places = given
            counted = count(*first, places._replace(files=tuple(gone / path.name for path in places.files)))
            return counted._replace(
                pieces=[(places.files[0].parent / path.name, at, a) for path, at, a in counted.pieces]
            )

        monkeypatch.setattr(spread_vectorize, "count", elsewhere)
    spread = computed(
        spread_vectorize.compute, reference, replace(store, cluster=AROUND), tmp_path / "spread"
    )
    assert digests(spread) == digests(alone)
    assert spread.zero_rows == alone.zero_rows
    n_tasks = workers.calls.count("read")
    assert n_tasks > 2 and n_tasks == workers.calls.count("tell")


def test_few_bytes_and_pairs_of_words_are_counted_without_workers(
    store: Store, workers: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = replace(store, cluster=AROUND)
    few = vectorize.reference(TEXTS, asdict(RULES["words"]), transductive=False)
    computed(spread_vectorize.compute, few, sent, tmp_path / "few")
    monkeypatch.setattr(spread_vectorize, "MANY_BYTES", 1)
    for name in ("words-punctuation-2", "maas"):
        other = vectorize.reference(TEXTS, asdict(RULES[name]), transductive=False)
        computed(spread_vectorize.compute, other, sent, tmp_path / name)
    assert not workers.calls


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make few documents count as many."""
    monkeypatch.setattr(lsi, "LARGE", 1000)
    monkeypatch.setattr(_weights, "MANY", 2000)  # of the whole, not of a block
    monkeypatch.setattr(_block_krylov, "ROWS", 32)
    monkeypatch.setattr(_block_krylov, "SAMPLE", 90)


@pytest.mark.parametrize(
    ("weighting", "sees", "n_threads", "n_groups"),
    [("tfidf", True, 2, 2), ("tfidf", False, 3, 8), ("counts", True, 1, 1), ("counts", False, 16, 8)],
)
@pytest.mark.usefixtures("small")
def test_blocks_of_lsi_give_the_files_of_one_machine(
    weighting: str,
    sees: bool,
    n_threads: int,
    n_groups: int,
    store: Store,
    workers: Here,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "n_threads", n_threads)
    params = {"n_components": 5, "weighting": weighting, "normalize": sees}
    reference = featurize.reference(COUNTS, "lsi", params, 0)
    alone = computed(featurize.compute, reference, store, tmp_path / "alone")
    if not sees:
        features_of = spread_lsi.features_of
        monkeypatch.setattr(
            spread_lsi, "features_of", lambda *given: features_of(*given[:3], tmp_path / "gone", given[4])
        )
    spread = computed(spread_lsi.compute, reference, replace(store, cluster=AROUND), tmp_path / "spread")
    assert digests(spread) == digests(alone)
    assert spread.zero_rows == alone.zero_rows
    # Of the sample's halves, twice, and of the groups of eight shares in each pass.
    assert workers.calls.count("product") == 2 * min(n_groups, 2) + 3 * n_groups
    assert workers.calls.count("weighted") == 16 + 8  # once, whatever the number of passes


@pytest.mark.usefixtures("small")
def test_lsi_of_few_documents_or_for_one_worker_is_learned_without_workers(
    store: Store, workers: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = replace(store, cluster=AROUND)
    reference = featurize.reference(COUNTS, "lsi", {"n_components": 5}, 0)
    computed(spread_lsi.compute, reference, replace(sent, workers=1), tmp_path / "one")
    both = featurize.reference(replace(COUNTS, params={"transductive": True}), "lsi", {"n_components": 5}, 0)
    computed(spread_lsi.compute, replace(both, inputs={"vectors": COUNTS}), sent, tmp_path / "both")
    assert not workers.calls
    monkeypatch.setattr(lsi, "LARGE", 10**6)
    computed(spread_lsi.compute, reference, sent, tmp_path / "few")
    assert workers.calls == ["_nothing"] * 2


@pytest.mark.usefixtures("small")
def test_without_a_seed_all_workers_draw_the_same_numbers(
    workers: Here, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []

    def seen(*given: Any) -> list[np.ndarray]:
        drawn.append(random_slices(*given))
        return drawn[-1]

    random_slices = _block_krylov._random_slices
    monkeypatch.setattr(_block_krylov, "_random_slices", seen)
    X = store.open(COUNTS).matrix("train_counts").astype(np.float32)
    rows = [[X[a:b] for a, b in blocks] for blocks in _block_krylov.blocks_of_rows(X.shape[0])]
    calls = spread_lsi.OnOneThread(workers)
    _block_krylov.decompose(calls, rows, _block_krylov.samples(X), X.shape[1], 5, None)
    assert len(drawn) == 2
    assert all((one == other).all() for one, other in zip(*drawn, strict=True))


def test_what_is_computed_where_a_cluster_is_around_is_there() -> None:
    for functions in cluster.SPREAD.items():
        for function in functions:
            module, _, name = function.partition(":")
            assert callable(getattr(__import__(module, fromlist=[name]), name))


def test_a_span_that_differs_is_read_again_once_the_artifact_is_whole(store: Store) -> None:
    path = store.folder(TEXTS) / "train.parquet"
    span = spans.Span.of(TEXTS, path, 10, 200)
    expected = span.read(store)
    assert expected == path.read_bytes()[10:200]
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    assert span.read(store) == expected  # the artifact was made again
    with pytest.raises(OSError, match="differ between machines"):
        replace(span, sha256="0").read(store)


def test_a_span_is_read_from_the_shared_root_without_the_rest(tmp_path: Path) -> None:
    shared = str(tmp_path / "shared")
    first = Store(tmp_path / "first", remote=shared, isolated=False)
    first.ensure(TEXTS)
    span = spans.Span.of(TEXTS, first.folder(TEXTS) / "test.parquet", 5, 50)
    second = Store(tmp_path / "second", remote=shared, isolated=False)
    assert span.read(second) == span.read(first)
    assert not second.folder(TEXTS).exists()


def test_rows_of_a_large_table_are_read_by_themselves(store: Store, tmp_path: Path) -> None:
    job = Job({}, {}, tmp_path, store)
    for n, n_groups in ((stores.ROW_GROUP, 1), (stores.ROW_GROUP + 1, 2)):
        job.save_table("table", {"number": np.arange(n)})
        assert pyarrow.parquet.read_metadata(tmp_path / "table.parquet").num_row_groups == n_groups


def test_calls_are_not_all_under_way_at_once(workers: Here) -> None:
    asked: list[int] = []

    def numbers() -> Iterable[tuple[int]]:
        for i in range(20):
            asked.append(i)
            yield (i,)

    for i, found in enumerate(workers.each(abs, numbers())):
        assert found == i
        assert len(asked) <= i + 2 * workers.n_threads + 1
