"""The shared root: artifacts that several machines have in common, in a folder they all see or in a bucket of S3's.

Layout: `<url>/<stage>/<key>/<attempt>/` holds the files of one attempt at an artifact, `<url>/<stage>/<key>/meta.json`
says which attempt counts and repeats its meta. That file is written last, and only where there is none: the first
writer wins, and what was interrupted is nobody's. Keys and addresses of storage come from its usual environment
(`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_ENDPOINT_URL`).
"""

import contextlib
import errno
import hashlib
import json
import logging
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError
from textbench.tasks.storage.files import META, Damaged, intact, put, sealed, sha256_of, whole, write_json
from textbench.tasks.storage.recipe import Reference

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

log = logging.getLogger("textbench.store")
SHARED = ".shared"  # in an artifact's folder: the shared root that has it too
LOCKS = "TEXTBENCH_LOCKS"
STUDIES = "TEXTBENCH_STUDIES"
INSTALL = 'pip install "textbench[servers]"'
ACCEPTED = "s3://BUCKET/PREFIX, file:///FOLDER or /FOLDER"
N_TRIES = 3  # readings of an artifact that is being replaced meanwhile
CONNECT_SECONDS = 5
# A machine that vanished without closing its connection loses its locks after about a minute.
KEEPALIVE = "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"


@dataclass(frozen=True)
class Remote:
    """A shared root by its address: `s3://bucket/prefix`, `file:///folder` or `/folder`."""

    url: str

    def obtain(self, reference: Reference, folder: Path, not_before: float, make: Callable[[], None]) -> None:
        """Put the artifact into `folder`: copied if it is here, else made by `make` and published.

        Machines that share a PostgreSQL server (`TEXTBENCH_LOCKS`) make it once; without one, those that begin at the
        same time all do, and go on with what the first of them published.
        """
        if self.fetch(reference, folder, not_before):
            return
        with sole(f"{self.url} {reference.key}"):
            if not self.fetch(reference, folder, not_before):
                make()
                self.share(reference, folder, not_before)

    def share(self, reference: Reference, folder: Path, not_before: float = 0.0) -> None:
        """Publish the artifact in `folder`; where another was first, take that one in its place."""
        if self.publish(reference, folder, not_before):
            (folder / SHARED).write_text(self.url, "utf-8")
        else:
            self.fetch(reference, folder, not_before)

    def meta(self, reference: Reference, not_before: float = 0.0) -> dict[str, Any] | None:
        """Return the meta of the artifact, or None where there is none that is whole and young enough."""
        try:
            _, meta = self._standing(reference)
        except (FileNotFoundError, Damaged):
            return None
        return meta if meta["created"] >= not_before else None

    def read(self, reference: Reference, name: str, start: int, stop: int) -> bytes:
        """Return bytes of a file of the artifact as it stands. Raises FileNotFoundError or Damaged where none does."""
        attempt, _ = self._standing(reference)
        with self._files() as (files, root):
            return files.cat_file(f"{root}/{_place(reference)}/{attempt}/{name}", start=start, end=stop)

    def fetch(self, reference: Reference, folder: Path, not_before: float = 0.0) -> bool:
        """Copy the artifact to `folder`, every sha256 checked; return whether there is one.

        One that is damaged is removed with a warning, and so counts as missing.
        """
        temporary = folder.parent.parent / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        copy = Path(tempfile.mkdtemp(prefix=f"{reference.key}-", dir=temporary))
        try:
            meta = self._copy(reference, copy, not_before)
            if meta is None:
                return False
            write_json(copy / META, sealed(meta))
            (copy / SHARED).write_text(self.url, "utf-8")
            put(copy, folder)
            return True
        except Damaged as error:
            name = f"{reference.stage} {reference.key[:12]}"
            log.warning("the shared %s is damaged (%s); removed there and computed again", name, error)
            self.withdraw(reference)
            return False
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _copy(self, reference: Reference, copy: Path, not_before: float) -> dict[str, Any] | None:
        """Copy the files of the attempt that counts and return its meta, None where there is none to copy."""
        for is_last in (*[False] * (N_TRIES - 1), True):
            try:
                attempt, meta = self._standing(reference)
            except FileNotFoundError:
                return None
            if meta["created"] < not_before:
                return None
            try:
                self._copy_files(f"{_place(reference)}/{attempt}", meta["files"], copy)
                return meta
            except Damaged:
                if is_last or attempt == self._attempt(reference):
                    raise  # else somebody replaced it while it was read
        raise AssertionError("the last try returns or raises")

    def _copy_files(self, place: str, entries: Mapping[str, Any], copy: Path) -> None:
        for name, entry in entries.items():
            with self._files() as (files, root):
                try:
                    files.get_file(f"{root}/{place}/{name}", str(copy / name))
                except FileNotFoundError as error:
                    raise Damaged(f"{name} is missing") from error
            if sha256_of(copy / name) != entry["sha256"]:
                raise Damaged(f"{name} does not have the recorded sha256")

    def publish(self, reference: Reference, folder: Path, not_before: float = 0.0) -> bool:
        """Upload the artifact in `folder`; return whether it was: another one that stands is left as it is.

        One that is damaged or older than `not_before` is replaced.
        """
        attempt = uuid.uuid4().hex
        meta = json.loads((folder / META).read_text("utf-8"))
        place = _place(reference)
        content = json.dumps({"attempt": attempt, "meta": meta}, ensure_ascii=False).encode()
        won = False
        try:
            if self.meta(reference, not_before) is None:
                self._upload(folder, meta["files"], f"{place}/{attempt}")
                won = self._create(f"{place}/{META}", content)
                if not won and self.meta(reference, not_before) is None:
                    self.withdraw(reference)
                    won = self._create(f"{place}/{META}", content)
        finally:
            if not won:
                with contextlib.suppress(OSError):
                    self._remove(f"{place}/{attempt}", recursive=True)
        return won

    def withdraw(self, reference: Reference) -> None:
        """Remove the artifact, whatever state it is in: first what says that it is there, then its files."""
        attempt = self._attempt(reference)
        self._remove(f"{_place(reference)}/{META}")
        if attempt is not None:
            self._remove(f"{_place(reference)}/{attempt}", recursive=True)

    def check(self) -> None:
        """See that this machine can write here and that of two writers the first wins. Raises InputError."""
        name = f"tmp/{uuid.uuid4().hex}"
        try:
            is_second = self._create(name, b"1") and self._create(name, b"2")
            self._remove(name)
        except FileNotFoundError as error:  # of a bucket
            raise InputError(f"the shared store {self.url} cannot be used: {error}") from error
        except OSError as error:
            raise InputError(str(error)) from error
        if is_second:
            raise InputError(
                f"the shared store {self.url} lets a second writer overwrite the first; "
                "use storage that knows conditional puts (If-None-Match), as Amazon's and MinIO do"
            )

    def _standing(self, reference: Reference) -> tuple[str, dict[str, Any]]:
        """Return the attempt that counts and its meta. Raises FileNotFoundError, or Damaged if not whole."""
        with self._files() as (files, root):
            content = files.cat_file(f"{root}/{_place(reference)}/{META}")
        try:
            entry = json.loads(content)
            attempt, meta = uuid.UUID(entry["attempt"]).hex, entry["meta"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Damaged(f"its {META} cannot be read") from error
        meta = intact(meta, f"its {META}")
        if meta["key"] != reference.key:
            raise Damaged(f"its {META} belongs to another artifact")
        for name in meta["files"]:
            if name != Path(name).name or name.startswith(".") or "\\" in name or name == META:
                raise Damaged(f"a file of an artifact has a plain name, got {name!r}")
        return attempt, meta

    def _attempt(self, reference: Reference) -> str | None:
        try:
            return self._standing(reference)[0]
        except (FileNotFoundError, Damaged):
            return None

    def _upload(self, folder: Path, entries: Mapping[str, Any], place: str) -> None:
        for name, entry in entries.items():
            if sha256_of(folder / name) != entry["sha256"]:
                raise Damaged(f"{folder / name} does not have the recorded sha256")
            with self._files() as (files, root):
                if _is_folder(files):
                    files.makedirs(f"{root}/{place}", exist_ok=True)
                files.put_file(str(folder / name), f"{root}/{place}/{name}")

    def _create(self, place: str, content: bytes) -> bool:
        """Write a small file whole where there is none; False where there is one."""
        with self._files() as (files, root):
            path = f"{root}/{place}"
            try:
                if _is_folder(files):
                    with whole(Path(path), is_new=True) as part:
                        part.write_bytes(content)
                else:
                    files.pipe_file(path, content, mode="create")
                return True
            except OSError:
                # Refused: somebody was first. That may be ourselves, when the answer to a first try was lost.
                with contextlib.suppress(FileNotFoundError):
                    return files.cat_file(path) == content
                raise

    def _remove(self, place: str, *, recursive: bool = False) -> None:
        with self._files() as (files, root), contextlib.suppress(FileNotFoundError):
            if recursive:
                files.rm(f"{root}/{place}", recursive=True)
            else:
                files.rm_file(f"{root}/{place}")

    @contextlib.contextmanager
    def _files(self) -> "Iterator[tuple[AbstractFileSystem, str]]":
        """Give the file system and the root's path in it; what goes wrong there is an OSError of one line."""
        files, root = _file_system(self.url)
        try:
            yield files, root.rstrip("/")
        except (FileNotFoundError, FileExistsError, Damaged):
            raise
        except Exception as error:  # of a storage's client: nobody answers, no keys, no right to write
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise  # this machine's disk
            reason = " ".join(str(error).split()) or type(error).__name__
            raise OSError(f"the shared store {self.url} cannot be used: {reason}") from error


def _place(reference: Reference) -> str:
    return f"{reference.stage}/{reference.key}"


def _file_system(url: str) -> "tuple[AbstractFileSystem, str]":
    protocol, _, path = url.rpartition("://")
    if protocol not in ("", "file", "s3") or not (path.startswith("/") or (protocol == "s3" and path)):
        raise InputError(f"the shared store is {ACCEPTED}, got {url!r}")
    import fsspec

    options: dict[str, Any] = {}
    if protocol == "s3":
        options["use_listings_cache"] = False  # what others write has to be seen
        # boto reads it too, but fsspec remembers clients by their options, and would take that of another address.
        options["endpoint_url"] = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    try:
        return fsspec.core.url_to_fs(url, **options)
    except ImportError as error:
        raise InputError(f"a shared store on S3 needs s3fs, which is not installed; {INSTALL}") from error


def _is_folder(files: "AbstractFileSystem") -> bool:
    return "file" in files.protocol


@contextlib.contextmanager
def sole(name: str) -> Iterator[None]:
    """Hold the lock of this name on the PostgreSQL server of `TEXTBENCH_LOCKS`; without that variable hold nothing."""
    address = os.environ.get(LOCKS)
    with held(address, name, LOCKS) if address else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def held(address: str, name: str, variable: str) -> Iterator[None]:
    """Hold the lock of this name on a PostgreSQL server, whose address came from a variable.

    It is an advisory lock of a session: it dies with its connection, and so with its holder. Raises InputError for an
    address that is no PostgreSQL server's, OSError when the server cannot be used.
    """
    connection = _connect(
        address, int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True), variable
    )
    try:
        yield
    finally:
        connection.close()


def _connect(address: str, number: int, variable: str) -> Any:
    """Return a connection that holds the advisory lock of this number."""
    connection = open_database(address, variable)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", (number,))
    except Exception as error:  # whatever the database's client raises
        connection.close()
        raise OSError(f"{variable} cannot be used: {' '.join(str(error).split())}") from error
    return connection


def check_databases() -> None:
    """See that the databases of `TEXTBENCH_LOCKS` and `TEXTBENCH_STUDIES` answer, where they are named.

    Raises InputError, after `CONNECT_SECONDS` where nobody does.
    """
    for variable in (LOCKS, STUDIES):
        if address := os.environ.get(variable):
            try:
                open_database(address, variable).close()
            except OSError as error:
                raise InputError(f"{error}; start the server, or unset {variable}") from error


def open_database(address: str, variable: str) -> Any:
    """Return a connection to a PostgreSQL server, every statement a transaction of its own; `variable` named it.

    Raises InputError for an address that is no PostgreSQL server's, OSError when the server cannot be used.
    """
    if not address.startswith(("postgresql://", "postgres://")):
        raise InputError(
            f"{variable} is postgresql://USER:PASSWORD@HOST/DATABASE, got {address.partition(':')[0]}:..."
        )
    try:
        import psycopg2
    except ImportError as error:
        raise InputError(f"{variable} needs psycopg2, which is not installed; {INSTALL}") from error
    try:
        connection = psycopg2.connect(
            address, connect_timeout=CONNECT_SECONDS, application_name="textbench", options=KEEPALIVE
        )
    except psycopg2.Error as error:  # it names host and user, never the password
        raise OSError(f"{variable} cannot be used: {' '.join(str(error).split())}") from error
    connection.autocommit = True
    return connection
