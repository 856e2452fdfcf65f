"""Many concave functions at once: limited-memory BFGS over the rows of a matrix, in a ball if one is given.

Source: J. Nocedal and S. Wright, "Numerical optimization", 2nd edition, Springer 2006, algorithms 7.4 and 3.1.

`start` and all points are (n_rows, n_dimensions).
"""

from collections.abc import Callable

import numpy as np

MEMORY = 6
SUFFICIENT = 1e-4  # of the rise that the slope promises
MAX_HALVINGS = 20

# Values (n_rows,) and gradients (n_rows, n_dimensions) of the functions at the rows of a matrix.
Functions = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def maximise(
    functions: Functions,
    start: np.ndarray,
    *,
    n_steps: int = 50,
    tolerance: float = 1e-6,
    radius: float = np.inf,
) -> np.ndarray:
    """Return the rows that maximise one concave function each, float64 (n_rows, n_dimensions), from `start` on.

    No row's value ever falls. A row is done when a step raises it by less than `tolerance` times its size. With
    `radius` rows stay in the ball of this radius around zero.
    """
    points = _projected(np.array(start, dtype=np.float64), radius)
    values, slopes = functions(points)
    steps: list[np.ndarray] = []
    turns: list[np.ndarray] = []
    is_done = np.zeros(len(points), dtype=bool)
    for _ in range(n_steps):
        directions = _directions(slopes, steps, turns)
        rises = np.einsum("ij,ij->i", directions, slopes)
        is_bad = ~(rises > 0)
        directions[is_bad] = slopes[is_bad]
        moved, new_values, new_slopes = _search(
            functions, points, values, slopes, directions, is_done, radius
        )
        steps = [*steps, moved - points][-MEMORY:]
        turns = [*turns, slopes - new_slopes][-MEMORY:]
        is_done |= ~(new_values - values > tolerance * (np.abs(values) + 1e-12))
        points, values, slopes = moved, new_values, new_slopes
        if is_done.all():
            break
    return points


def _projected(points: np.ndarray, radius: float) -> np.ndarray:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(lengths > radius, points * (radius / lengths), points)


def _search(
    functions: Functions,
    points: np.ndarray,
    values: np.ndarray,
    slopes: np.ndarray,
    directions: np.ndarray,
    is_done: np.ndarray,
    radius: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the points, values and slopes after a step of each row that raises it; a row that finds none stays."""
    best, best_values, best_slopes = points.copy(), values.copy(), slopes.copy()
    lengths, waiting = np.ones(len(points)), ~is_done
    steepness = np.linalg.norm(slopes, axis=1, keepdims=True)
    size = np.linalg.norm(directions, axis=1, keepdims=True)
    uphill = slopes * (size / np.where(steepness > 0, steepness, 1))  # as far as the direction goes
    for _ in range(MAX_HALVINGS):
        tried = _projected(np.where(waiting[:, None], points + lengths[:, None] * directions, points), radius)
        found, found_slopes = functions(tried)
        promised = np.einsum("ij,ij->i", slopes, tried - points)
        is_good = waiting & (found >= values + SUFFICIENT * promised) & (promised > 0)
        best[is_good], best_values[is_good] = tried[is_good], found[is_good]
        best_slopes[is_good] = found_slopes[is_good]
        waiting &= ~is_good
        if not waiting.any():
            break
        lengths[waiting] /= 4
        if np.isfinite(radius):  # along another direction the way back into the ball may lead downhill
            directions = np.where(waiting[:, None], uphill, directions)
    return best, best_values, best_slopes


def _directions(slopes: np.ndarray, steps: list[np.ndarray], turns: list[np.ndarray]) -> np.ndarray:
    """Return the two-loop recursion's directions of ascent, row by row; a step without curvature counts for nothing."""
    if not steps:
        lengths = np.linalg.norm(slopes, axis=1, keepdims=True)
        return slopes / np.maximum(lengths, 1.0)
    direction, kept = slopes.copy(), []
    for step, turn in zip(reversed(steps), reversed(turns), strict=True):
        curvature = np.einsum("ij,ij->i", step, turn)
        size = np.einsum("ij,ij->i", turn, turn)
        inverse = np.where(curvature > 1e-12 * size, 1 / np.where(curvature > 0, curvature, 1), 0.0)
        share = inverse * np.einsum("ij,ij->i", step, direction)
        direction -= share[:, None] * turn
        kept.append((step, turn, inverse, share))
    step, turn, inverse, _ = kept[0]
    size = np.einsum("ij,ij->i", turn, turn)
    scale = np.where((inverse > 0) & (size > 0), 1 / np.where(inverse * size > 0, inverse * size, 1), 1.0)
    direction *= scale[:, None]
    for step, turn, inverse, share in reversed(kept):
        direction += (share - inverse * np.einsum("ij,ij->i", turn, direction))[:, None] * step
    return direction
