"""What is learned under a protocol that reads no test texts does not change with them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.own_documents import write
from tests.small_model import small_params
from textbench.featurizers._contract import SMALL, Subject, dense
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import Request
from textbench.tasks import catalogue, featurize
from textbench.tasks.storage.store import Store

WORDS = {"fruit": "apple pear plum fig lime quince", "metal": "iron zinc lead tin gold nickel"}
METHODS = catalogue.methods()
VECTORS = {"word_vectors__min_count": 1, "word_vectors__vector_size": 4, "word_vectors__epochs": 2}
# Of each paper, what its protocol reads of the test documents: their texts, or nothing.
READS_TEST_TEXTS = {
    "dcot-2012": False,
    "drbm-2008": False,
    "scdv-2017": True,
    "compressive-features-2013": True,
    "maas-2011": True,
}
PROTOCOLS = [
    (name, paper, terms)
    for name, entry in catalogue.datasets().items()
    for paper, terms in entry.constant("FAITHFUL", {}).items()
]


def small(name: str) -> str:
    """The method with settings that make it quick on few documents."""
    params = {key: SMALL[key] for key in sorted(Subject(METHODS[name].load()).accepted & SMALL.keys())}
    params.pop("random_state", None)
    params |= small_params(name)
    return catalogue.spelled(name, params | (VECTORS if "word_vectors" in METHODS[name].needs else {}))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two files of documents with the same training part and the same test labels, and other test texts."""
    folder, draw = tmp_path_factory.mktemp("pair"), np.random.default_rng(0)

    def rows(part: str, n_documents: int) -> list[str]:
        labels = [list(WORDS)[i % 2] for i in range(n_documents)]
        return [f"{' '.join(draw.choice(WORDS[name].split(), 6))},{name},{part}" for name in labels]

    train = rows("train", 24)
    tests = (
        rows("test", 6),
        ["gold gold gold gold lead unseen,fruit,test", *rows("test", 5)[1:], "fig,metal,test"],
    )
    return [
        write(folder, f"{i}.csv", "\n".join(["text,label,part", *train, *test]))
        for i, test in enumerate(tests)
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("learned") / "store", isolated=False)


def cell(path: Path, method: str, **options: Any) -> Cell:
    (found,) = plan(Request([], [method], own={"path": str(path), "split_column": "part"}, **options))
    return found


def learned(store: Store, cell: Cell) -> dict[str, Any]:
    """What a cell learned from its documents: settings, classifier and, of a representation, training features."""
    found = featurize.load_arrays(store.open(cell.references["evaluate"]), "probe")
    found |= {"choice": store.open(cell.references["tune"]).json("choice")["params"]}
    if "featurize" in cell.references:
        features = store.open(cell.references["featurize"])
        found |= {"features": dense(features.matrix("train")), **featurize.load_arrays(features, "model")}
    return found


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    assert first.keys() == second.keys()
    return [name for name in first if not np.array_equal(first[name], second[name])]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore")
def test_nothing_learned_honestly_changes_with_the_test_texts(
    pair: list[Path], store: Store, name: str
) -> None:
    first, second = (learned(store, cell(path, small(name))) for path in pair)
    assert differing(first, second) == []


def test_that_test_would_see_what_reads_test_texts(pair: list[Path], store: Store) -> None:
    cells = [cell(path, "tfidf", protocol="transductive") for path in pair]
    assert {"features", "idf_"} <= set(differing(*(learned(store, cell) for cell in cells)))


@pytest.mark.parametrize(("dataset", "paper", "terms"), PROTOCOLS)
def test_papers_protocols_read_what_the_papers_read(dataset: str, paper: str, terms: dict[str, Any]) -> None:
    """What a faithful protocol makes is, but for its token rule, what the honest one makes, or the transductive one."""
    is_read = READS_TEST_TEXTS[paper]
    for name in METHODS:
        asked = {"rule": terms["rule"], "probe": terms.get("probe")}
        faithful, *others = (
            plan(Request([dataset], [name], protocol=protocol, **options))[0].references
            for protocol, options in (
                ("faithful", {"paper": paper}),
                ("transductive" if is_read else "honest", asked),
                ("honest" if is_read else "transductive", asked),
            )
        )
        stage = "featurize" if "featurize" in faithful else "vectorize"
        assert faithful[stage].key == others[0][stage].key != others[1][stage].key


@pytest.mark.parametrize("name", [name for name, entry in METHODS.items() if "megabytes" in entry.bound])
@pytest.mark.parametrize("protocol", ["honest", "transductive"])
@pytest.mark.filterwarnings("ignore")
def test_features_by_blocks_are_those_that_are_made_at_once(
    name: str, protocol: str, pair: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the last digit of matrix products, which may be added up in another order for another number of rows."""
    reference = cell(pair[0], small(name), protocol=protocol).references["featurize"]
    whole = Store(tmp_path / "whole", isolated=False).open(reference)
    monkeypatch.setattr(featurize, "AT_ONCE", 5)
    by_blocks = Store(tmp_path / "blocks", isolated=False).open(reference)
    assert "train.data.npy" in by_blocks.meta["files"] or "train.npz" not in by_blocks.meta["files"]
    assert by_blocks.meta["zero_rows"] == whole.meta["zero_rows"]
    assert not differing(featurize.load_arrays(whole, "model"), featurize.load_arrays(by_blocks, "model"))
    for part in ("train", "test"):
        made, expected = (dense(artifact.matrix(part)) for artifact in (by_blocks, whole))
        np.testing.assert_allclose(made, expected, rtol=0, atol=1e-6)
