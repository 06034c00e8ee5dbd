"""What `penstock grant` and `penstock revoke` share: what they are given, do and tell."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from penstock.cli.access.targets import (
    read_target,
    record,
    show_target,
    target_options,
    with_database,
)
from penstock.cli.options import settings_options
from penstock.cli.output import as_json_option, dry_run_option, echo_json
from penstock.settings.load import Loaded

if TYPE_CHECKING:
    from penstock.catalog.access.grants import Target
    from penstock.database.interface import Database


class Wish(NamedTuple):
    """A grant that is to be given or taken back."""

    principal: str
    role: str
    target: "Target"
    dry_run: bool
    as_json: bool


def wish_options(command: Callable[[Loaded, Wish], None]) -> Callable[..., None]:
    """Give a command what names a grant; it gets a `Loaded` and a `Wish`."""

    @wraps(command)
    def with_wish(
        loaded: Loaded, *, namespace: str | None, table: str | None, view: str | None, **more: Any
    ) -> None:
        command(loaded, Wish(target=read_target(namespace, table, view), **more))

    decorated = target_options(dry_run_option(settings_options(as_json_option(with_wish))))
    return click.argument("principal")(click.argument("role")(decorated))


def fulfil(
    loaded: Loaded, wish: Wish, operation: str, change_in: Callable[..., Any], told: str
) -> None:
    """Change the grant, unless it is a dry run, and tell what is so now."""
    from penstock.model.origins import NOBODY

    principal, role, target, dry_run, as_json = wish

    async def change(database: "Database") -> None:
        await database.write(change_in, principal, role, target, NOBODY)
        await record(database, operation, f"{principal} {role} {target}")

    if not dry_run:
        with_database(loaded, change)
    if as_json:
        body = {"principal": principal, "role": role, **show_target(target)}
        echo_json({**body, "dry_run": True} if dry_run else body)
    else:
        click.echo(told)
