"""`penstock explain`: what a backfill or a refresh would do."""

import click

from penstock.cli.catalog.readable import get_stored
from penstock.cli.lake import lake_option
from penstock.cli.output import as_json_option, echo_plan
from penstock.errors import InvalidRequest
from penstock.sdk.lake import Lake
from penstock.sdk.views.view import View


@click.command()
@click.argument("name")
@click.argument("column", required=False)
@lake_option
@as_json_option
def command(lake: Lake, *, name: str, column: str | None, as_json: bool) -> None:
    """Tell what a refresh of the view NAME, or a backfill of COLUMN of the table NAME, would do.

    \b
    Examples:
      penstock explain docs.chunks
      penstock explain docs.pages embedding --json
    """
    found = get_stored(lake, name)
    if column is not None:
        plan = found.explain_backfill(column)
    elif isinstance(found, View):
        plan = found.explain()
    else:
        raise InvalidRequest(
            f"{name} is a table, and no column is named",
            detail=f"name one: penstock explain {name} COLUMN",
        )
    echo_plan(plan, as_json)
