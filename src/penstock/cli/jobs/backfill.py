"""`penstock backfill`: fill a computed column where it needs it."""

from typing import Any

import click

from penstock.cli.catalog.readable import get_stored
from penstock.cli.jobs.following import follow, no_wait_option
from penstock.cli.lake import lake_option
from penstock.cli.output import as_json_option, dry_run_option, echo_plan
from penstock.sdk.lake import Lake


@click.command()
@click.argument("table")
@click.argument("column")
@click.option("--where", metavar="SQL", help="Only rows for which this holds.")
@click.option("--force", is_flag=True, help="Compute rows again that are right already.")
@click.option("--errors-only", is_flag=True, help="Only rows that the function failed on before.")
@click.option("--cluster", metavar="NAME", help="The cluster to run on.")
@no_wait_option
@dry_run_option
@lake_option
@as_json_option
@click.pass_context
def command(
    context: click.Context,
    lake: Lake,
    *,
    table: str,
    column: str,
    where: str | None,
    force: bool,
    errors_only: bool,
    cluster: str | None,
    no_wait: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Fill COLUMN of TABLE where it needs it, and wait for the job.

    The exit code is 1 when the job fails or is canceled, and 3 when the function failed on rows.

    \b
    Examples:
      penstock backfill docs.pages embedding --dry-run
      penstock backfill docs.pages embedding
      penstock backfill docs.pages embedding --errors-only --no-wait
    """
    given = {"where": where, "force": force, "errors_only": errors_only, "cluster": cluster}
    options: dict[str, Any] = {key: value for key, value in given.items() if value}
    found = get_stored(lake, table)
    if dry_run:
        echo_plan(found.explain_backfill(column, **options), as_json)
        return
    job = found.backfill(column, wait=False, **options)
    follow(context, job, no_wait=no_wait, as_json=as_json)
