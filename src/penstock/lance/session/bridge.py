"""The bridge from pylance's commits to the catalog's commit function.

pylance takes a Python object as its namespace and asks it, from its own threads, which versions
there are and to create the next one. Ours answers from the catalog in this process, so the server's
own commits are arbitrated like everyone else's.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from lance_namespace import DescribeTableResponse, LanceNamespace
from lance_namespace.errors import (
    ConcurrentModificationError,
    LanceNamespaceError,
    ServiceUnavailableError,
    TableVersionNotFoundError,
)

from penstock.errors import (
    ConcurrentCommit,
    DamagedFile,
    PenstockError,
    Unavailable,
    VersionNotFound,
)
from penstock.model.origins import Origin

Request = Mapping[str, Any]
# A version in the protocol's form: version, manifest_path, manifest_size, e_tag …
Entry = dict[str, Any]


class Arbiter(Protocol):
    """One table's versions, from the catalog; called from pylance's threads."""

    origin: Origin

    def find_latest(self, branch: str | None) -> Entry | None: ...

    def get_version(self, branch: str | None, version: int) -> Entry: ...

    def create_version(self, request: Request) -> tuple[Entry, str]: ...


class Bridge(LanceNamespace):
    """A namespace of one table, for pylance."""

    def __init__(self, arbiter: Arbiter, location: str) -> None:
        self._arbiter = arbiter
        self._location = location
        # The catalog's answer to the last refused commit, for the caller.
        self.refusal: PenstockError | None = None
        # Where the manifest of the last commit was staged.
        self.staged_path = ""
        # The transaction of the last successful commit.
        self.transaction_id = ""

    def commit_for(self, origin: Origin) -> None:
        """Set the origin of the commits from now on."""
        self._arbiter.origin = origin
        self.refusal, self.transaction_id = None, ""

    def namespace_id(self) -> str:
        return "penstock"

    def describe_table(self, request: Any) -> DescribeTableResponse:
        return DescribeTableResponse(location=self._location, managed_versioning=True)

    def list_table_versions(self, request: Request) -> dict[str, Any]:  # type: ignore[override]
        try:
            latest = self._arbiter.find_latest(request.get("branch"))
        except DamagedFile as error:
            self.refusal = error
            raise _translate(error) from error
        if isinstance(self.refusal, DamagedFile):
            # The file has been repaired since.
            self.refusal = None
        return {"versions": [] if latest is None else [latest]}

    def describe_table_version(self, request: Request) -> dict[str, Any]:  # type: ignore[override]
        if request["version"] == 0:
            # The base of a table's first version, which only matters when it is not the first.
            raise ConcurrentModificationError("commit conflict: the table has a version by now")
        try:
            return {"version": self._arbiter.get_version(request.get("branch"), request["version"])}
        except PenstockError as error:
            raise _translate(error) from error

    def create_table_version(self, request: Request) -> dict[str, Any]:  # type: ignore[override]
        self.staged_path = request["manifest_path"]
        try:
            entry, self.transaction_id = self._arbiter.create_version(request)
            return {"version": entry}
        except PenstockError as error:
            self.refusal = error
            raise _translate(error) from error


def _translate(error: PenstockError) -> LanceNamespaceError:
    """The error that pylance knows how to handle."""
    match error:
        case ConcurrentCommit():
            return ConcurrentModificationError(error.message)
        case VersionNotFound():
            return TableVersionNotFoundError(error.message)
        case Unavailable():
            return ServiceUnavailableError(error.message)
        case _:
            return LanceNamespaceError(error.message)
