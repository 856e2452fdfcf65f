"""The reference, made of the code: commands, Python API, methods, data sets, metrics, protocols, suites."""

import ast
import functools
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import typer
import yaml

import textbench
from infra.docs.markdown import cell, code, plain, prose, table
from textbench.evaluation.claims.published import read_claims
from textbench.evaluation.metrics.calibration import PROBABILITIES
from textbench.evaluation.metrics.multilabel import MULTILABEL_METRICS
from textbench.evaluation.metrics.single_label import METRICS
from textbench.flows.cli import COMMANDS, app
from textbench.flows.cli.list import METHODS_BY, METRICS_BY, method_entries
from textbench.flows.explain import frames
from textbench.flows.plan.request import Protocol
from textbench.flows.plan.suites import read_suite, suites
from textbench.flows.report import boards, recorded
from textbench.flows.report.boards import scale
from textbench.flows.results.metric_names import heading
from textbench.flows.results.summary import Summary
from textbench.tasks import catalogue, rankers
from textbench.tasks.storage.definitions import PROJECT

Pages = dict[str, list[str]]  # by place below docs/
MARKUP = re.compile(r"\[/?(?:bold|dim|italic|green|red|cyan|yellow)\]")
# By the beginnings of metrics' names, the first that fits; in the same order for one label and for several.
FORMULAS = {
    "one": {
        "accuracy": "right / n", "micro_f1": "right / n", "macro_f1": "Σ_c F1(c) / classes, F1 = 2 P R / (P + R)",
        "weighted_f1": "Σ_c n_c F1(c) / n", "macro_precision": "Σ_c right(c) / predicted(c) / classes",
        "macro_recall": "Σ_c right(c) / n_c / classes", "lraps": "Σ_d 1 / rank(class of d) / n",
        "coverage_error": "Σ_d rank(class of d) / n",
        "map": "Σ_q AP(q) / n, AP = Σ_(relevant at rank r) (relevant among the first r) / r / relevant",
        "precision_at": "Σ_q (relevant among the first k) / k / n",
        "ndcg_at": "Σ_q DCG(q) / best DCG(q) / n, DCG = Σ_(r <= k) gain(r) / log2(r + 1)",
    },
    "any": {
        "log_loss": "-Σ_d ln p(class of d) / n; of several labels the mean over all answers",
        "brier_score": "Σ_d Σ_c (p(c) - [c is of d])² / n; of several labels the mean over all answers",
        "calibration_error": "Σ_bins |confidence - right| / n, 15 bins of confidence",
    },
    "several": {
        "micro_f1": "2 TP / (2 TP + FP + FN), all labels pooled", "macro_f1": "Σ_l F1(l) / labels",
        "weighted_f1": "Σ_l n_l F1(l) / Σ_l n_l", "accuracy": "documents with all labels right / n",
        "map": "Σ_l AP(l) / labels", "lraps": "Σ_d Σ_(l of d) (own labels to rank(l)) / rank(l) / labels of d / n",
        "coverage_error": "Σ_d max_(l of d) rank(l) / n", "precision_at": "Σ_d (own labels among the first k) / k / n",
        "ndcg_at": "Σ_d DCG(d) / best DCG(d) / n, DCG = Σ_(r <= k) gain(r) / log2(r + 1)",
        "ndcg_fixed": "Σ_d DCG(d) / Σ_(r <= k) 1 / log2(r + 1) / n",
    },
}  # fmt: skip
RESULTS = (frames.Results, frames.Curves, frames.PairedTests, frames.Rankings, frames.Verdicts)
SHOWN = ("accuracy", "micro_f1", "macro_f1", "precision_at_1", "map")
WITHOUT_SPACE = "It has no search space: tuning chooses the probe's C alone."


def pages() -> Pages:
    """Return every page of the reference."""
    found: Pages = {"reference/command-line.md": command_line(), "reference/python.md": python()}
    found |= {"reference/methods/index.md": methods()}
    found |= {f"reference/methods/{name}.md": method(name) for name in catalogue.methods()}
    found |= {"reference/datasets.md": datasets(), "reference/metrics.md": metrics()}
    found |= {"reference/protocols.md": protocols()}
    return found | {"reference/suites.md": suites_page(), "reference/rankers.md": rankers_page()}


def command_line() -> list[str]:
    """Return the page of commands: what each does, takes and prints."""
    root = typer.main.get_command(app)
    lines = ["# Command line", "", "Each command explains itself: `textbench COMMAND --help`.", ""]
    lines += ["## For every command", "", *_options(root)]
    first = [command.__name__ for command in COMMANDS]
    for name in sorted(root.commands, key=lambda n: first.index(n) if n in first else len(first)):  # type: ignore[attr-defined]
        lines += _command(f"textbench {name}", root.commands[name], "##")  # type: ignore[attr-defined]
    return lines


def _command(path: str, command: Any, level: str) -> list[str]:
    lines = [f"{level} {path}", ""]
    for paragraph in inspect.cleandoc(MARKUP.sub("", command.help or "")).split("\n\n"):
        if paragraph.startswith("Example"):
            lines += ["```bash", paragraph.partition(": ")[2].strip(), "```", ""]
        else:
            lines += [plain(" ".join(paragraph.replace("\b", "").split())), ""]
    lines += _options(command)
    for name, below in getattr(command, "commands", {}).items():
        lines += _command(f"{path} {name}", below, f"{level}#")
    return lines


def _options(command: Any) -> list[str]:
    rows = []
    for one in command.params:
        if one.name == "help" or getattr(one, "hidden", False):
            continue
        is_argument = one.param_type_name == "argument"
        names = one.name.upper() if is_argument else ", ".join([*one.opts, *one.secondary_opts])
        shown = one.show_default if isinstance(getattr(one, "show_default", None), str) else one.default
        default = "" if shown in (None, False, (), []) or callable(shown) else code(shown)
        rows.append([code(names), plain(MARKUP.sub("", one.help or "")), default])
    return table(["argument or option", "what it is", "default"], rows) if rows else []


def python() -> list[str]:
    """Return the page of the Python API."""
    from textbench.flows.cli import api

    lines = [
        "# Python",
        "",
        "```python",
        "import textbench as tb",
        "```",
        "",
        *prose(inspect.getdoc(api) or ""),
    ]
    for name in textbench.__all__:
        thing = getattr(textbench, name)
        lines += [f"## tb.{name}", ""]
        if inspect.isfunction(thing):
            lines += ["```text", _signature(f"tb.{name}", thing), "```", ""]
        lines += prose(inspect.getdoc(thing) or "")
    lines += ["# What the functions return", ""]
    for kind in RESULTS:
        lines += [f"## {kind.__name__}", "", *prose(inspect.getdoc(kind) or "")]
        rows = [
            [code(name), plain((inspect.getdoc(value) or "").split("\n\n")[0])]
            for name, value in inspect.getmembers(kind)
            if not name.startswith("_") and inspect.getdoc(value)
        ]
        lines += table(["attribute or method", "what it is"], rows)
    return lines


def _signature(name: str, function: Any) -> str:
    parameters = inspect.signature(function).parameters.values()
    words = [
        one.name if one.default is one.empty else f"{one.name}={one.default!r}"
        for one in parameters
        if one.kind is not one.VAR_KEYWORD
    ]
    lines, line = [], f"{name}("
    for number, word in enumerate(words):
        more = word + (", " if number + 1 < len(words) else ")")
        if len(line) + len(more) > 100:
            lines, line = [*lines, line.rstrip()], " " * 4
        line += more
    return "\n".join([*lines, line])


def methods() -> list[str]:
    """Return the list of methods, each with a link to its page."""
    entries = method_entries()
    lines = [
        "# Methods", "",
        f"{len(entries)} methods, one file each in `featurizers/`. A representation is judged by a",
        "[probe](../../glossary.md#probe); a classifier is judged as it is. To add one:",
        "[your own method](../../how-to/own-method.md).", "",
    ]  # fmt: skip
    for values, title in METHODS_BY.items():
        chosen = [e for e in entries if (e["role"], e["uses_labels"], e["pretrained"]) == values]
        lines += [f"## {title.partition(',')[0]}", ""]
        rows = [
            [
                f"[{e['name']}]({e['name']}.md)",
                plain(e["description"]),
                e["input"],
                "yes" if e["seeded"] else "no",
            ]
            for e in chosen
        ]
        lines += table(["method", "what it is", "reads", "draws random numbers"], rows)
    return lines


def method(name: str) -> list[str]:
    """Return the page of a method: formula, source, parameters, search space, recorded figures."""
    entry = catalogue.method(name)
    module = entry.load()
    about = next(one for one in method_entries_by_name()[name])
    lines = [f"# {name}", "", *prose(inspect.getdoc(module) or "")]
    cls = _class_of(entry, module)
    if cls is not None and cls.__doc__:
        lines += ["## How it works", "", *prose(inspect.getdoc(cls) or "")]
    facts = [
        ["reads", f"{about['input']}"],
        ["role", str(about["role"])],
        ["needs", ", ".join(entry.needs) or "nothing else"],
        ["learns from labels", "yes" if about["uses_labels"] or entry.is_classifier else "no"],
        ["draws random numbers", "yes" if about["seeded"] else "no"],
        ["stands on a pretrained model", "yes" if about["pretrained"] else "no"],
        ["file", code(entry.path.relative_to(PROJECT))],
    ]
    lines += ["## Facts", "", *table(["fact", "value"], facts)]
    lines += ["## Parameters and search space", ""]
    accepts, space = getattr(module, "ACCEPTS", {}), getattr(module, "SEARCH_SPACE", {})
    defaults = _defaults(cls, module)
    rows = [
        [code(each), code(repr(default)), _accepted(accepts.get(each)), _range(space.get(each))]
        for each, default in defaults.items()
    ]
    lines += (
        table(["parameter", "default", "accepts", "searched"], rows)
        if rows
        else ["It has no parameters.", ""]
    )
    lines += [] if space else [WITHOUT_SPACE, ""]
    choice = next((f"{each}={default!r}" for each, default in defaults.items() if default is not None), "")
    spelled = f"'{name}({choice})'" if choice and "'" not in choice else name
    lines += ["```bash", f"textbench run -d r8 -m {spelled}", "```", ""]
    lines += ["## Recorded figures", "", *_recorded(name)]
    return lines


@functools.cache
def method_entries_by_name() -> Mapping[str, list[dict[str, Any]]]:
    """What there is to say of each method, by its name."""
    return {entry["name"]: [entry] for entry in method_entries()}


def _class_of(entry: catalogue.Entry, module: Any) -> Any:
    """Return the class that `build` promises."""
    returns = inspect.signature(module.build).return_annotation
    if isinstance(returns, str):
        returns = getattr(module, returns, None)
    return returns if inspect.isclass(returns) else None


def _defaults(cls: Any, module: Any) -> dict[str, Any]:
    """Return a method's parameters with their defaults: those of `build`, and of the class that it makes."""
    found: dict[str, Any] = {}
    for function in (module.build, getattr(cls, "__init__", None)):
        if function is not None:
            for one in inspect.signature(function).parameters.values():
                if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL) and one.name != "self":
                    found.setdefault(one.name, None if one.default is one.empty else one.default)
    return found


def _accepted(accepts: Any) -> str:
    if accepts is None:
        return ""
    return code(accepts) if isinstance(accepts, str) else ", ".join(code(repr(one)) for one in accepts)


def _range(space: Any) -> str:
    if space is None:
        return ""
    if hasattr(space, "choices"):
        return ", ".join(code(repr(one)) for one in space.choices)
    step = f", step {space.step}" if getattr(space, "step", None) not in (None, 1) else ""
    return f"{space.low} to {space.high}{', logarithmic' if space.log else ''}{step}"


@functools.cache
def _summaries() -> tuple[Summary, ...]:
    return tuple(recorded.summaries())


def _recorded(name: str) -> list[str]:
    rows = []
    for one in _summaries():
        try:
            own, _ = catalogue.parse_method(one.method)
        except Exception:  # a name of an earlier catalogue
            continue
        metric = next((each for each in SHOWN if each in one.mean), None) or next(iter(one.mean), None)
        if own == name and metric is not None:
            half = one.half_width.get(metric, float("nan"))
            value = f"{scale(metric) * one.mean[metric]:.2f}"
            value += "" if half != half else f" ± {scale(metric) * half:.2f}"
            rows.append([
                one.dataset, one.protocol, recorded.paper_of(one) or "-", code(one.label), heading(metric), value,
                one.n_seeds, one.trials,
            ])  # fmt: skip
    heads = ["data set", "protocol", "of paper", "method", "metric", "figure", "seeds", "settings tried"]
    rows.sort(key=lambda row: [str(value) for value in row])
    return table(heads, rows) if rows else ["None is recorded yet.", ""]


def datasets() -> list[str]:
    """Return the page of data sets."""
    lines = [
        "# Data sets", "",
        "One file each in `tasks/datasets/`. `textbench list datasets` says what is on this machine. To add one:",
        "[your own data set](../how-to/own-dataset.md).", "",
    ]  # fmt: skip
    for kind, entries in (("##", catalogue.datasets()), ("## Collection", catalogue.collections())):
        for name, entry in entries.items():
            lines += [f"{kind} {name}", "", *_data(entry), *_recorded_of(name)]
    return lines


def _data(entry: catalogue.Entry) -> Iterator[str]:
    module = entry.load()
    yield from prose(inspect.getdoc(module) or "")
    files = [f"{code(file)} ({code(digest[:12])})" for file, digest in module.SHA256.items()]
    yield from table(
        ["fact", "value"],
        [
            ["licence", plain(module.LICENCE)],
            ["source", plain(module.SOURCE)],
            ["citation", plain(module.CITATION)],
            ["token rule", code(module.RULE)],
            ["files (sha256)", ", ".join(files)],
        ],
    )


def _recorded_of(dataset: str) -> list[str]:
    """Return the best recorded figure of a data set under each protocol, as a table; nothing where there is none."""
    rows = []
    for board in boards.recorded_boards(_summaries(), []):
        if board.dataset == dataset:
            best = max(board.recorded, key=lambda one: one.mean.get(board.metric, 0.0))
            figure = boards.figure(board, best)
            rows.append([board.protocol, board.paper or "-", code(best.label), board.heading, figure])
    return (
        table(["protocol", "of paper", "best recorded method", "metric", "figure, %"], rows) if rows else []
    )


def protocols() -> list[str]:
    """Return the page of protocols: what each learns from, what is recorded, and whose the faithful ones are."""
    run: Any = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]
    asked = next(one for one in run.params if one.name == "protocol")
    lines = [
        "# Protocols", "",
        "What each means and why there are three is [explained apart](../explanation/protocols.md).", "",
        *(f"- {part.strip().rstrip('.')}." for part in plain(asked.help or "").split(";")), "",
    ]  # fmt: skip
    found = boards.recorded_boards(_summaries(), [])
    for name in get_args(Protocol):
        lines += [f"## {name}", ""]
        rows = [[b.dataset, b.paper or "-", len(b.recorded), b.heading] for b in found if b.protocol == name]
        lines += (
            table(["data set", "of paper", "recorded methods", "ranked by"], rows)
            if rows
            else ["None is recorded.", ""]
        )
        if name == "faithful":
            papers = Counter((claim.source, claim.dataset_here or "-") for claim in read_claims())
            lines += ["Published figures by the paper whose protocol they follow:", ""]
            lines += table(
                ["protocol of", "data set", "claims"], [[*key, n] for key, n in sorted(papers.items())]
            )
    return lines


def metrics() -> list[str]:
    """Return the page of metrics."""
    lines = [
        "# Metrics", "",
        "Rates are fractions from 0 to 1; tables show percent. A [ceiling](../glossary.md#ceiling) is the best that",
        "the test documents allow. To add one: [your own metric](../how-to/own-metric.md).", "",
    ]  # fmt: skip
    for (labels, ranks), title in METRICS_BY.items():
        every = {"one": METRICS, "several": MULTILABEL_METRICS, "any": PROBABILITIES}[str(labels)]
        rows = []
        for name, one in every.items():
            if one.ranks == ranks:
                is_own = inspect.isfunction(one.function)
                said = (inspect.getdoc(one.function) or "") if is_own else one.description
                formula = next(text for start, text in FORMULAS[labels].items() if name.startswith(start))
                better = "higher" if one.higher_is_better else "lower"
                rows.append([code(name), plain(" ".join(said.split())), code(formula), better])
        lines += [f"## {title}", "", *table(["metric", "definition", "formula", "better"], rows)]
    modules = (
        "single_label",
        "multilabel",
        "calibration",
        "label_ranking",
        "query_by_example",
        "ranked_retrieval",
    )
    lines += ["## Sources", ""]
    for name in modules:
        module = importlib.import_module(f"textbench.evaluation.metrics.{name}")
        text = next((p for p in (module.__doc__ or "").split("\n\n") if p.lstrip().startswith("Source")), "")
        lines += (
            [f"- {code(f'evaluation/metrics/{name}.py')}: {plain(' '.join(text.split()))}"] if text else []
        )
    return [*lines, ""]


def suites_page() -> list[str]:
    """Return the page of suites: what `textbench run SUITE` runs."""
    lines = [
        "# Suites",
        "",
        "A suite is a file of `flows/suites/`; `textbench run SUITE --dry-run` says what is left to do.",
        "",
    ]
    for name in suites():
        suite = read_suite(name)
        lines += [f"## {name}", "", plain(str(suite.get("description", ""))), ""]
        text = yaml.safe_dump(
            {k: v for k, v in suite.items() if k != "description"}, sort_keys=False, width=100
        )
        lines += ["```yaml", text.rstrip(), "```", ""]
    return lines


def rankers_page() -> list[str]:
    """Return the page of rankers."""
    lines = ["# Rankers", "", "What `textbench retrieve` ranks documents with.", ""]
    for name, entry in rankers.spellings().items():
        doc = ast.get_docstring(ast.parse(entry.path.read_bytes())) or ""
        lines += [f"## {cell(name)}", "", *prose(doc)]
    return lines
