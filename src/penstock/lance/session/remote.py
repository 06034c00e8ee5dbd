"""Tables of a catalog elsewhere, opened as any client opens them. All of it blocks.

What is opened here commits through the catalog's server; by path (`open_version`) it only reads.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.errors import (
    BranchNotFound,
    Forbidden,
    InvalidRequest,
    InvalidTableState,
    PenstockError,
    TableNotFound,
    Unavailable,
    VanishedFile,
    VersionNotFound,
)
from penstock.lance.errors import translated
from penstock.lance.session.bases import check_opened
from penstock.lance.session.held_versions import HeldVersions
from penstock.lance.storage.lake import Lake, Place

if TYPE_CHECKING:
    from lance import LanceDataset

T = TypeVar("T")

# A worker goes through fragments of one version, and a few jobs share it.
MAX_OPEN = 8


@dataclass(frozen=True, slots=True)
class Location:
    """Where a table lies, and with which options its store is opened: all that a worker needs."""

    uri: str
    branch: str
    options: Mapping[str, str] = field(default_factory=dict)
    # A version that is not published yet, and where its manifest lies in the table's folder.
    held: int | None = None
    manifest: str = ""

    @property
    def data_folder(self) -> str:
        """Where new files of the branch go, relative to the table."""
        return f"tree/{self.branch}/data" if self.branch else "data"

    def place(self) -> Place:
        lake = Lake(self.uri, options=self.options)
        return lake.place(lake.root)


class RemoteCatalog:
    """A catalog's server, as pylance talks to it."""

    def __init__(self, url: str, token: str = "", options: Mapping[str, str] | None = None) -> None:
        from lance.namespace import RestNamespace

        headers = {"header.Authorization": f"Bearer {token}"} if token else {}
        connect: Any = RestNamespace
        self._namespace = connect(uri=url, **headers)
        self._options = dict(options or {})

    def locate(self, table: Sequence[str], branch: str) -> Location:
        """Ask where a table lies."""
        from lance_namespace import DescribeTableRequest

        request = DescribeTableRequest(id=list(table))
        found = self._ask(table, lambda: self._namespace.describe_table(request))
        options = {**(found.storage_options or {}), **self._options}
        return Location(found.location or "", branch, options)

    def open_latest(self, table: Sequence[str], branch: str) -> "LanceDataset":
        """The newest version of a branch, in a handle whose commits the catalog decides."""
        import lance

        def open() -> "LanceDataset":
            dataset = lance.dataset(
                namespace_client=self._namespace,
                table_id=list(table),
                storage_options=self._options or None,
            )
            found = dataset.checkout_version((branch, None)) if branch else dataset
            return check_opened(found, dataset.uri)

        return self._ask(table, open)

    def _ask(self, table: Sequence[str], work: Callable[[], T]) -> T:
        from lance_namespace.errors import LanceNamespaceError

        try:
            with translated():
                return work()
        except LanceNamespaceError as error:
            raise _refused("$".join(table), error) from error


def open_version(location: Location, version: int, reader: str = "") -> "LanceDataset":
    """One version, for reading; it stays open for the next call of the same reader."""
    options = tuple(sorted(location.options.items()))
    manifest = location.manifest if version == location.held else ""
    try:
        with translated():
            found: LanceDataset = _open(
                location.uri, location.branch, version, options, reader, manifest
            )
            return found
    except (InvalidRequest, InvalidTableState) as error:
        raise VersionNotFound(
            f"version {version} of the table at {location.uri} cannot be opened: {error.message}",
            detail="choose a version that the table still has",
        ) from error


def open_planned(location: Location, version: int, reader: str) -> "LanceDataset":
    """The same for a worker: the version was there when the driver planned.

    One that was cleaned up since is no error of the job's: another attempt plans anew.
    """
    try:
        return open_version(location, version, reader)
    except VersionNotFound as error:
        raise VanishedFile(error.message) from error


def open_newest(location: Location) -> "LanceDataset":
    """The newest version that storage has, for reading; the catalog is not asked."""
    import lance

    with translated():
        dataset = lance.dataset(location.uri, storage_options=dict(location.options) or None)
        found = dataset.checkout_version((location.branch, None)) if location.branch else dataset
        return check_opened(found, location.uri)


# A branch may be deleted and made again with the same numbers, so readers do not share handles.
@functools.lru_cache(MAX_OPEN)
def _open(
    uri: str,
    branch: str,
    version: int,
    options: tuple[tuple[str, str], ...],
    reader: str,
    manifest: str,
) -> Any:
    import lance

    found = dict(options) or None
    if manifest:
        key = Location(uri, branch, dict(options)).place().key
        held = HeldVersions(key, version, {version: manifest})
        return held.open(uri, ["held"], dict(options))
    if not branch:
        return check_opened(lance.dataset(uri, version=version, storage_options=found), uri)
    dataset = lance.dataset(uri, storage_options=found)
    return check_opened(dataset.checkout_version((branch, version)), uri)


def _refused(table: str, error: Exception) -> PenstockError:
    """What a server's refusal means for a job."""
    from lance_namespace import errors

    text = str(error).splitlines()[0][:300]
    kinds: dict[type[Exception], type[PenstockError]] = {
        errors.TableNotFoundError: TableNotFound,
        errors.NamespaceNotFoundError: TableNotFound,
        errors.TableBranchNotFoundError: BranchNotFound,
        errors.PermissionDeniedError: Forbidden,
        errors.UnauthenticatedError: Forbidden,
    }
    kind = next((ours for theirs, ours in kinds.items() if isinstance(error, theirs)), Unavailable)
    return kind(f"the catalog does not open table {table}: {text}")
