"""Every command of the how-to pages, the explanations, README and CONTRIBUTING is run, one after the other.

A folder stands in for the reader's: it has the files that pages name. What would compute for hours is planned
(`--dry-run`); what is not run at all stands in `NOT_RUN`, with its reason.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import textbench as tb
from infra.docs import record
from tests.commands import environment
from tests.embeddings_stub import small_endpoint
from tests.small_model import small_model
from tests.test_docs_blocks import PAGES, blocks
from tests.warm import PROJECT, Process

TUTORIALS = [page for page in PAGES if page.parent == record.DOCS / "tutorial"]  # they are tests of their own
# The reader's own, and data sets that are quicker.
STAND_INS = {"my-dataset": "r8", "20ng": "r8", "FOLDER": "small-model"}
# Hours on one machine.
PLANNED = {
    "textbench run scdv",
    "textbench run dcot --part grid",
    "textbench run -d r8 -m tfidf -m sentence",
    "textbench run -d r8 -m 'join(tfidf, sentence)'",
    "textbench run -d r52 -m tfidf -m lsi --seeds 5",
    "textbench run -d r52 -m tfidf -m nb-svm --seeds 5",
    "textbench run -d r8 -m lsi --trials 20",
    "textbench run -d r8 -d r52 -d 20ng -m tfidf -m lsi --probe perceptron",
    "textbench run -d r8 -m lsi --search-seconds 60",
    "textbench run -d r8 -m 'ensemble(tfidf, nb-svm, lsi@letters)' --seeds 3",
}
NOT_RUN = {
    "textbench run dcot --engine dask --address tls://scheduler:8786": "a cluster is needed; tests of Dask have one",
    "textbench export best -d r8 --mlflow": "the best run here is of a file; tests of the registry have others",
    "textbench serve best -d r8": "serves until it is stopped; tests of servers ask it",
    "textbench serve together.npz": "serves until it is stopped; tests of servers ask it",
    "textbench claims scdv-2017/table-1/scdv --run --record": "writes the record",
    "textbench claims --paper scdv-2017 --record": "writes the record",
    "textbench report --record": "writes the record",
}
VARIABLE = re.compile("[A-Z_]+=")  # set for one command
# What CI does, variables, and what asks a server.
OTHER_TOOLS = {"curl", "mlflow", "make", "git", "pip", "export", ".venv/bin/python"}


def commands() -> Iterator[tuple[Path, str]]:
    """Yield each command of the pages, as it is printed."""
    for page in PAGES:
        for block in blocks(page):
            if block.language == "bash" and page not in TUTORIALS:
                for line in block.text.splitlines():
                    if line.strip():
                        yield page, shlex.join(shlex.split(line, comments=True))


def write_files(folder: Path) -> None:
    """Write what the pages take their reader to have."""
    r8 = tb.load_dataset("r8")
    stories = r8[r8.label.isin(["grain", "ship", "interest"])][["text", "label"]]
    stories.assign(story=stories.text, topic=stories.label).to_csv(folder / "stories.csv", index=False)
    (folder / "2026").mkdir()
    stories.to_csv(folder / "2026" / "stories.csv", index=False)
    stories.to_csv(folder / "export.csv", index=False, sep=";", encoding="latin-1", errors="replace")
    stories.sample(120, random_state=0).to_csv(folder / "few.csv", index=False)
    stories.text[:3].to_csv(folder / "new.csv", index=False)
    tickets = stories.assign(label=stories.label + np.where(stories.text.str.contains("mln"), ";mln", ""))
    tickets.to_json(folder / "tickets.jsonl", orient="records", lines=True)
    for name in ("first", "second"):  # two of one name: the second is called data (2)
        (folder / name).mkdir()
        stories.sample(100, random_state=len(name)).to_csv(folder / name / "data.csv", index=False)
    for number, (text, label) in enumerate(zip(stories.text[:200], stories.label, strict=False)):
        (folder / "folder" / label).mkdir(parents=True, exist_ok=True)
        (folder / "folder" / label / f"{number}.txt").write_text(text, "utf-8")
    words = sorted({word for text in stories.text for word in text.split()})
    vectors = np.random.default_rng(0).normal(size=(len(words), 8)).round(3)
    lines = (f"{word} {' '.join(map(str, vector))}\n" for word, vector in zip(words, vectors, strict=True))
    (folder / "glove.txt").write_text("".join(lines), "utf-8")
    np.save(folder / "mpnet.npy", np.random.default_rng(0).normal(size=(len(r8), 8)).astype(np.float32))
    guesses = r8[r8.split == "test"].label.rename("label")
    guesses.to_csv(folder / "predictions.csv", index=False)
    (folder / "small-model").symlink_to(small_model())
    write_collections(folder, list(stories.text))
    for block in (block for page in PAGES for block in blocks(page) if block.file):
        (folder / str(block.file)).write_text(block.text, "utf-8")


def write_collections(folder: Path, texts: list[str]) -> None:
    """Write two collections of these texts, SMART's and TREC's; a query is the words of a text it has to find."""
    queries = {number: " ".join(texts[number - 1].split()[:6]) for number in range(1, 11)}
    (folder / "cisi").mkdir()
    smart = "".join(f".I {number}\n.W\n{text}\n" for number, text in enumerate(texts, 1))
    (folder / "cisi" / "CISI.ALL").write_text(smart, "utf-8")
    asked = "".join(f".I {number}\n.W\n{query}\n" for number, query in queries.items())
    (folder / "cisi" / "CISI.QRY").write_text(asked, "utf-8")
    (folder / "cisi" / "CISI.REL").write_text("".join(f"{n} {n} 0 0.0\n" for n in queries), "utf-8")
    (folder / "disk4").mkdir()
    trec = "".join(
        f"<DOC>\n<DOCNO> D{n} </DOCNO>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n" for n, text in enumerate(texts, 1)
    )
    (folder / "disk4" / "part").write_text(trec, "utf-8")
    topics = "".join(
        f"<top>\n<num> Number: {n}\n<title> {query}\n<desc> Description:\n{query}\n</top>\n"
        for n, query in queries.items()
    )
    (folder / "topics.301-450").write_text(topics, "utf-8")
    (folder / "qrels.txt").write_text("".join(f"{n} 0 D{n} 1\n" for n in queries), "utf-8")


def words_of(command: str) -> list[str]:
    """Return what is run for a command."""
    words = shlex.split(command)[1:]
    if "--dry-run" in words:
        return words
    words = [STAND_INS.get(word, word).replace("FOLDER", STAND_INS["FOLDER"]) for word in words]
    endpoint = ", ".join(f"{name}={value!r}" for name, value in small_endpoint().items())
    words = [f"api({endpoint})" if "api(" in word else word for word in words]
    return [*words, "--dry-run"] if command in PLANNED else words


@pytest.mark.dear
@pytest.mark.timeout(3000)
def test_every_command_of_the_pages_ends_well(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTBENCH_DATA_DIR", str(data_dir))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    reader = tmp_path / "reader"
    reader.mkdir()
    write_files(reader)
    variables = environment(tmp_path / "results", PROJECT, None)

    def textbench(words: list[str]) -> str:
        process = Process(words, variables, reader)
        output, errors = process.communicate(timeout=600)
        return "" if process.returncode == 0 else f"exit code {process.returncode}: {errors or output}"

    try:
        assert not textbench(["run", "-d", "r8", "-m", "tfidf", "-m", "lsi", "-m", "nb"])
        for name in ("first", "second"):
            assert not textbench(["run", "--data", f"{name}/data.csv", "-m", "nb", "--seed", "0"])
        wrong = {}
        done = set()
        for page, command in commands():
            first = next(word for word in shlex.split(command) if not VARIABLE.match(word))
            assert first == "textbench" or first in OTHER_TOOLS, command
            if first == "textbench" and command not in done and command not in NOT_RUN:
                done.add(command)
                if command.startswith("textbench up"):
                    assert not textbench(["down"])  # those of the page before
                if said := textbench(words_of(command)):
                    wrong[f"{page.name}: {command}"] = said
        assert not wrong, "\n".join(f"{command}\n{said}" for command, said in wrong.items())
        assert done >= PLANNED
    finally:
        textbench(["down"])


def test_what_is_not_run_is_still_printed() -> None:
    assert {command for _, command in commands()} >= PLANNED | set(NOT_RUN)
