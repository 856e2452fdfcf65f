"""The exponential of compiled loops against numpy's in double precision."""

import numba
import numpy as np
import pytest

from textbench.featurizers._exponential import exponential


@numba.njit
def of_all(x):  # type: ignore[no-untyped-def]
    found = np.empty_like(x)
    for i in range(len(x)):
        found[i] = exponential(x[i])
    return found


def test_single_precision_comes_near() -> None:
    x = np.linspace(-87, 88, 200_001, dtype=np.float32)
    np.testing.assert_allclose(of_all(x), np.exp(x.astype(np.float64)), rtol=1.5e-7)
    assert of_all(np.zeros(1, np.float32)) == 1


def test_what_is_too_small_is_the_smallest_and_what_is_no_number_stays_so() -> None:
    found = of_all(np.array([-88, -1e30, -np.inf, np.nan], np.float32))
    assert (found[:3] == of_all(np.array([-87], np.float32))).all()
    assert found[0] == pytest.approx(np.exp(-87), rel=1e-6)
    assert np.isnan(found[3])


def test_double_precision_is_that_of_the_library() -> None:
    x = np.linspace(-700, 700, 1001)
    np.testing.assert_allclose(of_all(x), np.exp(x), rtol=1e-15)
    assert exponential(1.0) == np.exp(1.0)
