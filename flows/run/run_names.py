"""Names of flow runs, by which Prefect's page tells them apart: data sets, methods, protocol, and the suite."""

from collections.abc import Sequence

N_SHOWN = 3  # names of a list; of the others their number
FORM = "by-form"  # of the deployments, and of the sweeps they run
USUAL = ("custom", "curve", "retrieval", "pieces")  # names of sweeps that were given none


def run_name(*fields: str) -> str:
    """Return the name of the flow run that is about to begin, from those of its parameters that are lists."""
    from prefect.runtime import flow_run

    return named(flow_run.parameters, fields)


def named(parameters: "dict[str, object]", fields: Sequence[str]) -> str:
    """Return what a run with these parameters is called, such as "r8: lsi, tfidf, honest"."""
    lists = [parameters.get(field) for field in fields]
    text = ": ".join(_some(names) for names in lists if isinstance(names, Sequence) and names)
    others = [parameters.get("protocol"), parameters.get("name")]
    return ", ".join([text, *(str(other) for other in others if other and other not in USUAL)])


def _some(names: Sequence[str]) -> str:
    shown, n_more = ", ".join(names[:N_SHOWN]), len(names) - N_SHOWN
    return f"{shown} and {n_more} more" if n_more > 0 else shown
