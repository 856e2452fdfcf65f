"""Ensembles: calibration against known odds, weights by hand and in limiting cases, scores out of fold and rounded."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit, log_expit, log_softmax

from textbench.evaluation import ensembles
from textbench.evaluation.ensembles import SCHEMES, Calibration, Weights, learn, quality
from textbench.evaluation.probes.folds import folds_of
from textbench.evaluation.probes.out_of_fold import out_of_fold_scores, rounded

ONE = {"several_labels": False}
SEVERAL = {"several_labels": True}
RNG = np.random.default_rng(0)
TARGETS = RNG.integers(3, size=400)
INDICATOR = TARGETS[:, None] == np.arange(3)


def noisy(seed: int, noise: float) -> np.ndarray:
    """Scores of three classes: 1 for the right one, and noise."""
    return INDICATOR + np.random.default_rng(seed).normal(0, noise, INDICATOR.shape)


def odds(scores: np.ndarray) -> np.ndarray:
    return Calibration.fit(scores, INDICATOR, **ONE).log_odds(scores)


def test_of_two_classes_the_softmax_is_platts_sigmoid_of_their_difference() -> None:
    rng = np.random.default_rng(2)
    difference = rng.normal(size=20_000)
    second = rng.random(len(difference)) < expit(3 * difference - 1)
    scores, drawn = np.column_stack([-difference / 2, difference / 2]), np.column_stack([~second, second])
    found = Calibration.fit(scores, drawn, **ONE)
    assert (found.slope, found.offset) == pytest.approx((3, -1), abs=0.1)
    expected = expit(found.slope * difference + found.offset)
    np.testing.assert_allclose(found.probabilities(scores)[:, 1], expected, atol=1e-12)
    assert quality(found.log_odds(scores), drawn, **ONE) > quality(scores, drawn, **ONE)


def test_one_document_far_on_the_wrong_side_does_not_move_the_border() -> None:
    rng = np.random.default_rng(6)
    second = rng.random(500) < 0.3
    difference = np.where(second, 1.0, -1.0) + rng.normal(0, 0.7, 500)
    difference[np.flatnonzero(second)[0]] = -500
    scores, drawn = np.column_stack([-difference / 2, difference / 2]), np.column_stack([~second, second])
    found = Calibration.fit(scores, drawn, **ONE)
    assert found.slope > 0
    assert quality(found.log_odds(scores), drawn, **ONE) >= quality(scores, drawn, **ONE) > 0.9


def test_platt_finds_the_line_by_which_labels_were_drawn() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(20_000, 2))
    drawn = rng.random(scores.shape) < expit(3 * scores - 1)
    found = Calibration.fit(scores, drawn, **SEVERAL)
    assert (found.slope, found.offset) == pytest.approx((3, -1), abs=0.1)
    certain = np.column_stack([scores, np.full(len(scores), -1e6)])
    with_none = np.column_stack([drawn, np.zeros(len(scores), bool)])
    assert Calibration.fit(certain, with_none, **SEVERAL).slope == pytest.approx(found.slope, rel=0.01)


@pytest.mark.parametrize("shift", [0, 45, -700])
def test_platt_is_the_same_line_wherever_scores_lie(shift: float) -> None:
    rng = np.random.default_rng(13)
    scores = rng.normal(size=(1000, 2))
    drawn = rng.random(scores.shape) < expit(2 * scores)
    there = Calibration.fit(scores, drawn, **SEVERAL)
    found = Calibration.fit(scores + shift, drawn, **SEVERAL)
    assert found.slope == pytest.approx(there.slope, rel=1e-4)
    np.testing.assert_allclose(found.log_odds(scores + shift), there.log_odds(scores), atol=1e-3)


@pytest.mark.parametrize("share", [0.3, 0.004])
def test_platt_is_the_same_line_wherever_it_begins(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins far from the best line where no 17th score is of a label that is had."""
    rng = np.random.default_rng(3)
    drawn = rng.random((2000, 1)) < share
    scores = np.where(drawn, 0.5, -1.0) + rng.normal(0, 0.8, drawn.shape)
    drawn[:: ensembles.STRIDE] = False
    cold = Calibration.fit(scores, drawn, **SEVERAL)
    monkeypatch.setattr(ensembles, "MANY_SCORES", 100)
    warm = Calibration.fit(scores, drawn, **SEVERAL)
    assert warm != cold
    assert (warm.slope, warm.offset) == pytest.approx((cold.slope, cold.offset), rel=1e-4)


@pytest.mark.parametrize("value", [0.0, 0.1, 50.0])
def test_platt_of_scores_that_are_all_the_same_is_how_often_labels_are_had(value: float) -> None:
    scores, drawn = np.full((1000, 2), value), np.arange(2000).reshape(1000, 2) % 4 == 0
    found = Calibration.fit(scores, drawn, **SEVERAL)
    np.testing.assert_allclose(found.probabilities(scores), 0.25, atol=2e-3)


def test_temperature_finds_the_scale_by_which_classes_were_drawn() -> None:
    rng = np.random.default_rng(2)
    logits = rng.normal(0, 2, size=(20_000, 4))
    drawn = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    found = Calibration.fit(logits / 5, drawn[:, None] == np.arange(4), **ONE)
    assert found.slope == pytest.approx(5, rel=0.05)
    np.testing.assert_allclose(found.probabilities(logits / 5).sum(axis=1), 1, rtol=1e-6)


def test_probabilities_do_not_depend_on_the_scale_of_scores_and_a_perfect_classifier_stays_finite() -> None:
    scores = noisy(3, 0.8)
    np.testing.assert_allclose(odds(scores), odds(1000 * scores), atol=0.01)
    assert np.isfinite(odds(INDICATOR.astype(float))).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_members_that_are_alike_say_together_what_one_says(scheme: str) -> None:
    one = odds(noisy(4, 0.8))
    weights = learn(scheme, np.stack([one, one]), INDICATOR, **ONE)
    together = weights.combine(np.stack([one, one]), **ONE)
    assert quality(together, INDICATOR, **ONE) == quality(one, INDICATOR, **ONE)
    if scheme == "equal":
        np.testing.assert_allclose(together, one, atol=1e-9)


def test_greedy_selection_is_no_worse_than_any_member_and_passes_over_noise() -> None:
    every = np.stack([odds(noisy(seed, noise)) for seed, noise in ((5, 0.7), (6, 0.7), (7, 50.0))])
    weights = learn("greedy", every, INDICATOR, **ONE)
    found = quality(weights.combine(every, **ONE), INDICATOR, **ONE)
    assert found >= max(quality(one, INDICATOR, **ONE) for one in every)
    assert weights.members.sum() == pytest.approx(1) and weights.members[2] < 0.1
    apart = ensembles.without_each(weights, every, INDICATOR, **ONE)
    assert len(apart) == 3 and apart[0] < found


@pytest.mark.parametrize("kind", [ONE, SEVERAL], ids=["one label", "several labels"])
def test_stacked_weights_are_the_likeliest_that_are_not_negative(kind: dict[str, bool]) -> None:
    """Log loss and decay written out, and minimized by L-BFGS-B without slopes; the last member says the contrary."""
    said = [odds(noisy(seed, noise)) for seed, noise in ((5, 0.7), (6, 0.9), (7, 0.7))]
    every = np.stack([*said[:2], np.log1p(-np.exp(said[2]))])
    own = kind["several_labels"]

    def loss(weights: np.ndarray) -> float:
        z = np.tensordot(weights[:3], every, axes=1) + (weights[3] if own else 0)
        true = log_expit(np.where(INDICATOR, z, -z)).sum() if own else log_softmax(z, axis=1)[INDICATOR].sum()
        apart = weights - ([1 / 3] * 3 + [0] * own)
        return float(-true / len(TARGETS) + ensembles.DECAY * (apart**2).sum())

    bounds = [(0, None)] * 3 + [(None, None)] * own
    best = minimize(loss, np.full(len(bounds), 0.3), bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9}).x
    found = learn("stacked", every, INDICATOR, **kind)
    assert found.members == pytest.approx(best[:3], abs=1e-4) and found.members[2] == 0
    assert found.offset == pytest.approx(best[3] if own else 0, abs=1e-4)


@pytest.mark.parametrize("kind", [ONE, SEVERAL], ids=["one label", "several labels"])
def test_members_that_all_say_the_contrary_are_weighed_equally(kind: dict[str, bool]) -> None:
    """No member would count, and every document be given the first class."""
    every = np.stack([np.log1p(-np.exp(odds(noisy(seed, 0.7)))) for seed in (5, 6)])
    assert learn("stacked", every, INDICATOR, **kind) == Weights("stacked", pytest.approx([0.5, 0.5]))


def test_greedy_selection_by_hand() -> None:
    """Each member alone is right twice of three, both together, equally, always."""
    right = np.eye(2, dtype=bool)[[0, 1, 1]]
    first = np.log([[0.9, 0.1], [0.1, 0.9], [0.55, 0.45]])
    second = np.log([[0.45, 0.55], [0.1, 0.9], [0.1, 0.9]])
    weights = learn("greedy", np.stack([first, second]), right, **ONE)
    assert quality(weights.combine(np.stack([first, second]), **ONE), right, **ONE) == 1
    assert weights.members == pytest.approx([0.5, 0.5])


def greedily(shares: list[np.ndarray], indicator: np.ndarray, *, several_labels: bool) -> np.ndarray:
    """Greedy selection in plain words: fifty rounds, of all rounds the best mix, ties by the log loss."""

    def worth(mix: tuple[int, ...]) -> tuple[float, float]:
        mean = sum(shares[one] for one in mix) / len(mix)
        if several_labels:
            given, hits = (mean > 0.5).sum(), ((mean > 0.5) & indicator).sum()
            sure = np.where(indicator, mean, 1 - mean)
            return round(2 * hits / (given + indicator.sum()), 12), float(np.log(sure).mean())
        right = indicator[np.arange(len(mean)), mean.argmax(axis=1)]
        return float(right.mean()), float(np.log(mean[indicator]).mean())

    mix, mixes = (), []
    for _ in range(50):
        mix = max(((*mix, one) for one in range(len(shares))), key=worth)
        mixes.append(mix)
    best = max(mixes, key=worth)
    return np.array([best.count(one) / len(best) for one in range(len(shares))])


@pytest.mark.parametrize("kind", [ONE, SEVERAL], ids=["one label", "several labels"])
@pytest.mark.parametrize("seed", range(4))
def test_greedy_selection_is_that_in_plain_words(kind: dict[str, bool], seed: int) -> None:
    rng = np.random.default_rng(seed)
    indicator = INDICATOR[:60] if not kind["several_labels"] else rng.random((60, 3)) < 0.4
    said = [
        Calibration.fit(scores, indicator, **kind).log_odds(scores)
        for scores in (indicator + rng.normal(0, noise, indicator.shape) for noise in (0.7, 0.8, 0.9, 1.0))
    ]
    shares = [ensembles.as_probabilities(one, **kind) for one in said]
    expected = greedily(shares, indicator, **kind)
    assert np.count_nonzero(expected) > 1
    np.testing.assert_allclose(
        learn("greedy", np.stack(said), indicator, **kind).members, expected, atol=1e-12
    )


def test_labels_at_even_odds_are_asked_as_any_others() -> None:
    """A mean of halves is a half, and gives nothing, however many are added."""
    rng = np.random.default_rng(0)
    indicator = rng.random((40, 3)) < 0.4
    said = [np.round(2 * indicator - 1 + rng.normal(0, 2, indicator.shape)) for _ in range(4)]
    shares = [ensembles.as_probabilities(one, **SEVERAL) for one in said]
    assert np.any(np.all([one == 0.5 for one in shares[:2]], axis=0))
    expected = greedily(shares, indicator, **SEVERAL)
    np.testing.assert_allclose(
        learn("greedy", np.stack(said), indicator, **SEVERAL).members, expected, atol=1e-12
    )


def test_what_is_decided_of_several_labels_is_from_even_odds_on() -> None:
    indicator = np.array([[True, False], [True, True]])
    assert quality(np.array([[0.1, -0.1], [0.1, -0.1]]), indicator, **SEVERAL) == pytest.approx(
        2 * 2 / (2 + 3)
    )


def test_without_a_member_the_others_keep_their_proportions_and_the_offset() -> None:
    rng = np.random.default_rng(3)
    indicator = rng.random((80, 2)) < 0.3
    every = np.stack([rng.normal(2 * indicator - 1, 1.0) for _ in range(3)])
    weights = Weights("stacked", np.array([0.5, 0.3, 0.2]), offset=-0.4)
    for place, found in enumerate(ensembles.without_each(weights, every, indicator, **SEVERAL)):
        others = [other for other in range(3) if other != place]
        kept = weights.members[others] / weights.members[others].sum()
        given = kept[0] * every[others[0]] + kept[1] * every[others[1]] - 0.4 > 0
        assert found == pytest.approx(2 * (given & indicator).sum() / (given.sum() + indicator.sum()))


def test_a_logarithmic_pool_multiplies_odds() -> None:
    """Genest and Zidek, section 3.3: weights 1 and 1 multiply probabilities, and of several labels add log-odds."""
    every = np.stack([odds(noisy(8, 1.0)), odds(noisy(9, 1.0))])
    both = Weights("stacked", np.ones(2))
    np.testing.assert_allclose(both.combine(every, **ONE), log_softmax(every.sum(axis=0), axis=1))
    np.testing.assert_allclose(both.combine(every, **SEVERAL), every.sum(axis=0))


def test_weights_judged_by_the_other_half_are_not_flattered() -> None:
    noise = np.random.default_rng(10).normal(size=(12, *INDICATOR.shape))
    every = np.stack([log_softmax(one, axis=1) for one in noise])
    weights = learn("greedy", every, INDICATOR, **ONE)
    flattered = quality(weights.combine(every, **ONE), INDICATOR, **ONE)
    assert flattered > ensembles.cross_fitted("greedy", every, INDICATOR, **ONE) + 0.02


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(ValueError, match="scheme must be one of greedy, equal, stacked; received 'best'"):
        learn("best", np.zeros((2, 3, 2)), np.eye(3, 2, dtype=bool), **ONE)


class Remembers:
    """A classifier that knows the documents it was trained on, rows of one number: 1 for these, else 0."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Remembers":
        self.known_, self.classes_ = X[:, 0], np.unique(y)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.repeat(np.isin(X[:, :1], self.known_), len(self.classes_), axis=1).astype(float)


@pytest.mark.parametrize("held_out", [None, [3, 5]])
def test_no_document_is_scored_by_what_was_trained_on_it(held_out: list[int] | None) -> None:
    X, y = np.arange(30.0)[:, None], np.arange(30) % 3
    folds = folds_of(X, y, 3, 0, held_out)
    for given in (X, lambda train, test: (X[train], X[test])):
        scores, documents = out_of_fold_scores(given, y, Remembers, folds, lambda decisions, _: decisions)
        assert documents.tolist() == (held_out or list(range(30)))
        assert scores.shape == (len(documents), 3) and not scores.any()


def test_scores_are_rounded_where_that_changes_no_answer() -> None:
    plain = np.array([[1.25, -0.3], [-1e6, 0.1]])
    kept, error, changed = rounded(plain, several_labels=False)
    assert (kept.dtype, changed) == (np.float16, 0) and error == pytest.approx(
        abs(0.3 - float(np.float16(0.3)))
    )
    assert kept[1, 0] == -65504
    near = np.array([[-1000.0, -1000.01]] * 3)[:, ::-1]
    kept, error, changed = rounded(near, several_labels=False)
    assert kept.dtype == np.float32 and changed == 0 and error < 1e-4
    assert rounded(np.empty((0, 4)), several_labels=False)[0].shape == (0, 4)
    # Of several labels thresholds lie between scores that half precision does not tell apart.
    close = np.array([[-0.98], [-0.9801]])
    assert len(np.unique(rounded(close, several_labels=False)[0])) == 1
    kept, _, changed = rounded(close, several_labels=True)
    assert kept.dtype == np.float32 and len(np.unique(kept)) == 2 and changed == 0
    assert rounded(np.array([[1e-50, -3.0]]), several_labels=True)[2] == 1


def test_neighbours_are_the_nearest_of_the_own_group(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    X = rng.random((60, 8)) * (rng.random((60, 8)) < 0.4)
    X[[3, 59]] = 0
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    groups = [np.arange(1, 60, 2), np.arange(0, 58, 2), np.array([58])]
    monkeypatch.setattr(ensembles, "NEAR_BYTES", 8 * 30 * 7)  # seven rows at a time
    near = ensembles.nearest(csr_matrix(X), groups).toarray()
    for group in groups:
        for i in group:
            others = sorted((-(X[i] @ X[j]), j) for j in group if j != i)[:20]
            wanted = np.zeros(60)
            for minus_cosine, j in others:
                wanted[j] = -minus_cosine
            wanted = wanted / wanted.sum() if wanted.any() else np.arange(60) == i
            np.testing.assert_allclose(near[i], wanted, atol=1e-12)
    assert near[3, 3] == near[58, 58] == near[59, 59] == 1


def test_smoothing_goes_to_the_solution_of_its_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    """F = (1 - a) P + a S F has the solution (1 - a) (I - a S)^-1 P."""
    rng = np.random.default_rng(5)
    S = rng.random((30, 30))
    S /= S.sum(axis=1, keepdims=True)
    log_odds = np.log(rng.dirichlet(np.ones(4), 30))
    several = rng.normal(size=(30, 4))
    monkeypatch.setattr(ensembles, "N_STEPS", 400)
    for scores, has_several in ((log_odds, False), (several, True)):
        P = ensembles.as_probabilities(scores, several_labels=has_several)
        exact = 0.4 * np.linalg.solve(np.eye(30) - 0.6 * S, P)
        found = ensembles.smoothed(scores, csr_matrix(S), 0.6, several_labels=has_several)
        np.testing.assert_allclose(
            ensembles.as_probabilities(found, several_labels=has_several), exact, rtol=1e-9
        )
    assert ensembles.smoothed(log_odds, csr_matrix(S), 0.0, several_labels=False) is log_odds


@pytest.mark.parametrize("helps", [True, False])
def test_neighbours_count_only_where_they_know_better(helps: bool) -> None:
    """Two groups of documents; where neighbours are drawn from anywhere they say nothing."""
    rng = np.random.default_rng(6)
    truth = np.repeat([0, 1], 100)
    indicator = truth[:, None] == np.arange(2)
    log_odds = np.log(np.where(indicator ^ (rng.random(200) < 0.2)[:, None], 0.8, 0.2))
    same = truth[:, None] == truth if helps else np.ones((200, 200), dtype=bool)
    near = csr_matrix(same / same.sum(axis=1, keepdims=True))
    share = ensembles.best_share(log_odds, near, indicator, several_labels=False)
    assert share > 0.5 if helps else share == 0


def test_weights_are_judged_alike_however_documents_stand() -> None:
    """Of two members that always say one class, halves of one class each would prefer what is always wrong."""
    rng = np.random.default_rng(11)
    truth = np.arange(400) % 2
    indicator = truth[:, None] == np.arange(2)
    right = (rng.random(400) < 0.9)[:, None]
    one_class = [np.log(np.tile(shares, (400, 1))) for shares in ([0.7, 0.3], [0.3, 0.7])]
    every = np.stack([np.log(np.where(indicator == right, 0.85, 0.15)), *one_class])
    for scheme in SCHEMES:
        assert ensembles.cross_fitted(scheme, every, indicator, **ONE) > 0.85
    both = np.column_stack([indicator, np.arange(400) % 3 == 0])
    counts = [both[ensembles.dealt(both, 3) == part].sum(axis=0) for part in range(3)]
    assert np.ptp(counts, axis=0).max() <= 2


def test_without_a_member_that_has_all_weight_the_others_decide_alike() -> None:
    every = np.stack([odds(noisy(seed, noise)) for seed, noise in ((5, 0.7), (6, 0.7), (7, 0.9))])
    apart = ensembles.without_each(Weights("greedy", np.array([1.0, 0, 0])), every, INDICATOR, **ONE)
    others = Weights("equal", np.array([0, 0.5, 0.5])).combine(every, **ONE)
    whole = quality(every[0], INDICATOR, **ONE)
    assert apart == [quality(others, INDICATOR, **ONE), whole, whole]
    assert ensembles.without_each(Weights("greedy", np.ones(1)), every[:1], INDICATOR, **ONE) == [0]


def test_labels_that_all_documents_have_or_none_stay_certain_whatever_the_line() -> None:
    scores = np.random.default_rng(12).normal(size=(100, 2))
    constant = np.tile([-1e6, 65504.0], (100, 1))
    every, labels = np.column_stack([scores, constant]), np.tile([False, True], (100, 1))
    found = Calibration.fit(every, np.column_stack([scores < 0, labels]), **SEVERAL)
    assert found.slope < 0
    np.testing.assert_array_equal(found.probabilities(every)[:, 2:].round(6), labels)
    alone = Calibration.fit(constant, labels, **SEVERAL)
    np.testing.assert_array_equal(alone.probabilities(constant).round(6), labels)
