"""The user's own documents through the whole command: a run, its page, the exported model; one label and several."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import rows_of, textbench
from textbench.tasks import catalogue

N_DOCUMENTS = 400


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A results folder whose server is stopped at the end."""
    folder = tmp_path_factory.mktemp("own")
    yield folder
    textbench("down", home=folder)


@pytest.fixture(scope="module")
def documents() -> list[tuple[str, str]]:
    """Real texts with their labels."""
    corpus = catalogue.dataset("r8").load().load()
    names = [corpus.target_names[target] for target in corpus.train_targets[:N_DOCUMENTS]]
    return list(zip(corpus.train_texts[:N_DOCUMENTS], names, strict=True))


def test_a_csv_file_is_compared_shown_exported_and_labelled(
    home: Path, documents: list[tuple[str, str]], tmp_path: Path
) -> None:
    path = tmp_path / "my stories.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("story", "topic"), *documents])
    columns = ("--text-column", "story", "--label-column", "topic", "--test-size", "0.25")
    command = ("run", "--data", str(path), *columns, "-m", "tfidf", "--seed", "0", "--json")
    row = rows_of(textbench(*command, home=home)[0])[0]
    assert row["dataset"] == "my-stories"
    assert row["metrics"]["accuracy"] >= 0.9
    assert rows_of(textbench(*command, home=home)[0])[0] == row | {"cached": True}

    about = json.loads(textbench("show", "last", "--json", home=home)[0])
    assert about["audit"]["documents"] == {"train": 300, "test": 100}
    assert about["recipe"]["token_rule"]["pattern"] == r"\w\w+"

    model = tmp_path / "model.npz"
    textbench("export", "last", "-o", str(model), home=home)
    (tmp_path / "new.txt").write_text(documents[0][0])
    labelled, _ = textbench("transform", str(model), str(tmp_path / "new.txt"), home=home)
    assert next(csv.DictReader(labelled.splitlines()))["label"] == documents[0][1]

    path.write_text(path.read_text().replace("earn", "profit"))
    changed = rows_of(textbench(*command, home=home)[0])[0]
    assert not changed["cached"]


def test_a_file_named_like_a_data_set_is_told_apart(
    home: Path, documents: list[tuple[str, str]], tmp_path: Path
) -> None:
    path = tmp_path / "r8.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("text", "label"), *documents])
    cells = rows_of(textbench("run", "--data", str(path), "--dry-run", "--json", home=home)[0])
    assert {cell["dataset"] for cell in cells} == {"own-r8"}


def test_several_labels_from_json_lines(home: Path, documents: list[tuple[str, str]], tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    lines = [
        {
            "text": text,
            "label": [label, "short" if len(text) < 500 else "long"],
            "part": "test" if i % 4 else "train",
        }
        for i, (text, label) in enumerate(documents)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    command = ("run", "--data", str(path), "--split-column", "part", "-m", "tfidf", "--seed", "0")
    probe = ("--probe", "logistic-regression")
    row = rows_of(textbench(*command, *probe, "--json", home=home)[0])[0]
    assert row["probe"] == "logistic-regression"
    assert 0.5 < row["metrics"]["micro_f1"] < 1
    assert 1 <= row["metrics"]["coverage_error"] < 6
    assert 0 < row["metrics"]["accuracy"] < row["metrics"]["micro_f1"]  # of documents given just their labels
    table, _ = textbench(*command, *probe, home=home)
    assert "micro-F1" in table and "LRAPS" in table
    page, _ = textbench("show", "last", home=home)
    assert "2.00 labels a training document" in page

    model = tmp_path / "model.npz"
    textbench("export", "last", "-o", str(model), home=home)
    (tmp_path / "new.txt").write_text(documents[0][0])
    labelled, _ = textbench("transform", str(model), str(tmp_path / "new.txt"), home=home)
    assert set(next(csv.DictReader(labelled.splitlines()))["label"].split(";")) <= {
        "short",
        "long",
        *(label for _, label in documents),
    }


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("text,label\na,b\n", ("--label-column", "topic"), ("'topic'", "text", "label")),
        ("text,label\na,x\nb,\n", (), ("3", "label")),
        ("text,label\na,x\nb,x\n", (), ("two classes", "x")),
        ("text,label\na,x,y\n", (), ("2", "3")),
    ],
)
def test_bad_documents_stop_the_run_with_one_line(
    home: Path, tmp_path: Path, content: str, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    output, errors = textbench("run", "--data", str(path), *options, home=home, code=2)
    assert output == ""
    assert len(errors.splitlines()) == 1
    assert all(word in errors for word in ("bad.csv", *words))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--data", "nowhere.csv"), "nowhere.csv"),
        (("--test-size", "0.2"), "--test-size describes your own documents and needs --data"),
        (("--probe", "linear-svn"), "did you mean linear-svm"),
        (("--rule", "leters"), "did you mean letters"),
        (("-d", "imdb"), "imdb"),
    ],
)
def test_bad_options_are_one_line(home: Path, arguments: tuple[str, ...], words: str) -> None:
    variables = {"TEXTBENCH_DATA_DIR": ""}
    _, errors = textbench("run", *arguments, home=home, code=2, variables=variables)
    assert words in errors
    assert len(errors.splitlines()) == 1


def test_a_papers_protocol_is_repeated(data_dir: Path, home: Path) -> None:
    command = ("run", "-d", "reuters65", "--protocol", "faithful", "-m", "tfidf", "--seed", "0", "--json")
    row = rows_of(textbench(*command, home=home)[0])[0]
    assert row["protocol"] == "faithful"
    assert row["metrics"]["accuracy"] > 0.944
    about = json.loads(textbench("show", "last", "--json", home=home)[0])
    assert about["recipe"]["transductive"] is False
    assert about["recipe"]["token_rule"]["stemmer"] == "porter"
    assert about["costs"]["untrained"]["documents"] == 13
