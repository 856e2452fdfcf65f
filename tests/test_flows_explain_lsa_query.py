"""`textbench query`: a library of three documents worked by hand through the seven steps, and bad input."""

import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import textbench.flows.explain.lsa_query
from textbench.flows.cli import app
from textbench.flows.explain.lsa_query import Question, ask
from textbench.tasks import InputError, collect, vectorize
from textbench.tasks.collections._user import OwnCollection
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store
from textbench.tasks.tokens import token_rule

HALF_LOG = math.log2(1.5) / 2


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store, and in the place of every data set a library of three documents: "sun", "rain", "sun rain".

    Each term is in 2 of 3 documents. Equation (3) weighs "sun" 1 * log2(3/2) = 0.585 in the first, 1/2 of it in the
    third; the weights are (0, w), (w, 0), (w/2, w/2) for (rain, sun), with mean (w/2, w/2). Centred they are
    (-w/2, w/2), (w/2, -w/2), (0, 0), so that the covariance, over N - 1 = 2, is w^2/4 (1 -1; -1 1): one eigenvector,
    (1, -1)/sqrt(2), up to sign, of eigenvalue w^2/2.
    """
    texts = {"sun-day": "Sun.", "rain-day": "Rain.", "both": "sun rain"}
    rows = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    (tmp_path / "library.jsonl").write_text("\n".join(rows))
    (tmp_path / "queries.jsonl").write_text('{"id": "1", "text": "sun"}')
    (tmp_path / "qrels").write_text("1 0 both 1\n")
    own = OwnCollection(*(str(tmp_path / name) for name in ("library.jsonl", "queries.jsonl", "qrels")))

    def references(name: str) -> tuple[Reference, Reference]:
        corpus = collect.own_reference(own)
        return corpus, vectorize.reference(corpus, asdict(token_rule("letters")), False)

    monkeypatch.setattr(textbench.flows.explain.lsa_query, "_references", references)
    return Store(tmp_path / "store", isolated=False)


def test_the_seven_steps_by_hand(store: Store) -> None:
    answer = ask(Question("library", "sun", threshold=-1), store, explain=True)
    # U^T x is w/sqrt(2) for "sun-day" and the query, -w/sqrt(2) for "rain-day", 0 for "both": cosines 1, 0, -1.
    assert [(match.name, match.matched) for match in answer.matches] == [
        ("sun-day", ["sun"]),
        ("both", ["sun"]),
    ]
    assert [match.cosine for match in answer.matches] == pytest.approx([1.0, 0.0], abs=1e-6)
    assert answer.n_above == 2  # the third's cosine is -1, not above the threshold
    assert (answer.n_documents, answer.known, answer.n_unknown) == (3, ["sun"], 0)
    (concept,) = answer.concepts
    assert concept.share == pytest.approx(1.0)
    assert sorted(weight for _, weight in concept.terms) == pytest.approx(
        [-math.sqrt(0.5), math.sqrt(0.5)], abs=1e-4
    )
    bits = answer.matches[1].bits
    assert bits is not None
    assert [term["bits"] for term in bits["terms"]] == pytest.approx([HALF_LOG, HALF_LOG])
    assert bits["divergence"] == pytest.approx(math.log2(1.5) - 1)  # -0.415 bits: Q sums to 4/3
    assert bits["divergence_normalised"] == pytest.approx(0.0, abs=1e-12)
    assert answer.matches[0].bits is not None
    assert answer.matches[0].bits["divergence_normalised"] == pytest.approx(1.0)


def test_threshold_and_top(store: Store) -> None:
    answer = ask(Question("library", "rain", threshold=0.5), store)
    assert [match.name for match in answer.matches] == ["rain-day"]
    assert answer.matches[0].bits is None
    answer = ask(Question("library", "rain", threshold=-1, top=1), store)
    assert len(answer.matches) == 1 and answer.n_above == 2


def test_unknown_words_are_counted_and_alone_refused(store: Store) -> None:
    answer = ask(Question("library", "Sun and snow"), store)
    assert (answer.known, answer.n_unknown) == (["sun"], 2)
    with pytest.raises(InputError, match="no word of 'snow' is in the vocabulary of 2 terms"):
        ask(Question("library", "snow"), store)


def test_lsi_asks_by_its_own_weights(store: Store) -> None:
    answer = ask(Question("library", "sun", method="lsi(n_components=2)", threshold=0.1), store)
    names = [match.name for match in answer.matches]
    assert names == ["sun-day", "both"]
    # With both directions kept nothing is lost: "both" has equal weights, so its angle to "sun" is 45 degrees.
    assert answer.matches[1].cosine == pytest.approx(np.sqrt(0.5), abs=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "tfidf"}, "a query needs a method of concepts, got 'tfidf'; choose from lsa-pca, lsi"),
        ({"method": "lsa"}, "a query needs a method of concepts, got 'lsa'; did you mean"),
        ({"threshold": 1.5}, "--threshold is a cosine in -1 .. 1, got 1.5"),
        ({"top": 0}, "--top must be at least 1, got 0"),
    ],
)
def test_bad_questions(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Question(**({"dataset": "r8", "text": "oil"} | change)).check()  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_an_unknown_library_gets_the_nearest() -> None:
    result = CliRunner().invoke(app, ["query", "oil", "-d", "cranfeld"])
    assert str(result.exception) == "there is no data set or collection 'cranfeld'; did you mean cranfield?"


def test_the_command_prints_and_explains(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))  # where the fixture's store is
    for reference in textbench.flows.explain.lsa_query._references(""):
        store.ensure(reference)
    ask(Question("library", "sun"), store)
    printed = (
        CliRunner().invoke(app, ["query", "sun", "-d", "library", "--threshold", "-1", "--explain"]).stdout
    )
    assert "2 of 2 documents above -1, of 3." in printed
    assert "1.0000 * log2(1/0.66667) = 0.5850 bits" in printed
    assert "K-L divergence -0.4150 as printed (Q does not sum to one), 0.0000 with Q normalised" in printed
    line = CliRunner().invoke(app, ["query", "sun", "-d", "library", "--json"]).stdout
    assert json.loads(line)["matches"][0]["name"] == "sun-day"
