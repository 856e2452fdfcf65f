"""Two representations side by side: the columns and scales by hand, what is searched, and what cannot be joined."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.own_documents import write
from tests.small_model import save_model
from textbench.flows.explain.estimators import method
from textbench.flows.explain.export import Model
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import Request
from textbench.flows.results.method_names import is_pretrained
from textbench.flows.results.rows import result_row
from textbench.flows.results.runs import Run
from textbench.tasks import InputError, catalogue, joined, predict
from textbench.tasks.storage.store import Store

ROWS = [(f"w{i % 7} {'apple' if i % 2 else 'iron'} w{i % 5}", "ab"[i % 2]) for i in range(40)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("joined")
    write(folder, "made.csv", "text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS))
    return folder


@pytest.fixture(scope="module")
def store(home: Path) -> Store:
    return Store(home / "store", isolated=False)


def cell_of(home: Path, method: str, **options: Any) -> Cell:
    return plan(Request([], [method], own={"path": str(home / "made.csv")}, **options))[0]


def features(store: Store, cell: Cell, part: str = "train") -> np.ndarray:
    found = predict.features_of(cell.references["vectorize"], store.open(cell.references["tune"]))
    assert found is not None
    matrix = store.open(found).matrix(part)
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def test_columns_of_both_stand_side_by_side_at_one_scale(home: Path, store: Store) -> None:
    cell = cell_of(home, "join(counts, char-ngrams(min_df=1), weight=0.25)")
    row = result_row(cell, store)
    assert (
        cell.method == "join(counts, char-ngrams(min_df=1), weight=0.25)" and row["metrics"]["accuracy"] == 1
    )
    assert {"first", "second", "featurize"} <= row["seconds"].keys()
    alone = [cell_of(home, name) for name in ("counts", "char-ngrams(min_df=1)")]
    scales = [np.linalg.norm(features(store, one), axis=1).mean() for one in alone]
    for part in ("train", "test"):
        blocks = [features(store, one, part) for one in alone]
        expected = np.hstack([2 * 0.75 * blocks[0] / scales[0], 2 * 0.25 * blocks[1] / scales[1]])
        np.testing.assert_allclose(features(store, cell, part), expected, rtol=1e-5)
    again = plan(Request(**{k: v for k, v in vars(cell.request).items() if k != "_kept"}))[0]
    assert again.key == cell.key


def test_the_weight_and_both_methods_are_searched_together(home: Path, store: Store) -> None:
    cell = cell_of(home, "join(tfidf, char-ngrams(min_df=1, min_n=2))", trials=5)
    choice = store.open(cell.references["tune"]).json("choice")
    assert choice["space"].keys() == {
        *("weight", "first__sublinear_tf", "first__smooth_idf", "first__norm"),
        *("second__max_n", "second__lowercase"),
    }
    assert choice["trials"][0]["values"]["weight"] == joined.WEIGHT
    assert len({trial["values"]["weight"] for trial in choice["trials"]}) > 1
    assert not result_row(cell, store)["error"]


def test_a_join_of_texts_needs_no_token_rule_and_is_pretrained_where_a_part_is(
    home: Path, store: Store
) -> None:
    model = save_model(home / "model")
    cell = cell_of(home, f"join(tfidf, sentence(model={str(model)!r}, backend='numpy'))")
    assert "text_vectors" in cell.references
    assert features_shape(store, cell) == features_shape(store, cell_of(home, "tfidf")) + 32
    assert is_pretrained(cell.method) and not is_pretrained("join(tfidf, lsi)")
    assert cell_of(home, "join(char-ngrams, hashing)").references["vectorize"].params["rule"] is None
    assert cell_of(home, "join(char-ngrams, counts)").references["vectorize"].params["rule"] is not None


def features_shape(store: Store, cell: Cell) -> int:
    store.ensure(cell.references["tune"])
    return int(features(store, cell).shape[1])


def test_a_join_is_written_as_a_call() -> None:
    name, params = catalogue.parse_method("join(char-ngrams, lsi(n_components=3), weight=0.2)")
    assert (name, params) == (
        "join",
        {"first": "char-ngrams", "second": "lsi(n_components=3)", "weight": 0.2},
    )
    assert catalogue.parse_method(catalogue.spelled(name, params)) == (name, params)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("join(tfidf, nb)", "second must be a representation of the catalogue that uses no labels, got nb"),
        ("join(chi2, tfidf)", "first must be a representation"),
        ("join(tfidf, chi2)", "second must be a .* that uses no labels, got chi2"),
        ("join(lz77(order='by_class'), tfidf)", "first must be a .* that uses no labels, got lz77"),
        ("join(tfidf, lsi(n_componets=3))", "lsi has no parameter 'n_componets'"),
        ("join(tfidf, tfidff)", "did you mean tfidf"),
        ("join(tfidf, lsi, weight=1)", "weight must be a number above 0 and below 1, got 1"),
        ("join(first='tfidf')", "join takes two methods, as in join.tfidf, sentence., and weight; got first"),
        ("join(tfidf)", "a method is a name, or a name with parameters"),
    ],
)
def test_what_cannot_be_joined_is_refused(method: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        plan(Request(["r8"], [method]))


@pytest.mark.parametrize("refit", [False, True])
def test_an_exported_join_gives_the_features_and_labels_of_the_run(
    home: Path, store: Store, refit: bool
) -> None:
    cell = cell_of(home, "join(counts, char-ngrams(min_df=1), weight=0.25)")
    row = result_row(cell, store) | {"key": cell.key, "run_id": None, "request": asdict(cell.request)}
    Model.from_run(Run(home, row), refit=refit).save(home / "join.npz")
    model = Model.load(home / "join.npz")
    texts = store.open(cell.references["ingest"]).table("test", ["text"])["text"].to_pylist()
    made = model.features(texts)
    assert len(model.feature_names()) == made.shape[1]
    assert {name.partition("__")[0] for name in model.feature_names()} == {"first", "second"}
    assert set(model.predict([*texts, "iron w1", "w2 apple w3"])) == {"a", "b"}
    if not refit:
        assert (made.toarray() == features(store, cell, "test")).all()
        labels = store.open(cell.references["evaluate"]).table("predictions")["predicted"].to_pylist()
        assert model.predict(texts) == ["ab"[label] for label in labels]


def test_a_join_is_no_estimator_and_a_part_of_ones_own_is_not_exported(home: Path, store: Store) -> None:
    for text, params in (("join(tfidf, lsi)", {}), ("join", {"first": "tfidf", "second": "lsi"})):
        with pytest.raises(InputError, match=r"join is no estimator: .* scikit-learn's FeatureUnion"):
            method(text, **params)
    own = home / "mine.py"
    own.write_text((catalogue.METHODS / "counts.py").read_text("utf-8"))
    cell = cell_of(home, f"join(counts, first='{own}', second='tfidf')".replace("counts, ", ""))
    row = result_row(cell, store) | {"key": cell.key, "run_id": None, "request": asdict(cell.request)}
    with pytest.raises(InputError, match=r"a join with a method of your own, .*mine.py, is not exported"):
        Model.from_run(Run(home, row))
