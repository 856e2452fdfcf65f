"""Data sets: one file each, found by listing this folder (a file whose name starts with `_` is none).

Adding a data set is writing one file, `tasks/datasets/<name>.py`; its underscores are hyphens on the
command line. It holds

- a docstring whose first line describes the data set (`textbench list datasets` prints it);
- `SOURCE` (where the files come from), `SHA256` (file name -> sha256 of its bytes), `LICENCE`, `CITATION`;
- `RULE`, the name of the token rule used unless another is asked for (`tasks.tokens.RULES`);
- `SEVERAL_LABELS = True` where a document has several labels, for metrics are refused before documents are read;
- `load() -> Corpus`, which checks the digests before it reads and raises `tasks.InputError` when a file is
  missing or differs, naming the remedy.

Documents keep the order of the files and texts stay as they are there. A data set that has to be corrected
gets a new name, so that results on the old one stay true. Pins in `tests/test_tasks_datasets.py` (counts,
first, middle and last document) complete it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from textbench.tasks import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, eq=False)
class Corpus:
    """A classification corpus: labelled texts, split once and for all into training and test documents.

    `train_targets` and `test_targets` are `(n_documents,)` int64 positions in `target_names`, or, where a
    document has several labels, a csr indicator `(n_documents, n_labels)`. `notes` says what edition of the
    data this is. `train_ids` and `test_ids` name the documents as their source does, where it does. `validation` has
    the ascending positions, int64, of the training documents on which alone tuning is to be done, None where there are
    none such. Raises InputError where texts and targets do not fit together.
    """

    train_texts: list[str]
    train_targets: np.ndarray | csr_matrix
    test_texts: list[str]
    test_targets: np.ndarray | csr_matrix
    target_names: list[str]
    name: str
    notes: str
    train_ids: list[str] | None = None
    test_ids: list[str] | None = None
    validation: np.ndarray | None = None

    def __post_init__(self) -> None:
        if len(set(self.target_names)) != len(self.target_names):
            raise InputError(f"data set {self.name}: target names must differ, got {self.target_names}")
        for part, texts, targets, ids in (
            ("training", self.train_texts, self.train_targets, self.train_ids),
            ("test", self.test_texts, self.test_targets, self.test_ids),
        ):
            if not texts:
                raise InputError(f"data set {self.name}: it needs at least one {part} document, got none")
            if targets.shape[0] != len(texts):
                raise InputError(
                    f"data set {self.name}: every {part} document needs a target, "
                    f"got {len(texts)} texts and {targets.shape[0]} targets"
                )
            if ids is not None and len(ids) != len(texts):
                raise InputError(
                    f"data set {self.name}: every {part} document needs an id, "
                    f"got {len(texts)} texts and {len(ids)} ids"
                )
            self._check_range(part, targets)

    def _check_range(self, part: str, targets: np.ndarray | csr_matrix) -> None:
        n_names = len(self.target_names)
        if targets.ndim == 2:
            if targets.shape[1] != n_names:
                raise InputError(
                    f"data set {self.name}: the {part} indicator needs a column for each of the {n_names} "
                    f"target names, got {targets.shape[1]}"
                )
            return
        if targets.dtype != np.int64:
            raise InputError(f"data set {self.name}: {part} targets must be int64, got {targets.dtype}")
        outside = targets[(targets < 0) | (targets >= n_names)]
        if len(outside):
            raise InputError(
                f"data set {self.name}: {part} targets must lie in 0..{n_names - 1}, got {outside[0]}"
            )
