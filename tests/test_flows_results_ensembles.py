"""Ensembles of finished runs: who can be a member, what is said of who cannot, and whether chance explains the gain."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import textbench as tb
from textbench.evaluation.metrics.calibration import PROBABILITIES
from textbench.evaluation.statistics.significance import Difference
from textbench.flows.report import probabilities
from textbench.flows.report.boards import boards
from textbench.flows.report.chapters import chapters
from textbench.flows.report.evidence import gather
from textbench.flows.results import calibrated
from textbench.flows.results.ensembles import Contribution, Ensembles, as_json, best_of, tables
from textbench.flows.results.index import Index

RNG = random.Random(0)
TEXTS = [f"w{RNG.randrange(9)} {'apple' if i % 2 else 'iron'} w{RNG.randrange(5)}" for i in range(48)]
DATA = TEXTS, ["ab"[i % 2] for i in range(48)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ensembles")
    tb.run(DATA, ["tfidf", "nb"], home=folder, progress=False)
    tb.run(DATA, "nb", rule="letters", home=folder, progress=False)
    tb.run(DATA, "nmf", seeds=[7], home=folder, progress=False)
    tb.run(DATA, "complement-nb", trials=1, home=folder, progress=False)
    tb.run(DATA, "counts", seeds=[5], rule="letters", home=folder, progress=False)
    tb.run(DATA, "counts", trials=1, home=folder, progress=False)
    return folder


def members(home: Path, *methods: str) -> list[str]:
    found = tb.ensemble("data", methods, home=home, progress=False)
    return [str(one) for one in found.members()["member"]]


def test_members_are_asked_for_as_they_are_shown(home: Path) -> None:
    assert members(home) == members(home, "nb", "tfidf") == ["nb", "nb@letters", "tfidf"]
    assert members(home, "tfidf", "nb@letters") == ["nb@letters", "tfidf"]
    # The rule of own documents is words: nb is nb@words.
    assert members(home, "tfidf", "nb@words") == ["nb", "tfidf"]


@pytest.mark.parametrize(
    ("methods", "reason"),
    [
        (
            ["tfidf"],
            "at least two methods that were run alike on data .* got tfidf; run some with: textbench run",
        ),
        (["tfidf", "nbb"], "there is no method 'nbb'; did you mean nb?"),
        (["tfidf", "knn"], "knn has not been run on data .* -m knn --protocol honest$"),
        (
            ["tfidf", "nb", "nmf"],
            "nmf cannot be a member beside nb, nb@letters, tfidf: it ran with seed 7, where the others share 0; "
            "run all of them alike, .*, such as: textbench run .* -m nmf --protocol honest$",
        ),
        (
            ["tfidf", "nb@letters", "counts@letters"],
            "counts@letters cannot be a member beside nb@letters, tfidf: it ran with seed 5, where .* -m counts "
            "--protocol honest --rule letters$",
        ),
        (
            ["tfidf", "nb", "complement-nb"],
            "beside nb, nb@letters, tfidf: it was tuned, or its probe chosen, in another",
        ),
        (
            ["tfidf", "nb@words-punctuation"],
            "nb@words-punctuation has not been run on data .* -m nb --protocol honest --rule words-punctuation$",
        ),
    ],
)
def test_who_cannot_be_a_member_is_told_what_to_run(home: Path, methods: list[str], reason: str) -> None:
    with pytest.raises(tb.InputError, match=reason):
        tb.ensemble("data", methods, home=home, progress=False)


def test_who_is_left_out_unasked_is_told(home: Path) -> None:
    found = tb.ensemble("data", home=home, progress=False)
    assert as_json(found.found)["left_out"] == {
        "complement-nb": "was tuned, or its probe chosen, in another way",
        "counts": "was tuned, or its probe chosen, in another way",
        "counts@letters": "ran with seed 5, where the others share 0",
        "nmf": "ran with seed 7, where the others share 0",
    }
    note = tables(found.found)[0].note
    assert (
        "Left out: complement-nb, which was tuned, or its probe chosen, in another way; counts, which was"
        in note
    )


def test_those_tuned_in_one_way_can_be_asked_for(home: Path) -> None:
    tb.run(DATA, "nb", trials=1, home=home, progress=False)
    tuned = tb.ensemble("data", trials=1, home=home, progress=False).found
    assert [one.member for one in tuned.members] == ["complement-nb", "counts", "nb"]
    left = tuned.left_out
    assert (
        left["nb (0 trials, its own probe)"]
        == left["tfidf"]
        == "was tuned, or its probe chosen, in another way"
    )
    told = tb.ensemble("data", ["nb", "tfidf"], home=home, progress=False).found
    assert told.left_out == {"nb (1 trial, its own probe)": left["tfidf"]}


def test_of_members_that_are_equally_good_out_of_fold_the_hardest_to_beat_is_the_best() -> None:
    def member(name: str, quality: float, test: float) -> Contribution:
        return Contribution(name, {}, quality, 0.0, test, {})

    first, second, worse = member("a", 0.57, 0.60), member("b", 0.57 + 1e-9, 0.67), member("c", 0.56, 0.99)
    assert best_of([first, second, worse]) is best_of([second, worse, first]) is second


def test_that_others_are_as_good_out_of_fold_as_the_best_member_is_said(home: Path) -> None:
    found = tb.ensemble("data", ["tfidf", "nb"], home=home, progress=False).found
    best, other = found.best, next(one for one in found.members if one is not found.best)
    tied = replace(found, members=[best, replace(other, quality=best.quality)]).verdict
    apart = replace(found, members=[best, replace(other, quality=best.quality - 0.1)]).verdict
    said = f"{best.member} as the best member"
    assert f"{said} (of 2 that are equal the best on test documents). The" in tied and f"{said}. The" in apart


def test_what_a_tuned_member_took_has_its_features_in_it(tmp_path: Path) -> None:
    """An ensemble's seconds are those of its members' runs, what they share counted once, and its own."""
    tb.run(DATA, ["tfidf", "nmf(n_topics=2)"], trials=1, home=tmp_path, progress=False)
    tb.ensemble("data", home=tmp_path, progress=False)
    greedy, *rest = [row for row in Index(tmp_path).rows() if "weights" not in row["method"]]
    rows = [row for row in (greedy, *rest) if not row["method"].startswith("ensemble")]
    (made,) = [row for row in (greedy, *rest) if row not in rows]
    featurized = [row["seconds"]["featurize"] for row in rows]
    assert len(featurized) == 2 and made["seconds"]["featurize"] == pytest.approx(sum(featurized), abs=2e-3)
    assert made["peak_mb"] >= max(row["peak_mb"] for row in rows)


@pytest.mark.parametrize(
    ("labels", "moves"),
    [
        (["b" if i % 2 and i % 5 else "a" for i in range(48)], True),
        (["abc"[i % 3] for i in range(48)], False),
        ([["a", "b"] if i % 2 else ["a"] if i % 3 else ["b"] for i in range(48)], False),
    ],
    ids=["two classes", "three classes", "several labels"],
)
def test_a_border_that_probabilities_move_is_told(tmp_path: Path, labels: list[Any], moves: bool) -> None:
    tb.run((TEXTS, labels), ["tfidf", "nb"], home=tmp_path, progress=False)
    found = tb.ensemble("data", home=tmp_path, progress=False).found
    told = [json.loads(file.read_text()) for file in tmp_path.glob("store/tune/*/ensemble.json")]
    assert len(told) == 3
    offsets = [one["offset"] for about in told for one in about["members"] if one["weight"]]
    assert found.moves_border == moves == (any(offsets) and not told[0]["several_labels"])
    assert ("probabilities move the border" in tables(found)[0].note) == moves


def test_a_member_that_is_better_on_test_documents_is_named(home: Path) -> None:
    found = tb.ensemble("data", ["tfidf", "nb"], home=home, progress=False).found
    assert "On test documents" not in found.verdict
    best, other = found.best, next(one for one in found.members if one is not found.best)
    told = replace(found, members=[best, replace(other, member="other", test=1.5)])
    assert told.verdict.endswith(" On test documents other alone has 150.00.")


@pytest.mark.parametrize(
    ("value", "p", "said"),
    [
        (0.02, 0.2, "+2.00, 95 % interval +1.00 .. +3.00): no more than chance explains (p = 0.2)."),
        (0.02, 0.01, "+2.00, 95 % interval +1.00 .. +3.00): better by more than chance (p = 0.01)."),
        (-0.02, 0.01, "-2.00, 95 % interval -3.00 .. -1.00): worse by more than chance (p = 0.01)."),
    ],
)
def test_what_chance_explains_is_said(home: Path, value: float, p: float, said: str) -> None:
    found = tb.ensemble("data", ["tfidf", "nb"], home=home, progress=False).found
    way = found.chosen
    assert way.against is not None
    tested = replace(way.against, difference=Difference(value, value - 0.01, value + 0.01, p), p=p)
    assert replace(found, ways=[replace(way, against=tested)]).verdict.endswith(said)


def test_training_documents_choose_the_way_not_test_documents(home: Path) -> None:
    found = tb.ensemble("data", ["tfidf", "nb"], home=home, progress=False).found
    for place, way in enumerate(found.ways):
        figures: list[dict[str, Any]] = [{"cross_fitted": 0.5, "test": 0.9} for _ in found.ways]
        figures[place] = {"cross_fitted": 0.6, "test": 0.1}
        ways = [replace(one, **own) for one, own in zip(found.ways, figures, strict=True)]
        told: Ensembles = replace(found, ways=ways)
        assert told.chosen.scheme == way.scheme == as_json(told)["chosen"]


def test_the_report_says_how_right_probabilities_are(home: Path) -> None:
    evidence = gather(home)
    (board,) = boards(evidence)
    table = probabilities.table(evidence, board)
    assert table is not None
    losses = [row[1].value for row in table.rows]
    assert losses == sorted(losses)
    (row,) = [row for row in evidence.rows if row["method"] == "tfidf"]
    (told,) = calibrated.with_probabilities(home, [row])
    (line,) = [line for line in table.rows if line[0].text == "tfidf"]
    assert [datum.value for datum in line[1:]] == [told["metrics"][name] for name in PROBABILITIES]
    (which,) = [chapter for chapter in chapters(evidence) if chapter.name == "sure"]
    assert any(section.tables == [table] for section in which.sections)
