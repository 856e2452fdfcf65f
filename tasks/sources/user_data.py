"""Own data: the user's own documents as a Corpus, from a file of any kind in `user_files` or a folder of folders.

A file has one document a row (a line of JSONL is one JSON object), its text in one column and its label in another.
A folder has one folder a class, in it one file a document; where it holds exactly `train` and `test`, these hold the
class folders and are the split. Names that start with a dot are passed over. Validation documents (a split column that
says validation, valid, val or dev, or such a folder beside train and test) are training documents on which alone
tuning is done; the classifier that is tested learns from all training documents, these included.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from textbench.tasks import InputError
from textbench.tasks.sources.user_columns import StringColumn, split_arrays
from textbench.tasks.sources.user_files import (
    PARTS,
    VALIDATION,
    Row,
    extension_of,
    read_folder,
    reader_of,
    walk,
)
from textbench.tasks.sources.user_source import (
    Columns,
    Source,
    check_encoding,
    known_digest,
    named,
    of_folder,
    shown,
)
from textbench.tasks.sources.user_source import digest as digest_of
from textbench.tasks.sources.user_split import split_of
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from scipy.sparse import csr_matrix

    from textbench.tasks.corpus import Corpus
    from textbench.tasks.storage.store import Job

log = logging.getLogger("textbench.store")
MAX_SEED = 2**32 - 1  # scikit-learn's
MAX_NAME = 100  # letters of a name that is made of a file's
TAB = {"\\t": "\t", "tab": "\t"}  # how a shell's user may write it
SPLIT = "split"  # what a column with the parts of documents is commonly called
TEXT_FILES = (".csv", ".tsv", ".json", ".jsonl")
# How pandas writes and reads a value that is missing.
MISSING = {
    *("", "NA", "N/A", "n/a", "<NA>", "#NA", "#N/A", "#N/A N/A", "NULL", "null", "None"),
    *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
}  # fmt: skip


@dataclass(frozen=True)
class UserData:
    """Where the user's documents are and how to read them.

    `path` is made absolute. `label_separator` splits a label into several; `split_column` holds train, test or
    validation; without it `test_size` of the documents (0.3 unless said otherwise) are drawn for the test by `seed`.
    `name` is what the data set is called, that of the file unless said otherwise.
    `separator` parts the columns of a CSV or TSV file, `encoding` is that of text; None is the kind's own, and UTF-8.
    """

    path: str
    text_column: str = "text"
    label_column: str = "label"
    label_separator: str | None = None
    split_column: str | None = None
    test_size: float | None = None
    seed: int = 0
    separator: str | None = None
    encoding: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        try:
            path = Path(self.path).expanduser().resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(
                f"--data must be a file or folder, got {shown(self.path)}: {shown(str(error))}"
            ) from error
        object.__setattr__(self, "path", str(path))

    def check(self) -> None:
        """Raise InputError, naming the option, for a path of no known kind and for options out of range or at odds."""
        if any("\ud800" <= letter <= "\udfff" for letter in self.path):
            raise InputError(
                f"--data must have a name that UTF-8 can write, got {named(self.path)}; rename it"
            )
        reader = reader_of(Path(self.path))
        if self.name is not None and (data_name(self.name) != self.name or extension_of(Path(self.name))):
            raise InputError(
                f"--name must be letters, digits and single hyphens, at most {MAX_NAME} of them, got {shown(self.name)}"
            )
        self._check_columns()
        self._check_text()
        if self.test_size is not None and not 0 < self.test_size < 1:
            raise InputError(f"--test-size must lie between 0 and 1, got {self.test_size}")
        if self.test_size is not None and self.split_column is not None:
            raise InputError(
                f"--test-size {self.test_size} and --split-column {shown(self.split_column)} exclude each other: "
                "give one of them"
            )
        if not 0 <= self.seed <= MAX_SEED:
            raise InputError(f"the seed of the split must lie in 0..{MAX_SEED}, got {self.seed}")
        if reader is read_folder:
            self._check_no_columns()

    def _check_columns(self) -> None:
        columns = {"--text-column": self.text_column, "--label-column": self.label_column}
        if self.split_column is not None:
            columns["--split-column"] = self.split_column
        for option, column in columns.items():
            if not column:
                raise InputError(f"{option} must be the name of a column, got {column!r}")
        if len(set(columns.values())) < len(columns):
            got = ", ".join(f"{option} {shown(column)}" for option, column in columns.items())
            raise InputError(f"text, label and split must be different columns, got {got}")
        if self.label_separator == "":
            raise InputError("--label-separator must be one or more characters, got ''")

    def _check_text(self) -> None:
        extension = extension_of(Path(self.path))
        if self.separator is not None:
            column_separator(self.separator)
            if extension is None or not extension.startswith((".csv", ".tsv")):
                raise InputError(f"--separator is for CSV and TSV files, got {named(self.path)}")
        if self.encoding is not None:
            check_encoding(self.encoding)
            if extension is not None and not extension.startswith(TEXT_FILES):
                raise InputError(f"--encoding is for files of text; {named(self.path)} says its own")

    def _check_no_columns(self) -> None:
        plain = UserData(self.path)
        for name in ("text_column", "label_column", "label_separator", "split_column"):
            value = getattr(self, name)
            if value != getattr(plain, name):
                raise InputError(
                    f"--{name.replace('_', '-')} {shown(value)} is for files; {named(self.path)} is a folder, "
                    "whose folders are the labels"
                )


def column_separator(said: str | None) -> str | None:
    """Return the character that `--separator` means, None without it. Raises InputError for what is none."""
    if said is None:
        return None
    separator = TAB.get(said, said)
    if len(separator) != 1 or separator in '"\r\n\0':
        raise InputError(
            f"--separator must be one character that parts columns, such as ';', got {shown(said)}"
        )
    return separator


def reference(own: UserData) -> Reference:
    """Return the corpus artifact of the user's documents; a changed file is another artifact."""
    own.check()
    params = {"own": asdict(own), "digest": digest(own.path), "dataset": own.name or data_name(own.path)}
    return refer("textbench.tasks.sources.user_data:compute", params, stage="ingest")


def compute(job: Job) -> None:
    """Read the user's documents and write them as a corpus."""
    from textbench.tasks.corpus import write_corpus

    own = UserData(**job.params["own"])
    about = {"source": own.path, "sha256": {Path(own.path).name: job.params["digest"]}}
    write_corpus(
        job, load_columns(own, job.params["digest"]), about | {"licence": "the user's own", "citation": ""}
    )


def digest(path: str | Path) -> str:
    """Return the sha256 (64 hexadecimal digits) of a file's bytes, or of a folder's file names and their sha256.

    Raises InputError where `path` is of no kind that `load` reads.
    """
    path = Path(path)
    return digest_of(path, walk(path)[0] if reader_of(path) is read_folder else None)


def data_name(path: str | Path) -> str:
    """Return a name for the data: the path's last part without extension, as ASCII letters, digits and hyphens.

    Of a long one the first 100 characters.
    """
    path = Path(path)
    stem = path.name[: len(path.name) - len(extension_of(path) or "")]
    ascii_stem = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
    return re.sub("[^A-Za-z0-9]+", "-", ascii_stem)[:MAX_NAME].strip("-") or "data"


def load(own: UserData, sha256: str | None = None) -> Corpus:
    """Return the user's documents (`load_columns`), texts and ids as lists."""
    corpus = load_columns(own, sha256)
    names = ("train_texts", "test_texts", "train_ids", "test_ids")
    return replace(corpus, **{name: getattr(corpus, name).to_pylist() for name in names})


def load_columns(own: UserData, sha256: str | None = None) -> Corpus:
    """Return the user's documents; they keep their order inside each part, and `target_names` are sorted.

    Texts and ids are columns of Arrow, into which they go as they are read.
    Every file is read once; with `sha256`, what was read must have this digest.

    Targets are int64, or, with a label separator or where any label is a list, a csr int8 indicator (n_documents,
    n_labels). Space around a label is not part of it. Empty texts are kept. A split that is not given is drawn
    stratified: by class, a class of one document going to training; over several labels by iterative
    stratification (Sechidis et al., ECML PKDD 2011, algorithm 1); where that cannot be done, plainly at random,
    which `notes` says. Raises InputError naming file, line, column and value.
    """
    import numpy as np

    from textbench.tasks.corpus import Corpus

    own.check()
    path = Path(own.path)
    documents = _read(own, path, sha256)
    is_several = own.label_separator is not None or any(isinstance(label, list) for label in documents.labels)
    names, targets = _indicator(documents.labels) if is_several else _numbers(documents.labels)
    _check_classes(path, "the documents", names)
    train, test, note = split_of(own, targets, documents.parts)
    is_validation = np.array([documents.parts[i] == "validation" for i in train])
    learned = targets[train[~is_validation]]
    used = learned.indices if is_several else learned
    _check_classes(path, "the training documents", [names[i] for i in sorted(set(used.tolist()))])
    is_test = np.zeros(len(documents.labels), dtype=bool)
    is_test[test] = True
    train_texts, test_texts = split_arrays(documents.texts, is_test)
    train_ids, test_ids = split_arrays(documents.ids, is_test)
    return Corpus(
        train_texts=train_texts,
        train_targets=targets[train],
        test_texts=test_texts,
        test_targets=targets[test],
        target_names=names,
        name=own.name or data_name(path),
        notes=" ".join(filter(None, [f"Read from {named(path.name)}.", note, documents.note])),
        train_ids=train_ids,
        test_ids=test_ids,
        validation=np.flatnonzero(is_validation) if is_validation.any() else None,
    )


def _check_classes(path: Path, documents: str, names: list[str]) -> None:
    if len(names) < 2:
        raise InputError(
            f"{named(path)}: {documents} must be of at least two classes, got only {shown(names[0])}"
        )


class _Documents(NamedTuple):
    ids: list[pyarrow.Array]
    texts: list[pyarrow.Array]
    labels: list[str | list[str]]
    parts: list[str | None]
    note: str


def _read(own: UserData, path: Path, sha256: str | None) -> _Documents:
    reader = reader_of(path)
    columns = Columns(own.text_column, own.label_column, own.split_column)
    separator = column_separator(own.separator)
    is_folder = reader is read_folder
    is_known = not is_folder and sha256 is not None and known_digest(path) == sha256
    source = Source(path, columns, separator, own.encoding, digested=not is_known)
    where = "the name of its folder" if is_folder else f"column {shown(own.label_column)}"
    ids, texts, labels_of, parts = StringColumn(), StringColumn(), list[str | list[str]](), list[str | None]()
    names: dict[str, str] = {}  # one string a class
    unlabelled: list[InputError] = []
    like_missing: list[str] = []
    for row in reader(source):
        text, part = checked_text(row), _part(row, own.split_column)
        if text and text in MISSING:
            like_missing.append(f"{row.place}: {shown(text)}")
        try:
            labels = _labels(row, where, own.label_separator, may_be_missing=not is_folder)
        except _Unlabelled as error:
            unlabelled.append(error)
            labels = ""
        ids.append(row.id)
        texts.append(text)
        labels_of.append(names.setdefault(labels, labels) if isinstance(labels, str) else labels)
        parts.append(part)
    ids.close()
    texts.close()
    if sha256 is not None:
        _check_digest(source, sha256, is_folder)
    if unlabelled:
        rest = (
            f"; {len(unlabelled):,} of {len(parts):,} documents have no label" if len(unlabelled) > 1 else ""
        )
        raise InputError(f"{unlabelled[0]}{rest}")
    if not parts:
        raise InputError(f"{named(path)}: there must be documents of at least two classes, got none")
    if is_folder and parts[0] is not None and own.test_size is not None:
        raise InputError(
            f"--test-size {own.test_size} is not for {named(path)}: its train and test are the split"
        )
    note = ""
    if like_missing:
        note = f"Texts spelled like a missing value, kept: {len(like_missing):,}, first {like_missing[0]}."
        log.warning("%s", note)
    return _Documents(ids.arrays, texts.arrays, labels_of, parts, note)


def has_unread_split(own: UserData) -> bool:
    """Tell whether a file has a column "split" with the parts of documents, and nothing says whether to read it."""
    path = Path(own.path)
    reader = reader_of(path)
    if reader is read_folder or own.split_column is not None or own.test_size is not None:
        return False
    if SPLIT in (own.text_column, own.label_column):
        return False
    columns = Columns(own.text_column, own.label_column, SPLIT)
    source = Source(path, columns, column_separator(own.separator), own.encoding, digested=False)
    try:
        return _part(next(iter(reader(source))), SPLIT) is not None
    except (InputError, StopIteration):
        return False


def _check_digest(source: Source, sha256: str, is_folder: bool) -> None:
    """Raise InputError where what was read is not what the run was planned with."""
    if is_folder:
        for file in walk(source.path)[0]:  # such as lie beside the class folders
            if file not in source.digests:
                source.read(file)
    if is_folder:
        found: str | None = of_folder(source.path, source.digests)
    else:
        found = source.digests[source.path] if source.digested else known_digest(source.path)
    if found != sha256:
        raise InputError(f"{named(source.path)} has changed while it was used; run the command again")


def checked_text(row: Row) -> str:
    """Return a document's text. Raises InputError, naming its place, for what is none."""
    if not isinstance(row.text, str):
        raise InputError(f"{row.place}: the text must be a string, got {shown(row.text)}")
    _check_characters(f"{row.place}: the text", row.text)
    return row.text


class _Unlabelled(InputError):
    """A document without a label."""


def _labels(row: Row, where: str, separator: str | None, *, may_be_missing: bool) -> str | list[str]:
    """Return a document's label, or its labels where a list or a separator says that there may be several.

    A label spelled like a missing value is none, where there `may_be_missing` values.
    """
    missing = MISSING if may_be_missing else {""}
    if isinstance(row.label, list):
        values = row.label
    elif separator is not None and isinstance(row.label, str):
        values = row.label.split(separator)
    else:
        return _label(row, where, row.label, missing)
    if not values:
        raise _Unlabelled(f"{row.place}: {where} must hold at least one label, got an empty list")
    return [_label(row, where, value, missing) for value in values]


def _label(row: Row, where: str, value: Any, missing: set[str]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        value = str(value)
    if not isinstance(value, str) or value.strip() in missing:
        of = f" in {shown(row.label)}" if isinstance(row.label, str) and row.label != value else ""
        name = value.strip() if isinstance(value, str) else ""
        hint = f", as pandas writes a missing value; rename a class of that name, such as '{name}-class'"
        raise _Unlabelled(
            f"{row.place}: {where} must hold a label that is not empty, got {shown(value)}{of}{hint if name else ''}"
        )
    _check_characters(f"{row.place}: {where}", value)
    return value.strip()


def _part(row: Row, column: str | None) -> str | None:
    if row.part is None and column is None:
        return None
    part = row.part.strip().lower() if isinstance(row.part, str) else None
    if part in PARTS:
        return part
    if part in VALIDATION:
        return "validation"
    choices = f"{', '.join(PARTS)} or {VALIDATION[0]} ({', '.join(VALIDATION[1:])})"
    raise InputError(f"{row.place}: column {shown(column)} must hold {choices}, got {shown(row.part)}")


def _check_characters(what: str, value: str) -> None:
    if "\0" in value:
        raise InputError(f"{what} must hold no NUL character, got one at position {value.index(chr(0))}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            # Only JSON's escapes and names of folders can spell half a character.
            raise InputError(f"{what} must be Unicode, got half a surrogate pair at {error.start}") from error


def _numbers(labels: list[Any]) -> tuple[list[str], np.ndarray]:
    import numpy as np

    names = sorted(set(labels))
    number = {name: i for i, name in enumerate(names)}
    return names, np.array([number[label] for label in labels], dtype=np.int64)


def _indicator(labels: list[Any]) -> tuple[list[str], csr_matrix]:
    import numpy as np
    from scipy.sparse import csr_matrix

    # A label beside lists of them is a list of one.
    rows = [sorted({label} if isinstance(label, str) else set(label)) for label in labels]
    names = sorted({label for row in rows for label in row})
    number = {name: i for i, name in enumerate(names)}
    indices = [number[label] for row in rows for label in row]
    starts = np.cumsum([0, *map(len, rows)])
    ones = np.ones(len(indices), dtype=np.int8)
    return names, csr_matrix((ones, indices, starts), shape=(len(rows), len(names)))
