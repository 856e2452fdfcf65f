"""Requests: what a command, a suite's file, a form of Prefect's page and a flow ask for, each field written once.

A field is a line of a class here: its type, its default, and in `Asked` its bounds and what people are told of it. The
options of commands (`flows.cli.options`), the keys of suites (`flows.plan.suites`), the fields of forms
(`flows.plan.forms`) and the command that repeats a run are made of these lines, and by them pydantic checks a request
as it is made. The command line reads them to answer `--help`, so nothing slow is imported before that.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, wraps
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from textbench.tasks import InputError
from textbench.tasks.tracking.settings import shown

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

AnyRequest = TypeVar("AnyRequest", bound="Request | RetrievalRequest")
AnyCell = TypeVar("AnyCell")
MAX_SEEDS = 1000
SPLITS = {"n_folds", "held_out"}  # ways to part training documents, of which one is asked for
BUDGETS = (100, 200, 500, 1000, 2000, 5000)
COLLECTIONS = ("cranfield", "cacm")
RANKERS = ("bm25", "tfidf", "lsi", "lm", "lm-linear", "mb", "lm+scdv", "mb+scdv", "lm+pv")
Protocol = Literal["honest", "transductive", "faithful"]
COMPARE, TUNING, RESOURCES = "What to compare", "Tuning", "Resources"


@dataclass(frozen=True)
class Asked:
    """What people are told of a field, and its bounds, which pydantic reads like those of `annotated_types`.

    `flags` are its options, by default its name; `default` is its default in words, `panel` its group in the help. A
    field that forms leave out is not `in_forms`.
    """

    help: str = ""
    flags: tuple[str, ...] = ()
    default: str = ""
    panel: str = COMPARE
    in_forms: bool = True
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    __is_annotated_types_grouped_metadata__ = True

    def __iter__(self) -> Iterator[Any]:
        import annotated_types

        bounds = {name: getattr(self, name) for name in ("ge", "gt", "le", "lt")}
        return (getattr(annotated_types, n.capitalize())(b) for n, b in bounds.items() if b is not None)


class Field(NamedTuple):
    """A field that people may fill: its name, and that of the field that it is a key of, if it is one.

    `item` is its type as annotated, of a list that of what it holds.
    """

    name: str
    group: str
    asked: Asked
    item: Any
    is_list: bool
    is_optional: bool
    default: Any

    @property
    def flags(self) -> tuple[str, ...]:
        """Its options."""
        return self.asked.flags or (f"--{self.name.replace('_', '-')}",)

    @property
    def flag(self) -> str:
        """The option that gives one value: the last of those that are words."""
        return [flag for flag in self.flags if flag.startswith("--")][-1]

    @property
    def shown(self) -> str:
        """Its default in words; none is needed for what is off."""
        return self.asked.default or ("" if self.default in (None, False) else str(self.default))

    @property
    def type(self) -> Any:
        """The type of its value, of a list that of what it holds: a name of several counts as text."""
        plain = get_args(self.item)[0] if get_origin(self.item) is Annotated else self.item
        return str if get_origin(plain) is Literal else plain


Count = Annotated[int, Asked(ge=1)]
MOST_DRAWS = 1000  # of labels, by their numbers
Seed = Annotated[int, Asked(ge=0, le=2**32 - 1)]
Seeds = Annotated[
    Sequence[Seed], Asked("Run seeds 0 .. N-1; intervals need at least 2.", ("--seeds", "--seed"), "1")
]
DataSets = Annotated[
    Sequence[str], Asked("Data sets; what is not on this machine is downloaded.", ("--dataset", "-d"))
]
Methods = Annotated[Sequence[str], Asked("Methods to compare: names, or Python files.", ("--method", "-m"))]
Trials = Annotated[
    int, Asked("Settings tried for each method; 0 runs its defaults.", panel=TUNING, ge=0, le=10_000)
]
Rule = Annotated[
    str | None, Asked("Token rule, such as letters or words.", default="the data's", in_forms=False)
]
Fresh = Annotated[bool, Asked("Compute everything again.", panel=RESOURCES)]
KeepFeatures = Annotated[
    bool,
    Asked(
        "Keep all features; those that are made again in seconds go when all is recorded.",
        panel=RESOURCES,
        in_forms=False,
    ),
]


class Validation:
    """How tuning validates: arguments of `evaluation.probes.tuning.choose_c`, over those of the protocol."""

    n_folds: Annotated[
        int, Asked("Folds of the cross-validation.", ("--folds",), "3", TUNING, in_forms=False, ge=2)
    ]
    held_out: Annotated[
        float,
        Asked(
            "Tune on this share of the training documents, instead of folds.",
            panel=TUNING, in_forms=False, gt=0, lt=1,
        ),
    ]  # fmt: skip
    metric: Annotated[
        str,
        Asked(
            "What tuning goes by.", ("--tune-metric",), "accuracy; several labels: micro_f1_zero",
            TUNING, in_forms=False,
        ),
    ]  # fmt: skip
    c_grid: Annotated[
        Sequence[Annotated[float, Asked(gt=0)]],
        Asked(
            "Values of the probe's C, such as 0.3,1,3,10,30.",
            default="six or more",
            panel=TUNING,
            in_forms=False,
        ),
    ]
    settings: Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Request:
    """What is asked of one sweep: every method on every data set, once a seed, under one protocol.

    A method may be written with fixed parameters, `lsi(n_components=100)`. `own` holds the fields of
    `tasks.sources.user_data.UserData`: the user's documents, beside or instead of `datasets`. `probe` and `rule`
    replace the protocol's classifier and the data sets' token rules. `trials` and `search_seconds` bound the search
    of each method's parameters. `labels`, the arguments of `evaluation.probes.budgets.labelled_documents`, are the
    training labels that may be seen, all if empty. InputError for what cannot be asked; names are looked up in `plan`.
    """

    datasets: DataSets
    methods: Methods
    seeds: Seeds = (0,)
    protocol: Annotated[
        Protocol,
        Asked(
            "honest learns from training texts alone; transductive also reads unlabelled test texts; faithful does "
            "what a paper did."
        ),
    ] = "honest"
    trials: Trials = 0
    name: str = "custom"
    probe: Annotated[
        str | None,
        Asked(
            "The classifier: linear-svm, logistic-regression, elastic-net, neighbours or perceptron.",
            default="the protocol's",
        ),
    ] = None
    rule: Rule = None
    own: Mapping[str, Any] | None = None
    search_seconds: Annotated[
        float | None,
        Asked("Try settings until they have cost this many seconds.", panel=TUNING, in_forms=False, gt=0),
    ] = None
    validation: Annotated[Mapping[str, Any], Validation] = field(default_factory=dict)
    paper: Annotated[
        str | None,
        Asked("With faithful: whose protocol, such as scdv-2017.", default="the method's", in_forms=False),
    ] = None
    labels: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(vars(self), type(self))
        if not (self.datasets or self.own) or not self.methods or not self.seeds:
            raise InputError("a run needs at least one data set, one method and one seed")
        if len(self.validation.keys() & SPLITS) == 2:
            raise FieldError(
                lambda named: (
                    f"{named('n_folds')} and {named('held_out')} are two ways to validate; give one of them"
                )
            )
        if self.paper is not None and self.protocol != "faithful":
            raise FieldError(
                lambda named: (
                    f"{named('paper')} says whose faithful protocol is meant and needs {named('protocol')} "
                    f"faithful, got {self.protocol}"
                )
            )

    def labels_in_turn(self) -> list[Mapping[str, Any]]:
        """Return the `labels` of its cells, one after the other."""
        return [self.labels]

    def is_again(self, dataset: str, labels: Mapping[str, Any]) -> bool:
        """Whether these labels of a data set are those of another of its cells."""
        return False

    def alone(self, **others: Any) -> "Request":
        """Return what asks for one of its cells, which differs from it in `others`."""
        return Request(**{one.name: getattr(self, one.name) for one in fields(Request)} | others)


@dataclass(frozen=True)
class BenchmarkRequest(Request):
    """A sweep, and how it is run.

    With `timed` cells run one at a time, short stages twice, and like with `fresh` nothing stored before is used. The
    limits, seconds and megabytes, hold for each computation, which of a short stage is both times.
    """

    timed: Annotated[
        bool,
        Asked(
            "One cell at a time, nothing cached, short stages warmed up, the same bits: seconds to publish.",
            panel=RESOURCES,
        ),
    ] = False
    fresh: Fresh = False
    time_limit: Annotated[float | None, Asked("Seconds a stage may take.", panel=RESOURCES, gt=0)] = None
    memory_limit: Annotated[float | None, Asked("Megabytes a stage may use.", panel=RESOURCES, gt=0)] = None
    no_scores: Annotated[
        bool,
        Asked(
            "Fit no folds for out-of-fold scores, of which ensembles are made, where tuning kept none.",
            panel=RESOURCES,
            in_forms=False,
        ),
    ] = False
    keep_features: KeepFeatures = False


@dataclass(frozen=True)
class LabelBudgetRequest(Request):
    """Label-budget curves: every method at every budget of every draw; `stratified` draws each class in proportion.

    `n_documents`: how many training documents a data set has, where that is known; all of them are drawn once.
    """

    seeds: Annotated[Sequence[Seed], Asked("Seed of the methods.", ("--seed",), "0")] = (0,)
    name: str = "curve"
    budgets: Annotated[
        Sequence[Count],
        Asked(
            "Numbers of labelled training documents.",
            default=f"{','.join(map(str, BUDGETS))}; with fewer documents up to all of them",
        ),
    ] = BUDGETS
    draws: Annotated[
        int, Asked("Random draws of labels; every method gets the same.", ge=1, le=MOST_DRAWS)
    ] = 5
    first_draw: Annotated[
        int | None,
        Asked(
            "Number of the first draw: after others, run elsewhere or recorded.",
            default="0",
            ge=0,
            le=MOST_DRAWS - 1,
        ),
    ] = None
    stratified: Annotated[bool, Asked("Draw each class in proportion.")] = False
    keep_features: KeepFeatures = False
    n_documents: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.first_draw or 0) + self.draws > MOST_DRAWS:
            raise FieldError(
                lambda named: (
                    f"{named('first_draw')} and {named('draws')} must be at most {MOST_DRAWS} together, "
                    f"got {self.first_draw} and {self.draws}"
                )
            )

    def is_again(self, dataset: str, labels: Mapping[str, Any]) -> bool:
        """Whether these are all labels of the data set, drawn before."""
        return labels["draw"] > 0 and labels["budget"] == self.n_documents.get(dataset)

    def labels_in_turn(self) -> list[Mapping[str, Any]]:
        """Return the `labels` of its cells: for each draw those of every budget, smallest first."""
        first = self.first_draw or 0
        return [
            {"budget": budget, "draw": draw, "stratified": self.stratified}
            for draw in range(first, first + self.draws)
            for budget in sorted(set(self.budgets))
        ]


@dataclass(frozen=True)
class DerivedRequest(Request):
    """What a paper shows that is no result of a cell: `pieces`, stages, of every method on every data set."""

    name: str = "pieces"
    pieces: Sequence[str] = ()
    keep_features: KeepFeatures = False


@dataclass(frozen=True)
class RetrievalRequest:
    """What is asked of retrieval: every ranker on every collection, once a seed.

    `honest` tunes by `trials` settings on other folds' queries; `faithful` keeps what was published (lambda 0.5) and
    chooses nothing. `judgments` is the policy that says which codes are relevant. `own` holds the fields of
    `tasks.collections._user.OwnCollection`, the user's files beside or instead of `collections`.
    """

    collections: Annotated[
        Sequence[str],
        Asked(
            "Collections: cranfield, cacm, or irds:ID of an ir_datasets collection that is on this machine.",
            ("--collection", "-c"), "cranfield and cacm",
        ),
    ] = COLLECTIONS  # fmt: skip
    rankers: Annotated[
        Sequence[str],
        Asked(
            "Rankers: bm25, lm, lm-linear, mb, METHOD (its cosine), lm+METHOD, mb+METHOD, lm+pv.",
            ("--method", "-m"), "all of Table 6 and baselines",
        ),
    ] = RANKERS  # fmt: skip
    seeds: Seeds = (0,)
    protocol: Annotated[
        Literal["honest", "faithful"],
        Asked("honest chooses parameters on other queries; faithful keeps those published."),
    ] = "honest"
    trials: Annotated[
        int, Asked("Settings tried on other queries; 0 ranks by the defaults.", panel=TUNING, ge=0, le=10_000)
    ] = 30
    n_folds: Annotated[
        int,
        Asked("Folds of queries that the choice is made over.", ("--folds",), panel=TUNING, ge=2, le=100),
    ] = 5
    judgments: Annotated[
        Literal["positive", "nonzero"],
        Asked("positive: codes from 1 are relevant; nonzero: Cranfield's -1 too."),
    ] = "positive"
    rule: Rule = None
    own: Mapping[str, Any] | None = None
    name: str = "retrieval"
    fresh: Fresh = False
    keep_features: KeepFeatures = False

    def __post_init__(self) -> None:
        _check(vars(self), type(self))
        if not (self.collections or self.own) or not self.rankers or not self.seeds:
            raise InputError("retrieval needs at least one collection, one ranker and one seed")


class FieldError(InputError):
    """A field that cannot be so. `say` makes the message, given what a field is called where it was asked for."""

    def __init__(self, say: Callable[[Callable[[str], str]], str]) -> None:
        super().__init__(say(str))
        self.say = say


def once(work: Callable[[AnyRequest], list[AnyCell]]) -> Callable[[AnyRequest], list[AnyCell]]:
    """Have a plan of a request made once: it is kept with that very request, and whoever asks again gets it."""

    @wraps(work)
    def kept(request: AnyRequest) -> list[AnyCell]:
        known = vars(request).setdefault("_kept", {})
        if work not in known:
            known[work] = work(request)
        return list(known[work])

    return kept


def first_seeds(n_seeds: int) -> list[int]:
    """Return the first seeds, as which people ask for several. Raises FieldError for no number of them."""
    if type(n_seeds) is not int or not 1 <= n_seeds <= MAX_SEEDS:
        raise FieldError(lambda named: f"{named('seeds')} must lie in 1 .. {MAX_SEEDS}, got {shown(n_seeds)}")
    return list(range(n_seeds))


def fields_of(described: type) -> Iterator[Field]:
    """Yield the fields of a request that people may fill, a key of a field in the place of that."""
    for name, hint in get_type_hints(described, include_extras=True).items():
        base, *metadata = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        for about in metadata:
            if isinstance(about, type):
                yield from (one._replace(group=name) for one in fields_of(about))
            elif isinstance(about, Asked):
                some = [kind for kind in get_args(base) if kind is not type(None)]
                is_list, is_optional = get_origin(base) is Sequence, type(None) in get_args(base)
                item = some[0] if is_list or is_optional else base
                yield Field(name, "", about, item, is_list, is_optional, getattr(described, name, None))


RULES = {
    "greater_than_equal": "at least {ge:.10g}",
    "greater_than": "above {gt:.10g}",
    "less_than_equal": "at most {le:.10g}",
    "less_than": "below {lt:.10g}",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "model_type": "a list of keys with values",
    "literal_error": "{expected}",
    **dict.fromkeys(("is_instance_of", "sequence_str", "list_type"), "a list"),
}  # fmt: skip


def _check(values: Mapping[str, Any], described: type) -> None:
    """Raise FieldError for the first field whose value is not of its type or out of its bounds."""
    from pydantic import ValidationError

    try:
        _model(described).model_validate(values)
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False)[0]) from error


def _refusal(found: "ErrorDetails") -> FieldError:
    *_, name = (part for part in found["loc"] if isinstance(part, str))
    if found["type"] == "extra_forbidden":
        return FieldError(lambda named: f"there is no field {name}")
    rule = RULES.get(found["type"], found["msg"]).format(**found.get("ctx", {}))
    return FieldError(lambda named: f"{named(name)} must be {rule}, got {shown(found['input'])}")


@cache
def _model(described: type) -> "type[BaseModel]":
    """Return the model that a class's values are checked by; a class that is no dataclass may leave fields out."""
    from pydantic import ConfigDict, create_model

    made: dict[str, Any] = {}
    for name, hint in get_type_hints(described, include_extras=True).items():
        keys = next((about for about in getattr(hint, "__metadata__", ()) if isinstance(about, type)), None)
        one = hint if keys is None else _model(keys)
        made[name] = (one, ...) if is_dataclass(described) else (one | None, None)
    strict = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    return create_model(described.__name__, __config__=strict, **made)
