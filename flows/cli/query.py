"""`textbench query`: ask the documents of a data set by latent semantic analysis."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from textbench.flows.cli.options import one_data_set, own_options, takes
from textbench.flows.cli.output import print_json

if TYPE_CHECKING:
    from rich.console import Console

    from textbench.flows.explain.lsa_query import Answer, Match

N_SHOWN = 8  # terms of an explanation


@takes(own=own_options)
def query(
    text: Annotated[str, typer.Argument(help="The words to look for.")],
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", "-d", help="Data set (its training documents) or collection.", show_default=False
        ),
    ] = None,
    method: Annotated[str, typer.Option("--method", "-m", help="lsa-pca or lsi.")] = "lsa-pca",
    threshold: Annotated[float, typer.Option(help="Cosine above which a document is returned.")] = 0.4,
    top: Annotated[int, typer.Option(help="Documents shown at most.")] = 10,
    own: dict[str, Any] | None = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show every weight in bits, and the document's K-L divergence from the library."
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON Lines, one object a query, and nothing else.")
    ] = False,
) -> None:
    """Find documents by concepts: the query and the documents are compared after latent semantic analysis.

    Example: textbench query -d reuters65 "crude oil price" --explain
    """
    from textbench.flows.explain.lsa_query import Question, ask
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.storage.isolate import CellError
    from textbench.tasks.storage.store import Store

    question = Question(one_data_set(dataset, own), text, method, threshold, top, own=own)
    question.check()
    try:
        answer = ask(question, Store(home_folder() / "store"), explain)
    except CellError as error:
        print_error(error)
        raise typer.Exit(1) from error
    if json:
        print_json(answer.to_json())
    else:
        _render(answer, threshold)


def print_error(error: Exception) -> None:
    """Print why something could not be learned."""
    import sys

    print(f"textbench: {' '.join(str(error).split())}", file=sys.stderr)


def _render(answer: "Answer", threshold: float) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    unknown = f"; {answer.n_unknown} unknown" if answer.n_unknown else ""
    console.print(
        f"{answer.dataset}, {answer.method}: asked for {' '.join(answer.known)}{unknown}", markup=False
    )
    for concept in answer.concepts:
        terms = ", ".join(f"{term} {weight:+.2f}" for term, weight in concept.terms)
        console.print(
            f"concept {concept.axis + 1} ({100 * concept.share:.0f} % of the query): {terms}", markup=False
        )
    table = Table("cosine", "document", "matched", "begins")
    for match in answer.matches:
        table.add_row(f"{match.cosine:.3f}", match.name, " ".join(match.matched), match.start)
    console.print(table)
    console.print(
        f"{len(answer.matches)} of {answer.n_above} documents above {threshold:g}, of {answer.n_documents}."
    )
    for match in answer.matches:
        if match.bits:
            _explain(console, match)


def _explain(console: "Console", match: "Match") -> None:
    bits = match.bits or {}
    console.print(f"\nDocument {match.name}, cosine {match.cosine:.3f}", style="bold", markup=False)
    terms = bits["terms"]
    for term in terms[:N_SHOWN]:
        console.print(
            f"  {term['term']:<16} {term['p']:.4f} * log2(1/{term['q']:.5f}) = {term['bits']:.4f} bits",
            markup=False,
        )
    if len(terms) > N_SHOWN:
        rest = sum(term["bits"] for term in terms[N_SHOWN:])
        console.print(f"  {f'{len(terms) - N_SHOWN} more terms':<16} {'':>26}{rest:.4f} bits")
    console.print(
        f"  cross-entropy {bits['cross_entropy']:.4f} bits - entropy {bits['entropy']:.4f} = K-L divergence "
        f"{bits['divergence']:.4f} as printed (Q does not sum to one), "
        f"{bits['divergence_normalised']:.4f} with Q normalised"
    )
