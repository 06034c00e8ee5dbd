"""What the commands about access share: the database they work on, and what a grant is on.

They write to the catalog's database, beside a running server: whoever may do that is the operator,
and needs no key.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.errors import InvalidRequest
from penstock.settings.load import Loaded
from penstock.settings.places import database_url

if TYPE_CHECKING:
    from penstock.catalog.access.grants import Target
    from penstock.database.interface import Database

T = TypeVar("T")


async def record(database: "Database", operation: str, object: str) -> None:
    """Put what an operator did into the audit log."""
    from penstock.catalog.access import audit
    from penstock.model.principals import OPERATOR

    entry = audit.make_entry(OPERATOR, operation, object)
    await database.write(audit.record_in, [entry])


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say what a grant is on."""
    for kind in ("view", "table", "namespace"):
        command = click.option(f"--{kind}", metavar="ID", help=f"On a {kind}, as in a$b.")(command)
    return command


def read_target(namespace: str | None, table: str | None, view: str | None) -> "Target":
    """What a grant is on; without any option, the whole catalog."""
    from penstock.catalog.access.grants import CATALOG, Target
    from penstock.model.identifiers import parse_identifier

    named = {"namespace": namespace, "table": table, "view": view}
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


def show_target(target: "Target") -> dict[str, Any]:
    """What a grant is on, as the REST bodies have it."""
    from penstock.catalog.access.grants import CATALOG

    return {"catalog": True} if target == CATALOG else {target.kind: target.id}


def with_database(loaded: Loaded, work: "Callable[[Database], Awaitable[T]]") -> T:
    """Do something with the catalog's database, whether a server runs on it or not."""

    async def run() -> T:
        from penstock.database.connect import open_beside

        database = await open_beside(database_url(loaded.settings))
        try:
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(run())
