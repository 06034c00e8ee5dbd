"""Views whose queries read the clock: the moment of a refresh decides, and time makes rows move."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest
from penstock.jobs.refresh.cascade import run_refreshes
from penstock.jobs.refresh.view_notes import find_pins
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import UpstreamSpec
from penstock.model.views import SYSTEM_COLUMNS
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.local_engine import LOCAL_ENGINE
from tests.harness.views.definitions import make
from tests.harness.views.local_views import LocalView
from tests.harness.views.timed_views import NOON, Events, refresh_at, to_moment

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
