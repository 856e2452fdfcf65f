"""`mlflow models serve` on a port of its own answers with the bits of `textbench transform`: whole commands, dear."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from tests.commands import eventually, free_port, textbench

WIDTH = 500  # texts of a request


def ask(port: int, texts: list[str]) -> list[dict[str, Any]]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/invocations",
        json.dumps({"inputs": {"text": texts}}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        found: list[dict[str, Any]] = json.load(answer)["predictions"]
    return found


def answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=5).close()
    except OSError:
        return False
    return True


@pytest.mark.dear
def test_mlflows_server_answers_with_the_bits_of_transform(tmp_path: Path) -> None:
    """Every test document of r8: label, margin and each class's value, as floats, are those of its JSON."""
    home, model, texts = tmp_path / "home", tmp_path / "r8.npz", tmp_path / "r8.parquet"
    textbench("run", "-d", "r8", "-m", "tfidf", "--trials", "1", "--seed", "0", home=home)
    textbench("export", "tfidf", "-d", "r8", "--mlflow", home=home)
    textbench("export", "tfidf", "-d", "r8", "-o", str(model), home=home)
    textbench("texts", "-d", "r8", "-o", str(texts), home=home)
    table = pq.read_table(texts)
    table = table.filter([part == "test" for part in table["part"].to_pylist()])
    pq.write_table(table, texts)
    # Of CSV `transform` rounds values to six digits, of JSON not.
    printed, _ = textbench("transform", str(model), str(texts), "--json", home=home)
    wanted = [json.loads(line) for line in printed.splitlines()]
    port = free_port()
    own = {
        "MLFLOW_TRACKING_URI": f"sqlite:///{home}/mlflow.db",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    command = ["models", "serve", "-m", "models:/r8@champion", "--env-manager", "local", "--port", str(port)]
    with (tmp_path / "server.out").open("w") as said:
        server = subprocess.Popen(
            [sys.executable, "-m", "mlflow", *command], env=os.environ | own, stdout=said, stderr=said
        )
    try:
        assert eventually(lambda: answers(port), 120), (tmp_path / "server.out").read_text()
        given = table["text"].to_pylist()
        found = [
            row for start in range(0, len(given), WIDTH) for row in ask(port, given[start : start + WIDTH])
        ]
        assert len(found) == len(wanted) == 2189
        for served, written in zip(found, wanted, strict=True):
            values = {f"decision_{name}": value for name, value in written["decision"].items()}
            assert served == values | {"label": written["label"], "margin": written["margin"]}
        with pytest.raises(urllib.error.HTTPError, match="400"):
            ask(port, [" "])
    finally:
        family = [*psutil.Process(server.pid).children(recursive=True), psutil.Process(server.pid)]
        for process in family:
            process.terminate()
        server.wait(60)
        assert not psutil.wait_procs(family, 60)[1]
