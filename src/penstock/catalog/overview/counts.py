"""How many things of each kind somebody may see, counted from grants and not thing by thing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.catalog.access.grants import OBJECT
from penstock.catalog.names.search import (
    FUNCTION,
    ICEBERG,
    KINDS,
    MATERIALIZED,
    NAMESPACE,
    TABLE,
    VIEW,
    name_kind,
)
from penstock.database.interface import Row, Transaction
from penstock.model.identifiers import SEPARATOR, from_path, to_path

# So many grants of one caller are looked at; beyond that counts are what these show.
MAX_GRANTS = 2_000
# How many parameters one statement comfortably takes.
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Reach:
    """What some grants are on: whole subtrees, and single objects outside of them."""

    trees: tuple[str, ...]
    objects: tuple[str, ...]


async def count(tx: Transaction, only: Sequence[str] | None) -> dict[str, int]:
    """How many there are of each kind that holders of these grants see; None sees everything."""
    if only is None:
        return await _count_tree(tx, "")
    reach = await find_reach(tx, only)
    found = dict.fromkeys(KINDS, 0)
    for tree in reach.trees:
        for kind, number in (await _count_tree(tx, tree)).items():
            found[kind] += number
    spaces = {above for tree in reach.trees for above in list_above(tree)} - {""}
    for _, namespace, kind, is_materialized in await _read_outside(tx, reach):
        found[MATERIALIZED if is_materialized else name_kind(kind)] += 1
        spaces |= {*list_above(namespace), namespace} - {""}
    found[NAMESPACE] += sum(not any(_is_within(each, t) for t in reach.trees) for each in spaces)
    return found


async def find_reach(tx: Transaction, only: Sequence[str]) -> Reach:
    """What the grants of a caller show."""
    places = ", ".join(f"${n + 2}" for n in range(len(only)))
    rows = await tx.fetch(
        f"SELECT DISTINCT scope, target FROM grants WHERE grantee IN ({places}) "
        "AND role <> 'functions' ORDER BY scope, target LIMIT $1",
        *(MAX_GRANTS, *only),
    )
    trees = keep_outermost(target for scope, target in rows if scope != OBJECT)
    return Reach(trees, tuple(target for scope, target in rows if scope == OBJECT))


def keep_outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Paths without those that are below another one."""
    kept = list[str]()
    for path in sorted(set(paths), key=from_path):
        if not any(_is_within(path, each) for each in kept):
            kept.append(path)
    return tuple(kept)


def list_above(path: str) -> list[str]:
    """The namespaces around one, the root among them."""
    parts = from_path(path)
    return [to_path(parts[:depth]) for depth in range(len(parts))]


def _is_within(path: str, tree: str) -> bool:
    return not tree or path == tree or path.startswith(f"{tree}{SEPARATOR}")


async def _count_tree(tx: Transaction, tree: str) -> dict[str, int]:
    found = dict.fromkeys(KINDS, 0)
    # Paths below one start with it and the separator, which sorts just before a space.
    bounds: tuple[str, ...] = (tree, f"{tree}{SEPARATOR}", f"{tree} ")
    within = "(namespace = $1 OR (namespace >= $2 AND namespace < $3))"
    objects, spaces = f"SELECT kind, count(*) FROM objects WHERE {within} GROUP BY kind", within
    spaces = spaces.replace("namespace", "path")
    views = (
        "SELECT count(*) FROM materialized_views m JOIN objects o ON o.id = m.id "
        f"WHERE {within.replace('namespace', 'o.namespace')}"
    )
    namespaces = f"SELECT count(*) FROM namespaces WHERE {spaces}"
    if not tree:
        objects = "SELECT kind, count(*) FROM objects GROUP BY kind"
        views = "SELECT count(*) FROM materialized_views"
        namespaces = "SELECT count(*) FROM namespaces WHERE path <> ''"
        bounds = ()
    for kind, number in await tx.fetch(objects, *bounds):
        if (word := name_kind(kind)) in (TABLE, VIEW, ICEBERG, FUNCTION):
            found[word] = number
    found[MATERIALIZED] = await _number(tx, views, *bounds)
    found[TABLE] -= found[MATERIALIZED]
    found[NAMESPACE] = await _number(tx, namespaces, *bounds)
    return found


async def _number(tx: Transaction, sql: str, *values: object) -> int:
    row = await tx.fetch_one(sql, *values)
    assert row is not None
    return int(row[0])


async def list_outside(tx: Transaction, reach: Reach) -> list[str]:
    """The ids of the objects that no subtree shows."""
    return [row[0] for row in await _read_outside(tx, reach)]


async def _read_outside(tx: Transaction, reach: Reach) -> list[Row]:
    found = list[Row]()
    for start in range(0, len(reach.objects), AT_ONCE):
        ids = reach.objects[start : start + AT_ONCE]
        places = ", ".join(f"${n + 1}" for n in range(len(ids)))
        found += await tx.fetch(
            "SELECT o.id, o.namespace, o.kind, m.id IS NOT NULL FROM objects o "
            f"LEFT JOIN materialized_views m ON m.id = o.id WHERE o.id IN ({places})",
            *ids,
        )
    return [row for row in found if not any(_is_within(row[1], tree) for tree in reach.trees)]
