"""The parts of the compression solver, against brute force, HiGHS and the paper's own formulas."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp, nnls

from textbench.featurizers._compressive.admm import Relaxation, _level
from textbench.featurizers._compressive.bound import lower_bound
from textbench.featurizers._compressive.cover import cheapest_cover, cost_of, cover_with, usage_of
from textbench.featurizers._compressive.index import (
    ONCE,
    OUTSIDE,
    KgramIndex,
    build_index,
    canonical_order,
    concatenate,
)
from textbench.featurizers._compressive.projection import _solve, _system, project
from textbench.featurizers._compressive.search import _distances, _gains, amortised_cover, improve
from textbench.featurizers._compressive.solver import solve, word_prices
from textbench.featurizers._kernels import shares

COSTS = np.arange(1.0, 6.0)
PHRASES = ["in the case of", "as far as i know", "new york", "of the", "would you please tell me"]


def corpus(seed: int, n_documents: int = 12, n_words: int = 40, n_terms: int = 60) -> list[np.ndarray]:
    """Documents of words drawn with Zipf's frequencies and of some phrases that come again."""
    rng = np.random.default_rng(seed)
    number = {word: n_terms + i for i, word in enumerate(sorted({w for p in PHRASES for w in p.split()}))}
    frequency = 1 / np.arange(1, n_terms + 1)
    documents = []
    for _ in range(n_documents):
        words: list[int] = []
        while len(words) < n_words:
            if rng.random() < 0.3:
                words += [number[word] for word in rng.choice(PHRASES).split()]
            else:
                words.append(int(rng.choice(n_terms, p=frequency / frequency.sum())))
        documents.append(np.array(words[:n_words], dtype=np.int32))
    return documents


def indexed(documents: list[np.ndarray], max_length: int = 5) -> KgramIndex:
    return build_index(*concatenate(documents), max_length)


def pointers(documents: list[np.ndarray], max_length: int = 5) -> list[tuple[tuple[int, ...], int]]:
    """Every possible pointer as (k-gram, its first word in the corpus), without the index."""
    found, base = [], 0
    for document in documents:
        for s in range(len(document)):
            for t in range(1, min(max_length, len(document) - s) + 1):
                found.append((tuple(document[s : s + t].tolist()), base + s))
        base += len(document)
    return found


def exact(
    documents: list[np.ndarray],
    pointer_cost: float,
    *,
    integer: bool = True,
    weights: np.ndarray | None = None,
) -> float:
    """The optimum of equation (1), of its linear relaxation, or of equation (2), by HiGHS.

    weights: D of each of `pointers`, 0 for one that may not be used.
    """
    all_pointers = pointers(documents)
    D = np.ones(len(all_pointers)) if weights is None else weights
    grams = {gram: i for i, gram in enumerate(dict.fromkeys(gram for gram, _ in all_pointers))}
    m, n_words = len(all_pointers), sum(map(len, documents))
    rows = [place + j for gram, place in all_pointers for j in range(len(gram))]
    columns = [i for i, (gram, _) in enumerate(all_pointers) for _ in gram]
    X = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n_words, m + len(grams)))
    of = [m + grams[gram] for gram, _ in all_pointers]
    link = sp.csr_matrix(
        (np.concatenate([D, np.full(m, -1.0)]), ([*range(m)] * 2, [*range(m), *of])),
        shape=(m, m + len(grams)),
    )
    cost = np.concatenate([D * pointer_cost, [len(gram) for gram in grams]])
    limits = [LinearConstraint(X, 1, np.inf), LinearConstraint(link, -np.inf, 0)]
    most = np.concatenate([D > 0, np.full(len(grams), max(D))])
    return milp(cost, constraints=limits, bounds=Bounds(0, most), integrality=np.full(len(cost), integer)).fun


def assert_covers(index: KgramIndex, span: np.ndarray) -> None:
    """Every word lies under a pointer and no pointer leaves its document."""
    covered = np.zeros(len(span), dtype=bool)
    for i in np.flatnonzero(span):
        assert index.kgram[i, span[i] - 1] != OUTSIDE
        covered[i : i + span[i]] = True
    assert covered.all()


def test_index_finds_every_repeated_kgram() -> None:
    documents = corpus(0)
    index = indexed(documents)
    places: dict[tuple[int, ...], list[int]] = {}
    for gram, place in pointers(documents):
        places.setdefault(gram, []).append(place)
    found = {}
    for g, (place, length) in enumerate(zip(index.first, index.lengths, strict=True)):
        gram = tuple(index.words[place : place + length].tolist())
        found[gram] = index.where[index.start[g] : index.start[g + 1]].tolist()
        assert (index.kgram[found[gram], length - 1] == g).all()
    assert found == {gram: where for gram, where in places.items() if len(where) > 1}
    alone = {(len(gram), where[0]) for gram, where in places.items() if len(where) == 1}
    assert alone == {(t + 1, i) for i, t in np.argwhere(index.kgram == ONCE).tolist()}
    assert np.count_nonzero(index.kgram == OUTSIDE) == 12 * (1 + 2 + 3 + 4)


def test_index_grows_its_table() -> None:
    words = np.random.default_rng(0).integers(300, size=60_000).astype(np.int32)
    index = build_index(words, np.array([0, 60_000]), 3)
    pairs = words[:-1].astype(np.int64) * 300 + words[1:]
    triples = pairs[:-1] * 300 + words[2:]
    expected = [
        np.count_nonzero(np.unique(grams, return_counts=True)[1] > 1) for grams in (words, pairs, triples)
    ]
    assert np.bincount(index.lengths)[1:].tolist() == expected


def test_canonical_order_depends_on_the_documents_alone() -> None:
    documents = corpus(1)
    shuffled = [documents[i] for i in np.random.default_rng(0).permutation(len(documents))]
    ordered = [[d[i].tolist() for i in canonical_order(d)] for d in (documents, shuffled)]
    assert ordered[0] == ordered[1]


@pytest.mark.parametrize("weights", [[0, 3, 9], [1, 1, 1, 1], [0, 0, 50, 1, 0, 2], [], [0, 0]])
def test_shares_cut_without_gaps(weights: list[int]) -> None:
    parts = shares(np.concatenate([[0], np.cumsum(weights)]).astype(np.int64))
    assert list(itertools.chain.from_iterable(range(*part) for part in parts)) == list(range(len(weights)))


def test_cheapest_cover_is_the_best_of_all_sets_of_pointers() -> None:
    rng = np.random.default_rng(2)
    for _ in range(30):
        index = indexed([rng.integers(3, size=7).astype(np.int32)], 3)
        price = rng.random(len(index.lengths)).astype(np.float32)
        once = rng.random(3).astype(np.float32)
        priced = [
            (sum(1 << j for j in range(i, i + t + 1)), price[g] if g >= 0 else once[t])
            for (i, t), g in np.ndenumerate(index.kgram)
            if g != OUTSIDE
        ]
        best = np.full(1 << 7, np.inf)
        best[0] = 0
        for covered in range(1 << 7):
            for mask, cost in priced:
                best[covered | mask] = min(best[covered | mask], best[covered] + cost)
        span = cheapest_cover(index.kgram, index.offsets, price, once)
        assert_covers(index, span)
        at = np.flatnonzero(span)
        used = index.kgram[at, span[at] - 1]
        ours = np.where(used >= 0, price[np.maximum(used, 0)], once[span[at] - 1]).sum(dtype=np.float64)
        assert ours == pytest.approx(min(best[127:]), rel=1e-6)


def test_cost_counts_pointers_and_each_entry_once() -> None:
    index = indexed([np.array([0, 1, 0, 1, 2], dtype=np.int32), np.array([0, 1], dtype=np.int32)])
    span = np.array([2, 0, 2, 0, 1, 2, 0], dtype=np.uint8)
    assert cost_of(index, span, 0.5, COSTS) == 4 * 0.5 + 2 + 1
    assert usage_of(index, span).sum() == 3


def test_w_step_is_equation_5() -> None:
    """With the factor 1/rho that the printed equation lacks; r is found by trying all."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        q, D, rho, c = rng.random(6), 1 + rng.random(6), 0.1 + rng.random(), 0.3 + rng.random()
        if np.sum(q / D) <= c:
            continue
        order = np.argsort(-D * q)
        for r in range(1, 7):
            top = order[:r]
            M = (np.sum(q[top] / D[top]) - c) / np.sum(D[top] ** -2.0) / rho
            if np.count_nonzero(D * q / rho > M) == r:
                break
        level = _level(q.astype(np.float32), (1 / D).astype(np.float32), c, rho)
        np.testing.assert_allclose(np.minimum(q / rho, level / D), np.minimum(q / rho, M / D), rtol=1e-4)


def test_banded_solution_on_some_rows_solves_the_system() -> None:
    rng = np.random.default_rng(4)
    n, k = 15, 4
    A = np.array([[rng.random() * (abs(i - j) < k) for j in range(n)] for i in range(n)])
    A = A + A.T + 8 * np.eye(n)
    H = np.array([[A[j, j + t] if j + t < n else 0 for t in range(k)] for j in range(n)])
    b, rows = rng.random(n), np.array([0, 1, 3, 7, 8, 9, 14])
    x = np.zeros(n)
    _solve(H, b, rows, len(rows), np.zeros((n, k)), x)
    np.testing.assert_allclose(x[: len(rows)], np.linalg.solve(A[np.ix_(rows, rows)], b[rows]))


def test_z_step_is_the_nonnegative_minimum_of_equation_6() -> None:
    """H, the right side and the solution, from the pointers' matrix X and scipy's non-negative least squares."""
    rng = np.random.default_rng(5)
    n, k, rho = 12, 4, 0.7
    state = np.ones((k, n, 2), dtype=np.float32)
    state[:, :, 0] = rng.random((k, n)) * (rng.random((k, n)) < 0.3)
    columns, w = [], []
    for s, t in itertools.product(range(n), range(k)):
        if s + t >= n or (t > 0 and rng.random() < 0.2):
            state[t, s, 0] = -1
        else:
            columns.append([s <= j <= s + t for j in range(n)])
            w.append(state[t, s, 0])
    X = np.array(columns, dtype=float).T
    before = (rng.random(n) * (rng.random(n) < 0.6)).astype(np.float32)
    b = X @ X.T @ before + rho * (1 - X @ w)
    H, ours = np.zeros((n, k)), np.zeros(n)
    _system(0, n, state, before, rho, H, ours)
    np.testing.assert_allclose(ours, b, atol=1e-6)
    R = np.linalg.cholesky(X @ X.T).T
    expected = nnls(R, np.linalg.solve(R.T, b))[0]
    alpha, ahead = before.copy(), before.copy()
    moved = project(np.array([0, n]), 0, 1, state, alpha, ahead, rho)
    np.testing.assert_allclose(alpha, expected, atol=1e-5)
    np.testing.assert_allclose(ahead, 2 * alpha - before, atol=1e-6)
    assert moved == pytest.approx(np.abs(alpha - before).sum(), rel=1e-5)
    assert (expected == 0).any() and (expected > 0).any()


@pytest.mark.parametrize("pointer_cost", [0.03, 0.5, 3.0])
def test_relaxation_reaches_the_linear_program(pointer_cost: float) -> None:
    documents = corpus(6)
    index = indexed(documents)
    linear = exact(documents, pointer_cost, integer=False)
    span = amortised_cover(index, pointer_cost, COSTS)
    relaxation = Relaxation(index, pointer_cost, COSTS, word_prices(index, span, pointer_cost, COSTS), span)
    for _ in range(400):
        relaxation.iterate()
    assert relaxation.alpha.sum() == pytest.approx(linear, rel=2e-3)
    bound = lower_bound(index, pointer_cost, COSTS, relaxation.alpha)
    assert linear * 0.998 <= bound <= linear * (1 + 1e-6)


@pytest.mark.parametrize("pointer_cost", [0.5, 3.0])
def test_reweighted_relaxation_reaches_the_linear_program(pointer_cost: float) -> None:
    """Equation (2) with any weights: a pointer's is on its own cost and on its share of the entry's."""
    documents = corpus(6)
    index = indexed(documents)
    span = amortised_cover(index, pointer_cost, COSTS)
    relaxation = Relaxation(index, pointer_cost, COSTS, word_prices(index, span, pointer_cost, COSTS), span)
    w, D = np.moveaxis(relaxation._state, 2, 0)
    D[:] = np.random.default_rng(12).uniform(1, 2, D.shape)
    weights = [
        D[len(gram) - 1, place] * (w[len(gram) - 1, place] >= 0) for gram, place in pointers(documents)
    ]
    for _ in range(400):
        relaxation.iterate()
    linear = exact(documents, pointer_cost, integer=False, weights=np.array(weights, dtype=float))
    assert relaxation.alpha.sum() == pytest.approx(linear, rel=2e-3)
    relaxation.reweight()
    np.testing.assert_allclose(D, np.maximum(1, 1 / (np.maximum(w, 0) + 0.5)), rtol=1e-6)


@pytest.mark.parametrize("pointer_cost", [0.0, 0.5, 3.0])
def test_bound_holds_for_any_prices_and_rises(pointer_cost: float) -> None:
    documents = corpus(7)
    index = indexed(documents)
    linear = exact(documents, pointer_cost, integer=False)
    for scale in (0.0, 0.3, 1.0, 5.0):
        prices = scale * np.random.default_rng(8).random(len(index.words))
        bounds = [lower_bound(index, pointer_cost, COSTS, prices, rounds) for rounds in (1, 2, 5)]
        assert bounds == sorted(bounds)
        assert bounds[-1] <= linear * (1 + 1e-6)


def test_prices_of_words_add_up_to_a_cover_without_overlaps() -> None:
    index = indexed(corpus(9))
    span = np.ones(len(index.words), dtype=np.uint8)
    assert word_prices(index, span, 0.5, COSTS).sum() == pytest.approx(
        cost_of(index, span, 0.5, COSTS), rel=1e-5
    )


@pytest.mark.parametrize("pointer_cost", [0.0, 0.03, 0.5, 3.0])
def test_search_counts_what_it_saves(pointer_cost: float) -> None:
    for seed in range(3):
        index = indexed(corpus(10 + seed))
        for opened in (index.lengths == 1, index.lengths < 9):
            span = cover_with(index, opened, pointer_cost, COSTS)
            before = cost_of(index, span, pointer_cost, COSTS)
            fell = improve(index, span, pointer_cost, COSTS)
            assert_covers(index, span)
            assert before - fell == pytest.approx(cost_of(index, span, pointer_cost, COSTS), abs=1e-4)
            assert fell >= 0


def test_gains_are_what_a_free_kgram_saves_at_each_place() -> None:
    """Against covers of the whole document with the k-gram's pointers at one place allowed."""
    rng = np.random.default_rng(11)
    documents = [
        np.zeros(0, dtype=np.int32),
        rng.integers(3, size=14).astype(np.int32),
        np.array([1], dtype=np.int32),
    ]
    index = indexed(documents, 3)
    price, once = rng.random(len(index.lengths)).astype(np.float32), rng.random(3).astype(np.float32)
    n = len(index.words)
    before, after = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    for part in [(0, 1), (1, 3)]:
        _distances(index.kgram, index.offsets, *part, price, once, before, after)
    gain, usage = np.zeros(len(price), dtype=np.float32), np.zeros(len(price), dtype=np.int32)
    places = (index.start, index.where, before, after, np.float32(0.1), gain)
    _gains(0, len(price), usage, index.lengths, index.room, *places)

    def cheapest(kgram: np.ndarray, prices: np.ndarray) -> float:
        span = cheapest_cover(kgram, index.offsets, prices, once)
        at = np.flatnonzero(span)
        used = kgram[at, span[at] - 1]
        return np.where(used >= 0, prices[used], once[span[at] - 1]).sum(dtype=np.float64)

    for g, length in enumerate(index.lengths):
        saved = 0.0
        for place in index.where[index.start[g] : index.start[g + 1]]:
            kgram = index.kgram.copy()
            kgram[place, length - 1] = len(price)
            with_free = cheapest(kgram, np.append(price, np.float32(0.1)))
            # A pointer dearer than what stands there is not used, and saves nothing.
            saved += max(0.0, cheapest(index.kgram, price) - with_free)
        assert gain[g] == pytest.approx(saved, abs=1e-5)


def test_search_drops_an_entry_of_two_users_and_adds_one_that_pays() -> None:
    """Two single words twice each; the pair of them used twice costs 2 + 2, the words alone 2 + 4 at pointer cost 1."""
    index = indexed([np.array([0, 1], dtype=np.int32), np.array([0, 1], dtype=np.int32)])
    span = np.ones(4, dtype=np.uint8)
    assert improve(index, span, 1.0, COSTS) == pytest.approx(2, abs=1e-6)
    assert span.tolist() == [2, 0, 2, 0]
    # The words are in the dictionary anyway, so at a low pointer cost the pair does not pay.
    index = indexed([np.array([0, 1, 0, 0, 1, 1], dtype=np.int32)])
    span = np.array([2, 0, 1, 2, 0, 1], dtype=np.uint8)
    assert improve(index, span, 0.5, COSTS) == pytest.approx(2 - 2 * 0.5, abs=1e-6)
    assert span.tolist() == [1] * 6


@pytest.mark.parametrize("pointer_cost", [0.03, 0.5, 1.0, 3.0])
def test_solution_is_near_the_exact_optimum(pointer_cost: float) -> None:
    ratios = []
    for seed in range(4):
        documents = corpus(20 + seed)
        index = indexed(documents)
        solution = solve(index, pointer_cost, COSTS, 100, 1e-5)
        assert_covers(index, solution.span)
        best = exact(documents, pointer_cost)
        assert solution.lower_bound <= best * (1 + 1e-6)
        ratios.append(cost_of(index, solution.span, pointer_cost, COSTS) / best)
    assert min(ratios) >= 1 - 1e-9
    assert max(ratios) <= 1.005
    assert np.mean(ratios) <= 1.001
