"""Names of the deployments of a results folder, where several share a Prefect server.

Each folder has deployments of its own, tagged with it, whose runs no other folder's worker takes. The first one's are
called `by-form` and `nightly`; those of the others end in the folder's name.
"""

import itertools
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import DeploymentFilter, FlowFilter

from textbench.flows.run.run_names import FORM
from textbench.flows.run.workspace import DEFAULT, FOLDER_TAG, folder_tag


def ending(home: Path, owners: Mapping[str, str]) -> str:
    """Return how the names of this folder's deployments end, given the folder's tag by the endings in use.

    What the folder has, it keeps. An ending is taken over from a folder of this machine that is gone, and from
    deployments without a tag.
    """
    mine = folder_tag(home)
    for known, owner in owners.items():
        if owner == mine:
            return known
    place = home.parent if home.name == DEFAULT else home
    label = re.sub(r"[^\w.-]+", "-", place.name)
    candidates = itertools.chain(["", f"-{label}"], (f"-{label}-{n}" for n in itertools.count(2)))
    return next(one for one in candidates if one not in owners or _is_gone(owners[one]))


def _is_gone(owner: str) -> bool:
    hostname, _, place = owner.removeprefix(FOLDER_TAG).partition(":")
    return not owner or (hostname == socket.gethostname() and not Path(place).exists())


async def owners() -> dict[str, str]:
    """Return the folder's tag of every form, empty where it has none, by what its name has after `by-form`."""
    forms = DeploymentFilter.model_validate({"name": {"like_": FORM}, "tags": {"all_": ["textbench"]}})
    ours = FlowFilter.model_validate({"name": {"any_": ["benchmark"]}})
    async with get_client() as client:
        found = await client.read_deployments(flow_filter=ours, deployment_filter=forms)
    return {
        one.name.removeprefix(FORM): next((tag for tag in one.tags if tag.startswith(FOLDER_TAG)), "")
        for one in found
    }
