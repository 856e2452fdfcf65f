"""Cranfield: 1,400 abstracts on aerodynamics, 225 queries, 1,837 judgments.

`cranqrel` numbers the queries 1..225 by their position in `cran.qry`, whose own numbers have gaps; so do we. Its codes
are 1 (a complete answer) to 4 (of minimum interest), and -1, which its description does not know: 225 judgments, one a
query. Codes 1..4 are relevant unless the policy `nonzero` is asked for; codes are no gains, for 1 is the best.
"""

from textbench.tasks.collections import Collection, _smart
from textbench.tasks.sources import archives

ARCHIVE = archives.Archive(
    title="Cranfield 1400",
    folder="ir",
    file="cran.tar.gz",
    urls=("http://ir.dcs.gla.ac.uk/resources/test_collections/cran/cran.tar.gz",),
    sha256=("8c48a8412e4a7e6e0dd5af99c959f8d75fdf88135602adc1a56aa22770652d64",),
    size=506_960,
    wanted=r"(?:^|/)(cran\.all\.1400|cran\.qry|cranqrel)$",
    content_sha256="63bac5d255569cd81251f90af600097f761ab7f95b0c1b211a030b772a9c6ba0",
    max_bytes=10_000_000,
    max_members=100,
    terms="none stated; research use",
    citation=(
        "Cyril W. Cleverdon, The Cranfield tests on index language devices, Aslib Proceedings 19(6), 1967; "
        "distributed by the IR group of the University of Glasgow"
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
    documents = list(_smart.records(files["cran.all.1400"], "cran.all.1400"))
    queries = [text for _, text in _smart.records(files["cran.qry"], "cran.qry")]
    return Collection(
        document_ids=[name for name, _ in documents],
        documents=[text for _, text in documents],
        query_ids=[str(position) for position in range(1, len(queries) + 1)],
        queries=queries,
        judgments=_smart.judgments(files["cranqrel"], "cranqrel"),
        name="cranfield",
        notes="Title and words of every abstract (the words begin with the title); queries numbered by position.",
    )
