"""Dump the catalog's rows and load them into another database, of either kind."""

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.database.interface import Transaction
from penstock.model.rights import ICEBERG_TABLE

# Ordered so that a row comes after the rows it refers to.
KEPT = (
    *("namespaces", "objects", "tables", "table_versions", "transactions", "views"),
    *("idempotency_keys", "jobs", "job_slots", "job_events", "job_logs", "manifests", "columns"),
    *("function_code", "functions", "function_versions", "declarations"),
    *("tokens", "grants", "audit", "environments"),
    *("materialized_views", "view_sources", "refresh_schedules", "view_definitions"),
    *("view_alterations", "upkeep_policies", "locks"),
)
# Not dumped: a restored catalog signs tokens with keys of its own, and has nothing to remove,
# because dropped tables are not copied. Files of Iceberg tables name each other by absolute paths,
# and are not copied either: two catalogs must not commit to the same ones. Whoever was signed in
# signs in again, and sizes are noted anew.
LEFT_OUT = (
    *("signing_keys", "lake_mark", "removals", "migrations", "iceberg_tables", "console_sessions"),
    *("table_sizes", "table_growth"),
)
_ICEBERG_TABLES = f"SELECT id FROM objects WHERE kind = '{ICEBERG_TABLE}'"
# Which rows of a relation are dumped, if not all.
_WHERE = {
    # Claims of running processes mean nothing in another catalog.
    "locks": "WHERE name NOT LIKE '%:%'",
    "objects": f"WHERE id NOT IN ({_ICEBERG_TABLES})",
    "grants": f"WHERE target NOT IN ({_ICEBERG_TABLES})",
}
# The second is the first as backups of schema 16 and older call it.
BINARY = {("function_code", "content"), ("functions", "content")}
# Rows that every fresh database has.
SEEDED = ("namespaces", "locks")
# Both databases accept about 32,000 values per statement.
MOST_VALUES = 8_000
ROWS_IN_A_PIECE = 20_000


class Header(msgspec.Struct, frozen=True):
    """The first line of a piece: what its rows are."""

    relation: str
    columns: list[str]


@dataclass(frozen=True, slots=True)
class Relation:
    """The rows of one relation; a backup may change them before it writes them."""

    name: str
    columns: list[str]
    rows: list[list[Any]]

    def dicts(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)


Dump = dict[str, Relation]


async def dump(tx: Transaction, kind: str) -> Dump:
    """Every row that a backup keeps."""
    found = {}
    for relation in KEPT:
        columns = await _list_columns(tx, kind, relation)
        by = "path" if relation == "namespaces" else ", ".join(map(str, range(1, len(columns) + 1)))
        where = _WHERE.get(relation, "")
        rows = await tx.fetch(f"SELECT {', '.join(columns)} FROM {relation} {where} ORDER BY {by}")
        found[relation] = Relation(relation, columns, [list(row) for row in rows])
    return found


def encode(relations: Iterable[Relation]) -> Iterator[tuple[str, bytes]]:
    """The rows as named pieces of JSON lines."""
    encoder = msgspec.json.Encoder()
    for relation in relations:
        for start in range(0, len(relation.rows), ROWS_IN_A_PIECE):
            rows = relation.rows[start : start + ROWS_IN_A_PIECE]
            # Bytes are encoded as base64.
            lines = [encoder.encode(Header(relation.name, relation.columns))]
            lines += [encoder.encode(row) for row in rows]
            number = start // ROWS_IN_A_PIECE
            yield f"{relation.name}.{number:04d}.jsonl", b"\n".join(lines) + b"\n"


def decode(pieces: Iterable[bytes]) -> Dump:
    """The rows of all pieces."""
    found: Dump = {}
    for piece in pieces:
        lines = piece.splitlines()
        header = msgspec.json.decode(lines[0], type=Header)
        into = found.setdefault(header.relation, Relation(header.relation, header.columns, []))
        into.rows.extend(_decode(header, line) for line in lines[1:])
    return found


async def load(tx: Transaction, rows: Dump) -> None:
    """Load the rows into an empty catalog."""
    for relation in SEEDED:
        await tx.fetch(f"DELETE FROM {relation}")
    for relation in KEPT:
        if relation in rows:
            await _insert(tx, rows[relation])


async def _insert(tx: Transaction, relation: Relation) -> None:
    width = len(relation.columns)
    most = max(1, MOST_VALUES // width)
    for start in range(0, len(relation.rows), most):
        some = relation.rows[start : start + most]
        marks = ", ".join(
            f"({', '.join(f'${at * width + n}' for n in range(1, width + 1))})"
            for at in range(len(some))
        )
        await tx.fetch(
            f"INSERT INTO {relation.name} ({', '.join(relation.columns)}) VALUES {marks}",
            *(value for row in some for value in row),
        )


async def _list_columns(tx: Transaction, kind: str, relation: str) -> list[str]:
    sql = (
        "SELECT column_name FROM information_schema.columns WHERE table_name = $1 "
        "AND table_schema = current_schema() ORDER BY ordinal_position"
        if kind == "postgresql"
        else "SELECT name FROM pragma_table_info($1)"
    )
    return [str(row[0]) for row in await tx.fetch(sql, relation)]


def _decode(header: Header, line: bytes) -> list[Any]:
    values: list[Any] = msgspec.json.decode(line)
    for at, column in enumerate(header.columns):
        if (header.relation, column) in BINARY:
            values[at] = base64.b64decode(values[at])
    return values
