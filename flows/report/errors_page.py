"""Errors of finished runs as one HTML page: documents to filter and sort, and what each class is taken for."""

from pathlib import Path

from textbench.flows.explain.errors import ErrorList
from textbench.flows.report.chapters import Chapter, Section
from textbench.flows.report.page import rendered
from textbench.tasks import InputError
from textbench.tasks.storage.files import whole


def write(path: Path, found: ErrorList, top: int, *, with_texts: bool) -> None:
    """Write the page, whole or not at all. Raises InputError where it cannot be written."""
    try:
        with whole(path) as part:
            part.write_text(page(found, top, with_texts=with_texts), "utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def page(found: ErrorList, top: int, *, with_texts: bool = False) -> str:
    """Return the page, with at most `top` of the documents that were chosen."""
    documents = Section("documents", "Documents", tables=[found.documents(top, with_texts=with_texts)])
    confused = [
        Section(
            f"confused-by-{i}", f"By {name}", tables=[*filter(None, [found.confused(i), found.matrix(i)])]
        )
        for i, name in enumerate(found.names)
    ]
    told = "texts of the documents" if with_texts else "no text of a document but single terms"
    chapters = [
        Chapter("errors", "What is wrong where", [found.answer], sections=[documents]),
        Chapter("confused", "What is taken for what", found.confusion_answers, sections=confused),
    ]
    title = f"Errors of {' and '.join(found.names)} on {found.dataset}"
    return rendered(chapters, title, f"This page holds {told}.")
