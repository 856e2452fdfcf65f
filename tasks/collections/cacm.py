"""CACM: 3,204 titles and abstracts of Communications of the ACM, 64 queries, 796 judgments.

12 of the queries have no judgments and are left out of every figure.
"""

from textbench.tasks.collections import Collection, _smart
from textbench.tasks.sources import archives

ARCHIVE = archives.Archive(
    title="CACM",
    folder="ir",
    file="cacm.tar.gz",
    urls=("http://ir.dcs.gla.ac.uk/resources/test_collections/cacm/cacm.tar.gz",),
    sha256=("a89064213198eb1fa559522bbd3c7066de77b2c225df474e7b0d1e80f1fca7bb",),
    size=704_554,
    wanted=r"(?:^|/)(cacm\.all|query\.text|qrels\.text)$",
    content_sha256="7c3004b13b045b8f408a2449b9151338142def6fe511e86b0d5f1000db8d5d33",
    max_bytes=10_000_000,
    max_members=100,
    terms="used with permission of ACM (Virginia Disc One); research use",
    citation=(
        "Edward A. Fox, Characterization of two new experimental collections in computer and information "
        "science containing textual and bibliographical concepts, Cornell University TR 83-561, 1983"
    ),
)
SOURCE = ARCHIVE.urls[0]
SHA256 = {ARCHIVE.file: ARCHIVE.sha256[0]}
LICENCE = f"research use: {ARCHIVE.terms}"
CITATION = ARCHIVE.citation
RULE = "letters-stop-stem"


def load() -> Collection:
    """Return the collection. Raises InputError when the archive is missing or differs."""
    files = dict(archives.read(ARCHIVE))
    documents = list(_smart.records(files["cacm.all"], "cacm.all"))
    queries = list(_smart.records(files["query.text"], "query.text"))
    return Collection(
        document_ids=[name for name, _ in documents],
        documents=[text for _, text in documents],
        query_ids=[name for name, _ in queries],
        queries=[text for _, text in queries],
        judgments=_smart.judgments(files["qrels.text"], "qrels.text"),
        name="cacm",
        notes="Title and abstract of every article; the queries' words, without authors asked for apart.",
    )
