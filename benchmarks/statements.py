"""How fast statements without a view are answered, beside DuckDB on the same Lance tables.

DuckDB runs in the benchmark's own process and reads the tables' files through Lance, two threads
like the runner; a statement goes over HTTP, and unless Lance alone answers it, through a job on a
warm runner. Both are measured in turn, so the ratios bear a busy machine; the seconds do not.
"""

import os
import statistics
import sys
from pathlib import Path
from typing import Any

# Lance warns of operations that are young; it reads this at import.
os.environ["LANCE_LOG"] = "error"

import duckdb
import lance
import msgspec
import numpy as np
import pyarrow as pa

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import penstock
from benchmarks import command, servers
from benchmarks.jobs import runner, timed
from benchmarks.progress import Progress
from benchmarks.report import align

STATEMENTS = {
    "filter, by Lance": "SELECT id, price FROM facts WHERE id >= 500000 AND id < 501000",
    "count, by Lance": "SELECT count(*) AS n FROM facts WHERE kind < 5000",
    "all rows, by Lance": "SELECT id, kind FROM facts",
    "aggregate": "SELECT count(*) AS n, avg(price) AS mean, max(id) AS top FROM facts",
    "groups": "SELECT kind, count(*) AS n, avg(price) AS mean FROM facts GROUP BY kind",
    "top ten": "SELECT id, price FROM facts ORDER BY price DESC, id LIMIT 10",
    "join": "SELECT k.label, sum(f.price) AS total FROM facts f JOIN kinds k ON f.kind = k.kind"
    " WHERE k.kind < 100 GROUP BY k.label ORDER BY k.label",
}


class Effort(msgspec.Struct, frozen=True):
    """How much is measured."""

    rows: int
    kinds: int
    rounds: int


FULL = Effort(1_000_000, 10_000, 5)
QUICK = Effort(100_000, 1_000, 2)


class Series(msgspec.Struct):
    """Seconds of one statement: the first time, and then in turn with DuckDB."""

    first: float = 0.0
    ours: list[float] = []
    duckdb: list[float] = []


class Figures(msgspec.Struct):
    """Everything that was measured."""

    load_average: float
    effort: Effort
    statements: dict[str, Series] = {}


def run(effort: Effort, folder: Path) -> Figures:
    """All statements on one server and one warm runner."""
    figures = Figures(os.getloadavg()[0], effort)
    with servers.penstock(folder / "data") as server:
        url = f"http://127.0.0.1:{server.port}"
        with runner(url, folder), penstock.connect(url) as lake:
            paths = make_tables(lake, effort)
            for name, sql in STATEMENTS.items():
                figures.statements[name] = measure(lake, paths, name, sql, effort.rounds)
    return figures


def make_tables(lake: penstock.Lake, effort: Effort) -> dict[str, str]:
    """The tables, and where their files are."""
    random = np.random.default_rng(18)
    lake.create_namespace("bench")
    facts = pa.table(
        {
            "id": pa.array(range(effort.rows), pa.int64()),
            "kind": pa.array(random.integers(0, effort.kinds, effort.rows), pa.int64()),
            "price": pa.array(random.random(effort.rows), pa.float64()),
        }
    )
    labels = [f"label {number % 50:02}" for number in range(effort.kinds)]
    kinds = pa.table({"kind": pa.array(range(effort.kinds), pa.int64()), "label": labels})
    made = {"facts": facts, "kinds": kinds}
    tables = {name: lake.create_table(f"bench.{name}", each) for name, each in made.items()}
    return {name: table.location() for name, table in tables.items()}


def measure(lake: penstock.Lake, paths: dict[str, str], name: str, sql: str, rounds: int) -> Series:
    found = Series()
    found.first = timed(lambda: ask_us(lake, sql))
    expect_same(ask_us(lake, sql), ask_duckdb(paths, sql))
    progress = Progress(name, rounds)
    for _ in range(rounds):
        found.duckdb.append(timed(lambda: ask_duckdb(paths, sql)))
        found.ours.append(timed(lambda: ask_us(lake, sql)))
        progress.step(f"{found.ours[-1]:.3f} s beside {found.duckdb[-1]:.3f} s")
    return found


def ask_us(lake: penstock.Lake, sql: str) -> pa.Table:
    return lake.sql(sql, namespace="bench").to_arrow()


def ask_duckdb(paths: dict[str, str], sql: str) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        for name, path in paths.items():
            connection.register(name, lance.dataset(path))
        found: Any = connection.sql(sql).to_arrow_table()
        return found


def expect_same(ours: pa.Table, theirs: pa.Table) -> None:
    if (ours.num_rows, ours.column_names) != (theirs.num_rows, theirs.column_names):
        raise RuntimeError(f"{ours.num_rows} rows beside DuckDB's {theirs.num_rows}")


def show(figures: Figures) -> str:
    rows = [["statement", "first", "median", "DuckDB", "ratio"]]
    for name, series in figures.statements.items():
        ours, theirs = statistics.median(series.ours), statistics.median(series.duckdb)
        rows.append(
            [
                name,
                f"{series.first:.3f} s",
                f"{ours:.3f} s",
                f"{theirs:.3f} s",
                f"{ours / theirs:.1f}",
            ]
        )
    head = f"{figures.effort.rows:,} rows, load average {figures.load_average:.1f}"
    return f"{head}\n\n{align(rows, range(1, 5))}"


if __name__ == "__main__":
    command.start(__doc__, FULL, QUICK, run, show)
