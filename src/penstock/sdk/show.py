"""Formatting for notebooks and messages: times, states of rows, what fills a column."""

import datetime
from collections.abc import Mapping
from typing import Any


def to_time(millis: int | str) -> datetime.datetime:
    """A time of the server's, in UTC."""
    return datetime.datetime.fromtimestamp(int(millis) / 1000, datetime.UTC)


def find_time(millis: int | str | None) -> datetime.datetime | None:
    return None if millis is None else to_time(millis)


def show_time(at: datetime.datetime | None) -> str:
    """A time as people read it."""
    return "never" if at is None else at.strftime("%Y-%m-%d %H:%M:%S UTC")


def show_states(states: Mapping[str, int]) -> str:
    """How many rows of a column are in each state, as far as there are any."""
    return ", ".join(f"{count:,} {state}" for state, count in states.items() if count) or "no rows"


def show_filler(found: Mapping[str, Any] | None) -> str:
    """What fills a column, and its row states, as far as known."""
    if found is None:
        return ""
    states = found.get("rows_by_state")
    return (
        f"{found.get('function') or 'SQL'}{'' if states is None else f' ({show_states(states)})'}"
    )
