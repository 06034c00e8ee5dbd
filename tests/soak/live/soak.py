"""`python -m tests.soak.live.soak`: everything at once for a while (`make soak MINUTES=20`).

Eight writers, four readers, six views that keep a target lag, compactions and clean-ups, and a kill
every thirty seconds. At the end every acknowledged row is there, every view is its query, no job
has failed, and what was measured is printed as a table.
"""

import argparse
import contextlib
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

# Lance warns of operations that are young; it reads this at import.
os.environ.setdefault("LANCE_LOG", "error")

import lance

from tests.harness.views.runner_views import Source, make_view
from tests.soak.live.crowd import Reader, Tally, Writer
from tests.soak.live.field import Field, open_field
from tests.soak.live.measures import (
    Rest,
    Sampler,
    count_jobs,
    draw_table,
    draw_thirds,
    is_bounded,
    is_flat,
    measure_rest,
)
from tests.soak.live.rounds import make_source
from tests.soak.live.targets import MAKERS, Pace, Target, holds, make_target
from tests.soak.live.tidying import Tidier, clean_up

WRITERS, READERS = 8, 4
LAG_SECONDS = 5
KILL_SECONDS = 30
PACE = Pace(seconds=0.002)
# The server and the first runner are left alone in the second half: only who lives grows.
FIRST_VICTIMS = ("worker", "server", "jvm", "runner", "worker")
LAST_VICTIMS = ("worker", "jvm", "second runner")
END_SECONDS = 300
OF_VIEW = "SELECT id, length(text) AS size FROM plain"
# In a shorter soak caches are not full yet, and it may grow.
JUDGED_MINUTES = 10
QUICKLY = {
    "PENSTOCK__AUTO_REFRESH__COOLDOWN_SECONDS": "1",
    # Maintenance happens beside everything else, and what lies there for long is two minutes old.
    "PENSTOCK__CATALOG__MAINTAIN_SECONDS": "30",
    "PENSTOCK__CATALOG__STAGED_SECONDS": "120",
    # Filled within minutes, so that what grows is not the cache.
    "PENSTOCK__STORAGE__CACHE_BYTES": str(32 * 2**20),
}


@dataclass
class Soak:
    """Everything of one soak, and what it found."""

    field_of: Field
    source: Source
    targets: list[Target]
    tally: Tally = field(default_factory=Tally)
    kills: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    rest: Rest = field(default_factory=lambda: Rest(Counter(), 0))

    @property
    def tables(self) -> list[str]:
        return [self.source.id, *(target.view.id for target in self.targets)]

    def kill(self, minutes: float, pause_seconds: float) -> None:
        """Kill something every so often."""
        chance, started = random.Random(1), time.monotonic()
        while not self.stopping.wait(pause_seconds):
            is_first = time.monotonic() - started < minutes * 30
            victim = chance.choice(FIRST_VICTIMS if is_first else LAST_VICTIMS)
            members = self.field_of.team.members
            holder = members[-1] if victim.endswith("runner") else members[0]
            try:
                self.field_of.strike(victim.removeprefix("second "), holder)
            # Without this nothing more would be killed, and nobody would know.
            except Exception as error:
                self.problems.append(f"killing {victim}: {type(error).__name__}: {error}")
            self.kills[victim] += 1


def run_soak(
    field_of: Field, folder: Path, minutes: float, kill_seconds: float = KILL_SECONDS
) -> tuple[Soak, Sampler]:
    """Let everything act for so long, then let it come to rest, and compare."""
    soak = begin(field_of, folder)
    writers = [Writer(field_of.server.url, soak.source.id, n, soak.tally) for n in range(WRITERS)]
    readers = [Reader(field_of.server.url, soak.tables, n, soak.tally) for n in range(READERS)]
    sampler = Sampler(field_of, soak.tally)
    tidier = Tidier(soak.source, [id.partition("$")[2] for id in soak.tables], writers)
    killer = threading.Thread(target=soak.kill, args=(minutes, kill_seconds), daemon=True)
    started = time.monotonic()
    for thread in (*writers, *readers, sampler, tidier, killer):
        thread.start()
    while (left := minutes * 60 - (time.monotonic() - started)) > 0:
        time.sleep(min(30, left))
        done = sum(soak.tally.counts.values())
        print(f"{(time.monotonic() - started) / 60:.1f} min: {done} requests", flush=True)
    soak.stopping.set()
    tidier.stopping.set()
    for client in (*writers, *readers):
        client.stopping.set()
    for thread in (killer, tidier, *writers, *readers):
        thread.join(END_SECONDS)
        if thread.is_alive():
            soak.problems.append(f"{type(thread).__name__} did not end")
    sampler.stopping.set()
    sampler.join(END_SECONDS)
    # A runner that was killed at last may still be starting.
    field_of.team.at_least(1)
    finish(soak, writers)
    return soak, sampler


def begin(field_of: Field, folder: Path) -> Soak:
    """The source and six views of it that keep a lag."""
    source = make_source(field_of)
    lag: dict[str, Any] = {
        "target_lag_seconds": LAG_SECONDS,
        "auto_refresh": True,
        "with_no_data": False,
    }
    kinds = [kind for kind in MAKERS if kind != "backfill"]
    targets = [make_target(source, kind, folder, PACE, **lag) for kind in kinds]
    over = make_view(source, OF_VIEW, "over", **lag)
    targets.append(Target("over", over, ("id", "size")))
    return Soak(field_of, source, targets)


def finish(soak: Soak, writers: list[Writer]) -> None:
    """Compare everything with what it must be, once all jobs have ended."""
    rows = soak.source.rows()
    found = sorted((row for row in rows if row["id"] >= 1_000_000), key=lambda row: row["id"])
    wanted = sorted(
        (row for writer in writers for row in writer.rows.values()), key=lambda row: row["id"]
    )
    if found != wanted:
        gone = {row["id"] for row in wanted} - {row["id"] for row in found}
        more = {row["id"] for row in found} - {row["id"] for row in wanted}
        soak.problems.append(f"the source lacks {len(gone)} rows and has {len(more)} too many")
    for target in soak.targets:
        try:
            soak.problems += compare(target, rows)
        # The others are looked at all the same, and what was measured is told.
        except Exception as error:
            soak.problems.append(f"{target.kind}: {type(error).__name__}: {error}")
    soak.problems += [f"{count} x {text}" for text, count in soak.tally.failures.items()]
    soak.problems += failed_jobs(soak)
    if not come_to_rest(soak.field_of):
        soak.problems.append("jobs are still requested although nothing changes")
    for target in soak.targets:
        if loose := find_left(target.view.open()):
            soak.problems.append(f"{target.kind} has files of jobs left: {sorted(loose)[:5]}")
    for table in (soak.source, *(target.view for target in soak.targets)):
        clean_up(table, timedelta(0), is_alone=True)
    soak.rest = measure_rest(soak.field_of.server.lake)


def compare(target: Target, rows: list[dict[str, Any]]) -> list[str]:
    """What is wrong with a view once it is refreshed."""
    ended = target.finish(target.request(), END_SECONDS)
    if ended["status"] != "SUCCEEDED":
        return [f"{target.kind}: {ended.get('error')}"]
    if target.show() != must_hold(target.kind, rows):
        return [f"{target.kind} is not its query"]
    return []


def come_to_rest(field_of: Field) -> bool:
    """Wait until no job is left; False when that takes too long."""
    deadline = time.monotonic() + END_SECONDS
    while time.monotonic() < deadline:
        counts = count_jobs(field_of.server)
        if counts is not None and not sum(counts[state] for state in ("QUEUED", "RUNNING")):
            return True
        time.sleep(1)
    return False


def find_left(view: lance.LanceDataset) -> set[str]:
    """What jobs of a view have left: files that no version refers to, and notes."""
    root, kept = Path(view.uri), set[str]()
    for version in view.versions():
        for fragment in view.checkout_version(version["version"]).get_fragments():
            kept |= {str(file.path) for file in fragment.data_files()}
    loose = {path.name for path in root.glob("data/rf-*")} - kept
    return loose | {str(path.relative_to(root)) for path in root.glob("_jobs/**/*")}


def must_hold(kind: str, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    if kind != "over":
        return holds(kind, rows)
    inside = [(row["id"], len(row["text"])) for row in rows if row["x"] % 5 != 0]
    return sorted(inside, key=repr)


def failed_jobs(soak: Soak) -> list[str]:
    """The jobs that ended otherwise than well, with their errors."""
    found, page, server = [], None, soak.field_of.server
    while True:
        body = {"state": "FAILED", "limit": 100} | ({"page_token": page} if page else {})
        answer = server.post("/v1/jobs/list", body).raise_for_status().json()
        for job in answer["jobs"]:
            told = server.post(f"/v1/transaction/{job['job_id']}/describe").json()["properties"]
            found.append(f"job of {job['target']} failed: {told.get('error')}")
        page = answer.get("page_token")
        if not page:
            return found


def judge(sampler: Sampler) -> dict[str, bool]:
    """Whether memory and files have stopped growing."""
    found = {name: is_flat(sampler.samples, name) for name in ("server", "runner")}
    # With every clean-up they fall.
    return found | {"files": is_bounded(sampler.samples, "files")}


def report(soak: Soak, sampler: Sampler, minutes: float) -> None:
    requests, jobs = soak.tally.counts.total(), count_jobs(soak.field_of.server) or Counter()
    print(f"\n{minutes:g} minutes: {requests} requests, ", end="")
    print(f"{jobs['SUCCEEDED']} jobs, {soak.kills.total()} kills\n")
    print("\n".join(draw_table(sampler.samples)))
    print()
    print("\n".join(draw_thirds(sampler.samples, soak.rest, len(soak.problems))))
    print()
    for name, counts in (("done", soak.tally.counts), ("killed", soak.kills)):
        print(f"{name}: " + ", ".join(f"{key} {count}" for key, count in counts.most_common()))
    print("tried again:")
    for text, count in soak.tally.retries.most_common(20):
        print(f"  {count} x {text}")
    for name, is_well in judge(sampler).items():
        print(f"{name}: {'flat' if is_well else 'grows'}")
    print(f"unexplained: {len(soak.problems)}")
    for text in soak.problems:
        print(f"  {text}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.live.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    minutes = parser.parse_args(sys.argv[1:]).minutes
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-soak-")))
        field_of = stack.enter_context(open_field(folder, settings=QUICKLY))
        soak, sampler = run_soak(field_of, folder, minutes)
        report(soak, sampler, minutes)
        grows = minutes >= JUDGED_MINUTES and not all(judge(sampler).values())
        return 1 if soak.problems or grows else 0


if __name__ == "__main__":
    raise SystemExit(main())
