"""Results as objects: rows as they were recorded, tables as pandas has them, and what a notebook or terminal shows."""

import html
import io
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.explain.errors import ErrorList
from textbench.flows.plan.corpora import keep_numbers, told_apart
from textbench.flows.referee.held import headlines, totals
from textbench.flows.referee.ledger import LedgerEntry
from textbench.flows.referee.measurement import Measurement
from textbench.flows.results import ensembles, learning_curves
from textbench.flows.results.comparison import PairedTest, Ranking, in_words, pairs_table
from textbench.flows.results.doubt import with_doubt
from textbench.flows.results.ensembles import Ensembles
from textbench.flows.results.index import Index
from textbench.flows.results.leaderboard import IN_BOLD, MARKED, boards, figures
from textbench.flows.results.ranking_tables import ranking_tables
from textbench.flows.results.rankings import RankingCell
from textbench.flows.results.summary import summarise
from textbench.flows.results.winner import verdicts
from textbench.flows.tables.formats import to_html
from textbench.flows.tables.table import Datum, Table, of_texts
from textbench.flows.tables.terminal import print_table
from textbench.tasks import InputError
from textbench.tasks.storage.store import Store
from textbench.tasks.words import counted

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.text import Text

Row = Mapping[str, Any]
FAILED = ("dataset", "method", "protocol", "seed", "error")
MANY = 12  # claims, from which on reasons are summed up
STYLES = {
    "reproduced": "green",
    "better than published": "green",
    "not reproduced": "red",
    "impossible": "red",
    "suspect": "yellow",
}


class Displayed(ABC):
    """What shows itself in a notebook and on a terminal: tables, and sentences below them."""

    @abstractmethod
    def tables(self, *, is_terminal: bool) -> list[Table]:
        """Return what is shown as tables, for a terminal or for a page."""

    @property
    @abstractmethod
    def verdict(self) -> str:
        """What the figures say, in words: a line for each of what they say, "" where there is nothing to say."""

    def print(self, console: "Console") -> None:
        """Print the tables and the sentences."""
        for table in self.tables(is_terminal=True):
            print_table(console, table)
        for line in self.lines:
            console.print(f"\n{line}", markup=False, highlight=False)

    @property
    def lines(self) -> list[str]:
        """What stands below the tables."""
        return self.verdict.splitlines()

    def _repr_html_(self) -> str:
        tables = "".join(to_html(table) for table in self.tables(is_terminal=False))
        return tables + "".join(f"<p>{html.escape(line)}</p>" for line in self.lines)

    def __repr__(self) -> str:
        return self._printed(is_terminal=False)

    def __rich__(self) -> "Text":
        from rich.text import Text

        return Text.from_ansi(self._printed(is_terminal=True))

    def _printed(self, *, is_terminal: bool) -> str:
        from rich.console import Console

        console = Console(file=io.StringIO(), force_terminal=is_terminal, force_jupyter=False)
        with console.capture() as said:
            self.print(console)
        return said.get().strip("\n")


@dataclass(frozen=True, repr=False)
class _OfRows(Displayed):
    """Results of a results folder: `rows`, one a cell, as commands print them with `--json`.

    `metric` is the one that ranks, None for accuracy, or micro-F1 where documents have several labels.
    """

    home: Path
    rows: Sequence[Row]
    metric: str | None = None

    def errors(self) -> "pd.DataFrame":
        """Return the cells that failed, and why; no row where none did."""
        return _failed(self.rows)

    @cached_property
    def _told(self) -> list[dict[str, Any]]:
        """The rows under names of data sets that no other documents have."""
        every = Index(self.home).rows()
        keep_numbers(self.home, every)
        return told_apart(self.home, self.rows, among=every)


def _failed(rows: Sequence[Row]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame([row for row in rows if row["error"]], columns=[*FAILED])


class Results(_OfRows):
    """What a sweep found."""

    def table(self, metric: str | None = None) -> "pd.DataFrame":
        """Return a row for each method on each data set, best first: metrics (fractions) are means over seeds.

        `<metric>_95` is half its 95 % interval, and `<metric>_95_over` says over what, seeds or documents.
        """
        import pandas as pd

        table = figures(self._doubted, metric or self.metric, self.home)
        rows = [[datum.value for datum in row] for row in table.rows]
        found = pd.DataFrame(rows, columns=[name for name, _ in table.headings])
        return found.dropna(axis="columns", how="all").astype({"is_best": bool})

    @property
    def best(self) -> dict[str, str]:
        """The best method on each data set; what is tied with it, `verdict` says."""
        found = summarise(self._doubted, self.metric)
        return {s.dataset: s.label for s in reversed(found) if s.is_best}

    @cached_property
    def verdict(self) -> str:
        """For each data set a line: what is best, what is statistically tied with it, and what of these is cheap."""
        return "\n".join(verdicts(self.home, self._doubted, self.metric))

    def tables(self, *, is_terminal: bool) -> list[Table]:
        """Return a leaderboard for each data set, in percent."""
        return boards(self._doubted, self.metric, MARKED if is_terminal else IN_BOLD, self.home)

    @cached_property
    def _doubted(self) -> list[dict[str, Any]]:
        return with_doubt(self.home, self._told)


class Curves(_OfRows):
    """Label-budget curves: how good methods are with few labels."""

    @cached_property
    def curves(self) -> list[learning_curves.Curve]:
        """The curve of each method on each data set."""
        return learning_curves.summarise(self._told, self.metric)

    def table(self) -> "pd.DataFrame":
        """Return a row for each budget of each method: the mean over draws and its 95 % interval, fractions."""
        import pandas as pd

        names = ["dataset", "method", "metric", "budget", "mean", "low", "high"]
        rows = [
            {"dataset": one.dataset, "method": one.method, "metric": one.metric} | asdict(point)
            for one in self.curves
            for point in one.points
        ]
        return pd.DataFrame(rows, columns=names)

    @cached_property
    def verdict(self) -> str:
        """For each data set a line: who is best from which to which budget, and who is tied with it."""
        return "\n".join(learning_curves.verdicts(self._told, self.metric))

    def tables(self, *, is_terminal: bool) -> list[Table]:
        """Return a table for each data set, a line a budget and a column a method; below the last what failed."""
        failures = [
            f"{r['dataset']} {r['method']} {r['labels']}: {r['error']}" for r in self.rows if r["error"]
        ]
        *first, last = learning_curves.curve_tables(self.curves) or [Table("curves", "", [], [])]
        return [*first, replace(last, failures=failures)]

    def draw(self, path: Path) -> list[Path]:
        """Draw the curves to a file (.svg, .png or .pdf), of several data sets to a file each; return which."""
        from textbench.flows.plots.curves import draw

        names = list(dict.fromkeys(curve.dataset for curve in self.curves))
        paths = [path if len(names) == 1 else path.with_stem(f"{path.stem}-{name}") for name in names]
        for name, place in zip(names, paths, strict=True):
            draw([curve for curve in self.curves if curve.dataset == name], place)
        return paths


@dataclass(frozen=True, repr=False)
class PairedTests(Displayed):
    """Finished runs in pairs, by data set, and how methods rank over data sets, None where that is not asked."""

    pairs: Mapping[str, Sequence[PairedTest]]
    ranking: Ranking | None

    def table(self) -> "pd.DataFrame":
        """Return a row for each pair; `difference` is first minus second, with its 95 % interval and corrected p."""
        import pandas as pd

        rows = []
        for pair in (pair for of_dataset in self.pairs.values() for pair in of_dataset):
            gap, test = pair.difference, pair.mcnemar
            found = {name: value for name, value in vars(pair).items() if name not in ("mcnemar", "seeds")}
            found |= {"difference": gap.value, "low": gap.low, "high": gap.high}
            rows.append(found | {"first_only": test.first_only, "second_only": test.second_only})
        return pd.DataFrame(rows)

    @property
    def verdict(self) -> str:
        """How methods rank over two data sets or more, "" over one."""
        return in_words(self.ranking) if self.ranking else ""

    def tables(self, *, is_terminal: bool) -> list[Table]:
        """Return the pairs of each data set; significant ones are marked."""
        return [pairs_table(name, compared) for name, compared in self.pairs.items()]

    def draw(self, path: Path) -> None:
        """Draw average ranks over data sets to a file (.svg, .png or .pdf). Raises InputError where there are none."""
        from textbench.flows.plots.ranks import draw

        if self.ranking is None:
            raise InputError("average ranks need the same methods on two data sets or more")
        draw(self.ranking, path)


@dataclass(frozen=True, repr=False)
class Rankings(Displayed):
    """How rankers order the documents of collections: a cell for each ranker and seed, and its row."""

    home: Path
    cells: Sequence[RankingCell]
    rows: Sequence[Row]

    def table(self) -> "pd.DataFrame":
        """Return a row for each ranker on each collection and seed: its measures, means over queries, fractions."""
        import pandas as pd

        named = ({"collection": row["dataset"], "ranker": row["method"]} for row in self.rows)
        rows = [
            about | {"seed": row["seed"]} | row["metrics"] | {"seconds": sum(row["seconds"].values())}
            for about, row in zip(named, self.rows, strict=True)
            if row["error"] is None
        ]
        return pd.DataFrame(rows)

    def errors(self) -> "pd.DataFrame":
        """Return the cells that failed, and why; no row where none did."""
        return _failed(self.rows)

    @property
    def verdict(self) -> str:
        """Nothing: the tables tell which rankers tests tell apart."""
        return ""

    def tables(self, *, is_terminal: bool) -> list[Table]:
        """Return a table for each collection, best first, with the paired tests against the best."""
        return ranking_tables(self.cells, self.rows, (), Store(self.home / "store"))


@dataclass(frozen=True, repr=False)
class Verdicts(Displayed):
    """Published figures beside measured ones, and by rule whether each holds: the ledger's entries, in order."""

    entries: Sequence[LedgerEntry]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[LedgerEntry]:
        return iter(self.entries)

    def table(self) -> "pd.DataFrame":
        """Return a row for each claim, figures in the paper's unit; none where it printed or we measured none.

        `value` is of this results folder, else of the repository's record, as `is_recorded` says. What is judged is
        `compared`, that figure or a ratio; `low` and `high` are the interval of our own figure.
        """
        import pandas as pd

        return pd.DataFrame([_flat(entry) for entry in self.entries])

    @property
    def verdict(self) -> str:
        """How many figures and sentences got which verdict, and apart from them how many rates of classes."""
        return " ".join(totals(self.entries))

    def tables(self, *, is_terminal: bool) -> list[Table]:
        """Return one table, with a section for each place of a paper, and below it the reasons."""
        headings = ("claim", "published", "measured", "recorded", "verdict")
        rows: list[list[str | Datum]] = []
        for place in dict.fromkeys(_place(entry.claim.id) for entry in self.entries):
            rows.append([Datum(place, style="bold"), *[""] * 4])
            for entry in (one for one in self.entries if _place(one.claim.id) == place):
                printed = entry.claim.text if entry.claim.printed else "order"
                verdict = Datum(entry.verdict.kind, style=STYLES.get(entry.verdict.kind, ""))
                name = Datum(f"  {entry.claim.id[len(place) + 1 :]}")
                figures = [_figure(one, entry) for one in (entry.fresh, entry.recorded)]
                rows.append([name, printed, *figures, verdict])
        return [of_texts("", headings, rows, left=["verdict"])]

    @property
    def lines(self) -> list[str]:
        """The reasons, and the summary."""
        return [*self.reasons, *self.summary]

    @property
    def summary(self) -> list[str]:
        """What became of each paper's headline figures, how many claims got which verdict, and what is to be redone."""
        n_changed = sum(entry.is_of_changed_tree for entry in self)
        changed = f"{counted(n_changed, 'figure')} recorded of a changed tree: to be recorded again."
        return [*headlines(self.entries), *totals(self.entries), *([changed] if n_changed else [])]

    @property
    def reasons(self) -> list[str]:
        """Why each verdict is what it is; of many claims the reasons that several have."""
        if len(self) <= MANY:
            return [f"{one.claim.id}: {one.verdict.kind}, {one.verdict.reason}" for one in self]
        found = Counter((entry.verdict.kind, entry.verdict.reason) for entry in self)
        return [f"{n} {kind}: {reason}" for (kind, reason), n in found.most_common() if n > 1]

    def print(self, console: "Console") -> None:
        """Print the table, the reasons, and the summary."""
        from rich.text import Text

        for table in self.tables(is_terminal=True):
            print_table(console, table)
        console.print()
        for reason in self.reasons:
            console.print(Text(reason, style="dim" if len(self) > MANY else ""))
        for line in self.summary:
            console.print(Text(line))


def _flat(entry: LedgerEntry) -> dict[str, Any]:
    """Return an entry as a row of figures and words."""
    claim, measured = entry.claim, entry.measured
    return {
        "id": claim.id,
        "published": claim.printed.value if claim.printed else None,
        **{name: getattr(measured, name, None) for name in ("value", "compared", "low", "high")},
        "unit": claim.unit,
        "verdict": entry.verdict.kind,
        "reason": entry.verdict.reason,
        "is_recorded": measured is not None and entry.fresh is None,
    }


def _place(id_: str) -> str:
    """Return the paper and the place of a claim, the first two parts of its id."""
    return "/".join(id_.split("/")[:2])


def _figure(found: Measurement | None, entry: LedgerEntry) -> str:
    """Return a measured figure, a ratio that is judged instead, and of what is judged where the paper's may lie."""
    if found is None:
        return "-"
    if found.comparisons:
        return counted(len(found.comparisons), "pair")
    places = max(2, len(entry.claim.text.partition(".")[2]))
    allowed = entry.verdict.allowed if found is entry.measured else None
    ends = (
        f" [{allowed.low:.{places}f}, {allowed.high:.{places}f}]"
        if allowed and allowed.half_width > 0
        else ""
    )
    ratio = f" ({found.compared:.2f} times)" if found.compared not in (None, found.value) else ""
    return f"{found.value:.{places}f}{ratio}{ends}"


@dataclass(frozen=True, repr=False)
class EnsembleResults(Displayed):
    """Ensembles of finished runs on a data set: `found` holds the figures, in fractions."""

    found: Ensembles

    def table(self) -> "pd.DataFrame":
        """Return a row for each way to weigh the members: its figures, and the test against the best member."""
        import pandas as pd

        return pd.DataFrame(ensembles.as_json(self.found)["ensembles"])

    def members(self) -> "pd.DataFrame":
        """Return a row for each member: its weights, its figures, and that of the ensemble without it."""
        import pandas as pd

        return pd.json_normalize(ensembles.as_json(self.found)["members"], sep="_")

    def tables(self, *, is_terminal: bool) -> list[Table]:
        """Return both as tables."""
        return ensembles.tables(self.found)

    @property
    def verdict(self) -> str:
        """Whether the ensemble is better than its best member, by more than chance."""
        return self.found.verdict


@dataclass(frozen=True, repr=False)
class ErrorResults(Displayed):
    """The errors of one or two runs: of `found` at most `top` documents are shown, their texts only where asked for."""

    found: ErrorList
    top: int
    with_texts: bool = False

    def table(self, top: int | None = None) -> "pd.DataFrame":
        """Return a row for each chosen document, at most `top` of them, evenly from all: its label and the answers.

        `right` names the run that is right, `nearest_cosine` is that with the training document nearest by rarer terms,
        `nearest_train` that document's number where it is nearly the same.
        """
        import pandas as pd

        return pd.DataFrame(self.found.records(top, with_texts=self.with_texts))

    def confusion(self, run: int = 0) -> "pd.DataFrame":
        """Return the confusion matrix of the first run, or the second (1): rows are labels, columns answers."""
        import pandas as pd

        names = list(self.found.classes)
        return pd.DataFrame(self.found.confusions[run], index=names, columns=names)

    def tables(self, *, is_terminal: bool) -> list[Table]:
        """Return the documents, and what each run confuses most often; for a page its confusion matrix too."""
        runs = range(len(self.found.names))
        documents = self.found.documents(self.top, with_texts=self.with_texts)
        matrices = [] if is_terminal else [self.found.matrix(i) for i in runs]
        return [documents, *(self.found.confused(i, 5) for i in runs), *filter(None, matrices)]

    @property
    def verdict(self) -> str:
        """How many documents each run gets wrong, and how many of these alone."""
        return self.found.answer
