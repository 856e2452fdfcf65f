"""Events for automations: what is sent, of what, and that nothing is sent or stopped without a server."""

import logging
from typing import Any

import prefect.context
import prefect.events
import pytest

from textbench.flows.results.regressions import Change
from textbench.flows.run import events

Sent = list[tuple[str, dict[str, str], dict[str, Any]]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """Return the events that a flow run sends."""
    found: Sent = []
    monkeypatch.setattr(prefect.context.FlowRunContext, "get", lambda: "a run")
    monkeypatch.setattr(
        prefect.events,
        "emit_event",
        lambda event, resource, payload: found.append((event, resource, payload)),
    )
    return found


def row(method: str, seed: int, accuracy: float, **others: Any) -> dict[str, Any]:
    """Return a row of the index."""
    made = {"dataset": "r8", "protocol": "honest", "trials": 0, "error": None, "created": 1.0, "corpus": None}
    return made | {"method": method, "seed": seed, "metrics": {"accuracy": accuracy}} | others


def test_a_new_best_mean_is_a_record_and_repeating_it_is_none() -> None:
    before = [row("tfidf", 0, 0.95), row("tfidf", 1, 0.97), row("nb", 0, 0.9)]
    assert events.records([], before) == []
    assert events.records(before, before) == []
    assert events.records(before, [*before, row("lsi", 0, 0.96)]) == []  # the mean over seeds stands
    ((dataset, method, about),) = events.records(before, [*before, row("lsi", 0, 0.98)])
    assert (dataset, method, about["method_before"], about["seeds"]) == ("r8", "lsi", "tfidf", 1)
    assert (about["value"], about["before"]) == (0.98, pytest.approx(0.96))
    other = row("lsi", 0, 0.99, corpus={"documents_sha256": "f" * 64})
    assert events.records(before, [*before, other]) == []


def test_points_of_curves_and_accuracy_of_several_labels_break_no_record() -> None:
    few = row("tfidf", 0, 0.6, created=2.0, request={"labels": {"budget": 50, "draw": 0}})
    before = [row("tfidf", 0, 0.95), few]
    assert events.records(before, [*before, row("lsi", 0, 0.8)]) == []
    several = [
        row(method, 0, accuracy, metrics={"accuracy": accuracy, "micro_f1": micro, "micro_f1_zero": 0.5})
        for method, accuracy, micro in (("a", 0.4, 0.9), ("c", 0.5, 0.5))
    ]
    assert events.records(several[:1], several) == []


def test_a_failed_cell_is_sent_as_it_fails(sent: Sent) -> None:
    log, handler = logging.getLogger("textbench.run.of_this_test"), events.Failures()
    log.addHandler(handler)
    log.error("ended", extra={"row": row("lda", 3, 0.0, error="out of memory")})
    log.error("ended", extra={"row": row("lda", 4, 0.9)})
    log.error("something else")
    ((event, resource, payload),) = sent
    assert event == "textbench.cell.failed" and resource["prefect.resource.id"] == "textbench.r8.lda"
    assert payload == {"protocol": "honest", "seed": 3, "error": "out of memory"}


def test_what_got_worse_is_sent(sent: Sent) -> None:
    worse = Change("r8", "lsi", "accuracy", 0.95, 0.9, p=0.001)
    same = Change("r8", "nb", "accuracy", 0.95, 0.95)
    events.regressed([worse, same], 1.5)
    ((event, resource, payload),) = sent
    assert (event, resource["textbench.method"]) == ("textbench.regressed", "lsi")
    assert payload["worse"] and not payload["slower"] and payload["tonight"] == 0.9


def test_outside_a_flow_run_nothing_is_sent_and_no_fault_of_a_server_stops_a_run(
    sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefect.context.FlowRunContext, "get", lambda: None)
    events.send(events.RECORD, "r8", "lsi", {})
    assert sent == []

    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError("no server")

    monkeypatch.setattr(prefect.context.FlowRunContext, "get", lambda: "a run")
    monkeypatch.setattr(prefect.events, "emit_event", refuse)
    events.send(events.RECORD, "r8", "lsi", {})
