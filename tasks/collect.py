"""Collect: load a retrieval collection and store it, its documents as training texts and its queries as test texts.

The artifact is a corpus as `tasks.ingest` writes it, so that every later stage reads it like a data set, with the
names of documents and queries and the judgments beside.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.tasks import InputError, catalogue
from textbench.tasks.ingest import KNOWN
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np

    from textbench.tasks.collections import Collection
    from textbench.tasks.collections._user import OwnCollection
    from textbench.tasks.storage.store import Artifact, Job

# Ids of the library ir_datasets begin so; their data must be on this machine.
LIBRARY = "irds:"
# The token rule of collections that are not in the catalogue.
COLLECTION_RULE = "letters-stop-stem"


def reference(name: str) -> Reference:
    """Return the corpus artifact of a collection: a name of the catalogue, or `irds:ID`. InputError for others.

    Files: train.parquet (documents: id, text, target 0), test.parquet (queries, likewise), judgments.parquet (query,
    document, code) and corpus.json.
    """
    uses = [] if name.startswith(LIBRARY) else catalogue.collection(name).code("load", *map(str.upper, KNOWN))
    return refer("textbench.tasks.collect:compute", {"dataset": name}, uses=uses, stage="ingest")


def own_reference(own: "OwnCollection") -> Reference:
    """Return the corpus artifact of the user's collection; a changed file is another artifact."""
    params = {"dataset": own.name, "own": asdict(own), "digest": own.digest()}
    return refer("textbench.tasks.collect:compute", params, stage="ingest")


def compute(job: "Job") -> None:
    """Load the collection and write its documents, queries and judgments, and what is known of it.

    Raises InputError for files that have changed since they were asked for.
    """
    from textbench.tasks.collections._user import OwnCollection

    name = job.params["dataset"]
    if "own" in job.params:
        own = OwnCollection(**job.params["own"])
        if own.digest() != job.params["digest"]:
            raise InputError(f"{own.documents} has changed while it was used; run the command again")
        digest = {Path(own.documents).name: job.params["digest"]}
        about = {"source": own.documents, "sha256": digest, "licence": "the user's own", "citation": ""}
    elif name.startswith(LIBRARY):
        about = {"source": name, "sha256": {}, "licence": "see ir_datasets", "citation": ""}
    else:
        module = catalogue.collection(name).load()
        about = {key: getattr(module, key.upper()) for key in KNOWN}
    write(job, load(job.params), about)


def load(params: Mapping[str, Any]) -> "Collection":
    """Return the collection that a reference's parameters name. InputError as its reader raises it."""
    if "own" in params:
        from textbench.tasks.collections import _user

        return _user.load(_user.OwnCollection(**params["own"]))
    name = params["dataset"]
    if name.startswith(LIBRARY):
        from textbench.tasks.collections import _ir_datasets

        return _ir_datasets.load(name.removeprefix(LIBRARY))
    return catalogue.collection(name).load().load()


def write(job: "Job", collection: "Collection", about: Mapping[str, Any]) -> None:
    """Write a collection as a corpus of one class, with names and judgments."""
    for part, names, texts in (
        ("train", collection.document_ids, collection.documents),
        ("test", collection.query_ids, collection.queries),
    ):
        job.save_table(part, {"id": names, "text": texts, "target": [0] * len(texts)})
    columns = zip(*collection.judgments, strict=True) if collection.judgments else ([], [], [])
    job.save_table("judgments", dict(zip(("query", "document", "code"), map(list, columns), strict=True)))
    own = {"name": collection.name, "notes": collection.notes, "graded": collection.graded}
    job.save_json("corpus", own | {"target_names": ["document"]} | dict(about))


@dataclass(frozen=True, eq=False)
class Judged:
    """The queries of a collection that can be scored, under a policy, and what had to be left out.

    document_ids, query_ids: all of the collection's. rows: positions of the queries that have a relevant document,
    int64 (n_scored,). qrels: for these query -> document -> gain. relevant: for these, positions of the relevant
    documents. left_out: how many queries and judgments were not used, by reason.
    """

    document_ids: list[str]
    query_ids: list[str]
    rows: "np.ndarray"
    qrels: dict[str, dict[str, int]]
    relevant: "list[np.ndarray]"
    left_out: dict[str, int]


def read_judged(corpus: "Artifact", policy: str) -> Judged:
    """Return what a stored collection can be scored on. Raises InputError if no query has a relevant document."""
    import numpy as np

    from textbench.tasks.collections import gain

    about = corpus.json("corpus")
    documents, queries = (corpus.table(part, ["id"])["id"].to_pylist() for part in ("train", "test"))
    table = corpus.table("judgments")
    judgments = [table[name].to_pylist() for name in ("query", "document", "code")]
    place = {name: i for i, name in enumerate(documents)}
    known: dict[str, dict[str, int]] = {name: {} for name in queries}
    unknown = {"judgments of unknown documents": 0, "judgments of unknown queries": 0}
    for query, document, code in zip(*judgments, strict=True):
        if query not in known:
            unknown["judgments of unknown queries"] += 1
        elif document not in place:
            unknown["judgments of unknown documents"] += 1
        else:
            known[query][document] = gain(code, policy, about["graded"])
    scored = [query for query, judged in known.items() if any(judged.values())]
    if not scored:
        raise InputError(
            f"collection {about['name']}: no query has a relevant document among the {len(documents)} documents, "
            f"of {len(judgments[0])} judgments; do the judgments belong to these documents?"
        )
    number = {query: i for i, query in enumerate(queries)}
    return Judged(
        document_ids=documents,
        query_ids=queries,
        rows=np.array([number[query] for query in scored], dtype=np.int64),
        qrels={query: known[query] for query in scored},
        relevant=[np.array([place[d] for d, gain in known[query].items() if gain]) for query in scored],
        left_out={"queries without relevant documents": len(queries) - len(scored)} | unknown,
    )
