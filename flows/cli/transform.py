"""`textbench transform`: apply an exported model to new texts."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.output import check_file
from tasks import InputError

if TYPE_CHECKING:
    from flows.model import Model

OUTPUTS = ("labels", "features")
STDIN = "-"


def transform(
    file: Annotated[Path, typer.Argument(help="A file of `textbench export`.")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text files (.txt), a document each; - or nothing reads standard input, a document a line.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[str, typer.Option(help="labels, or features.")] = "labels",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write: features need it (.npz if sparse, .npy if dense).", show_default=False
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="The Python file of the model's method, if that was not one of ours.", show_default=False
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines and nothing else.")] = False,
) -> None:
    """Label new texts with an exported model, or turn them into features.

    Labels are printed one a document: the label, a tab, and the document's file or line.

    Example: textbench transform r8-tfidf.npz story.txt
    """
    from flows.model import Model
    from tasks.catalogue import pick

    pick("output", output, dict.fromkeys(OUTPUTS))
    if output == "features" and out is None:
        raise InputError(
            "features are arrays: name a file with --out, .npz if they are sparse and .npy if dense"
        )
    check_file("--out", out, [".npz", ".npy"] if output == "features" else [])
    model = replace(Model.load(file), method_file=method)
    documents = _read(texts or [STDIN])
    if output == "features":
        assert out is not None
        _write_features(model, documents, out, json)
    else:
        lines = _label_lines(model, documents, json)
        if out is None:
            print(lines)
        else:
            _write(out, lambda temporary: temporary.write_text(lines + "\n", "utf-8"))


def _read(sources: Sequence[str]) -> list[tuple[str, str]]:
    """Return (name, text) of every document. Raises InputError naming the file that cannot be read."""
    documents = []
    for source in dict.fromkeys(sources):
        if source == STDIN:
            text = _decoded("standard input", sys.stdin.buffer.read).removesuffix("\n")
            lines = text.split("\n") if text else []
            documents += [(f"line {number}", line) for number, line in enumerate(lines, start=1)]
            continue
        path = Path(source)
        if path.suffix != ".txt":
            raise InputError(f"texts are read from .txt files or from standard input (-), got {source}")
        documents.append((source, _decoded(source, path.read_bytes)))
    if not documents:
        raise InputError("standard input held no documents; write one a line, or name .txt files")
    return documents


def _decoded(name: str, read: Callable[[], bytes]) -> str:
    try:
        return read().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not UTF-8: byte {error.object[error.start]:#04x} at {error.start}"
        ) from error


def _label_lines(model: "Model", documents: Sequence[tuple[str, str]], as_json: bool) -> str:
    import json

    labels, margins = model.labels([text for _, text in documents])
    if not as_json:
        shown = [label if isinstance(label, str) else ", ".join(label) for label in labels]
        return "\n".join(f"{label}\t{name}" for label, (name, _) in zip(shown, documents, strict=True))
    return "\n".join(
        json.dumps({"document": name, "label": label, "margin": float(margin)}, ensure_ascii=False)
        for label, margin, (name, _) in zip(labels, margins, documents, strict=True)
    )


def _write_features(model: "Model", documents: Sequence[tuple[str, str]], out: Path, as_json: bool) -> None:
    import json

    import numpy as np
    import scipy.sparse

    features = model.features([text for _, text in documents])
    is_sparse = scipy.sparse.issparse(features)
    wanted = ".npz" if is_sparse else ".npy"
    if out.suffix != wanted:
        kind = "sparse" if is_sparse else "dense"
        raise InputError(
            f"the features of {model.manifest['method']} are {kind}: --out must end in {wanted}, got {out}"
        )

    def save(temporary: Path) -> None:
        with temporary.open("wb") as stream:
            if is_sparse:
                scipy.sparse.save_npz(stream, features)
            else:
                np.save(stream, features, allow_pickle=False)

    _write(out, save)
    about = {
        "file": str(out),
        "documents": features.shape[0],
        "features": features.shape[1],
        "sparse": is_sparse,
    }
    if as_json:
        print(json.dumps(about))
    else:
        print(f"Wrote {out}: {features.shape[0]} documents, {features.shape[1]} features.")


def _write(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file that appears whole or not at all."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        write(temporary)
        temporary.rename(path)
    except OSError as error:
        raise InputError(f"--out {path} cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)
