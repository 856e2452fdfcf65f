"""Files with something for every document of a data set, made elsewhere: vectors, or predictions of the test documents.

A file names its documents by the ids of `textbench texts`, train-0, train-1, ..., test-0, ..., or by those of the
source where it has some. Rows stand in any order then. A file without ids has the rows of `textbench texts` in their
order, all of them, and that it was read so is said.
"""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError
from textbench.tasks.storage.files import sha256_of
from textbench.tasks.tracking.settings import shown

if TYPE_CHECKING:
    import numpy as np
    import pyarrow

    from textbench.tasks.storage.store import Artifact

PARTS = ("train", "test")
ID = "id"
TABLES = (".csv", ".tsv", ".parquet")
ARRAYS = (".npy", ".npz")


def pinned(
    what: str, params: Mapping[str, Any], endings: Sequence[str], known: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the parameters of a file's method with its path made absolute and the sha256 of its content.

    `known` are parameters that it may have beside these. Raises InputError for a file that is not there, of no kind in
    `endings` or another one than the sha256 says, and for parameters that are none.
    """
    choices = ("path", "sha256", *known)
    wrong = [name for name in params if name not in choices]
    if wrong or not isinstance(params.get("path"), str):
        raise InputError(f"{what} take {', '.join(choices)}, path being a file, got {shown(dict(params))}")
    path = Path(params["path"]).expanduser().resolve()
    if not path.is_file():
        raise InputError(f"there is no file {params['path']} of {what}")
    if path.suffix.lower() not in endings:
        raise InputError(f"{what} are read from {', '.join(endings)}, got {path.name}")
    sha256 = sha256_of(path)
    if params.get("sha256", sha256) != sha256:
        raise InputError(f"{path} has changed: its sha256 must be {params['sha256']}, got {sha256}")
    return {**params, "path": str(path), "sha256": sha256}


def titled(params: Mapping[str, Any]) -> str:
    """Return how tables call what a pinned file holds."""
    return f"{Path(params['path']).name}, from file {params['sha256'][:8]}"


def read_pinned(params: Mapping[str, Any]) -> Path:
    """Return a pinned file's path. Raises InputError where it has changed since it was pinned."""
    path = Path(params["path"])
    if not path.is_file() or sha256_of(path) != params["sha256"]:
        raise InputError(f"{path} has changed while it was used; run the command again")
    return path


def ids_of(corpus: "Artifact", part: str) -> list[str]:
    """Return the ids of a part's documents: its name and their positions, from 0."""
    import pyarrow.parquet

    n_documents = pyarrow.parquet.read_metadata(corpus.folder / f"{part}.parquet").num_rows
    return [f"{part}-{row}" for row in range(n_documents)]


def read_table(path: Path) -> "pyarrow.Table":
    """Return a file's table. Raises InputError for one that cannot be read as its ending says."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    try:
        if path.suffix.lower() == ".parquet":
            return pyarrow.parquet.read_table(path)
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        texts = dict.fromkeys((ID, "label"), pyarrow.string())
        return pyarrow.csv.read_csv(
            path,
            parse_options=pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(column_types=texts),
        )
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path.name} cannot be read: {' '.join(str(error).split())[:200]}") from error


def read_arrays(path: Path) -> "dict[str, np.ndarray]":
    """Return the arrays of a .npz file by name, or that of a .npy file as `vectors`; nothing is unpickled.

    Raises InputError for a file that is neither, or holds Python objects.
    """
    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"vectors": loaded}
        with loaded:
            return dict(loaded)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path.name} cannot be read: {' '.join(str(error).split())[:200]}") from error


def rows_of(
    path: Path, found: "Sequence[str] | None", n_rows: int, corpus: "Artifact", parts: Sequence[str]
) -> Any:
    """Return which row of a file each document of these parts has, int64 (n_documents,), one part after the other.

    `found` are the file's ids, None where it has none. Raises InputError for another number of rows, and for ids that
    are missing, unknown or there twice.
    """
    import numpy as np

    from textbench.tasks.corpus import read_ids

    wanted = [one for part in parts for one in ids_of(corpus, part)]
    if found is None:
        if n_rows != len(wanted):
            raise InputError(
                f"{path.name} must have a row for each of {len(wanted):,} documents ({' and '.join(parts)}), got "
                f"{n_rows:,}; ids (`textbench texts`) say which is whose"
            )
        return np.arange(n_rows)
    place = {one: row for row, one in enumerate(found)}
    if len(place) < n_rows:
        twice = next(one for row, one in enumerate(found) if place[one] != row)
        raise InputError(f"{path.name} must name each document once, got {shown(twice)} twice")
    names = [read_ids(corpus, part) for part in parts]
    if wanted[0] not in place and None not in names:
        sources = [one for own in names for one in own or ()]
        # Ids that two documents share name neither.
        wanted = sources if len(set(sources)) == len(sources) and sources[0] in place else wanted
    missing = [one for one in wanted if one not in place]
    if missing:
        raise InputError(
            f"{path.name} must have a row for each of {len(wanted):,} documents ({' and '.join(parts)}), got none for "
            f"{len(missing):,} of them, the first {shown(missing[0])}"
        )
    unknown = place.keys() - set(wanted)
    if unknown - {one for part in PARTS for one in ids_of(corpus, part)}:
        raise InputError(f"{path.name} names documents that there are none of, such as {shown(min(unknown))}")
    return np.array([place[one] for one in wanted])
