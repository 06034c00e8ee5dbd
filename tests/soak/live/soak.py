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

from tests.harness.views.runner_views import Source, make_view
from tests.soak.live.crowd import Reader, Tally, Writer
from tests.soak.live.field import Field, open_field
from tests.soak.live.measures import Sampler, draw_table, is_flat, kinds_of_files, thirds
from tests.soak.live.rounds import make_source
from tests.soak.live.targets import MAKERS, Pace, Target, holds, make_target

WRITERS, READERS = 8, 4
LAG_SECONDS = 5
KILL_SECONDS, TIDY_SECONDS = 30, 12
KEEP_SECONDS = 30
PACE = Pace(seconds=0.002)
# The server and the first runner are left alone in the second half: only who lives grows.
FIRST_VICTIMS = ("worker", "server", "jvm", "runner", "worker")
LAST_VICTIMS = ("worker", "jvm", "second runner")
END_SECONDS = 300
OF_VIEW = "SELECT id, length(text) AS size FROM plain"
QUICKLY = {"PENSTOCK__AUTO_REFRESH__COOLDOWN_SECONDS": "1"}


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

    @property
    def tables(self) -> list[str]:
        return [self.source.id, *(target.view.id for target in self.targets)]

    def tidy(self) -> None:
        """Compact and clean up the source and the views, one after the other."""
        turn = 0
        while not self.stopping.wait(TIDY_SECONDS / len(self.tables)):
            name = self.tables[turn % len(self.tables)].partition("$")[2]
            turn += 1
            try:
                dataset = Source(self.source.server, self.source.namespace, name).open()
                dataset.optimize.compact_files(target_rows_per_fragment=500)
                dataset.cleanup_old_versions(
                    timedelta(seconds=KEEP_SECONDS), error_if_tagged_old_versions=False
                )
                self.tally.counts["compaction"] += 1
            # It loses races by nature, and the server may be gone; both are counted, and shown.
            except Exception as error:
                shown = " ".join(str(error).split())[:100]
                self.tally.retries[f"compaction: {type(error).__name__} {shown}"] += 1

    def kill(self, minutes: float) -> None:
        """Kill something every so often."""
        chance, started = random.Random(1), time.monotonic()
        while not self.stopping.wait(KILL_SECONDS):
            is_first = time.monotonic() - started < minutes * 30
            victim = chance.choice(FIRST_VICTIMS if is_first else LAST_VICTIMS)
            members = self.field_of.team.members
            if victim == "second runner":
                self.field_of.strike("runner", members[-1])
            else:
                self.field_of.strike(victim, members[0] if victim != "runner" else members[-1])
            self.kills[victim] += 1


def run_soak(field_of: Field, folder: Path, minutes: float) -> tuple[Soak, Sampler]:
    """Let everything act for so long, then let it come to rest, and compare."""
    soak = begin(field_of, folder)
    writers = [Writer(field_of.server.url, soak.source.id, n, soak.tally) for n in range(WRITERS)]
    readers = [Reader(field_of.server.url, soak.tables, n, soak.tally) for n in range(READERS)]
    sampler = Sampler(field_of)
    others = [
        threading.Thread(target=soak.tidy, daemon=True),
        threading.Thread(target=soak.kill, args=(minutes,), daemon=True),
    ]
    started = time.monotonic()
    for thread in (*writers, *readers, sampler, *others):
        thread.start()
    while (left := minutes * 60 - (time.monotonic() - started)) > 0:
        time.sleep(min(30, left))
        done = sum(soak.tally.counts.values())
        print(f"{(time.monotonic() - started) / 60:.1f} min: {done} requests", flush=True)
    soak.stopping.set()
    for client in (*writers, *readers):
        client.stopping.set()
    for thread in (*others, *writers, *readers):
        thread.join(END_SECONDS)
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
        job = target.request()
        ended = target.finish(job, END_SECONDS)
        if ended["status"] != "SUCCEEDED":
            soak.problems.append(f"{target.kind}: {ended.get('error')}")
        elif target.show() != must_hold(target.kind, rows):
            soak.problems.append(f"{target.kind} is not its query")
    soak.problems += [f"{count} x {text}" for text, count in soak.tally.failures.items()]
    soak.problems += failed_jobs(soak)


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


def count_jobs(soak: Soak) -> int:
    server, page, count = soak.field_of.server, None, 0
    while True:
        body = {"state": "SUCCEEDED", "limit": 100} | ({"page_token": page} if page else {})
        answer = server.post("/v1/jobs/list", body).raise_for_status().json()
        count += len(answer["jobs"])
        page = answer.get("page_token")
        if not page:
            return count


def report(soak: Soak, sampler: Sampler, minutes: float) -> None:
    print(f"\n{minutes:g} minutes: {sum(soak.tally.counts.values())} requests, ", end="")
    print(f"{count_jobs(soak)} jobs, {sum(soak.kills.values())} kills\n")
    print("\n".join(draw_table(sampler.samples)))
    print()
    for name, counts in (("done", soak.tally.counts), ("killed", soak.kills)):
        print(f"{name}: " + ", ".join(f"{key} {count}" for key, count in counts.most_common()))
    left = kinds_of_files(soak.field_of.server.lake)
    print("files: " + ", ".join(f"{name} {count}" for name, count in left.most_common()))
    print("tried again:")
    for text, count in soak.tally.retries.most_common(20):
        print(f"  {count} x {text}")
    for name in ("server", "runner", "files"):
        shown = " -> ".join(f"{value:,.0f}" for value in thirds(sampler.samples, name))
        print(f"{name} by thirds: {shown}: {'flat' if is_flat(sampler.samples, name) else 'grows'}")
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
        return 1 if soak.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
