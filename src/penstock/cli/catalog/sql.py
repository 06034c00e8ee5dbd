"""`penstock sql`: run a query over tables and views."""

import sys
from pathlib import Path

import click

from penstock.cli.lake import lake_option
from penstock.cli.rows import echo_rows, write_rows
from penstock.errors import InvalidRequest
from penstock.sdk.lake import Lake

FORMATS = ("table", "json", "csv", "arrow", "parquet")
# These are no text for a terminal.
BINARY = ("arrow", "parquet")


@click.command()
@click.argument("statement")
@click.option("--namespace", metavar="NAME", help="Where single names are looked up first.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Keep so many rows.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Give up after so long.")
@click.option("--dialect", default="spark", show_default=True, help="Whose SQL it is.")
@click.option("--format", "format", type=click.Choice(FORMATS), help="table; in a file csv.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to a file instead.",
)
@lake_option
def command(
    lake: Lake,
    *,
    statement: str,
    namespace: str | None,
    limit: int | None,
    timeout: float | None,
    dialect: str,
    format: str | None,
    output: Path | None,
) -> None:
    """Run STATEMENT, a query over tables and views, and print its rows; - reads it from stdin.

    \b
    Examples:
      penstock sql "SELECT kind, count(*) AS n FROM shop.items GROUP BY kind"
      penstock sql --namespace shop "SELECT * FROM items" --format parquet -o items.parquet
    """
    chosen = format or ("table" if output is None else "csv")
    if chosen in BINARY and output is None and sys.stdout.isatty():
        raise InvalidRequest(f"{chosen} is no text", detail="name a file with -o")
    if chosen == "table" and output is not None:
        raise InvalidRequest("a table is for a terminal", detail="choose csv, or leave -o out")
    text = sys.stdin.read() if statement == "-" else statement
    found = lake.sql(
        text, namespace=namespace, limit=limit, timeout=timeout, dialect=dialect
    ).to_arrow()
    if chosen == "table":
        echo_rows(found, as_json=False)
    elif output is None:
        write_rows(found, chosen, sys.stdout.buffer)
    else:
        with output.open("wb") as file:
            write_rows(found, chosen, file)
