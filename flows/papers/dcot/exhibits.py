"""The dCoT paper's exhibits: seconds (table 1), one-word documents (figure 2), noise and depth (3), label budgets (4).

Source: Z. Xu, M. Chen, K. Weinberger and F. Sha, "From sBoW to dCoT: marginalized encoders for text
representation", CIKM 2012.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from textbench.evaluation.claims.published import SECONDS, Claim, read_claims
from textbench.evaluation.statistics.intervals import mean_interval
from textbench.flows.explain.terms import Column, TermsQuestion, ask
from textbench.flows.papers import Done, Exhibit, done
from textbench.flows.papers.dcot import drawings
from textbench.flows.plan.cell import Cell
from textbench.flows.results.learning_curves import summarise, verdicts
from textbench.tasks import catalogue
from textbench.tasks.storage.store import Store
from textbench.tasks.tokens import TokenRule, encode
from textbench.tasks.words import spanned

PAPER, DATASET, METHOD = "dcot-2012", "reuters65", "dcot"
GRID_LABELS = 1000  # of figure 3
REFERENCES = ("counts", "tfidf")  # drawn beside the grid
# Figure 2 as printed: the empty document and those of one word, each with the terms made of it, the highest first.
PRINTED_EMPTY = "year billion dlrs mln share market bank interest price debt"
PRINTED = {
    "reagan": "reagan house administration white president congress senate bill states united",
    "nasdaq": "nasdaq national nasd system exchange association stock securities trading common",
    "bush": "president george reagan house white secretary vice political chief senate",
    "union": "union soviet workers strike contract united employees wage members moscow",
    "colorado": "colorado service states texas kansas agreement association federal oklahoma approval",
    "reproduction": "crop areas weather corn dry moisture normal good agriculture winter",
    "budapest": "currency talks finance hungary central bank senior contracts financial newspaper",
    "rescues": "banking insurance loan deposit deposits federal bill mortgage reserve institutions",
}
N_TERMS = 10


def exhibits(home: Path) -> list[Exhibit]:
    """Return what of table 1 and figures 2 to 4 can be made from the finished cells of the suite."""
    parts = {part.part.name: part for part in done(home, "dcot")}
    seconds, curves = parts["seconds"], parts["curves"]
    found = [
        table_1(seconds),
        figure_2(home, seconds),
        figure_3(parts["grid"], curves),
        figure_4(curves, parts["autoencoders"]),
        beyond(parts["beyond"]),
    ]
    return [exhibit for exhibit in found if exhibit is not None]


def table_1(timed: Done) -> Exhibit | None:
    """Seconds of learning features: those of the timed part beside the published ones."""
    measured = _seconds(timed)
    if not measured:
        return None
    claims = [claim for claim in _claims("table-1") if claim.metric in SECONDS and claim.printed]
    published = {claim.method_here: claim.printed.value for claim in claims if claim.printed}
    own = _mean(measured.get(METHOD, ()))
    rows = []
    for method, values in measured.items():
        printed, figures = published.get(method), _summary(values)
        ratios = (_ratio(printed, published.get(METHOD)), _ratio(figures[0], own))
        rows.append([method, printed, ratios[0], *figures, ratios[1]])
    header = (
        "method", "published seconds", "published, times dCoT's", "measured seconds", "from", "to", "timings",
        "measured, times dCoT's",
    )  # fmt: skip
    n_runs = len({row["attempt"] for row in timed.rows if row.get("timed")})
    caption = (
        "Seconds to learn the features and to make those of all documents, one cell at a time, linear algebra on "
        "one thread, on the machine that ran this suite, with 95 % intervals over seeds (Student t); what does not "
        f"depend on the seed is timed once. Published: {claims[0].note}, whole minutes from a minute on. Seconds of "
        "two machines do not compare; ratios to dCoT's within a column do."
        f"{f' From {n_runs} timed runs, not one.' if n_runs > 1 else ''}{timed.remarks}"
    )
    draw = partial(drawings.seconds, [(row[0], row[1], row[3]) for row in rows])
    return Exhibit("table-1", "Table 1: seconds to learn the features", caption, header, rows, draw)


def _seconds(timed: Done) -> dict[str, list[float]]:
    """Return by method the seconds of each timed artifact of features: seeds that change nothing share one."""
    seconds: dict[str, dict[str, float]] = {}
    for cell, row in timed.found:
        if row.get("timed") and "featurize" in row["seconds"]:
            key = cell.references["featurize"].key
            seconds.setdefault(cell.method, {})[key] = row["seconds"]["featurize"]
    return {method: list(values.values()) for method, values in seconds.items()}


def figure_2(home: Path, timed: Done) -> Exhibit | None:
    """The one-word documents by the dCoT that the timed part has fitted; None where that is not stored."""

    store = Store(home / "store", isolated=False)
    cell = next(cell for cell in timed.cells if catalogue.parse_method(cell.method)[0] == METHOD)
    if not all(store.has(cell.references[stage]) for stage in ("vectorize", "featurize")):
        return None  # asking would compute it
    known = [
        word for word, terms in zip(PRINTED, _terms_of(list(PRINTED), store, cell), strict=True) if terms
    ]
    question = TermsQuestion(
        known, cell.dataset, cell.method, N_TERMS, cell.request.rule, cell.protocol, cell.seed
    )
    columns = ask(question, store).columns
    texts = [PRINTED_EMPTY, *(PRINTED[word] for word in known)]
    printed = _terms_of(texts, store, cell)
    shared = [{term for term, _ in c.terms} & terms for c, terms in zip(columns, printed, strict=True)]
    n_shared, n_printed = sum(map(len, shared)), sum(map(len, printed))
    caption = (
        f"What documents of one word are reconstructed to by the last layer ({_settings(cell)}; the paper does not "
        "say its own), less the values of the empty document, which is the first panel. A bar is a value's share of "
        "its panel's best; terms are as the token rule makes them. Bold with a dot: also in the paper's column, "
        f"{n_shared} of its {n_printed} terms.{_unknown(known, cell)}"
    )
    header = ("document", "rank", "published", "measured", "value", "in the paper's column")
    rows = _rows(columns, texts, shared)
    draw = partial(drawings.columns, columns, shared)
    return Exhibit("figure-2", "Figure 2: documents of one word", caption, header, rows, draw)


def _terms_of(texts: Sequence[str], store: Any, cell: Cell) -> list[set[str]]:
    """Return the terms that the token rule makes of each text; words out of the vocabulary have none."""
    opened = store.open(cell.references["vectorize"])
    terms = opened.json("terms")
    ids, offsets = encode(texts, terms, TokenRule(**opened.meta["recipe"]["params"]["rule"]))
    return [{terms[i] for i in ids[offsets[k] : offsets[k + 1]]} for k in range(len(texts))]


def _unknown(known: Sequence[str], cell: Cell) -> str:
    words = [word for word in PRINTED if word not in known]
    if not words:
        return ""
    return f" Left out, for no document of {cell.dataset} as it is here has them: {', '.join(words)}."


def _settings(cell: Cell) -> str:
    name, params = catalogue.parse_method(cell.method)
    used = catalogue.method(name).load().build(**params).get_params()
    words = {"n_prototypes": "prototypes", "n_layers": "layers", "noise": "noise"}
    return ", ".join(f"{word} {used[parameter]:g}" for parameter, word in words.items())


def _rows(columns: Sequence[Column], texts: Sequence[str], shared: Sequence[set[str]]) -> list[list[Any]]:
    rows = []
    for column, text, both in zip(columns, texts, shared, strict=True):
        for place, ((term, value), word) in enumerate(zip(column.terms, text.split(), strict=True), start=1):
            rows.append([column.heading, place, word, term, round(value, 6), "yes" if term in both else "no"])
    return rows


def figure_3(part: Done, curves: Done) -> Exhibit | None:
    """The accuracy by noise and depth at 1,000 labels, the mean over draws; `curves` has what is drawn beside it."""
    grid = _grid(part)
    if not grid:
        return None
    accuracies = _accuracies(curves)
    beside = {m: accuracies[m, GRID_LABELS] for m in REFERENCES if (m, GRID_LABELS) in accuracies}
    rows = [[METHOD, *place, *_summary(grid[place])] for place in sorted(grid)]
    rows += [[method, None, None, *_summary(values)] for method, values in beside.items()]
    (noise, depth), best = max(grid.items(), key=lambda item: _mean(item[1]) or 0.0)
    caption = (
        f"Accuracy in percent at {GRID_LABELS:,} labels, features learnt on all training texts; the mean over "
        f"{_draws(grid.values())} of labels, the classifier's C by cross-validation on them. The highest is "
        f"{_mean(best):.1f} (noise {100 * noise:g} %, depth {depth}), chosen on the test documents and so no fair "
        f"figure of the method.{_aside(beside, curves)} {_sentences('figure-3')}{part.remarks}"
    )
    header = ("method", "noise", "layers", "accuracy, percent", "from", "to", "draws")
    draw = partial(drawings.grid, grid, beside)
    return Exhibit("figure-3", "Figure 3: noise and depth", caption, header, rows, draw)


def _grid(part: Done) -> dict[tuple[float, int], list[float]]:
    """Return percentages by (noise, layers), one for each draw that all settings have (or, without one, all draws)."""
    found: dict[tuple[float, int], dict[int, float]] = {}
    for cell, row in part.found:
        params = catalogue.parse_method(cell.method)[1]
        draws = found.setdefault((params["noise"], params["n_layers"]), {})
        draws[cell.request.labels["draw"]] = 100 * row["metrics"]["accuracy"]
    shared = set.intersection(*(set(draws) for draws in found.values())) if found else set()
    return {place: [draws[d] for d in sorted(shared or draws)] for place, draws in found.items()}


def _aside(beside: Mapping[str, Sequence[float]], curves: Done) -> str:
    if not beside:
        return ""
    trials, draws = curves.part.request.trials, _draws(beside.values())
    return f" Dashed: {' and '.join(beside)} with as many labels, over {draws}, tuned over {trials} settings."


def figure_4(part: Done, related: Done) -> Exhibit | None:
    """The accuracy by labels of the paper's five methods, and of `related` work, with 95 % bands over draws."""
    if not part.found:
        return None
    own, others = _accuracies(part), _accuracies(related)
    accuracies = own | others
    beside = dict.fromkeys(method for method, _ in others)
    aside = (
        f" Not in the paper, and not tested: {', '.join(beside)}, over {_draws(others.values())}.{related.remarks}"
        if beside
        else ""
    )
    rows = [[*place, *_summary(values)] for place, values in accuracies.items()]
    caption = (
        f"Accuracy in percent by labelled training documents, the mean over {_draws(own.values())} of labels; "
        "bands are 95 % intervals (Student t), none for one draw. Features are learnt on all training texts, and every "
        "method is tuned over "
        f"{part.part.request.trials} settings by cross-validation on the labels of the budget. "
        f"{_sentences('figure-4')}{''.join(f' {line}' for line in verdicts(part.rows, 'accuracy'))}"
        f"{part.remarks}{aside}"
    )
    header = ("method", "labels", "accuracy, percent", "from", "to", "draws")
    draw = partial(drawings.curves, summarise([*part.rows, *related.rows], "accuracy"))
    return Exhibit("figure-4", "Figure 4: accuracy by labels", caption, header, rows, draw)


def beyond(part: Done) -> Exhibit | None:
    """What the paper did not try: other settings of dCoT against its own and against tuned baselines."""
    values: dict[tuple[str, str, int], list[float]] = {}
    for cell, row in part.found:
        place = (cell.dataset, cell.method, cell.request.labels["budget"])
        values.setdefault(place, []).append(100 * row["metrics"]["accuracy"])
    if not values:
        return None
    rows = [[*place, *_summary(some)] for place, some in values.items()]
    caption = (
        f"Accuracy in percent under the {part.part.request.protocol} protocol, the mean over {_draws(values.values())} "
        f"of labels with its 95 % interval (Student t)."
        f"{''.join(f' {line}' for line in verdicts(part.rows, 'accuracy'))}{part.remarks}"
    )
    header = ("data set", "method", "labels", "accuracy, percent", "from", "to", "draws")
    return Exhibit("beyond", "Not in the paper: other settings of dCoT", caption, header, rows)


def _accuracies(part: Done) -> dict[tuple[str, int], list[float]]:
    """Return percentages by method, in the suite's order, and number of labels, one a draw."""
    values: dict[tuple[str, int], list[float]] = {}
    for cell, row in part.found:
        place = (cell.method, cell.request.labels["budget"])
        values.setdefault(place, []).append(100 * row["metrics"]["accuracy"])
    order = list(dict.fromkeys(cell.method for cell in part.cells))
    return {place: values[place] for place in sorted(values, key=lambda p: (order.index(p[0]), p[1]))}


def _claims(place: str) -> list[Claim]:
    """Return what the paper says in a figure or table of the data set."""
    return [c for c in read_claims() if (c.paper, c.place, c.dataset_here) == (PAPER, place, DATASET)]


def _sentences(place: str) -> str:
    claims = _claims(place)
    said = "; ".join(f"“{claim.text}”" for claim in claims)
    notes = "; ".join(dict.fromkeys(claim.note for claim in claims if claim.note))
    return (
        f"Published is a picture without numbers ({notes}), of which the paper says: {said}. What holds of that: "
        f"textbench claims {PAPER}/{place}."
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _ratio(value: float | None, own: float | None) -> float | None:
    return None if value is None or own is None else float(f"{value / own:.3g}")


def _summary(values: Sequence[float]) -> list[Any]:
    """Return a mean, its 95 % interval (none for one value), and how many values there are."""
    mean, half = mean_interval(values)
    bounds = [None, None] if half != half else [round(mean - half, 3), round(mean + half, 3)]
    return [round(mean, 3), *bounds, len(values)]


def _draws(values: Iterable[Sequence[float]]) -> str:
    over = spanned(len(some) for some in values)
    return f"{over} draw{'' if over == '1' else 's'}"
