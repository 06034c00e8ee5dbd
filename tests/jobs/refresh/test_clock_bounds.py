"""Bounds that the clock moves: exact to the microsecond, and as Spark reckons them."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine
from penstock.model.moments import at_moment, mark_lance
from penstock.sql.lance.clock_bounds import find_bound
from penstock.sql.spark.text.checked_sql import check_expression, write_statement
from tests.harness.views.timed_views import NOON, Events, make_events, refresh_at, to_moment


@pytest.mark.parametrize(
    ("column", "sign"),
    [
        ("at", ">"),
        ("plain", "<="),
        *(
            pytest.param(column, sign, marks=pytest.mark.slow)
            for column in ("at", "plain")
            for sign in ("<", "<=", ">", ">=", "=")
        ),
    ],
)
def test_bounds_are_exact_to_the_microsecond(
    column: str, sign: str, engine: Engine, tmp_path: Path
) -> None:
    """Both engines agree, and rows at the bound enter and leave at the right moment."""
    events = Events(tmp_path, count=1)
    micro = timedelta(microseconds=1)
    times = [NOON - micro, NOON, NOON + micro, None, datetime(1969, 12, 31, tzinfo=UTC)]
    events.open().delete("true")
    events.open().insert(make_events(0, list(times)))
    where = f"FROM events WHERE {column} {sign} now() - INTERVAL 1 HOUR"
    by_lance = events.view(f"SELECT id {where}", engine, "lance")
    by_spark = events.view(f"SELECT id, upper(name) AS big {where}", engine, "spark")
    engines = [
        each.definition.rows and each.definition.rows.engine for each in (by_lance, by_spark)
    ]
    assert engines == ["lance", "spark"]
    for step in (-1, 0, 1, 2):
        bound = NOON + step * micro
        expected = [
            n
            for n, time in enumerate(times)
            if time is not None
            and {"<": time < bound, "<=": time <= bound, ">": time > bound, ">=": time >= bound,
                 "=": time == bound}[sign]
        ]  # fmt: skip
        for view in (by_lance, by_spark):
            refresh_at(view, bound + timedelta(hours=1))
            found = sorted(row["id"] for row in view.open().to_table().to_pylist())
            assert found == expected, (view.name, step)


def test_a_day_ends_at_midnight_in_utc(tmp_path: Path) -> None:
    events = Events(tmp_path)
    view = events.view("SELECT id, day FROM events WHERE day = current_date()")
    midnight = datetime(2026, 3, 4, tzinfo=UTC)
    refresh_at(view, midnight - timedelta(microseconds=1))
    assert {row[1] for row in view.rows().values()} <= {date(2026, 3, 3)}
    refresh_at(view, midnight)
    assert {row[1] for row in view.rows().values()} == {date(2026, 3, 4)}


BOUNDS = (
    "now() - INTERVAL 7 DAYS",
    "now() - INTERVAL '90' MINUTE",
    "now() + INTERVAL 2 WEEKS",
    "now() - INTERVAL 1 MONTH",
    "now() - INTERVAL 1 YEAR - INTERVAL 3 SECONDS",
    "localtimestamp() - INTERVAL 5 HOURS",
    "current_date() - 30",
    "current_date() + 1",
    "current_date - INTERVAL 31 DAYS",
    "current_date() - INTERVAL 13 MONTHS",
    "date_sub(current_date(), 365)",
    "date_add(now(), -1)",
    "cast(now() AS date)",
    "to_date(now())",
    "date_trunc('DAY', now() - INTERVAL 1 MONTH)",
)


def test_bounds_are_what_spark_makes_of_them(engine: Engine) -> None:
    """The steps from the clock that Lance is given end where Spark's own arithmetic does."""
    days = [(2024, 2, 29), (2023, 3, 31), (2024, 12, 31), (2025, 1, 1), (2026, 7, 15)]
    times = [(0, 0, 0, 0), (23, 59, 59, 999_999), (12, 30, 1, 5)]
    for parts in [(*day, *time) for day in days for time in times]:
        moment = to_moment(datetime(*parts, tzinfo=UTC))
        asked = [at_moment(_to_spark(text), moment) for text in BOUNDS]
        columns = ", ".join(f"unix_micros(CAST({text} AS timestamp))" for text in asked)
        with open_sql(engine, 0) as sql:
            (row,) = sql.spark.sql(f"SELECT {columns}").collect()
        for text, found in zip(BOUNDS, row, strict=True):
            assert found == _by_steps(text, moment), (text, parts)


def _to_spark(text: str) -> str:
    return check_expression(write_statement(f"SELECT {text}")[0].text.removeprefix("SELECT "))


def _by_steps(text: str, moment: int) -> int:
    tree = write_statement(f"SELECT {text}")[1]
    bound = find_bound(tree.selects[0])
    assert bound is not None, text
    written = at_moment(mark_lance("timestamp", bound.steps), moment)
    time = datetime.fromisoformat(written.removeprefix("timestamp ").strip("'"))
    return to_moment(time.replace(tzinfo=UTC))
