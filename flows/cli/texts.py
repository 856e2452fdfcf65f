"""`textbench texts`: the documents of a data set as one table, to be embedded or classified elsewhere."""

from pathlib import Path
from typing import Annotated, Any

import typer

from textbench.flows.cli.options import DataDir, one_data_set, own_options, takes
from textbench.flows.cli.output import check_file
from textbench.flows.cli.runner import use_data_dir
from textbench.flows.cli.voice import note, wrote

TABLES = (".parquet", ".csv")


@takes(own=own_options)
def texts(
    own: dict[str, Any] | None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", "-d", help="A data set.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="The file to write, .parquet or .csv.", show_default="NAME.parquet"),
    ] = None,
    names: Annotated[
        bool,
        typer.Option(
            "--names",
            help="A column with the source's names too. They may tell the label, such as grain/1.txt.",
        ),
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Write ids and texts of every document, training documents first: to embed or to classify them elsewhere.

    Columns: id (train-0, ..., test-0, ...), part and text. Labels stay here, and so do names unless --names asks.

    Example: textbench texts -d 20ng -o texts.parquet
    """
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    from textbench.flows.plan.cell import plan
    from textbench.flows.plan.request import Request
    from textbench.flows.run.preflight import require_data
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.corpus import read_ids
    from textbench.tasks.sources.given_files import PARTS, ids_of
    from textbench.tasks.storage.files import whole
    from textbench.tasks.storage.store import Store

    name = one_data_set(dataset, own)
    use_data_dir(data_dir)
    home = home_folder()
    cells = plan(Request([name] if name else [], ["majority"], own=own))
    path = out or Path(f"{cells[0].dataset}.parquet")
    check_file("--out", path, TABLES)
    require_data(home, cells, say=note)
    corpus = Store(home / "store").open(cells[0].references["ingest"])
    tables = []
    for part in PARTS:
        ids, named = ids_of(corpus, part), read_ids(corpus, part) if names else None
        columns = {
            "id": ids,
            "part": [part] * len(ids),
            "text": corpus.table(part, ["text"])["text"].to_pylist(),
        }
        tables.append(pyarrow.table(columns | ({} if named is None else {"name": named})))
    table = pyarrow.concat_tables(tables)
    with whole(path) as unfinished:
        if path.suffix.lower() == ".csv":
            pyarrow.csv.write_csv(table, unfinished)
        else:
            pyarrow.parquet.write_table(table, unfinished)
    wrote(path)
