"""Whether the linear probe favours sparse features: by hand, at its limits, and in the report's section."""

import csv
from pathlib import Path
from typing import Any

import pytest

from tests import made_runs
from textbench.flows.report import chapters, probes, recorded
from textbench.flows.report.evidence import gather
from textbench.flows.results.index import Index

TARGET = [0, 1] * 100
# Right answers of 200, by representation and probe.
RIGHT = {
    ("tfidf", "linear-svm"): 180,
    ("lsi", "linear-svm"): 140,
    ("avgvec", "linear-svm"): 180,
    ("tfidf", "neighbours"): 120,
    ("lsi", "neighbours"): 140,
    ("avgvec", "neighbours"): 120,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probes")
    for (method, probe), n_right in RIGHT.items():
        predicted = [one if place < n_right else 1 - one for place, one in enumerate(TARGET)]
        made_runs.one_label(
            folder, "made-a", method, TARGET, predicted, probe=probe, request={"probe": probe}
        )
    return folder


def by_name(home: Path, row: Any) -> bool:
    return bool(row["method"] == "tfidf")


def test_an_interaction_is_the_difference_of_both_leads(home: Path) -> None:
    found = {one.dense: one for one in probes.interactions(home, Index(home).rows(), by_name)}
    assert found.keys() == {"lsi", "avgvec"}
    lsi = found["lsi"]
    assert (lsi.sparse, lsi.probe, lsi.metric) == ("tfidf", "neighbours", "accuracy")
    assert (lsi.linear_lead, lsi.other_lead) == pytest.approx((0.2, -0.1))
    assert lsi.gap.value == pytest.approx(0.3)
    assert lsi.gap.low < 0.3 < lsi.gap.high and lsi.p < 0.01
    # Both have the same answers under each probe: nothing can favour one of them.
    alike = found["avgvec"]
    assert (alike.gap.value, alike.gap.low, alike.gap.high, alike.p) == (0, 0, 0, 1)
    assert "favours the sparse one in 1 and the dense one in 0" in probes.answer([lsi, alike])


def test_what_is_not_known_to_be_sparse_or_dense_and_single_probes_are_left_out(home: Path) -> None:
    rows = Index(home).rows()
    assert probes.interactions(home, rows) == []  # these runs have no features
    assert probes.interactions(home, [row for row in rows if row["probe"] == "linear-svm"], by_name) == []
    assert probes.interactions(home, [row for row in rows if row["method"] != "tfidf"], by_name) == []


def test_what_is_recorded_is_read_as_it_was_found(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raw p are kept, and corrected over all that is there; the report has them with the claims."""
    made_runs.empty_record(monkeypatch, tmp_path)
    told, evidence = probes.interactions, gather(home)
    assert probes.read() == []
    monkeypatch.setattr(recorded, "may_record", lambda row: row["method"] != "tfidf")
    assert probes.record(evidence) == 0
    monkeypatch.setattr(recorded, "may_record", lambda row: True)
    monkeypatch.setattr(probes, "interactions", lambda home, rows: told(home, rows, by_name))
    assert probes.record(evidence) == probes.record(evidence) == 2
    kept, found = (
        {one.dense: one for one in of} for of in (probes.read(), probes.interactions(home, evidence.rows))
    )
    assert kept.keys() == found.keys() == {"lsi", "avgvec"}
    assert [len(kept["lsi"].seeds), len(kept["lsi"].cells)] == [1, 4]
    (line,) = [row for row in csv.DictReader(recorded.OF_PROBES.open()) if row["dense"] == "lsi"]
    asked = "textbench run -d made-a -m tfidf -m lsi --protocol honest --seed 0 --probe"
    assert line["command"] == f"{asked} linear-svm && {asked} neighbours"
    for name, one in kept.items():
        assert one.p == pytest.approx(found[name].p, rel=1e-5)
        assert one.gap.p == pytest.approx(found[name].gap.p, rel=1e-5)
        assert (one.linear_lead, one.gap.value) == pytest.approx(
            (found[name].linear_lead, found[name].gap.value)
        )
    (section,) = chapters._sure(gather(tmp_path), [], with_all=True).sections
    assert section.lines == [probes.answer(list(kept.values()))]
    assert chapters._sure(gather(tmp_path), [], with_all=False).sections == []


def test_the_report_answers_where_both_probes_were_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence, told = gather(home), probes.interactions
    monkeypatch.setattr(probes, "interactions", lambda home, rows: told(home, rows, by_name))
    (section,) = [s for c in chapters.chapters(evidence) for s in c.sections if s.name == "probes"]
    assert section.title == "Does the linear probe favour sparse features?"
    (table,) = section.tables
    assert [row[3].text for row in table.rows] == ["lsi", "avgvec"]
    assert table.rows[0][7].value == pytest.approx(0.3)
    assert [row[7].is_strong for row in table.rows] == [True, False]
