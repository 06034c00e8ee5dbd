"""The part about rows: inserts, queries, counts, bulk, and describe beside large queries."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import servers
from benchmarks.bulk import measure_bulk
from benchmarks.data_report import DataFigures
from benchmarks.load import Measured
from benchmarks.progress import Progress
from benchmarks.report import Sample
from benchmarks.tables import ALL_ROWS, BUSY_DESCRIBE, INSERT, OPERATIONS, Tables

CONNECTIONS = (1, 16)


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    seconds: float
    rows: int
    # By connections. Few, because each makes the next one slower on either server.
    inserts: dict[int, int]
    bulk_bytes: int


FULL = Effort(3, 1.5, 100_000, {1: 100, 16: 320}, 10**9)
QUICK = Effort(1, 0.5, 100_000, {1: 30, 16: 96}, 256 * 10**6)


def run(effort: Effort, folder: Path) -> DataFigures:
    """All phases, one after the other."""
    figures = DataFigures(effort.rows, effort.inserts, effort.bulk_bytes, os.getloadavg()[0])
    compare_servers(effort, folder, figures)
    progress = Progress("bulk", effort.rounds)
    for _ in range(effort.rounds):
        figures.bulk.append(measure_bulk(folder, effort.bulk_bytes))
        last = figures.bulk[-1]
        progress.step(f"in {last.write_seconds:.1f} s, out {last.read_seconds:.1f} s")
    return figures


def compare_servers(effort: Effort, folder: Path, figures: DataFigures) -> None:
    """Penstock and the reference in turn."""
    (folder / "rows-reference").mkdir()
    with (
        servers.penstock(folder / "rows-penstock") as ours,
        servers.reference(folder / "rows-reference") as theirs,
    ):
        progress = Progress("write and index", 2)
        both = []
        for server in (ours, theirs):
            both.append(Tables(server, effort.rows))
            progress.step(server.name)
        plan = list(_plan(effort))
        progress = Progress("compare rows", len(plan) * len(both))
        for round, operation, connections in plan:
            for tables in both:
                name = tables.server.name
                # What others left to write is not this measurement's to wait for.
                os.sync()
                for what, measured in _measure(tables, effort, operation, connections):
                    figures.samples.append(Sample(what, connections, name, round, measured))
                last = figures.samples[-1].measured
                progress.step(f"{operation} x{connections} {name} {last.rate:,.0f}/s")


def _measure(
    tables: Tables, effort: Effort, operation: str, connections: int
) -> list[tuple[str, Measured]]:
    if operation == INSERT:
        return [(operation, tables.insert(connections, effort.inserts[connections]))]
    if operation == BUSY_DESCRIBE:
        described, queried = tables.describe_while_busy(connections, effort.seconds)
        return [(ALL_ROWS, queried), (BUSY_DESCRIBE, described)]
    return [(operation, tables.run(operation, connections, effort.seconds))]


def _plan(effort: Effort) -> Iterator[tuple[int, str, int]]:
    for round in range(effort.rounds):
        for operation in (*OPERATIONS, BUSY_DESCRIBE):
            for connections in CONNECTIONS:
                yield round, operation, connections
