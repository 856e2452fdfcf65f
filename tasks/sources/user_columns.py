"""Strings of the user's documents, which go into columns of Arrow as they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow

BLOCK_ROWS = 4096  # in an array
JOINED_BYTES = 2**28


class StringColumn:
    """Strings that go into arrays of Arrow, some thousands at a time; `arrays` has them once all are here."""

    def __init__(self) -> None:
        self.arrays: list[pyarrow.Array] = []
        self._last: list[str] = []

    def append(self, value: str) -> None:
        """Put a string behind what is there."""
        self._last.append(value)
        if len(self._last) == BLOCK_ROWS:
            self.close()

    def close(self) -> None:
        """Put what came last into an array too."""
        import pyarrow

        self.arrays.append(pyarrow.array(self._last, pyarrow.string()))
        self._last = []


def split_arrays(arrays: list[pyarrow.Array], is_test: np.ndarray) -> tuple[Any, Any]:
    """Return the rows of the training and of the test documents, in order; the arrays are used up."""
    import pyarrow

    parts: tuple[list[pyarrow.Array], list[pyarrow.Array]] = ([], [])
    arrays.reverse()
    end = 0
    while arrays:
        array = arrays.pop()
        start, end = end, end + len(array)
        for part, mask in zip(parts, (~is_test[start:end], is_test[start:end]), strict=True):
            part.append(array.filter(pyarrow.array(mask)))
    # One array, as a list of strings becomes, unless the copy would be felt.
    return tuple(
        pyarrow.concat_arrays(part)
        if sum(array.nbytes for array in part) < JOINED_BYTES
        else pyarrow.chunked_array(part)
        for part in parts
    )
