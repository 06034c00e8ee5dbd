"""Rounds of kills: jobs of every kind at once, one part killed, and everything counted after."""

import random
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance

from tests.harness.clients.pylance import connect
from tests.harness.data.tables import new_name
from tests.harness.jobs.fake_runner import describe
from tests.harness.processes.runners import FINISHED
from tests.harness.views.runner_views import Source
from tests.soak.live.field import TASKS, VICTIMS, Field
from tests.soak.live.targets import MAKERS, Pace, Target, holds, make_target, needs, rows_of

ROWS, FRAGMENTS, CHECKPOINT = 80, 8, 5
# All calls of a job together print more lines than a report takes.
PACE = Pace(seconds=0.02, lines=40)
KNOBS = {
    "checkpoint_size": CHECKPOINT,
    "max_checkpoint_size": CHECKPOINT,
    "batch_checkpoint_flush_interval_seconds": 0,
}
JOB_SECONDS = 400


@dataclass
class Round:
    """What one kill did to one job."""

    victim: str
    target: str
    status: str
    attempts: int
    calls: int
    repeated: int
    problems: list[str] = field(default_factory=list)


def run_round(
    field_of: Field, folder: Path, victim: str, chance: random.Random, kinds: Sequence[str]
) -> list[Round]:
    """Begin jobs of these kinds on a new source, kill, and judge what came of each job."""
    source = make_source(field_of)
    # The column first: views would have to follow its declaration.
    targets = [make_target(source, kind, folder, PACE) for kind in kinds]
    rows = source.rows()
    jobs = [target.request(**KNOBS) for target in targets]
    share = chance.uniform(0.1, 0.7)
    _wait_for_calls(field_of, targets, jobs, share * sum(len(needs(k, rows)) for k in kinds))
    running = [job for job in jobs if describe(field_of.server, job)["status"] == "RUNNING"]
    if running:
        field_of.strike(victim, field_of.team.holder(chance.choice(running)))
    return [_judge(victim, *each, rows) for each in zip(targets, jobs, strict=True)]


def make_source(field_of: Field, rows: int = ROWS, fragments: int = FRAGMENTS) -> Source:
    server = field_of.server
    source = Source(server, new_name())
    server.post(f"/v1/namespace/{source.namespace}/create").raise_for_status()
    lance.write_dataset(
        rows_of(range(rows)),
        namespace_client=connect(server),
        table_id=[source.namespace, source.name],
        mode="create",
        max_rows_per_file=-(-rows // fragments),
        enable_stable_row_ids=True,
    )
    return source


def _wait_for_calls(
    field_of: Field, targets: Sequence[Target], jobs: Sequence[str], calls: float
) -> None:
    """Until so many calls were made, or no job is left to make any."""
    deadline = time.monotonic() + JOB_SECONDS
    while sum(target.calls().total() for target in targets) < max(calls, 1):
        states = {describe(field_of.server, job)["status"] for job in jobs}
        if states <= set(FINISHED) or (calls < 1 and "RUNNING" in states):
            return
        assert time.monotonic() < deadline, "the jobs make no calls"
        time.sleep(0.05)


def _judge(victim: str, target: Target, job: str, rows: list[dict[str, Any]]) -> Round:
    found = target.finish(job, JOB_SECONDS)
    calls, needed = target.calls(), needs(target.kind, rows)
    repeated = calls.total() - len(calls)
    done = Round(
        victim, target.kind, found["status"], int(found["attempt"]), calls.total(), repeated
    )
    if found["status"] != "SUCCEEDED":
        done.problems.append(f"{found['status']}: {found.get('error')}")
        return done
    if target.show() != (wanted := holds(target.kind, rows)):
        done.problems.append(f"holds {len(target.show())} rows for {len(wanted)}")
    if set(calls) != needed:
        done.problems.append(f"calls for {len(set(calls) ^ needed)} other rows")
    if repeated > CHECKPOINT * TASKS:
        done.problems.append(f"{repeated} calls again, {CHECKPOINT * TASKS} were in flight")
    return done


def run_rounds(
    field_of: Field,
    folder: Path,
    count: int,
    seed: int = 0,
    kinds: Collection[str] = tuple(MAKERS),
    victims: Sequence[str] = VICTIMS,
) -> list[Round]:
    """So many rounds, one victim after the other."""
    found = []
    for number in range(count):
        victim = victims[number % len(victims)]
        started = time.monotonic()
        done = run_round(field_of, folder, victim, random.Random(seed + number), tuple(kinds))
        seconds = time.monotonic() - started
        found += done
        for each in done:
            shown = "; ".join(each.problems) or "right"
            print(
                f"round {number}: {victim:6} {each.target:8} {each.calls:3} calls, "
                f"{each.repeated:2} again, attempt {each.attempts}: {shown}",
                flush=True,
            )
        print(f"round {number}: {seconds:.0f} s", flush=True)
    return found
