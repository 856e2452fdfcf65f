"""Two threads of compiled loops wait for one another, some ten thousand times a second.

A lock of the operating system takes longer than the work between two meetings.
"""

from typing import Any

from numba import njit, types
from numba.extending import intrinsic

PATIENCE = 2000  # looks at the other before its core is left to whoever wants it
_leave_core = types.ExternalFunction("sched_yield", types.int32())


@intrinsic
def _say(context, numbers, place, number):  # type: ignore[no-untyped-def]
    """numbers[place] = number, an int64, seen by others after all that was written before it."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        builder.store_atomic(arguments[2], builder.gep(data, [arguments[1]]), "release", 8)

    return types.void(numbers, types.int64, types.int64), code


@intrinsic
def _heard(context, numbers, place):  # type: ignore[no-untyped-def]
    """numbers[place], an int64, read before all that is read after it."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(builder.gep(data, [arguments[1]]), "acquire", 8)

    return types.int64(numbers, types.int64), code


@njit(cache=True, nogil=True)
def meet(arrived, mine, number):  # type: ignore[no-untyped-def]
    """Say that thread `mine`, 0 or 1, has got to `number`; return when the other has too.

    arrived: int64 (2, 8) of zeros, a row for each thread in a cache line of its own; numbers ascend from 1. What one
    wrote before it came the other can read when it returns.
    """
    flat = arrived.reshape(-1)
    width = arrived.shape[1]
    _say(flat, mine * width, number)
    looks = 0
    while _heard(flat, (1 - mine) * width) < number:
        looks += 1
        if looks > PATIENCE:
            _leave_core()
