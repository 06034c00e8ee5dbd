"""`penstock token`: make, list and revoke the keys that principals show."""

import re
from datetime import UTC, datetime
from typing import Any

import click

from penstock.catalog.access import grants, tokens
from penstock.catalog.access.tokens import Token
from penstock.cli.access.targets import record, with_database
from penstock.cli.options import settings_options
from penstock.cli.output import (
    as_json_option,
    confirm,
    dry_run_option,
    echo_json,
    echo_table,
    show_time,
    yes_option,
)
from penstock.database.interface import Database
from penstock.errors import InvalidRequest
from penstock.model.origins import NOBODY
from penstock.model.principals import check_free
from penstock.model.rights import check_role
from penstock.settings.load import LoadedSettings

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MAX_DAYS = 36_500


@click.group()
def command() -> None:
    """Make, list and revoke keys."""


@command.command()
@click.argument("principal")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="A group it is in.")
@click.option("--expires", metavar="TIME", help="How long it lasts: 90d, 12h, 30m; else for ever.")
@click.option("--note", default="", help="What it is for.")
@click.option("--role", "roles", multiple=True, help="A role on the whole catalog to give it.")
@click.option("--runner", is_flag=True, help="For a runner: it can work on jobs and nothing else.")
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME",
    help="For a runner: whose jobs it gets; else those of the default cluster.",
)
@settings_options
@as_json_option
def create(
    loaded: LoadedSettings,
    *,
    principal: str,
    groups: tuple[str, ...],
    expires: str | None,
    note: str,
    roles: tuple[str, ...],
    runner: bool,
    clusters: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make a key for PRINCIPAL and print it, this once.

    \b
    Examples:
      penstock token create ada --role owner
      penstock token create runner-1 --runner --cluster prod --expires 90d
    """
    kind = tokens.RUNNER if runner else tokens.KEY
    new = tokens.NewToken(principal, kind, groups, note, read_seconds(expires), clusters)
    # Checked before anything is granted.
    check_free(principal)
    tokens.check_new(new)
    for role in roles:
        check_role(role)

    async def make(database: Database) -> tuple[Token, str]:
        for role in roles:
            await database.write(grants.create_in, principal, role, grants.CATALOG, NOBODY)
        made = await tokens.create(database, new)
        await record(database, "CreateToken", f"{made[0].id} of {principal}")
        return made

    token, text = with_database(loaded, make)
    if as_json:
        echo_json({**show(token), "key": text})
        return
    click.echo(text)
    click.echo(f"key {token.id} of {principal}; it is not shown again", err=True)


@command.command(name="list")
@click.option("--principal", metavar="NAME", help="Only the keys of this principal.")
@settings_options
@as_json_option
def list_keys(loaded: LoadedSettings, *, principal: str | None, as_json: bool) -> None:
    """List the keys, the newest first.

    \b
    Examples:
      penstock token list --principal ada
    """
    found = with_database(loaded, lambda database: tokens.list_tokens(database, principal))
    if as_json:
        echo_json([show(token) for token in found])
        return
    rows: list[tuple[str, ...]] = [
        ("id", "kind", "principal", "clusters", "expires", "last used", "state", "note")
    ]
    now = datetime.now(UTC).timestamp() * 1000
    for token in found:
        state = "valid" if token.is_valid(int(now)) else "ended"
        state = "revoked" if token.revoked_at is not None else state
        times = (show_time(token.expires_at, "never"), show_time(token.used_at, "never"))
        clusters = (", ".join(token.clusters) or "default") if token.kind == tokens.RUNNER else ""
        rows.append((token.id, token.kind, token.principal, clusters, *times, state, token.note))
    echo_table(rows)


@command.command()
@click.argument("id")
@dry_run_option
@yes_option
@settings_options
@as_json_option
def revoke(loaded: LoadedSettings, *, id: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """End the key with this ID, at once and on every server.

    \b
    Examples:
      penstock token revoke 4f0c... -y
    """
    if not dry_run:
        confirm(f"End the key {id}?", yes)

    async def end(database: Database) -> Token:
        if dry_run:
            return await tokens.get(database, id)
        found = await tokens.revoke(database, id)
        await record(database, "RevokeToken", f"{found.id} of {found.principal}")
        return found

    token = with_database(loaded, end)
    if as_json:
        echo_json(show(token))
    else:
        verb = "would revoke" if dry_run else "revoked"
        click.echo(f"{verb} key {token.id} of {token.principal}")


@command.command()
@dry_run_option
@yes_option
@settings_options
@as_json_option
def rotate(loaded: LoadedSettings, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Sign with a new key from now on, which ends all short-lived tokens.

    \b
    Examples:
      penstock token rotate --dry-run
    """
    if dry_run:
        click.echo("all short-lived tokens would end")
        return
    confirm("End all short-lived tokens?", yes)

    async def change(database: Database) -> None:
        await tokens.rotate_signing_keys(database)
        await record(database, "RotateSigningKeys", "")

    with_database(loaded, change)
    if as_json:
        echo_json({"rotated": True})
        return
    click.echo("short-lived tokens are signed with a new key; those given before have ended")


def show(token: Token) -> dict[str, Any]:
    """A key's record, without anything that helps to guess its secret."""
    return {
        "id": token.id,
        "kind": token.kind,
        "principal": token.principal,
        "groups": token.groups,
        "clusters": token.clusters,
        "note": token.note,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "used_at": token.used_at,
        "revoked_at": token.revoked_at,
    }


def read_seconds(text: str | None) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"0*([1-9][0-9]*)([smhd])", text.strip())
    if match is None:
        raise InvalidRequest(f"--expires is {text!r}", detail="write it as 90d, 12h, 30m or 45s")
    # Refuse digits that int() would accept but nobody means.
    seconds = int(match[1][:20]) * UNITS[match[2]]
    if seconds > MAX_DAYS * UNITS["d"]:
        raise InvalidRequest(
            f"--expires is {text[:40]!r}, which is too long",
            detail=f"use at most {MAX_DAYS}d, or leave it out for a key that lasts for ever",
        )
    return seconds
