"""The history of a job: an event for each change of its state, and the lines of its log."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.catalog.catalog import Catalog
from penstock.database.interface import Transaction
from penstock.model.jobs import (
    ACTIVE,
    EXPIRED,
    FINISHED,
    PHASE_BEGUN,
    QUEUED,
    RUNNING,
    LogLine,
)
from penstock.model.paging import Page, PageRequest, cut_page

# Older lines of a longer log are deleted.
MAX_LINES = 10_000
MAX_LINE = 8_000
# Of a job that does more, the first are known.
MAX_STEPS = 500


@dataclass(frozen=True, slots=True)
class Event:
    job_id: str
    number: int
    at: int
    state: str
    attempt: int
    runner: str
    message: str


@dataclass(frozen=True, slots=True)
class NumberedLine:
    number: int
    attempt: int
    at: int
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a run; `view` is the view that it is for, if that is not the job's own."""

    name: str
    since: int
    until: int | None = None
    view: str = ""


@dataclass(frozen=True, slots=True)
class Phase:
    """A time that a job spent in one state; without `until` it goes on."""

    name: str
    attempt: int
    since: int
    until: int | None = None
    steps: tuple[Step, ...] = ()


def to_phases(events: Sequence[Event]) -> list[Phase]:
    """The times that a job spent waiting, running and paused, from its events in order."""
    # What somebody asked for changes no state yet.
    states = [each for each in events if each.state in (*ACTIVE, *FINISHED, EXPIRED)]
    ends = [*(each.at for each in states[1:]), None]
    found = list[Phase]()
    for each, until in zip(states, ends, strict=False):
        if each.state not in FINISHED:
            name = QUEUED if each.state == EXPIRED else each.state
            steps = _to_steps(each, until, events) if each.state == RUNNING else ()
            found.append(Phase(name.lower(), each.attempt, each.at, until, steps))
    return found


def _to_steps(run: Event, until: int | None, events: Sequence[Event]) -> tuple[Step, ...]:
    """What an attempt did, one after the other, as its runner told."""
    begun = list[Event]()
    for each in events:
        is_of_it = each.state == PHASE_BEGUN and each.attempt == run.attempt
        # A report whose answer was lost comes again.
        if is_of_it and not (begun and begun[-1].message == each.message):
            begun.append(each)
    # Two clocks tell these times.
    last = max(each.at for each in events) if until is None else until
    starts = [min(max(each.at, run.at), max(last, run.at)) for each in begun]
    return tuple(
        Step(name, start, end, view)
        for each, start, end in zip(begun, starts, [*starts[1:], until], strict=False)
        for name, _, view in [each.message.partition(" ")]
    )


async def record_steps(
    tx: Transaction, job_id: str, attempt: int, runner: str, steps: Sequence[tuple[str, int]]
) -> None:
    """Record what an attempt began so many milliseconds ago; its row must be locked."""
    if not steps:
        return
    row = await tx.fetch_one(
        f"SELECT count(*) FROM job_events WHERE job_id = $1 AND state = '{PHASE_BEGUN}'", job_id
    )
    room = MAX_STEPS - (row[0] if row else 0)
    for name, ago in steps[: max(0, room)]:
        await record_event(tx, job_id, PHASE_BEGUN, attempt, runner, name, ago)


async def record_event(
    tx: Transaction,
    job_id: str,
    state: str,
    attempt: int,
    runner: str = "",
    message: str = "",
    ago_millis: int = 0,
) -> None:
    """Record an event of a job, whose row this transaction must have locked."""
    await tx.fetch(
        "INSERT INTO job_events (job_id, number, at, state, attempt, runner, message) "
        "VALUES ($1, (SELECT coalesce(max(number), 0) + 1 FROM job_events WHERE job_id = $6), "
        "now_millis() - $7, $2, $3, $4, $5)",
        job_id,
        state,
        attempt,
        runner,
        message[:MAX_LINE],
        job_id,
        ago_millis,
    )


async def list_events(
    catalog: Catalog, job_ids: Sequence[str], limit: int, limit_per_job: int | None
) -> list[Event]:
    """List the changes of some jobs' states, each job's in order."""
    found: list[Event] = []
    for job_id in job_ids:
        left = limit - len(found)
        if left <= 0:
            break
        rows = await catalog.database.fetch(
            "SELECT job_id, number, at, state, attempt, runner, message FROM job_events "
            f"WHERE job_id = $1 AND state <> '{PHASE_BEGUN}' ORDER BY number LIMIT $2",
            job_id,
            left if limit_per_job is None else min(left, limit_per_job),
        )
        found += [Event(*row) for row in rows]
    return found


async def list_all(tx: Transaction, job_id: str, limit: int) -> list[Event]:
    """List a job's events in order, with what its attempts began to do."""
    rows = await tx.fetch(
        "SELECT job_id, number, at, state, attempt, runner, message FROM job_events "
        "WHERE job_id = $1 ORDER BY number LIMIT $2",
        job_id,
        limit,
    )
    return [Event(*row) for row in rows]


async def append_log(tx: Transaction, job_id: str, attempt: int, lines: Sequence[LogLine]) -> None:
    """Append lines to a job's log, whose row this transaction must have locked."""
    if not lines:
        return
    row = await tx.fetch_one(
        "SELECT coalesce(max(number), 0) FROM job_logs WHERE job_id = $1", job_id
    )
    last: int = row[0] if row else 0
    for number, line in enumerate(lines, last + 1):
        await tx.fetch(
            "INSERT INTO job_logs (job_id, number, attempt, at, level, line) "
            "VALUES ($1, $2, $3, $4, $5, $6)",
            job_id,
            number,
            attempt,
            line.at,
            line.level,
            line.text[:MAX_LINE],
        )
    newest = last + len(lines)
    if newest > MAX_LINES:
        await tx.fetch(
            "DELETE FROM job_logs WHERE job_id = $1 AND number <= $2", job_id, newest - MAX_LINES
        )


async def append_note(tx: Transaction, job_id: str, text: str) -> None:
    """Append what the server itself has to say to a job's log, as above."""
    clock = await tx.fetch_one("SELECT now_millis()")
    assert clock is not None
    await append_log(tx, job_id, 0, [LogLine(clock[0], "warning", text)])


async def list_log(catalog: Catalog, job_id: str, page: PageRequest) -> Page[NumberedLine]:
    """A page of a job's log, oldest first."""
    rows = await catalog.database.fetch(
        "SELECT number, attempt, at, level, line FROM job_logs WHERE job_id = $1 AND number > $2 "
        "ORDER BY number LIMIT $3",
        job_id,
        int(page.after or "0"),
        page.limit + 1,
    )
    lines = [NumberedLine(*row) for row in rows]
    return cut_page(page, lines, [str(line.number) for line in lines])
