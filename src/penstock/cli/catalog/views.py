"""`penstock views`: views, made, altered and dropped, and refreshed if they are materialized."""

from typing import Any

import click
import msgspec

from penstock.cli.catalog.dry_runs import find_dropped
from penstock.cli.catalog.readable import get_readable
from penstock.cli.catalog.rename import echo_rename, rename_options
from penstock.cli.catalog.view_alterations import alter, history
from penstock.cli.catalog.view_creation import Kind, create, kind_option, timezone_option
from penstock.cli.jobs.following import follow, no_wait_option
from penstock.cli.lake import lake_option
from penstock.cli.output import (
    as_json_option,
    confirm,
    dry_run_option,
    echo_json,
    echo_pairs,
    echo_plan,
    echo_table,
    yes_option,
)
from penstock.errors import InvalidRequest, JobCanceled, JobFailed
from penstock.sdk.lake import Lake
from penstock.sdk.views.iceberg_views import IcebergView
from penstock.sdk.views.view import Mode

mode_option = click.option(
    "--mode",
    type=click.Choice(["auto", "incremental", "full"]),
    help="Fail rather than compute everything, or compute everything.",
)


@click.group()
def command() -> None:
    """Views: list, make, alter, rename, drop; refresh, explain, verify those with rows.

    A materialized view holds rows, an Iceberg view is a query that is run whenever it is read.
    """


command.add_command(alter)
command.add_command(create)
command.add_command(history)


@command.command(name="list")
@click.argument("namespace", required=False)
@kind_option
@lake_option
@as_json_option
def list_views(lake: Lake, *, namespace: str | None, kind: Kind, as_json: bool) -> None:
    """List the views of NAMESPACE, or all, with their freshness, or with their queries.

    \b
    Examples:
      penstock views list
      penstock views list docs
      penstock views list docs --kind iceberg
    """
    if kind == "iceberg":
        named = [
            (name, lake.iceberg_view(name).query()) for name in lake.views(namespace, kind=kind)
        ]
        if as_json:
            echo_json([{"name": name, "kind": kind, "query": query} for name, query in named])
        else:
            echo_table([("name", "query"), *named])
        return
    found = [(view, view.freshness()) for view in map(lake.view, lake.views(namespace))]
    if as_json:
        echo_json(
            [
                {"name": view.name, "kind": view.kind(), **msgspec.to_builtins(freshness)}
                for view, freshness in found
            ]
        )
        return
    rows = [(view.name, view.kind(), str(freshness)) for view, freshness in found]
    echo_table([("name", "kind", "freshness"), *rows])


@command.command()
@click.argument("name")
@mode_option
@click.option("--cascade", is_flag=True, help="Refresh the views that it reads first.")
@click.option("--src-version", type=int, metavar="N", help="The version of its one source.")
@click.option("--cluster", metavar="NAME", help="The cluster to run on.")
@no_wait_option
@dry_run_option
@lake_option
@as_json_option
@click.pass_context
def refresh(
    context: click.Context,
    lake: Lake,
    *,
    name: str,
    mode: Mode | None,
    cascade: bool,
    src_version: int | None,
    cluster: str | None,
    no_wait: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make the view NAME what its query gives now, and wait for the job.

    The exit code is 1 when the job fails or is canceled, and 3 when a function failed on rows.

    \b
    Examples:
      penstock views refresh docs.chunks --dry-run
      penstock views refresh docs.chunks
      penstock views refresh shop.totals --mode incremental --json
    """
    given = {"src_version": src_version, "cluster": cluster, "cascade": cascade or None}
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    view = lake.view(name)
    if dry_run:
        echo_plan(view.explain(mode=mode, **options), as_json)
        return
    job = view.refresh(mode=mode, wait=False, **options)
    follow(context, job, no_wait=no_wait, as_json=as_json)


@command.command()
@click.argument("name")
@mode_option
@lake_option
@as_json_option
def explain(lake: Lake, *, name: str, mode: Mode | None, as_json: bool) -> None:
    """Tell what a refresh of the view NAME would do.

    \b
    Examples:
      penstock views explain docs.chunks
    """
    echo_plan(lake.view(name).explain(mode=mode), as_json)


@command.command()
@click.argument("name")
@click.option("--rows", type=click.IntRange(min=1), help="Compare so many rows; else all.")
@lake_option
@as_json_option
@click.pass_context
def verify(
    context: click.Context, lake: Lake, *, name: str, rows: int | None, as_json: bool
) -> None:
    """Refresh the view NAME and compare it with its query computed anew.

    The exit code is 1 when they differ.

    \b
    Examples:
      penstock views verify shop.totals
      penstock views verify docs.chunks --rows 1000 --json
    """
    try:
        found = lake.view(name).verify(rows, progress=False if as_json else None)
    except (JobFailed, JobCanceled) as error:
        click.echo(f"penstock: {error.message}", err=True)
        context.exit(1)
    if as_json:
        echo_json(found.told)
    else:
        verdict = "equal" if found else click.style("different", fg="red")
        echo_pairs(
            [
                ("view", name),
                ("verdict", verdict),
                ("rows", f"{found.rows:,} of {found.rows_expected:,} expected"),
                ("differ", f"{found.rows_missing:,} missing, {found.rows_extra:,} too many"),
            ]
        )
    if not found:
        context.exit(1)


@command.command()
@click.argument("name")
@dry_run_option
@yes_option
@lake_option
@as_json_option
def consent(lake: Lake, *, name: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Let the view NAME read what it is made from now, also what others brought into it.

    Its refreshes stop when somebody changes an Iceberg view that it reads and may not read all of
    what that reads then. Only an owner of the view who may read it can consent.

    \b
    Examples:
      penstock views consent shop.dear --dry-run
      penstock views consent shop.dear -y
    """
    view = lake.view(name)
    found = view.consent(dry_run=True)
    sources = ", ".join(found.sources)
    if not dry_run and found.sources:
        confirm(f"Let {name} read {sources}?", yes)
        view.consent(found.state)
    if as_json:
        given = bool(found.sources) and not dry_run
        echo_json({"name": name, "sources": found.sources, "consented": given})
    elif found.sources:
        click.echo(f"{name} {'would read' if dry_run else 'may read'} {sources}")
    else:
        click.echo(f"{name} needs no consent")


@command.command()
@click.argument("name")
@click.argument("cron", required=False)
@timezone_option
@click.option("--off", is_flag=True, help="End its schedule.")
@lake_option
@as_json_option
def schedule(
    lake: Lake, *, name: str, cron: str | None, timezone: str | None, off: bool, as_json: bool
) -> None:
    """Let the view NAME refresh itself by the cron expression CRON; without one, tell its schedule.

    \b
    Examples:
      penstock views schedule shop.dear "0 6 * * *" --timezone Europe/Berlin
      penstock views schedule shop.dear
      penstock views schedule shop.dear --off
    """
    if off and cron is not None:
        raise InvalidRequest("both CRON and --off are given", detail="use one of them")
    view = lake.view(name)
    if off or cron is not None:
        view.alter(refresh_schedule=cron, refresh_schedule_timezone=timezone)
    found = view.schedule()
    if as_json:
        echo_json({"name": name, "schedule": msgspec.to_builtins(found)})
    else:
        click.echo("no schedule" if found is None else str(found))


@command.command()
@click.argument("name")
@click.argument("new")
@rename_options
def rename(lake: Lake, *, name: str, new: str, **options: bool) -> None:
    """Give the view NAME the name NEW; one without a namespace stays where it is.

    \b
    Examples:
      penstock views rename shop.dear shop.expensive
      penstock views rename shop.dear expensive
    """
    found = get_readable(lake, name)
    echo_rename(lake, found if isinstance(found, IcebergView) else lake.view(name), new, **options)


@command.command()
@click.argument("name")
@click.option("--cascade", is_flag=True, help="Take views that read it along.")
@dry_run_option
@yes_option
@lake_option
@as_json_option
def drop(lake: Lake, *, name: str, cascade: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Drop the view NAME, with its rows if it holds any.

    \b
    Examples:
      penstock views drop docs.chunks -y
    """
    found = get_readable(lake, name)
    along: list[str] = []
    if isinstance(found, IcebergView):
        along = find_dropped(found, cascade=cascade)
        if not dry_run:
            more = f" And with it {', '.join(along)}?" if along else ""
            confirm(f"Drop the Iceberg view {name}?{more}", yes)
            found.drop(cascade=cascade)
    else:
        view = lake.view(name)
        along = find_dropped(view, cascade=cascade)
        if not dry_run:
            more = f", and with it {', '.join(along)}" if along else ""
            confirm(f"Drop the view {name} with its {view.count():,} rows{more}?", yes)
            view.drop(cascade=cascade)
    if as_json:
        told = {"name": name, "dropped": not dry_run}
        echo_json({**told, "along": along} if cascade else told)
    else:
        done = "would drop" if dry_run else "dropped"
        click.echo(f"{done} {', '.join([name, *along])}")
