"""An exponential that compiled loops over single precision run on several numbers at once.

The compiler calls the library's exponential for each number alone. The approximation is that of the Cephes library
(S. Moshier, 1992, `expf`): within 1.5e-7 of the value.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

ONE = np.float32(1)
LOWEST = np.float32(-87)  # below it numbers are denormal; exp(-87) is 2e-38
LOG2_E, HALF = np.float32(1 / np.log(2)), np.float32(0.5)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)  # their sum is the logarithm of 2
A, B, C = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
D, E = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1)
BIAS, MANTISSA = np.int32(127), np.int32(23)  # of the exponent, bits of the fraction


@intrinsic
def _of_bits(context, bits):  # type: ignore[no-untyped-def]
    """Return the float32 with these bits, an int32."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), code


def exponential(x: Any) -> Any:
    """Return exp(x) of a number x <= 88; of a float32 below -87 that of -87."""
    return np.exp(x)


@overload(exponential, jit_options={"fastmath": {"contract"}})
def _exponential(x):  # type: ignore[no-untyped-def]
    if x != types.float32:
        return lambda x: np.exp(x)

    def of_single(x):  # type: ignore[no-untyped-def]
        x = LOWEST if x < LOWEST else x
        n = np.floor(x * LOG2_E + HALF)
        r = x - n * LN2_HIGH - n * LN2_LOW
        p = ((((A * r + B) * r + C) * r + D) * r + E) * r + HALF
        return (p * r * r + r + ONE) * _of_bits(np.int32((np.int32(n) + BIAS) << MANTISSA))

    return of_single
