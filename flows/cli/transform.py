"""`textbench transform`: apply an exported model to new texts."""

import contextlib
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from textbench.flows.cli.options import AllowUpload, Endpoint
from textbench.flows.cli.output import check_file
from textbench.flows.cli.voice import note, wrote
from textbench.tasks import InputError
from textbench.tasks.storage.files import whole
from textbench.tasks.words import counted

if TYPE_CHECKING:
    from textbench.flows.explain.export import Answers, Model
    from textbench.tasks.sources.new_texts import Text

OUTPUTS = ("labels", "features")
FEATURES, TABLES, JSON_LINES = (".csv", ".npz", ".npy"), (".csv", ".txt"), (".jsonl", ".json")
SEPARATOR = ";"  # of several labels in one field
BLOCK = 256  # rows of features that are written at a time


def transform(
    file: Annotated[Path, typer.Argument(help="A file of `textbench export`.")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files of texts: CSV, TSV, JSON Lines, Parquet, or plain text (.txt), a text a line; - or nothing "
            "reads standard input, a text a line.",
            show_default=False,
        ),
    ] = None,
    text_column: Annotated[str, typer.Option(help="Of files with columns: the one of texts.")] = "text",
    separator: Annotated[
        str | None,
        typer.Option(help="What parts columns; tab for a tab.", show_default="comma, of TSV tab"),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Of text, such as utf-16 or latin-1.", show_default="utf-8")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="A file of plain text, or standard input, is one text.")
    ] = False,
    output: Annotated[str, typer.Option(help="labels, or features.")] = "labels",
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="Where to write. Features need it: .csv, .npz if they are sparse, .npy if dense.",
            show_default="standard output",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="The Python file of the model's method, if that was not one of ours.", show_default=False
        ),
    ] = None,
    allow_upload: AllowUpload = False,
    endpoint: Endpoint = None,
    json: Annotated[bool, typer.Option("--json", help="JSON Lines instead of CSV.")] = False,
) -> None:
    """Label new texts with an exported model, or turn them into features; blank texts are left out.

    The result is CSV, a row a text: the document (file and line), its label (several with ; between), and of each
    class the probability (nb, logistic regression) or the decision value.

    Example: textbench transform r8-tfidf.npz stories.csv --text-column body -o labels.csv
    """
    from textbench.flows.explain.export import Model
    from textbench.tasks.catalogue import pick
    from textbench.tasks.sources.new_texts import STDIN, Reading, read_texts

    if output not in OUTPUTS and (Path(output).suffix or len(Path(output).parts) > 1):
        raise InputError(
            f"--output is {' or '.join(OUTPUTS)}, got {output}; a file to write is named with --out"
        )
    pick("output", output, dict.fromkeys(OUTPUTS))
    if output == "features" and out is None:
        raise InputError(
            "features are many columns: name a file with --out, .csv, .npz if they are sparse, .npy if dense"
        )
    kinds = FEATURES if output == "features" else JSON_LINES if json else TABLES
    check_file("--out", out, kinds if out and (out.suffix or output == "features") else ())
    model = replace(Model.load(file), method_file=method, endpoint=endpoint)
    documents, n_blank = read_texts(texts or [STDIN], Reading(text_column, separator, encoding, whole))
    if n_blank:
        note(f"{n_blank} blank {'text' if n_blank == 1 else 'texts'} left out")
    if output == "features":
        assert out is not None
        _write_features(model, documents, out, json)
        return
    write = _write_json if json else _write_csv
    answers = model.answer([text for _, text in documents])
    if out is None:
        write(sys.stdout, documents, answers)
    else:
        with _opened(out) as stream:
            write(stream, documents, answers)
        wrote(out, as_json=json)


def _write_csv(stream: TextIO, documents: "Sequence[Text]", answers: "Answers") -> None:
    writer = csv.writer(stream, lineterminator="\n")
    # The kind in front keeps a class called `label` apart, and a name that begins with = from being a formula.
    writer.writerow(["document", "label", *(f"{answers.kind}_{name}" for name in answers.classes)])
    for (place, _), label, values in zip(documents, answers.labels, answers.values, strict=True):
        shown = label if isinstance(label, str) else SEPARATOR.join(label)
        writer.writerow([place, shown, *(f"{value:.6g}" for value in values)])


def _write_json(stream: TextIO, documents: "Sequence[Text]", answers: "Answers") -> None:
    import json

    rows = zip(documents, answers.labels, answers.margins, answers.values, strict=True)
    for (place, _), label, margin, values in rows:
        row = {"document": place, "label": label, "margin": float(margin)}
        row[answers.kind] = dict(zip(answers.classes, map(float, values), strict=True))
        print(json.dumps(row, ensure_ascii=False), file=stream)


def _write_features(model: "Model", documents: "Sequence[Text]", out: Path, as_json: bool) -> None:
    import json

    import numpy as np
    import scipy.sparse

    features = model.features([text for _, text in documents])
    is_sparse = scipy.sparse.issparse(features)
    wanted = ".npz" if is_sparse else ".npy"
    ending = out.suffix.lower()
    if ending not in (".csv", wanted):
        kind = "sparse" if is_sparse else "dense"
        raise InputError(
            f"the features of {model.manifest['method']} are {kind}: --out must end in .csv or {wanted}, got {out}"
        )
    if ending == ".csv":
        with _opened(out) as stream:
            _write_columns(stream, documents, model.feature_names(), features)
    else:
        with _opened(out, "wb") as stream:
            if is_sparse:
                scipy.sparse.save_npz(stream, features)
            else:
                np.save(stream, features, allow_pickle=False)
    n_documents, n_features = features.shape
    about = {"file": str(out), "documents": n_documents, "features": n_features, "sparse": is_sparse}
    if as_json:
        print(json.dumps(about))
    else:
        print(f"Wrote {out}: {counted(n_documents, 'document')}, {counted(n_features, 'feature')}.")


def _write_columns(stream: TextIO, documents: "Sequence[Text]", names: Sequence[str], features: Any) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["document", *(f"feature_{name}" for name in names)])
    for start in range(0, len(documents), BLOCK):
        rows = features[start : start + BLOCK]
        rows = rows if hasattr(rows, "tolist") else rows.toarray()
        for (place, _), row in zip(documents[start : start + BLOCK], rows, strict=True):
            writer.writerow([place, *(f"{value:.9g}" for value in row)])


@contextlib.contextmanager
def _opened(path: Path, mode: str = "w") -> Iterator[Any]:
    """Open a file that appears whole or not at all."""
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        with whole(path) as part, part.open(mode, **text) as stream:  # type: ignore[call-overload]
            yield stream
    except OSError as error:
        raise InputError(f"--out {path} cannot be written: {error.strerror}") from error
