"""Chapter one, what was learned: the topics of topic models, and how coherent they are on the training documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.evaluation.metrics.coherence import diversity, npmi, top_terms, umass
from textbench.flows.report.evidence import Evidence, Row
from textbench.flows.results.method_names import explained, marked
from textbench.flows.results.runs import Run
from textbench.flows.tables.table import LOCAL, Datum, Table, number, slug
from textbench.tasks import InputError
from textbench.tasks.predict import features_of
from textbench.tasks.storage.store import Store

if TYPE_CHECKING:
    import numpy as np

N_WORDS = 10
N_SHOWN = 10  # topics of a model that are listed, the most coherent first
LEARNED = "components_"  # what a topic model calls its topics, (n_topics, n_terms)


@dataclass(frozen=True)
class Topics:
    """The topics of a run: their first words, and each one's coherence."""

    row: Row
    words: Sequence[Sequence[str]]
    umass: Sequence[float]
    npmi: Sequence[float]


def find(evidence: Evidence) -> list[Topics]:
    """Return the topics of local topic models, one run a data set, protocol, method and setting: the lowest seed.

    A topic model is one whose learned components are nowhere negative. Only what is stored is read.
    """
    first: dict[tuple[Any, ...], Row] = {}
    for row in sorted(evidence.rows, key=lambda row: row["seed"]):
        first.setdefault((row["dataset"], row["protocol"], row["method"], row["trials"]), row)
    return [topics for row in first.values() if (topics := _topics(evidence.home, row)) is not None]


def _topics(home: Path, row: Row) -> Topics | None:
    import numpy as np

    stored = _stored(home, row)
    if stored is None:
        return None
    components, terms, counts = stored
    if components.ndim != 2 or components.shape[1] != len(terms) or (components < 0).any():
        return None
    components = components[(components > 0).sum(axis=1) >= N_WORDS]
    occurs = np.asarray((counts > 0).sum(axis=0)).ravel() > 0
    if not len(components) or not occurs.all():
        return None
    top = top_terms(components, N_WORDS)
    words = [[terms[term] for term in topic] for topic in top]
    return Topics(row, words, umass(top, counts).tolist(), npmi(top, counts).tolist())


def _stored(home: Path, row: Row) -> "tuple[np.ndarray, list[str], Any] | None":
    """Return the components, the terms and the training counts of a run; None where it has none, or they are gone."""

    run, store = Run(home, row), Store(home / "store")
    try:
        inputs = run.reference.inputs
        if not all(name in inputs and store.has(inputs[name]) for name in ("vectors", "choice")):
            return None
        if inputs["vectors"].params["rule"] is None:
            return None  # of raw texts
        features = features_of(inputs["vectors"], store.open(inputs["choice"]))
    except InputError:
        return None
    folder = store.folder(features) if features else None
    if folder is None or not (folder / "model.npz").exists():
        return None
    model = _arrays(folder / "model.npz")
    if LEARNED not in model:
        return None
    vectors = store.open(inputs["vectors"])
    return model[LEARNED], vectors.json("terms"), vectors.matrix("train_counts")


def _arrays(path: Path) -> "Mapping[str, np.ndarray]":
    """Return the topics of a model's arrays, if it has any."""
    import numpy as np

    with np.load(path, allow_pickle=False) as arrays:
        return {LEARNED: arrays[LEARNED]} if LEARNED in arrays else {}


def coherence(found: Sequence[Topics]) -> Table:
    """Return the mean coherence of each model."""
    rows = []
    for one in sorted(found, key=lambda t: (t.row["dataset"], -sum(t.npmi) / len(t.npmi))):
        n = len(one.npmi)
        rows.append([
            Datum(one.row["dataset"]), Datum(marked(one.row)), Datum(one.row["protocol"]), Datum(str(n), n),
            number(sum(one.npmi) / n, 3), number(sum(one.umass) / n, 1), number(diversity(one.words), 3),
        ])  # fmt: skip
    headings = [
        ("dataset", "data set"), ("method", "method"), ("protocol", "protocol"), ("topics", "topics"),
        ("npmi_coherence", "NPMI"), ("umass_coherence", "UMass"), ("diversity", "diversity"),
    ]  # fmt: skip
    note = (
        f"Mean over topics of the coherence of their first {N_WORDS} words on the training "
        "documents; higher is better. NPMI "
        "runs from -1 to 1. Diversity is the share of different words among these of all topics. One seed."
        f"{explained(marked(one.row) for one in found)}"
    )
    return Table("coherence", "Coherence of topics", headings, rows, note, LOCAL)


def table(one: Topics) -> Table:
    """Return a model's most coherent topics."""
    order = sorted(range(len(one.npmi)), key=lambda topic: -one.npmi[topic])
    rows = [
        [Datum(" ".join(one.words[t])), number(one.npmi[t], 3), number(one.umass[t], 1)]
        for t in order[:N_SHOWN]
    ]
    row = one.row
    title = f"Topics of {row['method']} on {row['dataset']}, {row['protocol']} protocol"
    id_ = slug(f"topics-{row['dataset']}-{row['protocol']}-{row['method']}")
    headings = [("words", "first words"), ("npmi_coherence", "NPMI"), ("umass_coherence", "UMass")]
    note = f"The {min(N_SHOWN, len(order))} most coherent of {len(order)} topics, words as the token rule leaves them."
    return Table(f"{id_}-{row['trials']}", title, headings, rows, note, LOCAL, is_folded=True)
