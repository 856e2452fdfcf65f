"""The claims: every one is read, and what the papers say against themselves is found and nothing else."""

import math
from dataclasses import replace

import pytest

from textbench.evaluation.claims.published import (
    COARSE,
    DATASETS,
    HEADLINES,
    MEANS,
    METHODS,
    METRICS,
    OBSTACLES,
    OTHER_SPLITS,
    UNSTATED,
    Claim,
    contradictions,
    published,
    read_claims,
)
from textbench.evaluation.metrics.multilabel import MULTILABEL_METRICS
from textbench.evaluation.metrics.single_label import METRICS as ONE_LABEL
from textbench.evaluation.metrics.single_label import f1_of_rates

CLAIMS = {claim.id: claim for claim in read_claims()}


def test_every_claim_is_read_once() -> None:
    assert len(CLAIMS) == 282
    first = CLAIMS["scdv-2017/table-1/scdv/accuracy"]
    assert (first.paper, first.method, first.text, first.unit) == ("scdv-2017", "SCDV", "84.6", "percent")


def test_the_alias_table_covers_what_is_printed() -> None:
    assert set(METRICS.values()) <= set(ONE_LABEL) | set(MULTILABEL_METRICS)
    assert set(METHODS) <= {claim.method for claim in CLAIMS.values()}
    assert set(DATASETS) | set(OBSTACLES) | OTHER_SPLITS <= {claim.dataset for claim in CLAIMS.values()}
    for claim in CLAIMS.values():
        if claim.unit == "percent" and claim.metric != "sparsity-at-4-percent":
            assert claim.metric_here or claim.class_rate, claim.id
        if claim.unit not in ("order",):
            assert claim.printed, claim.id


@pytest.mark.parametrize(
    ("id_", "half"),
    [
        ("scdv-2017/table-1/scdv/accuracy", 0.05),
        ("scdv-2017/table-3/scdv/lraps", 0.005),
        ("scdv-2017/table-6/ap/lm/map", 0.00005),
        ("scdv-2017/table-7/scdv/training-seconds", 0.5),
        ("dcot-2012/table-1/reuters65/tf-idf/seconds", 0.5),
        ("dcot-2012/table-1/reuters65/lsi/seconds", 30),  # printed as 51m
        ("scdv-2017/section-5/bowv/feature-megabytes", 50),  # printed as 1.1 GB
    ],
)
def test_rounding_of_print(id_: str, half: float) -> None:
    interval = CLAIMS[id_].printed
    assert interval is not None
    assert interval.half_width == pytest.approx(half)


def test_a_power_of_ten_is_rounded_by_its_logarithm() -> None:
    printed = CLAIMS["cfl-2013/section-5/size"].printed
    assert printed is not None
    assert [round(math.log10(end), 9) for end in (printed.low, printed.value, printed.high)] == [1.5, 2, 2.5]


def test_what_is_said_by_the_first_parts_of_an_id_is_said_of_claims() -> None:
    parts = [id_.split("/") for id_ in CLAIMS]
    for prefix in (*COARSE, *MEANS, *UNSTATED, *(id_ for ids in HEADLINES.values() for id_ in ids)):
        assert any(own[: len(prefix.split("/"))] == prefix.split("/") for own in parts), prefix
    assert CLAIMS["scdv-2017/table-1/scdv/accuracy"].n_published == 5
    assert CLAIMS["scdv-2017/table-2/scdv/recall:sci.med"].n_published == 1
    assert CLAIMS["scdv-2017/table-1/lda/accuracy"].unstated
    assert CLAIMS["scdv-2017/table-1/scdv/accuracy"].unstated is None
    assert set(HEADLINES) == {claim.paper for claim in CLAIMS.values()}
    for paper, ids in HEADLINES.items():
        assert {CLAIMS[id_].paper for id_ in ids} == {paper}


def test_a_number_that_is_printed_once_is_one_claim() -> None:
    twins = {claim.id: claim.twin for claim in CLAIMS.values() if claim.twin}
    assert len(twins) == 7
    for own, other in twins.items():
        assert (CLAIMS[own].text, CLAIMS[own].method) == (CLAIMS[other].text, CLAIMS[other].method)


def test_corrected_f_columns_are_harmonic_means_of_the_printed_macro_rates() -> None:
    corrected = [claim for claim in CLAIMS.values() if claim.corrected is not None]
    assert len(corrected) == 5
    for claim in corrected:
        precision, recall = (
            float(CLAIMS[claim.id.replace("macro-f1", rate)].text)
            for rate in ("macro-precision", "macro-recall")
        )
        assert claim.corrected == pytest.approx(f1_of_rates(precision, recall), abs=0.1)
        assert float(claim.text) < claim.corrected  # a mean of F1 is never above


def test_a_sentence_has_no_figure() -> None:
    claim = CLAIMS["dcot-2012/figure-4/reuters65/order"]
    assert claim.printed is None
    assert published(claim, CLAIMS) is None


def test_what_the_papers_say_against_themselves() -> None:
    found = contradictions(CLAIMS.values())
    single, several = (
        ("accuracy", "macro-precision", "macro-recall", "macro-f1"),
        ("coverage-error", "lraps", "weighted-f1"),
    )
    # Of two rows alike the one that is printed later is the copy.
    copied = {f"scdv-2017/table-1/mvtm/{f}" for f in single} | {
        f"scdv-2017/table-3/twe-1/{f}" for f in several
    }
    denied = {"scdv-2017/section-4.2.1/scdv/every-class", "dcot-2012/abstract/speed"}
    taken = "scdv-2017/table-1/tv+meanwv/accuracy"
    assert set(found) == copied | denied | {taken}
    assert "72.2 is that of LDA in table-1" in found[taken]
    every_class = found["scdv-2017/section-4.2.1/scdv/every-class"]
    assert "recall of misc.forsale 88.2 -> 85.9" in every_class
    assert "precision of sci.space 90.2 -> 88.5" in every_class
    assert every_class.count("->") == 2
    assert "95 over LDA on reuters65" in found["dcot-2012/abstract/speed"]


def test_the_notes_agree_with_what_is_derived() -> None:
    """The file's notes were written by hand; what they call suspect or contradicted is what the code finds."""
    noted = {claim.id for claim in CLAIMS.values() if "suspect" in claim.note or "contradict" in claim.note}
    assert noted == set(contradictions(CLAIMS.values()))


def test_the_copy_among_rows_of_several_labels_shows_otherwise_too() -> None:
    """LRAPS is below precision at 1 in every row of table 3 but that of TWE-1, which has another's LRAPS."""
    rows = {c.method: c for c in CLAIMS.values() if (c.place, c.metric) == ("table-3", "lraps")}
    above = []
    for method, lraps in rows.items():
        at_1 = CLAIMS[lraps.id.replace("lraps", "precision@1")]
        if float(lraps.text) > float(at_1.text):
            above.append(method)
    assert above == ["TWE-1"]


def test_a_paper_that_agrees_with_itself_is_not_suspect() -> None:
    """Two shared figures may be an accident, and a speed-up that the table shows is no contradiction."""
    mended = []
    for claim in CLAIMS.values():
        copies = ("mvtm/accuracy", "mvtm/macro-f1", "tv+meanwv/accuracy")
        if claim.id in (f"scdv-2017/table-1/{copy}" for copy in copies):
            claim = replace(claim, text=f"70.{copies.index(claim.id.partition('table-1/')[2])}")
        if claim.id == "scdv-2017/table-3/twe-1/lraps":
            claim = replace(claim, text="91.40")
        if claim.id in (
            "scdv-2017/table-2/scdv/recall:misc.forsale",
            "scdv-2017/table-2/scdv/precision:sci.space",
        ):
            claim = replace(claim, text="99.0")
        if claim.metric == "feature-learning-seconds" and claim.method == "dCoT":
            claim = replace(claim, text="9")
        mended.append(claim)
    assert contradictions(mended) == {}


def test_a_class_is_judged_as_any_figure() -> None:
    found = published(CLAIMS["scdv-2017/table-2/scdv/precision:alt.atheism"], CLAIMS)
    assert found == (CLAIMS["scdv-2017/table-2/scdv/precision:alt.atheism"].printed, None)


def test_seconds_are_judged_as_ratios_to_the_papers_own_method() -> None:
    lsi = published(CLAIMS["dcot-2012/table-1/reuters65/lsi/seconds"], CLAIMS)
    own = published(CLAIMS["dcot-2012/table-1/reuters65/dcot/seconds"], CLAIMS)
    assert lsi is not None
    assert own is not None
    assert (lsi[0].value, lsi[1]) == (25.5, "dCoT")
    assert (own[0].value, own[1]) == (95.0, "LDA")  # the slowest of the others


def test_obstacles() -> None:
    def obstacle(id_: str) -> str:
        return CLAIMS[id_].obstacle or ""

    assert obstacle("scdv-2017/table-6/ap/lm/map").startswith("licensed: ")
    assert obstacle("dcot-2012/table-1/dmoz16/dcot/seconds").startswith("lost: ")
    # Of what has data every method is written, those of topics too.
    assert obstacle("scdv-2017/table-4/ltsg/umass-coherence@10:image") == ""
    nobody = replace(CLAIMS["scdv-2017/table-1/bow/accuracy"], method="Nobody's")
    assert nobody.obstacle == "unwritten: nothing here implements Nobody's"
    assert obstacle("scdv-2017/table-1/ltsg/accuracy") == ""
    assert {obstacle(id_).partition(":")[0] for id_ in CLAIMS} == {"licensed", "lost", ""}
    assert obstacle("scdv-2017/table-1/bow/accuracy") == ""


def test_scale_and_nan_free_figures() -> None:
    assert CLAIMS["scdv-2017/table-1/scdv/accuracy"].scale == 100
    assert CLAIMS["scdv-2017/table-3/scdv/coverage-error"].scale == 1
    assert all(math.isfinite(c.printed.value) for c in CLAIMS.values() if c.printed)
    assert isinstance(next(iter(CLAIMS.values())), Claim)
