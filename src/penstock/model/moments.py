"""The moment of a refresh, which is what a view's query means by the current time.

Where a query reads the clock, the texts of its definition have a mark, which only `penstock.sql`
writes: it holds control characters, which no author's text may hold. A refresh puts its moment in.
Moments are microseconds since 1970, in UTC.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from msgspec import structs

from penstock.model.views import CheckedSql, Definition, Rows

OPEN, CLOSE = "\x1c", "\x1d"
MARK = re.compile(f"{OPEN}(\\w+):(\\w+):([^{CLOSE}]*){CLOSE}")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400_000_000
# A moment to try texts with.
SAMPLE = 1_704_067_200_123_456

ClockType = Literal["timestamp", "timestamp_ntz", "date"]


def mark_spark(kind: ClockType) -> str:
    """The clock in a text for Spark."""
    return f"{OPEN}spark:{kind}:{CLOSE}"


def mark_lance(kind: ClockType, steps: Sequence[str]) -> str:
    """The clock in a text for Lance, after some steps.

    A step is `u` with microseconds or `m` with months to add, or `d`: back to midnight.
    """
    return f"{OPEN}lance:{kind}:{' '.join(steps)}{CLOSE}"


def count_marks(text: str) -> int:
    """How often a text reads the clock."""
    return text.count(OPEN)


def at_moment(text: str, moment: int) -> str:
    """A text with a moment in place of the clock."""
    return MARK.sub(lambda found: _write(found[1], found[2], found[3].split(), moment), text)


def define_at(definition: Definition, moment: int | None) -> Definition:
    """The definition as it is at a moment; itself when it does not read the clock."""
    if definition.clock is None or moment is None:
        return definition

    def put(text: str | None) -> str | None:
        return text if text is None else at_moment(text, moment)

    rows, keys = definition.rows, definition.keys
    if rows is not None:
        rows = rows_at(rows, moment)
    if keys is not None:
        keys = structs.replace(keys, sql=sql_at(keys.sql, moment))
    return structs.replace(
        definition,
        sql=sql_at(definition.sql, moment),
        rows=rows,
        keys=keys,
        sources=tuple(structs.replace(s, filter=put(s.filter)) for s in definition.sources),
    )


def sql_at(sql: CheckedSql, moment: int) -> CheckedSql:
    """The same for a whole query: what was checked stays so with a literal of ours in it."""
    return CheckedSql(at_moment(sql, moment))


def rows_at(rows: Rows, moment: int) -> Rows:
    """The same for a query over rows."""
    columns = (
        structs.replace(column, expression=at_moment(column.expression, moment))
        for column in rows.columns
    )
    where, lance = (
        None if text is None else at_moment(text, moment)
        for text in (rows.filter, rows.lance_filter)
    )
    return structs.replace(rows, filter=where, lance_filter=lance, columns=tuple(columns))


def show_moment(moment: int) -> str:
    """A moment as people read it, to the microsecond."""
    return f"{_to_time(moment):%Y-%m-%dT%H:%M:%S.%f}Z"


def _write(engine: str, kind: str, steps: list[str], moment: int) -> str:
    for step in steps:
        moment = _take(moment, step)
    time = _to_time(moment)
    day, full = f"{time:%Y-%m-%d}", f"{time:%Y-%m-%d %H:%M:%S.%f}"
    if engine == "lance":
        return f"date '{day}'" if kind == "date" else f"timestamp '{full}'"
    spark = {
        "date": f"DATE '{day}'",
        "timestamp": f"TIMESTAMP_LTZ '{full}Z'",
        "timestamp_ntz": f"TIMESTAMP_NTZ '{full}'",
    }
    return f"({spark[kind]})"


def _take(moment: int, step: str) -> int:
    if step == "d":
        return moment - moment % DAY
    count = int(step[1:])
    if step[0] == "u":
        return moment + count
    time = _to_time(moment)
    months = time.year * 12 + time.month - 1 + count
    year, month = divmod(months, 12)
    # As in Spark, the 31st of a month with 30 days is its last day.
    day = min(time.day, _count_days(year, month + 1))
    return _to_moment(time.replace(year=year, month=month + 1, day=day))


def _count_days(year: int, month: int) -> int:
    after = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    return (after - timedelta(days=1)).day


def _to_time(moment: int) -> datetime:
    return EPOCH + timedelta(microseconds=moment)


def _to_moment(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)
