"""The database and the target options that the commands about access share.

They write to the catalog's database, beside a running server: whoever can do that is the operator,
and needs no key.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click

from penstock.catalog.access import audit
from penstock.catalog.access.grants import CATALOG, Target
from penstock.database.connect import open_beside
from penstock.database.interface import Database
from penstock.errors import InvalidRequest
from penstock.model.identifiers import parse_identifier
from penstock.model.principals import OPERATOR
from penstock.settings.load import LoadedSettings
from penstock.settings.places import database_url

T = TypeVar("T")


async def record(database: Database, operation: str, object: str) -> None:
    """Record an operator's change in the audit log."""
    entry = audit.make_entry(OPERATOR, operation, object)
    await database.write(audit.record_in, [entry])


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what a grant is on."""
    for kind in ("function", "view", "table", "namespace"):
        command = click.option(f"--{kind}", metavar="ID", help=f"On a {kind}, as in a$b.")(command)
    return command


def read_target(
    namespace: str | None, table: str | None, view: str | None, function: str | None
) -> Target:
    """The target of a grant; without any option, the whole catalog."""
    named = {"namespace": namespace, "table": table, "view": view, "function": function}
    given = [(kind, text) for kind, text in named.items() if text is not None]
    if len(given) > 1:
        raise InvalidRequest("a grant is on one thing", detail="give one of the options")
    for kind, text in given:
        id = parse_identifier(text, "$")
        if not id:
            raise InvalidRequest(
                f"--{kind} {text!r} names no {kind}",
                detail="leave the option out to mean the whole catalog",
            )
        return Target(kind, id)
    return CATALOG


def show_target(target: Target) -> dict[str, Any]:
    """The target of a grant, as REST bodies have it."""
    return {"catalog": True} if target == CATALOG else {target.kind: target.id}


def with_database(loaded: LoadedSettings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Run something with the catalog's database, whether a server is using it or not."""

    async def run() -> T:
        database = await open_beside(database_url(loaded.settings))
        try:
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(run())
