"""Grants: which role a principal or group holds on the catalog, a subtree, a table or a view.

A grant on a table or view belongs to the object and follows a rename; a grant on a namespace
belongs to its path. Dropping the object or namespace deletes its grants, so a later namesake starts
without any.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from penstock.catalog.access import tokens
from penstock.catalog.catalog import Catalog
from penstock.catalog.names import transactions
from penstock.database.interface import Row, Transaction
from penstock.errors import (
    Forbidden,
    FunctionNotFound,
    GrantNotFound,
    NamespaceNotFound,
    TableNotFound,
    ViewNotFound,
)
from penstock.model.identifiers import SEPARATOR, Identifier, from_path, show, split_table, to_path
from penstock.model.origins import NOBODY, Origin
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.principals import check_grantee
from penstock.model.rights import (
    FUNCTION,
    ICEBERG_TABLE,
    NAMESPACE,
    ROLE_OF,
    ROLES,
    SEEING,
    TABLE,
    VIEW,
    Need,
    Standing,
    check_role,
    name_target,
)

OBJECT = "object"
MISSING = {TABLE: TableNotFound, VIEW: ViewNotFound, FUNCTION: FunctionNotFound}
OWNER = "owner"
COLUMNS = "grantee, scope, target, role, created_at, created_by"


@dataclass(frozen=True, slots=True)
class Target:
    """The object that a grant is on."""

    kind: str
    id: Identifier

    def __str__(self) -> str:
        return name_target(self.kind, self.id)


CATALOG = Target(NAMESPACE, ())


@dataclass(frozen=True, slots=True)
class Grant:
    grantee: str
    role: str
    target: Target
    created_at: int
    created_by: str


async def create(
    catalog: Catalog, grantee: str, role: str, target: Target, origin: Origin = NOBODY
) -> str:
    """Give a role; giving it again changes nothing. Returns the transaction."""
    check_grantee(grantee)
    check_role(role)
    return await catalog.database.write(create_in, grantee, role, target, origin)


async def revoke(
    catalog: Catalog, grantee: str, role: str, target: Target, origin: Origin = NOBODY
) -> str:
    """Take a role back. Returns the transaction."""
    return await catalog.database.write(revoke_in, grantee, role, target, origin)


async def list_grants(
    tx: Transaction, page: PageRequest, target: Target | None, grantees: Sequence[str] | None
) -> Page[Grant]:
    """List grants on one object or on any, of some grantees or of all."""
    values: list[object] = [page.limit + 1]
    conditions = ["1 = 1"]

    def place(value: object) -> str:
        values.append(value)
        return f"${len(values)}"

    if page.after is not None:
        columns = "grantee, scope, target, role"
        after = ", ".join(place(part) for part in page.after.split("\n"))
        conditions.append(f"({columns}) > ({after})")
    if target is not None:
        scope, key = await _resolve(tx, target)
        conditions.append(f"scope = {place(scope)} AND target = {place(key)}")
    if grantees is not None:
        conditions.append(f"grantee IN ({', '.join(place(each) for each in grantees)})")
    rows = await tx.fetch(
        "SELECT g.grantee, g.scope, g.target, g.role, g.created_at, g.created_by, o.kind, "
        "o.namespace, o.name FROM grants g LEFT JOIN objects o "
        f"ON g.scope = '{OBJECT}' AND o.id = g.target WHERE {' AND '.join(conditions)} "
        "ORDER BY g.grantee, g.scope, g.target, g.role LIMIT $1",
        *values,
    )
    keys = ["\n".join(row[:4]) for row in rows]
    return cut_page(page, [_to_grant(row) for row in rows], keys)


async def find_standing(
    tx: Transaction, grantees: Sequence[str], kind: str, id: Identifier
) -> Standing:
    """What holders of these grants may do with an object, whether it exists or not."""
    namespace = id if kind == NAMESPACE else id[:-1]
    paths = [to_path(namespace[:depth]) for depth in range(len(namespace) + 1)]
    values: list[object] = [*grantees, *paths]
    of = _places(1, len(grantees))
    sql = (
        f"SELECT role FROM grants WHERE grantee IN ({of}) AND scope = '{NAMESPACE}' "
        f"AND target IN ({_places(len(grantees) + 1, len(paths))})"
    )
    if kind != NAMESPACE:
        first = len(values) + 1
        values += [paths[-1], id[-1]]
        sql += (
            " UNION ALL SELECT g.role FROM objects o JOIN grants g ON g.target = o.id "
            f"AND g.scope = '{OBJECT}' WHERE o.namespace = ${first} AND o.name = ${first + 1} "
            f"AND g.grantee IN ({of})"
        )
    rights = 0
    for row in await tx.fetch(sql, *values):
        rights |= ROLES.get(row[0], 0)
    sees = bool(rights & SEEING)
    if not sees and kind == NAMESPACE:
        sees = not id or await _has_below(tx, grantees, paths[-1])
    return Standing(rights, sees)


async def may_in(tx: Transaction, grantees: Sequence[str], need: Need) -> bool:
    """Whether holders of these grants have a right now; for work that runs without its requester.

    `grantees` are those of the requester (`Identity.grantees`); none where authentication was off.
    """
    if not grantees:
        return True
    return (await find_standing(tx, grantees, need.kind, need.id)).has(need.right)


async def check_in(tx: Transaction, origin: Origin, need: Need) -> None:
    """Refuse a change that the caller has no right to, in the transaction that makes it."""
    if not await may_in(tx, origin.grantees, need):
        raise lacking(origin.principal, need)


def lacking(principal: str, need: Need) -> Forbidden:
    return Forbidden(
        f"{principal} lacks {ROLE_OF[need.right]} on {need}", detail="ask an owner to grant it"
    )


def visible_objects(grantees: Sequence[str], first: int) -> str:
    """The SQL condition on `o`, an object, that holders of these grants may see it.

    The grantees are its parameters, numbered from `first` on.
    """
    held = (
        f"SELECT 1 FROM grants g WHERE g.grantee IN ({_places(first, len(grantees))}) "
        "AND g.role <> 'functions'"
    )
    # Two questions: a database answers the first by a key, however many grants there are.
    return (
        f"(EXISTS ({held} AND g.scope = '{OBJECT}' AND g.target = o.id) "
        f"OR EXISTS ({held} AND g.scope = '{NAMESPACE}' AND (g.target = '' "
        f"OR {_within('o.namespace', 'g.target')})))"
    )


def seen(only: Sequence[str] | None, first: int) -> str:
    """SQL for a listing of objects `o`; None as grantees means a caller that sees everything."""
    return "" if only is None else f"AND {visible_objects(only, first)}"


def visible_namespaces(grantees: Sequence[str], first: int) -> str:
    """The SQL condition on `n`, a namespace, that one may see something in it or below it."""
    place = f"CASE WHEN g.scope = '{NAMESPACE}' THEN g.target ELSE o.namespace END"
    return (
        f"EXISTS (SELECT 1 FROM grants g LEFT JOIN objects o ON g.scope = '{OBJECT}' "
        f"AND o.id = g.target WHERE g.grantee IN ({_places(first, len(grantees))}) "
        f"AND g.role <> 'functions' AND {_within(f'({place})', 'n.path')})"
    )


def shown_namespaces(grantees: Sequence[str], first: int) -> str:
    """The same, wherever it is: also those below what a grant is on."""
    return (
        f"({visible_namespaces(grantees, first)} OR EXISTS (SELECT 1 FROM grants g WHERE g.grantee "
        f"IN ({_places(first, len(grantees))}) AND g.role <> 'functions' "
        f"AND g.scope = '{NAMESPACE}' AND (g.target = '' OR {_within('n.path', 'g.target')})))"
    )


async def give_owner_in(tx: Transaction, origin: Origin, target: Target, key: str) -> None:
    """Make the creator of an object its owner, in the transaction that creates it.

    Other servers need not be told: whoever may create an object already owns what contains it.
    """
    if origin.principal:
        scope = NAMESPACE if target.kind == NAMESPACE else OBJECT
        await _insert(tx, origin.principal, scope, key, OWNER, origin.principal)


async def forget_in(tx: Transaction, object_id: str) -> None:
    """Delete the grants on an object that this transaction deletes."""
    rows = await tx.fetch(
        f"DELETE FROM grants WHERE scope = '{OBJECT}' AND target = $1 RETURNING role", object_id
    )
    if rows:
        await tokens.bump_in(tx)


async def forget_tree_in(tx: Transaction, path: str) -> None:
    """Delete the grants on a namespace, on those below it, and on everything still in them."""
    tree = (path, f"{path}{SEPARATOR}", f"{path} ")
    rows = await tx.fetch(
        f"DELETE FROM grants WHERE scope = '{NAMESPACE}' "
        "AND (target = $1 OR (target >= $2 AND target < $3)) RETURNING role",
        *tree,
    )
    rows += await tx.fetch(
        f"DELETE FROM grants WHERE scope = '{OBJECT}' AND target IN (SELECT id FROM objects "
        "WHERE namespace = $1 OR (namespace >= $2 AND namespace < $3)) RETURNING role",
        *tree,
    )
    if rows:
        await tokens.bump_in(tx)


async def moved_in(tx: Transaction, object_id: str) -> None:
    """Invalidate cached rights after a rename."""
    sql = f"SELECT 1 FROM grants WHERE scope = '{OBJECT}' AND target = $1 LIMIT 1"
    if await tx.fetch_one(sql, object_id) is not None:
        await tokens.bump_in(tx)


async def keep(tx: Transaction, object_id: str) -> Callable[[Transaction], Awaitable[None]]:
    """Remember an object's grants; returns a step that restores them."""
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM grants WHERE scope = '{OBJECT}' AND target = $1", object_id
    )

    async def restore(tx: Transaction) -> None:
        for grantee, scope, target, role, _, created_by in rows:
            await _insert(tx, grantee, scope, target, role, created_by)
        await tokens.bump_in(tx)

    return restore


async def create_in(
    tx: Transaction, grantee: str, role: str, target: Target, origin: Origin
) -> str:
    scope, key = await _resolve(tx, target)
    await _insert(tx, grantee, scope, key, role, origin.principal)
    await tokens.bump_in(tx)
    return await transactions.record(tx, "CreateGrant", f"{role} on {target} to {grantee}", origin)


async def revoke_in(
    tx: Transaction, grantee: str, role: str, target: Target, origin: Origin
) -> str:
    scope, key = await _resolve(tx, target)
    rows = await tx.fetch(
        "DELETE FROM grants WHERE grantee = $1 AND scope = $2 AND target = $3 AND role = $4 "
        "RETURNING role",
        *(grantee, scope, key, role),
    )
    if not rows:
        raise GrantNotFound(
            f"{grantee} does not hold {role} on {target}",
            detail="it may come from a grant on a namespace above; list the grants",
        )
    await tokens.bump_in(tx)
    return await transactions.record(
        tx, "RevokeGrant", f"{role} on {target} from {grantee}", origin
    )


async def _insert(
    tx: Transaction, grantee: str, scope: str, key: str, role: str, created_by: str
) -> None:
    await tx.fetch(
        f"INSERT INTO grants ({COLUMNS}) VALUES ($1, $2, $3, $4, now_millis(), $5) "
        "ON CONFLICT DO NOTHING",
        *(grantee, scope, key, role, created_by),
    )


async def _resolve(tx: Transaction, target: Target) -> tuple[str, str]:
    """The scope and key that grants on an object are stored under."""
    if target.kind == NAMESPACE:
        path = to_path(target.id)
        if await tx.fetch_one("SELECT 1 FROM namespaces WHERE path = $1", path) is None:
            raise NamespaceNotFound(f"namespace {show(target.id)} does not exist")
        return NAMESPACE, path
    namespace, name = split_table(target.id)
    row = await tx.fetch_one(
        "SELECT id FROM objects WHERE namespace = $1 AND name = $2 AND kind IN ($3, $4)",
        *(to_path(namespace), name, target.kind),
        ICEBERG_TABLE if target.kind == TABLE else target.kind,
    )
    if row is None:
        raise MISSING[target.kind](f"{target} does not exist")
    return OBJECT, row[0]


async def _has_below(tx: Transaction, grantees: Sequence[str], path: str) -> bool:
    sql = f"SELECT 1 FROM namespaces n WHERE n.path = $1 AND {visible_namespaces(grantees, 2)}"
    return await tx.fetch_one(sql, path, *grantees) is not None


def _within(inner: str, outer: str) -> str:
    """The SQL condition that a path is another one or below it."""
    # Paths below another start with it and the separator, which sorts just before a space.
    below = f"{inner} > {outer} || '{SEPARATOR}' AND {inner} < {outer} || ' '"
    return f"({inner} = {outer} OR ({below}))"


def _places(first: int, count: int) -> str:
    return ", ".join(f"${number}" for number in range(first, first + count))


def _to_grant(row: Row) -> Grant:
    grantee, scope, key, role, created_at, created_by, kind, namespace, name = row
    target = Target(NAMESPACE, from_path(key))
    if scope == OBJECT:
        kind = TABLE if kind == ICEBERG_TABLE else kind
        target = Target(kind or "object", (*from_path(namespace or ""), name or key))
    return Grant(grantee, role, target, created_at, created_by)
