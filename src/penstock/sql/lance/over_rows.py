"""What is asked of a view's rows, in Lance's SQL: over its one table, or as SQL for Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.errors import InvalidRequest
from penstock.lance.columns.fields import parse_path
from penstock.model.identifiers import Identifier
from penstock.model.views import Rows
from penstock.sql.lance.dialect import LANCE
from penstock.sql.lance.query import LanceQuery, read_lance_query
from penstock.sql.parsing.guard import Refused, guard
from penstock.sql.parsing.parse import find_double_quoted, parse_query
from penstock.sql.parsing.splice import quote, rename_tables
from penstock.sql.results import Refusal, SqlProblem

# What a search adds to the rows, and is selected by these names.
ADDED = ("_rowid", "_distance", "_score", "_relevance_score")


@dataclass(frozen=True, slots=True)
class Selection:
    """Outputs, by name and expression (none stand for all columns), and a filter."""

    outputs: tuple[tuple[str, str], ...] = ()
    filter: str | None = None

    def to_sql(self) -> str:
        shown = ", ".join(f"{text}\n AS `{name}`" for name, text in self.outputs) or "*"
        # On lines of their own: nothing in one text can be about the next.
        where = f" WHERE (\n{self.filter}\n)" if self.filter is not None else ""
        return f"SELECT {shown} FROM view{where}"


@dataclass(frozen=True, slots=True)
class TableSelection:
    """The same over the view's table: outputs by name, the view's own filter, and the asked one."""

    columns: dict[str, str]
    own: str | None
    asked: str | None


def select(columns: Sequence[str] | Mapping[str, str] | None, filter: str | None) -> Selection:
    """Columns by name, or expressions by alias; None is all of them."""
    if isinstance(columns, Mapping):
        outputs = dict(columns)
    else:
        outputs = {
            each: ".".join(f"`{part}`" for part in parse_path(each)) for each in columns or ()
        }
    for text in (*outputs.values(), filter or ""):
        if (found := find_double_quoted(text, LANCE)) is not None:
            raise InvalidRequest(
                f"{found[:40]} is a name or a text: Lance reads it as either",
                detail="write names in `back-quotes`, and texts in 'quotes'",
            )
    for name, text in outputs.items():
        if "`" in name or not text.strip():
            raise InvalidRequest(
                f"Lance's SQL can't name the column {name}", detail="give it another alias"
            )
    return Selection(tuple(outputs.items()), filter)


def put_over_table(asked: Selection, rows: Rows) -> TableSelection | Refusal:
    """What is asked of the rows, in terms of the table that they are made of."""
    texts = {
        column.name: column.expression if column.path is not None else f"({column.expression})"
        for column in rows.columns
    }
    added = {name: name for name, text in asked.outputs if name in ADDED and text == f"`{name}`"}
    kept = tuple(each for each in asked.outputs if each[0] not in added)
    alone = bool(added) and not kept
    plain = Selection((("x", "1"),) if alone else kept, asked.filter)
    found = read_lance_query(plain.to_sql(), list(texts), (), None, texts)
    if not isinstance(found, LanceQuery):
        # Its lines and columns are those of a text that nobody has seen.
        return Refusal(found.reason)
    columns = {} if alone else {output.name: output.text for output in found.outputs}
    return TableSelection(columns | added, rows.filter, found.filter)


def to_spark(asked: Selection, view: Identifier) -> str | Refusal:
    """What is asked of a view's rows as a statement in Spark's dialect."""

    def work() -> str:
        # By sqlglot, because texts and names are quoted in other ways there.
        text = _parse(asked.to_sql(), LANCE).sql(dialect="spark")
        named = ".".join(map(quote, view))
        return rename_tables(text, _parse(text, "spark"), "spark", lambda _: named)

    return guard("writing the query for Spark", work)


def are_alike(lance: str, other: str | None) -> bool:
    """Whether two expressions in Lance's SQL differ in no more than brackets and quotes."""
    if other is None:
        return False
    alike = guard("comparing", lambda: _normalize(lance) == _normalize(other))
    return alike is True


def _normalize(text: str) -> exp.Query:
    tree = _parse(f"SELECT {text}", LANCE)
    for name in tree.find_all(exp.Identifier):
        name.set("quoted", False)
    for bracket in list(tree.find_all(exp.Paren)):
        bracket.replace(bracket.this)
    return tree


def _parse(sql: str, dialect: str) -> exp.Query:
    tree = parse_query(sql, dialect)
    if isinstance(tree, SqlProblem):
        raise Refused(tree.message)
    return tree
