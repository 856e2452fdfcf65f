"""Chapter one, for search: what the rankers reached on collections with judged queries."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from textbench.evaluation.statistics.intervals import mean_interval
from textbench.flows.plan.base_cell import made_by
from textbench.flows.report.evidence import Evidence, _json
from textbench.flows.report.provenance import SHORT, digests
from textbench.flows.results.method_names import explained, in_groups, marked_ranker
from textbench.flows.results.ranking_tables import HEADINGS
from textbench.flows.results.rankings import with_digest
from textbench.flows.results.summary import asked_at, left_out, made_alike
from textbench.flows.tables.table import LOCAL, Datum, Table, code, number
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.words import counted

Run = Mapping[str, Any]
SHOWN = ("map", "precision_at_10", "ndcg_at_10", "reciprocal_rank")


def found(evidence: Evidence) -> list[dict[str, Any]]:
    """Return the finished retrieval runs of a report: none in that of some sweeps."""
    return [] if evidence.sweeps else runs(evidence.home)


def runs(home: Path) -> list[dict[str, Any]]:
    """Return the finished retrieval runs: collection, ranker, settings, measures, and how each was made."""
    found = []
    for path in sorted((home / "retrieval").glob("*.json")):
        record, meta = _json(path), _json(home / "store" / "retrieve" / path.stem / "meta.json")
        if record and meta:
            recipe = meta["recipe"]
            params, reference = recipe["params"], Reference.from_json(recipe["inputs"]["corpus"])
            corpus = _json(home / "store" / reference.stage / reference.key / "corpus.json") or {}
            own = reference.params.get("own")
            found.append({
                "collection": f"own-{reference.params['dataset']}" if own else reference.params["dataset"],
                "own": own, "digest": reference.params.get("digest", ""),
                "ranker": params["method"], "seed": params["seed"], "trials": params["trials"],
                "judgments": params["judgments"], "measures": record["metrics"], "created": asked_at(record),
                "key": path.stem, "run_id": record["run_id"], "libraries": recipe["libraries"],
                "n_folds": params["n_folds"], "sha256": corpus.get("sha256", {}),
                "rule": (record.get("params") or {}).get("rule", ""),
                "made_by": made_by(Reference.from_json(recipe)),
            })  # fmt: skip
    return _labelled(_newest(_told_apart(found)))


def _told_apart(found: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Give the user's collections names: the newest of those of one content, with its sha256 where others have it."""
    latest = {run["digest"]: run["collection"] for run in sorted(found, key=lambda run: run["created"])}
    contents: dict[str, set[str]] = {}
    for run in found:
        run["collection"] = latest[run["digest"]] if run["own"] else run["collection"]
        contents.setdefault(run["collection"], set()).add(run["digest"])
    for run in found:
        if len(contents[run["collection"]]) > 1:
            run["collection"] = with_digest(run["collection"], run["digest"])
    return found


def _newest(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the newest run of each place and seed, of those that were made as the newest of their place."""
    alike = made_alike(found, lambda run: (_place(run), _asked(run)))
    newest = {(_place(run), _asked(run), run["seed"]): run for run in sorted(alike, key=asked_at)}
    return [dict(run) for run in newest.values()]


def _place(run: Run) -> tuple[str, str, int, str]:
    return run["collection"], run["ranker"], run["trials"], run["judgments"]


def _asked(run: Run) -> tuple[str, ...]:
    """Return in words what else was asked for: the token rule, and where something was tuned the folds."""
    words = [f"rule {run['rule']}" if run["rule"] else "", f"{run['n_folds']} folds" if run["trials"] else ""]
    return tuple(filter(None, words))


def _labelled(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give each run a `label`: its ranker with its marks, and where others of it were asked for otherwise, how."""
    shared: dict[tuple[str, str, int, str], set[str]] = {}
    for run in found:
        shared.setdefault(_place(run), {*_asked(run)}).intersection_update(_asked(run))
    for run in found:
        apart = ", ".join(word for word in _asked(run) if word not in shared[_place(run)])
        run["label"] = marked_ranker(run["ranker"]) + (f" ({apart})" if apart else "")
    return list(found)


Members = Mapping[tuple[str, int], Sequence[Run]]


def _groups(found: Sequence[Run]) -> dict[tuple[str, str], Members]:
    """Return the runs by collection and policy of judgments, of each by ranker and trials."""
    groups: dict[tuple[str, str], dict[tuple[str, int], list[Run]]] = {}
    for run in found:
        members = groups.setdefault((run["collection"], run["judgments"]), {})
        members.setdefault((run["label"], run["trials"]), []).append(run)
    return dict(groups)


def tables(found: Sequence[Run]) -> list[Table]:
    """Return a table a collection and policy of judgments, best mean average precision first."""
    return [_table(*group, members) for group, members in _groups(found).items()]


def answers(found: Sequence[Run]) -> list[str]:
    """Return in words which ranker has the highest mean average precision on each collection."""
    lines = []
    for (collection, judgments), members in _groups(found).items():
        means = {
            ranker: mean_interval([run["measures"]["map"] for run in own])[0]
            for ranker, own in members.items()
        }
        best = max(means, key=lambda ranker: means[ranker])
        tuned = f" ({best[1]} settings)" if best[1] else ""
        lines.append(
            f"Search in {collection}, {judgments} judgments: {best[0]}{tuned} has the highest mean average precision "
            f"of {counted(len(means), 'ranker')}, {100 * means[best]:.2f} %. Paired tests: textbench retrieve."
        )
    return lines


def _table(collection: str, judgments: str, members: Members) -> Table:
    lines = []
    for (ranker, trials), own in members.items():
        means = {name: mean_interval([run["measures"][name] for run in own]) for name in SHOWN}
        lines.append((ranker, trials, own, means))
    lines.sort(key=lambda line: -line[3]["map"][0])
    rows = [
        [
            Datum(ranker, mark="best" if place == 0 else "", is_strong=place == 0),
            Datum(f"{trials} settings" if trials else "as published", trials),
            number(means["map"][0], scale=100),
            number(means["map"][1], scale=100),
            *(number(means[name][0], scale=100) for name in SHOWN[1:]),
            Datum(str(len(own)), len(own)),
        ]
        for place, (ranker, trials, own, means) in enumerate(lines)
    ]
    headings = [
        ("ranker", "ranker"), ("trials", "tuned over"), ("map", "MAP, %"), ("map_95", "±"),
        *((name, f"{HEADINGS[name]}, %") for name in SHOWN[1:]), ("seeds", "seeds"),
    ]  # fmt: skip
    note = f"Judgments: {judgments}. Means over queries; the interval is over seeds. Paired tests: textbench retrieve."
    note += f" {left_out({ranker: own[0].get('n_otherwise', 0) for ranker, _, own, _ in lines})}".rstrip()
    note += explained(row[0].text for row in rows)
    name = f"search-{collection}-{judgments}"
    return in_groups(Table(name, f"Search in {collection}", headings, rows, note, LOCAL))


def _source(run: Mapping[str, Any]) -> list[str]:
    """Return the options that name a run's collection."""
    if run["own"] is None:
        return [f"--collection {shlex.quote(run['collection'])}"]
    # A report is handed on: it says what the reader's own files are called, not where they are.
    own = {name: PurePath(run["own"][name]).name for name in ("documents", "queries", "qrels")}
    own = dict(run["own"]) | own | {"fields": ",".join(run["own"]["fields"])}
    options = {"format" if name == "kind" else name: value for name, value in own.items()}
    return [f"--{name} {shlex.quote(value)}" for name, value in options.items()]


def made(found: Sequence[Mapping[str, Any]]) -> Table:
    """Return how each retrieval run was made."""
    rows = []
    for run in sorted(found, key=lambda run: (run["collection"], run["ranker"], run["seed"])):
        trials = int(run["trials"])
        protocol = f"honest, {trials} settings in {run['n_folds']} folds" if trials else "nothing tuned"
        options = [
            *_source(run),
            f"--method {shlex.quote(run['ranker'])}",
            f"--judgments {run['judgments']}",
        ]
        options += [f"--rule {run['rule']}"] if run["rule"] else []
        options += [f"--trials {trials}", f"--folds {run['n_folds']}", f"--seeds {run['seed'] + 1}"]
        rows.append([
            Datum(run["collection"]), Datum(run["ranker"]), Datum(protocol), Datum(str(run["seed"]), run["seed"]),
            Datum(run["judgments"]), digests(run["sha256"]),
            Datum(", ".join(f"{name} {version}" for name, version in run["libraries"].items())),
            code(" ".join(["textbench retrieve", *options])), Datum(run["key"][:SHORT], run["key"], is_code=True),
        ])  # fmt: skip
    headings = [
        ("collection", "collection"), ("ranker", "ranker"), ("protocol", "protocol"), ("seed", "seed"),
        ("judgments", "judgments"), ("sha256", "sha256 of the data"), ("versions", "versions"),
        ("command", "command"), ("key", "key"),
    ]  # fmt: skip
    title = "How the numbers of search were made"
    return Table("made-search", title, headings, rows, "", LOCAL, is_folded=True)
