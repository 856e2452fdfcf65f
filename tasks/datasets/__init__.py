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
