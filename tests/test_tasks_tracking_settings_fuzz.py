"""Settings under fire: whatever stands in mlflow.yaml or a suite's file is read or refused in one line."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.guard import guarded, mutated
from tests.loading import FUZZ
from textbench.flows.plan import suites
from textbench.tasks.tracking.tracker import Settings, read_settings

PROJECT = Path(__file__).resolve().parent.parent
MLFLOW = (PROJECT / "mlflow.yaml").read_bytes()
QUICK = (PROJECT / "flows" / "suites" / "quick.yaml").read_bytes()
FRAGMENTS = st.sampled_from(
    [
        *(b"tracking_uri", b"experiment", b"log_predictions", b"methods", b"seeds", b"parts", b"grid", b": ", b":"),
        *(b"- ", b"[", b"]", b"{", b"}", b"&a ", b"*a", b"<<: ", b"? ", b"!!int ", b"!!float ", b"!!timestamp "),
        *(b"!!binary ", b"!!set ", b"!!python/object/apply:os.system ", b"---\n", b"...\n", b"%YAML 9.9\n", b"|", b">"),
        *(b"2001-99-99", b"2001-01-01", b"0x", b"0b", b"1:99", b".inf", b".nan", b"1_0", b"9" * 5000, b"=", b"~"),
        *(b"yes", b"null", b"''", b'"\\ud800"', b'"\\0"', b'"\\x1b"', b"\n", b"\r", b"\t", b" ", b"\0"),
        *(b"\x85", b"\xff", b"\xef\xbb\xbf", b"\xfe\xff", b"\xe2\x80\xa8", b"[" * 2000, b"{" * 500, b"- " * 2000),
        *(b"sqlite:///", b"http://", b"http://[", b"ftp://", b"postgresql://u:p@h/d", b"../../x", b"/etc/passwd"),
    ]
)  # fmt: skip


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder that also holds the suites."""
    with tempfile.TemporaryDirectory() as name:
        monkeypatch.chdir(name)
        monkeypatch.setattr(suites, "FOLDER", Path(name))
        yield Path(name)


@FUZZ
@given(content=mutated(MLFLOW, FRAGMENTS, 20))
def test_any_mlflow_yaml(folder: Path, content: bytes) -> None:
    (folder / "mlflow.yaml").write_bytes(content)
    settings = guarded(lambda: read_settings(folder / "home"), folder)
    if settings is not None:
        kinds = {name: type(value) for name, value in vars(Settings()).items()}
        assert {name: type(value) for name, value in vars(settings).items()} == kinds
        assert settings.tracking_uri.startswith(("sqlite:///", "http", "postgresql", "mysql", "databricks"))


@FUZZ
@given(content=mutated(QUICK, FRAGMENTS, 20))
def test_any_suite(folder: Path, content: bytes) -> None:
    (folder / "fuzz.yaml").write_bytes(content)
    parts = guarded(lambda: suites.parts("fuzz"), folder)
    if parts is not None:
        assert parts
        assert all(
            isinstance(name, str)
            for part in parts
            for name in (*part.request.methods, *part.request.datasets)
        )


def test_names_that_stand_for_names_are_not_spelled_out(folder: Path) -> None:
    """Nine lists of nine of the one before: a billion words if they are written down."""
    lines = ["a0: &a0 [" + ", ".join(["lol"] * 9) + "]"]
    lines += [f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 9) + "]" for i in range(1, 10)]
    for key, name in (("experiment", "mlflow.yaml"), ("methods", "fuzz.yaml"), ("seeds", "fuzz.yaml")):
        first = [f"{key}: &b [*a9]"] if key != "methods" else []
        (folder / name).write_text("\n".join([*lines, *first]), "utf-8")
        read = (lambda: read_settings(folder)) if name == "mlflow.yaml" else (lambda: suites.parts("fuzz"))
        assert guarded(read, folder) is None
        anchored = "\n".join(lines).replace("a0: &a0", f"{key}: &a0").replace("a9:", "seeds:")
        (folder / name).write_text(anchored, "utf-8")
        assert guarded(read, folder) is None


def test_a_long_file_is_refused_before_it_is_read(folder: Path) -> None:
    for name in ("mlflow.yaml", "fuzz.yaml"):
        (folder / name).write_text("- [a, b]\n" * 200_000, "utf-8")
    assert guarded(lambda: read_settings(folder), folder) is None
    assert guarded(lambda: suites.parts("fuzz"), folder) is None
