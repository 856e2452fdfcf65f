"""The report as a person reads it, in a real browser: on a phone and on a desk, light and dark, sorted and filtered.

Pictures of what was seen, and the printed page, are left in the test's folder.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import made_runs
from tests.made_runs import CLASSES, one_label
from textbench.evaluation.metrics.single_label import per_class
from textbench.flows.referee.ledger import choose, ledger
from textbench.flows.report import page
from textbench.flows.report.chapters import chapters
from textbench.flows.report.evidence import gather
from textbench.tasks.storage.files import write_json

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (group dev)")
axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
)
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium (Debian: apt-get install chromium)"
)
PHONE, DESK = 390, 1280
# Of what passes, one element a rule: to name each of thousands takes most of axe's time.
VIOLATIONS = {"resultTypes": ["violations"]}
# Of the rows of a table, the items of a list and the parts of a drawing, the first of each make stays: with the same
# tags, attributes, classes and colours all through. The long page says the same of thousands.
DISTILLED = """() => {
  const told = ["class", "role", "scope", "style", "fill", "stroke"];
  const attribute = one => one.name + (told.includes(one.name) ? one.value : "");
  const element = one => one.tagName + [...one.attributes].map(attribute);
  for (const parent of document.querySelectorAll("tbody, ul, ol, svg g")) {
    const seen = new Set();
    for (const child of [...parent.children]) {
      const make = [child, ...child.querySelectorAll("*")].map(element).join();
      if (seen.has(make)) child.remove();
      seen.add(make);
    }
  }
  return document.querySelectorAll("*").length;
}"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports by what was run: nothing (the claims and the record), one cell, or two methods with a curve."""
    with pytest.MonkeyPatch.context() as patch:
        made_runs.draw_once(patch)
        return write(tmp_path_factory.mktemp("report"))


def write(home: Path) -> dict[str, Path]:
    found = {}
    for name in ("nothing", "one run", "several"):
        if name != "nothing":
            finish(home, "binary", 50, 0)
        if name == "several":
            for method, n_right in (("binary", 50), ("tfidf", 55)):
                for number in (0, 1):
                    finish(home, method, n_right - number, number)
                    for budget in (50, 200):
                        labels = {"budget": budget, "draw": number, "stratified": False}
                        finish(home, method, n_right - 1000 // budget - number, 0, labels=labels)
        found[name] = home / f"{name}.html"
        evidence = gather(home)
        page.write(
            found[name], evidence, chapters(evidence, None if name != "nothing" else ledger(home, choose()))
        )
    return found


def finish(home: Path, method: str, n_right: int, seed: int, **request: Any) -> None:
    """Make up a run that is right of so many of 60 documents."""
    import numpy as np

    target = [0, 1, 2] * 20
    predicted = [(label + (place >= n_right)) % 3 for place, label in enumerate(target)]
    costs = {"seconds": {"featurize": float(n_right)}, "peak_mb": 200.0 + n_right}
    row = one_label(home, "r8", method, target, predicted, seed=seed, request=request, **costs)
    figures = per_class(np.array(target), np.array(predicted), CLASSES)
    write_json(home / "store" / "evaluate" / row["key"] / "per_class.json", figures)


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
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(reports[what].as_uri())
    tab.screenshot(path=tmp_path / f"{what}.png")
    page_width = tab.evaluate("document.documentElement.scrollWidth")
    if what == "nothing" and (width, scheme) != (DESK, "light"):  # once it is looked at whole
        assert tab.evaluate(DISTILLED) > 3000
    found = axe.Axe().run(tab, options=VIOLATIONS).response
    tab.close()
    assert [(rule["id"], rule["nodes"][0]["target"]) for rule in found["violations"]] == []
    assert len(found["passes"]) > 20  # it was looked at
    assert page_width == width  # what is wider scrolls in its own frame
    assert errors == []


def test_a_table_is_sorted_by_the_head_of_a_column(reports: dict[str, Path], browser: Any) -> None:
    tab = browser.new_page(viewport={"width": DESK, "height": 900})
    tab.goto(reports["several"].as_uri())
    table = tab.locator("table").first
    heads = [head.get_attribute("data-name") for head in table.locator("thead th").all()]
    n_rows = len(rows_of(table))
    for name in ("accuracy", "seconds"):
        column = heads.index(name)
        for order in ("descending", "ascending"):
            table.locator("th").nth(column).get_by_role("button").click()
            assert table.locator("th").nth(column).get_attribute("aria-sort") == order
            groups: list[list[str]] = []  # each below a row that is its title
            for row in rows_of(table):
                groups.append([]) if "\t" not in row else groups[-1].append(row.split("\t")[column])
            assert len(groups) == 2 and sum(map(len, groups)) == n_rows - 2
            for cells in groups:
                shown = [float(cell.replace(",", "")) for cell in cells if cell != "-"]
                assert len(set(shown)) > 1
                assert shown == sorted(shown, reverse=order == "descending")
                # What is recorded of TF-IDF tuned has no seconds: it stays below.
                assert cells[len(shown) :] == ["-"] * (len(cells) - len(shown))
    tab.close()


def test_the_ledger_is_filtered_by_paper_and_by_words(reports: dict[str, Path], browser: Any) -> None:
    tab = browser.new_page(viewport={"width": DESK, "height": 900})
    tab.goto(reports["nothing"].as_uri())
    table = tab.locator("table[data-filters]").first
    n_all = len(rows_of(table))
    tab.locator(".filters select").first.select_option("dcot-2012")
    of_paper = rows_of(table)
    tab.locator(".filters input[type=search]").first.fill("figure-3")
    of_words = rows_of(table)
    said = tab.locator(".filters [role=status]").first.inner_text()
    tab.close()
    assert n_all == 282
    assert 0 < len(of_words) < len(of_paper) < n_all
    assert all("dcot-2012" in row for row in of_paper)
    assert all("figure-3" in row for row in of_words)
    assert said == f"{len(of_words)} of {n_all} rows"


def test_it_prints_whole(reports: dict[str, Path], browser: Any, tmp_path: Path) -> None:
    tab = browser.new_page()
    tab.goto(reports["nothing"].as_uri())
    tab.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    closed = tab.locator("details:not([open])").count()
    bars = [bar.is_visible() for bar in tab.locator(".filters").all()]
    tab.close()
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert closed == 0  # everything that unfolds is unfolded
    assert bars
    assert not any(bars)  # paper needs no filters


def rows_of(table: Any) -> list[str]:
    """The rows of a table that can be seen, their cells divided by tabs."""
    return [row.inner_text() for row in table.locator("tbody tr:visible").all()]
