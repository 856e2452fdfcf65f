"""The leaderboard: results over seeds, best first, as a table on a terminal or in a paper."""

import json
import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from evaluation.intervals import mean_interval
from evaluation.metrics import METRICS
from evaluation.multilabel import MULTILABEL_METRICS, is_of_several_labels
from flows.half_widths import in_words, over_documents, wider
from flows.words import counted

if TYPE_CHECKING:
    from rich.console import Console

# What a table shows, the first of them ranking, where a document has one label and where it has several.
SHOWN = ("accuracy", "macro_f1", "map")
SHOWN_SEVERAL = ("micro_f1", "macro_f1", "precision_at_1", "lraps")
# What people call a metric, wherever it is shown: `_zero` metrics decide by a threshold of 0.
HEADINGS = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "micro_f1": "micro-F1",
    "weighted_f1": "weighted F1",
    "macro_f1_zero": "macro-F1 at 0",
    "micro_f1_zero": "micro-F1 at 0",
    "weighted_f1_zero": "weighted F1 at 0",
    "macro_precision": "macro-precision",
    "macro_recall": "macro-recall",
    "map": "MAP",
    **{f"precision_at_{k}": f"P@{k}" for k in (1, 3, 5, 10)},
    **{f"ndcg_at_{k}": f"nDCG@{k}" for k in (1, 3, 5, 10)},
    **{f"ndcg_fixed_norm_at_{k}": f"nDCG@{k} (fixed norm)" for k in (1, 3, 5)},
    "r_precision": "R-prec",
    "reciprocal_rank": "RR",
    "lraps": "LRAPS",
    "coverage_error": "coverage error",
}
KNOWN = METRICS | MULTILABEL_METRICS
BEST, ON_BORDER = ">", "*"
SHORT = 8  # characters of an id in a table
MAY_GO = ("peak MB", "seconds")  # from a terminal that is too narrow
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


@dataclass(frozen=True)
class Summary:
    """One method on one data set under one protocol, over its seeds.

    `mean` and `half_width` go by metric, in fractions. Two things make a mean doubtful, the seeds and the test
    documents: `half_width_seeds` is of Student's t interval, nan for one seed, and where no seed changes a figure;
    `half_width_documents` is the mean of the runs' intervals over test documents, which is exact where all seeds err
    alike and else too wide, for metrics that are kept per document. The wider one is `half_width`, and `over` says
    which, "seeds" or "documents"; without either it is nan.
    `seconds` is the sum over stages, its mean over seeds; `peak_mb` the largest. `params` holds each distinct
    setting that was chosen, `on_border` the parameters whose best value is an end of what was searched.
    `errors` are the distinct reasons of the `n_failed` seeds. With `n_seeds` 0 nothing was measured. `settings` is what
    else was asked for (`settings_of`), `apart` those words of it that tell it from the method's other summaries.
    `dataset` is of the same documents alone (`flows.corpora`), `about` what tells it from others of its name.
    `is_best` goes by the seeds that it has in common with others (`in_common`); `by_seed` has the figures by metric.
    `runs` are the ids that other commands take, the lowest seed first; `data_note` says what is wrong with the data.
    """

    dataset: str
    method: str
    protocol: str
    trials: int
    n_seeds: int
    mean: Mapping[str, float]
    half_width: Mapping[str, float]
    seconds: float | None
    peak_mb: float | None
    params: Sequence[Mapping[str, Any]]
    on_border: Sequence[str]
    n_failed: int
    errors: Sequence[str]
    is_best: bool = False
    probe: str | None = None
    settings: tuple[str, ...] = ()
    apart: Sequence[str] = ()
    about: str = ""
    documents_sha256: str = ""
    by_seed: Mapping[str, Mapping[int, float]] = field(default_factory=dict, repr=False)
    over: Mapping[str, str] = field(default_factory=dict)
    half_width_seeds: Mapping[str, float] = field(default_factory=dict)
    half_width_documents: Mapping[str, float] = field(default_factory=dict)
    runs: Sequence[str] = ()
    data_note: str = ""

    @property
    def label(self) -> str:
        """The method, how many settings were tried if it was tuned, and what tells it from its other summaries."""
        words = [*([counted(self.trials, "trial")] if self.trials else []), *self.apart]
        return f"{self.method} ({', '.join(words)})" if words else self.method

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a row is one of those that are summarised here."""
        # The settings last: of thousands of rows few are of this method, and they take the longest to say.
        return (
            row["method"] == self.method
            and row["dataset"] == self.dataset
            and row["protocol"] == self.protocol
            and int(row["trials"]) == self.trials
            and settings_of(row) == self.settings
        )


def latest(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the newest row of each data set, protocol, method, number of trials, settings and seed."""
    newest: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        cell = (*_group(row), row["seed"])
        if cell not in newest or row["created"] > newest[cell]["created"]:
            newest[cell] = row
    return list(newest.values())


def summarise(rows: Iterable[Mapping[str, Any]], metric: str | None = None) -> list[Summary]:
    """Summarise rows (as `flows.results.rows.row` describes) over seeds, best first for each data set and protocol.

    Without a metric accuracy ranks, or micro-F1 where documents have several labels. Methods are ranked on the seeds
    that they have in common; of equal means there all are best. What has no such seed comes after them, by its own
    mean, and what has no result last.
    """
    summaries = _told_apart(
        [_summary(group, list(members)) for group, members in groupby(sorted(rows, key=_group), _group)]
    )
    summaries.sort(key=lambda s: (s.dataset, s.protocol, s.method, s.trials, s.settings))
    ordered = []
    for _, table in _tables(summaries):
        ranking = columns(table, metric)[0]
        ordered += _ranked(table, ranking)
    return ordered


def _ranked(table: Sequence[Summary], ranking: str) -> list[Summary]:
    sign = -1 if KNOWN[ranking].higher_is_better else 1
    compared, seeds = in_common(table, ranking)
    shared = {s.label: mean_over(s, ranking, seeds) for s in compared}
    best = min(shared.values(), key=lambda value: sign * value, default=None)

    def rank(summary: Summary) -> tuple[float, float]:
        own = sign * summary.mean[ranking] if ranking in summary.mean else math.inf
        return sign * shared[summary.label] if summary.label in shared else math.inf, own

    return [
        replace(s, is_best=s.label in shared and shared[s.label] == best) for s in sorted(table, key=rank)
    ]


def in_common(table: Sequence[Summary], metric: str) -> tuple[list[Summary], list[int]]:
    """Return the methods of a table that a metric compares, and the seeds that all of these ran.

    They are the methods that ran the seed which most of them did, the lowest of several such. None where no two of
    several methods ran the same seed: nothing is compared then.
    """
    measured = [s for s in table if metric in s.by_seed]
    counts = Counter(seed for s in measured for seed in s.by_seed[metric])
    most = max(counts.values(), default=0)
    if not most or most < min(2, len(measured)):
        return [], []
    seed = min(seed for seed, count in counts.items() if count == most)
    compared = [s for s in measured if seed in s.by_seed[metric]]
    return compared, sorted(set.intersection(*(set(s.by_seed[metric]) for s in compared)))


def mean_over(summary: Summary, metric: str, seeds: Sequence[int]) -> float:
    """Return the mean of a metric over some of a summary's seeds."""
    return math.fsum(summary.by_seed[metric][seed] for seed in seeds) / len(seeds)


Group = tuple[str, str, str, int, tuple[str, ...]]


def _group(row: Mapping[str, Any]) -> Group:
    return (row["dataset"], row["protocol"], row["method"], int(row["trials"]), settings_of(row))


def settings_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return in words what was asked for beside data set, protocol, method and trials: runs that differ in it differ.

    The probe, the paper, then a token rule and ways to tune that are not the protocol's. Rows of MLflow and of a run
    just made say no more than the first two.
    """
    request = row.get("request") or {}
    words = [row.get("probe"), row.get("paper"), request.get("rule") and f"rule {request['rule']}"]
    words += [f"{name} {value}" for name, value in sorted((request.get("validation") or {}).items())]
    words += [request.get("search_seconds") and f"{request['search_seconds']:g} s of search"]
    return tuple(word for word in words if word)


def _told_apart(summaries: Sequence[Summary]) -> list[Summary]:
    """Give summaries the words by which their settings differ: of one method, tuned alike, all; else the probe alone.

    The probe is told where it is not the commonest of the table.
    """
    alike: dict[tuple[Any, ...], list[Summary]] = {}
    for s in summaries:
        alike.setdefault((s.dataset, s.protocol, s.method, s.trials), []).append(s)
    counts = Counter((s.dataset, s.protocol, s.probe) for s in summaries if s.probe)
    # Of each table the last, which has the highest count, stays.
    commonest = {key[:2]: key[2] for key in sorted(counts, key=lambda key: (counts[key], key))}
    told = []
    for group in alike.values():
        shared = set(group[0].settings).intersection(*(s.settings for s in group))
        for s in group:
            is_told = s.probe != commonest.get((s.dataset, s.protocol))
            words = [w for w in s.settings if w not in shared or (is_told and w == s.probe)]
            told.append(replace(s, apart=words))
    return told


def _tables(summaries: Sequence[Summary]) -> Iterable[tuple[tuple[str, str], list[Summary]]]:
    for title, members in groupby(summaries, lambda summary: (summary.dataset, summary.protocol)):
        yield title, list(members)


def _summary(group: Group, rows: list[Mapping[str, Any]]) -> Summary:
    dataset, protocol, method, trials, settings = group
    done = [row for row in rows if not row["error"]]
    shared = [name for name in KNOWN if done and all(name in row["metrics"] for row in done)]
    by_seed = {name: {row["seed"]: row["metrics"][name] for row in done} for name in shared}
    values = {name: [row["metrics"][name] for row in done] for name in shared}
    intervals = {name: mean_interval(of_seeds) for name, of_seeds in values.items()}
    alike = [name for name, of_seeds in values.items() if min(of_seeds) == max(of_seeds)]
    seeds = {n: math.nan if n in alike else half for n, (_, half) in intervals.items()}
    documents = over_documents(done, shared)
    half_width, over = wider(seeds, documents)
    seconds = [sum(row["seconds"].values()) for row in done if row["seconds"]]
    peaks = [row["peak_mb"] for row in done if row["peak_mb"] is not None]
    params = {json.dumps(row["params"], sort_keys=True): row["params"] for row in done}
    return Summary(
        dataset=dataset,
        method=method,
        protocol=protocol,
        trials=trials,
        n_seeds=len(done),
        mean={name: mean for name, (mean, _) in intervals.items()},
        half_width=half_width,
        seconds=math.fsum(seconds) / len(seconds) if seconds else None,
        peak_mb=max(peaks, default=None),
        params=list(params.values()),
        on_border=sorted({name for row in done for name in row.get("on_border", ())}),
        n_failed=len(rows) - len(done),
        errors=sorted({str(row["error"]) for row in rows if row["error"]}),
        probe=rows[0].get("probe"),
        settings=settings,
        about=rows[0].get("about", ""),
        documents_sha256=next((r["corpus"]["documents_sha256"] for r in rows if r.get("corpus")), ""),
        by_seed=by_seed,
        over=over,
        half_width_seeds=seeds,
        half_width_documents=documents,
        runs=_ids(done),
        data_note=next((row["data_note"] for row in rows if row.get("data_note")), ""),
    )


def _ids(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the ids of runs, the lowest seed first: MLflow's, or the cell's key of a run that is not there."""
    ordered = sorted(rows, key=lambda row: (row["seed"], -row.get("created", 0.0)))
    return [name for row in ordered if (name := row.get("run_id") or row.get("key"))]


def render_table(rows: Iterable[Mapping[str, Any]], console: "Console", metric: str | None = None) -> None:
    """Print one table for each data set and protocol; values in percent, what failed and why underneath."""
    from rich.text import Text

    from flows.terminal import Line, print_table

    sign = "+-" if console.options.ascii_only else "±"
    for (dataset, protocol), table in _tables(summarise(rows, metric)):
        shown = columns(table, metric)
        headings = [*_headings(shown, sign), "run"]
        lines = []
        for summary in (summary for summary in table if summary.n_seeds):
            method, *cells = _printed(summary, shown, str, ON_BORDER, sign)
            mark, style = (BEST, "bold") if summary.is_best else (" ", "")
            name, _, words = method.partition(" (")
            parts = [f"{mark} {name}", *([f"({words}"] if words else [])]
            lines.append(Line(parts, [*cells, short_id(summary)], style))
        if lines:
            console.print(Text(f"{dataset}, {protocol} protocol", style="italic"))
            print_table(console, "  method", headings, lines, MAY_GO)
            console.print(Text(_filled(caption(table, shown), console.width), style="dim"))
            if note := table[0].data_note:
                console.print(Text(f"{dataset}: {note}.", style="yellow"))
        for line in failures(table):
            console.print(Text(line, style="red"))


def _filled(text: str, width: int) -> str:
    """Return a caption in lines of a width, none of which ends with a mark that the next explains."""
    bound = text
    for mark in (BEST, ON_BORDER):
        bound = bound.replace(f" {mark} ", f" {mark}\xa0")
    return textwrap.fill(bound, width, break_on_hyphens=False).replace("\xa0", " ")


def short_id(summary: Summary) -> str:
    """Return the beginning of the id of the lowest seed's run, as `textbench show` takes it; "-" without one."""
    return summary.runs[0][:SHORT] if summary.runs else "-"


def caption(table: Sequence[Summary], shown: Sequence[str]) -> str:
    """Say what figures, marks and intervals of one table of these metrics mean, and which data of its name it is."""
    seeds = sorted({summary.n_seeds for summary in table if summary.n_seeds})
    counts = f"{seeds[0]} seeds" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    measured = [summary for summary in table if shown[0] in summary.mean]
    lacking = [summary for summary in measured if shown[0] not in summary.half_width_documents]
    if len(lacking) < len(measured):
        mean = "" if seeds == [1] else f"mean over {counts}, "
        interval = f"{mean}± 95 % interval, {in_words(summary.over.get(shown[0]) for summary in measured)}"
    elif seeds == [1]:
        interval = "one seed: no interval"
    else:
        interval = f"mean and 95 % interval (Student t) over {counts}"
    if lacking:
        interval += _alone(lacking, measured, shown[0])
    counted = "".join(f", {HEADINGS.get(name, name)} in labels" for name in shown if unit(name) == "labels")
    parts = [f"Percent{counted}; {interval}. {BEST} best{on_seeds(table, shown[0])}."]
    if others := higher(table, shown[0]):
        parts.append(f"Better but of other seeds: {others}.")
    border = sorted({name for summary in table for name in summary.on_border})
    if border:
        parts.append(f"{ON_BORDER} chosen at the end of what was searched: {', '.join(border)}.")
    if about := table[0].about:
        parts.append(f"{table[0].dataset}: {about}.")
    return " ".join(parts)


def _alone(lacking: Sequence[Summary], measured: Sequence[Summary], metric: str) -> str:
    """Say which intervals are not over test documents too, and why."""
    from flows.answers import testable

    is_kept = metric in testable(is_of_several_labels(measured[0].mean))
    reason = (
        "the predictions are not here"
        if is_kept
        else f"{HEADINGS.get(metric, metric)} is not kept per test document"
    )
    of = f" of {', '.join(summary.label for summary in lacking)}" if len(lacking) < len(measured) else ""
    return f"; intervals{of} over seeds alone: {reason}"


def on_seeds(table: Sequence[Summary], metric: str) -> str:
    """Say on which seeds the best is best, where that is not all that every method ran."""
    compared, seeds = in_common(table, metric)
    measured = [s for s in table if metric in s.by_seed]
    if all(sorted(s.by_seed[metric]) == seeds for s in measured):
        return ""
    if not compared:
        return ": none, for no two methods ran the same seed"
    return f" on the {seeds_of(seeds)} in common, {listed(seeds)}"


def higher(table: Sequence[Summary], metric: str) -> str:
    """Name the methods whose mean is better than that of the best, which other seeds gave; "" without any.

    For instance "nb has 69.44 on seed 7, not compared".
    """
    best = next((s for s in table if s.is_best), None)
    if best is None:
        return ""
    compared, seeds = in_common(table, metric)
    sign = 1 if KNOWN[metric].higher_is_better else -1
    said = []
    for s in table:
        if metric not in s.mean or s.is_best or sign * s.mean[metric] <= sign * best.mean[metric]:
            continue
        own = sorted(s.by_seed[metric])
        how = f"compared on {seeds_of(seeds)} {listed(seeds)} alone" if s in compared else "not compared"
        said.append(f"{s.label} has {_percent(s, metric)} on {seeds_of(own)} {listed(own)}, {how}")
    return "; ".join(said)


def of_best(table: Sequence[Summary], metric: str) -> str:
    """Return `on_seeds`, and after a semicolon what is `higher`."""
    return "; ".join(filter(None, [on_seeds(table, metric), higher(table, metric)]))


def seeds_of(seeds: Sequence[int]) -> str:
    """Return "seed" or "seeds", as many as there are."""
    return "seed" if len(seeds) == 1 else "seeds"


def listed(seeds: Sequence[int]) -> str:
    """Return seeds in words: "0", "0 and 4", "0 to 2"."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    *first, last = map(str, seeds)
    return f"{', '.join(first)} and {last}" if first else last


def failures(table: Sequence[Summary]) -> list[str]:
    """Return a line for each method of the table that failed, with its reasons."""
    return [f"{s.label} failed{_of_seeds(s)}: {'; '.join(s.errors)}" for s in table if s.n_failed]


def _of_seeds(summary: Summary) -> str:
    total = summary.n_seeds + summary.n_failed
    return f" for {summary.n_failed} of {total} seeds" if total > 1 else ""


def columns(table: Sequence[Summary], metric: str | None) -> list[str]:
    """Return the metrics that a table shows, the one that ranks first."""
    is_several = any(is_of_several_labels(summary.mean) for summary in table)
    shown = SHOWN_SEVERAL if is_several else SHOWN
    return [metric, *(name for name in shown if name != metric)] if metric else list(shown)


def _headings(shown: Sequence[str], sign: str = "±") -> list[str]:
    first, *others = (HEADINGS.get(name, name) for name in shown)
    return [f"{first} {sign}", *others, "seconds", "peak MB", "seeds"]


def _percent(summary: Summary, name: str) -> str:
    return f"{scale(name) * summary.mean[name]:.2f}" if name in summary.mean else "-"


def scale(name: str) -> int:
    """Return what a metric is multiplied by to be shown: fractions are shown in percent."""
    return 1 if name == "coverage_error" else 100  # it counts labels; the others are fractions


def unit(name: str) -> str:
    """Return what a metric is shown in: percent, or labels."""
    return "labels" if scale(name) == 1 else "percent"


def _interval(summary: Summary, name: str, sign: str = "±") -> str:
    half = summary.half_width.get(name, math.nan)
    if math.isnan(half):
        return _percent(summary, name)
    letter = f" {summary.over[name][0]}" if name in summary.half_width_documents else ""
    return f"{_percent(summary, name)} {sign} {scale(name) * half:.2f}{letter}"


def _costs(summary: Summary) -> list[str]:
    seconds = "-" if summary.seconds is None else f"{summary.seconds:.1f}"
    peak = "-" if summary.peak_mb is None else f"{summary.peak_mb:.0f}"
    return [seconds, peak, str(summary.n_seeds)]


def to_json(rows: Iterable[Mapping[str, Any]], metric: str | None = None) -> str:
    """Return JSON Lines, one object a summary, at full precision; a missing interval is null."""
    lines = []
    for summary in summarise(rows, metric):
        halves = {
            kind: {name: None if math.isnan(h) else h for name, h in getattr(summary, kind).items()}
            for kind in ("half_width", "half_width_seeds", "half_width_documents")
        }
        lines.append(json.dumps(asdict(summary) | halves, ensure_ascii=False))
    return "\n".join(lines)


def to_csv(rows: Iterable[Mapping[str, Any]], metric: str | None = None) -> str:
    """Return CSV: each metric as a fraction at full precision, its half-width, `<metric>_95`, and what that is over."""
    import csv
    import io

    fixed = ["dataset", "protocol", "label", "method", "trials", "n_seeds"]
    ordered = [*([metric] if metric else []), *(name for name in KNOWN if name != metric)]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    figures = [column for name in ordered for column in (name, f"{name}_95", f"{name}_95_over")]
    last = ["seconds", "peak_mb", "is_best", "on_border", "n_failed", "errors", "documents_sha256", "runs"]
    writer.writerow([*fixed, *figures, *last])
    for summary in summarise(rows, metric):
        values: list[Any] = [getattr(summary, name) for name in fixed]
        for name in ordered:
            half = summary.half_width.get(name, math.nan)
            values += [summary.mean.get(name), None if math.isnan(half) else half, summary.over.get(name)]
        values += [summary.seconds, summary.peak_mb, int(summary.is_best), " ".join(summary.on_border)]
        values += [summary.n_failed, "; ".join(summary.errors), summary.documents_sha256]
        writer.writerow([*values, " ".join(summary.runs)])
    return stream.getvalue().rstrip("\n")


def to_markdown(rows: Iterable[Mapping[str, Any]], metric: str | None = None) -> str:
    """Return one Markdown table for each data set and protocol; values in percent, the best in bold."""
    lines: list[str] = []
    for (dataset, protocol), table in _tables(summarise(rows, metric)):
        shown = columns(table, metric)
        headings = ["method", *_headings(shown)]
        lines += [f"**{dataset}, {protocol} protocol**", "", _pipes(headings)]
        lines.append(_pipes(["---", *["---:"] * (len(headings) - 1)]))
        for summary in (summary for summary in table if summary.n_seeds):
            method, first, *others = _printed(summary, shown, lambda text: text.replace("|", r"\|"), r"\*")
            if summary.is_best:
                method, first = f"**{method}**", f"**{first}**"
            lines.append(_pipes([method, first, *others]))
        note = _note(table, shown).replace(ON_BORDER, r"\*")
        lines += ["", note, "", *(f"- {line}" for line in failures(table))]
    return "\n".join(lines).rstrip("\n")


def _note(table: Sequence[Summary], shown: Sequence[str]) -> str:
    """Return what stands under a table of a paper: the caption, and what is wrong with the data."""
    note = caption(table, shown).replace(f" {BEST} best", " Best in bold")
    return f"{note} {table[0].dataset}: {table[0].data_note}." if table[0].data_note else note


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def to_latex(rows: Iterable[Mapping[str, Any]], metric: str | None = None) -> str:
    r"""Return a LaTeX table (booktabs) for each data set and protocol; in percent, the best in bold."""
    lines = [r"% needs \usepackage{booktabs}"]
    for (dataset, protocol), table in _tables(summarise(rows, metric)):
        shown = columns(table, metric)
        headings = [escape_latex(heading) for heading in ("method", *_headings(shown, ""))]
        lines += [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}"]
        lines += [r"\toprule", f"{' & '.join(headings)} \\\\", r"\midrule"]
        for summary in (summary for summary in table if summary.n_seeds):
            method, first, *others = _printed(summary, shown, escape_latex, ON_BORDER, r"$\pm$")
            if summary.is_best:
                method, first = rf"\textbf{{{method}}}", rf"\textbf{{{first}}}"
            lines.append(f"{' & '.join([method, first, *others])} \\\\")
        note = _note(table, shown)
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [rf"\caption{{{escape_latex(f'{dataset}, {protocol} protocol. {note}')}}}", r"\end{table}"]
        lines += [f"% {line}" for line in failures(table)]
    return "\n".join(lines)


def _printed(
    summary: Summary, shown: Sequence[str], escape: Callable[[str], str], border: str, sign: str = "±"
) -> list[str]:
    """Return a summary's cells, method and ranking metric first."""
    method = escape(summary.label) + border * bool(summary.on_border)
    first, *others = shown
    values = [_interval(summary, first, sign), *(_percent(summary, name) for name in others)]
    return [method, *values, *_costs(summary)]


def escape_latex(text: str) -> str:
    """Return `text` so that LaTeX prints it as it stands."""
    return "".join(LATEX.get(character, character) for character in text)


FORMATS: dict[str, Callable[..., str]] = {
    "csv": to_csv,
    "markdown": to_markdown,
    "latex": to_latex,
    "json": to_json,
}
