"""Names of flow runs, by which Prefect's page tells them apart: data sets, methods, protocol, and the suite."""

from collections.abc import Mapping, Sequence

LISTS = ("pieces", "datasets", "methods", "collections", "rankers")
N_SHOWN = 3  # names of a list; of the others their number
FORM = "by-form"  # of the deployments, and of the sweeps they run
USUAL = ("custom", "curve", "retrieval", "pieces")  # names of sweeps that were given none


def run_name() -> str:
    """Return the name of the flow run that is about to begin, from what it was asked for: a request, or a form."""
    from prefect.runtime import flow_run

    asked = flow_run.parameters.get("request", flow_run.parameters)
    return named(asked if isinstance(asked, dict) else vars(asked))


def named(asked: Mapping[str, object]) -> str:
    """Return what a run that was asked for with these fields is called, such as "r8: lsi, tfidf, honest"."""
    lists = [asked.get(field) for field in LISTS]
    text = ": ".join(_some(names) for names in lists if isinstance(names, Sequence) and names)
    others = [asked.get("protocol"), asked.get("name")]
    return ", ".join([text, *(str(other) for other in others if other and other not in USUAL)])


def _some(names: Sequence[str]) -> str:
    shown, n_more = ", ".join(names[:N_SHOWN]), len(names) - N_SHOWN
    return f"{shown} and {n_more} more" if n_more > 0 else shown
