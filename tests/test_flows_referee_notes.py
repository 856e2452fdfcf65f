"""Notes of the ledger: each is about claims there are, its figures agree with one another, and bad ones are refused."""

import re
from itertools import accumulate
from pathlib import Path

import pytest

from textbench.evaluation.claims.published import read_claims
from textbench.evaluation.claims.verdicts import Verdict
from textbench.flows.plan.papers import FOLDER
from textbench.flows.referee.explanation import explain
from textbench.flows.referee.ledger import LedgerEntry
from textbench.flows.referee.notes import Note, notes_on, read_notes
from textbench.flows.report.papers import origins
from textbench.tasks import InputError

NOTES = [note for path in sorted(FOLDER.glob("*/notes.yaml")) for note in read_notes(path)]


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.about)
def test_a_note_is_about_claims_and_adds_up(note: Note) -> None:
    assert any(note.is_about(claim.id) for claim in read_claims())
    for experiment in note.experiments:
        known = [figure.value for figure in experiment.figures if figure.value is not None]
        for figure in experiment.figures:
            if figure.value is not None and figure.worth is not None:
                # Both are rounded as they were written down.
                assert any(figure.worth == pytest.approx(figure.value - other, abs=0.011) for other in known)


def test_a_row_whose_method_or_settings_are_not_known_is_not_judged_by_its_figure() -> None:
    """A copied row, or a method that is a reconstruction."""
    doubted = [
        claim
        for note in NOTES
        for claim in read_claims()
        if note.is_about(claim.id) and claim.printed
        if note.certainty or note.origin.startswith(("copied", "a copy"))
    ]
    assert {claim.method for claim in doubted} >= {
        "NTSG-1",
        "LTSG",
        "WTM",
        "TV+MeanWV",
        "TWE-1",
        "LDA",
        "DRBM",
    }
    assert [claim.id for claim in doubted if not claim.unstated] == []
    # "Reported results", in SCDV's words, whose source is not known.
    reported = ("w2v-LDA", "lda2vec", "MvTM")
    assert all(c.unstated for c in read_claims() if (c.place, c.method in reported) == ("table-1", True))


def _with_those_before(before: str, settings: str) -> str:
    return f"{settings}; {before}" if settings.startswith("the same") else settings


def test_a_gap_that_is_called_explained_is_closed_by_one_yardstick() -> None:
    """Where one further run may lie is granted, which no mean's own interval says, to figures of the same metric."""
    called = [note for note in NOTES if re.search("Explained|explains the gap", note.text)]
    assert called
    for note in called:
        claims = [c for c in read_claims() if note.is_about(c.id) and c.printed]
        settings = accumulate((one.settings for one in note.experiments), _with_those_before)
        reached = [
            abs(figure.value - claim.printed.value) <= (figure.half_width or 0.0) + claim.printed.half_width
            for own, one in zip(settings, note.experiments, strict=True)
            if "of one further" in own
            for figure in one.figures
            if figure.value is not None and not figure.change.startswith("as here")
            for claim in claims
            if claim.printed and one.of.startswith(f"{claim.metric},")
        ]
        assert any(reached), f"{note.about}: no change brings the published figure inside an interval"


def test_no_claim_has_two_notes_under_one_name() -> None:
    """YAML takes the last of two keys alike and says nothing."""
    for path in FOLDER.glob("*/notes.yaml"):
        keys = [line for line in path.read_text("utf-8").splitlines() if line[:1] not in ("", " ", "#", "-")]
        assert len(keys) == len(set(keys)) == len(read_notes(path))


def test_notes_on_a_claim_begin_with_those_on_most() -> None:
    found = [note.about for note in notes_on("scdv-2017/table-1/scdv/accuracy")]
    assert "scdv-2017/table-1/scdv" in found
    assert found == sorted(found, key=lambda about: about.count("/"))
    assert not Note("scdv-2017/table-1/scdv", "").is_about("scdv-2017/table-1/scdv2/accuracy")


def test_where_figures_come_from_is_told() -> None:
    """By the table of the report, of the claims that are asked for alone, and by the explanation of a claim."""
    entries = [
        LedgerEntry(claim, Verdict("not yet run", ""), None, None)
        for claim in read_claims()
        if claim.place == "table-1" and claim.method in ("WTM", "MvTM", "SCDV", "weight-BoC")
    ]
    told = {row[0].text: [datum.text for datum in row[1:]] for row in origins(entries).rows}
    assert told.keys() == {f"scdv-2017/table-1/{row}" for row in ("wtm", "mvtm", "scdv")}
    assert told["scdv-2017/table-1/scdv"][0] == "own run"
    assert told["scdv-2017/table-1/mvtm"] == ["a copy of another row", "no figure of its own"]
    of_wtm = next(entry for entry in entries if entry.claim.method == "WTM")
    said = dict(explain(of_wtm))["note on scdv-2017/table-1/wtm"]
    assert "certainty: reconstruction" in said and any(line.startswith("origin: copied") for line in said)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a/b: text", "a/b.text: Field required"),
        ("a/b: {text: x, experiment: []}", "a/b.experiment: Unexpected keyword argument, got []"),
        ("a/b: {text: x, experiments: [{settings: s, of: o}]}", "a/b.experiments.0.figures: Field required"),
        (
            "a/b: {text: x, experiments: [{settings: s, of: o, figures: [{change: c, value: many}]}]}",
            "figures.0.value: Input should be a valid number, unable to parse string as a number, got 'many'",
        ),
        ("- a", "must hold `key: value` lines"),
    ],
)
def test_what_is_no_note_is_refused_in_a_line(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=r"notes\.yaml") as caught:
        read_notes(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
