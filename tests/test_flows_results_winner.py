"""The verdict: who is best, and what is said to be significant, on the runs that methods have in common alone."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textbench.evaluation.statistics.significance import bootstrap, difference, holm
from textbench.evaluation.statistics.sufficient_statistics import mean_tally
from textbench.flows.plan.corpora import told_apart
from textbench.flows.results.leaderboard import caption
from textbench.flows.results.summary import in_common, listed, summarise
from textbench.flows.results.winner import LEVEL, verdicts

N = 24
TARGET = np.arange(N) % 2


def made(
    method: str, n_right: int, seed: int = 0, digit: str = "1", first: int = 0, **other: Any
) -> dict[str, Any]:
    """A run on own data called `data`, right on so many documents from one of them on; a digit is its documents."""
    right = (np.arange(N) - first) % N < n_right
    corpus = {"documents_sha256": digit * 64, "n_train": N, "n_test": N, "n_labels": 2}
    return {
        "dataset": "data", "corpus": corpus, "method": method, "protocol": "honest", "seed": seed, "trials": 0,
        "key": f"{method}-{seed}-{digit}", "metrics": {"accuracy": n_right / N}, "seconds": {}, "peak_mb": None,
        "error": None, "params": {}, "created": float(digit), "right": right,
    } | other  # fmt: skip


@pytest.fixture(autouse=True)
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the predictions of a run be what its row says."""
    monkeypatch.setattr("textbench.flows.results.winner.predictions", lambda home, row: table_of(row))


def table_of(row: Mapping[str, Any]) -> pyarrow.Table:
    return pyarrow.table({"target": TARGET, "predicted": np.where(row["right"], TARGET, 1 - TARGET)})


def test_the_best_of_unequal_seeds_is_that_of_the_seeds_in_common() -> None:
    """lsi has the higher mean, from an easy seed that tfidf has not run; where both ran tfidf is far better."""
    rows = [made("lsi", 24, 1), made("lsi", 24, 2), made("lsi", 6, 0), made("tfidf", 16, 0)]
    table = summarise(rows)
    assert [(s.method, s.is_best) for s in table] == [("tfidf", True), ("lsi", False)]
    assert table[1].mean["accuracy"] > table[0].mean["accuracy"]
    assert "> best on the seed in common, 0." in caption(table, ["accuracy"])
    (line,) = verdicts(Path(), rows)
    assert line.startswith("data, honest protocol: tfidf is best on the seed in common (accuracy 66.67), and")
    assert "significantly better than the other one (p <= " in line
    assert "one run of each (seed 0)" in line


def test_equal_seeds_are_no_special_case_and_their_number_is_said() -> None:
    rows = [made(name, n, seed) for name, n in (("lsi", 6), ("tfidf", 24), ("nmf", 8)) for seed in range(3)]
    assert caption(summarise(rows), ["accuracy"]).endswith("> best.")
    (line,) = verdicts(Path(), rows)
    assert line.startswith("data, honest protocol: tfidf is best (accuracy 100.00), and significantly better")
    assert "than the other 2 (p <= " in line
    assert "3 runs of each (seeds 0 to 2)" in line


@pytest.mark.parametrize(("n_test", "said"), [(40_000, "4,000 of 40,000"), (20_000, "")])
def test_how_many_test_documents_asked_is_said_where_not_all_did(n_test: int, said: str) -> None:
    corpus = {"documents_sha256": "0" * 64, "n_train": 30_000, "n_test": n_test, "n_labels": 2}
    table = summarise([made("tfidf", 24, corpus=corpus, metrics={"accuracy": 1.0, "map": 0.5})])
    sentence = f"MAP is that of {said} test documents, drawn once for all methods."
    assert (sentence in caption(table, ["accuracy", "map"])) == bool(said)
    assert "MAP" not in caption(table, ["accuracy"])


def test_methods_that_share_no_seed_are_not_compared() -> None:
    rows = [made("lsi", 6, 0), made("tfidf", 24, 1)]
    table = summarise(rows)
    assert [(s.method, s.is_best) for s in table] == [("tfidf", False), ("lsi", False)]
    assert "> best: none, for no two methods ran the same seed." in caption(table, ["accuracy"])
    (line,) = verdicts(Path(), rows)
    assert line == (
        "data, honest protocol: nothing is compared, for no two methods ran the same seed; "
        "run them with the same --seeds."
    )


def test_what_shares_no_seed_with_the_others_is_not_tested_and_not_best() -> None:
    rows = [made("lsi", 24, 5), made("tfidf", 20), made("nmf", 4)]
    compared, seeds = in_common(summarise(rows), "accuracy")
    assert ([s.method for s in compared], seeds) == (["tfidf", "nmf"], [0])
    (line,) = verdicts(Path(), rows)
    assert "tfidf is best on the seed in common" in line
    assert "better than the other one that could be tested" in line
    assert line.endswith("Not tested: lsi (no seed in common with the best).")


def test_a_tie_of_means_is_no_victory() -> None:
    (line,) = verdicts(Path(), [made("lsi", 12), made("tfidf", 12, first=12)])
    assert "Statistically tied with it:" in line
    assert "significantly" not in line


def test_seeds_in_words() -> None:
    assert [listed(seeds) for seeds in ([4], [0, 1], [0, 1, 2], [0, 2, 3])] == [
        "4", "0 and 1", "0 to 2", "0, 2 and 3",
    ]  # fmt: skip


run = st.tuples(
    st.sampled_from(["lsi", "tfidf", "nmf"]), st.sampled_from(range(3)), st.sampled_from(["1", "2"])
)
tables = st.dictionaries(
    run, st.tuples(st.sampled_from([0, 4, 12, 13, 20, 24]), st.sampled_from([0, 5])), min_size=1
)


@settings(max_examples=60)
@given(tables)
def test_significance_is_said_where_the_paired_test_on_common_runs_says_it(
    table: dict[tuple[str, int, str], tuple[int, int]],
) -> None:
    """Random runs of two corpora under one name, seeds missing and means tied: nothing is said that does not hold."""
    rows = [made(name, n, seed, digit, first) for (name, seed, digit), (n, first) in table.items()]
    rows = told_apart(Path(), rows)
    lines = {line.partition(",")[0]: line for line in verdicts(Path(), rows)}
    assert set(lines) == {row["dataset"] for row in rows}
    for dataset, line in lines.items():
        own = [row for row in rows if row["dataset"] == dataset]
        assert len({row["corpus"]["documents_sha256"] for row in own}) == 1
        check(line, own)


def check(line: str, rows: list[dict[str, Any]]) -> None:
    """See that what a verdict says of the runs of one data set follows from these."""
    said = re.search(r"protocol: (\w+) is best", line)
    right = {(row["method"], row["seed"]): row["right"].astype(float) for row in rows}
    methods = {method for method, _ in right}
    if said is None:
        assert all(sum((method, seed) in right for method in methods) < 2 for seed in range(3))
        return
    best = said[1]
    untested = set(re.findall(r"\w+", (re.search(r"Not tested: ([\w, ]+) \(", line) or [""])[0])) & methods
    compared = methods - untested
    shared = [seed for seed in range(3) if all((method, seed) in right for method in compared)]
    assert shared
    assert all(not any((method, seed) in right for seed in shared) for method in untested)
    means = {name: np.mean([right[name, seed] for seed in shared], axis=0) for name in compared}
    assert means[best].mean() == pytest.approx(max(mean.mean() for mean in means.values()))
    others = sorted(compared - {best})
    p_values = []
    for other in others:
        draws = bootstrap([mean_tally(means[best]), mean_tally(means[other])])
        n_apart = int((means[best] != means[other]).sum())
        p_values.append(max(difference(0.0, draws[:, 0] - draws[:, 1]).p, 2.0 ** (1 - n_apart)))
    behind = {name for name, p in zip(others, holm(p_values), strict=True)
              if p < LEVEL and means[best].mean() > means[name].mean()}  # fmt: skip
    tied = set(re.findall(r"(\w+) \(p = ", line))
    assert tied == set(others) - behind
    assert ("significantly better" in line) == (bool(others) and not tied)
    if others:
        runs = "one run" if len(shared) == 1 else f"{len(shared)} runs"
        assert f"{runs} of each (seed" in line


def test_what_failed_is_said_where_nothing_else_was_measured() -> None:
    failed = made("lsi", 0) | {"error": "too large", "metrics": {}}
    assert verdicts(Path(), [made("tfidf", 12), failed]) == [
        "data, honest protocol: tfidf is best (accuracy 50.00); "
        "there is nothing to compare it with, for lsi failed."
    ]
