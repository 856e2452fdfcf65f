"""What a monitor reads of a results folder: a metric a line, and labels that no name can break."""

from pathlib import Path

from textbench.flows.results.index import RECORDED, Index
from textbench.flows.run import prometheus
from textbench.tasks.storage.files import write_json

SERVICES = {"prefect": {"healthy": True}, "worker": {"healthy": False}}


def test_a_folder_with_results_says_what_and_when(tmp_path: Path) -> None:
    for place, created in enumerate((5.0, 1790000000.25)):
        row = dict.fromkeys(RECORDED, "") | {"dataset": 'a"b\\', "protocol": "honest", "created": created}
        write_json(
            Index(tmp_path).folder / f"{place}.json", row | {"method": "nb", "metrics": {}, "seed": place}
        )
    write_json(tmp_path / "nights" / "2026" / "night.json", {"begun": 7.5})
    text = prometheus.exposition(tmp_path, SERVICES)
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert values == {
        'textbench_service_up{service="prefect"}': "1",
        'textbench_service_up{service="worker"}': "0",
        "textbench_runs_waiting": "0",
        'textbench_cells_finished{dataset="a\\"b\\\\",protocol="honest"}': "2",
        "textbench_last_finished_timestamp_seconds": "1790000000.25",
        "textbench_last_night_timestamp_seconds": "7.5",
    }
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            assert line.endswith(" gauge")
    assert text.endswith("\n")


def test_an_empty_folder_has_no_times(tmp_path: Path) -> None:
    text = prometheus.exposition(tmp_path, SERVICES)
    assert "timestamp" not in text and "textbench_runs_waiting 0" in text
