"""Edit a statement's text and leave every other character as it is.

Writing out a tree may change the meaning, and only names need to change. What Spark gets in the end
is written from the edited text (`sql/spark/text/checked_sql.py`).
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from sqlglot import exp

from penstock.sql.parsing.guard import Refused
from penstock.sql.parsing.parse import locate
from penstock.sql.parsing.references import find_tables

# Tokens that may follow a table's name in FROM.
TABLE_PARTS = {"this", "db", "catalog", "alias", "joins", "laterals"}


class Edit(NamedTuple):
    start: int
    # The first character after it.
    end: int
    text: str


def splice(sql: str, edits: Iterable[Edit], start: int = 0, end: int | None = None) -> str:
    """The part of a text from start to end, with the edits applied."""
    end = len(sql) if end is None else end
    parts, at = [], start
    for edit in sorted(edits):
        parts += [sql[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, sql[at:end]])


def quote(name: str) -> str:
    """A name quoted for Spark."""
    return "`" + name.replace("`", "``") + "`"


def get_span(*identifiers: exp.Expr) -> tuple[int, int]:
    """The span of some identifiers: from the first character to the one after their last."""
    places = [each.meta for each in identifiers]
    if any("start" not in place for place in places):
        raise Refused("the statement has a name whose place can't be told")
    return min(place["start"] for place in places), max(place["end"] for place in places) + 1


def rename_tables(sql: str, tree: exp.Query, dialect: str, name: Callable[[exp.Table], str]) -> str:
    """The text with other tables (a quoted name, or a query in brackets) under the same aliases."""
    edits: list[Edit] = []
    read: set[tuple[str, ...]] = set()
    for table in find_tables(tree, dialect):
        start, end = get_span(*table.parts)
        extra = sorted(key for key, value in table.args.items() if value and key not in TABLE_PARTS)
        if extra:
            raise Refused(
                f"a view reads a table as a whole, at its newest version: remove {extra[0]} from"
                f" {sql[start:end]}",
                *locate(sql, start),
            )
        alias = "" if table.alias else f" AS {quote(table.parts[-1].name)}"
        edits.append(Edit(start, end, name(table) + alias))
        if not table.alias and len(table.parts) > 1:
            read.add(tuple(part.name.lower() for part in table.parts[-2:]))
    # namespace.table.column becomes table.column.
    edits += [
        Edit(get_span(*column.parts)[0], get_span(column.args["table"])[0], "")
        for column in tree.find_all(exp.Column)
        if column.db and (column.db.lower(), column.table.lower()) in read
    ]
    return splice(sql, edits)
