"""Queries that read the clock: what they may say, and what is kept of them."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from penstock.model.moments import at_moment, count_marks, define_at, show_moment
from tests.harness.views.definitions import fields, make, refusal
from tests.harness.views.timed_views import EVENTS, to_moment

TABLES = {("shop", "events"): EVENTS}
# The last day of February in a leap year, so that months have an end to stumble over.
LEAP = to_moment(datetime(2024, 2, 29, 13, 14, 15, 161718, tzinfo=UTC))


def define(query: str, **options: Any) -> Any:
    return make(query, schemas=TABLES, **options)


@pytest.mark.parametrize(
    ("written", "bound"),
    [
        ("at > now()", "`at` > timestamp '2024-02-29 13:14:15.161718'"),
        ("at > CURRENT_TIMESTAMP", "`at` > timestamp '2024-02-29 13:14:15.161718'"),
        ("plain < localtimestamp()", "`plain` < timestamp '2024-02-29 13:14:15.161718'"),
        ("now() < at", "timestamp '2024-02-29 13:14:15.161718' < `at`"),
        ("at >= current_date", "`at` >= timestamp '2024-02-29 00:00:00.000000'"),
        ("day = curdate()", "`day` = date '2024-02-29'"),
        ("day >= current_date() - 7", "`day` >= date '2024-02-22'"),
        ("day >= date_sub(now(), 7)", "`day` >= date '2024-02-22'"),
        ("day >= date_add(current_date(), -7)", "`day` >= date '2024-02-22'"),
        ("day > current_date() - INTERVAL 1 YEAR", "`day` > date '2023-02-28'"),
        ("at > now() - INTERVAL '90' MINUTE", "`at` > timestamp '2024-02-29 11:44:15.161718'"),
        ("at > now() - INTERVAL 1 WEEK", "`at` > timestamp '2024-02-22 13:14:15.161718'"),
        ("at > now() + INTERVAL 1 MONTH", "`at` > timestamp '2024-03-29 13:14:15.161718'"),
        ("at > date_trunc('DAY', now())", "`at` > timestamp '2024-02-29 00:00:00.000000'"),
        ("at > cast(now() AS date)", "`at` > timestamp '2024-02-29 00:00:00.000000'"),
    ],
)
def test_comparisons_with_the_clock_are_lances(written: str, bound: str) -> None:
    made = define(f"SELECT id FROM events WHERE {written}")
    assert made.rows.engine == "lance"
    assert at_moment(made.rows.filter, LEAP) == f"({bound})"
    assert [at_moment(each, LEAP) for each in made.clock.conditions] == [f"({bound})"]


@pytest.mark.parametrize(
    "written",
    [
        "hour(at) = hour(now())",
        "day > now() - INTERVAL 1 DAY",
        "at > now() - INTERVAL '1 2' DAY TO HOUR",
        "at > now() - INTERVAL 101 YEARS",
        "at < now() OR name = 'a' || string(current_date())",
        "now() BETWEEN at AND plain",
    ],
)
def test_other_conditions_are_sparks(written: str) -> None:
    made = define(f"SELECT id FROM events WHERE {written}")
    assert (made.rows.engine, made.clock.conditions) == ("spark", None)


def test_spark_gets_literals_of_the_right_types() -> None:
    made = define("SELECT id, now() AS a, current_date AS b, localtimestamp() AS c FROM events")
    kinds = dict(fields(made))
    assert [kinds[name] for name in "abc"] == [
        "timestamp[us, tz=UTC]",
        "date32[day]",
        "timestamp[us]",
    ]
    at: Any = define_at(made, LEAP)
    assert at.sql.endswith(
        "(TIMESTAMP_LTZ '2024-02-29 13:14:15.161718Z') AS a, (DATE '2024-02-29') AS b, "
        "(TIMESTAMP_NTZ '2024-02-29 13:14:15.161718') AS c FROM `source_1` AS `events`"
    )
    assert [column.reads_clock for column in at.rows.columns] == [False, True, True, True]
    assert count_marks(at.sql) == 0


def test_texts_and_names_are_not_the_clock() -> None:
    made = define("SELECT id, 'now()' AS `now()`, name AS current_date FROM events")
    assert made.clock is None


def test_the_moment_is_no_part_of_what_a_view_is() -> None:
    query = "SELECT id FROM events WHERE at > now()"
    made = define(query)
    assert made.digest == define(query).digest == define_at(made, LEAP).digest
    assert made.digest != define("SELECT id FROM events WHERE at >= now()").digest


def test_conditions_without_the_clock_do_not_count() -> None:
    made = define("SELECT upper(name) AS n FROM events WHERE at > now() AND upper(name) > 'A'")
    assert (made.rows.engine, len(made.clock.conditions)) == ("spark", 1)
    assert not made.clock.beyond_filter


def test_a_group_tells_where_it_reads_the_clock() -> None:
    def beyond(having: str) -> bool:
        made = define(
            f"SELECT day, count(*) AS n FROM events WHERE at > now() GROUP BY day{having}"
        )
        assert made.shape == "keys"
        return bool(made.clock.beyond_filter)

    assert not beyond("")
    assert beyond(" HAVING max(at) < now()")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT id, current_time() AS t FROM events", "current_time is not the same"),
        ("SELECT id, rand() AS t FROM events", "rand is not the same"),
        ("SELECT id, unix_timestamp() AS t FROM events", "unix_timestamp is not the same"),
        ("SELECT id, current_user AS t FROM events", "current_user is not the same"),
        ("SELECT id, now(3) AS t FROM events", "write now()"),
        ("SELECT id, `now`() AS t FROM events", "write now()"),
        ("SELECT id, x.now() AS t FROM events", "not one of Spark's own"),
        ("SELECT id, localtimestamp AS t FROM events", "localtimestamp"),
        ("SELECT id AS current_date, current_date AS t FROM events", "write `current_date`"),
        ({"query": "SELECT id FROM events WHERE at > now()"}, "now is not the same"),
    ],
)
def test_what_is_no_clock_is_refused(query: Any, said: str) -> None:
    assert said in refusal(query, schemas=TABLES)


def test_a_column_of_that_name_is_not_guessed_at() -> None:
    named = {("shop", "t"): pa.schema([("id", pa.int64()), ("Current_Date", pa.date32())])}
    assert "back-quotes" in refusal("SELECT id, current_date AS d FROM t", schemas=named)
    assert make("SELECT id, `current_date` AS d FROM t", schemas=named).clock is None
    assert make("SELECT id, current_date() AS d FROM t", schemas=named).clock is not None


def test_other_dialects_and_iceberg_views_may_read_the_clock() -> None:
    query = {"sql": "SELECT id FROM events WHERE at > current_timestamp", "dialect": "trino"}
    made: Any = make(query, schemas=TABLES)
    assert len(made.clock.conditions) == 1
    views = {("shop", "recent"): ("SELECT id FROM events WHERE at > now()", "spark", ("shop",))}
    made = make("SELECT count(*) AS n FROM recent", schemas=TABLES, views=views)
    assert (made.shape, made.clock.conditions) == ("whole", None)


def test_a_moment_is_shown_to_the_microsecond() -> None:
    assert show_moment(LEAP) == "2024-02-29T13:14:15.161718Z"
    assert show_moment(-1) == "1969-12-31T23:59:59.999999Z"
