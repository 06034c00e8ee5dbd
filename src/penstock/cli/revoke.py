"""`penstock revoke`: take a role back."""

import click
import msgspec

from penstock.cli.options import settings_options
from penstock.cli.targets import as_json_option, read_target, target_options, with_database
from penstock.settings.load import Loaded


@click.command()
@click.argument("principal")
@click.argument("role")
@target_options
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
    as_json: bool,
) -> None:
    """Take the ROLE back from PRINCIPAL (or group:NAME), at once and on every server.

    Without an option it is the one on the whole catalog.
    """
    from penstock.catalog import grants
    from penstock.model.origins import NOBODY

    target = read_target(namespace, table, view)
    with_database(
        loaded, lambda database: database.write(grants.revoke_in, principal, role, target, NOBODY)
    )
    if as_json:
        body = {"principal": principal, "role": role, target.kind: target.id}
        click.echo(msgspec.json.encode(body).decode())
    else:
        click.echo(f"{principal} is not {role} of {target} any more")
