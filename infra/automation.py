"""An automation on Prefect's server: each event of textbench is posted to an address, a chat's or a monitor's.

    PREFECT_API_URL=http://127.0.0.1:4200/api python -m infra.automation https://example.org/hook
    python -m infra.automation https://example.org/hook textbench.regressed

Asked for again it takes the place of the one before. The address receives JSON: event, data set, method and payload.
"""

import contextlib
import sys

from prefect.automations import Automation
from prefect.blocks.webhook import Webhook
from prefect.events.actions import CallWebhook
from prefect.events.schemas.automations import EventTrigger, Posture
from prefect.exceptions import ObjectNotFound

from textbench.flows.run.events import FAILED, RECORD, REGRESSED

NAME = "textbench"
EVENTS = (FAILED, REGRESSED, RECORD)
BODY = """{"event": {{ event.event | tojson }}, "resource": {{ event.resource.id | tojson }},
"payload": {{ event.payload | tojson }}}"""


def automation(address: str, wanted: tuple[str, ...] = EVENTS) -> Automation:
    """Return the automation, its address kept as a block of the server. Raises ValueError for an unknown event."""
    if unknown := set(wanted) - set(EVENTS):
        raise ValueError(f"events are {', '.join(EVENTS)}; got {', '.join(sorted(unknown))}")
    block = Webhook(method="POST", url=address)
    block.save(NAME, overwrite=True)
    return Automation(
        name=NAME,
        description="Posts what textbench says",
        trigger=EventTrigger(expect=set(wanted), posture=Posture.Reactive, threshold=1),
        actions=[CallWebhook(block_document_id=block._block_document_id, payload=BODY)],
    )


def main(address: str, *wanted: str) -> None:
    """Make the automation, in place of the one before."""
    made = automation(address, wanted or EVENTS)
    with contextlib.suppress(ValueError, ObjectNotFound):
        Automation.read(name=NAME).delete()
    made.create()
    print(f"Automation {NAME}: {', '.join(sorted(wanted or EVENTS))} to {address}")


if __name__ == "__main__":
    main(*sys.argv[1:])
