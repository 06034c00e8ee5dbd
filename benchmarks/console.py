"""What 50 open consoles cost: describe with and without them, among 100,000 tables, in one run.

Each console is somebody else's, with grants on half of the namespaces, and asks for its overview
every ten seconds. Both are measured in turn, now the one first and now the other, so that a machine
that becomes slower or faster favours neither; what counts is the median of the rounds. The goal is
at least 0.95 of the rate without. docs/explanation/benchmarks.md tells what came out.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.access import guarded, make_key, request
from benchmarks.load import Job, measure
from benchmarks.servers import Server
from penstock.catalog.access import grants, tokens
from penstock.catalog.access.grants import Target
from penstock.catalog.access.tokens import NewToken
from penstock.database.connect import open_beside
from penstock.database.interface import Database, Transaction
from penstock.model.origins import NOBODY
from penstock.model.rights import NAMESPACE

GOAL = 0.95
NAMESPACES, TABLES = 100, 1000
CONSOLES, EVERY_SECONDS = 50, 10.0
CONNECTIONS = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round")
    rounds, seconds = (1, 10.0) if parser.parse_args().quick else (7, 10.0)
    with tempfile.TemporaryDirectory() as folder:
        ratios = run(Path(folder), rounds, seconds)
    ratio = statistics.median(ratios)
    mark = "reached" if ratio >= GOAL else "missed"
    print(
        f"describe beside {CONSOLES} consoles: {ratio:.3f} of without "
        f"({min(ratios):.3f} to {max(ratios):.3f}), goal {GOAL} {mark}"
    )


def run(folder: Path, rounds: int, seconds: float) -> list[float]:
    """The rate beside the consoles as a part of that without, of each round."""
    key = make_key(folder)
    with guarded(folder):
        # It makes the lake that the catalog belongs to.
        pass
    keys = asyncio.run(fill(folder))
    ratios = []
    with guarded(folder) as server:
        paths = [f"/v1/table/n000$t{number:04}/describe" for number in range(100)]
        job = Job(
            server.port, CONNECTIONS, [request(p, key, b"{}") for p in paths], seconds, repeat=True
        )
        # Consoles that are open have asked before: their first look is no part of it.
        with consoles(server, keys):
            measure(job)
        for number in range(rounds):
            rates, slowest = {}, 0.0
            for is_beside in (False, True) if number % 2 == 0 else (True, False):
                with consoles(server, keys if is_beside else []) as took:
                    rates[is_beside] = measure(job).rate
                slowest = max(slowest, *took)
            ratios.append(rates[True] / rates[False])
            print(
                f"{rates[False]:7.0f} /s without, {rates[True]:7.0f} beside: {ratios[-1]:.3f}; "
                f"slowest {slowest:.2f} s"
            )
        # What other work on the machine does not change.
        with consoles(server, keys):
            began = cpu_seconds(server.pid)
            time.sleep(2 * EVERY_SECONDS)
            spent = (cpu_seconds(server.pid) - began) / (2 * EVERY_SECONDS)
        print(f"the consoles alone: {spent:.1%} of one core")
    return ratios


def cpu_seconds(pid: int) -> float:
    """What a process has had of all cores."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def fill(folder: Path) -> list[str]:
    """Many tables, and somebody with a key for each console."""
    database = await open_beside(f"sqlite:///{(folder / 'catalog.sqlite').resolve()}")
    await database.write(_fill)
    keys = [await _make_person(database, number) for number in range(CONSOLES)]
    await database.close()
    return keys


async def _fill(tx: Transaction) -> None:
    for n in range(NAMESPACES):
        await tx.fetch("INSERT INTO namespaces VALUES ($1, '', $1, '{}', 0)", f"n{n:03}")
        for number in range(TABLES):
            id, name = f"{n}-{number}", f"t{number:04}"
            await tx.fetch(
                "INSERT INTO objects VALUES ($1, $2, $3, 'table', '{}', 0)", id, f"n{n:03}", name
            )
            await tx.fetch("INSERT INTO tables VALUES ($1, $1, 1)", id)


async def _make_person(database: Database, number: int) -> str:
    name = f"person{number}"
    for n in range(number % 2, NAMESPACES, 2):
        target = Target(NAMESPACE, (f"n{n:03}",))
        await database.write(grants.create_in, name, "reader", target, NOBODY)
    _, key = await tokens.create(database, NewToken(name))
    return key


@contextlib.contextmanager
def consoles(server: Server, keys: list[str]) -> Iterator[list[float]]:
    """Open consoles, which ask one after the other; yields how long each answer took."""
    ended, took = threading.Event(), [0.0, 0.0]

    def look() -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}") as client:
            for key in itertools.cycle(keys):
                if ended.wait(EVERY_SECONDS / len(keys)):
                    return
                began = time.perf_counter()
                answer = client.post("/v1/overview", json={}, headers={"x-api-key": key})
                answer.raise_for_status()
                took.append(time.perf_counter() - began)

    thread = threading.Thread(target=look)
    if keys:
        thread.start()
    try:
        yield took
    finally:
        ended.set()
        if keys:
            thread.join()


if __name__ == "__main__":
    main()
