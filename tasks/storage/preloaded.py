"""What nearly every computation needs, loaded once by the server from which computations are forked.

Compiled loops that come from numba's cache are usable only when numba knows its own implementations of Python
and numpy; it learns them at the first one, which takes 0.2 CPU seconds.
"""

import numba  # noqa: F401
import numpy  # noqa: F401
import optuna.distributions  # noqa: F401
import pyarrow.dataset
import pyarrow.parquet  # noqa: F401
import scipy.sparse  # noqa: F401
import sklearn.decomposition
import sklearn.feature_extraction.text
import sklearn.metrics
import sklearn.model_selection
import sklearn.svm  # noqa: F401
import threadpoolctl  # noqa: F401
from numba.core.registry import cpu_target

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
