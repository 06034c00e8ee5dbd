"""`penstock views create`: a view of either kind."""

from typing import Any, Literal

import click

from penstock.cli.catalog.dry_runs import check_free
from penstock.cli.jobs.following import follow, no_wait_option
from penstock.cli.lake import lake_option
from penstock.cli.output import as_json_option, dry_run_option, echo_json
from penstock.errors import InvalidRequest
from penstock.sdk.connection.names import read_id
from penstock.sdk.lake import Lake

Kind = Literal["materialized", "iceberg"]

kind_option = click.option(
    "--kind",
    type=click.Choice(["materialized", "iceberg"]),
    default="materialized",
    show_default=True,
    help="Whether it holds rows, or is a query with a name.",
)


timezone_option = click.option(
    "--timezone", metavar="NAME", help="The time zone of the schedule, as Europe/Berlin; else UTC."
)


@click.command()
@click.argument("name")
@click.argument("sql")
@click.option("--dialect", default="spark", show_default=True, help="The dialect of the SQL.")
@kind_option
@click.option("--auto-refresh", is_flag=True, help="Let it refresh itself after changes.")
@click.option(
    "--refresh-schedule", metavar="CRON", help="Let it refresh itself by the clock: '0 6 * * *'."
)
@timezone_option
@click.option("--with-data", is_flag=True, help="Fill it at once.")
@no_wait_option
@dry_run_option
@lake_option
@as_json_option
@click.pass_context
def create(
    context: click.Context,
    lake: Lake,
    *,
    name: str,
    sql: str,
    dialect: str,
    kind: Kind,
    auto_refresh: bool,
    refresh_schedule: str | None,
    timezone: str | None,
    with_data: bool,
    no_wait: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make the view NAME of the rows that SQL gives; those of functions are made with the SDK.

    \b
    Examples:
      penstock views create shop.dear "SELECT id, price FROM items WHERE price > 10" --with-data
      penstock views create shop.cheap "SELECT id FROM items WHERE price < 2" --kind iceberg
    """
    if kind == "iceberg" and (auto_refresh or refresh_schedule or with_data):
        raise InvalidRequest(
            "an Iceberg view holds no rows that could be refreshed",
            detail="leave --auto-refresh, --refresh-schedule and --with-data out",
        )
    if dry_run:
        check_free(lake, read_id(name))
        told: dict[str, Any] = {"name": name, "sql": sql, "dialect": dialect, "dry_run": True}
        told["unchecked"] = ["sql"]
        if as_json:
            echo_json(told)
        else:
            click.echo(
                f"would create the view {name}, if its SQL is right, which is not checked: {sql}"
            )
        return
    if kind == "iceberg":
        made = lake.create_iceberg_view(name, sql, dialect=dialect)
        if as_json:
            echo_json({"name": made.name, "version": made.version()})
        else:
            click.echo(f"created {made.name}")
        return
    view = lake.create_view(
        name,
        sql,
        dialect=dialect,
        auto_refresh=auto_refresh,
        refresh_schedule=refresh_schedule,
        refresh_schedule_timezone=timezone,
    )
    if with_data:
        follow(context, view.refresh(wait=False), no_wait=no_wait, as_json=as_json)
    elif as_json:
        echo_json({"name": view.name, "version": view.version()})
    else:
        click.echo(f"created {view.name}; `penstock views refresh {view.name}` fills it")
