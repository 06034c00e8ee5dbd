"""Output that commands share: tables, JSON, times, colours, and confirmations."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
dry_run_option = click.option(
    "-n", "--dry-run", is_flag=True, help="Tell what would be done, and do nothing."
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask whether to go on.")

COLOURS = {
    "SUCCEEDED": "green",
    "RUNNING": "cyan",
    "PAUSED": "magenta",
    "FAILED": "red",
    "CANCELED": "yellow",
}


def echo_json(value: Any) -> None:
    """Print one line of JSON."""
    click.echo(msgspec.json.encode(value).decode())


def echo_plan(plan: Mapping[str, Any], as_json: bool) -> None:
    """Print what a job would do."""
    if as_json:
        echo_json(dict(plan))
    else:
        click.echo(str(plan))


def echo_table(rows: list[tuple[str, ...]]) -> None:
    """Print aligned columns; the first row has their names."""
    widths = [
        max(len(click.unstyle(cell)) for cell in column) for column in zip(*rows, strict=True)
    ]
    for row in rows:
        cells = (
            cell + " " * (width - len(click.unstyle(cell)))
            for cell, width in zip(row, widths, strict=True)
        )
        click.echo("  ".join(cells).rstrip())


def echo_pairs(pairs: list[tuple[str, str]]) -> None:
    """Print names and values, one pair a line."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        click.echo(f"{name:<{width}}  {value}".rstrip())


def show_state(state: str) -> str:
    """A job's state in its colour, which only shows on a terminal."""
    colour = COLOURS.get(state)
    return click.style(state, fg=colour) if colour else state


def show_time(millis: int | None, without: str) -> str:
    if millis is None:
        return without
    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def confirm(question: str, yes: bool) -> None:
    """Ask for confirmation on a terminal; scripts are not asked."""
    if not yes and sys.stdin.isatty():
        click.confirm(question, abort=True)
