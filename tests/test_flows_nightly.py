"""Nights: kept, found again, and compared; what got worse or slower is marked, and nothing else is."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from textbench.flows.results import regressions
from textbench.flows.results.regressions import Change, compare, last_night, report
from textbench.tasks.storage.files import write_json

N = 200
TARGET = np.arange(N) % 4
ASKED = {"datasets": ["r8"], "methods": ["tfidf"], "seeds": [0, 1, 2]}


def wrong_at(*places: int) -> np.ndarray:
    """Return predictions that are wrong at these documents alone."""
    predicted = TARGET.copy()
    predicted[list(places)] = (predicted[list(places)] + 1) % 4
    return predicted


def night(
    home: Path, begun: float, predicted: dict[str, np.ndarray], seconds: dict[str, list[float]], **others: Any
) -> regressions.Night:
    """Write a night of one data set: each method's predictions, the same for all seeds, and its seconds by seed."""
    folder = home / "nights" / str(begun)
    folder.mkdir(parents=True)
    rows = []
    for method, answers in predicted.items():
        for seed, spent in enumerate(seconds[method]):
            file = f"{method}-{seed}.parquet"
            table = pyarrow.table({"target": others.get("target", TARGET), "predicted": answers})
            pyarrow.parquet.write_table(table, folder / file)
            rows.append({
                "dataset": "r8", "method": method, "seed": seed, "predictions": file,
                "metrics": {"accuracy": float(np.mean(answers == table["target"].to_numpy()))},
                "seconds": {"evaluate": spent},
            })  # fmt: skip
    made = {
        "asked": ASKED,
        "begun": begun,
        "commit": "c" * 40,
        "hardware": others.get("hardware", "here"),
        "rows": rows,
    }
    write_json(folder / "night.json", made)
    return made | {"folder": folder}


def test_equal_nights_show_nothing(tmp_path: Path) -> None:
    same = {"predicted": {"tfidf": wrong_at(3, 5)}, "seconds": {"tfidf": [2.0, 3.0]}}
    last, tonight = night(tmp_path, 1.0, **same), night(tmp_path, 2.0, **same)
    (change,) = compare(last, tonight)
    assert (change.last, change.tonight) == (0.99, 0.99)
    assert (change.low, change.high, change.p, change.mcnemar_p) == (0, 0, 1, 1)
    assert change.ratio == pytest.approx(1)
    assert not change.is_worse()
    assert not change.is_slower(1.2)
    assert report(last, tonight, [change], 1.5).startswith("# No regression")


def test_accuracy_that_fell_is_marked_and_corrected_for_all_methods(tmp_path: Path) -> None:
    seconds = {"lsi": [1.0], "tfidf": [1.0]}
    last = night(tmp_path, 1.0, {"lsi": TARGET, "tfidf": TARGET}, seconds)
    tonight = night(tmp_path, 2.0, {"lsi": wrong_at(*range(12)), "tfidf": wrong_at(0)}, seconds)
    lsi, tfidf = compare(last, tonight)
    # McNemar's exact test by hand: 12 of 12 one way is 2 / 2^12, 1 of 1 is certain; Holm doubles the smaller.
    assert lsi.mcnemar_p == pytest.approx(2 * 2 / 2**12)
    assert tfidf.mcnemar_p == 1
    assert lsi.tonight == pytest.approx(1 - 12 / N)
    assert lsi.low <= lsi.tonight - lsi.last <= lsi.high < 0
    assert lsi.is_worse()
    assert not tfidf.is_worse()  # one document in two hundred may be chance
    text = report(last, tonight, [lsi, tfidf], 1.5)
    assert "# Regressions" in text
    assert "**Worse than last night: r8 lsi.**" in text


def test_accuracy_that_rose_is_no_regression(tmp_path: Path) -> None:
    last = night(tmp_path, 1.0, {"lsi": wrong_at(*range(30))}, {"lsi": [1.0]})
    tonight = night(tmp_path, 2.0, {"lsi": TARGET}, {"lsi": [1.0]})
    (change,) = compare(last, tonight)
    assert change.p < 0.01
    assert not change.is_worse()


def test_seconds_go_by_the_geometric_mean_over_seeds(tmp_path: Path) -> None:
    predicted = {"lsi": TARGET}
    last = night(tmp_path, 1.0, predicted, {"lsi": [1.0, 2.0, 4.0]})
    tonight = night(tmp_path, 2.0, predicted, {"lsi": [2.0, 4.2, 7.6]})
    (change,) = compare(last, tonight)
    logs = np.log([2.0, 2.1, 1.9])
    assert change.ratio == pytest.approx(math.exp(logs.mean()))
    # Student's t for two degrees of freedom at 97.5 %
    assert change.ratio_low == pytest.approx(
        math.exp(logs.mean() - 4.302653 * logs.std(ddof=1) / math.sqrt(3)), rel=1e-5
    )
    assert change.is_slower(1.5)
    assert not change.is_slower(2.5)
    assert "**Slower than last night: r8 lsi.**" in report(last, tonight, [change], 1.5)


def test_one_slow_seed_of_three_is_noise(tmp_path: Path) -> None:
    predicted = {"lsi": TARGET}
    last = night(tmp_path, 1.0, predicted, {"lsi": [1.0, 1.0, 1.0]})
    tonight = night(tmp_path, 2.0, predicted, {"lsi": [1.0, 1.0, 9.0]})
    (change,) = compare(last, tonight)
    assert change.ratio > 2
    assert not change.is_slower(1.5)


def test_seconds_of_other_hardware_are_not_compared(tmp_path: Path) -> None:
    same = {"predicted": {"lsi": TARGET}}
    last = night(tmp_path, 1.0, seconds={"lsi": [1.0]}, hardware="there", **same)
    tonight = night(tmp_path, 2.0, seconds={"lsi": [50.0]}, **same)
    (change,) = compare(last, tonight)
    assert change.ratio is None
    assert not change.is_slower(1.5)
    assert "Seconds are not compared: there then, here now." in report(last, tonight, [change], 1.5)


def test_other_test_documents_and_missing_methods_are_said(tmp_path: Path) -> None:
    last = night(
        tmp_path, 1.0, {"lsi": TARGET, "nb": TARGET}, {"lsi": [1.0], "nb": [1.0]}, target=TARGET[::-1]
    )
    tonight = night(tmp_path, 2.0, {"lsi": TARGET, "tfidf": TARGET}, {"lsi": [1.0], "tfidf": [1.0]})
    changes = {change.method: change for change in compare(last, tonight)}
    assert changes["lsi"].note == "the test documents have changed"
    assert changes["tfidf"].note == "no result last night"
    assert changes["nb"].note == "no result tonight"
    assert not any(change.is_worse() or change.is_slower(1.5) for change in changes.values())


def test_the_newest_earlier_night_that_was_asked_the_same_is_the_last(tmp_path: Path) -> None:
    same = {"predicted": {"tfidf": TARGET}, "seconds": {"tfidf": [1.0]}}
    for begun in (1.0, 2.0, 3.0):
        night(tmp_path, begun, **same)
    other = tmp_path / "nights" / "2.5"
    other.mkdir()
    write_json(other / "night.json", {"asked": ASKED | {"trials": 9}, "begun": 2.5})
    (tmp_path / "nights" / "2.7").mkdir()
    (tmp_path / "nights" / "2.7" / "night.json").write_text("{torn")
    found = last_night(tmp_path, {"asked": ASKED, "begun": 3.0})
    assert found is not None
    assert found["begun"] == 2.0
    assert last_night(tmp_path, {"asked": ASKED, "begun": 1.0}) is None


def test_first_night_says_so(tmp_path: Path) -> None:
    tonight = night(tmp_path, 1.0, {"tfidf": TARGET}, {"tfidf": [1.0, 1.0]})
    assert report(None, tonight, [], 1.5) == (
        "# First night\n\n2 results are kept; the next night is compared with them."
    )


def test_a_change_without_an_interval_goes_by_its_ratio() -> None:
    change = Change("r8", "lsi", "accuracy", 0.9, 0.9, last_seconds=1.0, seconds=2.0, ratio=2.0)
    assert change.is_slower(1.5)
    assert not change.is_slower(2.1)


CLOCK = 0.03  # deviation of logarithms of seconds; one in twenty is 40 % longer besides
METHODS = [("r8", method) for method in ("tfidf", "lsi", "nb", "lda", "scdv", "char-ngrams")]


def seconds_of(random: np.random.Generator, times: float = 1.0) -> dict[tuple[str, str], dict[int, float]]:
    """Return logarithms of a night's seconds by method and seed; the first method takes `times` as long."""
    of_night = random.normal(0, 0.01)
    noise = random.normal(of_night, CLOCK, (len(METHODS), 3)) + np.where(
        random.random((len(METHODS), 3)) < 0.05, math.log(1.4), 0
    )
    noise[0] += math.log(times)
    return {
        name: dict(enumerate(2 + place + row))
        for place, (name, row) in enumerate(zip(METHODS, noise, strict=True))
    }


def is_marked(found: dict[tuple[str, str], tuple[float, float]], name: tuple[str, str]) -> bool:
    p, ratio = found[name]
    return Change(*name, "accuracy", 0.9, 0.9, slower_p=p, ratio_before=ratio).is_slower(1.08)


def test_thirty_quiet_nights_on_a_noisy_clock_raise_at_most_one_alarm_and_15_percent_more_one_at_once() -> (
    None
):
    random = np.random.default_rng(0)
    nights = [seconds_of(random) for _ in range(44)]
    alarms = 0
    for tonight in range(14, 44):
        found = regressions.slowed(nights[tonight - 14 : tonight], nights[tonight])
        alarms += any(is_marked(found, name) for name in METHODS)
    assert alarms <= 1
    planted = regressions.slowed(nights[-14:], seconds_of(random, 1.15))
    assert [name for name in METHODS if is_marked(planted, name)] == METHODS[:1]


def test_the_error_rates_of_a_night_are_those_that_the_page_says() -> None:
    random = np.random.default_rng(1)
    alarms = missed = 0
    for _ in range(200):
        nights = [seconds_of(random) for _ in range(14)]
        quiet = regressions.slowed(nights, seconds_of(random))
        alarms += any(is_marked(quiet, name) for name in METHODS)
        missed += not is_marked(regressions.slowed(nights, seconds_of(random, 1.15)), METHODS[0])
    assert alarms <= 0.02 * 200
    assert missed <= 0.15 * 200


def test_too_few_nights_say_nothing_of_their_noise() -> None:
    random = np.random.default_rng(2)
    nights = [seconds_of(random) for _ in range(5)]
    assert regressions.slowed(nights[:4], nights[4]) == {}
    assert regressions.slowed(nights, nights[4]).keys() == set(METHODS)


def test_a_loss_of_three_tenths_of_a_point_is_marked_the_same_night(tmp_path: Path) -> None:
    target = np.arange(2189) % 4
    worse = target.copy()
    worse[:20] = 0  # five of each four stay right, and fifteen become wrong
    better = target.copy()
    better[100:108] = (target[100:108] + 1) % 4
    same = {"seconds": {"lsi": [1.0, 1.0]}, "target": target}
    last = night(tmp_path, 1.0, {"lsi": better}, **same)
    (change,) = compare(last, night(tmp_path, 2.0, {"lsi": worse}, **same))
    assert 100 * (change.last - change.tonight) == pytest.approx(0.32, abs=0.005)
    assert change.p > 0.05  # fifteen against eight may be chance, but the same code has the same bits
    assert change.is_worse()
