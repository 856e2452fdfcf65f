"""The exported file: what the run computed comes out again, to the bit, and nothing out of a damaged one."""

import io
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from textbench.featurizers._encoders.endpoint import NoAnswer
from textbench.featurizers._encoders.places import NoModel
from textbench.flows.explain.export import MANIFEST, Model
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import Request
from textbench.flows.results.index import Index
from textbench.flows.results.rows import result_row
from textbench.flows.results.runs import Run, find_run
from textbench.tasks import InputError
from textbench.tasks.corpus import read_corpus
from textbench.tasks.storage.store import Store


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with two finished runs on r8: tfidf, which is sparse, and lsi, which is dense."""
    home = tmp_path_factory.mktemp("home")
    store = Store(home / "store")
    for cell in plan(Request(["r8"], ["tfidf", "lsi"])):
        store.open(cell.references["evaluate"])
        record = result_row(cell, store) | {"run_id": f"run{cell.method:0<29}", "created": time.time()}
        Index(home).put(
            cell,
            record
            | {
                "tracking_uri": "sqlite:///x.db",
                "sweeps": [],
                "attempt": "",
                "request": asdict(cell.request),
            },
        )
    return home


@pytest.fixture(scope="module")
def files(home: Path) -> dict[str, Path]:
    """The exported models by method."""
    rows = {row["method"]: row for row in Index(home).rows()}
    for method, row in rows.items():
        Model.from_run(Run(home, row)).save(home / f"{method}.npz")
    return {method: home / f"{method}.npz" for method in rows}


APPLY = """
import json, sys
import numpy as np
from dataclasses import asdict
from pathlib import Path
from textbench.flows.explain.export import Model
model = Model.load(Path(sys.argv[1]))
texts = json.loads(Path(sys.argv[2]).read_text("utf-8"))
features = model.features(texts)
answers = model.answer(texts)
parts = [features] if isinstance(features, np.ndarray) else [features.data, features.indices, features.indptr]
np.savez(sys.argv[3], *parts, labels=np.array(answers.labels), margins=answers.margins)
"""


@pytest.mark.parametrize("method", ["tfidf", "lsi"])
def test_a_fresh_process_repeats_the_run_to_the_bit(
    method: str, home: Path, files: dict[str, Path], tmp_path: Path
) -> None:
    run = Run(home, find_run(home, f"run{method}"))
    corpus = read_corpus(run.open("corpus"))
    (tmp_path / "texts.json").write_text(json.dumps(corpus.test_texts), "utf-8")
    model = shutil.copy(files[method], tmp_path / "model.npz")  # away from the results folder
    arguments = [str(model), str(tmp_path / "texts.json"), str(tmp_path / "out.npz")]
    environment = os.environ | {"TEXTBENCH_HOME": str(tmp_path / "empty")}
    subprocess.run([sys.executable, "-c", APPLY, *arguments], check=True, env=environment)

    expected = run.open("features").matrix("test")
    parts = (
        [expected.data, expected.indices, expected.indptr] if scipy.sparse.issparse(expected) else [expected]
    )
    predictions = run.open("result").table("predictions")
    targets = predictions["predicted"].to_pylist()
    with np.load(tmp_path / "out.npz", allow_pickle=False) as out:
        for number, part in enumerate(parts):
            assert out[f"arr_{number}"].dtype == part.dtype
            np.testing.assert_array_equal(out[f"arr_{number}"], part)
        assert out["labels"].tolist() == [corpus.target_names[target] for target in targets]
        np.testing.assert_array_equal(out["margins"], predictions["margin"].to_numpy())


def test_a_document_means_the_same_alone_and_among_others(files: dict[str, Path]) -> None:
    model = Model.load(files["tfidf"])
    texts = ["net profit rose", "", "unheardof wordsonly", "crude oil barrels a day"]
    together = model.features(texts).toarray()
    for text, expected in zip(texts, together, strict=True):
        np.testing.assert_array_equal(model.features([text]).toarray()[0], expected)
    assert not together[1:3].any()


def test_the_same_run_gives_the_same_file(home: Path, files: dict[str, Path], tmp_path: Path) -> None:
    Model.from_run(Run(home, find_run(home, "runtfidf"))).save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == files["tfidf"].read_bytes()
    assert [path.name for path in tmp_path.iterdir() if "again" in path.name] == ["again.npz"]


def test_saving_what_was_loaded_changes_nothing(files: dict[str, Path], tmp_path: Path) -> None:
    Model.load(files["lsi"]).save(tmp_path / "copy.npz")
    assert (tmp_path / "copy.npz").read_bytes() == files["lsi"].read_bytes()


def test_any_damaged_byte_is_noticed(files: dict[str, Path], tmp_path: Path) -> None:
    content = files["tfidf"].read_bytes()
    with zipfile.ZipFile(files["tfidf"]) as archive:
        middle = {
            info.filename: info.header_offset + 300 for info in archive.infolist() if info.file_size > 400
        }
    assert MANIFEST in middle
    for place in middle.values():
        damaged = bytearray(content)
        damaged[place] ^= 1
        (tmp_path / "damaged.npz").write_bytes(damaged)
        with pytest.raises(InputError, match=r"damaged\.npz is damaged or not a file of"):
            Model.load(tmp_path / "damaged.npz")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(share: float, files: dict[str, Path], tmp_path: Path) -> None:
    content = files["tfidf"].read_bytes()
    (tmp_path / "short.npz").write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match="is damaged or not a file of"):
        Model.load(tmp_path / "short.npz")


def repacked(source: Path, target: Path, name: str, content: bytes) -> Path:
    """Write a zip whose checksums are right, with one member replaced."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for member in old.namelist():
            new.writestr(member, content if member == name else old.read(member))
    return target


def npy(array: Any, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=allow_pickle)
    return stream.getvalue()


@pytest.mark.parametrize("array", [np.zeros(8), np.array([{"a": 1}], dtype=object)], ids=["other", "pickle"])
def test_an_exchanged_array_is_refused(array: Any, files: dict[str, Path], tmp_path: Path) -> None:
    content = npy(array, allow_pickle=array.dtype == object)
    path = repacked(files["tfidf"], tmp_path / "x.npz", "probe/intercept.npy", content)
    with pytest.raises(InputError, match="is damaged or not a file of"):
        Model.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "something"}, "not a file of"),
        ({"version": 2}, r"has format version 2, this textbench reads 1"),
        ({"method": "tfdif"}, "its manifest was altered"),
        ({"target_names": ["a"]}, "its manifest was altered"),
        ({"sha256": {}}, "its manifest was altered"),
    ],
)
def test_another_manifest_is_refused(
    change: dict[str, Any], message: str, files: dict[str, Path], tmp_path: Path
) -> None:
    with zipfile.ZipFile(files["tfidf"]) as archive:
        manifest = json.loads(archive.read(MANIFEST)) | change
    path = repacked(files["tfidf"], tmp_path / "x.npz", MANIFEST, json.dumps(manifest).encode())
    with pytest.raises(InputError, match=message):
        Model.load(path).features(["a"])


@pytest.mark.parametrize(
    ("method", "message"), [("tfdif", "did you mean tfidf"), ("theirs.py", "say where it is with --method")]
)
def test_a_model_of_a_method_that_is_not_ours_says_so(
    method: str, message: str, files: dict[str, Path], tmp_path: Path
) -> None:
    model = Model.load(files["tfidf"])
    Model(dict(model.manifest) | {"method": method}, model.arrays).save(tmp_path / "x.npz")
    with pytest.raises(InputError, match=message):
        Model.load(tmp_path / "x.npz").features(["a"])


def test_no_file_is_run_because_a_part_of_a_model_names_it(files: dict[str, Path], tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(ran)!r}, 'w')")
    model = Model.load(files["tfidf"])
    parts = {"parts": {"first": str(tmp_path / "evil.py"), "second": "tfidf"}, "joined": {}}
    Model(dict(model.manifest) | parts, model.arrays).save(tmp_path / "x.npz")
    with pytest.raises(InputError, match=r"a method of its maker's, .*evil\.py, is not read"):
        Model.load(tmp_path / "x.npz").predict(["a"])
    assert not ran.exists()


def test_a_model_of_a_file_sends_texts_only_where_the_caller_says(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, sent = "http://127.0.0.1:9/v1", []
    monkeypatch.setattr(
        "textbench.featurizers.api.EndpointVectors._made", lambda _, texts: sent.append(texts)
    )
    model = Model.load(files["tfidf"])
    learned = {
        "url": url,
        "key_env": "SECRET",
        "model": "m",
        "dimensions": None,
        "prompt": None,
        "normalize": True,
    }
    learned |= {"fingerprint_": "0" * 64, "n_dimensions_": 3}
    Model(dict(model.manifest) | {"method": "api", "featurizer": learned}, model.arrays).save(
        tmp_path / "x.npz"
    )
    foreign = Model.load(tmp_path / "x.npz")
    for endpoint in (None, "http://127.0.0.1:8/v1"):
        with pytest.raises(
            InputError, match=rf"sends texts to {url}, with what is in \$SECRET; .* --endpoint {url}"
        ):
            replace(foreign, endpoint=endpoint).features(["a"])
    assert not sent
    monkeypatch.setenv("TEXTBENCH_ENDPOINT", url)
    with pytest.raises(TypeError):  # nothing was made of the texts, which were sent
        Model.load(tmp_path / "x.npz").features(["a"])
    assert sent == [["a"]]


@pytest.mark.parametrize("fault", [NoModel("the encoder is not here"), NoAnswer("no answer\nat all")])
def test_what_an_encoder_lacks_is_said_in_a_line(
    fault: Exception, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise fault

    model = Model.load(files["tfidf"])
    monkeypatch.setattr(type(model._featurizer), "transform", refuse)
    with pytest.raises(InputError) as caught:
        model.predict(["a"])
    assert str(caught.value) == " ".join(str(fault).split())


def test_other_files_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    (tmp_path / "text.npz").write_text("hello")
    for name in ("other.npz", "text.npz"):
        with pytest.raises(InputError, match="not a file of `textbench export`"):
            Model.load(tmp_path / name)
    for path in (tmp_path / "missing.npz", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            Model.load(path)


def test_a_run_is_found_by_any_beginning_of_its_names(home: Path) -> None:
    rows = Index(home).rows()
    assert find_run(home, "last") == max(rows, key=lambda row: row["created"])
    for row in rows:
        for name in (row["key"], row["key"][:6], row["run_id"], row["run_id"][:6], row["key"].upper()):
            assert find_run(home, name) == row


def test_a_run_that_is_not_one_is_refused_with_candidates(home: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"at least 6 characters.*r8 lsi seed 0"):
        find_run(home, "run")
    with pytest.raises(InputError, match=r"no finished run 'absent'.*r8 tfidf seed 0"):
        find_run(home, "absent")
    with pytest.raises(InputError, match="textbench run quick"):
        find_run(tmp_path, "last")
    for row in Index(home).rows():
        shutil.copy(home / "index" / f"{row['key']}.json", _folder(tmp_path) / f"{row['key'][:7]}-twin.json")
        shutil.copy(home / "index" / f"{row['key']}.json", _folder(tmp_path) / f"{row['key']}.json")
        with pytest.raises(InputError, match=r"begins 2 runs: .*give more characters"):
            find_run(tmp_path, row["key"][:7])


def _folder(home: Path) -> Path:
    (home / "index").mkdir(exist_ok=True)
    return home / "index"


def test_pruned_artifacts_are_computed_again_unless_the_code_changed(
    home: Path, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    shutil.copytree(home, own)
    shutil.rmtree(own / "store" / "vectorize")
    row = find_run(own, "runtfidf")
    Model.from_run(Run(own, row)).save(tmp_path / "again.npz")
    assert Model.load(tmp_path / "again.npz").manifest == Model.load(files["tfidf"]).manifest

    shutil.rmtree(own / "store" / "vectorize")
    monkeypatch.setattr("textbench.tasks.storage.recipe.fingerprint", lambda modules: ("changed", {}))
    for name in ("vectors", "features"):
        with pytest.raises(
            InputError,
            match=r"changed.*run it again with: textbench run --dataset r8 --method tfidf --seed 0",
        ):
            Run(own, row).open(name)
    shutil.rmtree(own / "store" / "evaluate")
    with pytest.raises(InputError, match="no longer in the store"):
        Run(own, row).open("result")
