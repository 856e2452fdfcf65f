"""Both pages as a person uses them, in a real browser: a run started from the form, watched, and looked up in MLflow.

Pictures of what was seen are left in the test's folder.
"""

import contextlib
import json
import os
import re
import shutil
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import free_port, textbench
from textbench.flows.servers import prefect_server

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (group dev)")
expect = playwright.expect
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium (Debian: apt-get install chromium)"
)
QUIET = [
    "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
# Prefect's page draws the graph of a run without end where it can, which takes a core; MLflow's charts need it.
NO_GRAPH = "--disable-software-rasterizer"
PATIENCE = 60_000.0  # milliseconds for a page to show something
RUN_PATIENCE = 400.0  # seconds for a run to end
KEPT, LEFT_OUT = ("frequency", "tfidf"), ("binary", "counts", "tfidf-log2", "lsi", "lsa-pca")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A results folder in which everything is up, with a label-budget curve."""
    folder = tmp_path_factory.mktemp("browser")
    try:
        prefect_server.stop(folder, everything=True)  # that of tests before these has another port
        textbench("up", "--port", str(free_port()), "--mlflow-port", str(free_port()), home=folder)
        textbench("curve", "-d", "r8", "-m", "nb", "--budgets", "50,200", "--draws", "2", home=folder)
        yield folder
    finally:
        textbench("down", home=folder)


@pytest.fixture(scope="module")
def pages(home: Path) -> dict[str, str]:
    """The addresses of the services."""
    found = json.loads(textbench("status", "--json", home=home)[0])
    return {name: found[name]["page"] for name in ("prefect", "mlflow")}


@pytest.fixture(scope="module")
def browsers() -> Iterator[dict[str, Any]]:
    """Headless Chromium, once for each of the pages."""
    with playwright.sync_playwright() as driver:
        options = {"executable_path": CHROMIUM, "chromium_sandbox": False}
        found = {
            "prefect": driver.chromium.launch(args=[*QUIET, NO_GRAPH], **options),
            "mlflow": driver.chromium.launch(args=QUIET, **options),
        }
        yield found
        for browser in found.values():
            browser.close()


@pytest.fixture
def tabs(browsers: dict[str, Any], tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A new tab for each of the pages; what they show in the end is left as pictures in the test's folder."""
    expect.set_options(timeout=PATIENCE)
    opened = {name: new_tab(browser) for name, browser in browsers.items()}
    yield opened
    for name, tab in opened.items():
        tab.screenshot(path=tmp_path / f"{name}.png")
        tab.close()


def new_tab(browser: Any) -> Any:
    """Open a tab that waits long enough for a busy machine."""
    tab = browser.new_page(viewport={"width": 1500, "height": 1100})
    tab.set_default_timeout(PATIENCE)
    return tab


@pytest.fixture(scope="module")
def finished(
    browsers: dict[str, Any], pages: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The address of a flow run that was started from the form of `benchmark`, and is over."""
    opened = new_tab(browsers["prefect"])
    open_form(opened, pages["prefect"], "benchmark")
    for method in LEFT_OUT:
        chip = opened.locator(".p-tag", has_text=re.compile(f"^{method}$"))
        chip.get_by_role("button").click()
        expect(chip).to_have_count(0)
    opened.locator("input[type=number]").first.fill("1")
    opened.screenshot(path=tmp_path_factory.mktemp("form") / "filled.png")
    submit(opened)
    # a page that watches a run draws all the while, on the core that the run needs
    opened.goto("about:blank")
    wait_for_run(pages["prefect"], "r8: frequency, tfidf")
    opened.goto(f"{pages['prefect']}/runs")
    opened.get_by_role("link", name="r8: frequency, tfidf").first.click()
    opened.wait_for_url("**/flow-run/**")  # what stood on the page before may say Completed too
    expect(opened.get_by_text("Completed").first).to_be_visible()
    address = str(opened.url)
    opened.close()
    return address


def wait_for_run(prefect: str, name: str) -> None:
    """Ask Prefect's server once a second until the flow run with this in its name is over."""
    asked = urllib.request.Request(
        f"{prefect}/api/flow_runs/filter",
        json.dumps({"flow_runs": {"name": {"like_": name}}}).encode(),
        {"Content-Type": "application/json"},
    )
    end = time.monotonic() + RUN_PATIENCE
    while time.monotonic() < end:
        with urllib.request.urlopen(asked) as answer:
            if [run["state_type"] for run in json.load(answer)] == ["COMPLETED"]:
                return
        time.sleep(1)
    pytest.fail(f"{name} is not over")


def open_form(page: Any, prefect: str, flow: str) -> None:
    """Go to the form of a flow's deployment as a person does: deployments, the deployment, Run, Custom run."""
    page.goto(f"{prefect}/deployments")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=flow, exact=True))
    row.get_by_role("link").first.click()
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("Custom run").click()
    page.get_by_text("n_seeds").first.wait_for()


def submit(page: Any) -> None:
    """Press the button until the form is gone: a page that is drawn anew meanwhile loses a click."""
    button = page.get_by_role("button", name="Submit")
    for _ in range(3):
        button.click()
        with contextlib.suppress(playwright.TimeoutError):
            button.wait_for(state="detached", timeout=PATIENCE / 3)
            return
    pytest.fail("the form is still there after three clicks")


def show_artifact(tab: Any, run: str, key: str) -> None:
    """Go to an artifact of a flow run."""
    tab.goto(run)
    tab.locator("#artifacts").click()
    tab.get_by_role("link", name=key).first.click()
    tab.wait_for_url("**/artifacts/artifact/**")


def test_a_wrong_value_is_refused_in_the_form(tabs: dict[str, Any], pages: dict[str, str]) -> None:
    tab = tabs["prefect"]
    open_form(tab, pages["prefect"], "benchmark")
    expect(tab.get_by_text("Methods to compare.")).to_be_visible()
    tab.locator("input[type=number]").first.fill("5000")
    tab.get_by_role("button", name="Submit").click()
    expect(tab.get_by_text("5000 is greater than the maximum of 1000").first).to_be_visible()
    assert re.search(r"/deployment/[0-9a-f-]+/run", tab.url)  # still at the form


def test_a_run_from_the_form_shows_its_table_and_its_picture(tabs: dict[str, Any], finished: str) -> None:
    tab = tabs["prefect"]
    show_artifact(tab, finished, "results")
    for method in KEPT:
        expect(tab.get_by_text(method, exact=True).first).to_be_visible()
    show_artifact(tab, finished, "leaderboard")
    picture = tab.locator("img[src^='data:image/png']")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.naturalWidth") > 100  # it was decoded


def test_its_runs_are_found_in_mlflow_and_compared(tabs: dict[str, Any], finished: str) -> None:
    show_artifact(tabs["prefect"], finished, "mlflow")
    address = tabs["prefect"].get_by_role("link", name="the runs in MLflow").get_attribute("href")
    tab = tabs["mlflow"]
    tab.goto(address)
    expect(
        tab.get_by_role("button", name="Sort: accuracy")
    ).to_be_visible()  # by the view that the link names
    for method in KEPT:
        row = tab.get_by_role("row").filter(has=tab.get_by_role("link", name=f"r8 {method} seed 0"))
        row.get_by_role("checkbox").first.check()
    tab.get_by_role("button", name="Compare").click()
    expect(tab.get_by_text("Comparing 2 Runs").first).to_be_visible()
    expect(tab.get_by_text("Parallel Coordinates Plot").first).to_be_visible()
    tab.get_by_role("link", name=re.compile("^[0-9a-f]{32}$")).first.click()
    expect(tab.get_by_text("macro_f1").first).to_be_visible()


def test_metrics_and_seconds_are_seen_at_1400_pixels(
    browsers: dict[str, Any], pages: dict[str, str], finished: str, tmp_path: Path
) -> None:
    """With MLflow's own columns at first sight, its assistant beside them."""
    tab = browsers["mlflow"].new_page(viewport={"width": 1400, "height": 900})
    tab.set_default_timeout(PATIENCE)
    # As one who comes by the list of experiments.
    tab.goto(pages["mlflow"].partition("&viewStateShareKey")[0])
    with tab.expect_popup() as opened:
        tab.get_by_role("link", name="Runs with the columns that matter").click()
    shown = opened.value
    shown.set_default_timeout(PATIENCE)
    row = shown.get_by_role("link", name="r8 tfidf seed 0").first
    expect(row).to_be_visible(timeout=PATIENCE)
    shown.screenshot(path=tmp_path / "runs.png")
    right = shown.locator(".ag-body-viewport").bounding_box()
    for column in ("accuracy", "macro_f1", "seconds"):
        found = shown.locator(f'.ag-header-cell[col-id="metrics.`{column}`"]').bounding_box()
        assert found["x"] + found["width"] <= right["x"] + right["width"], column
    tab.close()


def test_a_label_budget_curve_is_a_line_over_steps(tabs: dict[str, Any], pages: dict[str, str]) -> None:
    tab = tabs["mlflow"]
    root = pages["mlflow"].partition("#")[0]
    asked = f"{root}api/2.0/mlflow/experiments/get-by-name?experiment_name=textbench-curves"
    with urllib.request.urlopen(asked) as answer:
        experiment = json.load(answer)["experiment"]["experiment_id"]
    tab.goto(
        f"{root}#/experiments/{experiment}/runs?workflowType=machine_learning&viewStateShareKey=textbench"
    )
    tab.get_by_role("link", name="r8 nb by labels").first.click()
    tab.get_by_role("tab", name="Model metrics").click()
    expect(tab.locator(".js-plotly-plot .scatterlayer .trace").first).to_be_visible()
    expect(tab.get_by_text("accuracy", exact=True).first).to_be_visible()
