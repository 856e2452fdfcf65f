"""The artifact store: every result once, under a key that says how it was made, verified whenever it is read.

Layout: `<root>/<stage>/<key>/` holds the files of one artifact and `meta.json`: its whole recipe, the sha256 of each
file, and what it cost. An artifact appears under its name complete or not at all.
"""

import contextlib
import errno
import importlib
import json
import logging
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.tasks.storage import isolate
from textbench.tasks.storage.cluster import SPREAD, Cluster, around
from textbench.tasks.storage.files import (
    META,
    Damaged,
    describe,
    is_let_go,
    put,
    read_meta,
    read_npz,
    sealed,
    sha256_of,
    write_json,
)
from textbench.tasks.storage.locks import locked
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.remote import SHARED, Remote

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from scipy.sparse import csr_matrix

log = logging.getLogger("textbench.store")
steps = logging.getLogger("textbench.steps")
STORE = "TEXTBENCH_STORE"
HOME = "TEXTBENCH_HOME"
ASIDE = "damaged"
# Of a computation's linear algebra: two add in another order, and an artifact's bits would depend on the machine's
# cores. The probes' last digits do, and with them the fifth of a macro-F1.
THREADS = 1
ROW_GROUP = 2**15  # rows of a table that are read by themselves
EMBEDDED = "text_vectors"  # the stage that keeps what it makes outside of its artifact
WARM_SECONDS = 20.0  # beyond which the first time in a process is hardly dearer than the second


@dataclass(frozen=True)
class Artifact:
    """A stored result, open for reading: `folder` with its files and `meta`, what was recorded when it was made."""

    folder: Path
    meta: dict[str, Any]

    def array(self, name: str) -> "np.ndarray":
        """Return the array in `<name>.npy`."""
        import numpy as np

        return np.load(self.folder / f"{name}.npy", allow_pickle=False)

    def arrays(self, name: str) -> "dict[str, np.ndarray]":
        """Return the arrays in `<name>.npz`."""
        return read_npz(self.folder / f"{name}.npz")

    def matrix(self, name: str) -> "np.ndarray | csr_matrix":
        """Return a dense array (`<name>.npy`) or a csr matrix (`<name>.npz`), whichever was saved.

        One that was saved by blocks is not copied into memory.
        """
        if (self.folder / f"{name}.npy").exists():
            return self.array(name)
        from scipy.sparse import csr_array, csr_matrix

        if (self.folder / f"{name}.data.npy").exists():
            from textbench.tasks.storage.blocks import mapped_csr

            return mapped_csr(self.folder, name)
        saved = self.arrays(name)
        kind = csr_array if "_is_array" in saved else csr_matrix
        return kind((saved["data"], saved["indices"], saved["indptr"]), shape=tuple(saved["shape"].tolist()))

    def json(self, name: str) -> Any:
        """Return the JSON value in `<name>.json`."""
        return json.loads((self.folder / f"{name}.json").read_text("utf-8"))

    def table(self, name: str, columns: list[str] | None = None) -> "pyarrow.Table":
        """Return the table in `<name>.parquet`, or some of its columns."""
        import pyarrow.parquet

        # Not by `read_table`, which loads what reads whole folders of files.
        with pyarrow.parquet.ParquetFile(self.folder / f"{name}.parquet") as file:
            return file.read(columns)


@dataclass(frozen=True)
class Job:
    """One computation: its parameters, its inputs opened on demand, and the folder to write the result to.

    `zero_rows` says for each matrix that was saved how many of its rows hold nothing but zeros, `parts` the wall-clock
    seconds of the parts that were timed, `taken` what meta.json is to say of another artifact whose files were taken.
    """

    params: dict[str, Any]
    inputs: Mapping[str, Reference]
    folder: Path
    store: "Store"
    zero_rows: dict[str, int] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)
    taken: dict[str, Any] = field(default_factory=dict)

    @contextlib.contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add what is done meanwhile to the seconds of a part of the computation; meta.json has them by part."""
        started = time.perf_counter()
        yield
        self.parts[part] = self.parts.get(part, 0.0) + time.perf_counter() - started

    def open(self, name: str) -> Artifact:
        """Return the named input, computed again first if it is missing or damaged."""
        return self.store.open(self.inputs[name])

    def take(self, artifact: Artifact) -> None:
        """Write another artifact's files, the same by definition: meta.json has its costs, and its key as `same_as`."""
        for name in (meta := artifact.meta)["files"]:
            self.link(artifact, name)
        told = {name: meta[name] for name in ("zero_rows", "parts", "seconds", "cpu_seconds", "peak_mb")}
        self.taken.update(told, same_as=meta.get("same_as", meta["key"]))

    def link(self, artifact: Artifact, name: str) -> None:
        """Take over a file of another artifact under its name; where the file system has hard links without a copy."""
        try:
            os.link(artifact.folder / name, self.folder / name)
        except OSError:
            shutil.copyfile(artifact.folder / name, self.folder / name)

    def save_array(self, name: str, array: "np.ndarray") -> None:
        """Write `<name>.npy`. Raises OSError where it cannot be written; a short write means a full disk."""
        import numpy as np

        path = self.folder / f"{name}.npy"
        try:
            np.save(path, array, allow_pickle=False)
        except OSError as error:
            # numpy says only how much it wrote; what cuts a file short is a full disk.
            if error.errno is None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
            raise

    def save_arrays(self, name: str, arrays: "Mapping[str, np.ndarray]") -> None:
        """Write `<name>.npz`."""
        import numpy as np

        np.savez(self.folder / f"{name}.npz", allow_pickle=False, **arrays)

    def save_matrix(self, name: str, matrix: "np.ndarray | csr_matrix") -> None:
        """Write `<name>.npz` (csr) or `<name>.npy` (dense)."""
        import numpy as np
        import scipy.sparse

        if isinstance(matrix, np.ndarray):
            is_zero = ~matrix.any(axis=1)
            self.save_array(name, matrix)
        else:
            is_zero = matrix.count_nonzero(axis=1) == 0
            scipy.sparse.save_npz(self.folder / f"{name}.npz", matrix, compressed=False)
        self.zero_rows[name] = int(is_zero.sum())

    def save_blocks(self, name: str, blocks: "Iterable[np.ndarray | csr_matrix]") -> None:
        """Write a matrix some rows at a time, all csr or all dense (`tasks.storage.blocks.write_blocks`)."""
        from textbench.tasks.storage.blocks import write_blocks

        self.zero_rows[name] = write_blocks(self.folder, name, blocks)

    def save_json(self, name: str, value: Any) -> None:
        """Write `<name>.json`."""
        (self.folder / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")

    def save_table(self, name: str, columns: Mapping[str, Any]) -> None:
        """Write `<name>.parquet` from named columns."""
        import pyarrow
        import pyarrow.parquet

        table, path = pyarrow.table(dict(columns)), self.folder / f"{name}.parquet"
        pyarrow.parquet.write_table(table, path, row_group_size=ROW_GROUP)


@dataclass(frozen=True)
class Store:
    """Where artifacts live, and the limits under which missing ones are made.

    `not_before` (seconds since the epoch) makes older artifacts count as missing. `time_limit` is in seconds,
    `memory_limit` in megabytes, both for each computation, `workers` the processes that it may use for parts that are
    independent. With `isolated` false computations run in the calling process. With `warm` what takes less than
    WARM_SECONDS is computed twice in its process and the second time counts: the first has paid for imports, compiled
    code and what is read from disk. What makes other artifacts, a search its trials, is computed once, and these twice.

    `remote` is the address of a root that several machines share (`tasks.storage.remote`; default:
    `$TEXTBENCH_STORE`): what is missing here is copied from there, and what is made here is published there.
    `cluster` says that stages are computed by the workers of a Dask cluster, each of which takes the store of its own
    results folder (`here`), if it is not a run's own cluster.
    """

    root: Path
    not_before: float = 0.0
    time_limit: float | None = None
    memory_limit: float | None = None
    workers: int = 1
    isolated: bool = True
    warm: bool = False
    remote: str | None = field(default_factory=lambda: os.environ.get(STORE) or None)
    cluster: Cluster | None = None

    def here(self) -> "Store":
        """Return the store as the process has it that it was sent to: that of a cluster's worker has its own root.

        Raises OSError where the worker runs other code, or has no results folder.
        """
        if self.cluster is None:
            return self
        self.cluster.check()
        return replace(self, root=self.root if self.cluster.is_ours else own_root(), isolated=True)

    def folder(self, reference: Reference) -> Path:
        """Return where the artifact lives, whether or not it is there."""
        return self.root / reference.stage / reference.key

    def has(self, reference: Reference) -> bool:
        """Tell whether the artifact is there and its files have the promised sizes (contents are checked by `open`)."""
        try:
            self._sized(reference)
        except (OSError, Damaged):
            return False
        return True

    def damage(self, reference: Reference) -> str:
        """Return what is wrong with the artifact's files, read whole; "" where nothing is, or they are not here."""
        folder = self.folder(reference)
        if not folder.exists() or is_let_go(folder):
            return ""
        try:
            self._verified(reference)
        except (OSError, Damaged) as error:
            return str(error)
        return ""

    def open(self, reference: Reference) -> Artifact:
        """Return the artifact with every file's sha256 checked, computing it first if it is missing or damaged.

        Raises CellError when computing it fails and OSError when it cannot be written.
        """
        self.ensure(reference)
        with contextlib.suppress(OSError, Damaged):
            return self._verified(reference)
        with self._lock(reference):
            try:
                return self._verified(reference)  # another process may have made it again meanwhile
            except (OSError, Damaged) as error:
                self._set_aside(reference, str(error))
            self._obtain(reference)
            return self._verified(reference)

    def ensure(self, reference: Reference) -> dict[str, Any]:
        """Return the artifact's meta, computing the artifact if it is not there.

        Processes and threads that want one key compute it once.
        """
        with contextlib.suppress(OSError, Damaged):
            meta = self._sized(reference)
            if self._is_shared(reference):
                return meta
        with self._lock(reference):
            if not self.has(reference):
                if self.folder(reference).exists():
                    self._set_aside(reference)
                self._obtain(reference)
            elif not self._is_shared(reference):
                self._share(reference)
            return self._read_meta(reference)

    def meta(self, reference: Reference) -> dict[str, Any]:
        """Return the artifact's meta without bringing its files here where the shared root has them.

        It is computed if it is nowhere.
        """
        with contextlib.suppress(OSError, Damaged):
            return self._read_meta(reference)
        shared = Remote(self.remote).meta(reference, self.not_before) if self.remote is not None else None
        return shared or self.ensure(reference)

    def _obtain(self, reference: Reference) -> None:
        """Make the artifact, or copy it from the shared root."""
        if self.remote is None:
            self._make(reference)
            return
        Remote(self.remote).obtain(
            reference, self.folder(reference), self.not_before, lambda: self._make(reference)
        )

    def _is_shared(self, reference: Reference) -> bool:
        """Tell whether the artifact, which is here, is known to be in the shared root too, if there is one."""
        if self.remote is None:
            return True
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return (self.folder(reference) / SHARED).read_text("utf-8") == self.remote
        return False

    def _share(self, reference: Reference) -> None:
        """Publish what was made before there was a shared root, or while it could not be written to."""
        assert self.remote is not None, "without a shared root everything counts as shared"
        remote = Remote(self.remote)
        try:
            remote.share(reference, self.folder(reference), self.not_before)
        except Damaged as error:
            self._set_aside(reference, str(error))
            self._obtain(reference)

    def _make(self, reference: Reference) -> None:
        payload = {
            "reference": reference.to_json(),
            "root": str(self.root),
            "not_before": self.not_before,
            "workers": self.workers,
            "warm": self.warm,
            "remote": self.remote,
            "cluster": self.cluster and asdict(self.cluster),
        }
        try:
            if self.isolated:
                isolate.run(
                    "textbench.tasks.storage.store:make",
                    payload,
                    time_limit=self.time_limit,
                    memory_limit=self.memory_limit,
                    threads=THREADS,
                    stage=reference.stage,
                )
            else:
                make(payload)
        finally:
            for leftover in (self.root / "tmp").glob(f"{reference.key}-*"):
                shutil.rmtree(leftover, ignore_errors=True)

    def _verified(self, reference: Reference) -> Artifact:
        folder = self.folder(reference)
        meta = self._read_meta(reference)
        for name, entry in meta["files"].items():
            if sha256_of(folder / name) != entry["sha256"]:
                raise Damaged(f"{folder / name} does not have the recorded sha256")
        return Artifact(folder, meta)

    def _sized(self, reference: Reference) -> dict[str, Any]:
        folder = self.folder(reference)
        meta = self._read_meta(reference)
        for name, entry in meta["files"].items():
            if (folder / name).stat().st_size != entry["bytes"]:
                raise Damaged(f"{folder / name} does not have the recorded size")
        return meta

    def _read_meta(self, reference: Reference) -> dict[str, Any]:
        path = self.folder(reference) / META
        meta = read_meta(path)
        if meta["key"] != reference.key:
            raise Damaged(f"{path} belongs to another artifact")
        if meta["created"] < self.not_before:
            raise Damaged(f"{path} is older than this run wants")
        return meta

    def _set_aside(self, reference: Reference, reason: str = "") -> None:
        folder = self.folder(reference)
        with contextlib.suppress(OSError, Damaged):
            if is_let_go(folder):
                return
            if not reason and read_meta(folder / META)["created"] < self.not_before:
                return  # not damaged, only to be made afresh: it is replaced when its successor is complete
        aside = self.root / ASIDE / f"{reference.stage}-{reference.key[:12]}-{time.time_ns()}"
        aside.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            folder.rename(aside)
            log.warning(
                "the stored %s %s is damaged or incomplete%s; moved to %s and computed again",
                reference.stage,
                reference.key[:12],
                f" ({reason})" if reason else "",
                aside,
            )

    @contextlib.contextmanager
    def _lock(self, reference: Reference) -> Iterator[None]:
        def say(waits: str) -> None:
            extra = {"artifact": reference.key, "waits": waits}
            steps.debug("%s %s: %s", reference.stage, reference.key[:12], waits or "goes on", extra=extra)

        with locked(self.root / reference.stage / f".{reference.key}.lock", say=say):
            yield


def own_root() -> Path:
    """Return the store of this process's results folder, which `TEXTBENCH_HOME` names. Raises OSError without it."""
    home = os.environ.get(HOME)
    if not home:
        raise OSError(
            f"a worker of a Dask cluster keeps results in the folder that {HOME} names, and it is not set"
        )
    return Path(home).expanduser().resolve() / "store"


@dataclass
class _Here:
    """What this process made so far: artifacts, and the seconds of first times that do not count."""

    made: int = 0
    warming: float = 0.0
    warming_cpu: float = 0.0


_here = _Here()


def make(payload: dict[str, Any]) -> dict[str, Any]:
    """Compute the artifact of `payload["reference"]` and put it in its place; return its meta.

    Its files are written under a temporary name, flushed and renamed, so that a kill leaves no half artifact.
    """
    reference = Reference.from_json(payload["reference"])
    root = Path(payload["root"])
    settings = {name: payload[name] for name in ("not_before", "workers", "warm", "remote")}
    cluster = payload["cluster"] and Cluster(**payload["cluster"])
    store = Store(root, **settings, isolated=False, cluster=cluster)
    (root / "tmp").mkdir(parents=True, exist_ok=True)
    # A second time would read what the first one kept.
    is_again = not store.warm or reference.stage == EMBEDDED
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{reference.key}-", dir=root / "tmp"))
        before, started = replace(_here), time.perf_counter() - _here.warming
        spent = isolate.usage()["cpu_seconds"] - _here.warming_cpu
        job = Job(dict(reference.params), reference.inputs, folder, store)
        with around(cluster):
            _call(SPREAD.get(reference.function, reference.function) if cluster else reference.function, job)
        taken = time.perf_counter() - _here.warming - started
        if is_again or taken > WARM_SECONDS or _here.made > before.made:
            break
        shutil.rmtree(folder)
        _here.warming += taken
        _here.warming_cpu += isolate.usage()["cpu_seconds"] - _here.warming_cpu - spent
        is_again = True
    used = isolate.usage()
    meta = {
        "key": reference.key,
        "recipe": reference.to_json(),
        "files": {path.name: describe(path) for path in sorted(folder.iterdir())},
        "zero_rows": job.zero_rows,
        "parts": job.parts,
        "seconds": time.perf_counter() - _here.warming - started,
        "cpu_seconds": used["cpu_seconds"] - _here.warming_cpu - spent,
        "peak_mb": used["peak_mb"],
        "threads": THREADS,
        # Made for a run that wants nothing older: by a clock that was set back meanwhile it might seem so.
        "created": max(time.time(), store.not_before),
        "host": socket.gethostname(),
        **job.taken,
    }
    write_json(folder / META, sealed(meta))
    put(folder, store.folder(reference))
    _here.made += 1
    return meta


def _call(function: str, job: Job) -> None:
    module, _, name = function.partition(":")
    getattr(importlib.import_module(module), name)(job)
