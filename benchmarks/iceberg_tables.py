"""Compare Iceberg tables with those of catalogs that people run instead, in one run.

Beside Penstock are pyiceberg's SqlCatalog, a library over SQLite, and with a folder of jars the
REST catalog of Iceberg's own tests. docs/explanation/benchmarks.md tells what is measured.
"""

import argparse
import contextlib
import os
import platform
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

import msgspec

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import servers
from benchmarks.iceberg.library import LibraryTables
from benchmarks.iceberg.requests import OPERATIONS, Contended
from benchmarks.iceberg.served import ServedTables
from benchmarks.progress import Progress
from benchmarks.report import Sample, align, summarise

PENSTOCK, CLIENT = "penstock", "penstock by pyiceberg"
SQL, FIXTURE = "SqlCatalog", "fixture"
# What is compared: the first with the second, if that was measured.
PAIRS = ((PENSTOCK, SQL), (CLIENT, SQL), (PENSTOCK, FIXTURE))
Tables = ServedTables | LibraryTables
CONNECTIONS = (1, 16)
WRITERS = 16


@dataclass(frozen=True)
class Effort:
    """How much is measured: so many rounds, if another one still fits into the time."""

    rounds: int
    most_seconds: float
    seconds: float
    tables: int
    # How many commits each of the writers on one table makes, if the time is enough.
    commits: int
    contest_seconds: float


FULL = Effort(rounds=5, most_seconds=80, seconds=0.5, tables=96, commits=8, contest_seconds=4)
QUICK = Effort(rounds=1, most_seconds=0, seconds=0.1, tables=16, commits=2, contest_seconds=1)


class Contest(msgspec.Struct):
    """All writers on one table of one catalog, once."""

    catalog: str
    round: int
    contended: Contended


class Figures(msgspec.Struct):
    """Everything that a run measured."""

    load_average: float
    samples: list[Sample] = []
    contests: list[Contest] = []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run, not for comparisons")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the raw figures there")
    parser.add_argument(
        "--jars", metavar="DIR", type=Path, help="measure the catalog of Iceberg's tests as well"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        effort = QUICK if options.quick else FULL
        figures = run(effort, Path(folder).resolve(), options.jars)
    print(show(figures))
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures)))


def run(effort: Effort, folder: Path, jars: Path | None) -> Figures:
    """All catalogs, round by round."""
    figures, started = Figures(os.getloadavg()[0]), time.monotonic()
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(servers.penstock(folder / "penstock"))
        rest = {"type": "rest", "uri": f"http://127.0.0.1:{ours.port}/iceberg"}
        sql = {
            "type": "sql",
            # A client that finds the file locked waits as long as this.
            "uri": f"sqlite:///{folder / 'catalog.db'}?timeout=30",
            "warehouse": f"file://{folder / 'warehouse'}",
        }
        catalogs: list[Tables] = [
            ServedTables(PENSTOCK, ours, "/iceberg/v1", effort.tables),
            LibraryTables(SQL, sql, effort.tables),
            LibraryTables(CLIENT, rest, effort.tables),
        ]
        if jars is not None:
            theirs = stack.enter_context(servers.fixture(jars, folder / "fixture"))
            catalogs.append(ServedTables(FIXTURE, theirs, "/v1", effort.tables))
        for round in range(effort.rounds):
            began = time.monotonic()
            _measure(figures, catalogs, effort, round)
            now = time.monotonic()
            if now + (now - began) > started + effort.most_seconds:
                break
    return figures


def _measure(figures: Figures, catalogs: list[Tables], effort: Effort, round: int) -> None:
    """One round: each operation of all catalogs in turn."""
    steps = len(catalogs) * (len(OPERATIONS) * len(CONNECTIONS) + 1)
    progress = Progress(f"round {round + 1}", steps)
    for operation in OPERATIONS:
        for connections in CONNECTIONS:
            for each in catalogs:
                # What others left to write is not this measurement's to wait for.
                os.sync()
                measured = each.run(operation, connections, effort.seconds)
                figures.samples.append(Sample(operation, connections, each.name, round, measured))
                progress.step(f"{operation} x{connections} {each.name} {measured.rate:,.0f}/s")
    for each in catalogs:
        os.sync()
        contended = each.contend(WRITERS, effort.commits, effort.contest_seconds)
        figures.contests.append(Contest(each.name, round, contended))
        progress.step(f"{WRITERS} writers {each.name}, {contended.refused} refused")


def show(figures: Figures) -> str:
    machine = (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, "
        f"pyiceberg {version('pyiceberg')}; "
        f"load average {figures.load_average:.1f} before the run; "
        f"rounds: {1 + max(each.round for each in figures.samples)}"
    )
    compared, contests = _compare(figures.samples), _tell(figures.contests)
    return f"{machine}\n\n{align(compared, range(1, 9))}\n\n{align(contests, range(1, 7))}"


def _compare(samples: list[Sample]) -> list[list[str]]:
    rows = [
        ["operation", "conns", "ours", "rate/s", "p99 ms", "beside", "rate/s", "p99 ms", "ratio"]
    ]
    there = {each.server for each in samples}
    for operation in OPERATIONS:
        for connections in CONNECTIONS:
            for ours, beside in PAIRS:
                if beside not in there:
                    continue
                mine = summarise(samples, operation, connections, ours)
                other = summarise(samples, operation, connections, beside)
                rows.append(
                    [
                        operation,
                        str(connections),
                        ours,
                        f"{mine.rate:,.0f}",
                        f"{mine.p99_ms:.1f}",
                        beside,
                        f"{other.rate:,.0f}",
                        f"{other.p99_ms:.1f}",
                        f"{mine.rate / other.rate:.2f}x",
                    ]
                )
    return rows


def _tell(contests: list[Contest]) -> list[list[str]]:
    """The writers on one table: medians of the rounds, and all that was lost."""
    rows = [[f"{WRITERS} writers, one table", "commits/s", "refused per commit", "lost"]]
    for name in dict.fromkeys(each.catalog for each in contests):
        found = [each.contended for each in contests if each.catalog == name]
        rows.append(
            [
                name,
                f"{median(each.commits / each.seconds for each in found):,.1f}",
                f"{median(each.refused / each.commits for each in found):.1f}",
                str(sum(each.lost for each in found)),
            ]
        )
    return rows


if __name__ == "__main__":
    main()
