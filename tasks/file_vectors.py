"""Vectors that were made elsewhere, a file with a row a document: features that nothing here has learned."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError
from textbench.tasks.sources import given_files
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np

    from textbench.tasks.storage.store import Artifact, Job

INPUT = "texts"
SEARCH_SPACE: dict[str, Any] = {}
ENDINGS = (*given_files.ARRAYS, ".parquet")


def pinned(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with the file's absolute path and its sha256; InputErrors are those of `given_files`."""
    return given_files.pinned("vectors", params, ENDINGS)


def reference(corpus: Reference, params: Mapping[str, Any]) -> Reference:
    """Return the features artifact of a file: its rows in the order of the documents, dense float32.

    Its about.json says whether the file has ids.
    """
    return refer("textbench.tasks.file_vectors:compute", params, {"corpus": corpus}, stage="featurize")


def compute(job: "Job") -> None:
    """Write the rows of the training and of the test documents, as `tasks.featurize` does."""
    import numpy as np

    vectors, has_ids = read(given_files.read_pinned(job.params), job.open("corpus"))
    n_train = len(given_files.ids_of(job.open("corpus"), "train"))
    for part, rows in zip(given_files.PARTS, np.split(vectors, [n_train]), strict=True):
        job.save_matrix(part, rows)
    job.save_json("about", {"has_ids": has_ids})


def read(path: Path, corpus: "Artifact") -> "tuple[np.ndarray, bool]":
    """Return vectors, float32 (n_documents, n_features), training documents first, and whether the file has ids.

    .npy: a matrix. .npz: a matrix `vectors`, and `ids` if any. Parquet: a column of lists, or columns of numbers, and
    `id` if any. Raises InputError for other shapes, kinds of values, ids, and for values that are not finite.
    """
    import numpy as np

    vectors, ids = _table(path) if path.suffix.lower() == ".parquet" else _arrays(path)
    if vectors.ndim != 2 or not vectors.shape[1] or vectors.dtype.kind not in "fiu":
        raise InputError(
            f"{path.name} must hold a matrix of numbers, a row a document, got {vectors.dtype} {vectors.shape}"
        )
    if ids is not None and len(ids) != len(vectors):
        raise InputError(f"{path.name} must have an id a row, got {len(ids):,} for {len(vectors):,}")
    rows = given_files.rows_of(path, ids, len(vectors), corpus, given_files.PARTS)
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(vectors[rows], dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(bad):
        wanted = [one for part in given_files.PARTS for one in given_files.ids_of(corpus, part)]
        raise InputError(
            f"{path.name} must hold finite numbers, got others in {len(bad):,} rows, the first that of {wanted[bad[0]]}"
        )
    return found, ids is not None


def build(**params: Any) -> Any:
    """Return what has the parameters; there is nothing to fit."""
    return SimpleNamespace(get_params=lambda: params)


def check(params: Mapping[str, Any], corpus: "Artifact") -> bool:
    """Return whether the file has ids. Raises InputError for one that is not of these documents (`read`)."""
    return read(given_files.read_pinned(params), corpus)[1]


def check_columns(path: Path) -> None:
    """Refuse a Parquet file of vectors with columns that would be features and are none, or with large lists.

    Such columns are the index that pandas writes with a table, and labels. Raises InputError saying what to do.
    """
    import pyarrow
    import pyarrow.parquet

    if path.suffix.lower() != ".parquet":
        return
    try:
        schema = pyarrow.parquet.read_schema(path)
    except (pyarrow.ArrowException, OSError):
        return  # the reader says what is wrong with it
    described = (schema.pandas_metadata or {}).get("index_columns", ())
    # A range has a description in place of a name.
    index = [
        name for name in described if isinstance(name, str) and name not in ("id", "part", "text", "name")
    ]
    if index:
        raise InputError(
            f"{path.name}: the column {index[0]} is the index that pandas wrote and no feature; "
            "write the file with index=False"
        )
    if labels := [name for name in schema.names if name in ("label", "labels")]:
        raise InputError(
            f"{path.name}: the column {labels[0]} tells the class and is no feature; leave it out"
        )
    if large := [field.name for field in schema if pyarrow.types.is_large_list(field.type)]:
        raise InputError(
            f"{path.name}: {large[0]} is a column of large lists; cast it to lists of 32-bit offsets "
            "(pyarrow.list_ in place of pyarrow.large_list)"
        )


def _arrays(path: Path) -> "tuple[np.ndarray, list[str] | None]":
    found = given_files.read_arrays(path)
    if "vectors" not in found or not found.keys() <= {"vectors", "ids"}:
        raise InputError(
            f"{path.name} must hold `vectors`, and `ids` if any, got {', '.join(found) or 'nothing'}"
        )
    ids = [str(one) for one in found["ids"].ravel().tolist()] if "ids" in found else None
    return found["vectors"], ids


def _table(path: Path) -> "tuple[np.ndarray, list[str] | None]":
    import numpy as np
    import pyarrow

    table = given_files.read_table(path)
    ids = (
        [str(one) for one in table[given_files.ID].to_pylist()]
        if given_files.ID in table.column_names
        else None
    )
    kept = [name for name in table.column_names if name not in (given_files.ID, "part", "text", "name")]
    columns = [table[name].combine_chunks() for name in kept]
    kinds = pyarrow.types
    if len(columns) == 1 and (kinds.is_list(columns[0].type) or kinds.is_fixed_size_list(columns[0].type)):
        lengths = set(columns[0].value_lengths().to_pylist())
        if len(lengths) != 1 or None in lengths:
            raise InputError(
                f"{path.name}: every list of {kept[0]} must be as long, got lengths {sorted(map(str, lengths))[:5]}"
            )
        width = lengths.pop()
        return columns[0].flatten().to_numpy(zero_copy_only=False).reshape(-1, width or 0), ids
    wrong = [
        name
        for name, one in zip(kept, columns, strict=True)
        if not (kinds.is_floating(one.type) or kinds.is_integer(one.type))
    ]
    if wrong or not columns:
        raise InputError(
            f"{path.name} must have a column of lists, or columns of numbers, got {', '.join(wrong or ['none'])}"
        )
    return np.column_stack([one.to_numpy(zero_copy_only=False) for one in columns]), ids
