"""`penstock views alter` and `penstock views history`."""

from typing import Any

import click
import msgspec

from penstock.cli.catalog.readable import get_readable
from penstock.cli.jobs.following import follow, no_wait_option
from penstock.cli.lake import lake_option
from penstock.cli.output import as_json_option, echo_json, echo_plan, echo_table
from penstock.errors import InvalidRequest
from penstock.sdk.lake import Lake
from penstock.sdk.show import show_time
from penstock.sdk.views.altering import UNSET, Unset
from penstock.sdk.views.iceberg_views import IcebergView, ViewVersion

PROPERTY_HELP = "Set a property of its table; without a value it is removed."
AUTO_HELP = "Refresh itself after changes, or not: then it has no target lag either."
LAG_HELP = "Refresh itself within so many seconds; 0 takes that away."


@click.command()
@click.argument("name")
@click.option("--query", metavar="SQL", help="Another query.")
@click.option("--dialect", help="The dialect of the SQL: Spark's, or an Iceberg view's own.")
@click.option("--inherited", metavar="COLUMNS", help="A chunker's: the query's columns it has.")
@click.option("--auto-refresh/--no-auto-refresh", default=None, help=AUTO_HELP)
@click.option("--target-lag", type=click.IntRange(min=0), metavar="SECONDS", help=LAG_HELP)
@click.option("--property", "properties", multiple=True, metavar="KEY=VALUE", help=PROPERTY_HELP)
@click.option("--cluster", metavar="NAME", help="The cluster to run on.")
@click.option("--no-preview", is_flag=True, help="Do not try new functions on some rows before.")
@click.option("--explain", is_flag=True, help="Only tell what it would cost.")
@no_wait_option
@lake_option
@as_json_option
@click.pass_context
def alter(
    context: click.Context,
    lake: Lake,
    *,
    name: str,
    query: str | None,
    dialect: str | None,
    inherited: str | None,
    auto_refresh: bool | None,
    target_lag: int | None,
    properties: tuple[str, ...],
    cluster: str | None,
    no_preview: bool,
    explain: bool,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Give the view NAME another query or other settings; rows that stay are not computed again.

    Readers see the old view until the new one is whole. The exit code is 1 when the job fails or is
    canceled; the view is what it was then.

    \b
    Examples:
      penstock views alter shop.dear --query "SELECT id FROM items WHERE price > 20" --explain
      penstock views alter shop.dear --query "SELECT id FROM items WHERE price > 20"
      penstock views alter shop.dear --target-lag 60 --property team=search
    """
    found = get_readable(lake, name)
    if isinstance(found, IcebergView):
        given = (inherited, auto_refresh, target_lag, cluster, properties or None, explain or None)
        if query is None or any(each is not None for each in given):
            raise InvalidRequest(
                f"{name} is an Iceberg view, of which nothing but the query is altered",
                detail="use --query, and --dialect if it is to be another",
            )
        version = found.alter(query, dialect=dialect).version()
        _echo_altered(name, as_json, version=version)
        return
    view = lake.view(name)
    dialect = dialect or "spark"
    columns = None if inherited is None else [each for each in inherited.split(",") if each]
    if explain:
        echo_plan(view.explain_alter(query, inherited=columns, dialect=dialect), as_json)
        return
    lag: int | Unset | None = UNSET if target_lag is None else target_lag or None
    job = view.alter(
        query,
        inherited=columns,
        dialect=dialect,
        auto_refresh=auto_refresh,
        target_lag_seconds=lag,
        properties=_read_properties(properties),
        cluster=cluster,
        preview=not no_preview,
        wait=False,
    )
    if job is not None and job.not_previewed:
        click.echo(f"penstock: new functions were not tried: {job.not_previewed}", err=True)
    if job is not None:
        follow(context, job, no_wait=no_wait, as_json=as_json)
    else:
        _echo_altered(view.name, as_json)


@click.command()
@click.argument("name")
@lake_option
@as_json_option
def history(lake: Lake, *, name: str, as_json: bool) -> None:
    """Tell by which definitions the view NAME was made, newest first.

    \b
    Examples:
      penstock views history shop.dear
    """
    view = get_readable(lake, name)
    if isinstance(view, IcebergView):
        _echo_versions(view.history(), as_json)
        return
    found = lake.view(name).history()
    if as_json:
        echo_json([msgspec.to_builtins(each) for each in found])
        return
    rows: list[tuple[Any, ...]] = [("version", "made", "by", "changed", "query")]
    for each in found:
        made, changed = show_time(each.created_at), ", ".join(each.changed) or "created"
        query = " ".join(each.query.split())[:80]
        rows.append((str(each.version), made, each.created_by or "-", changed, query))
    echo_table(rows)


def _echo_altered(name: str, as_json: bool, **told: int) -> None:
    if as_json:
        echo_json({"name": name, "altered": True, **told})
    else:
        click.echo(f"altered {name}")


def _echo_versions(found: list[ViewVersion], as_json: bool) -> None:
    if as_json:
        echo_json([msgspec.to_builtins(each) for each in found])
        return
    rows = [
        (str(each.version), show_time(each.created_at), each.dialect, " ".join(each.query.split()))
        for each in found
    ]
    echo_table([("version", "made", "dialect", "query"), *rows])


def _read_properties(given: tuple[str, ...]) -> dict[str, str | None] | None:
    """Properties; one without a value is removed."""
    found: dict[str, str | None] = {}
    for each in given:
        key, _, value = each.partition("=")
        if not key:
            raise click.BadParameter(f"{each!r} has no key", param_hint="--property")
        found[key] = value or None
    return found or None
