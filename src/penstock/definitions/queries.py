"""`source_query`: its forms, and the tables and Iceberg views that it names. All of it is pure."""

from penstock.definitions.requests import Query
from penstock.model.identifiers import Identifier


def find_references(source_query: str, namespace: Identifier) -> Query:
    """Read a `source_query` of any form; names in it are read in the namespace of the view.

    Raises InvalidRequest, with the place in the text, for one that is no query.
    """
    raise NotImplementedError


def add_view(
    query: Query,
    view: Identifier,
    sql: str,
    dialect: str,
    namespace: Identifier,
    catalog: str | None = None,
) -> Query:
    """The query with the SQL of an Iceberg view that it names; there may be new references."""
    raise NotImplementedError
