"""The artifacts behind the compressive-features paper's figures: which there are, and what each is made of.

Source: H. Paskov, R. West, J. Mitchell and T. Hastie, "Compressive feature learning", NIPS 2013, section 5.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from textbench.flows.plan.derived import DerivedArtifact
from textbench.tasks import catalogue, featurize, ingest, vectorize
from textbench.tasks.derived import (
    class_subset,
    compression_path,
    principal_components,
    subsampled_error,
)
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.tokens import token_rule

DATASET, RULE = "20ng", "letters"
# The paper's letters for its groups.
GROUPS = {
    "A": "alt.atheism",
    "G": "comp.graphics",
    "B": "rec.sport.baseball",
    "H": "rec.sport.hockey",
    "PC": "comp.sys.ibm.pc.hardware",
    "M": "rec.motorcycles",
    "S": "sci.space",
    "PM": "talk.politics.mideast",
}
TWO, FIVE, BALLS = ("A", "G"), ("A", "PC", "M", "S", "PM"), ("B", "H")
# Figure 2: the orders by class both ways, random ones, and by turns. "Alt" begins with the first class.
ORDERS = ("by_class", "by_class_reversed", "random", "alternating")
N_RANDOM = 5
# Figure 4: 100 draws of each share of the training documents; of all of them there is only one.
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
N_DRAWS, BLOCK = 100, 10


@dataclass(frozen=True)
class ShareLine:
    """A line of figure 4: features, penalty, and whether only k-grams of drawn documents count for a document's sum."""

    name: str
    method: str
    penalty: str
    known: bool = False


LINES = (
    ShareLine("compressed", "compressive", "elastic-net"),
    ShareLine("all 5-grams, L2", "kgrams", "ridge"),
    ShareLine("all 5-grams, elastic net", "kgrams", "elastic-net"),
    ShareLine("all 5-grams, L2, sums of known k-grams", "kgrams", "ridge", known=True),
)


def figure_2() -> list[DerivedArtifact]:
    """The LZ77 phrases under every order, of training documents alone, and compressed features, of all and of those."""
    found = []
    for transductive, order in [(True, None), (False, None), *((False, order) for order in ORDERS)]:
        for seed in range(N_RANDOM if order == "random" else 1):
            method = "compressive" if order is None else f"lz77(order={order!r})"
            before = _before(TWO, method, transductive, seed)
            last = subsampled_error.reference(before["classes"], before["featurize"], "elastic-net", 1.0, [0])
            found.append(_piece(TWO, method, "resamples", before, last, transductive, seed))
    return found


def figure_3() -> list[DerivedArtifact]:
    """The components of compressed features and of all 5-grams, of two groups and of five."""
    found = []
    for groups in (TWO, FIVE):
        for method in ("compressive", "kgrams"):
            before = _before(groups, method)
            last = principal_components.reference(before["classes"], before["featurize"])
            found.append(_piece(groups, method, "components", before, last))
    return found


def figure_4(groups: Sequence[str]) -> list[DerivedArtifact]:
    """The blocks of draws of every share for every line; the first block of all lines comes first.

    The line of sums of known k-grams, which the paper does not have, explains another: one block of it is enough.
    """
    blocks = [tuple(range(first, first + BLOCK)) for first in range(0, N_DRAWS, BLOCK)]
    befores = {line.method: _before(groups, line.method) for line in LINES}
    found = []
    for block in blocks:
        for share in (*SHARES, 1.0) if block is blocks[0] else SHARES:
            for line in LINES:
                if line.known and block is not blocks[0]:
                    continue
                before = befores[line.method]
                draws = block if share < 1 else block[:1]
                corpus, features = before["classes"], before["featurize"]
                last = subsampled_error.reference(
                    corpus, features, line.penalty, share, draws, known=line.known
                )
                found.append(_piece(groups, line.method, "resamples", before, last))
    return found


def path() -> list[DerivedArtifact]:
    """The regularisation path over pointer costs."""
    before = _before(TWO, "compressive")
    before = {stage: before[stage] for stage in ("ingest", "classes", "vectorize")}
    last = compression_path.reference(before["classes"], before["vectorize"])
    return [_piece(TWO, "compressive", "compression_path", before, last)]


PLANS: dict[str, Callable[[], list[DerivedArtifact]]] = {
    "lz77-orders": figure_2,
    "components": figure_3,
    "resamples-ag": lambda: figure_4(TWO),
    "resamples-bh": lambda: figure_4(BALLS),
    "compression-path": path,
}


def _before(
    groups: Sequence[str], method: str, transductive: bool = True, seed: int = 0
) -> dict[str, Reference]:
    """Return the artifacts that lead to a method's features of some groups."""
    corpus = ingest.reference(DATASET)
    chosen = class_subset.reference(corpus, [GROUPS[group] for group in groups])
    vectors = vectorize.reference(chosen, asdict(token_rule(RULE)), transductive)
    name, params = catalogue.parse_method(method)
    return {
        "ingest": corpus,
        "classes": chosen,
        "vectorize": vectors,
        "featurize": featurize.reference(vectors, name, params, seed),
    }


def _piece(
    groups: Sequence[str],
    method: str,
    stage: str,
    before: Mapping[str, Any],
    last: Reference,
    transductive: bool = True,
    seed: int = 0,
) -> DerivedArtifact:
    protocol = "transductive" if transductive else "honest"
    return DerivedArtifact(
        f"{DATASET} {'-'.join(groups)}", method, protocol, seed, 0, {**before, stage: last}, stage
    )
