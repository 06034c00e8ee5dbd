"""Rounds of kills: jobs of every kind at once, parts killed, and everything counted after."""

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
from tests.harness.processes.runners import FINISHED, RunnerProcess
from tests.harness.processes.waiting import until
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
    """What kills did to one job."""

    victims: Sequence[str]
    target: str
    status: str
    attempts: int
    calls: int
    repeated: int
    problems: list[str] = field(default_factory=list)


def run_round(
    field_of: Field,
    folder: Path,
    victims: Sequence[str],
    chance: random.Random,
    kinds: Sequence[str],
) -> list[Round]:
    """Begin jobs of these kinds on a new source, kill, and judge what came of each job."""
    source = make_source(field_of)
    # The column first: views would have to follow its declaration.
    targets = [make_target(source, kind, folder, PACE) for kind in kinds]
    rows = source.rows()
    jobs = [target.request(**KNOBS) for target in targets]
    needed = sum(len(needs(kind, rows)) for kind in kinds)
    shares = sorted(chance.uniform(0.1, 0.7) for _ in victims)
    for victim, share in zip(victims, shares, strict=True):
        if holders := _wait_for_calls(field_of, targets, jobs, share * needed):
            field_of.strike(victim, chance.choice(holders))
    return [_judge(victims, *each, rows) for each in zip(targets, jobs, strict=True)]


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
) -> list[RunnerProcess]:
    """Who works on the jobs when so many calls were made; nobody when all have ended before."""
    deadline = time.monotonic() + JOB_SECONDS
    while True:
        found = [describe(field_of.server, job) for job in jobs]
        names = [each["runner"] for each in found if each["status"] == "RUNNING"]
        # A job is with a runner that was killed until its lease ends.
        holders = [
            member
            for member in field_of.team.members
            if any(f"-{member.process.pid}-" in name for name in names)
        ]
        if holders and sum(target.calls().total() for target in targets) >= calls:
            return holders
        if {each["status"] for each in found} <= set(FINISHED):
            return []
        assert time.monotonic() < deadline, "the jobs make no calls"
        time.sleep(0.05)


def _judge(victims: Sequence[str], target: Target, job: str, rows: list[dict[str, Any]]) -> Round:
    found = target.finish(job, JOB_SECONDS)
    calls, needed = target.calls(), needs(target.kind, rows)
    repeated = calls.total() - len(calls)
    done = Round(
        victims, target.kind, found["status"], int(found["attempt"]), calls.total(), repeated
    )
    if found["status"] != "SUCCEEDED":
        done.problems.append(f"{found['status']}: {found.get('error')}")
        return done
    if target.show() != (wanted := holds(target.kind, rows)):
        done.problems.append(f"holds {len(target.show())} rows for {len(wanted)}")
    if set(calls) != needed:
        done.problems.append(f"calls for {len(set(calls) ^ needed)} other rows")
    if repeated > (in_flight := CHECKPOINT * TASKS * len(victims)):
        done.problems.append(f"{repeated} calls again, {in_flight} were in flight")
    if len(commits := target.view.commits(job)) != 1:
        done.problems.append(f"committed as versions {commits}")
    try:
        until(lambda: not target.loose_files())
    except AssertionError:
        done.problems.append(f"left {sorted(target.loose_files())[:5]}")
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
        done = run_round(field_of, folder, [victim], random.Random(seed + number), tuple(kinds))
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
