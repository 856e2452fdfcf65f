"""Values: how the values of SCDV's document vectors are distributed before the small ones are made zero.

Source: D. Mekala, V. Gupta, B. Paranjape and H. Karnick, "SCDV: Sparse Composite Document Vectors using soft clustering
over distributional representations", EMNLP 2017, section 3.3 and figure 3.
"""

from typing import TYPE_CHECKING, Any

from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

    from textbench.tasks.storage.store import Job

N_BINS = 400  # over values from -REACH to REACH; what lies beyond falls into the outermost
REACH = 0.2
DOCUMENTS_AT_ONCE = 256


def reference(vectors: Reference, features: Reference) -> Reference:
    """Return the values artifact of a features artifact of SCDV, over the training documents.

    Files: histogram.npy int64 (400,), values from -0.2 to 0.2 of vectors of unit length, those that are exactly zero
    apart; about.json: how many `values` there are, how many of them are `zero`, `below` the threshold and `kept`, the
    `threshold`, `smallest` and `largest`, and in `empty`, by part, the documents whose vector is zero.
    """
    params = {"n_bins": N_BINS, "reach": REACH}
    return refer(
        "textbench.tasks.derived.value_histogram:compute",
        params,
        {"vectors": vectors, "features": features},
        stage="values",
    )


def compute(job: "Job") -> None:
    """Make the document vectors anew, block by block, and count their values."""
    import numpy as np

    vectors, features = job.open("vectors"), job.open("features")
    model = features.arrays("model") | features.json("model")
    histogram = np.zeros(job.params["n_bins"], dtype=np.int64)
    about: dict[str, Any] = {"values": 0, "zero": 0, "below": 0, "smallest": 0.0, "largest": 0.0}
    counts = vectors.matrix("train_counts")[:, model["terms_"]]
    for start in range(0, counts.shape[0], DOCUMENTS_AT_ONCE):
        _add(counts[start : start + DOCUMENTS_AT_ONCE], model, job.params["reach"], histogram, about)
    about["kept"] = about["values"] - about["zero"] - about["below"]
    about["threshold"] = float(model["threshold_"])
    about["empty"] = {part: _n_empty(features.matrix(part)) for part in ("train", "test")}
    job.save_array("histogram", histogram)
    job.save_json("about", about)


def _add(
    counts: "csr_matrix", model: dict[str, Any], reach: float, histogram: "np.ndarray", about: dict[str, Any]
) -> None:
    """Add the values of some documents to a histogram and to what is told beside it."""
    import numpy as np

    from textbench.featurizers.scdv import compose

    values = compose(counts, model["vectors_"], model["term_memberships_"], model["idf_"])
    own = values[values != 0]
    within = np.clip(own, -reach, np.nextafter(np.float32(reach), np.float32(0)))
    histogram += np.histogram(within, bins=len(histogram), range=(-reach, reach))[0]
    about["values"] += values.size
    about["zero"] += values.size - own.size
    about["below"] += int((np.abs(own) < model["threshold_"]).sum())
    about["smallest"] = min(about["smallest"], float(own.min(initial=0.0)))
    about["largest"] = max(about["largest"], float(own.max(initial=0.0)))


def _n_empty(features: "csr_matrix") -> int:
    """Return how many rows have no value."""
    import numpy as np

    return int((np.diff(features.indptr) == 0).sum())
