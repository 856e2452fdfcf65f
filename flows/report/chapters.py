"""The five chapters: the questions people ask, in their order, each with its answer in a line and what it rests on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from textbench.flows.referee import recorded_draws
from textbench.flows.referee.held import counts, headlines, held, totals
from textbench.flows.referee.ledger import LedgerEntry
from textbench.flows.report import (
    audits,
    boards,
    charts,
    classes,
    costs,
    curves,
    exhibits,
    papers,
    probabilities,
    probes,
    provenance,
    ranks,
    recorded,
    search,
    topical,
    topics,
)
from textbench.flows.report.boards import Board
from textbench.flows.report.charts import Figure
from textbench.flows.report.evidence import Evidence
from textbench.flows.results import learning_curves
from textbench.flows.results.half_widths import in_words
from textbench.flows.results.metric_names import scale
from textbench.flows.results.summary import higher, mean_over, on_seeds
from textbench.flows.results.winner import the_others
from textbench.flows.tables.table import LOCAL, RECORDED, Table, slug
from textbench.tasks.words import counted, spanned

SEVERAL = 3  # boards, up to which each is answered in the summary
NEAR = 0.02  # of the best figure: what is worth a look if it is cheaper


@dataclass(frozen=True)
class Section:
    """A part of a chapter: sentences, points of a list, figures and tables."""

    name: str
    title: str
    source: str = ""
    lines: Sequence[str] = ()
    points: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Chapter:
    """A question: `answer` stands at the top of the page, `lines` and `sections` in the chapter."""

    name: str
    title: str
    answer: Sequence[str]
    lines: Sequence[str] = ()
    sections: Sequence[Section] = field(default_factory=tuple)


def chapters(evidence: Evidence, entries: Sequence[LedgerEntry] | None = None) -> list[Chapter]:
    """Return the chapters of a report.

    With the entries of the ledger of claims it has the papers, and all that the repository records; without it has
    what was run here, and what is recorded of the same data sets under the same protocols.
    """
    known = recorded.summaries()
    found = boards.boards(evidence, known)
    others = boards.recorded_boards(known, found) if entries is not None else []
    remade, searched = exhibits.shown(evidence), search.found(evidence)
    is_search_alone = searched and not (evidence.rows or evidence.budgets or evidence.failed)
    return [
        _which(evidence, found, others, searched, with_all=entries is not None),
        *(
            []
            if is_search_alone
            else [
                _sure(evidence, found, with_all=entries is not None),
                _costs(found, others, with_all=entries is not None),
            ]
        ),
        *([_papers(entries, remade)] if entries is not None else [_remade(remade)] if remade else []),
        _made(evidence, found, entries, searched),
    ]


def _which(
    evidence: Evidence,
    found: Sequence[Board],
    others: Sequence[Board],
    searched: Sequence[search.Run],
    *,
    with_all: bool,
) -> Chapter:
    kept = recorded_draws.rows() if with_all else []
    crossings = [*_crossover_sections(evidence.budgets, LOCAL), *_crossover_sections(kept, RECORDED)]
    sections = [*crossings, *(_board_section(board) for board in found)]
    sections += _curve_sections(evidence.budgets, LOCAL)
    if of_topics := topics.find(evidence):
        tables = [topics.coherence(of_topics), *map(topics.table, of_topics)]
        sections.append(Section("topics", "What topic models learned", LOCAL, tables=tables))
    if searched:
        of_search = search.tables(searched)
        sections.append(Section("search", "Search in judged collections", LOCAL, tables=of_search))
    sections += [_board_section(board) for board in others]
    sections += _curve_sections(kept, RECORDED)
    if failed := boards.failed(evidence):
        sections.append(Section("failures", "What failed", LOCAL, tables=[failed]))
    answer = [answer_of(board) for board in found] if len(found) <= SEVERAL else _by_ranks(found)
    if not found:
        answer = search.answers(searched)
        answer += [answer_of(board) for board in others if len({s.method for s in board.recorded}) > 1]
    if crossings:
        is_first = crossings[0].source == LOCAL or not found
        answer = [*crossings[0].lines, *answer] if is_first else [*answer, *crossings[0].lines]
    nothing = "" if found else nothing_here(evidence)
    lines = [nothing] if nothing else []
    return Chapter("which", "Which representation should I use?", answer or lines, lines, sections)


def _crossover_sections(budgets: Sequence[Mapping[str, Any]], source: str) -> list[Section]:
    """Return a section on up to how many labels a pretrained encoder wins, if curves have one: a panel a data set."""
    lines, drawn = [], []
    groups = curves.groups(budgets)
    told = {kind: said for kind, rows in groups.items() if (said := learning_curves.crossovers(rows))}
    for (dataset, protocol, by), said in told.items():
        # A data set's protocol, and that draws are by class, are said where it has others too.
        alike = [kind for kind in told if kind[0] == dataset]
        has_protocols, has_ways = (len({kind[place] for kind in alike}) > 1 for place in (1, 2))
        apart = [f"{protocol} protocol" if has_protocols else "", by if has_ways else ""]
        name = ", ".join(filter(None, (dataset, *apart)))
        lines += [f"{name}{line.removeprefix(dataset)}" for line in said]
        own = curves.drawn(learning_curves.summarise(groups[dataset, protocol, by]))
        drawn.append([replace(curve, dataset=name) for curve in own])
    if not lines:
        return []
    end = "" if source == LOCAL else "-recorded"
    title = f"With how few labels a pretrained encoder wins{'' if source == LOCAL else ', as recorded'}"
    panels = [found for found in drawn if found]
    figures = [charts.multiples(panels, f"fig-crossover{end}", title)] if panels else []
    return [Section(f"crossover{end}", title, source, lines=lines, figures=figures)]


def _curve_sections(budgets: Sequence[Mapping[str, Any]], source: str) -> list[Section]:
    """Return a section per data set and protocol: its curves drawn and tabled, and who is best at which budget."""
    sections = []
    for (dataset, protocol, by), rows in curves.groups(budgets).items():
        own = learning_curves.summarise(rows)
        drawn = curves.drawn(own)
        apart = ("-by-class" if by else "") + ("" if source == LOCAL else "-recorded")
        title = f"{curves.headed(dataset, protocol, by)}{'' if source == LOCAL else ', as recorded'}"
        figure = slug(f"fig-curve-{dataset}-{protocol}{apart}")
        sections.append(
            Section(
                slug(f"curve-of-{dataset}-{protocol}{apart}"),
                title,
                source,
                lines=learning_curves.verdicts(rows),
                figures=[charts.curves(drawn, figure, title)] if drawn else [],
                tables=curves.tables(dataset, protocol, own, source),
            )
        )
    return sections


def nothing_here(evidence: Evidence) -> str:
    """Say that there is no local result, and what to do; "" where search alone was run."""
    if evidence.budgets:
        return "Only label-budget curves were run here; a comparison on all labels is made by: textbench run quick"
    if evidence.failed:
        one, n = evidence.failed[0], len(evidence.failed)
        return (
            f"Everything that was run here failed ({counted(n, 'cell')}); first {one['dataset']} "
            f"{one['method']}: {one['error']}. Mend that, and run the same command again; textbench doctor looks for "
            "what is missing."
        )
    if search.found(evidence):
        return ""
    return "Nothing has been run here yet. A first comparison takes a minute or two: textbench run quick"


def _board_section(board: Board) -> Section:
    title = board.title
    figures = [charts.leaderboard(board)] if len(board.lines) > 1 else []
    failing = boards.failures(board.summaries)
    return Section(
        f"board-{board.name}",
        title,
        board.source,
        [answer_of(board)],
        failing,
        figures,
        [boards.table(board)],
    )


def answer_of(board: Board) -> str:
    """Return in words what is best on a board, what is tied with it, and which of these is cheapest."""
    where = board.title
    said = f"{where}: "
    if board.ahead:
        top = board.ahead[0]
        said += f"{top.label} is best with {boards.figure(board, top)} % {board.heading}, as {RECORDED}"
    if not board.summaries:
        return f"{said}{_as_good(board)}."
    said += "; of what was run here " if board.ahead else ""
    best = board.best
    if board.tests.best is None:
        return f"{said}nothing is compared, for no two methods ran the same seed."
    value = boards.figure(board, best)
    if shared := on_seeds(board.summaries, board.metric):
        value = f"{scale(board.metric) * mean_over(best, board.metric, board.tests.seeds):.2f}"
    said += f"{best.label} is best{shared and f'{shared},'} with {value} % {board.heading}"
    if len(board.summaries) == 1:
        return f"{said}; nothing else was run to compare it with. Run another: {board.another}"
    if board.tied:
        said += f"; tied with it: {', '.join(s.label for s in board.tied)}"
    elif board.p_values:
        said += f", significantly ahead of {the_others(board.tests)}{' run here' if board.recorded else ''}"
    if cheapest := board.cheapest:
        same = (
            "also the cheapest of these" if cheapest is best else f"the cheapest of these is {cheapest.label}"
        )
        said += f"; {'it is ' if cheapest is best else ''}{same} ({cheapest.seconds:.1f} s)"
    if others := higher(board.summaries, board.metric):
        said += f"; {others}"
    return f"{said}."


def _by_ranks(found: Sequence[Board]) -> list[str]:
    """Answer for many boards at once: average ranks where there are some, and what is best on how many boards."""
    lines = []
    for protocol, ranking in ranks.rankings(found).items():
        order = sorted(zip(ranking.average_ranks, ranking.methods, strict=True))
        listed = ", ".join(f"{method} ({rank:.2f})" for rank, method in order[:3])
        lines.append(
            f"{protocol} protocol, over {', '.join(ranking.datasets)}: best on average are {listed} (average ranks)."
        )
    count = Counter(
        line.summary.label
        for board in found
        for line in board.lines
        if line.source == LOCAL and line.mark in ("best", "tied")
    )
    if behind := sum(bool(board.ahead) for board in found):
        lines.append(
            f"On {behind} of {counted(len(found), 'board')} a recorded method is better than all that was run here."
        )
    listed = ", ".join(f"{label} on {n}" for label, n in count.most_common(3))
    if listed:
        n_uneven = sum(bool(on_seeds(board.summaries, board.metric)) for board in found)
        uneven = f" (on {n_uneven} of them judged on the seeds in common)" if n_uneven else ""
        lines.append(f"Best or tied with the best, of {counted(len(found), 'board')}{uneven}: {listed}.")
    for board in found:
        if others := higher(board.summaries, board.metric):
            lines.append(f"Better than the best of {board.title}: {others}.")
    return lines


def _as_good(board: Board) -> str:
    """Say which recorded methods are as good as the best recorded one, or nearly so."""
    _, *others = board.lines
    equal = [line.summary.label for line in others if line.mark == "best"]
    near, tied = (
        [line.summary.label for line in others if line.mark == mark] for mark in (boards.MEETS, boards.TIED)
    )
    said = f"; as good: {', '.join(equal)}" if equal else ""
    said += f"; tied with it: {', '.join(tied)}" if tied else ""
    said += f"; intervals that meet its: {', '.join(near)}" if near else ""
    return said if others else " (the only one)"


def _sure(evidence: Evidence, found: Sequence[Board], *, with_all: bool) -> Chapter:
    sections = []
    rankings = ranks.rankings(found)
    for protocol, ranking in rankings.items():
        title = f"Over data sets, {protocol} protocol"
        figure = charts.ranks(ranking, f"fig-ranks-{protocol}", title)
        name = f"over-data-sets-{protocol}"
        sections.append(
            Section(name, title, LOCAL, figures=[figure], tables=[ranks.rank_table(protocol, ranking)])
        )
    by_class = [table for board in found if (table := classes.table(evidence, board))]
    if by_class:
        lines = ["Where the best method of each board differs from the next, class by class."]
        sections.append(Section("classes", "Class by class", LOCAL, lines, tables=by_class))
    if judged := [one for board in found if (one := probabilities.table(evidence, board))]:
        sections.append(Section("probabilities", probabilities.QUESTION, LOCAL, tables=judged))
    if of_probes := probes.interactions(evidence.home, evidence.rows):
        lines = [probes.answer(of_probes)]
        sections.append(Section("probes", probes.QUESTION, LOCAL, lines, tables=[probes.table(of_probes)]))
    if with_all and (kept := probes.read()):
        tables = [probes.table(kept, RECORDED)]
        sections.append(
            Section("probes-recorded", probes.QUESTION, RECORDED, [probes.answer(kept)], tables=tables)
        )
    return Chapter("sure", "How sure is that?", _how_sure(found), _explained(found), sections)


def _how_sure(found: Sequence[Board]) -> list[str]:
    compared = [board for board in found if len(board.summaries) > 1]
    if not compared:
        return ["Nothing has been compared here yet: a comparison needs two methods on one data set."]
    n_alone = sum(bool(board.p_values) and not board.tied and not board.tests.untested for board in compared)
    n_tied = sum(len(board.tied) for board in compared)
    over = spanned(summary.n_seeds for board in compared for summary in board.summaries)
    return [
        f"Comparisons (a data set under a protocol): {len(compared)}; those whose best method is significantly "
        f"ahead of every other: {n_alone}; methods statistically tied with a best one: {n_tied}. Figures are means "
        f"over {over} seed{'' if over == '1' else 's'}."
    ]


def _explained(found: Sequence[Board]) -> list[str]:
    if not found:
        return []
    over = {s.over.get(board.metric) for board in found for s in (*board.summaries, *board.recorded)} - {None}
    intervals = f"Figures have 95 % intervals, {in_words(over)}. " if over else ""
    return [
        "Methods are tested against the best of their board on the same test documents: the paired bootstrap, "
        f"Holm-corrected. {intervals}Where ties are many, take the cheapest."
    ]


def _costs(found: Sequence[Board], others: Sequence[Board], *, with_all: bool) -> Chapter:
    sections = []
    for board in found:
        if table := costs.table(board):
            figures = [f for kind in ("seconds", "peak_mb") if (f := charts.cost(board, kind))]
            title = board.title
            sections.append(Section(f"costs-of-{board.name}", title, LOCAL, figures=figures, tables=[table]))
    answer = []
    for board in found[:SEVERAL]:
        if line := _cost_answer(board):
            answer.append(line)
    if len(found) > SEVERAL:
        answer.append("The rest is in the chapter.")
    of_topical = topical.tables(known := [*found, *others])
    if of_topical or with_all:
        title = "Which topical method is worth its cost?"
        sections.append(Section("topical", title, lines=topical.answers(known), tables=of_topical))
    nothing = ["Nothing was timed here yet: run two methods on one data set (textbench run quick --timed)."]
    return Chapter("costs", "What does it cost?", answer or nothing, sections=sections)


def _cost_answer(board: Board) -> str | None:
    timed = [s for s in board.summaries if s.seconds is not None]
    if len(timed) < 2 or board.best.seconds is None:
        return None
    where = board.title
    if board.tests.best is None:
        return f"{where}: there is no best one, for no two methods ran the same seed."
    best = board.best
    near = [s for s in timed if abs(s.mean[board.metric] - best.mean[board.metric]) <= NEAR]
    quickest = min(near, key=lambda s: s.seconds or 0.0)
    here = " of those run here" if board.ahead else ""
    seeds = on_seeds(board.summaries, board.metric).partition(",")[0]
    said = f"{where}: the best{here}{seeds}, {best.label}, took {best.seconds:.1f} s per seed"
    said += f" and {best.peak_mb or 0:,.0f} MB"
    if others := higher(board.summaries, board.metric):
        said += f" ({others})"
    if quickest is best:
        return f"{said}; nothing within {100 * NEAR:.0f} points of it was quicker."
    figure = boards.figure(board, quickest)
    return (
        f"{said}; of what is within {100 * NEAR:.0f} points of it the quickest is {quickest.label}: "
        f"{quickest.seconds:.1f} s "
        f"for {figure} % {board.heading}."
    )


def _papers(entries: Sequence[LedgerEntry], remade: Sequence[exhibits.Shown]) -> Chapter:
    n_here, n_kept = (sum(bool(getattr(e, which)) for e in entries) for which in ("fresh", "recorded"))
    answer = totals(entries)
    lines = [f"{n_here} were measured in this results folder, {n_kept} are recorded in the repository."]
    sections = [
        Section(
            "verdict-counts",
            "Verdicts",
            points=headlines(entries),
            figures=[charts.verdicts(counts(entries))],
            tables=[papers.verdict_counts(entries)],
        )
    ]
    pictures = [
        charts.held(found, slug(f"fig-held-{'-'.join(place)}"), f"{', '.join(place)}: published and measured")
        for place, found in held(entries).items()
    ]
    if pictures:
        sections.append(Section("held", "Published beside measured", figures=pictures))
    sections += _exhibits(remade)
    origins = papers.origins(entries)
    sections.append(
        Section("ledger", "The ledger", tables=[papers.ledger(entries), *[origins] * bool(origins.rows)])
    )
    return Chapter("papers", "What did the papers claim?", answer, lines, sections)


def _remade(remade: Sequence[exhibits.Shown]) -> Chapter:
    """Return what the suites run here show, in place of the ledger of claims."""
    suites = ", ".join(one.suite for one in remade)
    answer = [
        f"Figures and tables of the suites run here ({suites}), remade. All claims: textbench report --claims"
    ]
    return Chapter(
        "papers", "What do the papers' figures look like here?", answer, sections=_exhibits(remade)
    )


def _exhibits(remade: Sequence[exhibits.Shown]) -> list[Section]:
    return [
        Section(f"exhibits-{one.suite}", one.title, LOCAL, figures=one.figures, tables=one.tables)
        for one in remade
    ]


def _made(
    evidence: Evidence,
    boards_here: Sequence[Board],
    entries: Sequence[LedgerEntry] | None,
    searched: Sequence[search.Run],
) -> Chapter:
    found, kept = audits.known(evidence, others=entries is not None), _kept(boards_here, entries)
    n_local, n_kept = len(evidence.rows) + len(evidence.budgets), sum(len(table.rows) for table in kept)
    sections = []
    if found:
        sections.append(Section("data-sets", "The data sets, audited", tables=[audits.overview(found)]))
        sections += [
            Section(
                slug(f"audit-{name}"),
                name,
                one["source"],
                points=audits.in_words(one),
                tables=[audits.ceilings(name, one)],
            )
            for name, one in found.items()
        ]
    if n_local:
        sections.append(Section("local-numbers", "Local numbers", LOCAL, tables=[provenance.local(evidence)]))
    if searched:
        sections.append(Section("search-numbers", "Numbers of search", LOCAL, tables=[search.made(searched)]))
    if kept:
        sections.append(Section("recorded-numbers", "Recorded numbers", RECORDED, tables=kept))
    rankings = f"{counted(len(searched), 'ranking')}, " if searched else ""
    answer = [
        f"{counted(n_local, 'local run')}, {rankings}{counted(n_kept, 'recorded figure')}, "
        f"{counted(len(found), 'data set')} audited: for each, protocol, "
        "seeds, settings, versions, sha256 of the data, and the command that makes it again."
    ]
    return Chapter("made", "How was each number made?", answer, sections=sections)


def _kept(boards_here: Sequence[Board], entries: Sequence[LedgerEntry] | None) -> list[Table]:
    """Return how the recorded numbers of a report were made: all with the claims, else those of its leaderboards."""
    if entries is not None:
        tables = [provenance.recorded(entries), recorded.made(None)]
    else:
        tables = [recorded.made({(b.published, b.protocol) for b in boards_here if b.recorded})]
    return [table for table in tables if table.rows]
