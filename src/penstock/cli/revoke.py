"""`penstock revoke`: take a role back."""

from typing import TYPE_CHECKING

import click

from penstock.cli.options import settings_options
from penstock.cli.output import as_json_option, dry_run_option, echo_json
from penstock.cli.targets import read_target, record, show_target, target_options, with_database
from penstock.settings.load import Loaded

if TYPE_CHECKING:
    from penstock.database.interface import Database


@click.command()
@click.argument("principal")
@click.argument("role")
@target_options
@dry_run_option
@settings_options
@as_json_option
def command(
    loaded: Loaded,
    *,
    principal: str,
    role: str,
    namespace: str | None,
    table: str | None,
    view: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take the ROLE back from PRINCIPAL (or group:NAME), at once and on every server.

    Without an option it is the one on the whole catalog.

    \b
    Examples:
      penstock revoke ada owner --namespace shop --dry-run
    """
    from penstock.catalog import grants
    from penstock.model.origins import NOBODY

    target = read_target(namespace, table, view)

    async def change(database: "Database") -> None:
        await database.write(grants.revoke_in, principal, role, target, NOBODY)
        await record(database, "RevokeGrant", f"{principal} {role} {target}")

    if not dry_run:
        with_database(loaded, change)
    if as_json:
        body = {"principal": principal, "role": role, **show_target(target)}
        echo_json({**body, "dry_run": True} if dry_run else body)
    else:
        verb = "would not be" if dry_run else "is not"
        click.echo(f"{principal} {verb} {role} of {target} any more")
