"""Who uses a registered function: columns that it fills, and materialized views.

What they are bound to is their own record; it is looked through here, because drops are rare.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from penstock.catalog.access import grants
from penstock.catalog.names import dependents
from penstock.database.interface import Transaction
from penstock.errors import TableInUse
from penstock.model.functions import Function, Registered
from penstock.model.identifiers import Identifier, show
from penstock.model.origins import Origin
from penstock.model.rights import READ, TABLE, Need
from penstock.model.tables import MAIN
from penstock.model.views import Definition

SHOWN = 5


@dataclass(frozen=True, slots=True)
class FunctionUse:
    """A column of a table, or a view (without a column), that uses a version of a function."""

    object_id: str
    table: Identifier
    version: int
    column: str = ""
    branch: str = MAIN

    def __str__(self) -> str:
        if not self.column:
            return f"view {show(self.table)}"
        branch = "" if self.branch == MAIN else f" of branch {self.branch}"
        return f"column {self.column} of {show(self.table)}{branch}"


async def list_uses(
    tx: Transaction, function_id: str, version: int | None = None
) -> list[FunctionUse]:
    """What uses a function, or one version of it, in the order of names."""
    # As the encoder writes it; a quote inside a text of the user's would be escaped.
    mark = f'%"registered":{{"id":"{function_id}"%'
    found: list[tuple[str, str, str, Registered]] = []
    for table_id, branch, name, text in await tx.fetch(
        "SELECT table_id, branch, name, function FROM columns WHERE function LIKE $1", mark
    ):
        used = msgspec.json.decode(text, type=Function).registered
        if used is not None:
            found.append((table_id, branch, name, used))
    for view_id, text in await tx.fetch(
        "SELECT id, definition FROM materialized_views WHERE definition LIKE $1 UNION ALL "
        "SELECT a.view_id, a.definition FROM view_alterations a JOIN jobs j ON j.id = a.job_id "
        "WHERE a.definition LIKE $1 AND j.state IN ('QUEUED', 'RUNNING', 'PAUSED')",
        mark,
    ):
        definition = msgspec.json.decode(text, type=Definition)
        own = [] if definition.function is None else [definition.function]
        found += [
            (view_id, MAIN, "", each.registered)
            for each in (*own, *definition.column_functions)
            if each.registered is not None
        ]
    named = await dependents.list_named(tx, sorted({each[0] for each in found}))
    names = {id: name for id, name, _ in named}
    uses = {
        FunctionUse(id, names[id], used.version, column, branch)
        for id, branch, column, used in found
        if used.id == function_id and version in (None, used.version) and id in names
    }
    return sorted(uses, key=lambda use: (use.table, use.branch, use.column, use.version))


async def list_seen(
    tx: Transaction, function_id: str, grantees: Sequence[str]
) -> list[FunctionUse]:
    """What uses a function, as far as holders of these grants may see it."""
    return await _keep_seen(tx, await list_uses(tx, function_id), grantees)


async def check_unused(
    tx: Transaction, name: str, function_id: str, version: int | None, origin: Origin
) -> None:
    """Refuse to drop a function, or a version of one, that something uses."""
    uses = await list_uses(tx, function_id, version)
    if uses:
        raise await _in_use(tx, f"function {name}", uses, origin)


async def check_unused_outside(
    tx: Transaction,
    what: str,
    function_ids: Sequence[str],
    going: Collection[str],
    origin: Origin,
) -> None:
    """Refuse to drop functions that something uses which does not go with them."""
    for function_id in function_ids:
        uses = [use for use in await list_uses(tx, function_id) if use.object_id not in going]
        if uses:
            raise await _in_use(tx, f"a function in {what}", uses, origin)


async def _in_use(
    tx: Transaction, what: str, uses: Sequence[FunctionUse], origin: Origin
) -> TableInUse:
    seen = await _keep_seen(tx, uses, origin.grantees)
    shown = [str(each) for each in seen[:SHOWN]] or ["columns or views"]
    others = " and others" if seen and len(uses) > len(shown) else ""
    return TableInUse(
        f"{what} is used by {', '.join(shown)}{others}",
        detail="give them another function (alter_column), or drop them first",
    )


async def _keep_seen(
    tx: Transaction, uses: Sequence[FunctionUse], grantees: Sequence[str]
) -> list[FunctionUse]:
    return [use for use in uses if await grants.may_in(tx, grantees, Need(READ, TABLE, use.table))]
