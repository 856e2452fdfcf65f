"""Vectors and predictions that were made elsewhere: whose row is whose, what is refused, and what becomes of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from sklearn.metrics import accuracy_score, f1_score, ndcg_score

from tests.own_documents import write
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import Request
from textbench.flows.results.rows import result_row
from textbench.tasks import InputError, catalogue, featurize, file_predictions, file_vectors, score
from textbench.tasks.corpus import read_corpus
from textbench.tasks.storage.store import Artifact, Store

NAMES = ["fruit", "metal", "wood"]
ROWS = [(f"text {i}", NAMES[i % 3], "test" if i % 4 == 3 else "train") for i in range(40)]
TEST = [label for _, label, part in ROWS if part == "test"]
N_TEST = len(TEST)
RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    lines = "".join(f"{','.join(row)}\n" for row in ROWS)
    write(folder, "made.csv", f"text,label,part\n{lines}")
    labels = "".join(f"{text},{label}|{NAMES[0]},{part}\n" for text, label, part in ROWS)
    write(folder, "several.csv", f"text,label,part\n{labels}")
    return folder


@pytest.fixture(scope="module")
def store(home: Path) -> Store:
    return Store(home / "store", isolated=False)


def cell_of(home: Path, method: str, data: str = "made.csv", **options: Any) -> Cell:
    own = {"path": str(home / data), "split_column": "part"}
    own |= {"label_separator": "|"} if data == "several.csv" else {}
    return plan(Request([], [method], own=own, **options))[0]


@pytest.fixture(scope="module")
def corpus(home: Path, store: Store) -> Artifact:
    return store.open(cell_of(home, "majority").references["ingest"])


VECTORS = RNG.normal(size=(len(ROWS), 3)).astype(np.float32)
IDS = np.array([f"train-{i}" for i in range(len(ROWS) - N_TEST)] + [f"test-{i}" for i in range(N_TEST)])
ORDER = RNG.permutation(len(ROWS))


def test_columns_of_a_table_that_are_no_features_are_refused(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path, table = tmp_path / "v.parquet", pandas.DataFrame(VECTORS[:4], columns=["a", "b", "c"])
    table.to_parquet(path)  # the index is a range, of which no column is written
    file_vectors.check_columns(path)
    table.assign(id=IDS[:4]).set_index("id").to_parquet(path)
    file_vectors.check_columns(path)
    table.iloc[[0, 1, 3]].to_parquet(path)
    with pytest.raises(InputError, match=r"__index_level_0__ is the index that pandas wrote .* index=False"):
        file_vectors.check_columns(path)
    table.assign(label=1).to_parquet(path)
    with pytest.raises(InputError, match="the column label tells the class and is no feature; leave it out"):
        file_vectors.check_columns(path)
    as_table(path, vector=pyarrow.array(VECTORS.tolist(), pyarrow.large_list(pyarrow.float32())))
    with pytest.raises(InputError, match="vector is a column of large lists"):
        file_vectors.check_columns(path)


def as_table(path: Path, **columns: Any) -> None:
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def test_every_kind_of_file_gives_each_document_its_row(tmp_path: Path, corpus: Artifact) -> None:
    mixed = VECTORS[ORDER]
    np.save(tmp_path / "plain.npy", VECTORS)
    np.savez(tmp_path / "ids.npz", vectors=mixed.astype(np.float64), ids=IDS[ORDER])
    as_table(tmp_path / "lists.parquet", id=IDS[ORDER], vector=list(mixed))
    as_table(tmp_path / "columns.parquet", id=IDS[ORDER], a=mixed[:, 0], b=mixed[:, 1], c=mixed[:, 2])
    # Names of the source: of a file of one's own the lines.
    own = read_corpus(corpus)
    named = np.array([*(own.train_ids or ()), *(own.test_ids or ())])
    np.savez(tmp_path / "names.npz", vectors=mixed, ids=named[ORDER])
    for path in tmp_path.iterdir():
        found, has_ids = file_vectors.read(path, corpus)
        assert found.dtype == np.float32 and (found == VECTORS).all(), path.name
        assert has_ids == (path.name != "plain.npy")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("short.npy", VECTORS[:-1], "a row for each of 40 documents .train and test., got 39; ids"),
        ("flat.npy", VECTORS.ravel(), "must hold a matrix of numbers, a row a document, got float32"),
        ("words.npy", VECTORS.astype(str), "must hold a matrix of numbers"),
        ("nan.npy", np.where(IDS[:, None] == "test-2", np.nan, VECTORS), "finite numbers, got others in 1 rows, the "
         "first that of test-2"),
        ("big.npy", VECTORS.astype(np.float64) * 1e300, "finite numbers"),
        ("object.npy", np.array([{}, {}]), "cannot be read: .*allow_pickle"),
        ("one.npz", {"vectors": VECTORS[1:], "ids": IDS[1:]}, "got none for 1 of them, the first 'train-0'"),
        ("twice.npz", {"vectors": VECTORS, "ids": np.append(IDS[:-1], IDS[0])}, "'train-0' twice"),
        ("more.npz", {"vectors": np.append(VECTORS, VECTORS[:1], 0), "ids": np.append(IDS, "test-99")}, "'test-99'"),
        ("few.npz", {"vectors": VECTORS, "ids": IDS[1:]}, "an id a row, got 39 for 40"),
        ("other.npz", {"x": VECTORS}, "must hold `vectors`, and `ids` if any, got x"),
    ],
)  # fmt: skip
def test_what_is_not_of_these_documents_is_refused(
    tmp_path: Path, corpus: Artifact, name: str, content: Any, said: str
) -> None:
    path = tmp_path / name
    with path.open("wb") as stream:
        if isinstance(content, dict):
            np.savez(stream, **content)
        else:
            np.save(stream, content, allow_pickle=True)
    with pytest.raises(InputError, match=said):
        file_vectors.read(path, corpus)


def test_a_run_of_vectors_is_one_of_a_method(home: Path, store: Store, tmp_path: Path) -> None:
    path = home / "own.npz"
    own = np.eye(3)[[NAMES.index(label) for part in ("train", "test") for _, label, p in ROWS if p == part]]
    np.savez(path, vectors=own[ORDER], ids=IDS[ORDER])
    spelled = catalogue.spelled(catalogue.VECTORS, {"path": str(path)})
    cell = cell_of(home, spelled)
    row = result_row(cell, store)
    assert row["metrics"]["accuracy"] == 1.0 and row["method"] == cell.method
    pinned = file_vectors.pinned({"path": str(path)})
    assert cell.method == f"own.npz, from file {pinned['sha256'][:8]}"
    assert row["params"]["sha256"] == pinned["sha256"]
    assert not row["seconds"]  # what it cost is not known
    features = featurize.reference(cell.references["vectorize"], catalogue.VECTORS, pinned, 0)
    assert (store.open(features).matrix("test") == own[-N_TEST:]).all()
    asked = {name: value for name, value in vars(cell.request).items() if name != "_kept"}
    assert plan(Request(**asked))[0].key == cell.key  # the request repeats it
    np.savez(path, vectors=own, ids=IDS)
    with pytest.raises(InputError, match="has changed: its sha256 must be"):
        plan(Request(**asked))


PREDICTED = [NAMES[(NAMES.index(label) + (i == 4)) % 3] for i, label in enumerate(TEST)]
SCORES = RNG.random((N_TEST, 3))
SOME = RNG.permutation(N_TEST)


def of_file(
    home: Path, store: Store, content: Any, name: str, data: str = "made.csv"
) -> tuple[Any, dict[str, float]]:
    path = home / name
    if isinstance(content, str):
        path.write_text(content)
    else:
        as_table(path, **content)
    cell = cell_of(home, catalogue.spelled(catalogue.PREDICTIONS, {"path": str(path)}), data)
    row = result_row(cell, store)
    assert row["metrics"] == score.metrics(store.open(cell.references["evaluate"]))
    return store.open(cell.references["evaluate"]).table("predictions").to_pydict(), row["metrics"]


def test_labels_are_scored(home: Path, store: Store) -> None:
    lines = "".join(f"{PREDICTED[i]},test-{i}\n" for i in SOME)
    table, metrics = of_file(home, store, f"label,id\n{lines}", "labels.csv")
    assert [NAMES[i] for i in table["predicted"]] == PREDICTED
    assert [NAMES[i] for i in table["target"]] == TEST
    assert metrics["accuracy"] == accuracy_score(TEST, PREDICTED) == 0.9
    assert metrics["macro_f1"] == pytest.approx(f1_score(TEST, PREDICTED, average="macro"))
    plain = "".join(f"{label}\n" for label in PREDICTED)
    assert of_file(home, store, f"label\n{plain}", "plain.csv")[1] == metrics


def test_scores_are_ranked_and_the_highest_is_predicted(home: Path, store: Store) -> None:
    columns = {name: SCORES[SOME, i] for i, name in enumerate(NAMES)}
    table, metrics = of_file(home, store, columns | {"id": [f"test-{i}" for i in SOME]}, "scores.parquet")
    assert table["predicted"] == SCORES.argmax(axis=1).tolist()
    ordered = np.sort(SCORES, axis=1)
    np.testing.assert_allclose(table["margin"], ordered[:, -1] - ordered[:, -2])
    assert metrics["accuracy"] == accuracy_score([NAMES.index(label) for label in TEST], table["predicted"])


def test_several_labels_are_lists_or_scores_above_a_threshold(home: Path, store: Store) -> None:
    lines = "".join(f"test-{i},{label}|{NAMES[0]}\n" for i, label in enumerate(TEST))
    _, metrics = of_file(home, store, f"id,label\n{lines}", "lists.csv", "several.csv")
    assert metrics["micro_f1"] == 1.0
    columns: dict[str, Any] = {name: SCORES[:, i] for i, name in enumerate(NAMES)}
    table, metrics = of_file(home, store, columns, "shares.parquet", "several.csv")
    assert table["predicted"] == [np.flatnonzero(row > 0.5).tolist() for row in SCORES]
    truth = np.array([[name in (label, NAMES[0]) for name in NAMES] for label in TEST])
    assert metrics["ndcg_at_5"] == pytest.approx(ndcg_score(truth, SCORES, k=5))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id,label\ntest-0,fruit\n", "each of 10 documents .test., got none for 9 of them, the first 'test-1'"),
        ("label\nfruit\n", "a row for each of 10 documents .test., got 1; ids"),
        ("label\n" + "friut\n" * 10, "test-0 has a label that the data set has not, 'friut'; did you mean fruit"),
        ("fruit,wood\n" + "1,2\n" * 10, "a column of scores for each of 3 classes, got none for 'metal'"),
        ("other\n" + "1\n" * 10, "must have a column label, or one of scores a class .'fruit', ...., got other"),
        ("fruit,metal,wood\n" + "1,2,nan\n" * 10, "finite scores, got nan of 'wood' for test-0"),
        ("fruit,metal,wood\n" + "1,2,x\n" * 10, "numbers in the columns of classes"),
        ("a,b\n1\n", "cannot be read"),
    ],
)  # fmt: skip
def test_predictions_that_are_none_are_refused(
    tmp_path: Path, corpus: Artifact, content: str, said: str
) -> None:
    path = write(tmp_path, "wrong.csv", content)
    with pytest.raises(InputError, match=said):
        file_predictions.read(path, corpus)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"path": "none.npy"}, "there is no file none.npy of vectors"),
        ({"path": __file__}, "vectors are read from .npy, .npz, .parquet, got test_tasks_given_files.py"),
        ({"file": "x"}, "vectors take path, sha256, path being a file, got"),
    ],
)
def test_a_file_is_there_and_of_a_kind(params: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        file_vectors.pinned(params)


def test_files_are_no_methods_that_are_listed() -> None:
    assert not set(catalogue.FILES) & set(catalogue.methods())
