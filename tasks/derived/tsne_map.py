"""Embedding: documents in the plane, near each other where their features are (t-SNE).

Source: L. van der Maaten and G. Hinton, "Visualizing data using t-SNE", JMLR 9, 2008; as in D. Mekala et al., "SCDV",
EMNLP 2017, figure 5, which says neither which documents it shows nor how.
"""

from typing import TYPE_CHECKING, Any

from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np

    from textbench.tasks.storage.store import Job

PERPLEXITY = 30.0
N_DIMENSIONS = 50  # that features of more are first reduced to
N_NEIGHBOURS = 10


def reference(corpus: Reference, features: Reference, seed: int = 0) -> Reference:
    """Return the embedding artifact of the test documents of a features artifact; each has one label.

    Rows are brought to unit length, and to 50 dimensions by truncated SVD if they have more; t-SNE starts from the
    first two. Files: positions.npy float32 (n_documents, 2); about.json: the Kullback-Leibler `divergence`, and
    `agreement`, the share of a document's 10 nearest neighbours in the plane that have its label, the mean over
    documents.
    """
    params = {
        "perplexity": PERPLEXITY,
        "n_dimensions": N_DIMENSIONS,
        "n_neighbours": N_NEIGHBOURS,
        "seed": seed,
    }
    return refer(
        "textbench.tasks.derived.tsne_map:compute",
        params,
        {"corpus": corpus, "features": features},
        stage="embedding",
    )


def compute(job: "Job") -> None:
    """Place the test documents.

    Raises ValueError for documents of several labels, or no more of them than neighbours.
    """
    import numpy as np
    from sklearn.manifold import TSNE

    from textbench.tasks.corpus import read_targets

    seed, n_neighbours = job.params["seed"], job.params["n_neighbours"]
    targets = read_targets(job.open("corpus"), "test")
    if targets.ndim != 1:
        raise ValueError("an embedding colours documents of one label each, got documents of several")
    if len(targets) <= n_neighbours:
        raise ValueError(
            f"an embedding needs more test documents than the {n_neighbours} neighbours whose labels it compares, "
            f"got {len(targets)}"
        )
    rows = reduced(job.open("features").matrix("test"), job.params["n_dimensions"], seed)
    perplexity = min(job.params["perplexity"], (len(rows) - 1) / 3)
    # One start that is the same for all methods, and no chance in it: the plane of most variance.
    model = TSNE(init="pca", perplexity=perplexity, random_state=seed, n_jobs=1)
    positions = model.fit_transform(rows)
    job.save_array("positions", np.ascontiguousarray(positions, dtype=np.float32))
    about = {"divergence": float(model.kl_divergence_)}
    job.save_json("about", about | {"agreement": agreement(positions, targets, n_neighbours)})


def reduced(features: Any, n_dimensions: int, seed: int) -> "np.ndarray":
    """Return rows of unit length, float32 (n_documents, n_dimensions) or as many as there are; csr or dense."""
    import numpy as np
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    rows = normalize(features)
    if rows.shape[1] > n_dimensions:
        rows = TruncatedSVD(n_dimensions, random_state=seed).fit_transform(rows)
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    return np.ascontiguousarray(rows, dtype=np.float32)


def agreement(positions: "np.ndarray", targets: "np.ndarray", n_neighbours: int) -> float:
    """Return the share of the nearest neighbours of a document that have its label, the mean over documents."""
    import numpy as np
    from sklearn.neighbors import NearestNeighbors

    near = NearestNeighbors(n_neighbors=n_neighbours).fit(positions).kneighbors(return_distance=False)
    return float(np.mean(targets[near] == targets[:, None]))
