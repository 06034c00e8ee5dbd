"""What is in a namespace, of any kind, and names below it that hold a text; page by page."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from penstock.catalog.access import grants
from penstock.catalog.names import namespaces
from penstock.database.interface import Row, Transaction
from penstock.model.identifiers import Identifier, from_path, to_path
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.rights import ICEBERG_TABLE
from penstock.model.tables import MAIN

NAMESPACE, TABLE, MATERIALIZED, VIEW, ICEBERG, FUNCTION = KINDS = (
    *("namespace", "table", "materialized_view"),
    *("view", "iceberg_table", "function"),
)
# The condition of SQL that an object is of a kind.
CONDITIONS = {
    TABLE: "(o.kind = 'table' AND m.id IS NULL)",
    MATERIALIZED: "m.id IS NOT NULL",
    VIEW: "o.kind = 'view'",
    ICEBERG: f"o.kind = '{ICEBERG_TABLE}'",
    FUNCTION: "o.kind = 'function'",
}
COLUMNS = (
    "o.namespace, o.name, o.kind, m.id IS NOT NULL, o.created_at, v.version, v.timestamp_millis"
)
RELATIONS = (
    "objects o LEFT JOIN materialized_views m ON m.id = o.id LEFT JOIN table_versions v "
    f"ON v.table_id = o.id AND v.branch = '{MAIN}' AND v.version = (SELECT max(x.version) "
    f"FROM table_versions x WHERE x.table_id = o.id AND x.branch = '{MAIN}' AND x.hidden = 0)"
)


@dataclass(frozen=True, slots=True)
class Name:
    """Something that has a name; of a table also its newest version."""

    kind: str
    identifier: Identifier
    created_at: int
    version: int | None = None
    updated_at: int | None = None

    @property
    def key(self) -> tuple[str, str, bool]:
        """Its place in the order of all names: a namespace comes before what is called like it."""
        return to_path(self.identifier[:-1]), self.identifier[-1], self.kind != NAMESPACE


async def list_children(
    tx: Transaction,
    id: Identifier,
    page: PageRequest,
    kinds: Collection[str] = KINDS,
    only: Sequence[str] | None = None,
) -> Page[Name]:
    """What is directly in a namespace, as far as these grantees may see it: namespaces first."""
    is_object, _, after = (page.after or "").partition(":")
    found = list[Name]()
    if NAMESPACE in kinds and not is_object:
        found += await _list_namespaces(tx, id, after, page.limit + 1, only)
        after = ""
    if len(found) <= page.limit:
        found += await _list_objects(tx, id, after, page.limit + 1 - len(found), kinds, only)
    if not found:
        await namespaces.get(tx, id)
    keys = [f"{'' if each.kind == NAMESPACE else 'o'}:{each.identifier[-1]}" for each in found]
    return cut_page(page, found, keys)


async def search(
    tx: Transaction,
    within: Identifier,
    text: str,
    page: PageRequest,
    kinds: Collection[str] = KINDS,
    only: Sequence[str] | None = None,
) -> Page[Name]:
    """The names below a namespace that hold a text, in the order of their paths."""
    after = _read_key(page.after)
    found = list[Name]()
    if NAMESPACE in kinds:
        found += await _find_namespaces(tx, within, text, after, page.limit + 1, only)
    if set(kinds) - {NAMESPACE}:
        found += await _find_objects(tx, within, text, after, page.limit + 1, kinds, only)
    found = sorted(found, key=lambda each: each.key)[: page.limit + 1]
    keys = ["\n".join((*each.key[:2], str(int(each.key[2])))) for each in found]
    return cut_page(page, found, keys)


async def _list_namespaces(
    tx: Transaction, id: Identifier, after: str, limit: int, only: Sequence[str] | None
) -> list[Name]:
    seen = "" if only is None else f"AND {grants.visible_namespaces(only, 4)}"
    rows = await tx.fetch(
        f"SELECT parent, name, created_at FROM namespaces n WHERE parent = $1 AND name > $2 {seen} "
        "ORDER BY name LIMIT $3",
        *(to_path(id), after, limit, *(only or ())),
    )
    return [_to_namespace(row) for row in rows]


async def _list_objects(
    tx: Transaction,
    id: Identifier,
    after: str,
    limit: int,
    kinds: Collection[str],
    only: Sequence[str] | None,
) -> list[Name]:
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM {RELATIONS} WHERE o.namespace = $1 AND o.name > $2 "
        f"AND {_of_kinds(kinds)} {grants.seen(only, 4)} ORDER BY o.name LIMIT $3",
        *(to_path(id), after, limit, *(only or ())),
    )
    return [_to_object(row) for row in rows]


async def _find_namespaces(
    tx: Transaction,
    within: Identifier,
    text: str,
    after: tuple[str, str, bool],
    limit: int,
    only: Sequence[str] | None,
) -> list[Name]:
    seen = "" if only is None else f"AND {grants.shown_namespaces(only, 7)}"
    rows = await tx.fetch(
        "SELECT parent, name, created_at FROM namespaces n WHERE lower(name) LIKE $1 ESCAPE '!' "
        f"AND {_below('n.parent', within, 2)} AND (parent, name) > ($4, $5) {seen} "
        "ORDER BY parent, name LIMIT $6",
        *(_pattern(text), *_bounds(within), *after[:2], limit, *(only or ())),
    )
    return [_to_namespace(row) for row in rows]


async def _find_objects(
    tx: Transaction,
    within: Identifier,
    text: str,
    after: tuple[str, str, bool],
    limit: int,
    kinds: Collection[str],
    only: Sequence[str] | None,
) -> list[Name]:
    comparison = ">" if after[2] else ">="
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM {RELATIONS} WHERE lower(o.name) LIKE $1 ESCAPE '!' "
        f"AND {_below('o.namespace', within, 2)} AND (o.namespace, o.name) {comparison} ($4, $5) "
        f"AND {_of_kinds(kinds)} {grants.seen(only, 7)} ORDER BY o.namespace, o.name LIMIT $6",
        *(_pattern(text), *_bounds(within), *after[:2], limit, *(only or ())),
    )
    return [_to_object(row) for row in rows]


def name_kind(kind: str) -> str:
    """What clients call the kind of a recorded object that is no materialized view."""
    return ICEBERG if kind == ICEBERG_TABLE else kind


def _pattern(text: str) -> str:
    """For LIKE: the text anywhere, without regard to the case of ASCII letters, as SQL has it."""
    escaped = "".join(f"!{char}" if char in "!%_" else char for char in text)
    return "%" + "".join(char.lower() if char.isascii() else char for char in escaped) + "%"


def _below(column: str, within: Identifier, first: int) -> str:
    if not within:
        # Both parameters are used, as PostgreSQL wants it.
        return f"({column} >= ${first} OR {column} < ${first + 1})"
    return f"{column} >= ${first} AND {column} < ${first + 1}"


def _bounds(within: Identifier) -> tuple[str, str]:
    path = to_path(within)
    # Paths below one start with it and the separator, which sorts just before a space; names that
    # begin like it sort behind that.
    return path, f"{path} "


def _of_kinds(kinds: Collection[str]) -> str:
    wanted = [CONDITIONS[kind] for kind in CONDITIONS if kind in kinds]
    return f"({' OR '.join(wanted)})" if wanted else "1 = 0"


def _read_key(after: str | None) -> tuple[str, str, bool]:
    if after is None:
        return "", "", False
    parts = after.split("\n")
    return (parts[0], parts[1], parts[2] == "1") if len(parts) == 3 else ("", "", False)


def _to_namespace(row: Row) -> Name:
    return Name(NAMESPACE, (*from_path(row[0]), row[1]), row[2])


def _to_object(row: Row) -> Name:
    namespace, name, kind, is_materialized, created_at, version, updated_at = row
    word = MATERIALIZED if is_materialized else name_kind(kind)
    return Name(word, (*from_path(namespace), name), created_at, version, updated_at)
