"""Schedules without a clock: which expressions there are, and when they tick."""

from datetime import UTC, datetime

import pytest

from penstock.catalog.materialized_views.cron import Schedule, find_tick, plan_due, read_schedule
from penstock.errors import InvalidRequest


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


DAILY = Schedule("0 6 * * *")


@pytest.mark.parametrize(
    ("last", "now", "seconds"),
    [
        ("2026-03-01T05:00", "2026-03-01T05:59:59", 1),
        ("2026-03-01T05:00", "2026-03-01T06:00", 0),
        ("2026-03-01T06:00", "2026-03-01T06:00:01", 86_399),
        # A week without a server makes one refresh.
        ("2026-03-01T05:00", "2026-03-08T07:00", 0),
        ("2026-03-08T07:00", "2026-03-08T07:00", 82_800),
    ],
)
def test_a_refresh_is_due_once_a_tick_has_passed(last: str, now: str, seconds: float) -> None:
    assert plan_due(DAILY, at(last), at(now)) == seconds


def test_a_time_zone_moves_the_ticks_with_its_clocks() -> None:
    berlin = read_schedule("0 6 * * *", "Europe/Berlin")
    assert berlin is not None
    assert find_tick(berlin, at("2026-03-28T12:00")) == at("2026-03-29T04:00")
    assert find_tick(berlin, at("2026-03-27T12:00")) == at("2026-03-28T05:00")


def list_ticks(expression: str, zone: str | None, first: str, last: str) -> list[str]:
    """All ticks between two moments, in UTC; each is later than the one before."""
    found, tick = list[str](), find_tick(Schedule(expression, zone), at(first))
    while tick is not None and tick <= at(last):
        found.append(datetime.fromtimestamp(tick / 1000, UTC).strftime("%d %H:%M"))
        after = find_tick(Schedule(expression, zone), tick)
        assert after is None or after > tick
        tick = after
    return found


# On 29 March 2026 clocks in Berlin go from 2:00 (1:00 UTC) to 3:00; on 25 October from 3:00 (1:00
# UTC) back to 2:00.
SPRING, AUTUMN = ("2026-03-28T22:00", "2026-03-29T04:00"), ("2026-10-24T22:00", "2026-10-25T04:00")


@pytest.mark.parametrize(
    ("expression", "spring", "autumn"),
    [
        # A time that is left out comes when the clocks are moved, one that is repeated once.
        ("30 2 * * *", ["29 01:00"], ["25 00:30"]),
        ("0 2 * * *", ["29 01:00"], ["25 00:00"]),
        ("0 3 * * *", ["29 01:00"], ["25 02:00"]),
        ("30 1 * * *", ["29 00:30"], ["24 23:30"]),
        # Several left out come as one.
        ("0,30 2 * * *", ["29 01:00"], ["25 00:00", "25 00:30"]),
        (
            "30 1-3 * * *",
            ["29 00:30", "29 01:00", "29 01:30"],
            ["24 23:30", "25 00:30", "25 02:30"],
        ),
        # With a star, it goes by the clock on the wall alone.
        (
            "0 * * * *",
            [*("28 23:00", "29 00:00", "29 01:00", "29 02:00", "29 03:00", "29 04:00")],
            [*("24 23:00", "25 00:00", "25 01:00", "25 02:00", "25 03:00", "25 04:00")],
        ),
        ("*/30 2 * * *", [], ["25 00:00", "25 00:30", "25 01:00", "25 01:30"]),
    ],
)
def test_summer_time_begins_and_ends(expression: str, spring: list[str], autumn: list[str]) -> None:
    assert list_ticks(expression, "Europe/Berlin", *SPRING) == spring
    assert list_ticks(expression, "Europe/Berlin", *AUTUMN) == autumn


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Africa/Casablanca"])
@pytest.mark.parametrize("expression", ["30 2 * * *", "15 1 * * *", "30 1-4 * * *", "*/20 * * * *"])
def test_the_next_tick_is_never_in_the_past(expression: str, zone: str) -> None:
    """Otherwise a view whose ticks were noted in a repeated hour is refreshed all the time."""
    schedule = Schedule(expression, zone)
    # Where each of these zones moves its clocks back, and Berlin and New York forward.
    for first in (
        "2026-02-14T22:00",
        "2026-03-08T04:00",
        *(SPRING[0], AUTUMN[0], "2026-11-01T03:00"),
    ):
        start = at(first)
        ticks, last = list[int](), start
        while last < start + 30 * 3_600_000:
            last = find_tick(schedule, last) or 0
            ticks.append(last)
        for now in range(start, start + 6 * 3_600_000, 300_000):
            assert find_tick(schedule, now) == next(tick for tick in ticks if tick > now)


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("0 0 31 * *", "2026-01-31T00:00", "2026-03-31T00:00"),
        ("0 0 L * *", "2026-02-01T00:00", "2026-02-28T00:00"),
        ("0 0 L * *", "2028-02-01T00:00", "2028-02-29T00:00"),
        ("0 0 29 2 *", "2026-01-01T00:00", "2028-02-29T00:00"),
        # 2100 is no leap year.
        ("0 0 29 2 *", "2096-02-29T00:00", "2104-02-29T00:00"),
        # A day of the month or a day of the week, whichever comes first.
        ("0 0 13 * FRI", "2026-11-01T00:00", "2026-11-06T00:00"),
        ("0 0 13 * FRI", "2026-11-06T00:00", "2026-11-13T00:00"),
        ("59 23 31 12 *", "2026-12-31T23:59", "2027-12-31T23:59"),
        ("* * * * *", "2026-11-18T21:59:59.999", "2026-11-18T22:00"),
    ],
)
def test_calendars_have_their_ways(expression: str, after: str, expected: str) -> None:
    assert find_tick(Schedule(expression), at(after)) == at(expected)


def test_a_year_of_missed_minutes_is_one_refresh() -> None:
    every_minute = Schedule("* * * * *")
    assert plan_due(every_minute, at("2025-11-18T21:00"), at("2026-11-18T21:00:30")) == 0
    assert plan_due(every_minute, at("2026-11-18T21:00:30"), at("2026-11-18T21:00:30")) == 30


@pytest.mark.parametrize(
    "text", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 FEB *", "0 0 */31 * MON#5"]
)
def test_a_day_that_never_comes_is_told(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"a day that none of these|no day is like that"):
        read_schedule(text, "Europe/Berlin")


def test_a_schedule_is_kept_in_one_spelling() -> None:
    assert read_schedule(" 0  6\t* * MON-FRI", "") == Schedule("0 6 * * MON-FRI", None)
    assert read_schedule(None, None) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "* * * *", "* * * * * *", "@daily", "61 * * * *", "0 0 31 2 *", "a b c d e"),
        *("x" * 500, "* " * 300, "*/0 * * * *", "0 0 * * 1#9", "0 0 \u0660 * *", "* * * * \x00"),
    ],
)
def test_what_is_no_schedule_is_told_with_an_example(text: str) -> None:
    with pytest.raises(InvalidRequest, match="refresh_schedule") as caught:
        read_schedule(text, None)
    assert "'0 6 * * *'" in caught.value.detail


@pytest.mark.parametrize(
    "zone", ["Nowhere/Else", "../../etc/passwd", "/etc/passwd", "Europe", "\x00"]
)
def test_a_time_zone_that_is_not_known_is_told(zone: str) -> None:
    with pytest.raises(InvalidRequest, match="refresh_schedule_timezone") as caught:
        read_schedule("0 6 * * *", zone)
    assert "Europe/Berlin" in caught.value.detail
