"""`textbench transform` and `export --refit`: new texts from every kind of file, labels and values as CSV."""

import csv
import io
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from typer.testing import CliRunner

from textbench.flows.cli import app
from textbench.flows.explain.export import Model
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import Request
from textbench.flows.results.index import Index
from textbench.flows.results.rows import result_row
from textbench.flows.results.runs import Run
from textbench.tasks import InputError
from textbench.tasks.storage.store import Store

Command = Callable[..., Any]
# Names that a table could stumble over.
CLASSES = {
    "label": "wheat corn tonnes",
    '=cost, "net"': "profit cents share",
    "oil\nbarrel": "crude opec barrels",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Exported models of forty documents of three classes: by Naive Bayes, logistic regression, linear SVM."""
    folder = tmp_path_factory.mktemp("models")
    labels = list(CLASSES) * 14
    texts = [f"{CLASSES[label]} report{number % 5}" for number, label in enumerate(labels)]
    pd.DataFrame({"text": texts, "label": labels}).to_csv(folder / "news.csv", index=False)
    store = Store(folder / "home" / "store")
    asked = {
        "nb": ("nb", None),
        "odds": ("tfidf", "logistic-regression"),
        "svm": ("lsi(n_components=2)", None),
        "chi": ("chi2(n_terms=8)", None),
        "text": ("char-ngrams(min_df=1)", None),
    }
    found = {}
    for name, (method, probe) in asked.items():
        request = Request([], [method], own={"path": str(folder / "news.csv")}, probe=probe)
        (cell,) = plan(request)
        store.open(cell.references["evaluate"])
        about = {"run_id": f"run{name}".ljust(12, "0"), "created": time.time(), "tracking_uri": "none"}
        about |= {"sweeps": [], "attempt": "", "request": asdict(cell.request)}
        Index(folder / "home").put(cell, result_row(cell, store) | about)
        found[name] = folder / f"{name}.npz"
        row = next(row for row in Index(folder / "home").rows() if row["run_id"] == about["run_id"])
        Model.from_run(Run(folder / "home", row)).save(found[name])
    return found


@pytest.mark.parametrize("name", ["nb", "odds", "svm", "chi", "text"])
def test_refit_trains_on_all_documents_and_says_so(
    name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    environment = {"TEXTBENCH_HOME": str(models[name].parent / "home")}
    arguments = ["export", f"run{name}".ljust(6, "0"), "--refit", "-o", str(tmp_path / "all.npz")]
    printed = CliRunner().invoke(app, arguments, env=environment)
    assert printed.exit_code == 0, printed.output
    assert "Trained on all documents: none are left to measure its accuracy on." in printed.stdout
    run, whole = Model.load(models[name]), Model.load(tmp_path / "all.npz")
    assert run.manifest["training"] == {"documents": "training", "accuracy": "the metrics of the run"}
    assert whole.manifest["training"]["documents"] == "training and test"
    assert whole.manifest["training"]["accuracy"].startswith("not measured")
    assert whole.manifest["run"] == run.manifest["run"]
    news = pd.read_csv(models[name].parent / "news.csv")
    texts = sorted(set(news["text"]))
    assert not np.array_equal(run.answer(texts).values, whole.answer(texts).values)
    if name == "nb":
        count = CountVectorizer(vocabulary=whole.manifest["terms"])
        trained = MultinomialNB().fit(count.transform(news["text"]), news["label"])
        assert sorted(set(" ".join(texts).split())) == whole.manifest["terms"]
        expected = trained.predict_proba(count.transform(texts))
        np.testing.assert_allclose(whole.answer(texts).values, expected)


@pytest.mark.parametrize("method", ["tfidf", "nb"])
def test_refit_keeps_the_thresholds_of_several_labels(method: str, tmp_path: Path) -> None:
    labels = ["oil", "wheat", "oil|wheat", "gas"] * 10
    texts = [f"{label.replace('|', ' ')} news {number % 3}" for number, label in enumerate(labels)]
    pd.DataFrame({"text": texts, "label": labels}).to_csv(tmp_path / "news.csv", index=False)
    own = {"path": str(tmp_path / "news.csv"), "label_separator": "|"}
    (cell,) = plan(Request([], [method], own=own))
    store = Store(tmp_path / "home" / "store")
    store.open(cell.references["evaluate"])
    record = {"run_id": "", "created": time.time(), "tracking_uri": "none", "sweeps": [], "attempt": ""}
    Index(tmp_path / "home").put(cell, result_row(cell, store) | record | {"request": asdict(cell.request)})
    run = Run(tmp_path / "home", Index(tmp_path / "home").rows()[0])
    once, whole = Model.from_run(run), Model.from_run(run, refit=True)
    (name,) = [name for name in once.arrays if "thresholds" in name]
    np.testing.assert_array_equal(once.arrays[name], whole.arrays[name])
    answers = whole.answer(["oil wheat", "gas"])
    assert answers.labels == [["oil", "wheat"], ["gas"]]
    assert answers.classes == ["gas", "oil", "wheat"]


def transform(*arguments: object, stdin: bytes = b"") -> tuple[str, str]:
    """Return what the command prints, and what it says on standard error."""
    result = CliRunner().invoke(app, ["transform", *map(str, arguments)], input=stdin)
    if isinstance(result.exception, InputError):
        assert "\n" not in str(result.exception)
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


TEXTS = ["tonnes of wheat", "opec barrels", "net profit a share"]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "csv.gz", "txt"])
def test_every_kind_of_file_gives_the_same_answers(
    ending: str, models: dict[str, Path], tmp_path: Path
) -> None:
    file, table = tmp_path / f"new.{ending}", pd.DataFrame({"id": [1, 2, 3], "body": TEXTS})
    if ending == "parquet":
        table.to_parquet(file)
    elif ending == "jsonl":
        table.to_json(file, orient="records", lines=True)
    elif ending == "txt":
        file.write_text("\n".join(TEXTS), "utf-8")
    else:
        table.to_csv(file, index=False, sep="\t" if ending == "tsv" else ",")
    answered = rows(transform(models["svm"], file, "--text-column", "body")[0])
    assert [row["label"] for row in answered] == ["label", "oil\nbarrel", '=cost, "net"']
    first = {"parquet": "row 1", "txt": "line 1", "jsonl": "line 1"}.get(ending, "line 2")
    assert answered[0]["document"] == f"{file}, {first}"
    same = rows(transform(models["svm"], "-", stdin="\n".join(TEXTS).encode())[0])
    assert [list(row.values())[1:] for row in same] == [list(row.values())[1:] for row in answered]


@pytest.mark.parametrize(
    ("name", "kind"), [("nb", "probability"), ("odds", "probability"), ("svm", "decision")]
)
def test_values_by_class_are_those_of_the_model(name: str, kind: str, models: dict[str, Path]) -> None:
    printed, said = transform(models[name], stdin="\n".join(TEXTS).encode())
    assert said == ""
    table = pd.read_csv(io.StringIO(printed))
    order = sorted(CLASSES)
    assert list(table.columns) == ["document", "label", *(f"{kind}_{name}" for name in order)]
    answers = Model.load(models[name]).answer(TEXTS)
    values = table.iloc[:, 2:].to_numpy()
    np.testing.assert_allclose(values, answers.values, rtol=1e-5)
    assert [order[column] for column in values.argmax(axis=1)] == table["label"].tolist() == answers.labels
    if kind == "probability":
        np.testing.assert_allclose(answers.values.sum(axis=1), 1)
    as_json = [
        json.loads(line)
        for line in transform(models[name], "--json", stdin="\n".join(TEXTS).encode())[0].splitlines()
    ]
    assert [row["label"] for row in as_json] == answers.labels
    np.testing.assert_allclose([list(row[kind].values()) for row in as_json], answers.values)


def test_naive_bayes_gives_the_posterior_of_its_joint_probabilities(models: dict[str, Path]) -> None:
    model = Model.load(models["nb"])
    learned = {name.partition("/")[2]: array for name, array in model.arrays.items()}
    counts = np.array([[text.split().count(term) for term in model.manifest["terms"]] for text in TEXTS])
    joint = np.exp(counts @ learned["coef_"].T + learned["intercept_"])
    np.testing.assert_allclose(model.answer(TEXTS).values, joint / joint.sum(axis=1, keepdims=True))


def test_blank_texts_are_left_out_and_counted(models: dict[str, Path], tmp_path: Path) -> None:
    printed, said = transform(models["nb"], stdin=b"opec\r\n\n  \nwheat\n")
    assert [row["document"] for row in rows(printed)] == ["line 1", "line 4"]
    assert said == "textbench: 2 blank texts left out\n"
    (tmp_path / "new.csv").write_text('text\nopec\n" "\n')
    assert transform(models["nb"], tmp_path / "new.csv")[1] == "textbench: 1 blank text left out\n"


def test_other_separators_and_encodings_are_read(models: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    file.write_text("id;text\n1;opec déjà\n", "latin-1")
    with pytest.raises(InputError, match="say its own: --encoding latin-1"):
        transform(models["nb"], file)
    (row,) = rows(transform(models["nb"], file, "--encoding", "latin-1", "--separator", ";")[0])
    (line,) = rows(transform(models["nb"], "--encoding", "utf-16", stdin="opec déjà".encode("utf-16"))[0])
    assert list(row.values())[1:] == list(line.values())[1:]
    for option, value in (("--encoding", "latin-x"), ("--separator", ";;")):
        with pytest.raises(InputError, match=f"{option} must be"):
            transform(models["nb"], file, option, value)


def test_a_whole_file_is_one_text(models: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("opec\n\nbarrels and wheat\n", "utf-8-sig")
    (row,) = rows(transform(models["nb"], file, "--whole")[0])
    (line,) = rows(transform(models["nb"], "--whole", stdin=file.read_bytes())[0])
    (one,) = rows(transform(models["nb"], stdin=b"opec barrels and wheat")[0])
    assert row["document"] == str(file)
    assert line["document"] == "standard input"
    assert list(row.values())[1:] == list(line.values())[1:] == list(one.values())[1:]


def test_results_go_to_a_file(models: dict[str, Path], tmp_path: Path) -> None:
    stdin = "\n".join(TEXTS).encode()
    wrote = f"Wrote {tmp_path / 'labels.csv'}\n"
    assert transform(models["nb"], "-o", tmp_path / "labels.csv", stdin=stdin) == ("", wrote)
    assert (tmp_path / "labels.csv").read_text("utf-8") == transform(models["nb"], stdin=stdin)[0]
    dense, sparse = tmp_path / "dense", tmp_path / "sparse"
    for name, base, ending in (("svm", dense, ".npy"), ("odds", sparse, ".npz")):
        for out in (base.with_suffix(ending), base.with_suffix(".csv")):
            transform(models[name], "--output", "features", "-o", out, stdin=stdin)
    table = pd.read_csv(dense.with_suffix(".csv"), index_col="document")
    np.testing.assert_array_equal(table.to_numpy(np.float32), np.load(dense.with_suffix(".npy")))
    table = pd.read_csv(sparse.with_suffix(".csv"), index_col="document")
    np.testing.assert_allclose(table.to_numpy(), scipy.sparse.load_npz(sparse.with_suffix(".npz")).toarray())
    assert table.loc["line 1", "feature_wheat"] > 0
    assert table.loc["line 2", "feature_wheat"] == 0


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.csv", b"body\nopec\n", [], "there must be a text column 'text', got the columns 'body'"),
        ("a.csv", b"text\n\xe9\n", [], "line 2: text must be UTF-8, got byte 0xe9"),
        ("a.txt", b"opec\nd\xe9j\xe0", [], "a.txt: text must be UTF-8, got byte 0xe9 at byte offset 6"),
        ("a.jsonl", b'{"text": 3}\n', [], "line 1: the text must be a string, got 3"),
        ("a.parquet", b"PAR1", [], "must be a sound Parquet file"),
        ("a.pdf", b"%PDF", [], "texts are read from files ending in .txt, .csv"),
        ("a.csv", b"text\nopec\n", ["--whole"], "--whole is for plain text"),
        ("a.csv", b"text\n", [], "a.csv held no documents"),
        ("a.txt", b" \n\n", [], "a.txt held nothing but blank texts, 2 of them"),
        ("absent.csv", None, [], "there is no file or folder"),
        ("absent.txt", None, [], "No such file"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_line(
    name: str,
    content: bytes | None,
    options: list[str],
    message: str,
    models: dict[str, Path],
    tmp_path: Path,
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        transform(models["nb"], tmp_path / name, *options)
    assert message in str(caught.value)
