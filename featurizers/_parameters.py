"""What values the parameters of a method take: one rule each, which a plan and `fit` both go by.

A rule is of a kind, the annotation in the method's `__init__`, and of what the file's `ACCEPTS` says of the parameter:
for a number the interval it must lie in, written as mathematics does, "[1, inf)" or "(0, 1)" (a round bracket leaves
the end out), or a tuple of all values that are allowed.
"""

import ast
import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

# By what an annotation says: the values it allows, in words too. No number is True or False.
KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "int": ((Integral,), "a whole number"),
    "float": ((Real,), "a number"),
    "str": ((str,), "a text in quotes"),
    "bool": ((bool,), "True or False"),
    "None": ((type(None),), "None"),
    "list": ((list,), "a list"),
    "tuple": ((tuple,), "a tuple"),
    "dict": ((dict,), "a dictionary"),
}
NUMBERS = {"int", "float"}
NUMBER = r"(-?inf|-?[0-9.]+(?:e-?[0-9]+)?)"
INTERVAL = re.compile(rf"([\[(])\s*{NUMBER}\s*,\s*{NUMBER}\s*([\])])")
SEEDS = "[0, 4294967295]"


@dataclass(frozen=True)
class Range:
    """The numbers from `low` to `high`; an end that is left out is not one of them, and infinity never is."""

    low: float
    high: float
    has_low: bool
    has_high: bool

    @classmethod
    def read(cls, text: str) -> "Range":
        """Return the interval that "[low, high)" or the like writes. Raises ValueError for anything else."""
        found = INTERVAL.fullmatch(text.strip())
        if found is None or not float(found[2]) < float(found[3]):
            raise ValueError(f'an interval is written as "[1, inf)" or "(0, 1)": got {text!r}')
        low, high = float(found[2]), float(found[3])
        return cls(low, high, found[1] == "[" and low > -math.inf, found[4] == "]" and high < math.inf)

    def __contains__(self, value: Any) -> bool:
        above = value >= self.low if self.has_low else value > self.low
        return bool(above and (value <= self.high if self.has_high else value < self.high))

    def __str__(self) -> str:
        """Say where its numbers lie: `from 1`, `above 0 and below 1`, `from 0 to 1`."""
        low = "" if self.low == -math.inf else f"{'from' if self.has_low else 'above'} {self.low:.15g}"
        high = "" if self.high == math.inf else f"{'to' if self.has_high else 'below'} {self.high:.15g}"
        return (" " if self.has_low and self.has_high else " and ").join(filter(None, (low, high)))


@dataclass(frozen=True)
class Rule:
    """What a parameter takes: values of these `kinds` (of KINDS), numbers within the interval, or these `choices`.

    With `is_open` its annotation says something that is not understood here, and a value of another kind is left to
    the method; so are all kinds where nothing is annotated.
    """

    kinds: tuple[str, ...] = ()
    interval: Range | None = None
    choices: tuple[Any, ...] = ()
    is_open: bool = False

    @classmethod
    def read(cls, annotation: str, accepted: str | tuple[Any, ...] | None = None) -> "Rule":
        """Return the rule of an annotation, "" for none, and of the parameter's entry in `ACCEPTS`, None for none.

        Raises ValueError for an entry that is neither an interval nor a tuple of values.
        """
        if isinstance(accepted, tuple) and accepted:
            return cls(choices=accepted)
        if not isinstance(accepted, str | None):
            raise ValueError(
                f'accepted is an interval such as "[1, inf)" or a tuple of values: got {accepted!r}'
            )
        interval = None if accepted is None else Range.read(accepted)
        kinds, choices, is_open = _understood(annotation)
        return cls(tuple(dict.fromkeys(kinds)), interval, tuple(choices), is_open)

    def allows(self, value: Any) -> bool:
        """Tell whether a parameter may have this value."""
        if any(type(value) is type(choice) and value == choice for choice in self.choices):
            return True
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        of_kind = any(
            isinstance(value, KINDS[kind][0]) and (kind == "bool" or not isinstance(value, bool))
            for kind in self.kinds
        )
        if self.interval is not None and is_number and (of_kind or self.is_open):
            return value in self.interval
        return of_kind or self.is_open

    def __str__(self) -> str:
        """Say it in words: `a whole number from 1 or None`, `one of counts, tfidf`."""
        where = "" if self.interval is None else f" {self.interval}"
        said = [KINDS[kind][1] + (where if kind in NUMBERS else "") for kind in self.kinds]
        if self.is_open and self.interval is not None:
            said.append(f"a number{where}")
        if self.choices:
            said.append(f"one of {', '.join(map(str, self.choices))}")
        return " or ".join(said)


def check_parameters(method: Any, accepts: Mapping[str, Any]) -> None:
    """Raise ValueError for the first parameter of a method that its file's `ACCEPTS` or its annotations refuse."""
    for name, parameter in inspect.signature(type(method)).parameters.items():
        annotation = parameter.annotation
        said = "" if annotation is inspect.Parameter.empty else inspect.formatannotation(annotation)
        rule = Rule.read(said, SEEDS if name == "random_state" else accepts.get(name))
        if not rule.allows(value := getattr(method, name)):
            raise ValueError(f"{name} must be {rule}: got {value!r}")


def _understood(annotation: str) -> tuple[list[str], list[Any], bool]:
    """Return the kinds and the literal values that an annotation allows, and whether it says something else too."""
    try:
        return _of_tree(ast.parse(annotation, mode="eval").body)
    except (SyntaxError, ValueError):
        return [], [], True


def _of_tree(tree: ast.expr) -> tuple[list[str], list[Any], bool]:
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitOr):
        return _together(tree.left, tree.right)
    if isinstance(tree, ast.Constant):
        return ["None"] * (tree.value is None), [], tree.value is not None
    if isinstance(tree, ast.Subscript):
        name, inside = _last_name(tree.value), tree.slice
        parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        if name == "Literal":
            return [], [ast.literal_eval(part) for part in parts], False
        if name == "Optional":
            return _together(inside, ast.Constant(None))
        if name == "Union":
            return _together(*parts)
        if name == "Annotated":
            return _of_tree(parts[0])
        return _of_tree(tree.value)
    name = _last_name(tree)
    return ([name], [], False) if name in KINDS else ([], [], True)


def _together(*parts: ast.expr) -> tuple[list[str], list[Any], bool]:
    kinds: list[str] = []
    choices: list[Any] = []
    is_open = False
    for part in parts:
        more, others, also = _of_tree(part)
        kinds, choices, is_open = kinds + more, choices + others, is_open or also
    return kinds, choices, is_open


def _last_name(tree: ast.expr) -> str:
    return tree.attr if isinstance(tree, ast.Attribute) else tree.id if isinstance(tree, ast.Name) else ""
