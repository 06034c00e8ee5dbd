"""Iceberg views that read a table or view: their SQL knows it by its name, not by its id.

An Iceberg view may be written while no table has the name, so nothing is recorded of what it reads;
its SQL is read when somebody asks.
"""

import functools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.iceberg_views.iceberg_views import IcebergView
from penstock.database.interface import Transaction
from penstock.iceberg.metadata import current_representations, current_version
from penstock.model.identifiers import Identifier, from_path, to_path
from penstock.sql.doors import references

# Letters of a name that no encoding of it changes.
PLAIN = re.compile(r"[A-Za-z0-9_]+")
WORD = re.compile(r"\w+")
# A name in a statement: what it stands for in turn while nothing has the first name.
Spelling = tuple[Identifier, ...]
# How many statements stay read; each is a few hundred bytes.
KEPT_STATEMENTS = 4096


@dataclass(frozen=True, slots=True)
class NamedObject:
    """Something in the catalog that SQL can name."""

    id: str
    identifier: Identifier


@dataclass(frozen=True, slots=True)
class Statement:
    """One representation of an Iceberg view."""

    dialect: str
    sql: str
    namespace: Identifier
    catalog: str | None


async def find_readers(catalog: Catalog, target: NamedObject) -> list[IcebergView]:
    """The Iceberg views whose SQL, in any of its dialects, names this object itself."""
    views = await _list_candidates(catalog, target.identifier[-1])
    views = [view for view in views if view.id != target.id]
    # In a thread, because the first of these loads sqlglot.
    named = await catalog.workers.run(_list_spellings, views, target.identifier) if views else []
    found = []
    for view, spellings in zip(views, named, strict=True):
        if target in await _find_all_meant(catalog, spellings):
            found.append(view)
    return found


async def find_sources(catalog: Catalog, view: IcebergView) -> list[NamedObject]:
    """What the SQL of an Iceberg view names, in those of its dialects that can be read."""
    names = await catalog.workers.run(_list_names, view)
    meant = await _find_all_meant(catalog, names)
    return [each for each in dict.fromkeys(meant) if each.id != view.id]


async def find_readers_of_namespace(catalog: Catalog, namespace: Identifier) -> list[IcebergView]:
    """The Iceberg views outside a namespace whose SQL names something in it."""
    depth = len(namespace)
    views = await _list_candidates(catalog, namespace[-1])
    views = [view for view in views if view.namespace[:depth] != namespace]
    named = await catalog.workers.run(_list_spellings, views, namespace) if views else []
    found = []
    for view, spellings in zip(views, named, strict=True):
        meant = await _find_all_meant(catalog, spellings)
        if any(each.identifier[:depth] == namespace for each in meant):
            found.append(view)
    return found


async def _find_all_meant(catalog: Catalog, spellings: Collection[Spelling]) -> list[NamedObject]:
    database = catalog.database
    return [each for spelling in spellings for each in await find_meant(database, spelling)]


async def find_meant(tx: Transaction, spelling: Spelling) -> list[NamedObject]:
    """What a name in SQL may stand for; an engine's name may begin with that of its catalog."""
    first = spelling[0]
    for candidate in (*filter(None, spelling), *([first[1:]] if len(first) > 2 else [])):
        path = to_path(candidate[:-1])
        rows = await tx.fetch(
            "SELECT id, namespace, name FROM objects "
            "WHERE namespace IN ($1, $2) AND lower(name) = lower($3) "
            "AND kind <> 'function' "
            # However many are alike, the exact one is among them.
            "ORDER BY CASE WHEN namespace = $1 AND name = $3 THEN 0 ELSE 1 END LIMIT 10",
            *(path, path.lower(), candidate[-1]),
        )
        found = [NamedObject(row[0], (*from_path(row[1]), row[2])) for row in rows]
        if found:
            return [each for each in found if each.identifier == candidate] or found
    return []


def list_statements(view: IcebergView) -> list[Statement]:
    """The current SQL of an Iceberg view, in all its dialects."""
    metadata = msgspec.json.decode(view.document.text)
    version = current_version(metadata)
    namespace, held = tuple(version["default-namespace"]), version.get("default-catalog")
    return [
        Statement(dialect, sql, namespace, held)
        for dialect, sql in current_representations(metadata)
    ]


def mentions(sql: str, word: str) -> bool:
    """Whether a name is among the words of a text, for statements that can't be read."""
    words = {each.lower() for each in WORD.findall(sql)}
    return set(WORD.findall(word.lower())) <= words


async def _list_candidates(catalog: Catalog, name: str) -> list[IcebergView]:
    """The views whose text has the name somewhere, so that few of them have to be read."""
    needle = max(PLAIN.findall(name), key=len, default="").lower()
    rows = await catalog.database.fetch(
        f"SELECT {iceberg_views.COLUMNS} FROM objects o JOIN views v ON v.id = o.id "
        "WHERE lower(v.metadata) LIKE $1 ORDER BY o.namespace, o.name",
        f"%{needle}%",
    )
    return [iceberg_views.to_view(row) for row in rows]


def _list_names(view: IcebergView) -> list[Spelling]:
    named = [_list_references(each) or () for each in list_statements(view)]
    return list(dict.fromkeys(name for names in named for name in names))


def _list_spellings(views: list[IcebergView], target: Identifier) -> list[set[Spelling]]:
    return [
        {name for each in list_statements(view) for name in find_spellings(each, target)}
        for view in views
    ]


def find_spellings(statement: Statement, target: Identifier) -> Iterator[Spelling]:
    """The names in a statement that may mean the target, or something in it.

    They may differ in case, and an engine's name may begin with that of its catalog.
    """
    named = _list_references(statement)
    if named is None:
        *namespace, name = target
        is_near = statement.namespace == tuple(namespace)
        if mentions(statement.sql, name) and (
            is_near or mentions(statement.sql, " ".join(namespace))
        ):
            yield (target,)
        return
    wanted, depth = _fold(target), len(target)
    for each in named:
        names = [*(name[:depth] for name in each), each[0][1 : depth + 1]]
        if wanted in map(_fold, names):
            yield each


@functools.lru_cache(maxsize=KEPT_STATEMENTS)
def _list_references(statement: Statement) -> tuple[Spelling, ...] | None:
    return references.judge_references(
        statement.sql, statement.dialect, statement.namespace, statement.catalog
    )


def _fold(name: Identifier) -> Identifier:
    return tuple(part.lower() for part in name)
