"""Collections of the library `ir_datasets` whose data is already on this machine; nothing is downloaded."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from textbench.tasks import InputError
from textbench.tasks.collections import Collection, Judgment

# The fields of a query that are its text, first one found: libraries of test collections disagree.
QUERY_FIELDS = ("text", "title", "query")


class NotPresent(Exception):
    """Data that would have to be downloaded."""


def load(name: str) -> Collection:
    """Return the collection of that id. Raises InputError where the library, the id or the data is not there."""
    try:
        import ir_datasets
    except ImportError as error:
        raise InputError(
            f"{name} is an id of the library ir_datasets, which is not installed; pip install ir_datasets, "
            "or give --documents, --queries and --qrels"
        ) from error
    try:
        with _offline():
            source = ir_datasets.load(name)
            documents = [(str(d.doc_id), _text(d)) for d in source.docs_iter()]
            queries = [(str(q.query_id), _query(q)) for q in source.queries_iter()]
            judged = [Judgment(str(j.query_id), str(j.doc_id), int(j.relevance)) for j in source.qrels_iter()]
    except KeyError as error:
        raise InputError(f"ir_datasets has no collection {name!r}") from error
    except (NotPresent, AttributeError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f"ir_datasets cannot give documents, queries and qrels of {name}: {reason}"
        ) from error
    return Collection(
        document_ids=[number for number, _ in documents],
        documents=[text for _, text in documents],
        query_ids=[number for number, _ in queries],
        queries=[text for _, text in queries],
        judgments=judged,
        name=name.replace("/", "-"),
        notes=f"ir_datasets {name}, as that library gives it.",
        graded=True,
    )


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    from ir_datasets.util.download import RequestsDownload

    def refuse(download: Any) -> None:
        raise NotPresent(f"{download.url} has not been downloaded yet")

    with mock.patch.object(RequestsDownload, "__iter__", refuse):
        yield


def _text(document: Any) -> str:
    return document.default_text() if hasattr(document, "default_text") else document.text


def _query(query: Any) -> str:
    return next(str(getattr(query, field)) for field in QUERY_FIELDS if hasattr(query, field))
