"""Formatting for notebooks and messages: small tables, times, and escaped HTML."""

import datetime
import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def html_table(
    title: str, rows: Iterable[Sequence[Any]], head: Sequence[str] = (), note: str = ""
) -> str:
    """A table with a title; everything in it is escaped."""
    top = "".join(f"<th style='text-align:left'>{_cell(each)}</th>" for each in head)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{_cell(v)}</td>" for v in row) + "</tr>"
        for row in rows
    )
    below = f"<p>{_cell(note)}</p>" if note else ""
    return (
        f"<div><strong>{_cell(title)}</strong>"
        f"<table>{f'<tr>{top}</tr>' if top else ''}{body}</table>{below}</div>"
    )


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


def _cell(value: Any) -> str:
    return html.escape("" if value is None else str(value))
