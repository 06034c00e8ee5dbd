"""Compare the server's speed with that of pylance's own server, in one run.

Both are asked for the same operations in turn; docs/explanation/benchmarks.md tells what is
measured. The part about the catalog is here, the one about rows in data.py.
"""

import argparse
import asyncio
import contextlib
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import msgspec

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import data, data_report, report, servers
from benchmarks.load import Job, measure
from benchmarks.progress import Progress
from benchmarks.report import Figures, Sample
from benchmarks.workload import DESCRIBE, LIST, OPERATIONS, Workload, seed, seeded_requests

CONNECTIONS = (1, 16)
PARTS = ("catalog", "data")


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    seconds: float
    tables: int
    many_tables: int
    starts: int


FULL = Effort(rounds=3, seconds=1.5, tables=1_000, many_tables=100_000, starts=5)
QUICK = Effort(rounds=1, seconds=0.4, tables=200, many_tables=10_000, starts=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run of about two minutes")
    parser.add_argument("--only", choices=PARTS, help="run one part of the two")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the raw figures there")
    parser.add_argument(
        "--folder", metavar="DIR", help="where the servers keep their files for the time being"
    )
    options = parser.parse_args()
    parts = [options.only] if options.only else PARTS
    figures: dict[str, Figures | data_report.DataFigures] = {}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", dir=options.folder) as name:
        folder = Path(name).resolve()
        if "catalog" in parts:
            found = run(QUICK if options.quick else FULL, folder)
            figures["catalog"] = found
            print(report.show(found), flush=True)
        if "data" in parts:
            rows = data.run(data.QUICK if options.quick else data.FULL, folder)
            figures["data"] = rows
            print(data_report.show(rows), flush=True)
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures)))


def run(effort: Effort, folder: Path) -> Figures:
    """All phases of the part about the catalog, one after the other."""
    figures = Figures(
        os.cpu_count() or 0,
        platform.python_version(),
        version("pylance"),
        effort.tables,
        effort.many_tables,
        os.getloadavg()[0],
    )
    measure_starts(effort, folder, figures)
    compare_servers(effort, folder, figures)
    compare_sizes(effort, folder, figures)
    return figures


def measure_starts(effort: Effort, folder: Path, figures: Figures) -> None:
    """Start on an empty folder, several times."""
    progress = Progress("start", effort.starts)
    for number in range(effort.starts):
        with servers.penstock(folder / f"start-{number}") as server:
            figures.start_seconds.append(server.start_seconds)
        progress.step(f"{server.start_seconds:.2f} s")


def compare_servers(effort: Effort, folder: Path, figures: Figures) -> None:
    """Penstock and the reference in turn; then Penstock and the ceiling in turn."""
    (folder / "reference").mkdir()
    with (
        servers.penstock(folder / "penstock") as ours,
        servers.reference(folder / "reference") as theirs,
    ):
        figures.reference_start_seconds = theirs.start_seconds
        progress = Progress("declare tables", 2)
        workloads = []
        for server in (ours, theirs):
            workloads.append(Workload(server, effort.tables))
            progress.step(server.name)

        progress = Progress("compare", effort.rounds * len(OPERATIONS) * len(CONNECTIONS) * 2)
        for round, operation, connections in _plan(effort, OPERATIONS):
            for workload in workloads:
                # What others left to write is not this measurement's to wait for.
                os.sync()
                measured = workload.run(operation, connections, effort.seconds)
                name = workload.server.name
                figures.samples.append(Sample(operation, connections, name, round, measured))
                progress.step(f"{operation} x{connections} {name} {measured.rate:,.0f}/s")
        figures.resident_mb = ours.resident_mb()
        figures.reference_resident_mb = theirs.resident_mb()

        progress = Progress("ceiling", effort.rounds * len(CONNECTIONS) * 2)
        with servers.ceiling(workloads[0].describe_reply()) as constant:
            requests = workloads[0].requests(DESCRIBE)
            for round, _, connections in _plan(effort, (DESCRIBE,)):
                for server in (ours, constant):
                    job = Job(server.port, connections, requests, effort.seconds, repeat=True)
                    measured = measure(job)
                    figures.ceiling.append(
                        Sample(DESCRIBE, connections, server.name, round, measured)
                    )
                    progress.step(f"x{connections} {server.name} {measured.rate:,.0f}/s")


def compare_sizes(effort: Effort, folder: Path, figures: Figures) -> None:
    """Two Penstocks in turn: one with few tables in its namespace, one with many."""
    sizes = {"few": effort.tables, "many": effort.many_tables}
    progress = Progress("seed", len(sizes))
    for name, count in sizes.items():
        asyncio.run(seed(str(folder / name), count))
        progress.step(f"{count:,} tables")
    with contextlib.ExitStack() as stack:
        running = {n: stack.enter_context(servers.penstock(folder / n)) for n in sizes}
        requests = {n: seeded_requests(running[n], sizes[n]) for n in sizes}
        progress = Progress("sizes", effort.rounds * 2 * len(sizes))
        for round in range(effort.rounds):
            for operation in (DESCRIBE, LIST):
                for name, server in running.items():
                    connections = report.GOAL_CONNECTIONS
                    measured = measure(
                        Job(
                            server.port,
                            connections,
                            requests[name][operation],
                            effort.seconds,
                            repeat=True,
                        )
                    )
                    figures.scaling.append(Sample(operation, connections, name, round, measured))
                    progress.step(f"{operation} {sizes[name]:,} {measured.rate:,.0f}/s")
        figures.resident_many_mb = running["many"].resident_mb()


def _plan(effort: Effort, operations: tuple[str, ...]) -> Iterator[tuple[int, str, int]]:
    for round in range(effort.rounds):
        for operation in operations:
            for connections in CONNECTIONS:
                yield round, operation, connections


if __name__ == "__main__":
    main()
