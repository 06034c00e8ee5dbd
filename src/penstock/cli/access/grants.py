"""`penstock grants`: who holds which role on what."""

import click

from penstock.catalog.access import grants
from penstock.catalog.access.grants import Grant
from penstock.cli.access.targets import read_target, show_target, target_options, with_database
from penstock.cli.options import settings_options
from penstock.cli.output import as_json_option, echo_json, echo_table, show_time
from penstock.database.interface import Database
from penstock.model.paging import PageRequest
from penstock.settings.load import LoadedSettings


@click.command()
@click.option("--principal", metavar="NAME", help="Only those of a principal, or of group:NAME.")
@target_options
@settings_options
@as_json_option
def command(
    loaded: LoadedSettings,
    *,
    principal: str | None,
    namespace: str | None,
    table: str | None,
    view: str | None,
    function: str | None,
    as_json: bool,
) -> None:
    """List the grants: all, those on one thing, or those of one principal.

    \b
    Examples:
      penstock grants
      penstock grants --principal ada --json
    """
    is_narrow = any(part is not None for part in (namespace, table, view, function))
    target = read_target(namespace, table, view, function) if is_narrow else None

    async def read(database: Database) -> list[Grant]:
        grantees = None if principal is None else [principal]
        page = PageRequest("grants", 2**31)
        return (await grants.list_grants(database, page, target, grantees)).items

    found = with_database(loaded, read)
    if as_json:
        body = [
            {
                "principal": grant.grantee,
                "role": grant.role,
                **show_target(grant.target),
                "created_at": grant.created_at,
                "created_by": grant.created_by,
            }
            for grant in found
        ]
        echo_json(body)
        return
    rows: list[tuple[str, ...]] = [("principal", "role", "on", "since", "by")]
    rows += [
        (g.grantee, g.role, str(g.target), show_time(g.created_at, ""), g.created_by or "operator")
        for g in found
    ]
    echo_table(rows)
