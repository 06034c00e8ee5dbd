"""Functions with a name: register, find, list, disable and drop them.

A function is an object of its namespace like a table, so it shares their names, their grants and
the fate of the namespace. Its versions are numbered and never change; whoever uses one refers to it
by number, so a new version changes nothing until somebody says so.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from penstock.catalog.access import grants, tokens
from penstock.catalog.access.grants import Target
from penstock.catalog.catalog import Catalog
from penstock.catalog.functions import function_code, function_uses
from penstock.catalog.functions.versions import FunctionDefinition, FunctionVersion, digest_of
from penstock.catalog.jobs import environments, jobs
from penstock.catalog.names import idempotency, namespaces, tables, transactions
from penstock.database.interface import Row, Transaction
from penstock.errors import FunctionDisabled, FunctionNotFound, InvalidRequest
from penstock.model.envelopes import FunctionCode
from penstock.model.functions import Function, Registered
from penstock.model.identifiers import Identifier, check_identifier, from_path, show, to_path
from penstock.model.origins import NOBODY, Origin
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.properties import decode_properties, encode_properties
from penstock.model.rights import FUNCTION, OWN, READ, Need
from penstock.model.tables import Table

COLUMNS = (
    "f.id, o.namespace, o.name, v.version, v.digest, v.definition, f.disabled, v.disabled, "
    "o.properties, v.created_at, v.created_by"
)
RELATIONS = (
    "objects o JOIN functions f ON f.id = o.id JOIN function_versions v ON v.function_id = f.id"
)
# The word for the job that is told of a registration, which other clients wait for.
CREATE_FUNCTION = "create_function"


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version to register, with its code."""

    definition: FunctionDefinition
    code: FunctionCode
    # Whether the client says what tells its code from other code.
    is_versioned: bool
    properties: dict[str, str]
    # Of what a function of rows makes, as base64 of its Arrow form.
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class CreatedVersion:
    version: FunctionVersion
    job_id: str


async def create(
    catalog: Catalog, id: Identifier, new: NewVersion, origin: Origin = NOBODY
) -> CreatedVersion:
    """Register a function, or another version of it; equal content is the version that it was."""
    return await catalog.database.write(_create, id, new, origin)


async def get(tx: Transaction, id: Identifier, version: int | None = None) -> FunctionVersion:
    """A version of a function, the newest without a number."""
    namespace, name = _split(id)
    which = "" if version is None else "AND v.version = $3"
    row = await tx.fetch_one(
        f"SELECT {COLUMNS} FROM {RELATIONS} WHERE o.namespace = $1 AND o.name = $2 {which} "
        "ORDER BY v.version DESC LIMIT 1",
        *(to_path(namespace), name),
        *(() if version is None else (version,)),
    )
    if row is None:
        raise missing(id, version)
    return _to_version(row)


async def find_by_id(tx: Transaction, id: str, version: int) -> FunctionVersion | None:
    """The version that something refers to, whatever the function's name is now."""
    row = await tx.fetch_one(
        f"SELECT {COLUMNS} FROM {RELATIONS} WHERE f.id = $1 AND v.version = $2", id, version
    )
    return None if row is None else _to_version(row)


async def choose(
    catalog: Catalog, id: Identifier, version: int | None, origin: Origin
) -> tuple[FunctionVersion, bytes]:
    """A version that somebody wants to use, who must be able to read it, and its code."""
    _split(check_identifier(id, "the function's name"))
    need = Need(READ, FUNCTION, id)
    if origin.grantees:
        standing = await grants.find_standing(catalog.database, origin.grantees, FUNCTION, id)
        if not standing.sees:
            raise missing(id, None)
        if not standing.has(READ):
            raise grants.lacking(origin.principal, need)
    found = await get(catalog.database, id, version)
    if found.disabled:
        raise disabled(found)
    return found, await function_code.get(catalog.database, found.definition.sha256)


async def list_versions(
    catalog: Catalog, namespace: Identifier, page: PageRequest, only: Sequence[str] | None = None
) -> Page[FunctionVersion]:
    """All versions of the functions directly in a namespace that these grantees may see."""
    name, _, number = (page.after or "").rpartition("\n")
    rows = await catalog.database.fetch(
        f"SELECT {COLUMNS} FROM {RELATIONS} WHERE o.namespace = $1 "
        f"AND (o.name > $2 OR (o.name = $2 AND v.version > $3)) {grants.seen(only, 5)} "
        "ORDER BY o.name, v.version LIMIT $4",
        *(to_path(namespace), name, int(number or 0), page.limit + 1),
        *(only or ()),
    )
    if not rows:
        await namespaces.get(catalog.database, namespace)
    found = [_to_version(row) for row in rows]
    return cut_page(page, found, [f"{each.identifier[-1]}\n{each.version}" for each in found])


async def alter(
    catalog: Catalog,
    id: Identifier,
    version: int | None,
    is_disabled: bool | None,
    properties: dict[str, str | None],
    origin: Origin = NOBODY,
) -> FunctionVersion:
    """Disable or enable a function, or one version of it, and set its properties."""
    return await catalog.database.write(_alter, id, version, is_disabled, properties, origin)


async def drop(
    catalog: Catalog, id: Identifier, version: int | None, origin: Origin = NOBODY
) -> str:
    """Drop a version, or a function with all of them, that nothing uses; returns the transaction.

    With the last version the function is gone, too.
    """
    return await catalog.database.write(_drop, id, version, origin)


def missing(id: Identifier, version: int | None = None) -> FunctionNotFound:
    which = "" if version is None else f" has no version {version}, or"
    return FunctionNotFound(
        f"function {show(id)}{which} does not exist", detail="register it, or check its name"
    )


def disabled(version: FunctionVersion) -> FunctionDisabled:
    return FunctionDisabled(
        f"function {version} is disabled",
        detail="enable it, or use another version (alter_column)",
    )


def _split(id: Identifier) -> tuple[Identifier, str]:
    """The namespace of a function, and its name there."""
    if not id:
        raise InvalidRequest(
            "the id names the root namespace, not a function", detail="give the function's name"
        )
    return id[:-1], id[-1]


async def check_enabled_in(tx: Transaction, used: Sequence[Registered]) -> None:
    """Refuse new work for functions that are disabled or gone; others must stay meanwhile."""
    for each in used:
        # Locked, so that a drop waits for what is recorded here, and finds it.
        await tx.fetch("UPDATE functions SET id = id WHERE id = $1", each.id)
        await check_enabled(tx, each)


async def ensure(catalog: Catalog, table: Table, function: Function) -> None:
    """Make sure that a function takes new work, and that its code is beside the table."""
    await check_enabled(catalog.database, function.registered)
    await function_code.ensure(catalog, table, function)


async def check_enabled(tx: Transaction, used: Registered | None) -> None:
    """Refuse new work for a function that is disabled or gone; others have no name here."""
    if used is None:
        return
    found = await find_by_id(tx, used.id, used.version)
    if found is None:
        raise FunctionDisabled(
            f"the function that it refers to, version {used.version} of {used.id}, was dropped",
            detail="give it another function (alter_column)",
        )
    if found.disabled:
        raise disabled(found)


async def find_name(tx: Transaction, function: Function | None) -> str | None:
    """What a function that was bound is called in the catalog now."""
    if function is None or function.registered is None:
        return None
    used = function.registered
    found = await find_by_id(tx, used.id, used.version)
    return None if found is None else f"{show(found.identifier)}@{used.version}"


async def _create(
    tx: Transaction, id: Identifier, new: NewVersion, origin: Origin
) -> CreatedVersion:
    function_id = await _find_or_insert(tx, id, new, origin)
    definition = new.definition
    digest = digest_of(definition, new.code, is_versioned=new.is_versioned)
    row = await tx.fetch_one(
        "SELECT version FROM function_versions WHERE function_id = $1 AND digest = $2",
        *(function_id, digest),
    )
    number = row[0] if row is not None else await _add_version(tx, function_id, digest, new, origin)
    made = await get(tx, id, number)
    job_id = await jobs.record_done_in(tx, CREATE_FUNCTION, id, function_id, {"version": number})
    await idempotency.use(tx, origin, job_id, {"version": number})
    return CreatedVersion(made, job_id)


async def _find_or_insert(tx: Transaction, id: Identifier, new: NewVersion, origin: Origin) -> str:
    """The function's id, made with its name if there is none; it stays until the end."""
    namespace, name = _split(id)
    await namespaces.get(tx, namespace)
    row = await tx.fetch_one(
        "UPDATE functions SET id = id WHERE id = (SELECT id FROM objects WHERE namespace = $1 "
        "AND name = $2) RETURNING id",
        *(to_path(namespace), name),
    )
    if row is not None:
        # Others who name no version would use what is registered next.
        await grants.check_in(tx, origin, Need(OWN, FUNCTION, id))
        return str(row[0])
    await tables.check_free(tx, id)
    function_id = uuid.uuid4().hex
    await tx.fetch(
        "INSERT INTO objects (id, namespace, name, kind, properties, created_at) "
        "VALUES ($1, $2, $3, $4, $5, now_millis())",
        *(function_id, to_path(namespace), name, FUNCTION, encode_properties(new.properties)),
    )
    await tx.fetch("INSERT INTO functions (id, newest, disabled) VALUES ($1, 0, 0)", function_id)
    await grants.give_owner_in(tx, origin, Target(FUNCTION, id), function_id)
    if origin.principal:
        # Unlike with tables, who may create it need not own the namespace.
        await tokens.bump_in(tx)
    return function_id


async def _add_version(
    tx: Transaction, function_id: str, digest: str, new: NewVersion, origin: Origin
) -> int:
    definition = new.definition
    await function_code.store_in(
        tx, definition.sha256, new.code.content, definition.label, definition.label_version
    )
    if definition.manifest is not None:
        await environments.record_in(tx, definition.manifest)
    row = await tx.fetch_one(
        "UPDATE functions SET newest = newest + 1 WHERE id = $1 RETURNING newest", function_id
    )
    assert row is not None
    await tx.fetch(
        "INSERT INTO function_versions (function_id, version, digest, sha256, definition, "
        "disabled, created_at, created_by) VALUES ($1, $2, $3, $4, $5, 0, now_millis(), $6)",
        *(function_id, row[0], digest, definition.sha256),
        *(msgspec.json.encode(definition).decode(), origin.principal),
    )
    return int(row[0])


async def _alter(
    tx: Transaction,
    id: Identifier,
    version: int | None,
    is_disabled: bool | None,
    properties: dict[str, str | None],
    origin: Origin,
) -> FunctionVersion:
    found = await get(tx, id, version)
    if is_disabled is not None and version is None:
        await tx.fetch(
            "UPDATE functions SET disabled = $2 WHERE id = $1",
            *(found.function_id, int(is_disabled)),
        )
    elif is_disabled is not None:
        await tx.fetch(
            "UPDATE function_versions SET disabled = $3 WHERE function_id = $1 AND version = $2",
            *(found.function_id, version, int(is_disabled)),
        )
    if properties:
        told = {**found.properties, **properties}
        kept = {key: value for key, value in told.items() if value is not None}
        await tx.fetch(
            "UPDATE objects SET properties = $2 WHERE id = $1",
            *(found.function_id, encode_properties(kept)),
        )
    await transactions.record(
        tx, "AlterFunction", show(id), origin, notes={"version": found.version}
    )
    return await get(tx, id, found.version)


async def _drop(tx: Transaction, id: Identifier, version: int | None, origin: Origin) -> str:
    found = await get(tx, id, version)
    # Locked first, so that what is recorded as its user meanwhile is seen.
    if not await tx.fetch(
        "UPDATE functions SET id = id WHERE id = $1 RETURNING id", found.function_id
    ):
        raise missing(id, version)
    await function_uses.check_unused(tx, show(id), found.function_id, version, origin)
    which = "" if version is None else "AND version = $2"
    await tx.fetch(
        f"DELETE FROM function_versions WHERE function_id = $1 {which}",
        *(found.function_id, *(() if version is None else (version,))),
    )
    left = await tx.fetch_one(
        "SELECT 1 FROM function_versions WHERE function_id = $1 LIMIT 1", found.function_id
    )
    if left is None:
        await tx.fetch("DELETE FROM functions WHERE id = $1", found.function_id)
        await tx.fetch("DELETE FROM objects WHERE id = $1", found.function_id)
        await grants.forget_in(tx, found.function_id)
    return await transactions.record(tx, "DropFunction", show(id), origin)


def _to_version(row: Row) -> FunctionVersion:
    id, namespace, name, version, digest, definition, all_disabled, disabled, *more = row
    properties, created_at, created_by = more
    return FunctionVersion(
        function_id=id,
        identifier=(*from_path(namespace), name),
        version=version,
        digest=digest,
        definition=msgspec.json.decode(definition, type=FunctionDefinition),
        disabled=bool(all_disabled or disabled),
        properties=decode_properties(properties),
        created_at=created_at,
        created_by=created_by,
    )
