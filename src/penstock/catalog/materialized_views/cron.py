"""Schedules: cron expressions, and when they tick. Everything here is pure."""

import functools
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from penstock.errors import InvalidRequest

FIELDS = 5
EXAMPLE = (
    "write minute, hour, day of month, month and day of week, as in '0 6 * * *' for six o'clock "
    "every day"
)
MAX_CHARACTERS = 200


class Schedule(NamedTuple):
    """A cron expression, and the name of the time zone that it is read in; None is UTC."""

    expression: str
    timezone: str | None = None


def read_schedule(expression: str | None, timezone: str | None) -> Schedule | None:
    """A schedule as a client sends it; None without one."""
    if expression is None:
        if timezone is not None:
            raise InvalidRequest(
                "refresh_schedule_timezone is there without refresh_schedule",
                detail="send both, or neither",
            )
        return None
    words = expression.split()
    if len(expression) > MAX_CHARACTERS or len(words) != FIELDS:
        raise _refuse(expression, f"it has {len(words)} fields, not {FIELDS}")
    schedule = Schedule(" ".join(words), timezone or None)
    zone = _find_zone(schedule.timezone)
    try:
        ticks = CronSim(schedule.expression, datetime.fromtimestamp(0, zone))
    except CronSimError as error:
        why = str(error).lower()
        if "day-of-month" in why:
            why += ", or a day that none of these months has"
        raise _refuse(expression, why) from error
    if next(ticks, None) is None:
        raise _refuse(expression, "no day is like that")
    return schedule


@functools.lru_cache(maxsize=1024)
def find_tick(schedule: Schedule, after_millis: int) -> int | None:
    """The first tick after a moment; None when there is none in the next fifty years.

    Raises InvalidRequest when this server does not know the time zone, as another one did.
    """
    after = datetime.fromtimestamp(after_millis / 1000, _find_zone(schedule.timezone))
    ticks = (int(tick.timestamp() * 1000) for tick in CronSim(schedule.expression, after))
    # In an hour that clocks repeat, cronsim begins with ticks of its first time.
    return next((tick for tick in ticks if tick > after_millis), None)


def plan_due(schedule: Schedule, last_millis: int, now_millis: int) -> float | None:
    """The seconds until a refresh is due, 0 when ticks were missed since the last; None for never.

    However many were missed, one refresh makes up for them.
    """
    tick = find_tick(schedule, last_millis)
    return None if tick is None else max(0, tick - now_millis) / 1000


def _find_zone(name: str | None) -> tzinfo:
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise InvalidRequest(
            f"refresh_schedule_timezone is {name[:100]!r}, which this server does not know",
            detail="use a name of the IANA database, such as Europe/Berlin",
        ) from error


def _refuse(expression: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"refresh_schedule {expression[:MAX_CHARACTERS]!r} is no schedule: {why}", detail=EXAMPLE
    )
