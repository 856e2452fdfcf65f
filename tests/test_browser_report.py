"""The report as a person reads it, in a real browser: on a phone and on a desk, light and dark, sorted and filtered.

Pictures of what was seen, and the printed page, are left in the test's folder.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import textbench

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (group dev)")
axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
)
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium (Debian: apt-get install chromium)"
)
PHONE, DESK = 390, 1280


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports by what was run: nothing (the claims and the record), one cell, or two methods with a curve."""
    home = tmp_path_factory.mktemp("report")
    found = {}
    commands: dict[str, list[tuple[str, ...]]] = {
        "nothing": [],
        "one run": [("run", "-d", "r8", "-m", "binary", "--seed", "0")],
        "several": [
            ("run", "-d", "r8", "-m", "binary", "-m", "tfidf", "--seeds", "2"),
            ("curve", "-d", "r8", "-m", "binary", "-m", "tfidf", "--budgets", "50,200", "--draws", "2"),
        ],
    }
    for name, lines in commands.items():
        for line in lines:
            textbench(*line, home=home)
        found[name] = home / f"{name}.html"
        options = ["--claims"] if name == "nothing" else []
        textbench("report", "-o", str(found[name]), "--no-publish", *options, home=home)
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=CHROMIUM,
            chromium_sandbox=False,
            args=["--disable-gpu", "--disable-software-rasterizer"],
        )
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("what", ["nothing", "one run", "several"])
def test_everybody_can_read_it(
    what: str, width: int, scheme: str, reports: dict[str, Path], browser: Any, tmp_path: Path
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(reports[what].as_uri())
    page.screenshot(path=tmp_path / f"{what}.png")
    found = axe.Axe().run(page).response
    page_width = page.evaluate("document.documentElement.scrollWidth")
    page.close()
    assert [(rule["id"], rule["nodes"][0]["target"]) for rule in found["violations"]] == []
    assert len(found["passes"]) > 20  # it was looked at
    assert page_width == width  # what is wider scrolls in its own frame
    assert errors == []


def test_a_table_is_sorted_by_the_head_of_a_column(reports: dict[str, Path], browser: Any) -> None:
    page = browser.new_page(viewport={"width": DESK, "height": 900})
    page.goto(reports["several"].as_uri())
    table = page.locator("table").first
    heads = [head.get_attribute("data-name") for head in table.locator("th").all()]
    for name in ("accuracy", "seconds"):
        column = heads.index(name)
        for order in ("descending", "ascending"):
            table.locator("th").nth(column).get_by_role("button").click()
            cells = [row.split("\t")[column] for row in rows_of(table)]
            shown = [float(cell) for cell in cells if cell != "-"]
            assert table.locator("th").nth(column).get_attribute("aria-sort") == order
            assert shown == sorted(shown, reverse=order == "descending")
            # What is recorded of tuned TF-IDF has no seconds: that line stays below.
            assert len(set(shown)) == {"accuracy": 3, "seconds": 2}[name]
            assert cells[len(shown) :] == ["-"] * (3 - len(shown))
    page.close()


def test_the_ledger_is_filtered_by_paper_and_by_words(reports: dict[str, Path], browser: Any) -> None:
    page = browser.new_page(viewport={"width": DESK, "height": 900})
    page.goto(reports["nothing"].as_uri())
    table = page.locator("table[data-filters]").first
    n_all = len(rows_of(table))
    page.locator(".filters select").first.select_option("dcot-2012")
    of_paper = rows_of(table)
    page.locator(".filters input[type=search]").first.fill("figure-3")
    of_words = rows_of(table)
    said = page.locator(".filters [role=status]").first.inner_text()
    page.close()
    assert n_all == 282
    assert 0 < len(of_words) < len(of_paper) < n_all
    assert all("dcot-2012" in row for row in of_paper)
    assert all("figure-3" in row for row in of_words)
    assert said == f"{len(of_words)} of {n_all} rows"


def test_it_prints_whole(reports: dict[str, Path], browser: Any, tmp_path: Path) -> None:
    page = browser.new_page()
    page.goto(reports["nothing"].as_uri())
    page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    closed = page.locator("details:not([open])").count()
    bars = [bar.is_visible() for bar in page.locator(".filters").all()]
    page.close()
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert closed == 0  # everything that unfolds is unfolded
    assert bars
    assert not any(bars)  # paper needs no filters


def rows_of(table: Any) -> list[str]:
    """The rows of a table that can be seen, their cells divided by tabs."""
    return [row.inner_text() for row in table.locator("tbody tr:visible").all()]
