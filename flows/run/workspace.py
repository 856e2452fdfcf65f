"""Where results live: one folder for the store, the tracking database, the Prefect server and the logs."""

import os
import socket
import tempfile
from pathlib import Path

from textbench.tasks import InputError

VARIABLE = "TEXTBENCH_HOME"
DEFAULT = ".textbench"
FOLDER_TAG = "folder:"
SERVICES = "services"  # the folder of what `textbench up` keeps running


def home_folder(chosen: str | os.PathLike[str] | None = None) -> Path:
    """Return the results folder, made if missing: `chosen`, `$TEXTBENCH_HOME`, or `.textbench` in the working folder.

    Raises InputError when it cannot be made or written to.
    """
    home = Path(chosen or os.environ.get(VARIABLE) or DEFAULT).expanduser().resolve()
    # These characters end a database's address.
    if any(character in str(home) for character in "?#%"):
        raise InputError(f"the results folder must have no ?, # or % in its path, got {home}")
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=home, prefix=".writable-") as probe:
            probe.write(b"x")
    except OSError as error:
        raise InputError(
            f"the results folder {home} cannot be written to ({error.strerror}); "
            f"set {VARIABLE} to a folder that can"
        ) from error
    return home


def folder_tag(home: Path) -> str:
    """Return the tag of a results folder's runs and deployments on Prefect's server: `folder:HOSTNAME:PATH`."""
    return f"{FOLDER_TAG}{socket.gethostname()}:{home}"
