"""The methods: one file each turns a table of term counts into features of the documents.

To add a method, write one file here; its name, with hyphens for underscores, is the method's name everywhere,
and nothing needs to be registered. The file holds:

- a docstring whose first line says the method and its synonym (it is what `textbench list methods` shows),
  then `Source:` with paper, section and equation;
- a scikit-learn transformer: `__init__` stores its parameters untouched, all of them with defaults; `fit(X,
  y=None)` learns from the training documents; `transform(X)`, `fit_transform(X, y=None)` and
  `get_feature_names_out()` as in scikit-learn. Learned state ends in `_`. A method that draws random numbers
  takes `random_state: int | None = None`, and the same seed gives the same features to the bit;
- `build(**params)`, which returns it unfitted;
- `SEARCH_SPACE`, the Optuna distributions to tune over: each key a parameter of `__init__` whose default lies
  inside;
- `INPUT = "counts"`: X is csr, (n_documents, n_terms), non-negative whole numbers, int32 or floating.

`transform` returns a csr matrix or a C-contiguous array, float32, (n_documents, n_features), always finite:
an empty document (a row of zeros) and a term no training document has (a column of zeros) are ordinary input.
X is never modified. Scale is left as the method defines it, for the classifiers bring features to one scale.

`to_arrays()` returns a flat dictionary of arrays and JSON values, constructor parameters and learned state
under their own names; `from_arrays(arrays)` returns the transformer it came from, which transforms to the
same bits. There is no pickle.

Start from `tfidf_log2.py` (weights that are learned) or `lsi.py` (a projection that is learned); `counts.py`
has the check of the input that all share. `tests/test_featurizers_common.py` finds the file and holds it to
this page.
"""
