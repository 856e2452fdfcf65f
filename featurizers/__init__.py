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
- `INPUT`: what it reads. "counts": X is csr, (n_documents, n_terms), non-negative whole numbers, int32 or
  floating. "tokens": X is a list with an int32 array a document, the term numbers of its words in reading order.
  "texts": X is a list of str, the documents as they were ingested. No token rule has touched them: case, punctuation,
  line breaks, and the headers and quotes of messages are there as far as the data set has them (`20ng` has all,
  `20ng-stripped` none). A text may be empty. Features then depend on the texts alone, and so do their names.

It may also hold

- `ACCEPTS = {"n_topics": "[1, inf)", "weighting": ("counts", "tfidf")}`: the interval that a number must lie in, a
  round bracket leaving the end out, or all values that are allowed (`_parameters.py`). A plan refuses what is
  outside, or of another kind than annotated, before anything is computed; `fit` does by `check_parameters`;
- `NEEDS = ("word_vectors",)`: `fit` and `fit_transform` then take `word_vectors=`, float32 (n_terms,
  n_dimensions), row i for term i, zero for a term that has no vector. They are an artifact that all methods of
  a run share; parameters of a run that begin with `word_vectors__` go to their training. With "terms" they take
  `terms=`, the vocabulary as a list of str, term i of the token rule: a method of texts looks its words up there.
  With "output_vectors" and "vector_norms" it takes what the same training learns beside: the vectors by which words are
  predicted, float32 (n_terms, n_dimensions), and how long the word vectors were, (n_terms,). With "token_topics" it
  takes a topic for every token of X, `_topical/token_topics.py`; parameters that begin with `token_topics__` go there.
  These two are for methods that learn from no labels. Labels come before all: `fit(X, y, word_vectors=...)`;
- `USES_LABELS = True`: a representation whose `fit(X, y)` and `fit_transform(X, y)` learn from labels. X are the
  training documents whose labels may be seen (those of a label budget, or all), whatever the protocol: neither other
  training documents nor test documents. y are their labels: ints (n_documents,) from 0, of which some may be missing,
  or where documents have several labels an indicator, csr int8 (n_documents, n_labels). `fit` raises ValueError
  without y, or where it cannot learn from it. Tuning fits the method anew in every fold, to the fold's training
  documents alone. A method that uses labels with some values of a parameter, not with its default, says which:
  `USES_LABELS = {"order": ("by_class",)}`. Every table marks it, and no other may learn from y;
- `megabytes(method, n_documents, n_dimensions)`: about what `method`, as `build` returns it, needs for so many training
  documents, where that is thousands of values a document, whatever their length; n_dimensions: of word vectors. A run
  that has less memory stops before anything is computed. Without it memory grows with documents, terms and tokens;
- `MAX_N = 2`: the counts are those of single terms and of pairs of neighbours;
- `PAPER = "scdv-2017"`: whose faithful protocol it follows where a data set has several;
- `ROLE = "classifier"`: `build` returns a scikit-learn classifier, which is tested as it is, without a probe. It sees
  the labels of its budget alone: `fit(X, y)` with X and y as for `USES_LABELS` (an indicator may be dense), `predict`,
  `decision_function`, `classes_`, and `to_arrays`/`from_arrays` as below. Of one class it predicts that.

`transform` returns a csr matrix or a C-contiguous array, float32, (n_documents, n_features), always finite:
an empty document (a row of zeros) and a term no training document has (a column of zeros) are ordinary input.
X is never modified: counts may be read-only. Scale is left as the method defines it, for the classifiers bring features
to one scale.

`to_arrays()` returns a flat dictionary of arrays and JSON values, constructor parameters and learned state
under their own names; `from_arrays(arrays)` returns the transformer it came from, which transforms to the
same bits. There is no pickle.

A file whose name begins with `_` is no method but a part of some.

Start from `tfidf_log2.py` (weights that are learned) or `lsi.py` (a projection that is learned); `counts.py`
has the check of the input that all share. `textbench check FILE` holds a file to this page (`_contract.py`), and
`tests/test_featurizers_common.py` every file of the folder.
"""
