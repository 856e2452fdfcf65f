"""The z-step of the relaxation: for each document a banded, non-negative least-squares problem, solved exactly.

minimise alpha'H alpha/2 - b'alpha over alpha >= 0, where H = X X' is banded, k - 1 beside the diagonal, and b = H a +
rho (1 - X w) for the alpha of the iteration before, a (derived in `_compressive_admm`). A primal-dual active set,
which begins as the words with a > 0: solve H alpha = b on it by a banded Cholesky factorisation, take out words that
come out negative, put in words whose gradient is negative, until nothing changes. Late iterations need little more
than one factorisation each.
"""

import numpy as np

from textbench.featurizers._kernels import kernel

TRIALS = 12  # of the active set, which might cycle; the next iteration goes on from there
TINY = 1e-9  # a gradient above minus this counts as zero


@kernel
def project(
    offsets: np.ndarray,
    begin: int,
    end: int,
    state: np.ndarray,
    alpha: np.ndarray,
    ahead: np.ndarray,
    rho: float,
) -> float:
    """Set alpha of the documents begin ... end - 1, and ahead = 2 alpha - (alpha before); return sum |change|.

    offsets: int64 (n_documents + 1,). alpha, ahead: (n_words,). state: float32 (max_length, n_words, 2), w
    beside D.
    """
    k = state.shape[0]
    longest = 0
    for d in range(begin, end):
        longest = max(longest, offsets[d + 1] - offsets[d])
    H, L = np.zeros((longest, k)), np.zeros((longest, k))
    b, x, solution = np.zeros(longest), np.zeros(longest), np.zeros(longest)
    active, rows = np.zeros(longest, dtype=np.bool_), np.zeros(longest, dtype=np.int64)
    moved = 0.0
    for d in range(begin, end):
        low, n = offsets[d], offsets[d + 1] - offsets[d]
        _system(low, n, state, alpha, rho, H, b)
        for j in range(n):
            active[j] = alpha[low + j] > 0
        for _ in range(TRIALS):
            n_rows = 0
            for j in range(n):
                x[j] = 0.0
                if active[j]:
                    rows[n_rows] = j
                    n_rows += 1
            _solve(H, b, rows, n_rows, L, solution)
            for p in range(n_rows):
                x[rows[p]] = solution[p]
            if not _revise(H, b, x, n, active):
                break
        for j in range(n):
            new, old = max(x[j], 0.0), alpha[low + j]
            moved += abs(new - old)
            ahead[low + j] = 2 * new - old
            alpha[low + j] = new
    return moved


@kernel
def _system(
    low: int, n: int, state: np.ndarray, alpha: np.ndarray, rho: float, H: np.ndarray, b: np.ndarray
) -> None:
    """H[j, t] = how many pointers cover both the words j and j + t; b = H alpha + rho (1 - X w)."""
    k = state.shape[0]
    for j in range(n):
        b[j] = rho
        for t in range(k):
            H[j, t] = 0.0
    for s in range(n):
        n_longer, w = 0, 0.0  # pointers from s over its first t words
        for t in range(min(k, n - s), 0, -1):
            if state[t - 1, low + s, 0] >= 0:
                n_longer += 1
                w += state[t - 1, low + s, 0]
            b[s + t - 1] -= rho * w
            for u in range(t):
                H[s + u, t - 1 - u] += n_longer
    for j in range(n):
        a = np.float64(alpha[low + j])
        if a != 0:
            b[j] += H[j, 0] * a
            for t in range(1, min(k, n - j)):
                b[j + t] += H[j, t] * a
            for t in range(1, min(k, j + 1)):
                b[j - t] += H[j - t, t] * a


@kernel
def _revise(H: np.ndarray, b: np.ndarray, x: np.ndarray, n: int, active: np.ndarray) -> bool:
    """Take negative words out of the active set and put in those with a negative gradient; did it change?."""
    k = H.shape[1]
    changed = False
    for j in range(n):
        if active[j]:
            if x[j] < 0:
                active[j] = False
                changed = True
            continue
        gradient = -b[j]
        for t in range(1, min(k, n - j)):
            gradient += H[j, t] * x[j + t]
        for t in range(1, min(k, j + 1)):
            gradient += H[j - t, t] * x[j - t]
        if gradient < -TINY:
            active[j] = True
            changed = True
    return changed


@kernel
def _solve(H: np.ndarray, b: np.ndarray, rows: np.ndarray, n_rows: int, L: np.ndarray, x: np.ndarray) -> None:
    """Solve H x = b on these rows; L[p, t] holds the entry (p, p - t) of the Cholesky factor, banded as H is."""
    k = H.shape[1]
    for p in range(n_rows):
        value = b[rows[p]]
        for t in range(min(k - 1, p), -1, -1):
            q = p - t
            distance = rows[p] - rows[q]
            entry = H[rows[q], distance] if distance < k else 0.0
            for u in range(1, min(k - 1 - t, q) + 1):
                entry -= L[p, t + u] * L[q, u]
            if t > 0:
                L[p, t] = entry / L[q, 0]
                value -= L[p, t] * x[q]
            else:
                L[p, 0] = np.sqrt(entry)
        x[p] = value / L[p, 0]
    for p in range(n_rows - 1, -1, -1):
        value = x[p]
        for t in range(1, min(k - 1, n_rows - 1 - p) + 1):
            value -= L[p + t, t] * x[p + t]
        x[p] = value / L[p, 0]
