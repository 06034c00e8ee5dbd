"""Look up which table or Iceberg view each name of a query means."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.errors import InvalidRequest
from penstock.model.identifiers import Identifier, show
from penstock.sql.definitions.requests import Query, Reference, SourceTable, Statement


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Everything that names can mean."""

    tables: Mapping[Identifier, SourceTable]
    views: Mapping[Identifier, Statement]

    def find(self, reference: Reference) -> Identifier | None:
        """What was found before; else the first that exists, or the only one but for its case."""
        if reference.meant is not None:
            return reference.meant or None
        everything = [*self.tables, *self.views]
        for candidate in reference.candidates:
            if candidate in everything:
                return candidate
        for candidate in reference.candidates:
            lowered = _lower(candidate)
            alike = [each for each in everything if _lower(each) == lowered]
            if len(alike) == 1:
                return alike[0]
        return None


def get_known(query: Query, tables: Mapping[Identifier, SourceTable]) -> KnownNames:
    return KnownNames(tables, dict(query.views))


def get_table(known: KnownNames, reference: Reference) -> SourceTable:
    """The table that a name means; raises when it is none."""
    found = known.find(reference)
    if found is None:
        raise missing(reference)
    if found not in known.tables:
        raise InvalidRequest(
            f"{show(found)} is an Iceberg view, and Lance's SQL reads tables only",
            detail='send {"sql": …, "dialect": "spark"}',
        )
    return known.tables[found]


def missing(reference: Reference) -> InvalidRequest:
    return InvalidRequest(
        f"source_query: table {show(reference.name)} does not exist",
        detail="looked for " + " and ".join(show(each) for each in reference.candidates),
    )


def _lower(identifier: Identifier) -> Identifier:
    return tuple(part.lower() for part in identifier)
