"""Options and output that `penstock grant` and `penstock revoke` share."""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import click

from penstock.catalog.access.grants import Target
from penstock.cli.access.targets import (
    read_target,
    record,
    show_target,
    target_options,
    with_database,
)
from penstock.cli.options import settings_options
from penstock.cli.output import as_json_option, dry_run_option, echo_json
from penstock.database.interface import Database
from penstock.model.origins import NOBODY
from penstock.settings.load import LoadedSettings


class GrantChange(NamedTuple):
    """A grant to give or to take back."""

    principal: str
    role: str
    target: Target
    dry_run: bool
    as_json: bool


def grant_options(command: Callable[[LoadedSettings, GrantChange], None]) -> Callable[..., None]:
    """Add the options that name a grant; the command gets settings and a `GrantChange`."""

    @wraps(command)
    def with_wish(
        loaded: LoadedSettings,
        *,
        namespace: str | None,
        table: str | None,
        view: str | None,
        function: str | None,
        **more: Any,
    ) -> None:
        target = read_target(namespace, table, view, function)
        command(loaded, GrantChange(target=target, **more))

    decorated = target_options(dry_run_option(settings_options(as_json_option(with_wish))))
    return click.argument("principal")(click.argument("role")(decorated))


def change_grant(
    loaded: LoadedSettings,
    grant_change: GrantChange,
    operation: str,
    change_in: Callable[..., Any],
    told: str,
) -> None:
    """Change the grant, unless it is a dry run, and print the result."""
    principal, role, target, dry_run, as_json = grant_change

    async def change(database: Database) -> None:
        await database.write(change_in, principal, role, target, NOBODY)
        await record(database, operation, f"{principal} {role} {target}")

    if not dry_run:
        with_database(loaded, change)
    if as_json:
        body = {"principal": principal, "role": role, **show_target(target)}
        echo_json({**body, "dry_run": True} if dry_run else body)
    else:
        click.echo(told)
