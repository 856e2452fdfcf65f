"""What a paper's suite shows: the exhibits hold the figures of the cells, say what is missing, and reach people."""

import csv
import importlib
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from textbench.flows import papers
from textbench.flows.cli import app
from textbench.flows.papers import Done, Exhibit, done, exhibits, show
from textbench.flows.papers.dcot import exhibits as dcot
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import Request
from textbench.flows.plan.suites import Part, suites
from textbench.flows.plots import style
from textbench.flows.results.rows import row
from textbench.tasks import InputError
from textbench.tasks.storage.files import write_json
from textbench.tasks.storage.store import Store

T_4, T_2 = 2.7764451052, 4.3026527297  # Student's t at 97.5 percent, of five draws and of three seeds


def accuracy(cell: Cell) -> float:
    """A made figure that differs with method, settings, labels and draw; highest at noise 0.7 and depth 2."""
    labels = cell.request.labels
    noise = float((re.findall(r"noise=([\d.]+)", cell.method) or [0])[0])
    depth = int((re.findall(r"n_layers=(\d)", cell.method) or [0])[0])
    draw, budget = labels.get("draw", 0), labels.get("budget", 0)
    return 0.8 - 0.1 * (noise - 0.7) ** 2 - 0.01 * abs(depth - 2) + 0.001 * draw**2 + budget / 1e5


def finish(home: Path, cells: Sequence[Cell], *, key: str = "", **others: Any) -> None:
    """Put rows of cells into the index of a results folder, under their own keys or those that begin with `key`."""
    for place, cell in enumerate(cells):
        timed = not cell.request.labels
        seconds = {"featurize": {"lda": 9.0 + cell.seed, "dcot": 7.0}.get(cell.method, 0.5), "evaluate": 1.0}
        record = row(cell) | {
            "metrics": {"accuracy": accuracy(cell)}, "seconds": seconds, "peak_mb": 1.0,
            "attempt": "1" if timed else "", "timed": timed, "tracking_uri": "", "sweeps": ["dcot-0a1b2c3d"],
            "created": 1.0 + place, "request": asdict(cell.request),
        }  # fmt: skip
        write_json(home / "index" / f"{key + str(place) if key else cell.key}.json", record | others)


@pytest.fixture(scope="module", autouse=True)
def planned_once() -> Iterator[None]:
    """Keep what is planned: the keys of 600 cells take seconds."""
    known: dict[str, list[Cell]] = {}

    def kept(function: Callable[..., list[Cell]]) -> Callable[..., list[Cell]]:
        def planned(*arguments: Any, **options: Any) -> list[Cell]:
            asked = repr((function.__name__, arguments, options))
            if asked not in known:
                known[asked] = function(*arguments, **options)
            return known[asked]

        return planned

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("textbench.flows.papers.plan", kept(plan))
        yield


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Done]:
    """The parts of the suite, all cells finished."""
    home = tmp_path_factory.mktemp("whole")
    for part in done(home, "dcot"):
        finish(home, part.cells)
    return done(home, "dcot")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, parts: list[Done]) -> Path:
    """A results folder with a few cells of each part."""
    folder = tmp_path_factory.mktemp("some")
    for part in parts:
        finish(folder, part.cells[:50])
    return folder


def cut(part: Done, keep: Callable[[Cell], bool]) -> Done:
    return replace(part, found=[(cell, record) for cell, record in part.found if keep(cell)])


def columns(exhibit: Exhibit | None, *names: str) -> list[tuple[Any, ...]]:
    assert exhibit is not None
    places = [list(exhibit.header).index(name) for name in names]
    return [tuple(line[place] for place in places) for line in exhibit.rows]


def picture(exhibit: Exhibit | None, folder: Path) -> str:
    """Return a picture's texts, a line each, after checking that it is well-formed SVG."""
    assert exhibit is not None and exhibit.draw is not None
    file = folder / "x.svg"
    exhibit.draw(file)
    root = ElementTree.fromstring(file.read_text("utf-8"))
    return "\n".join("".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text"))


def test_every_module_is_a_suite_and_others_show_nothing(tmp_path: Path) -> None:
    folder = Path(papers.__file__).parent
    names = {path.parent.name.replace("_", "-") for path in folder.glob("*/exhibits.py")}
    assert "dcot" in names
    assert names <= suites().keys()
    assert exhibits(tmp_path, "quick") == []
    assert show(tmp_path, "quick") == []
    assert not (tmp_path / "suites").exists()


def test_nothing_is_shown_of_cells_that_were_not_run(tmp_path: Path) -> None:
    assert exhibits(tmp_path, "dcot") == []


def test_exhibits_are_of_the_parts_they_name(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that is put before the others, or a name given to none, moves no exhibit to another part."""
    from textbench.flows.plan import suites as module

    before = [(exhibit.name, exhibit.rows) for exhibit in exhibits(home, "dcot")]
    text = (module.FOLDER / "dcot.yaml").read_text("utf-8")
    added = "parts:\n  - datasets: [r8]\n    methods: [nb]\n"
    (tmp_path / "dcot.yaml").write_text(text.replace("parts:\n", added), "utf-8")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    assert len(module.parts("dcot")) == 6
    assert [(exhibit.name, exhibit.rows) for exhibit in exhibits(home, "dcot")] == before
    assert before


def test_two_parts_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from textbench.flows.plan import suites as module

    part = "  - {name: twin, datasets: [r8], methods: [nb]}\n"
    (tmp_path / "two.yaml").write_text(f"parts:\n{part}{part}")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    with pytest.raises(InputError, match=r"two.yaml: a part's name must be its own, got 'twin' twice"):
        module.parts("two")


def test_seconds_stand_beside_the_published_ones(parts: list[Done], tmp_path: Path) -> None:
    table = dcot.table_1(parts[0])
    assert columns(table, "method", "published seconds", "published, times dCoT's") == [
        ("counts", None, None),
        ("tfidf", 1, 0.00833),
        ("lsi", 3060, 25.5),
        ("lda", 11400, 95),
        ("dcot", 120, 1),
    ]
    measured = columns(table, "measured seconds", "timings", "measured, times dCoT's")
    assert measured[3:] == [(10.0, 3, 1.43), (7.0, 1, 1.0)]
    # LDA's seeds took 9, 10 and 11 seconds; what draws nothing is one artifact, timed once, and has no interval.
    half = T_2 * stdev([9, 10, 11]) / math.sqrt(3)
    assert columns(table, "from", "to")[3] == (round(10 - half, 3), round(10 + half, 3))
    assert columns(table, "from", "to")[4] == (None, None)
    drawn = picture(table, tmp_path)
    assert {"51 min", "3 h 10 min", "2 min", "10 s", "7 s"} <= set(drawn.splitlines())


def test_untimed_cells_have_no_seconds_to_publish(parts: list[Done]) -> None:
    untimed = replace(parts[0], found=[(cell, r | {"timed": False}) for cell, r in parts[0].found])
    assert dcot.table_1(untimed) is None
    others = [(cell, r | ({"attempt": "2"} if cell.method == "lda" else {})) for cell, r in parts[0].found]
    table = dcot.table_1(replace(parts[0], found=others))
    assert table is not None and "From 2 timed runs, not one." in table.caption


def test_the_grid_is_the_mean_over_draws(parts: list[Done], tmp_path: Path) -> None:
    exhibit = dcot.figure_3(parts[1], parts[2])
    lines = {line[1:3]: line[3:] for line in columns(exhibit, *exhibit.header)} if exhibit else {}
    assert len(lines) == 9 * 5 + 1  # the two references have neither noise nor layers
    values = [80 - 10 * (0.3 - 0.7) ** 2 - 2 + 0.1 * draw**2 + 1 for draw in range(5)]
    half = T_4 * stdev(values) / math.sqrt(5)
    wanted = (mean(values), mean(values) - half, mean(values) + half, 5)
    assert lines[0.3, 4] == pytest.approx(wanted, abs=1e-3)
    assert exhibit is not None
    assert "The highest is 81.6 (noise 70 %, depth 2)" in exhibit.caption
    assert (
        "Dashed: counts and tfidf with as many labels, over 20 draws, tuned over 4 settings."
        in exhibit.caption
    )
    assert "finished so far" not in exhibit.caption
    drawn = picture(exhibit, tmp_path).splitlines()
    figures = [f"{line[0]:.1f}" for place, line in lines.items() if place != (None, None)]
    assert sorted(set(figures) - set(drawn)) == []
    assert {"1 layer", "5 layers", "counts", "tfidf"} <= set(drawn)


def test_settings_are_compared_on_the_draws_that_all_have(parts: list[Done]) -> None:
    def first_or_early(cell: Cell) -> bool:
        return cell.request.labels["draw"] == 0 or "noise=0.1" in cell.method

    some = cut(parts[1], first_or_early)
    exhibit = dcot.figure_3(some, cut(parts[2], lambda cell: False))
    assert {line[0] for line in columns(exhibit, "draws")} == {1}
    assert columns(exhibit, "from")[0] == (None,)
    assert exhibit is not None and "the mean over 1 draw of labels" in exhibit.caption
    assert f"{len(some.found)} of 225 cells are finished so far." in exhibit.caption
    assert "Dashed" not in exhibit.caption


def test_curves_have_every_method_and_what_the_paper_says(parts: list[Done], tmp_path: Path) -> None:
    exhibit = dcot.figure_4(parts[2], parts[3])
    places = columns(exhibit, "method", "labels")
    methods = ["counts", "tfidf", "lsi", "lda", "dcot", "msda", "sda"]
    assert places == [(method, budget) for method in methods for budget in range(500, 5501, 500)]
    last = dict(zip(places, columns(exhibit, "accuracy, percent", "draws"), strict=True))["dcot", 5500]
    assert last == (round(80 - 4.9 - 2 + mean(0.1 * draw**2 for draw in range(20)) + 5.5, 3), 20)
    assert exhibit is not None
    assert "“dCoT > LSI, LDA, TF-IDF, BoW at 500..5500 labels”" in exhibit.caption
    assert "textbench claims dcot-2012/figure-4" in exhibit.caption
    assert "the mean over 20 draws of labels" in exhibit.caption
    assert set(methods) <= set(picture(exhibit, tmp_path).splitlines())


def test_what_the_paper_has_no_curve_of_is_drawn_and_not_tested(parts: list[Done]) -> None:
    """A competitor that is far ahead changes no sentence on the paper's five methods."""
    ahead = [(cell, r | {"metrics": {"accuracy": 0.99}}) for cell, r in parts[3].found]
    exhibit, before = (
        dcot.figure_4(parts[2], replace(parts[3], found=found)) for found in (ahead, parts[3].found)
    )
    assert exhibit is not None and before is not None
    assert exhibit.caption == before.caption
    assert "Not in the paper, and not tested: msda, sda, over 5 draws." in exhibit.caption
    assert " is best" in exhibit.caption and "msda is best" not in exhibit.caption
    assert (99.0,) in columns(exhibit, "accuracy, percent")
    alone = dcot.figure_4(parts[2], cut(parts[3], lambda cell: False))
    assert alone is not None and "not tested" not in alone.caption


def test_curves_with_some_cells_show_these(parts: list[Done]) -> None:
    none = cut(parts[3], lambda cell: False)
    some = cut(parts[2], lambda cell: cell.method == "lsi" and cell.request.labels["budget"] <= 1000)
    exhibit = dcot.figure_4(some, none)
    assert columns(exhibit, "method", "labels", "draws") == [("lsi", 500, 20), ("lsi", 1000, 20)]
    assert exhibit is not None and exhibit.caption.endswith("40 of 1100 cells are finished so far.")
    assert dcot.figure_4(cut(parts[2], lambda cell: False), parts[3]) is None
    assert dcot.figure_3(cut(parts[1], lambda cell: False), parts[2]) is None


def test_what_is_not_in_the_paper_is_a_table_of_its_own(parts: list[Done]) -> None:
    exhibit = dcot.beyond(parts[4])
    assert exhibit is not None and exhibit.draw is None
    places = columns(exhibit, "data set", "labels", "draws")
    n_draws = len({cell.request.labels["draw"] for cell in parts[4].cells})
    assert len(places) == len(parts[4].cells) / n_draws
    assert {place[2] for place in places} == {n_draws}
    assert {place[0] for place in places} == {"reuters65", "r52"}
    assert all(name in exhibit.caption for name in ("reuters65: 500 to 1,000 labels", "honest protocol"))
    assert dcot.beyond(cut(parts[4], lambda cell: False)) is None


def test_rows_of_earlier_code_are_used_and_named(tmp_path: Path, parts: list[Done]) -> None:
    cells = parts[1].cells
    finish(tmp_path, cells[:3], key="0ld")
    finish(tmp_path, cells[2:4])
    finish(tmp_path, cells[:1], key="1ater", created=9.0, metrics={"accuracy": 0.5})
    found = done(tmp_path, "dcot")[1]
    assert [cell.key for cell, _ in found.found] == [cell.key for cell in cells[:4]]
    assert found.n_earlier == 2
    assert found.found[0][1]["metrics"]["accuracy"] == 0.5  # of equal requests the newest
    assert found.remarks == " 4 of 225 cells are finished so far. Cells that earlier code ran: 2."
    assert found.rows[0]["labels"] == {"budget": 1000, "draw": 0, "stratified": False}


def test_the_published_columns_have_ten_terms_each() -> None:
    assert {len(text.split()) for text in (dcot.PRINTED_EMPTY, *dcot.PRINTED.values())} == {dcot.N_TERMS}


def test_words_are_reconstructed_by_the_stored_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On R8: what the paper has for a word is marked, and a word that no document has is named and left out."""
    monkeypatch.setattr(
        dcot,
        "PRINTED",
        {"wheat": "grain tonnes agriculture department zz zz zz zz zz zz", "budapesti": "bank"},
    )
    request = Request(["r8"], ["dcot(n_layers=1)"], rule="letters-stop-stem")
    cells = plan(request)
    part = Done(Part(request), cells, [])
    assert dcot.figure_2(tmp_path, part) is None
    Store(tmp_path / "store", isolated=False).ensure(cells[0].references["featurize"])
    exhibit = dcot.figure_2(tmp_path, part)
    assert exhibit is not None
    assert "prototypes 1000, layers 1, noise 0.8" in exhibit.caption
    assert "no document of r8 as it is here has them: budapesti." in exhibit.caption
    lines = columns(exhibit, "document", "measured", "in the paper's column")
    assert dict.fromkeys(line[0] for line in lines).keys() == {"(empty document)", "wheat"}
    drawn = picture(exhibit, tmp_path).splitlines()
    terms = [text.removeprefix("• ") for text in drawn]
    assert {line[1] for line in lines} <= set(terms)
    marked = {text.removeprefix("• ") for text in drawn if text.startswith("• ")}
    stems = {"grain", "tonn", "agricultur", "depart"}
    empty = {"year", "billion", "dlr", "mln", "share", "market", "bank", "interest", "price", "debt"}
    of_wheat = {line[1] for line in lines if line[0] == "wheat"} & stems
    of_empty = {line[1] for line in lines if line[0] == "(empty document)"} & empty
    assert of_wheat
    assert marked == of_wheat | of_empty
    assert f"{len(of_wheat) + len(of_empty)} of its 14 terms." in exhibit.caption


def test_files_are_written_named_and_logged_once(home: Path) -> None:
    from textbench.tasks.tracking.tracker import Tracker, read_settings

    folder = home / "suites" / "dcot"
    folder.mkdir(parents=True)
    (folder / "figure-9.svg").write_text("<svg/>")
    first = show(home, "dcot")
    names = {f"{name}.{ending}" for name in ("table-1", "figure-3", "figure-4") for ending in ("svg", "csv")}
    names.add("beyond.csv")
    assert {path.name for path in folder.iterdir()} == names | {"captions.md", "mlflow.json"}
    assert all(any(f"{folder / name} " in line for line in first) for name in names)
    made = {exhibit.name: exhibit for exhibit in exhibits(home, "dcot")}
    with (folder / "figure-3.csv").open(newline="") as stream:
        lines = list(csv.reader(stream))
    assert lines[0] == list(made["figure-3"].header)
    assert len(lines) == 1 + len(made["figure-3"].rows)
    assert made["figure-3"].caption in (folder / "captions.md").read_text("utf-8")

    tracker = Tracker(read_settings(home))
    run_id = first[-1].removesuffix(".").rpartition(" ")[2]
    run = tracker.client.get_run(run_id)
    assert (run.info.run_name, run.data.tags["kind"], run.info.status) == ("suite dcot", "suite", "FINISHED")
    assert {file.path for file in tracker.client.list_artifacts(run_id)} == names | {"captions.md"}
    assert tracker.runs() == []  # it is no cell of the leaderboard
    assert show(home, "dcot")[-1] == f"MLflow has them as run {run_id}."


def test_without_mlflow_the_files_are_there_all_the_same(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    (tmp_path / "index").symlink_to(home / "index")
    assert show(tmp_path, "dcot")[-1].startswith("Not logged to MLflow: the MLflow server at")
    assert (tmp_path / "suites" / "dcot" / "figure-4.svg").exists()


def test_a_suite_ends_with_what_its_paper_shows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from textbench.flows.plan.suites import parts
    from textbench.flows.run import preflight

    sweep = importlib.import_module("textbench.flows.cli.run")  # the package has a function of that name
    monkeypatch.setattr(sweep, "run_request", lambda *_: 0)
    monkeypatch.setattr(sweep, "print_plan", lambda *_: None)
    monkeypatch.setattr(preflight, "checked_curves", lambda home, request, **_: request)
    monkeypatch.setattr(preflight, "require_data", lambda *_, **__: None)
    monkeypatch.setattr(papers, "show", lambda home, suite: [f"{home / suite}"])
    whole = parts("dcot")
    assert sweep.run_suite(tmp_path, whole, False, False) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'dcot'}\n"
    sweep.run_suite(tmp_path, whole, False, True)
    out, told = capsys.readouterr()
    assert (out, told.splitlines()[-1]) == ("", f"{tmp_path / 'dcot'}")
    sweep.run_suite(tmp_path, whole, True, False)
    out, told = capsys.readouterr()
    assert str(tmp_path) not in out + told


def test_one_part_of_a_suite_can_be_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from textbench.flows.plan.suites import parts
    from textbench.flows.run import preflight

    sweep, ran = importlib.import_module("textbench.flows.cli.run"), []
    monkeypatch.setattr(sweep, "run_request", lambda home, request, *_: ran.append(request) or 0)
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    monkeypatch.setattr(preflight, "checked_curves", lambda home, request, **_: request)
    monkeypatch.setattr(papers, "show", lambda home, suite: [f"{home / suite}"])
    grid = parts("dcot")[1]
    for which in ("2", "grid"):
        result = CliRunner().invoke(app, ["run", "dcot", "--part", which])
        assert result.exit_code == 0, result.output
        assert [request.methods for request in ran] == [grid.request.methods]
        assert ran.pop().budgets == [1000]
        assert f"{tmp_path / 'dcot'}" in result.output
    for arguments, words in (
        (("dcot", "--part", "gird"), "there is no part 'gird'; did you mean grid?"),
        (("dcot", "--part", "6"), "there is no part '6'"),
        (("quick", "--part", "1"), "quick has no parts; leave out --part"),
    ):
        assert words in str(CliRunner().invoke(app, ["run", *arguments]).exception)
    assert ran == []


def test_the_report_shows_them_in_the_colours_of_the_page(home: Path) -> None:
    from textbench.flows.report import exhibits as chapter
    from textbench.flows.report.evidence import gather
    from textbench.flows.tables.formats import to_csv

    (found,) = chapter.shown(gather(home))
    assert found.suite == "dcot"
    assert [one.name for one in found.figures] == [
        f"fig-dcot-{name}" for name in ("table-1", "figure-3", "figure-4")
    ]
    for figure in found.figures:
        svg = ElementTree.fromstring(figure.svg)
        assert svg.get("role") == "img"
        plain = re.sub(r"var\(--\w+, #[0-9a-f]{6}\)", "", figure.svg, flags=re.IGNORECASE)
        assert re.findall(r"#[0-9a-f]{6}\b", plain, re.IGNORECASE) == []
        assert all(id_.startswith(figure.name) for id_ in re.findall(r'\bid="([^"]+)"', figure.svg))
    by_name = {table.name: table for table in found.tables}
    made = {exhibit.name: exhibit for exhibit in exhibits(home, "dcot")}
    lines = list(csv.reader(io.StringIO(to_csv(by_name["dcot-figure-4"]))))
    assert lines[0] == list(made["figure-4"].header)
    assert [float(line[2]) for line in lines[1:]] == [line[2] for line in made["figure-4"].rows]
    assert by_name["dcot-table-1"].rows[0][1].text == "-"


def test_the_report_asks_no_suite_that_was_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from textbench.flows.report import exhibits as chapter
    from textbench.flows.report.evidence import gather

    monkeypatch.setattr(chapter, "exhibits", lambda home, suite: pytest.fail("asked"))
    assert chapter.shown(gather(tmp_path)) == []


def test_the_report_asks_the_suite_whose_paper_a_run_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from textbench.flows.report import exhibits as chapter
    from textbench.flows.report.evidence import gather

    asked: list[str] = []
    monkeypatch.setattr(chapter, "exhibits", lambda home, suite: asked.append(suite) or [])
    finish(tmp_path, plan(Request(["20ng"], ["tfidf"], [0])), sweeps=[])
    assert chapter.shown(gather(tmp_path)) == []
    finish(tmp_path, plan(Request(["20ng"], ["tfidf"], [0], "faithful", paper="scdv-2017")), sweeps=[])
    assert chapter.shown(gather(tmp_path)) == []
    assert asked == ["scdv"]


def test_a_written_figure_becomes_the_element_that_a_drawn_one_is(tmp_path: Path) -> None:
    def line(svg: str) -> list[str]:
        return re.findall(r'<path d="([^"]+)"[^>]*var\(--c0', svg)

    with style.canvas(2.0) as (figure, axis):
        axis.plot([1, 2], [1, 2], color=style.OTHER)
        drawn = style.inline(figure, "fig-x", "title", "words")
        style.save(figure, tmp_path / "x.svg")
    written = style.element((tmp_path / "x.svg").read_text("utf-8"), "fig-x", "title", "words")
    assert len(line(drawn)) == 1
    assert line(written) == line(drawn)
    assert "var(--paper, #ffffff)" in written  # a page in the dark has a dark ground
