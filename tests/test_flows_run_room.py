"""Room: a method that needs more memory than there is stops before anything is computed, in one line."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tests.own_documents import write
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import BenchmarkRequest
from textbench.flows.run import room
from textbench.flows.run.preflight import require_data
from textbench.flows.run.room import megabytes, settings_within
from textbench.tasks import InputError, catalogue
from textbench.tasks.storage.store import Store

FORECAST = [name for name, entry in catalogue.methods().items() if "megabytes" in entry.bound]


def test_a_method_that_needs_more_stops_before_anything(tmp_path: Path) -> None:
    rows = [f"w{i % 7} w{i % 5},{'ab'[i % 2]}\n" for i in range(40)]
    own = {"path": str(write(tmp_path, "one.csv", "text,label\n" + "".join(rows)))}
    cells = plan(BenchmarkRequest([], ["tfidf", "dcot(n_prototypes=100)"], own=own))
    expected = 6.5e-6 * 28 * 3 * 100
    assert megabytes("dcot", {"n_prototypes": 100}, 28) == pytest.approx(expected)
    require_data(tmp_path, cells, memory_limit=expected * 1.01)
    with pytest.raises(InputError, match=r"n_prototypes=100\) would need about 0 MB for the 28 training"):
        require_data(tmp_path, cells, memory_limit=expected * 0.99)
    store = Store(tmp_path / "store")
    assert not any(store.has(cell.references[stage]) for cell in cells for stage in ("featurize", "evaluate"))


def test_forecasts_grow_with_documents_and_parameters() -> None:
    for name in FORECAST:
        assert megabytes(name, {}, 2000) == pytest.approx(2 * megabytes(name, {}, 1000)), name
        assert megabytes(name, {}, 1000) > 0, name
    assert megabytes("scdv", {"word_vectors__vector_size": 100}, 9) == megabytes("scdv", {}, 9) / 2
    assert megabytes("bowv", {"n_clusters": 30}, 9) == megabytes("bowv", {}, 9) / 2
    parts = megabytes("dcot", {}, 9), megabytes("scdv", {}, 9)
    joined = megabytes("join", {"first": "dcot", "second": "scdv"}, 9)
    assert joined == pytest.approx(room.COPIED * sum(parts))
    assert megabytes("tfidf", {}, 10**9) == 0


@pytest.mark.parametrize("name", FORECAST)
def test_the_settings_that_would_fit_are_the_largest(name: str) -> None:
    there_is = megabytes(name, {}, 1000) / 2.5
    fitting = [one.split("=") for one in settings_within(name, {}, 1000, there_is)]
    assert fitting
    for parameter, value in fitting:
        assert megabytes(name, {parameter: int(value)}, 1000) <= there_is
        assert megabytes(name, {parameter: int(value) + 1}, 1000) > there_is
    assert settings_within(name, {}, 10**9, 0.0) == []


def test_another_probe_copies_features(tmp_path: Path) -> None:
    rows = [f"w{i % 7} w{i % 5},{'ab'[i % 2]}\n" for i in range(40)]
    own = {"path": str(write(tmp_path, "one.csv", "text,label\n" + "".join(rows)))}
    cells = plan(BenchmarkRequest([], ["dcot"], probe="logistic-regression", own=own))
    there_is = 1.1 * megabytes("dcot", {}, 28)
    with pytest.raises(InputError, match=r"choose n_prototypes=244 or fewer documents"):
        require_data(tmp_path, cells, memory_limit=there_is)


@pytest.mark.parametrize("name", ["gzip-knn", "knn"])
def test_pairs_of_documents_are_refused_where_they_take_too_long(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"w{i % 7} w{i % 5},{'ab'[i % 2]}\n" for i in range(40)]
    own = {"path": str(write(tmp_path, "one.csv", "text,label\n" + "".join(rows)))}
    cells = plan(BenchmarkRequest([], [name], own=own))
    require_data(tmp_path, cells, time_limit=1e-9)  # few documents are not timed
    monkeypatch.setattr(room, "FEW", 27)
    require_data(tmp_path, cells, time_limit=3600.0)
    with pytest.raises(InputError, match=rf"{name} would need about 0 hours for the 28 training and 12 test"):
        require_data(tmp_path, cells, time_limit=1e-9)


def test_only_pairs_of_documents_are_timed() -> None:
    """Each other method's work is a constant a document or token."""
    assert [name for name, entry in catalogue.methods().items() if "seconds" in entry.bound] == [
        "gzip-knn",
        "knn",
    ]


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("scdv", {"n_clusters": 40}),
        ("bowv", {"n_clusters": 20}),
        ("dcot", {"n_prototypes": 150}),
        ("msda", {"n_targets": 150}),
        ("sda", {"n_hidden": 150, "n_features": 150, "n_epochs": 1}),
    ],
)
def test_a_forecast_is_about_what_is_used(name: str, params: dict[str, Any]) -> None:
    """Short documents of 150 terms: what is allocated at once is a third to three times of it."""
    rng = np.random.default_rng(0)
    X = sp.random(6000, 150, density=0.1, format="csr", random_state=0, dtype=np.float32)
    X.data[:] = 1
    module = catalogue.method(name).load()
    vectors = rng.normal(size=(150, 40)).astype(np.float32)
    needed = {"word_vectors": vectors} if "word_vectors" in catalogue.method(name).needs else {}
    seeded = {"random_state": 0} if catalogue.method(name).is_seeded else {}
    module.build(**params, **seeded).fit(X[:300], **needed)  # compile
    tracemalloc.start()
    module.build(**params, **seeded).fit_transform(X, **needed)
    used = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    assert used / 3 < module.megabytes(module.build(**params), 6000, 40) < 3 * used


GREEDY = '''"""A method that takes a megabyte and some milliseconds a document.

Source: none.
"""
import time

import numpy as np

from textbench.featurizers.counts import Counts

INPUT = "counts"
SEARCH_SPACE = {}


class Greedy(Counts):
    def fit(self, X, y=None):
        time.sleep(0.004 * X.shape[0])
        np.ones(125_000 * X.shape[0]).sum()
        return super().fit(X)


def build(**params):
    return Greedy(**params)
'''


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Documents that are many, and samples of which are small."""
    monkeypatch.setattr(room, "MANY", 600)
    monkeypatch.setattr(room, "SAMPLES", (50, 100, 300))
    rows = [f"w{i % 7} w{i % 5},{'ab'[i % 2]}\n" for i in range(1000)]
    return {"path": str(write(tmp_path, "many.csv", "text,label\n" + "".join(rows)))}


def test_what_a_method_does_not_say_is_told_by_samples(many: dict[str, str], tmp_path: Path) -> None:
    (method := tmp_path / "greedy.py").write_text(GREEDY)
    cells = plan(BenchmarkRequest([], [str(method), "tfidf", "nb"], own=many))
    said: list[str] = []
    require_data(tmp_path, cells, say=said.append)
    store = Store(tmp_path / "store")
    assert not any(store.has(cell.references[stage]) for cell in cells for stage in ("tune", "evaluate"))
    assert [line.partition(":")[0] for line in said[::2]] == ["greedy", "tfidf", "nb"]
    assert said[0] == "greedy: trying it on 50 to 300 of 700 training documents of many"
    assert all(": all would take about " in line for line in said[1::2])
    found = [room.by_samples(store, cell, room._untold(store, cell), 700) for cell in cells]
    assert [list(stages) for stages in found] == [["featurize"], ["featurize"], ["tune", "evaluate"]]
    seconds, used = found[0]["featurize"]
    assert 0.9 * 2.8 < seconds < 60 and 700 < used < 1800
    assert found[1]["featurize"][1] < 700
    for limits, what in (((0.5 * used, None), "MB"), ((None, 0.5 * 2.8), "seconds")):
        with pytest.raises(InputError, match=f"greedy would need about .* {what}.* choose fewer documents"):
            require_data(tmp_path, cells, say=said.append, memory_limit=limits[0], time_limit=limits[1])


def test_members_of_ensembles_and_joins_are_told_too(many: dict[str, str], tmp_path: Path) -> None:
    """Each member once, though it stands alone too; a join whose parts do not all say what they need."""
    together = "ensemble(dcot(n_prototypes=3), tfidf, nb@letters)"
    cells = plan(BenchmarkRequest([], ["tfidf", together, "join(tfidf, dcot(n_prototypes=3))"], own=many))
    said: list[str] = []
    require_data(tmp_path, cells, say=said.append)
    assert [line.partition(":")[0] for line in said[::2]] == ["tfidf", "nb@letters", cells[2].method]
    with pytest.raises(
        InputError, match=r"^dcot\(n_prototypes=3\) would need about 0 MB for the 700 training"
    ):
        require_data(tmp_path, cells[1:2], say=said.append, memory_limit=1e-9)


def test_what_is_there_or_small_is_not_tried(many: dict[str, str], tmp_path: Path) -> None:
    (cell,) = plan(BenchmarkRequest([], ["tfidf"], own=many))
    store = Store(tmp_path / "store")
    for stage in ("ingest", "featurize"):
        store.ensure(cell.references[stage])
    said: list[str] = []
    require_data(tmp_path, [cell], say=said.append)
    assert not said
    assert not (store.root / "sample").exists()


def test_a_third_sample_is_left_out_where_it_takes_long(
    many: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (method := tmp_path / "greedy.py").write_text(GREEDY)
    (cell,) = plan(BenchmarkRequest([], [str(method)], own=many))
    store = Store(tmp_path / "store")
    store.ensure(cell.references["ingest"])
    for patience, n in ((0.1, 2), (60.0, 3)):
        monkeypatch.setattr(room, "PATIENCE", patience)
        room.by_samples(store, cell, room._untold(store, cell), 700)
        assert len(list((store.root / "sample").glob("[!.]*"))) == n


def test_what_fails_on_a_sample_is_not_refused(many: dict[str, str], tmp_path: Path) -> None:
    (method := tmp_path / "greedy.py").write_text(
        GREEDY.replace("time.sleep", "assert X.shape[0] > 400; time.sleep")
    )
    said: list[str] = []
    require_data(tmp_path, plan(BenchmarkRequest([], [str(method)], own=many)), say=said.append)
    assert "a sample tells nothing: " in said[1] and len(said) == 2
