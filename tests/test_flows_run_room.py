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
from textbench.flows.run.preflight import require_data
from textbench.flows.run.room import megabytes
from textbench.tasks import InputError, catalogue
from textbench.tasks.storage.store import Store

FORECAST = [name for name, entry in catalogue.methods().items() if "megabytes" in entry.bound]


def test_a_method_that_needs_more_stops_before_anything(tmp_path: Path) -> None:
    rows = [f"w{i % 7} w{i % 5},{'ab'[i % 2]}\n" for i in range(40)]
    own = {"path": str(write(tmp_path, "one.csv", "text,label\n" + "".join(rows)))}
    cells = plan(BenchmarkRequest([], ["tfidf", "dcot(n_prototypes=100)"], own=own))
    expected = 12e-6 * 28 * 3 * 100
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
    parts = megabytes("dcot", {}, 9), megabytes("scdv", {}, 9)
    joined = megabytes("join", {"first": "dcot", "second": "scdv"}, 9)
    assert max(parts) < joined < sum(parts) * 1.5
    assert megabytes("tfidf", {}, 10**9) == 0


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("scdv", {"n_clusters": 10}),
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
