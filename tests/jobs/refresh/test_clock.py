"""Views whose queries read the clock: the moment of a refresh decides, and time makes rows move."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest
from penstock.jobs.refresh.cascade import run_refreshes
from penstock.jobs.refresh.view_notes import find_pins
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import UpstreamSpec
from penstock.model.moments import at_moment, mark_lance, mark_spark
from penstock.model.views import SYSTEM_COLUMNS, Clock
from penstock.sql.lance.clock_bounds import find_bound
from penstock.sql.spark.text.checked_sql import check_expression, write_statement
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.local_engine import LOCAL_ENGINE
from tests.harness.views.definitions import make
from tests.harness.views.function_views import FunctionView, make_view
from tests.harness.views.local_views import LocalView
from tests.harness.views.timed_views import NOON, Events, make_events, refresh_at, to_moment

Row = dict[str, Any]
WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Case:
    """A query, and what it means in Python at a moment."""

    query: str
    expect: Callable[[list[Row], datetime], list[tuple[Any, ...]]]
    # How a refresh follows it when time passes.
    mode: str = "incremental"


def last_week(rows: list[Row], now: datetime) -> list[Row]:
    return [row for row in rows if row["at"] is not None and row["at"] > now - WEEK]


def count_days(rows: list[Row], now: datetime) -> list[tuple[Any, ...]]:
    days = [row["day"] for row in last_week(rows, now)]
    return [(day, days.count(day)) for day in set(days)]


CASES = {
    "rows by Lance": Case(
        "SELECT id, name FROM events WHERE at > now() - INTERVAL 7 DAYS",
        lambda rows, now: [(row["id"], row["name"]) for row in last_week(rows, now)],
    ),
    "rows by Spark, with conditions that Lance can check": Case(
        "SELECT id, upper(name) AS big FROM events WHERE at > now() - INTERVAL 7 DAYS "
        "AND upper(name) <> 'N1'",
        lambda rows, now: [
            (row["id"], row["name"].upper()) for row in last_week(rows, now) if row["name"] != "n1"
        ],
    ),
    "rows that only Spark can tell": Case(
        "SELECT id FROM events WHERE pmod(hour(at), 3) = pmod(day(current_date()), 3)",
        lambda rows, now: [
            (row["id"],)
            for row in rows
            if row["at"] is not None and row["at"].hour % 3 == now.day % 3
        ],
    ),
    "dates between two bounds": Case(
        "SELECT id FROM events WHERE day BETWEEN date_sub(current_date(), 3) AND current_date",
        lambda rows, now: [
            (row["id"],)
            for row in rows
            if row["day"] and now.date() - timedelta(days=3) <= row["day"] <= now.date()
        ],
    ),
    "an output that reads the clock": Case(
        "SELECT id, at < now() AS is_over, current_date() AS today FROM events",
        lambda rows, now: [
            (row["id"], None if row["at"] is None else row["at"] < now, now.date()) for row in rows
        ],
    ),
    "the first rows": Case(
        "SELECT id FROM events WHERE plain >= localtimestamp() - INTERVAL 2 DAYS LIMIT 5",
        lambda rows, now: [
            (row["id"],)
            for row in rows
            if row["at"] is not None and row["at"] >= now - timedelta(days=2)
        ],
    ),
    "groups": Case(
        "SELECT day, count(*) AS n FROM events WHERE at > now() - INTERVAL 7 DAYS GROUP BY day",
        count_days,
    ),
    "groups whose outputs read the clock": Case(
        "SELECT day, max(date_diff(current_date(), day)) AS age FROM events GROUP BY day",
        lambda rows, now: [
            (day, None if day is None else (now.date() - day).days)
            for day in {row["day"] for row in rows}
        ],
        "full",
    ),
    "a join": Case(
        "SELECT a.id FROM events a JOIN events b ON a.id = b.id "
        "WHERE b.at > now() - INTERVAL 7 DAYS",
        lambda rows, now: [(row["id"],) for row in last_week(rows, now)],
        "full",
    ),
}
MOMENTS = [0, 5, 5.5, 30, 200, -40, 0]


def show(view: Any) -> list[str]:
    found = view.open().to_table()
    own = [name for name in found.schema.names if name not in SYSTEM_COLUMNS]
    return sorted(repr(tuple(row.values())) for row in found.select(own).to_pylist())


def follow(events: Events, case: Case, engine: Engine, moments: list[float], changes: int) -> None:
    view = events.view(case.query, engine)
    for number, hours in enumerate(moments):
        now = NOON + timedelta(hours=hours)
        done = refresh_at(view, now)
        expected = sorted(map(repr, case.expect(events.rows(), now)))
        if "LIMIT" in case.query:
            limit = view.open().count_rows()
            assert limit == min(5, len(expected)), done
            assert set(show(view)) <= set(expected), done
        else:
            assert show(view) == expected, done
        assert done.watermark.moment == to_moment(now)
        assert done.moment == f"{now:%Y-%m-%dT%H:%M:%S.%f}Z"
        if number and hours != moments[number - 1] and not changes:
            assert done.mode in (case.mode, "none"), done
        for _ in range(changes):
            events.change()


QUICK = (
    "rows by Lance",
    "rows by Spark, with conditions that Lance can check",
    "rows that only Spark can tell",
    "an output that reads the clock",
    "groups",
)


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_time_makes_rows_enter_and_leave(name: str, engine: Engine, tmp_path: Path) -> None:
    follow(Events(tmp_path, 1), CASES[name], engine, [0, 5, 100, 70], changes=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", CASES)
def test_views_follow_time_and_changes(
    name: str, seed: int, engine: Engine, tmp_path: Path
) -> None:
    follow(Events(tmp_path, seed), CASES[name], engine, MOMENTS, changes=2)


def test_only_what_entered_and_left_is_touched(tmp_path: Path) -> None:
    events = Events(tmp_path)
    view = events.view(CASES["rows by Lance"].query)
    refresh_at(view, NOON)
    before = {row["id"] for row in last_week(events.rows(), NOON)}
    later = NOON + timedelta(hours=50)
    after = {row["id"] for row in last_week(events.rows(), later)}
    done = refresh_at(view, later)
    assert (done.mode, done.rows_inserted, done.rows_updated) == ("incremental", 0, 0)
    assert done.rows_deleted == len(before - after) > 0
    assert (
        done.reason == f"{len(before - after)} rows of the source came into the filter's time "
        "or left it"
    )


def test_nothing_entered_and_nothing_left(tmp_path: Path) -> None:
    events = Events(tmp_path)
    view = events.view(CASES["rows by Lance"].query)
    refresh_at(view, NOON)
    # Times lie seven hours apart.
    done = refresh_at(view, NOON + timedelta(microseconds=1))
    assert (done.mode, done.version) == ("none", view.open().version)
    assert done.watermark.moment == to_moment(NOON) + 1


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


# What else a refresh is -----------------------------------------------------------------------


def test_later_attempts_use_the_moment_of_the_first(tmp_path: Path) -> None:
    events = Events(tmp_path)
    view = events.view("SELECT id FROM events WHERE at < now()")
    job = str(uuid.uuid4())
    assert view.die_at("versions pinned", job) != 0
    pins = find_pins(view.catalog.locate(("n", "v"), "").place(), job)
    assert pins is not None
    done = view.refresh(HeldAttempt(job=job, number=2))
    assert done.watermark.moment == pins.moment
    # One that only reports tells the same.
    view.watermark = None
    again = view.refresh(HeldAttempt(job=job, number=3))
    assert (again.moment, again.version) == (done.moment, done.version)


def test_all_views_of_a_cascade_have_one_moment(tmp_path: Path) -> None:
    events = Events(tmp_path)
    one = events.view(CASES["rows by Lance"].query, name="one")
    schemas = {("n", "one"): pa.schema([("id", pa.int64()), ("name", pa.string())])}
    top = make("SELECT id FROM one WHERE id < day(now()) * 1000", schemas=schemas, namespace=("n",))
    source = msgspec.structs.replace(top.sources[0], id=one.id)
    assert top.rows is not None
    # Without a JVM.
    rows = msgspec.structs.replace(top.rows, engine="lance", filter="id < 1000")
    top = msgspec.structs.replace(top, sources=(source,), rows=rows)
    two = LocalView(tmp_path, top, name="two").create()
    upstream = (UpstreamSpec(**msgspec.structs.asdict(one.spec())),)
    done = run_refreshes(
        two.spec(upstream=upstream), two.catalog, lambda of=None: LOCAL_ENGINE, HeldAttempt()
    )
    assert done.moment is not None
    assert {done.moment} == {each.moment for each in done.upstream.values()}


@pytest.mark.slow
def test_a_view_is_verified_at_its_moment(engine: Engine, tmp_path: Path) -> None:
    events = Events(tmp_path)
    for name in ("rows by Lance", "rows that only Spark can tell", "groups", "a join"):
        view = events.view(CASES[name].query, engine, name.replace(" ", "_"))
        done = refresh_at(view, NOON, verify=True)
        assert done.certificate is not None
        told = done.certificate["is_equal"], done.certificate["rows"], done.certificate["moment"]
        assert told == (True, view.open().count_rows(), done.moment)
        later = refresh_at(view, NOON + timedelta(hours=90), verify=True)
        assert later.certificate is not None
        assert later.certificate["is_equal"]


def test_a_refresh_that_must_follow_rows_is_refused_when_time_changes_all(
    engine: Engine, tmp_path: Path
) -> None:
    events = Events(tmp_path)
    view = events.view(CASES["groups whose outputs read the clock"].query, engine)
    refresh_at(view, NOON)
    with pytest.raises(InvalidRequest, match="reads the clock outside of WHERE"):
        refresh_at(view, NOON + timedelta(days=1), mode="incremental")


def test_a_plan_says_what_time_changes(tmp_path: Path) -> None:
    events = Events(tmp_path)
    view = events.view(CASES["a join"].query)
    assert view.explain()["reason"] == "the view was never filled"
    view = events.view(CASES["rows by Lance"].query, name="w")
    refresh_at(view, datetime(2026, 3, 1, tzinfo=UTC))
    plan = view.explain()
    assert (plan["mode"], plan["rows_to_delete"] > 0) == ("incremental", True)


# Functions ------------------------------------------------------------------------------------


def timed_chunks(folder: Path, engine: Engine, language: str, *, is_known: bool) -> FunctionView:
    """A chunker over events whose filter reads the clock."""
    by_lance = f"(`at` > {mark_lance('timestamp', ())})"
    where = by_lance if language == "lance" else f"at > {mark_spark('timestamp')}"
    view = make_view(
        folder,
        make_events(0, [NOON + timedelta(hours=n) for n in range(8)]),
        lambda name: [{"word": name}] if name != "n3" else [],
        "chunker",
        {"word": pa.string()},
        inputs=("name",),
        columns={"name": "name", "id": "id"},
        inherited=("id",),
        reads=("name", "id", "at"),
        where=where,
        language=language,
        engine=engine,
    )
    clock = Clock(conditions=(by_lance,) if is_known else None)
    view.definition = msgspec.structs.replace(view.definition, clock=clock)
    return view


@pytest.mark.parametrize(
    "language", ["lance", pytest.param("spark", marks=pytest.mark.slow), "spark only"]
)
def test_a_chunker_is_called_for_rows_that_enter(
    language: str, engine: Engine, tmp_path: Path
) -> None:
    word, _, only = language.partition(" ")
    view = timed_chunks(tmp_path, engine, word, is_known=not only)
    for hours, called in ((3.5, 4), (5.5, 0), (1.5, 4), (1.6, 0)):
        refresh_at(view, NOON + timedelta(hours=hours))
        ids = [n for n in range(8) if n > hours and n % 5 != 3]
        assert [row[0] for row in view.show("id")] == ids
        assert len(view.take_calls()) == called


def test_a_udtf_is_called_for_partitions_whose_rows_change_with_time(tmp_path: Path) -> None:
    where = f"(`at` > {mark_lance('timestamp', ())})"
    view = make_view(
        tmp_path,
        make_events(0, [NOON + timedelta(hours=n) for n in range(10)]),
        lambda table: [{"n": len(table)}],
        "udtf",
        {"n": pa.int64()},
        inputs=("id",),
        columns={"id": "id", "name": "name"},
        reads=("id", "name", "at"),
        partition_by="name",
        where=where,
        show=lambda table: str(table["id"].to_pylist()),
    )
    view.definition = msgspec.structs.replace(view.definition, clock=Clock(conditions=(where,)))
    refresh_at(view, NOON - timedelta(hours=1))
    assert len(view.take_calls()) == 5
    refresh_at(view, NOON + timedelta(hours=1.5))
    assert view.take_calls() == ["[5]", "[6]"]
    assert view.show("__partition", "n") == [(f'"n{n}"', 1 if n < 2 else 2) for n in range(5)]
    refresh_at(view, NOON + timedelta(hours=5.5))
    assert len(view.show("n")) == 4
