"""From a request and the tables as they are now to a definition."""

from collections.abc import Mapping

from penstock.definitions.requests import SourceTable, ViewRequest
from penstock.model.identifiers import Identifier
from penstock.model.views import Definition


def define(request: ViewRequest, tables: Mapping[Identifier, SourceTable]) -> Definition:
    """The view's definition; `tables` are those that its references mean, by their identifiers.

    Raises InvalidRequest, or SchemaMismatch when `output_schema` does not fit.
    """
    raise NotImplementedError
