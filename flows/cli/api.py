"""The Python API: the commands of the same names as functions, whose results are objects.

Keyword arguments are the options of the commands, their hyphens written as underscores (`--test-size` is `test_size`).
Functions that compute run in this process, which starts children and no server: stages in as many threads as the
machine has cores, or `TEXTBENCH_JOBS`. What they compute is kept in the results folder, where the commands find it.

`home` is the results folder (`$TEXTBENCH_HOME`, else `.textbench`), `seeds` are how many, or which. `tracking` says
where MLflow's runs go: nowhere, unless it is True (where mlflow.yaml says) or the address of a database or a server.
With `progress`, a bar (a line a cell where there is no terminal) is shown on standard error. Bad input raises
InputError, a ValueError of one line.
"""

import contextlib
import functools
import inspect
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, get_args

from textbench.flows.cli.compare import entrants
from textbench.flows.cli.list import dataset_entries, method_entries
from textbench.flows.cli.options import own_options
from textbench.flows.cli.output import check_figure, check_file, check_folder
from textbench.flows.cli.retrieve import own_collection
from textbench.flows.cli.runner import cells_of, expected_seconds
from textbench.flows.explain.export import Model
from textbench.flows.plan.request import (
    COLLECTIONS,
    RANKERS,
    BenchmarkRequest,
    Field,
    FieldError,
    LabelBudgetRequest,
    RetrievalRequest,
    fields_of,
    first_seeds,
)
from textbench.tasks import InputError, catalogue
from textbench.tasks.sources.user_files import extension_of
from textbench.tasks.tracking.tracker import NONE, Settings, Tracker, read_settings

if TYPE_CHECKING:
    import pandas as pd

    from textbench.flows.explain.estimators import TextClassifier, TextFeatures
    from textbench.flows.explain.frames import (
        Curves,
        EnsembleResults,
        ErrorResults,
        PairedTests,
        Rankings,
        Results,
        Verdicts,
    )

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Place = str | os.PathLike[str]
# A data set's name; or documents: a file or folder, a table, or texts with labels and maybe their parts.
One: TypeAlias = "Place | pd.DataFrame | tuple[Iterable[Any], ...]"
Data: TypeAlias = "One | Sequence[One]"
Seeds = int | Iterable[int]
KEPT = "frames"  # the folder, in that of results, of documents that a program gave
# A command is advice that stands last and stays as it is typed.
OPTION = re.compile(r"textbench [a-z]+ .*|(?<![\w-])--([a-z]+(?:-[a-z]+)*)", re.DOTALL)
RENAMED = {"data": "datasets", "dataset": "datasets", "method": "methods"}  # arguments that the options are


def _in_python(message: str) -> str:
    """Return a message of a command with its options written as arguments are."""

    def as_argument(found: re.Match[str]) -> str:
        return RENAMED.get(found[1], found[1].replace("-", "_")) if found[1] else found[0]

    return OPTION.sub(as_argument, message)


def _takes(
    asked: type | None = None, own: Callable[..., Any] | None = None
) -> Callable[[Callable[Given, Answer]], Callable[Given, Answer]]:
    """Have a function show the fields of a request, and the options of `own`, as its keyword arguments.

    Whatever InputError it raises speaks of arguments, not of a command's options.
    """

    def decorate(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
        @functools.wraps(function)
        def wrapped(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
            try:
                return function(*args, **kwargs)
            except FieldError as error:
                names = {one.name: _keyword(one) for one in fields_of(asked)} if asked else {}
                raise InputError(_in_python(error.say(lambda name: names.get(name, name)))) from None
            except InputError as error:
                raise InputError(_in_python(str(error))) from None

        signature = inspect.signature(function)
        shown = {name: one for name, one in signature.parameters.items() if one.kind != one.VAR_KEYWORD}
        for one in fields_of(asked) if asked else ():
            shown.setdefault(_keyword(one), _parameter(_keyword(one), one.default))
        for name, other in inspect.signature(own).parameters.items() if own else ():
            if name != "data":
                shown.setdefault(name, _parameter(name, other.default))
        wrapped.__signature__ = signature.replace(parameters=[*shown.values()])  # type: ignore[attr-defined]
        return wrapped

    return decorate


def _parameter(name: str, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)


def _keyword(one: Field) -> str:
    """Return the argument of a field: what its option is called, unless it is a list."""
    return one.name if one.is_list else one.flag.removeprefix("--").replace("-", "_")


@_takes(BenchmarkRequest, own_options)
def run(
    datasets: "Data",
    methods: str | Iterable[str],
    *,
    seeds: Seeds = 1,
    home: Place | None = None,
    tracking: bool | str | None = None,
    progress: bool = True,
    **options: Any,
) -> "Results":
    """Compare methods on data sets, as `textbench run` does; return what was found.

    datasets: names of data sets; a file or folder of your own documents; a table with the columns `text_column` and
    `label_column` ("text" and "label"); or a tuple of texts and labels, or of texts, labels and parts (train, test or
    validation). Of several, in a list, one may be your own. methods: names, with parameters of your choice
    (`"lsi(n_components=100)"`), or paths of Python files. options: those of the command, such as `trials`,
    `protocol`, `probe`, `test_size`, `label_separator`, `split_column`.

    A cell that fails is told by `errors()`; the others are finished. What is stored is not computed again. Raises
    InputError for names and options that there are not.

    >>> import textbench as tb
    >>> texts = [f"{words} {n}" for n in range(20) for words in ("wheat harvest", "oil tanker")]
    >>> found = tb.run((texts, ["grain", "ship"] * 20), ["tfidf", "majority"], progress=False)
    >>> found.best
    {'data': 'tfidf'}
    >>> found.table()[["method", "accuracy", "n_seeds"]]
         method  accuracy  n_seeds
    0     tfidf       1.0        1
    1  majority       0.5        1
    """
    from textbench.flows.explain.frames import Results
    from textbench.flows.plan.cell import plan
    from textbench.flows.run.preflight import require_data
    from textbench.flows.run.sweep import run_sweep

    place, tracker = _place_and_tracker(home, tracking)
    request = _request(BenchmarkRequest, _about(datasets, methods, seeds, place, options, BenchmarkRequest))
    require_data(
        place, plan(request), tracker, memory_limit=request.memory_limit, time_limit=request.time_limit
    )
    return Results(place, _computed(run_sweep, request, place, tracker, progress))


@_takes(LabelBudgetRequest, own_options)
def curve(
    datasets: "Data",
    methods: str | Iterable[str],
    *,
    budgets: Iterable[int] | None = None,
    draws: int = 5,
    seeds: Seeds = 1,
    metric: str | None = None,
    home: Place | None = None,
    tracking: bool | str | None = None,
    progress: bool = True,
    **options: Any,
) -> "Curves":
    """Return label-budget curves, as `textbench curve` draws them: how good methods are with few labels.

    datasets, methods, options: as of `run`. budgets: numbers of labelled training documents, by default 100 to 5,000,
    as far as there are documents. draws: random draws of them, the same for all methods. metric: what is shown, by
    default accuracy, or micro-F1 where documents have several labels. Raises InputError as `run` does.

    >>> import textbench as tb
    >>> texts = [f"{words} {n}" for n in range(20) for words in ("wheat harvest", "oil tanker")]
    >>> data = (texts, ["grain", "ship"] * 20)
    >>> curves = tb.curve(data, "nb", budgets=[4, 8], draws=2, progress=False)
    >>> curves.table()[["method", "budget", "mean"]]
      method  budget  mean
    0     nb       4   1.0
    1     nb       8   1.0
    """
    from textbench.flows.explain.frames import Curves
    from textbench.flows.plan.checks import check_metric
    from textbench.flows.run.label_budgets import run_label_budgets
    from textbench.flows.run.preflight import checked_curves

    place, tracker = _place_and_tracker(home, tracking)
    about = _about(datasets, methods, seeds, place, options, LabelBudgetRequest)
    request = _request(LabelBudgetRequest, about | {"budgets": budgets, "draws": draws})
    check_metric(request, metric)
    request = checked_curves(place, request, metric, may_cut=budgets is None, tracker=tracker)
    return Curves(place, _computed(run_label_budgets, request, place, tracker, progress), metric)


@_takes(RetrievalRequest, own_collection)
def retrieve(
    collections: str | Iterable[str] | None = None,
    rankers: str | Iterable[str] = RANKERS,
    *,
    seeds: Seeds = 1,
    home: Place | None = None,
    tracking: bool | str | None = None,
    progress: bool = True,
    **options: Any,
) -> "Rankings":
    """Rank collections of documents for their queries, as `textbench retrieve` does; return how well rankers do.

    collections: names, by default cranfield and cacm; or your own files by the options `documents`, `queries`, `qrels`.
    rankers: names such as bm25, a representation (its cosine), or lm+METHOD. options: those of the command. Raises
    InputError for names, options and files that there are not.

    >>> import textbench as tb
    >>> from pathlib import Path
    >>> _ = Path("documents.jsonl").write_text('''{"id": "d1", "text": "the lift of a wing"}
    ... {"id": "d2", "text": "drag of a blunt body"}''')
    >>> _ = Path("queries.jsonl").write_text('''{"id": "q1", "text": "what lifts a wing?"}
    ... {"id": "q2", "text": "blunt body drag"}''')
    >>> _ = Path("qrels.txt").write_text("q1 0 d1 1\\nq2 0 d2 1")
    >>> own = {"documents": "documents.jsonl", "queries": "queries.jsonl", "qrels": "qrels.txt", "name": "wings"}
    >>> found = tb.retrieve(rankers="bm25", trials=0, progress=False, **own)
    >>> found.table()[["collection", "ranker", "map"]]
      collection ranker  map
    0  own-wings   bm25  1.0
    """
    from textbench.flows.explain.frames import Rankings
    from textbench.flows.results.rankings import plan
    from textbench.flows.run.preflight import require_collections
    from textbench.flows.run.rankings import run_rankings

    place, tracker = _place_and_tracker(home, tracking)
    files = ("documents", "queries", "qrels")
    given = {
        name: options.pop(name) for name in inspect.signature(own_collection).parameters if name in options
    }
    own = own_collection(**given | {name: _path(name, given[name]) for name in files if name in given})
    if collections is None:
        collections = [] if own else COLLECTIONS
    _check_names(options, RetrievalRequest, own_collection)
    about = {"collections": collections, "rankers": rankers, "seeds": seeds, "own": own}
    request = _request(RetrievalRequest, about | options)
    cells = plan(request)
    require_collections(place, cells, request.judgments)
    return Rankings(place, cells, _computed(run_rankings, request, place, tracker, progress))


@_takes()
def compare(
    *runs: "str | Results",
    datasets: str | Iterable[str] = (),
    methods: str | Iterable[str] = (),
    protocol: str | None = None,
    seeds: int | None = None,
    metric: str | None = None,
    home: Place | None = None,
) -> "PairedTests":
    """Test finished runs in pairs on the same test documents, as `textbench compare` does; return the tests.

    runs: what `run` found, or names of runs (`last`, `best`, a method, the beginning of an id); instead of runs,
    datasets and methods. Raises InputError for what was not run, and for less than two of them.

    >>> import textbench as tb
    >>> texts = [f"{words} {n}" for n in range(20) for words in ("wheat harvest", "oil tanker")]
    >>> found = tb.run((texts, ["grain", "ship"] * 20), ["tfidf", "majority"], progress=False)
    >>> tb.compare(found).table()[["first", "second", "difference"]]
       first    second  difference
    0  tfidf  majority         0.5
    """
    from textbench.flows.explain.frames import PairedTests, Results
    from textbench.flows.results.comparison import pairs, ranking, runs_of_keys
    from textbench.flows.results.metric_names import KNOWN
    from textbench.flows.run.workspace import home_folder

    if metric is not None:
        catalogue.pick("metric", metric, KNOWN)
    found = [one for one in runs if isinstance(one, Results)]
    if found and (len(runs) > 1 or datasets or methods or protocol or seeds):
        raise InputError(
            "what a run found is compared by itself: leave out the other runs, datasets and methods"
        )
    place = found[0].home if found else home_folder(home)
    sides = (
        runs_of_keys(place, [str(row["key"]) for row in found[0].rows if row["error"] is None])
        if found
        else entrants(place, [str(one) for one in runs], _texts(datasets), _texts(methods), protocol, seeds)
    )
    tests = {name: pairs(place, name, group, metric) for name, group in sides.items()}
    return PairedTests(tests, ranking(tests))


@_takes()
def ensemble(
    dataset: str,
    methods: str | Iterable[str] = (),
    *,
    protocol: str = "honest",
    trials: int | None = None,
    home: Place | None = None,
    tracking: bool | str | None = None,
    progress: bool = True,
) -> "EnsembleResults":
    """Let finished runs on a data set decide together, as `textbench ensemble` does; return what became of it.

    methods: those that were run and are to be members, by default all that were run alike; trials: with how many they
    were tuned, by default as most were. Weights are learned from
    out-of-fold scores of training documents alone, and nothing is fitted again. Raises InputError for fewer than two
    methods, for one that was not run, and CellError's reason where an ensemble could not be made.

    >>> import textbench as tb
    >>> texts = [f"{words} {n}" for n in range(20) for words in ("wheat harvest", "oil tanker")]
    >>> _ = tb.run((texts, ["grain", "ship"] * 20), ["tfidf", "nb"], progress=False)
    >>> tb.ensemble("data", progress=False).table()[["weights", "test"]]
       weights  test
    0   greedy   1.0
    1    equal   1.0
    2  stacked   1.0
    """
    from textbench.flows.explain.frames import EnsembleResults
    from textbench.flows.plan.request import Protocol
    from textbench.flows.results.ensembles import candidates, ensembles
    from textbench.flows.run.sweep import run_sweep

    catalogue.pick("protocol", protocol, dict.fromkeys(get_args(Protocol)))
    place, tracker = _place_and_tracker(home, tracking)
    given = candidates(place, dataset, _texts(methods), protocol, trials)
    rows = _computed(run_sweep, given.request, place, tracker, progress)
    if errors := [str(row["error"]) for row in rows if row["error"]]:
        raise InputError(f"the ensemble could not be made: {errors[0]}")
    return EnsembleResults(ensembles(place, given, rows))


@_takes()
def errors(
    *runs: "str | Results",
    dataset: str | None = None,
    protocol: str | None = None,
    only: str | None = None,
    classes: str | Iterable[str] = (),
    texts: bool = False,
    top: int = 20,
    home: Place | None = None,
) -> "ErrorResults":
    """Return the test documents that two runs answer differently, or one gets wrong, as `textbench errors` does.

    runs: one or two names of runs, as of `compare`; or what `run` found, one run or two. only: different, first-wrong,
    second-wrong, both-wrong or wrong. classes: only documents of these, or taken for them. texts: with the documents'
    texts, which nothing holds else. top: documents that are shown; `table()` has all. Raises InputError for runs on
    other documents, and where these have several labels each.

    >>> import textbench as tb
    >>> texts = [f"{words} {n}" for n in range(20) for words in ("wheat harvest", "oil tanker")]
    >>> found = tb.run((texts, ["grain", "ship"] * 20), ["tfidf", "majority"], progress=False)
    >>> errors = tb.errors(found)
    >>> errors.verdict
    'data: of 12 test documents, tfidf gets 0 wrong and majority gets 6 wrong, 0 and 6 of them alone; 0 both.'
    >>> errors.table(1)[["label", "tfidf", "majority", "right"]]
      label tfidf majority  right
    0  ship  ship    grain  tfidf
    """
    from textbench.flows.explain.errors import errors as found_in
    from textbench.flows.explain.frames import ErrorResults, Results
    from textbench.flows.results.runs import find_run
    from textbench.flows.run.workspace import home_folder

    given = [one for one in runs if isinstance(one, Results)]
    if given and len(runs) > 1:
        raise InputError("what a run found is looked at by itself: leave out the other runs")
    place = given[0].home if given else home_folder(home)
    names = [str(row["key"]) for one in given for row in one.rows if row["error"] is None] or [
        *map(str, runs)
    ]
    if len(names) not in (1, 2) or (given and not names):
        raise InputError(f"errors are of one run or of two, got {len(names)}")
    rows = [find_run(place, name, dataset, protocol) for name in names]
    return ErrorResults(found_in(place, rows, only or "", _texts(classes)), top, texts)


@_takes()
def claims(prefix: str | None = None, *, paper: str | None = None, home: Place | None = None) -> "Verdicts":
    """Return what papers published beside what was measured, and by rule whether it holds, as `textbench claims` does.

    prefix: only claims whose id begins with these parts. paper: only those of this one, such as scdv-2017. Figures
    are of this results folder, else those that the repository records. Raises InputError for what matches no claim.

    >>> import textbench as tb
    >>> verdicts = tb.claims("scdv-2017/table-1/bow")
    >>> verdicts.table()[["id", "published"]].head(2)
                                          id  published
    0         scdv-2017/table-1/bow/accuracy       79.7
    1  scdv-2017/table-1/bow/macro-precision       79.5
    """
    from textbench.flows.explain.frames import Verdicts
    from textbench.flows.referee.ledger import choose, ledger
    from textbench.flows.run.workspace import home_folder

    return Verdicts(ledger(home_folder(home), choose(prefix, paper)))


@_takes()
def report(
    path: Place = "report.html",
    *,
    sweeps: str | Iterable[str] = (),
    claims: bool = False,
    tables: Place | None = None,
    figure: Place | None = None,
    home: Place | None = None,
) -> Path:
    """Write the report of a results folder, one HTML file to pass on, as `textbench report` does; return its path.

    sweeps: only local runs of these. claims: with what papers published and all that the repository records; needs no
    runs. tables: a folder for every table as CSV, Markdown and LaTeX. figure: with claims, a file for a drawing of the
    verdicts (.svg, .png or .pdf). It is logged nowhere. Raises InputError where nothing was run, and for files
    that cannot be written.

    >>> import textbench as tb
    >>> texts = [f"{words} {n}" for n in range(20) for words in ("wheat harvest", "oil tanker")]
    >>> found = tb.run((texts, ["grain", "ship"] * 20), ["tfidf", "majority"], progress=False)
    >>> tb.report("stories.html").name
    'stories.html'
    """
    from textbench.flows.plots.verdicts import draw
    from textbench.flows.referee.held import counts
    from textbench.flows.referee.ledger import choose, ledger
    from textbench.flows.report import page
    from textbench.flows.report.chapters import chapters as build
    from textbench.flows.report.evidence import gather
    from textbench.flows.run.workspace import home_folder

    out = Path(path)
    folder, picture = (None if one is None else Path(one) for one in (tables, figure))
    check_file("path", out, [".html", ".htm"])
    check_figure(picture)
    check_folder("tables", folder)
    if picture is not None and not claims:
        raise InputError("figure draws the verdicts on the papers' claims: it needs claims=True")
    place = home_folder(home)
    evidence = gather(place, _texts(sweeps))
    if evidence.is_empty and not claims:
        raise InputError(f"nothing has been run in {place}: run something first, or ask for claims=True")
    entries = ledger(place, choose()) if claims else None
    chapters = build(evidence, entries)
    page.write(out, evidence, chapters)
    if folder is not None:
        page.write_tables(folder, chapters)
    if picture is not None and entries is not None:
        draw(counts(entries), picture)
    return out


@_takes()
def load_model(path: Place, *, method: Place | None = None, endpoint: str | None = None) -> Model:
    """Return an exported model (`textbench export`), with `predict` and `transform` of texts; nothing is unpickled.

    method: the Python file of its method, where that was not one of ours; endpoint: the address to which a model of
    the method `api` may send texts, the one that its file names. Raises InputError for a file that is none, or that is
    damaged.

    >>> import textbench as tb
    >>> tb.load_model("stories.npz")
    Traceback (most recent call last):
    ...
    textbench.tasks.InputError: stories.npz cannot be read: No such file or directory
    """
    found = Model.load(_path("path", path))
    own = None if method is None else str(method)
    return replace(found, method_file=own, endpoint=endpoint or found.endpoint)


@_takes()
def method(name: str, **params: Any) -> "TextFeatures | TextClassifier":
    """Return a method as a scikit-learn estimator of raw texts, unfitted: a transformer, or if it is one a classifier.

    It learns tokens, counts and, where it needs them, word vectors of its own in `fit`. name: `scdv`,
    `lsi(n_components=100)` or the path of a Python file. params: the method's, those of its word vectors
    (`word_vectors__epochs`), the token `rule`, and `random_state`. Raises InputError for those that there are not.

    >>> import textbench as tb
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> texts = [f"{words} {n}" for n in range(20) for words in ("wheat harvest", "oil tanker")]
    >>> pipeline = make_pipeline(tb.method("lsi", n_components=2), LinearSVC())
    >>> pipeline.fit(texts, ["grain", "ship"] * 20).predict(["a tanker with oil"]).tolist()
    ['ship']
    """
    from textbench.flows.explain.estimators import method as estimator

    return estimator(name, **params)


def datasets() -> "pd.DataFrame":
    """Return the data sets by name: description, whether they are here, licence, source and citation.

    >>> import textbench as tb
    >>> tb.datasets().loc["r8", "token_rule"]
    'letters'
    """
    return _by_name(dataset_entries())


def methods() -> "pd.DataFrame":
    """Return the methods by name: description, what they read, their role, whether seeds matter, and their source.

    >>> import textbench as tb
    >>> tb.methods().loc["nb", "role"]
    'classifier'
    """
    return _by_name(method_entries())


@_takes()
def load_dataset(name: str) -> "pd.DataFrame":
    """Return the documents of a data set, downloaded if need be: id (where they have names), text, label and split.

    A label is a name, or a list of them where documents may have several; split is train, validation or test.
    Raises InputError for an unknown name.

    >>> import textbench as tb
    >>> tb.load_dataset("r8").groupby("split").size().to_dict()
    {'test': 2189, 'train': 5485}
    """
    import pandas as pd

    corpus = catalogue.dataset(name).load().load()
    kept = set() if corpus.validation is None else set(corpus.validation.tolist())
    train = ["validation" if row in kept else "train" for row in range(len(corpus.train_texts))]
    parts = [
        pd.DataFrame(
            ({} if ids is None else {"id": ids})
            | {"text": texts, "label": _labels(targets, corpus.target_names), "split": split}
        )
        for texts, targets, ids, split in (
            (corpus.train_texts, corpus.train_targets, corpus.train_ids, train),
            (corpus.test_texts, corpus.test_targets, corpus.test_ids, "test"),
        )
    ]
    return pd.concat(parts, ignore_index=True)


def _labels(targets: Any, names: Sequence[str]) -> list[Any]:
    if targets.ndim == 1:
        return [names[target] for target in targets]
    return [[names[label] for label in row.nonzero()[1]] for row in targets]


def _by_name(entries: Sequence[Mapping[str, Any]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(entries).set_index("name")


def _place_and_tracker(home: Place | None, tracking: bool | str | None) -> tuple[Path, Tracker]:
    """Return the results folder, and what records runs in MLflow, if anything does."""
    from textbench.flows.run.workspace import home_folder

    place = home_folder(home)
    if tracking is None or tracking is False:
        return place, Tracker(Settings(tracking_uri=NONE))
    if tracking is not True and not (isinstance(tracking, str) and tracking):
        raise InputError(
            f"tracking must be True, None, or the address of a database or server, got {tracking!r}"
        )
    return place, Tracker(read_settings(place, tracking if isinstance(tracking, str) else None))


def _about(
    datasets: "Data", methods: Any, seeds: Seeds, home: Path, options: dict[str, Any], asked: type
) -> dict[str, Any]:
    """Return the fields of a request of classification: names of data sets, documents of one's own, and the rest."""
    _check_names(options, asked, own_options)
    described = {
        name: options.pop(name) for name in inspect.signature(own_options).parameters if name in options
    }
    names: list[str] = []
    own: dict[str, Any] | None = None
    for one in _each(datasets):
        if isinstance(one, str) and not _is_path(one):
            names.append(one)
        elif own is None:
            own = _own(one, home, described)
        else:
            raise InputError("a run takes one file, table or tuple of your own documents, got several")
    if own is None:
        own_options(**described)  # refuses what describes documents that are not there
    return {"datasets": names, "methods": methods, "seeds": seeds, "own": own, **options}


def _each(datasets: Any) -> list[Any]:
    is_pair = isinstance(datasets, tuple) and not any(isinstance(one, str | os.PathLike) for one in datasets)
    if isinstance(datasets, str | os.PathLike) or hasattr(datasets, "columns") or is_pair:
        return [datasets]
    if isinstance(datasets, Iterable) and not isinstance(datasets, Mapping):
        return list(datasets)
    raise InputError(
        "datasets must be names, a file, a table, or a tuple of texts and labels, "
        f"got {type(datasets).__name__}"
    )


def _is_path(name: str) -> bool:
    return os.sep in name or extension_of(Path(name)) is not None


def _own(given: Any, home: Path, described: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return documents as a request takes them; those that a program holds are kept in the results folder first."""
    from textbench.tasks.sources.user_frame import keep

    if isinstance(given, str | os.PathLike):
        return own_options(data=_path("datasets", given), **described)
    options = dict(described)
    columns: Sequence[Any]
    if hasattr(given, "columns"):
        names = [options.pop("text_column", "text"), options.pop("label_column", "label")]
        names += [name for name in [options.pop("split_column", None)] if name is not None]
        columns = [_column(given, name) for name in names]
    elif isinstance(given, tuple) and len(given) in (2, 3):
        columns = given
    else:
        raise InputError(
            "your own documents are a file, a table, or a tuple of texts and labels, or of texts, labels and parts, "
            f"got {type(given).__name__}{f' of {len(given)}' if isinstance(given, tuple) else ''}"
        )
    path = keep(home / KEPT, *columns)
    split = {"split_column": "split"} if len(columns) == 3 else {}
    return own_options(data=path, **{"name": "data"} | options | split)


def _column(table: Any, name: str) -> Any:
    names = [str(column) for column in table.columns]
    if names.count(name) != 1:
        found = "twice" if name in names else f"none; {catalogue.nearest(str(name), names)}"
        raise InputError(f"the table must have a column {name!r}, got {found}")
    return table[name]


def _request(asked: Callable[..., Answer], given: Mapping[str, Any]) -> Answer:
    """Return a request of arguments; what is None is left to its default."""
    known = {_keyword(one): one for one in fields_of(asked)}  # type: ignore[arg-type]
    made: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name == "seeds":
            made[name] = _listed(value) if isinstance(value, Iterable) else first_seeds(_plain(value))
        elif name not in known:  # no option says it
            made[name] = value
        else:
            one = known[name]
            place = made.setdefault(one.group, {}) if one.group else made
            place[one.name] = _listed(value) if one.is_list else _plain(value)
    return asked(**made)


def _listed(value: Any) -> list[Any]:
    """Return one value, or several, as a list; of paths and numpy's numbers their plain values."""
    is_one = isinstance(value, str | os.PathLike) or not isinstance(value, Iterable)
    return [_plain(one) for one in ([value] if is_one else value)]


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if hasattr(value, "item") else value


def _check_names(options: Mapping[str, Any], asked: type, own: Callable[..., Any]) -> None:
    """Refuse arguments that are no options: InputError with the nearest."""
    known = {*map(_keyword, fields_of(asked)), *inspect.signature(own).parameters} - {"data"}
    for name in options:
        if name not in known:
            raise InputError(f"there is no argument {name!r}; {catalogue.nearest(name, known)}")


def _texts(value: str | Iterable[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _path(name: str, value: Any) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} must be a file's name, got {value!r}")
    return Path(value)


def _computed(
    work: Callable[..., list[dict[str, Any]]], request: Any, home: Path, tracker: Tracker, progress: bool
) -> list[dict[str, Any]]:
    """Compute what is asked for in threads of this process, and return its rows."""
    from textbench.flows.run.engine import Threads
    from textbench.flows.run.preflight import check_shared
    from textbench.tasks.storage.store import Store

    cells, store = cells_of(request), Store(home / "store")
    is_afresh = getattr(request, "timed", False) or getattr(request, "fresh", False)
    if is_afresh or not all(store.has(cell.reference) for cell in cells):
        check_shared()
    with _shown(home, request, is_afresh) if progress else contextlib.nullcontext(), Threads() as runner:
        return work(request, runner, tracker, home)


@contextlib.contextmanager
def _shown(home: Path, request: Any, is_afresh: bool) -> Iterator[None]:
    from rich.console import Console

    from textbench.flows.cli.progress import Progress

    console = Console(stderr=True)
    if console.is_jupyter:  # whose output says that it is a terminal, and does not move a cursor as one does
        console = Console(stderr=True, force_jupyter=False, force_terminal=False)
    since = time.time() if is_afresh else 0.0
    expected = expected_seconds(home, request, since) if console.is_terminal else {}
    with Progress(cells_of(request), False, expected, console):
        yield
