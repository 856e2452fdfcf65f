"""Loading the user's own documents under watch, for tests that throw anything at it."""

import importlib
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from scipy.sparse import issparse

from tests.guard import no_hang
from textbench.tasks import InputError
from textbench.tasks.corpus import Corpus
from textbench.tasks.sources.user_data import MISSING, UserData, digest, load

# What `load` imports is imported before, so that no example pays for it or is seen to write byte code.
for library in ("iterstrat.ml_stratifiers", "sklearn.model_selection"):
    importlib.import_module(library)

FUZZ = settings(
    max_examples=int(os.environ.get("TEXTBENCH_FUZZ_EXAMPLES", "500")),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = (
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "shutil.",
)

written: list[str] = []
is_watching = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note whatever Python writes, anywhere, while a file is read."""
    if not is_watching:
        return
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
        written.append(str(arguments[0]))
    elif event.startswith(CHANGES):
        written.append(f"{event} {arguments}")


sys.addaudithook(_watch)

# Text is what UTF-8 can carry, without NUL; a folder's file cannot begin with a byte-order mark of its own.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
labels = names.map(str.strip).filter(lambda name: name not in MISSING)


@dataclass(frozen=True)
class Outcome:
    """What came of loading a path: a corpus, or the line that refuses it, and what it wrote."""

    corpus: Corpus | None
    refusal: str
    written: Sequence[str]

    def faults(self) -> list[str]:
        """Return what no input may bring about: a wild message, a file, a corpus that is none."""
        found = {
            f"the refusal is not printable: {self.refusal!r}": not self.refusal.isprintable(),
            f"the refusal has {len(self.refusal)} characters": len(self.refusal) >= 3000,
            f"it wrote {self.written}": bool(self.written),
        } | (corpus_faults(self.corpus) if self.corpus is not None else {})
        return [fault for fault, is_so in found.items() if is_so]


def outcome(path: Path, **options: Any) -> Outcome:
    """Load a path. Any error but InputError is the test's, and so is a load that does not end."""
    global is_watching
    written.clear()
    corpus, refusal = None, ""
    is_watching = True
    try:
        with no_hang():
            corpus = load(UserData(str(path), **options), digest(path))
    except InputError as error:
        refusal = str(error)
    finally:
        is_watching = False
    return Outcome(corpus, refusal, list(written))


def corpus_faults(corpus: Corpus) -> dict[str, bool]:
    """Tell of what every corpus keeps whether it is broken: texts can be stored; names are used, sorted, not empty."""
    texts = corpus.train_texts + corpus.test_texts
    names = corpus.target_names
    used: set[int] = set()
    targets: Any
    for targets in (corpus.train_targets, corpus.test_targets):
        used |= set((targets.indices if issparse(targets) else targets).tolist())
    return {
        "a text is stored as another": pa.array(texts, pa.string()).to_pylist() != texts,
        f"names are not sorted, each once: {names}": names != sorted(set(names)),
        f"a name is empty or has space around it: {names}": any(
            not name or name != name.strip() or not name.encode() for name in names
        ),
        f"targets {used} of {len(names)} names are used": used != set(range(len(names))),
        "the notes are not plain JSON": not json.dumps(corpus.notes).isascii(),
        "ids do not tell documents apart": len({*corpus.train_ids, *corpus.test_ids}) != len(texts)
        if corpus.train_ids is not None and corpus.test_ids is not None
        else True,
        "an id is stored as another": pa.array(corpus.train_ids, pa.string()).to_pylist() != corpus.train_ids,
    }


def labelled(corpus: Corpus) -> Counter[tuple[str, frozenset[str]]]:
    """Return every document with its labels, and how often it occurs."""
    documents: Counter[tuple[str, frozenset[str]]] = Counter()
    targets: Any
    for texts, targets in (
        (corpus.train_texts, corpus.train_targets),
        (corpus.test_texts, corpus.test_targets),
    ):
        for i, text in enumerate(texts):
            row = targets[i].indices if issparse(targets) else [targets[i]]
            documents[text, frozenset(corpus.target_names[k] for k in row)] += 1
    return documents
