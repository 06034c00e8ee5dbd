"""`penstock query`: rows of a table or view."""

import click
import msgspec

from penstock.cli.catalog.readable import get_readable, get_stored
from penstock.cli.lake import lake_option
from penstock.cli.output import as_json_option
from penstock.cli.rows import echo_rows
from penstock.errors import InvalidRequest
from penstock.sdk.lake import Lake
from penstock.sdk.tables.query import Query

ROWS = 20


@click.command()
@click.argument("name")
@click.option("--select", metavar="COLUMNS", help="Columns to give: a,b; else all.")
@click.option("--where", metavar="SQL", help="Only rows for which this holds.")
@click.option("--limit", type=click.IntRange(min=1), default=ROWS, show_default=True)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Rows to leave out first.")
@click.option("--text", metavar="WORDS", help="The rows nearest to a text; needs an FTS index.")
@click.option("--vector", metavar="JSON", help="The rows nearest to a vector: [0.1, 0.2].")
@click.option("--version", type=int, metavar="N", help="The table as it was at a version.")
@lake_option
@as_json_option
def command(
    lake: Lake,
    *,
    name: str,
    select: str | None,
    where: str | None,
    limit: int,
    offset: int,
    text: str | None,
    vector: str | None,
    version: int | None,
    as_json: bool,
) -> None:
    """Print rows of the table or view NAME; with --json, one object a line.

    \b
    Examples:
      penstock query shop.items --where "price > 10" --limit 5
      penstock query docs.chunks --text "spill gates" --select id,text --json
    """
    source = get_readable(lake, name) if version is None else get_stored(lake, name).at(version)
    if text is None and vector is None:
        found: Query = source.limit(limit).offset(offset)
    else:
        found = source.search(text=text, vector=_read_vector(vector)).limit(limit).offset(offset)
    if where is not None:
        found = found.where(where)
    if select is not None:
        found = found.select(*(column.strip() for column in select.split(",")))
    echo_rows(found.to_arrow(), as_json)


def _read_vector(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=list[float])
    except msgspec.MsgspecError as error:
        raise InvalidRequest(
            f"--vector is no list of numbers: {error}", detail="write it as [0.1, 0.2]"
        ) from error
