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
