"""The documentation as a person reads it: built without a network, in a real browser, from a folder, searched."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.docs import gallery, record, reference, site
from textbench.evaluation.metrics.multilabel import MULTILABEL_METRICS
from textbench.evaluation.metrics.single_label import METRICS
from textbench.tasks import catalogue

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (group dev)")
axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
)
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
PHONE, DESK = 390, 1280
LOOKED_AT = ("gallery", "tutorial/own-csv", "reference/methods/lsi")


@pytest.fixture(scope="module")
def pages() -> reference.Pages:
    return reference.pages()


def test_the_reference_has_all_that_there_is(pages: reference.Pages) -> None:
    for name, entry in catalogue.methods().items():
        text = "\n".join(pages[f"reference/methods/{name}.md"])
        assert "Source" in text and all(f"| `{one}` |" in text for one in entry.parameters or ()), name
    metrics = "\n".join(pages["reference/metrics.md"])
    assert all(f"| `{name}` |" in metrics for name in {**METRICS, **MULTILABEL_METRICS})
    assert "partial(" not in metrics
    datasets = "\n".join(pages["reference/datasets.md"])
    assert all(f"## {name}\n" in datasets for name in catalogue.datasets())
    commands = "\n".join(pages["reference/command-line.md"])
    assert "## textbench run\n" in commands and "| `--trials` |" in commands


def test_pages_are_in_the_navigation_and_the_other_way_round(pages: reference.Pages) -> None:
    written = {str(path.relative_to(record.DOCS)) for path in record.DOCS.rglob("*.md")}
    written = {name for name in written if not name.endswith("_template.md")}
    built = {name for name in pages if not name.startswith("reference/methods/")} | {"gallery.md"}
    listed = {place for _, place in site.places()}
    assert listed - {"reference/methods/index.md"} == written | built


def test_a_link_that_leads_nowhere_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\n[b](b.md#there) [b](b.md#not) [c](c.md)\n", "utf-8")
    (tmp_path / "b.md").write_text("# B\n\n## There\n", "utf-8")
    assert [*site.broken_links(tmp_path)] == [
        "docs/a.md: nothing is at b.md#not",
        "docs/a.md: nothing is at c.md",
    ]


def test_the_gallery_has_twelve_pictures_drawn_from_the_record(tmp_path: Path) -> None:
    assert len(gallery.PICTURES) == 12
    gallery.write("scdv-table-1", tmp_path / "one.svg")
    assert "published 84.6, measured" in (tmp_path / "one.svg").read_text("utf-8")


@pytest.fixture(scope="module")
def built() -> Path:
    """The site, built."""
    return site.build()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=CHROMIUM,
            chromium_sandbox=False,
            args=["--disable-gpu", "--disable-software-rasterizer"],
        )
        yield opened
        opened.close()


@pytest.mark.dear
@pytest.mark.parametrize("page", LOOKED_AT)
def test_everybody_can_read_it(page: str, built: Path, browser: Any) -> None:
    for width, scheme in ((PHONE, "dark"), (DESK, "light")):
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        errors, asked = [], []
        tab.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
        tab.on("request", lambda request, asked=asked: asked.append(request.url))
        tab.goto((built / f"{page}.html").as_uri())
        tab.wait_for_load_state("load")
        found = axe.Axe().run(tab, options={"resultTypes": ["violations"]}).response
        wide = tab.evaluate("document.documentElement.scrollWidth")
        tab.close()
        assert [(rule["id"], rule["nodes"][0]["target"]) for rule in found["violations"]] == []
        assert wide <= width
        assert errors == []
        assert [url for url in asked if url.startswith("http")] == []  # nothing is fetched
    assert (built / f"{page}.md").exists() and (built / "llms.txt").exists()


@pytest.mark.dear
def test_it_is_searched_from_a_folder(built: Path, browser: Any) -> None:
    tab = browser.new_page(viewport={"width": DESK, "height": 900})
    tab.goto((built / "index.html").as_uri())
    tab.keyboard.press("/")
    field = tab.get_by_role("combobox").first
    field.wait_for(state="visible")
    field.fill("probe penalty")
    tab.get_by_text(re.compile(r"^[1-9]\d* results?$")).wait_for(state="visible", timeout=15_000)
    assert field.input_value() == "probe penalty"
    tab.close()
