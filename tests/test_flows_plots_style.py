"""Figures and publishing of the report: colours are readable, names do not overlap."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import combinations
from pathlib import Path
from typing import Any

from textbench.flows.plots import style
from textbench.flows.report import page, publish
from textbench.flows.run.workspace import folder_tag


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """WCAG 2.2, contrast ratio."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_all_text_is_readable_in_light_and_dark() -> None:
    css = (page.HERE / "style.css").read_text("utf-8")
    light, dark = (
        dict(re.findall(r"--([\w]+): (#[0-9a-f]{6})", part)) for part in css.split("@media screen")[:2]
    )
    assert light.keys() == dark.keys()
    for colours in (light, dark):
        for name in ("ink", "quiet", "link", *(f"c{place}" for place in range(len(style.COLOURS)))):
            for ground in ("paper", "panel"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    assert [light[f"c{place}"] for place in range(len(style.COLOURS))] == list(style.COLOURS)


def picture() -> str:
    with style.canvas(2.0) as (figure, axis):
        axis.plot([1, 2], [1, 2], color=style.OTHER, marker="o")
        axis.text(1, 1.5, "a < name")
        return style.inline(figure, "fig-x", "A <title>", "What it shows.")


def test_a_picture_in_a_page_has_words_and_colours_of_the_page() -> None:
    from xml.etree import ElementTree

    svg = picture()
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    described = (root.get("aria-labelledby") or "").split()
    ids = {element.get("id") for element in root.iter() if element.get("id")}
    assert set(described) <= ids
    assert all(id_.startswith("fig-x-") for id_ in ids if id_)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    assert used
    assert used <= ids
    assert "a &lt; name" in svg  # text stays text
    plain = re.sub(r"var\(--\w+, #[0-9a-f]{6}\)", "", svg, flags=re.IGNORECASE)
    assert re.findall(r"#[0-9a-f]{6}\b", plain, re.IGNORECASE) == []
    assert picture() == svg


def test_names_do_not_cover_one_another() -> None:
    names = [f"method-{place}" for place in range(8)]
    points = [(1 + 0.01 * place, 50 + 0.05 * place) for place in range(8)]
    with style.canvas(3.3) as (figure, axis):
        axis.plot(*zip(*points, strict=True), "o")
        axis.set(xlim=(0.5, 2), ylim=(45, 55))
        style.place_labels(axis, points, names)
        figure.draw_without_rendering()
        boxes = [text.get_window_extent() for text in axis.texts]
    assert [text.get_text() for text in axis.texts] != []
    for first, second in combinations(boxes, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        along = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert across <= 1 or along <= 1


class Prefect(BaseHTTPRequestHandler):
    """Answers like a Prefect server that knows two flow runs, and keeps what was posted."""

    posted: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self._answer(b"true")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.posted.append((self.path, body))
        self._answer(b'[{"id": "run-1"}, {"id": "run-2"}]' if self.path.endswith("filter") else b"{}")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


def test_the_report_is_linked_from_the_pages_of_flow_runs(tmp_path: Path) -> None:
    server = HTTPServer(("127.0.0.1", 0), Prefect)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/api"
    try:
        assert publish.link(tmp_path, tmp_path / "report.html", "abc", address) == 2
    finally:
        server.shutdown()
        server.server_close()
    (asked,) = [body for path, body in Prefect.posted if path == "/api/flow_runs/filter"]
    assert asked["flow_runs"] == {"tags": {"all_": [folder_tag(tmp_path)]}}  # of this folder, not of others'
    made = [body for path, body in Prefect.posted if path == "/api/artifacts/"]
    assert [body["flow_run_id"] for body in made] == ["run-1", "run-2"]
    assert f"file://{tmp_path}/report.html" in made[0]["data"]


def test_without_a_database_nothing_is_published(tmp_path: Path) -> None:
    (said,) = publish.publish(tmp_path, tmp_path / "report.html", "http://127.0.0.1:9/api")
    assert said.startswith("Not logged to MLflow")


def test_the_report_is_an_artifact_of_an_mlflow_run(tmp_path: Path) -> None:
    from textbench.tasks.tracking.tracker import Tracker, read_settings

    tracker = Tracker(read_settings(tmp_path))
    tracker.prepare()
    file = tmp_path / "report.html"
    file.write_text("<p>hello")
    said = publish.publish(tmp_path, file, None)
    assert said[1:] == ["Not linked from Prefect: no server is running (textbench up)."]
    run_id = publish.log(tmp_path, file)
    assert run_id is not None
    run = tracker.client.get_run(run_id)
    assert run.data.tags["kind"] == "report"
    assert run.info.status == "FINISHED"
    assert [one.path for one in tracker.client.list_artifacts(run_id)] == ["report.html"]
    assert tracker.runs() == []  # the leaderboard of MLflow's runs knows nothing of it
