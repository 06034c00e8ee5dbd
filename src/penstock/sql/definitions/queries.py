"""Forms of `source_query`, and the tables and Iceberg views that it names. Everything is pure."""

from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from penstock.errors import InvalidRequest
from penstock.model.identifiers import Identifier, check_identifier, show
from penstock.model.views import Language
from penstock.sql.definitions.dumps import read_dump
from penstock.sql.definitions.refusals import refuse
from penstock.sql.definitions.requests import Query, Reference, Statement
from penstock.sql.parsing.languages import find_dialect
from penstock.sql.parsing.parse import find_double_quoted
from penstock.sql.parsing.references import list_candidates
from penstock.sql.parsing.statements import read_statement

LANCE_NAMES = ("lance", "lancedb", "datafusion")
MAX_REFERENCES = 100
FORMS = (
    'send SQL, or a JSON object with "sql", with "iceberg_view", or with "base" and "source_table"'
)


def find_references(source_query: str, namespace: Identifier) -> Query:
    """Read a `source_query` of any form; its names are looked up in the view's namespace.

    Raises InvalidRequest, with the place in the text, when it is no query.
    """
    if not source_query.strip():
        raise InvalidRequest("source_query is empty", detail=FORMS)
    if not source_query.lstrip().startswith("{"):
        return Query(language="spark", statement=_read_statement(source_query, "spark", namespace))
    try:
        found = msgspec.json.decode(source_query)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidRequest(
            f"source_query is not JSON, though it begins like it: {error}", detail=FORMS
        ) from error
    if "iceberg_view" in found:
        name = _read_names(found["iceberg_view"], "iceberg_view")
        return Query(language="spark", view=_refer(name, namespace))
    if "base" in found or "source_table" in found:
        return Query(language="lance", dump=read_dump(found, namespace))
    for key, dialect in (("sql", "spark"), ("query", "lance")):
        if key in found:
            return _read_sql(found, key, dialect, namespace)
    raise InvalidRequest("source_query is a JSON object of no known form", detail=FORMS)


def read_sql(sql: str, dialect: str | None, namespace: Identifier) -> Query:
    """Read a statement that is run once; raises InvalidRequest, with the place in the text."""
    known = _find_dialect(dialect or "spark")
    statement = _read_statement(sql, known, namespace)
    language: Language = "lance" if known == "lance" else "spark"
    return Query(language=language, statement=statement, use="statement")


def read_name(view: Identifier) -> Query:
    """All rows of an Iceberg view, for once."""
    return Query(language="spark", view=Reference(view, (view,)), use="statement")


def read_view(sql: str, dialect: str | None, namespace: Identifier) -> Query:
    """Read the query of a view that holds no rows, in any form; raises InvalidRequest.

    Without a dialect it is Spark's, and nothing in it may be something else in other dialects.
    """
    if sql.lstrip().startswith("{"):
        found = find_references(sql, namespace)
        if found.view is not None or found.functions:
            raise InvalidRequest(
                "a view that holds no rows is a query, without functions that fill columns",
                detail="write it as SELECT … FROM …, or make a materialized view",
            )
        return structs.replace(found, use="statement")
    if dialect is None and (quoted := find_double_quoted(sql, "spark")) is not None:
        raise InvalidRequest(
            f"{quoted[:40]} is a text in Spark's dialect, and a name in others",
            detail="write names in `back-quotes`, and texts in 'quotes'",
        )
    return read_sql(sql, dialect, namespace)


class QueryText(NamedTuple):
    """The SQL in a `source_query`; of a JSON object, also the key that it is under."""

    sql: str
    dialect: str
    namespace: Identifier
    key: str | None


def find_text(source_query: str, namespace: Identifier) -> QueryText | None:
    """The SQL in a `source_query` that was read before; None when it only names a view.

    Raises InvalidRequest for a form that has no statement.
    """
    query = find_references(source_query, namespace)
    if query.view is not None:
        return None
    if query.statement is None:
        raise InvalidRequest("its query is no SQL", detail="change it by hand")
    found = query.statement
    if not source_query.lstrip().startswith("{"):
        return QueryText(found.sql, found.dialect, found.namespace, None)
    key = "sql" if "sql" in msgspec.json.decode(source_query) else "query"
    return QueryText(found.sql, found.dialect, found.namespace, key)


def add_view(
    query: Query,
    view: Identifier,
    sql: str,
    dialect: str,
    namespace: Identifier,
    catalog: str | None = None,
) -> Query:
    """Add the SQL of an Iceberg view that a query names; there may be new references."""
    if view in dict(query.views):
        return query
    try:
        statement = _read_statement(sql, _find_dialect(dialect), namespace, catalog)
    except InvalidRequest as error:
        raise InvalidRequest(
            f"view {show(view)} can't be read: {error.message}", detail=error.detail
        ) from error
    added = structs.replace(query, views=(*query.views, (view, statement)))
    if len(added.references) > MAX_REFERENCES:
        raise InvalidRequest(
            f"the query reads more than {MAX_REFERENCES} tables and views",
            detail="make views of its parts",
        )
    return added


def _read_sql(found: dict[str, Any], key: str, dialect: str, namespace: Identifier) -> Query:
    sql, named = found[key], found.get("dialect") or dialect
    if not isinstance(sql, str) or not isinstance(named, str):
        raise InvalidRequest(f"{key} or dialect in source_query is no text", detail=FORMS)
    if found.get("namespace") is not None:
        namespace = _read_names(found["namespace"], "namespace", empty=True)
    known = _find_dialect(named)
    statement = _read_statement(sql, known, namespace)
    return Query(language="lance" if known == "lance" else "spark", statement=statement)


def _find_dialect(name: str) -> str:
    if name.strip().lower() in LANCE_NAMES:
        return "lance"
    known = find_dialect(name)
    if known is None:
        raise InvalidRequest(
            f"the dialect {name[:100]!r} is not known", detail="use spark, lance, trino or duckdb"
        )
    return "spark" if known == "databricks" else known


def _read_statement(
    sql: str, dialect: str, namespace: Identifier, catalog: str | None = None
) -> Statement:
    found = read_statement(sql, dialect, namespace, catalog)
    if not isinstance(found, tuple):
        raise refuse(found)
    if not found:
        raise InvalidRequest(
            "the query reads no table", detail="a view is made of the rows of tables"
        )
    if len(found) > MAX_REFERENCES:
        raise InvalidRequest(
            f"the query reads {len(found)} tables", detail=f"use {MAX_REFERENCES} at most"
        )
    references: dict[Identifier, Reference] = {}
    for name, first in found:
        check_identifier(first, "a table in source_query")
        made = _refer(name, namespace, first)
        # By the dialect's rules these are one name, however it is written.
        before = references.setdefault(first, made).candidates
        both = tuple(dict.fromkeys((*before, *made.candidates)))
        references[first] = structs.replace(references[first], candidates=both)
    return Statement(
        sql=sql,
        dialect=dialect,
        namespace=namespace,
        catalog=catalog,
        references=tuple(references.values()),
    )


def _refer(name: Identifier, namespace: Identifier, first: Identifier | None = None) -> Reference:
    return Reference(name, list_candidates(name, namespace, first))


def _read_names(found: object, what: str, empty: bool = False) -> Identifier:
    if isinstance(found, str) and found:
        found = [found]
    names = found if isinstance(found, list) else None
    if names is None or not all(isinstance(each, str) for each in names) or not (names or empty):
        raise InvalidRequest(
            f"{what} in source_query is not a list of names", detail='write ["namespace", "name"]'
        )
    return check_identifier(tuple(names), f"{what} in source_query")
