"""Ensembles: how much each of several classifiers counts, learned from their out-of-fold scores.

Scores of one classifier are made probabilities first (`Calibration`), so that those of several can be averaged.

Sources: Caruana, Niculescu-Mizil, Crew, Ksikes, Ensemble Selection from Libraries of Models, ICML (2004); Wolpert,
Stacked Generalization, Neural Networks 5 (1992); Genest, Zidek, Combining Probability Distributions, Statistical
Science 1 (1986), section 3.3: the logarithmic pool; Platt, Probabilistic Outputs for Support Vector Machines (1999),
by Newton's method as in Lin, Lin, Weng, A Note on Platt's Probabilistic Outputs, Machine Learning 68 (2007);
Guo, Pleiss, Sun, Weinberger, On Calibration of Modern Neural Networks, ICML (2017), section 4.2; Zhou, Bousquet, Lal,
Weston, Schoelkopf, Learning with Local and Global Consistency, NIPS (2003), section 2: smoothing over neighbours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SCHEMES = ("greedy", "equal", "stacked")
N_ROUNDS = 50  # of greedy selection
FARTHEST = 30.0  # a log-odds beyond which a probability counts as certain
BEYOND = 6e4  # a score that says that all training documents have a label, or none
DECAY = 1e-3  # of stacking: how much weights are drawn towards equal ones
N_NEAR = 20  # neighbours that a document is smoothed over
N_STEPS = 10  # of smoothing
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # of what neighbours say in what is said of a document
NEAR_BYTES = 2**26  # of cosines at a time
MOST_STEPS = 100  # of Newton's method, which takes five to ten
FLAT = 1e-12  # a fall of the mean log loss that is none
# Of more scores Platt's sigmoid begins where it is best for every STRIDE-th.
MANY_SCORES = 100_000
STRIDE = 17

# The value of a function of some variables, its slope, of their shape, and its matrix of second derivatives.
Bend = tuple[float, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Calibration:
    """Platt's sigmoid, or for one of several classes a softmax: probabilities of scores times `slope` plus `offset`.

    Of two classes the offset is added to the second one's, which makes the softmax Platt's sigmoid of the difference,
    where that decides as many documents right; else, and of more classes, it is 0. Then 1 / slope is what Guo et al.
    call the temperature.
    """

    slope: float
    offset: float
    several_labels: bool

    @classmethod
    def fit(cls, scores: np.ndarray, indicator: np.ndarray, *, several_labels: bool) -> "Calibration":
        """Return the calibration of maximum likelihood for scores of documents that the classifier was not trained on.

        scores: floats (n_documents, n_labels), at least one document; indicator: bool of the same shape. Platt's
        targets, (n + 1) / (n + 2) instead of 1, keep a perfect classifier finite.
        """
        from scipy.optimize import minimize_scalar

        scores = scores.astype(np.float64)
        if not several_labels:
            spread = _spread(scores)
            n = len(scores)
            target = indicator * ((n + 1) / (n + 2) - 1 / ((n + 2) * scores.shape[1]))
            target += 1 / ((n + 2) * scores.shape[1])

            def softmax_loss(log_slope: float) -> float:
                return -float(np.sum(target * _log_softmax(scores * np.exp(log_slope) / spread))) / n

            found = minimize_scalar(
                softmax_loss, bounds=(-5.0, 8.0), method="bounded", options={"xatol": 1e-3}
            )
            plain = cls(float(np.exp(found.x)) / spread, 0.0, False)
            if scores.shape[1] != 2:
                return plain
            moved = cls(*_platt(scores[:, 1] - scores[:, 0], indicator[:, 1]), False)
            right = [quality(one.log_odds(scores), indicator, several_labels=False) for one in (plain, moved)]
            return moved if moved.slope > 0 and right[1] >= right[0] else plain
        is_near = np.abs(scores) < BEYOND
        near, positive = scores[is_near], indicator[is_near]
        if not len(near):
            return cls(1.0, 0.0, True)
        slope, offset = _platt(near, positive)
        return cls(slope, offset, True)

    def log_odds(self, scores: np.ndarray) -> np.ndarray:
        """Return float64 (n_documents, n_labels): log probabilities of one label, log-odds of each of several.

        scores: floats (n_documents, n_labels).
        """
        z = np.clip(scores.astype(np.float64), -1e9, 1e9) * self.slope
        if self.several_labels:
            z += self.offset
            # Whatever the slope is, a label that all training documents have, or none, stays what it is.
            z = np.where(np.abs(scores) < BEYOND, z, np.copysign(FARTHEST, scores))
            return np.clip(z, -FARTHEST, FARTHEST)
        if z.shape[1] == 2:
            z[:, 1] += self.offset
        return np.maximum(_log_softmax(z), -FARTHEST)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return probabilities (n_documents, n_labels) of scores, floats of that shape."""
        return as_probabilities(self.log_odds(scores), several_labels=self.several_labels)


@dataclass(frozen=True)
class Weights:
    """How much each member counts: `members` (n_members,), at least 0; by `scheme` of SCHEMES.

    Greedy and equal weights sum to 1 and average probabilities; stacked ones weigh log probabilities, of several labels
    log-odds, to which `offset` is added.
    """

    scheme: str
    members: np.ndarray
    offset: float = 0.0

    def combine(self, log_odds: np.ndarray, *, several_labels: bool) -> np.ndarray:
        """Return what all members together say, (n_documents, n_labels), in the terms of `Calibration.log_odds`.

        log_odds: (n_members, n_documents, n_labels), of each member.
        """
        if self.scheme == "stacked":
            z = np.tensordot(self.members, log_odds, axes=1) + self.offset
            return z if several_labels else _log_softmax(z)
        used = np.flatnonzero(self.members)
        mean = sum(
            self.members[one] * as_probabilities(log_odds[one], several_labels=several_labels) for one in used
        )
        return _as_log_odds(np.asarray(mean), several_labels)


def as_probabilities(log_odds: np.ndarray, *, several_labels: bool) -> np.ndarray:
    """Return the probabilities, (n_documents, n_labels), whose `log_odds` are those of `Calibration.log_odds`."""
    return _sigmoid(log_odds) if several_labels else np.exp(log_odds)


def _as_log_odds(probabilities: np.ndarray, several_labels: bool) -> np.ndarray:
    """Return the inverse of `as_probabilities`, float64 (n_documents, n_labels), as if nothing were quite certain."""
    tiny = np.exp(-FARTHEST)
    logs = np.log(np.maximum(probabilities, tiny))
    return logs - np.log(np.maximum(1 - probabilities, tiny)) if several_labels else logs


def quality(log_odds: np.ndarray, indicator: np.ndarray, *, several_labels: bool) -> float:
    """Return accuracy, or of several labels micro-F1 at log-odds of 0.

    log_odds: floats (n_documents, n_labels); indicator: bool of the same shape.
    """
    if not several_labels:
        return float(np.mean(indicator[np.arange(len(indicator)), log_odds.argmax(axis=1)]))
    return _micro_f1(log_odds > 0, indicator, int(np.count_nonzero(indicator)))


def _micro_f1(given: np.ndarray, indicator: np.ndarray, n_true: int) -> float:
    """Return micro-F1 where `n_true` labels are true, `indicator` among them, and none is given but here."""
    n_given = np.count_nonzero(given) + n_true
    return 2 * np.count_nonzero(given & indicator) / n_given if n_given else 1.0


def learn(scheme: str, log_odds: np.ndarray, indicator: np.ndarray, *, several_labels: bool) -> Weights:
    """Return the weights of members, learned from what they say of documents that they were not trained on.

    log_odds: (n_members, n_documents, n_labels); indicator: bool (n_documents, n_labels). ValueError for another
    scheme.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}; received {scheme!r}")
    n_members = len(log_odds)
    if scheme == "equal" or n_members == 1 or not len(indicator):
        return Weights("equal" if scheme == "stacked" else scheme, np.full(n_members, 1 / n_members))
    if scheme == "greedy":
        return Weights(scheme, _greedy(log_odds, indicator, several_labels))
    return _stacked(log_odds, indicator, several_labels)


def cross_fitted(scheme: str, log_odds: np.ndarray, indicator: np.ndarray, *, several_labels: bool) -> float:
    """Return the quality of documents that the weights were not learned from: two halves, each by the other's weights.

    The arguments are those of `learn`: log_odds (n_members, n_documents, n_labels), indicator bool (n_documents,
    n_labels). The halves are those of `dealt`.
    """
    found, halves = np.empty(log_odds.shape[1:]), dealt(indicator, 2)
    for half in (0, 1):
        own, others = halves == half, halves != half
        learned = learn(scheme, log_odds[:, others], indicator[others], several_labels=several_labels)
        found[own] = learned.combine(log_odds[:, own], several_labels=several_labels)
    return quality(found, indicator, several_labels=several_labels)


def dealt(indicator: np.ndarray, n_parts: int) -> np.ndarray:
    """Return which part each document is in, ints (n_documents,): sorted by their labels they are dealt in turn.

    indicator: bool (n_documents, n_labels). Every part has its share of documents of the same labels, however documents
    stand: where labels take turns, every second document has the same one.
    """
    parts = np.empty(len(indicator), dtype=int)
    parts[np.lexsort(indicator.T)] = np.arange(len(indicator)) % n_parts
    return parts


def _greedy(log_odds: np.ndarray, indicator: np.ndarray, several_labels: bool) -> np.ndarray:
    """Return weights by greedy selection with replacement (Caruana et al. 2004, section 2): the best of N_ROUNDS.

    log_odds: (n_members, n_documents, n_labels); indicator: bool (n_documents, n_labels). Of members that are equally
    good the one with the smaller log loss is taken. Of several labels, one that no member gives a document is given by
    no mean of theirs (sums of numbers up to 1/2 are rounded to no more than that times their count): others are asked.
    """
    shares = [as_probabilities(one, several_labels=several_labels) for one in log_odds]
    asked = np.any([one > 0.5 for one in shares], axis=0) if several_labels else np.s_[:]
    said, known, n_true = [one[asked] for one in shares], indicator[asked], int(np.count_nonzero(indicator))

    def worth(sums: np.ndarray) -> float:
        if several_labels:
            return _micro_f1(sums > size / 2, known, n_true)
        return quality(sums, known, several_labels=False)

    def sureness(place: int) -> float:
        return _sureness((total + shares[place]) / size, indicator, several_labels)

    counts, total = np.zeros(len(shares)), np.zeros_like(shares[0])
    best_score, best_mean, best = -1.0, total, counts
    for size in range(1, N_ROUNDS + 1):
        so_far = total[asked]
        scores = [worth(so_far + one) for one in said]
        highest = max(scores)
        tied = [place for place, score in enumerate(scores) if score == highest]
        chosen = tied[0] if len(tied) == 1 else max(tied, key=sureness)
        counts[chosen] += 1
        total += shares[chosen]
        if highest > best_score or (
            highest == best_score
            and _sureness(total / size, indicator, several_labels)
            > _sureness(best_mean, indicator, several_labels)
        ):
            best_score, best_mean, best = highest, total / size, counts / size
    return best


def _sureness(mean: np.ndarray, indicator: np.ndarray, several_labels: bool) -> float:
    """Return the mean log probability of what is true.

    mean: probabilities (n_documents, n_labels); indicator: bool of the same shape.
    """
    true = np.where(indicator, mean, 1 - mean) if several_labels else mean[indicator]
    return float(np.mean(np.log(np.maximum(true, np.exp(-FARTHEST)))))


def _stacked(log_odds: np.ndarray, indicator: np.ndarray, several_labels: bool) -> Weights:
    """Return weights of a logarithmic pool by maximum likelihood, drawn a little towards equal ones.

    log_odds: (n_members, n_documents, n_labels); indicator: bool (n_documents, n_labels).
    """
    n_members, n_documents = log_odds.shape[:2]
    if several_labels:
        rows = np.vstack([log_odds.reshape(n_members, -1), np.ones(indicator.size)])
        fit = _logistic(rows, indicator.ravel().astype(np.float64))
        per_document = indicator.size / n_documents
    else:
        fit, per_document = _softmax(log_odds, indicator), 1.0
    equal = np.full(n_members + several_labels, 1 / n_members)
    lowest = np.zeros(len(equal))
    if several_labels:
        equal[-1], lowest[-1] = 0.0, -np.inf

    def loss(weights: np.ndarray) -> Bend:
        value, slope, curvature = (per_document * part for part in fit(weights))
        apart = weights - equal
        return (
            value + DECAY * apart @ apart,
            slope + 2 * DECAY * apart,
            curvature + 2 * DECAY * np.eye(len(equal)),
        )

    best = _newton(loss, equal, lowest)
    # Where all speak against what is true, nothing that is left would tell one document from another.
    if not best[:n_members].any():
        best = equal
    return Weights("stacked", best[:n_members], float(best[-1]) if several_labels else 0.0)


def _logistic(rows: np.ndarray, goal: np.ndarray) -> Callable[[np.ndarray], Bend]:
    """Return the mean log loss of sigmoid(weights @ rows) for probabilities `goal`, as a function of the weights.

    rows: (n_weights, n); goal: (n,).
    """
    of_goal = rows @ goal

    def loss(weights: np.ndarray) -> Bend:
        z = rows.T @ weights
        far = np.exp(-np.abs(z))
        shares = np.where(z > 0, 1.0, far) / (1 + far)
        value = np.sum(np.maximum(z, 0) + np.log1p(far)) - weights @ of_goal
        curvature = (rows * (shares * (1 - shares))) @ rows.T
        return value / len(goal), (rows @ shares - of_goal) / len(goal), curvature / len(goal)

    return loss


def _softmax(log_odds: np.ndarray, indicator: np.ndarray) -> Callable[[np.ndarray], Bend]:
    """Return the mean log loss of softmax(weights @ log_odds), one label a document, as a function of the weights.

    log_odds: (n_members, n_documents, n_labels); indicator: bool (n_documents, n_labels).
    """
    true = log_odds[:, indicator]

    def loss(weights: np.ndarray) -> Bend:
        log_p = _log_softmax(np.tensordot(weights, log_odds, axes=1))
        shared = np.exp(log_p) * log_odds
        means, n = shared.sum(axis=2), len(indicator)
        curvature = np.tensordot(shared, log_odds, axes=([1, 2], [1, 2])) - means @ means.T
        return -log_p[indicator].sum() / n, (means - true).sum(axis=1) / n, curvature / n

    return loss


def _newton(
    loss: Callable[[np.ndarray], Bend], start: np.ndarray, lowest: np.ndarray | float = -np.inf
) -> np.ndarray:
    """Return where a convex function of few variables, none below `lowest`, is least: Newton's method.

    Each step goes towards the least value of the quadratic that agrees with the function to second order, under the
    same bounds, and is halved until the function falls as a quarter of that step's slope says, or is flat.
    """
    from scipy.optimize import lsq_linear

    here = start
    value, slope, curvature = loss(here)
    for _ in range(MOST_STEPS):
        values, axes = np.linalg.eigh(curvature)
        is_bent = values > values[-1] * 1e-12
        roots, axes = np.sqrt(values[is_bent]), axes[:, is_bent]
        bounds = (lowest - here, np.inf)
        step = lsq_linear(roots[:, None] * axes.T, -(axes.T @ slope) / roots, bounds, method="bvls").x
        fall = -slope @ step
        while fall > FLAT:
            there = here + step
            found = loss(there)
            if found[0] <= value - fall / 4:
                break
            step, fall = step / 2, fall / 2
        else:
            break
        here, (value, slope, curvature) = there, found
    return here


def without_each(
    weights: Weights, log_odds: np.ndarray, indicator: np.ndarray, *, several_labels: bool
) -> Sequence[float]:
    """Return for each member the quality of the ensemble without it, the others' weights in proportion.

    log_odds: (n_members, n_documents, n_labels); indicator: bool (n_documents, n_labels). It is that of the whole
    ensemble where the member has no weight; where it has all of it the others count alike. A lone one leaves 0.
    """
    whole = quality(
        weights.combine(log_odds, several_labels=several_labels), indicator, several_labels=several_labels
    )
    found = []
    for member, weight in enumerate(weights.members):
        if weight == 0 or len(weights.members) == 1:
            found.append(whole if weight == 0 else 0.0)
            continue
        is_other = np.arange(len(weights.members)) != member
        others = np.where(is_other, weights.members, 0.0)
        others = others if others.any() else is_other.astype(float)
        rest = Weights(weights.scheme, others * weights.members.sum() / others.sum(), weights.offset)
        found.append(
            quality(
                rest.combine(log_odds, several_labels=several_labels),
                indicator,
                several_labels=several_labels,
            )
        )
    return found


def nearest(X: "csr_matrix", groups: Sequence[np.ndarray]) -> "csr_matrix":
    """Return what each document's N_NEAR nearest others of its group are worth, csr (n_documents, n_documents).

    X: csr float (n_documents, n_terms), rows of unit length or empty. groups: positions of documents, none twice. Rows
    are cosines over their sum; of equally near documents those that stand first count. Who has no neighbour, for no
    term is shared or the group is of one, counts alone: a 1 on the diagonal.
    """
    from scipy.sparse import csr_matrix

    rows, columns, values = [], [], []
    for group in groups:
        own = X[group]
        others, n_rows = own.T.tocsr(), max(1, NEAR_BYTES // (8 * len(group)))
        for start in range(0, len(group), n_rows):
            cosines = (own[start : start + n_rows] @ others).toarray()
            here = np.arange(len(cosines))
            cosines[here, start + here] = 0
            near = np.argsort(-cosines, axis=1, kind="stable")[:, :N_NEAR]
            found = np.take_along_axis(cosines, near, axis=1)
            total = found.sum(axis=1, keepdims=True)
            near[:, 0] = np.where(total[:, 0] > 0, near[:, 0], start + here)
            found[:, 0] = np.where(total[:, 0] > 0, found[:, 0], 1)
            rows.append(np.repeat(group[start + here], near.shape[1]))
            columns.append(group[near].ravel())
            values.append((found / np.where(total > 0, total, 1)).ravel())
    if not rows:
        return csr_matrix((X.shape[0], X.shape[0]))
    found = csr_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), [X.shape[0]] * 2
    )
    found.eliminate_zeros()
    return found


def smoothed(log_odds: np.ndarray, near: "csr_matrix", share: float, *, several_labels: bool) -> np.ndarray:
    """Return what is said of documents that lie near others: F <- (1 - share) P + share near F, from F = P.

    log_odds: (n_documents, n_labels) in the terms of `Calibration.log_odds`, which are returned too; P are their
    probabilities. near: csr (n_documents, n_documents) as of `nearest`. A share of 0 changes nothing.
    """
    if not share:
        return log_odds
    own = as_probabilities(log_odds, several_labels=several_labels)
    found = own
    for _ in range(N_STEPS):
        found = (1 - share) * own + share * (near @ found)
    return _as_log_odds(found, several_labels)


def best_share(
    log_odds: np.ndarray, near: "csr_matrix", indicator: np.ndarray, *, several_labels: bool
) -> float:
    """Return the share of SHARES with which `smoothed` says most truly what is known, the least one of equal ones.

    log_odds: (n_documents, n_labels); near: csr (n_documents, n_documents); indicator: bool (n_documents, n_labels).
    """

    def worth(share: float) -> tuple[float, float]:
        said = smoothed(log_odds, near, share, several_labels=several_labels)
        mean = as_probabilities(said, several_labels=several_labels)
        decided = quality(said, indicator, several_labels=several_labels)
        return decided, _sureness(mean, indicator, several_labels)

    return max(SHARES, key=worth)


def _platt(scores: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Return the slope and offset of Platt's sigmoid by maximum likelihood for his targets.

    scores: float64 (n,); positive: bool (n,).
    """
    spread, middle = _spread(scores), float(scores.mean())
    n_positive, n_negative = positive.sum(), (~positive).sum()
    goal = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    rows = np.stack([(scores - middle) / spread, np.ones(len(scores))])
    start = np.array([1.0, 0.0])
    if len(scores) > MANY_SCORES:
        start = _newton(_logistic(rows[:, ::STRIDE].copy(), goal[::STRIDE]), start)
    slope, offset = _newton(_logistic(rows, goal), start)
    return float(slope) / spread, float(offset - slope * middle / spread)


def _spread(scores: np.ndarray) -> float:
    """Return the standard deviation of scores, 1 where they are all the same, whose computed one is of rounding."""
    return float(scores.std()) if np.ptp(scores) else 1.0


def _log_softmax(z: np.ndarray) -> np.ndarray:
    """Return the logarithm of the softmax of each row of z, (n_documents, n_labels)."""
    shifted = z - z.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def _sigmoid(z: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-z)), of z's shape, (n_documents, n_labels)."""
    from scipy.special import expit

    return expit(z)
