"""The site: pages put together, made HTML by Zensical, and finished so that all of it is read from a folder.

Below `build/docs` are `pages` (Markdown) and `site` (HTML, each page's Markdown beside it, llms.txt).
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from infra.docs import gallery, reference
from infra.docs.markdown import table
from infra.docs.record import DOCS, entries
from textbench.flows.referee.held import headlines
from textbench.tasks import catalogue
from textbench.tasks.storage.definitions import PROJECT

BUILD = PROJECT / "build" / "docs"
NAV: list[tuple[str, Any]] = [
    ("Home", "index.md"),
    ("Tutorial", [
        ("Your CSV to a served model", "tutorial/own-csv.md"),
        ("How many labels do I need?", "tutorial/label-budget.md"),
        ("From Python, in a notebook", "tutorial/python.md"),
    ]),
    ("How-to", [
        ("Install", "how-to/install.md"),
        ("Your own documents", "how-to/own-data.md"),
        ("Your own collection", "how-to/own-collection.md"),
        ("Your own method", "how-to/own-method.md"),
        ("Your own data set", "how-to/own-dataset.md"),
        ("Your own metric", "how-to/own-metric.md"),
        ("Your own paper", "how-to/own-paper.md"),
        ("Pretrained encoders", "how-to/encoders.md"),
        ("Vectors and predictions from elsewhere", "how-to/elsewhere.md"),
        ("Tuning", "how-to/tuning.md"),
        ("Ensembles", "how-to/ensembles.md"),
        ("Errors to look at", "how-to/errors.md"),
        ("Every night", "how-to/nightly.md"),
        ("Several machines", "how-to/several-machines.md"),
        ("MLflow", "how-to/mlflow.md"),
        ("Prefect", "how-to/prefect.md"),
        ("Serve a model", "how-to/serve-a-model.md"),
        ("Share results", "how-to/share-results.md"),
        ("Submit a record", "how-to/submit-a-record.md"),
    ]),
    ("Reference", [
        ("Command line", "reference/command-line.md"),
        ("Python", "reference/python.md"),
        ("Methods", "reference/methods/index.md"),
        ("Data sets", "reference/datasets.md"),
        ("Metrics", "reference/metrics.md"),
        ("Protocols", "reference/protocols.md"),
        ("Rankers", "reference/rankers.md"),
        ("Suites", "reference/suites.md"),
        ("Where results live", "reference/results-folder.md"),
    ]),
    ("Explanation", [
        ("How a number is made", "explanation/how-a-number-is-made.md"),
        ("Protocols", "explanation/protocols.md"),
        ("Probes", "explanation/probes.md"),
        ("Ceilings and leakage", "explanation/ceilings-and-leakage.md"),
        ("Keys and caching", "explanation/keys-and-caching.md"),
        ("How verdicts are made", "verdicts.md"),
        ("Paper: dCoT", "explanation/dcot.md"),
        ("Paper: SCDV", "explanation/scdv.md"),
        ("Paper: compressive features", "explanation/compressive-features.md"),
        ("Notes: TF-IDF and LSA", "explanation/tfidf-and-lsa.md"),
        ("How we are different", "explanation/how-we-are-different.md"),
    ]),
    ("Evidence", [
        ("What is measured", "measured.md"),
        ("What the papers claimed", "claims.md"),
        ("Gallery", "gallery.md"),
    ]),
    ("Glossary", "glossary.md"),
]  # fmt: skip
LLMS = PROJECT / "llms.txt"  # of the pages that are committed
SHIM = "https://unpkg.com/iframe-worker/shim"  # the theme's only address that a page would load
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
HELD = re.compile(r"<!-- held: ([\w-]+) -->")
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


def build(skip_pictures: bool = False) -> Path:
    """Make the site and return its folder. Raises SystemExit where Zensical fails or a link leads nowhere."""
    pages, site = BUILD / "pages", BUILD / "site"
    for folder in (pages, site):
        shutil.rmtree(folder, ignore_errors=True)
    put_together(pages)
    if not skip_pictures:
        gallery.draw(pages / "pictures")
    if broken := [*broken_links(pages)]:
        raise SystemExit("\n".join(broken))
    write_settings(BUILD / "zensical.toml")
    command = [Path(sys.executable).with_name("zensical"), "build", "-f", "zensical.toml", "--strict"]
    done = subprocess.run(command, cwd=BUILD, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"zensical: {done.stdout}{done.stderr}")
    finish(pages, site)
    return site


def put_together(pages: Path) -> None:
    """Copy the pages that are written, and write those that are generated from the code."""
    written = shutil.ignore_patterns("*_template.md")
    shutil.copytree(DOCS, pages, ignore=written)
    for path in (PROJECT / "infra").glob("*.svg"):
        (pages / "pictures").mkdir(exist_ok=True)
        shutil.copy(path, pages / "pictures")
    for place, lines in (reference.pages() | {"gallery.md": gallery.page()}).items():
        path = pages / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines).rstrip() + "\n", "utf-8")
    for path in pages.rglob("*.md"):
        text = HELD.sub(lambda found: "\n".join(held(found[1])), path.read_text("utf-8"))
        path.write_text(_of_the_checkout(text, path.relative_to(pages)), "utf-8")


def held(paper: str) -> list[str]:
    """Return how many claims of a paper have each verdict, as lines of a table, and its headlines before that."""
    own = [entry for entry in entries() if entry.claim.paper == paper]
    counts = Counter(
        entry.verdict.kind for entry in own if not entry.claim.twin and not entry.claim.class_rate
    )
    lines = [f"- {line.removeprefix(f'{paper}: ')}" for line in headlines(own)]
    return [*lines, "", *table(["verdict", "claims"], counts.most_common())]


def _of_the_checkout(text: str, page: Path) -> str:
    """Return a page whose links out of docs/ name the file instead: a site has no checkout around it.

    Pictures from there are beside the pages, `pictures/`.
    """
    up = "../" * len(page.parts)

    def named(found: re.Match[str]) -> str:
        if not found[3].startswith(up):
            return found[0]
        file = found[3].removeprefix(up)
        return f"![{found[2]}]({up[3:]}pictures/{Path(file).name})" if found[1] else f"{found[2]} (`{file}`)"

    return LINK.sub(named, text)


def broken_links(pages: Path) -> Iterator[str]:
    """Yield a line for each link between pages that leads nowhere, its anchor included."""
    texts = {path: path.read_text("utf-8") for path in pages.rglob("*.md")}
    anchors = {path: set(headings(text)) for path, text in texts.items()}
    for path, text in texts.items():
        for _, _, target, anchor in LINK.findall(FENCE.sub("", text)):
            if re.match(r"\w+:", target):
                continue
            goal = Path(os.path.normpath(path.parent / target)) if target else path
            is_there = goal.exists() or "pictures" in goal.parts
            if not is_there or (anchor and goal in anchors and anchor[1:] not in anchors[goal]):
                yield f"docs/{path.relative_to(pages)}: nothing is at {target}{anchor}"


def headings(text: str) -> Iterator[str]:
    """Yield the anchors of a page's headings, as Python-Markdown makes them."""
    for title in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M):
        bare = re.sub(r"[^\w\s-]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)).strip().lower()
        yield re.sub(r"[-\s]+", "-", bare)


def places(nav: Iterable[tuple[str, Any]] = NAV) -> Iterator[tuple[str, str]]:
    """Yield the title and place of every page in the navigation."""
    for title, what in nav:
        if isinstance(what, str):
            yield title, what
        else:
            yield from places(what)


def write_settings(path: Path) -> None:
    """Write Zensical's settings: the navigation with every method's page, no fonts or icons from elsewhere."""
    nav = [(title, _with_methods(what)) for title, what in NAV]
    text = f"""[project]
site_name = "textbench"
site_description = "Which text representation to use, and how every number was made"
docs_dir = "pages"
site_dir = "site"
use_directory_urls = false
nav = {_toml(nav)}

[project.theme]
font = false
features = ["navigation.indexes", "navigation.path", "navigation.top", "search.highlight", "content.code.copy"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/moon"
toggle.name = "Switch to dark mode"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/sun"
toggle.name = "Switch to light mode"

[project.plugins.search]
[project.plugins.offline]

[project.markdown_extensions.tables]
[project.markdown_extensions.attr_list]
[project.markdown_extensions.admonition]
[project.markdown_extensions.toc]
permalink = false
[project.markdown_extensions.pymdownx.superfences]
[project.markdown_extensions.pymdownx.highlight]
"""
    if (DOCS / "style.css").exists():
        text = text.replace("use_directory_urls", 'extra_css = ["style.css"]\nuse_directory_urls')
    path.write_text(text, "utf-8")


def _with_methods(what: Any) -> Any:
    if isinstance(what, str):
        return what
    every = [("All", "reference/methods/index.md")]
    every += [(name, f"reference/methods/{name}.md") for name in catalogue.methods()]
    return [(title, every if title == "Methods" else place) for title, place in what]


def _toml(nav: Any) -> str:
    if isinstance(nav, str):
        return json.dumps(nav)
    return f"[{', '.join(f'{{ {json.dumps(title)} = {_toml(what)} }}' for title, what in nav)}]"


def finish(pages: Path, site: Path) -> None:
    """Set each page's Markdown beside it, write llms.txt, and have the search work from a folder without a server.

    The theme gives some landmarks of a page one name: each gets its own.
    """
    for path in pages.rglob("*.md"):
        shutil.copy(path, site / path.relative_to(pages))
    (site / "llms.txt").write_text(llms(pages), "utf-8")
    shutil.copy(Path(__file__).with_name("page.js"), site / "assets" / "javascripts" / "page.js")
    for path in site.rglob("*.html"):
        up = "../" * (len(path.relative_to(site).parts) - 1)
        text = path.read_text("utf-8").replace(SHIM, f"{up}assets/javascripts/page.js")
        text = text.replace(
            'class="md-path" aria-label="Navigation"', 'class="md-path" aria-label="Where this is"'
        )
        text = re.sub(r'(data-md-level="[2-9]") aria-labelledby="[^"]*"', r'\1 aria-label="Every one"', text)
        path.write_text(text, "utf-8")


def llms(pages: Path, place: str = "") -> str:
    """Return llms.txt: what this is, and each page there is as plain Markdown with its first sentence."""
    lines = [
        "# textbench", "",
        "> Compares text representations: same data, same protocols, every number explained; checks published figures.",
        "",
    ]  # fmt: skip
    for title, what in NAV:
        own = [(title, what)] if isinstance(what, str) else what
        lines += [f"## {title}", ""]
        lines += [
            f"- [{name}]({place}{at}): {_first(pages / at)}" for name, at in own if (pages / at).exists()
        ]
        lines += [""]
    return "\n".join(lines).replace("\n\n\n", "\n\n")


def _first(path: Path) -> str:
    """Return a page's first sentence."""
    text = FENCE.sub("", path.read_text("utf-8"))
    paragraphs = [
        p for p in text.split("\n\n") if p.strip() and not p.lstrip().startswith(("#", "<", "|", "!", "-"))
    ]
    words = " ".join(paragraphs[0].split()) if paragraphs else ""
    return re.split(r"(?<=[.:])\s", LINK.sub(r"\2", words), maxsplit=1)[0]
