"""Rankings and their measures: trec_eval's own figures, worked examples, and a test against full enumeration."""

from itertools import product

import numpy as np
import pytest

from textbench.evaluation.metrics.ranked_retrieval import (
    MEASURES,
    Ranked,
    average_precision,
    measure,
    qrels_lines,
    randomisation_test,
    rank,
    read_run,
    run_lines,
    tie_order,
)

NAMES = ["1", "10", "2", "30", "4"]


def test_rank_orders_by_score_then_by_name_as_trec_eval_does() -> None:
    scores = np.array([[0.5, 0.9, 0.5, -np.inf, 0.5]])
    ranked = rank(scores, tie_order(NAMES))[0]
    assert [NAMES[d] for d in ranked.documents] == ["10", "4", "2", "1"]  # ties: last name first; -inf is out
    assert ranked.scores.tolist() == pytest.approx([0.9, 0.5, 0.5, 0.5])


def test_a_cut_ranking_is_the_beginning_of_the_whole_one() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, (20, 200)) / 6  # many ties, also at the cut
    scores[3, :190] = -np.inf
    ties = tie_order([str(i) for i in range(200)])
    whole = rank(scores, ties, depth=200)
    for full, cut in zip(whole, rank(scores, ties, depth=13), strict=True):
        assert cut.documents.tolist() == full.documents[:13].tolist()


def test_rank_refuses_nan() -> None:
    with pytest.raises(ValueError, match="received 1 nan"):
        rank(np.array([[1.0, np.nan]]), np.arange(2))


def test_average_precision_worked_example() -> None:
    # Relevant at ranks 1 and 3, one of three never found: (1/1 + 2/3) / 3.
    ranked = [Ranked(np.array([4, 1, 2]), np.array([3.0, 2.0, 1.0], dtype=np.float32))]
    assert average_precision(ranked, [np.array([4, 2, 0])]) == pytest.approx([5 / 9])


def test_measures_agree_with_trec_eval_on_random_ties() -> None:
    import pytrec_eval

    rng = np.random.default_rng(1)
    names = [f"d{i}" for i in range(60)]
    scores = rng.integers(0, 9, (25, 60)).astype(np.float32)
    gains = rng.integers(-3, 4, (25, 60)).clip(0)
    gains[:, 0] = 1
    queries = [str(i) for i in range(25)]
    qrels = {q: {names[d]: int(g) for d, g in enumerate(row)} for q, row in zip(queries, gains, strict=True)}
    rankings = rank(scores, tie_order(names))
    run = read_run(run_lines(queries, rankings, names, "test"), "run")
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map", "P", "ndcg_cut", "Rprec", "recip_rank"}).evaluate(
        run
    )
    own_keys = {
        "map": "map", "precision_at_5": "P_5", "precision_at_10": "P_10", "ndcg_at_5": "ndcg_cut_5",
        "ndcg_at_10": "ndcg_cut_10", "r_precision": "Rprec", "reciprocal_rank": "recip_rank",
    }  # fmt: skip
    ours = measure(run, qrels)
    assert own_keys.keys() == MEASURES.keys()
    for query in queries:
        for name, key in own_keys.items():
            assert ours[query][name] == pytest.approx(theirs[query][key], abs=1e-9)
    fast = average_precision(rankings, [np.flatnonzero(row) for row in gains])
    assert fast == pytest.approx([ours[query]["map"] for query in queries])


def test_a_query_that_retrieved_nothing_scores_zero() -> None:
    found = measure({"1": {"a": 1.0}}, {"1": {"a": 1}, "2": {"a": 1}})
    assert set(found["2"].values()) == {0.0}
    assert found["1"]["map"] == 1.0


def test_a_run_read_back_is_the_run_written() -> None:
    scores = np.random.default_rng(2).normal(size=(2, 5)).astype(np.float32)
    rankings = rank(scores, tie_order(NAMES))
    lines = run_lines(["7", "9"], rankings, NAMES, "lm")
    assert lines[0].split()[::2] == ["7", NAMES[rankings[0].documents[0]], lines[0].split()[4]]
    run = read_run(lines, "run")
    for query, row in zip(("7", "9"), scores, strict=True):
        assert {name: np.float32(run[query][name]) for name in NAMES} == dict(zip(NAMES, row, strict=True))
    assert qrels_lines({"7": {"a": 1, "b": 0}}) == ["7 0 a 1", "7 0 b 0"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 Q0 a 1", "line 2: a run's line is `query Q0 document rank score tag`, got '1 Q0 a 1'"),
        ("1 Q0 b 1 x tag", "line 2: a run's line"),
        ("1 Q0 b 1 nan tag", "line 2: scores are numbers and documents differ, got score nan"),
        ("1 Q0 a 2 0.1 tag", "got document a twice for query 1"),
    ],
)
def test_a_bad_run_names_the_line(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"my\.run, ") as caught:
        read_run(["1 Q0 a 1 0.5 tag", line], "my.run")
    assert message in str(caught.value)


def test_randomisation_test_against_full_enumeration() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.random(10), rng.random(10) - 0.15
    differences = first - second
    sums = np.array([np.dot(signs, differences) for signs in product([-1, 1], repeat=10)])
    exact = np.mean(np.abs(sums) >= abs(differences.sum()) - 1e-12)
    assert randomisation_test(first, second) == pytest.approx(exact, abs=0.015)
    assert randomisation_test(second, first) == pytest.approx(exact, abs=0.015)


def test_randomisation_test_of_equal_rankers_and_bad_shapes() -> None:
    values = np.random.default_rng(4).random(30)
    assert randomisation_test(values, values) == 1.0
    assert randomisation_test(values, values - 0.5) < 0.001
    with pytest.raises(ValueError, match="a value for each query"):
        randomisation_test(values, values[:3])
