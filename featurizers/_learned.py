"""How fitted methods are stored: their parameters and the learned state they name, as arrays and JSON values."""

import inspect
from typing import Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted


class LearnedArrays:
    """`to_arrays` and `from_arrays` of a method whose learned state is the attributes that `learned` names.

    Each of them is an array or a JSON value. What is derived from others, or as large as the training texts without
    being needed to transform new ones, is left out.
    """

    learned: ClassVar[tuple[str, ...]]

    def to_arrays(self) -> dict[str, Any]:
        """Return all that `from_arrays` needs: parameters and learned state, under their own names."""
        check_is_fitted(self)
        state = {name: getattr(self, name) for name in self.learned}
        return {**self.get_params(), **state}  # type: ignore[attr-defined]  # of scikit-learn's BaseEstimator

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Return the fitted method that `to_arrays` described."""
        method = cls(**{name: arrays[name] for name in inspect.signature(cls).parameters})
        for name in cls.learned:
            setattr(method, name, arrays[name])
        return method
