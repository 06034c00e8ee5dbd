"""What all parts of a table share: its name, branch and version, and its connection."""

from typing import Any

from penstock.errors import InvalidRequest
from penstock.model.identifiers import Identifier
from penstock.sdk.connection.names import show_id
from penstock.sdk.connection.wire import Body, Wire, path_of
from penstock.sdk.tables.query import Query


class Handle:
    """A table of a server, on a branch, at a version or the newest one."""

    def __init__(
        self,
        wire: Wire,
        id: Identifier,
        *,
        branch: str | None = None,
        at: int | None = None,
    ) -> None:
        self._wire = wire
        self.id = id
        self._branch = branch
        self._at = at

    @property
    def name(self) -> str:
        """Its name with its namespaces, as in `shop.items`."""
        return show_id(self.id)

    def _query(self) -> Query:
        return Query(self._wire, self.id, version=self._at, branch=self._branch)

    def _read(self, operation: str, body: Any) -> Any:
        return self._wire.read(path_of("table", self.id, operation), body)

    def _change(self, operation: str, body: Any, **params: Any) -> Any:
        """Change the table, at its newest version."""
        self._check_newest()
        return self._note(operation, body, **params)

    def _note(self, operation: str, body: Any, **params: Any) -> Any:
        """Change metadata about versions, whichever version this is."""
        return self._wire.change(path_of("table", self.id, operation), body, **params)

    def _upload(self, operation: str, body: Body, **params: Any) -> Any:
        self._check_newest()
        path = path_of("table", self.id, operation)
        return self._wire.upload(path, body, branch=self._branch, **params)

    def _check_newest(self) -> None:
        if self._at is not None:
            raise InvalidRequest(
                f"{self.name} is at version {self._at}, and old versions are not changed",
                detail="restore it, or make a branch of it",
            )
