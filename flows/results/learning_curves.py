"""Label-budget curves: their points, and who is best at which budget."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Any

from textbench.evaluation.metrics.multilabel import is_of_several_labels
from textbench.evaluation.statistics.intervals import mean_interval
from textbench.evaluation.statistics.significance import holm, paired_t
from textbench.flows.results.method_names import explained, marked, uses_labels, with_marks
from textbench.flows.results.metric_names import KNOWN, heading, scale, unit
from textbench.flows.tables.table import Table, of_texts
from textbench.tasks.words import counted, spanned

LEVEL = 0.05
BASELINE = "tfidf"  # what every other method is set beside
ENCODERS = ("sentence", "join(tfidf, sentence)")  # a pretrained encoder alone, and beside the baseline
Figures = dict[str, dict[int, float]]  # by method and draw
Test = tuple[str, int, float, float]  # a method, a budget, its difference to the baseline, p


@dataclass(frozen=True)
class BudgetPoint:
    """The mean over `n_draws` at a budget and its 95 % interval (the mean itself for one draw), fractions."""

    budget: int
    mean: float
    low: float
    high: float
    n_draws: int = 1


@dataclass(frozen=True)
class Curve:
    """One method on one data set: its points by budget, smallest first.

    `apart` says in words what else tells the curve from others of its method, `n_otherwise` how many draws are left out
    because other code made them (`flows.results.summary.made_alike`).
    """

    dataset: str
    method: str
    metric: str
    n_draws: int
    points: Sequence[BudgetPoint]
    uses_labels: bool = False
    is_stratified: bool = False
    apart: str = ""
    n_otherwise: int = 0

    @property
    def label(self) -> str:
        """The method with its marks, and what tells it apart."""
        return _named(with_marks(self.method, uses_labels=self.uses_labels), self.apart)


def _named(name: str, apart: str) -> str:
    return f"{name} ({apart})" if apart else name


def _label(row: Mapping[str, Any]) -> str:
    return _named(marked(row), row.get("apart", ""))


def summarise(rows: Sequence[Mapping[str, Any]], metric: str | None = None) -> list[Curve]:
    """Return the curve of each method over the rows of budgets; without a metric accuracy, or micro-F1.

    Rows of one method that were made in several ways say so in words, `apart`, and are curves of their own.
    """
    curves = []
    done = [found for found in rows if not found["error"]]
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for found in done:
        groups.setdefault((found["dataset"], found["method"], found.get("apart", "")), []).append(found)
    for (dataset, method, apart), own in groups.items():
        chosen = metric or _ranking(own)
        values = _by_budget(own, chosen)
        points = [_point(budget, [*by_draw.values()]) for budget, by_draw in values.items()]
        n_draws = max(point.n_draws for point in points)
        is_stratified = all(found["labels"].get("stratified") for found in own)
        marks = uses_labels(own[0])
        n_otherwise = max(found.get("n_otherwise", 0) for found in own)
        curves.append(
            Curve(dataset, method, chosen, n_draws, points, marks, is_stratified, apart, n_otherwise)
        )
    return curves


def _by_budget(rows: Iterable[Mapping[str, Any]], metric: str) -> dict[int, dict[int, float]]:
    """Return one method's figures by budget, smallest first, and draw: of several seeds the mean."""
    found: dict[int, dict[int, list[float]]] = {}
    for row in rows:
        by_draw = found.setdefault(row["labels"]["budget"], {})
        by_draw.setdefault(row["labels"]["draw"], []).append(row["metrics"][metric])
    return {
        budget: {draw: fmean(values) for draw, values in found[budget].items()} for budget in sorted(found)
    }


def _point(budget: int, values: Sequence[float]) -> BudgetPoint:
    mean, half = mean_interval(values)
    # Equal figures may differ from their mean by rounding.
    half = 0.0 if half != half or len(set(values)) == 1 else half
    return BudgetPoint(budget, mean, mean - half, mean + half, len(values))


def draws_of(curves: Sequence[Curve]) -> str:
    """Return in words over how many draws these are, at which budgets fewer, and of which methods fewer still."""
    most: dict[int, int] = {}
    for point in (point for curve in curves for point in curve.points):
        most[point.budget] = max(most.get(point.budget, 0), point.n_draws)
    n_draws = max(most.values())
    fewer = [f"{n} at {budget:,} labels" for budget, n in sorted(most.items()) if n < n_draws]
    for curve in curves:
        if found := [point.n_draws for point in curve.points if point.n_draws < most[point.budget]]:
            fewer.append(f"{curve.label} {spanned(found)}")
    return counted(n_draws, "draw") + (f" ({', '.join(fewer)})" if fewer else "")


def _ranking(rows: Sequence[Mapping[str, Any]]) -> str:
    return "micro_f1" if is_of_several_labels(rows[0]["metrics"]) else "accuracy"


def verdicts(rows: Sequence[Mapping[str, Any]], metric: str | None = None) -> list[str]:
    """Return for each data set a sentence on who is best from which to which budget, and one on who beats TF-IDF where.

    Of a pretrained encoder a third one says up to how many labels it wins (`crossovers`).

    The best mean over the draws that all methods of several draws share is compared with every other one by Student's
    paired t test over the draws that the two share; p values are corrected together for each budget (Holm), and for the
    second sentence over all budgets and methods. A single draw tests nothing and gives no sentence; nor are draws
    tested that are all alike, as those of all documents.
    """
    lines = []
    done = [found for found in rows if not found["error"]]
    for dataset in dict.fromkeys(found["dataset"] for found in done):
        own = [found for found in done if found["dataset"] == dataset]
        if len({*map(_label, own)}) < 2 or len({found["labels"]["draw"] for found in own}) < 2:
            continue
        runs = _runs(own, metric)
        found_at = {budget: _standing(figures) for budget, figures in runs.items()}
        parts = [f"{_between(group)}: {said}" for said, group in groupby(runs, found_at.__getitem__)]
        lines.append(f"{dataset}: {'; '.join(parts)}. Paired t tests over draws, Holm-corrected.")
        lines += [f"{dataset}, {said}" for said in _beside_baseline(runs)]
        lines += crossovers(own, metric)
    return lines


def crossovers(rows: Sequence[Mapping[str, Any]], metric: str | None = None) -> list[str]:
    """Return for each data set a sentence on up to how many labels a pretrained encoder is ahead of TF-IDF.

    They are those of ENCODERS, alone and joined with TF-IDF, that have draws in common with it. The paired t tests are
    those of all methods beside TF-IDF, corrected together (Holm), as `verdicts` has them.
    """
    lines = []
    done = [found for found in rows if not found["error"]]
    for dataset in dict.fromkeys(found["dataset"] for found in done):
        own = [found for found in done if found["dataset"] == dataset]
        runs = _runs(own, metric)
        # Of methods tuned otherwise too the first, as beside the baseline.
        marks = {found["method"]: _label(found) for found in reversed(own)}
        encoders = [marks[name] for name in ENCODERS if name in marks]
        if BASELINE not in marks or not encoders:
            continue
        tests = _corrected(_tests(runs, marks[BASELINE]))
        said = [
            _crossing(name, marks[BASELINE], tests) for name in encoders if any(t[0] == name for t in tests)
        ]
        if said:
            shared = [
                runs[budget][name].keys() & runs[budget][marks[BASELINE]].keys()
                for name, budget, *_ in tests
                if name in encoders
            ]
            tested = _between(budget for name, budget, *_ in tests if name in encoders)
            lines.append(
                f"{dataset}, beside {marks[BASELINE]}: {'; '.join(said)}. {counted(len(tests), 'paired t test')} at "
                f"{tested} over {spanned(map(len, shared))} draws, of all methods, Holm-corrected together."
            )
    return lines


def _corrected(tests: Sequence[Test]) -> list[Test]:
    """Return the tests with their p values corrected together (Holm)."""
    return [(*test[:3], p) for test, p in zip(tests, holm([p for *_, p in tests]), strict=True)]


def _crossing(name: str, baseline: str, tests: Sequence[Test]) -> str:
    """Say at which budgets a method is ahead of the baseline, and the baseline of it, by corrected tests."""
    own = [(budget, d, p) for method, budget, d, p in tests if method == name]
    tested = [budget for budget, *_ in own]
    ahead = [budget for budget, d, p in own if p < LEVEL and d > 0]
    behind = [budget for budget, d, p in own if p < LEVEL and d < 0]
    n_low, n_high = len(ahead), len(behind)
    if not ahead and not behind:
        return f"neither {name} nor {baseline} wins at any budget"
    loses = f"{baseline} wins" if ahead else f"{baseline} wins over {name}"
    if ahead != tested[:n_low] or behind != tested[len(tested) - n_high :]:
        said = [
            f"{who} at {_ranges(won, tested)}"
            for who, won in ((f"{name} wins", ahead), (loses, behind))
            if won
        ]
        return f"{', '.join(said)}, neither elsewhere"
    every = f"at {'all of ' if len(tested) > 1 else ''}{_between(tested)}"
    low = f"{every if n_low == len(tested) else f'up to {ahead[-1]:,} labels'} {name} wins" if ahead else ""
    high = f"{every if n_high == len(tested) else f'from {behind[0]:,} labels on'} {loses}" if behind else ""
    where = "between them" if ahead and behind else "above" if ahead else "below"
    neither = f"{where} neither" if n_low + n_high < len(tested) else ""
    return ", ".join(filter(None, (low, high, neither)))


def _runs(rows: Sequence[Mapping[str, Any]], metric: str | None) -> dict[int, Figures]:
    """Return by budget what each method of a data set reached in each draw; more is better."""
    figure = metric or _ranking(rows)
    sign = 1 if KNOWN[figure].higher_is_better else -1
    of_methods: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        of_methods.setdefault(_label(row), []).append(row)
    runs: dict[int, Figures] = {}
    for method, own in of_methods.items():
        for budget, by_draw in _by_budget(own, figure).items():
            runs.setdefault(budget, {})[method] = {draw: sign * value for draw, value in by_draw.items()}
    return dict(sorted(runs.items()))


def _between(budgets: Iterable[int]) -> str:
    return f"{spanned(budgets)} labels"


def _can_be_tested(first: Mapping[int, float], second: Mapping[int, float]) -> bool:
    """Whether two methods share draws of which one, of either method, differs from another, and the gaps do.

    Draws of one gap have no deviation that a t test could hold the gap against; those of no gap at all are ties.
    """
    shared = first.keys() & second.keys()
    gaps = {round(first[draw] - second[draw], 12) for draw in shared}
    differ = any(len({by_draw[draw] for draw in shared}) > 1 for by_draw in (first, second))
    return differ and (len(gaps) > 1 or gaps == {0.0})


def _standing(figures: Figures) -> str:
    """Say which method is best at a budget, and which others are tied with it."""
    several = [method for method in figures if len(figures[method]) > 1]
    shared = set.intersection(*({*figures[method]} for method in several)) if several else set()
    if len(shared) < 2:
        return _untested(figures)
    best = max(several, key=lambda method: fmean(figures[method][draw] for draw in shared))
    others = [method for method in figures if method != best]
    tests = {
        m: paired_t(figures[best], figures[m]) for m in others if _can_be_tested(figures[best], figures[m])
    }
    if not tests:
        return _untested(figures)
    corrected = dict(zip(tests, holm([p for _, p in tests.values()]), strict=True))
    apart = [method for method, (gap, _) in tests.items() if corrected[method] < LEVEL and gap > 0]
    tied = [method for method in tests if method not in apart]
    untested = [method for method in others if method not in tests]
    if len(apart) < len(tied) and len(tied) > 2:
        every = f"all others{' that are tested' if untested else ''}"
        said = f", tied with {every}" + (f" but {', '.join(apart)}" if apart else "")
    else:
        said = f", tied with {', '.join(tied)}" if tied else ""
    return f"{best} is best{said}" + (f" (untested: {', '.join(untested)})" if untested else "")


def _untested(figures: Figures) -> str:
    """Say which method's mean is highest at a budget, and why nothing is tested there."""
    highest = max(figures, key=lambda method: fmean(figures[method].values()))
    several = [{*by_draw} for by_draw in figures.values() if len(by_draw) > 1]
    if all(len(by_draw) == 1 for by_draw in figures.values()):
        why = "there is one draw"
    elif all(len({*by_draw.values()}) == 1 for by_draw in figures.values()):
        why = "draws do not differ"
    elif len(several) > 1 and len(set.intersection(*several)) > 1:
        why = "gaps are the same in all draws"
    else:
        why = "too few draws are shared"
    return f"{highest} is highest, untested, for {why}"


def _beside_baseline(runs: Mapping[int, Figures]) -> list[str]:
    """Return a sentence on the budgets at which others are ahead of the baseline or behind it, if there is one."""
    names = dict.fromkeys(method for figures in runs.values() for method in figures)
    baseline = next((name for name in names if name.partition(" (")[0] == BASELINE), "")
    tests = _corrected(_tests(runs, baseline))
    if not tests:
        return []
    won: dict[bool, dict[str, list[int]]] = {True: {}, False: {}}
    for method, budget, difference, p in tests:
        if p < LEVEL:
            won[difference > 0].setdefault(method, []).append(budget)
    tested = list(dict.fromkeys(budget for _, budget, *_ in tests))
    said = [
        f"{how}: {', '.join(f'{method} ({_ranges(own, tested)})' for method, own in found.items())}"
        for how, found in (("ahead", won[True]), ("behind", won[False]))
        if found
    ]
    result = "; ".join(said) or "no method is ahead or behind at any budget"
    n_tests = counted(len(tests), "paired t test")
    return [f"beside {baseline}, {result}. {n_tests} over draws, Holm-corrected together."]


def _tests(runs: Mapping[int, Figures], baseline: str) -> list[Test]:
    """Return for each other method and budget the difference to the baseline and its p, where that can be tested."""
    names = dict.fromkeys(method for figures in runs.values() for method in figures)
    return [
        (method, budget, *paired_t(figures[method], figures[baseline]))
        for method in names
        for budget, figures in runs.items()
        if baseline in figures and method in figures and method != baseline
        if _can_be_tested(figures[method], figures[baseline])
    ]


def _ranges(own: Sequence[int], tested: Sequence[int]) -> str:
    """Say which of the budgets that were tested are `own`, those that follow one another together."""
    runs = groupby(tested, key=lambda budget: budget in own)
    return ", ".join(_between(group) for is_own, group in runs if is_own)


def curve_tables(curves: Sequence[Curve]) -> list[Table]:
    """Return a table for each data set, a line a budget and a column a method; the last has a note on the figures."""
    tables = []
    for name in dict.fromkeys(curve.dataset for curve in curves):
        own = [curve for curve in curves if curve.dataset == name]
        metric = own[0].metric
        title = f"{name}: {heading(metric)} in {unit(metric)} by labelled documents"
        points = [{point.budget: point for point in one.points} for one in own]
        lines = [
            [f"{budget:,}", *(_figure(of_method.get(budget), scale(metric)) for of_method in points)]
            for budget in sorted({budget for of_method in points for budget in of_method})
        ]
        tables.append(of_texts(title, ("labels", *(one.label for one in own)), lines))
    note = (
        "Mean over draws with the half width of its 95 % interval, none where draws are equal or one alone; the draws "
        f"are the same for all methods.{explained(curve.label for curve in curves)}"
    )
    return [*tables[:-1], *(replace(table, note=note) for table in tables[-1:])]


def _figure(point: BudgetPoint | None, factor: int) -> str:
    """Return a point as text, times `factor`, with half of its interval if one draw differs from another."""
    if point is None:
        return "-"
    half = (point.high - point.low) / 2
    return f"{factor * point.mean:.1f}" + (f" ±{factor * half:.1f}" if half else "")
