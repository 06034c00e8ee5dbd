"""Tables of a remote catalog, opened like any client does. Everything here blocks.

Tables opened here commit through the catalog's server; opened by path (`open_version`), they are
only read.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

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
from penstock.lance.doors import lance, lance_namespace, namespace, namespace_errors
from penstock.lance.errors import translated
from penstock.lance.session.bases import check_opened
from penstock.lance.session.held_versions import HeldVersions
from penstock.lance.storage.lake import Lake, Place

T = TypeVar("T")

# A worker goes through fragments of one version, and a few jobs share it.
MAX_OPEN = 8


@dataclass(frozen=True, slots=True)
class Location:
    """Where a table is, and the options of its store: all that a worker needs."""

    uri: str
    branch: str
    options: Mapping[str, str] = field(default_factory=dict)
    # An unpublished version, and its manifest's path in the table's folder.
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
        headers = {"header.Authorization": f"Bearer {token}"} if token else {}
        connect: Any = namespace.RestNamespace
        self._namespace = connect(uri=url, **headers)
        self._options = dict(options or {})

    def locate(self, table: Sequence[str], branch: str) -> Location:
        """Ask where a table is."""
        request = lance_namespace.DescribeTableRequest(id=list(table))
        found = self._ask(table, lambda: self._namespace.describe_table(request))
        options = {**(found.storage_options or {}), **self._options}
        return Location(found.location or "", branch, options)

    def open_latest(self, table: Sequence[str], branch: str) -> "lance.LanceDataset":
        """Open the newest version of a branch, in a handle whose commits the catalog decides."""

        def open() -> "lance.LanceDataset":
            dataset = lance.dataset(
                namespace_client=self._namespace,
                table_id=list(table),
                storage_options=self._options or None,
            )
            found = dataset.checkout_version((branch, None)) if branch else dataset
            return check_opened(found, dataset.uri)

        return self._ask(table, open)

    def _ask(self, table: Sequence[str], work: Callable[[], T]) -> T:
        try:
            with translated():
                return work()
        except namespace_errors.LanceNamespaceError as error:
            raise _refused("$".join(table), error) from error


def open_version(location: Location, version: int, reader: str = "") -> "lance.LanceDataset":
    """Open one version for reading; it stays open for the next call of the same reader."""
    options = tuple(sorted(location.options.items()))
    manifest = location.manifest if version == location.held else ""
    try:
        with translated():
            found: lance.LanceDataset = _open(
                location.uri, location.branch, version, options, reader, manifest
            )
            return found
    except (InvalidRequest, InvalidTableState) as error:
        raise VersionNotFound(
            f"version {version} of the table at {location.uri} cannot be opened: {error.message}",
            detail="choose a version that the table still has",
        ) from error


def open_planned(location: Location, version: int, reader: str) -> "lance.LanceDataset":
    """`open_version` for a worker: the version existed when the driver planned.

    If it was cleaned up since, that is no error of the job's: another attempt plans again.
    """
    try:
        return open_version(location, version, reader)
    except VersionNotFound as error:
        raise VanishedFile(error.message) from error


def open_newest(location: Location) -> "lance.LanceDataset":
    """Open the newest version on storage for reading, without asking the catalog."""
    with translated():
        dataset = lance.dataset(location.uri, storage_options=dict(location.options) or None)
        found = dataset.checkout_version((location.branch, None)) if location.branch else dataset
        return check_opened(found, location.uri)


# A branch may be deleted and created again with the same numbers, so readers do not share handles.
@functools.lru_cache(MAX_OPEN)
def _open(
    uri: str,
    branch: str,
    version: int,
    options: tuple[tuple[str, str], ...],
    reader: str,
    manifest: str,
) -> Any:
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
    text = str(error).splitlines()[0][:300]
    kinds: dict[type[Exception], type[PenstockError]] = {
        namespace_errors.TableNotFoundError: TableNotFound,
        namespace_errors.NamespaceNotFoundError: TableNotFound,
        namespace_errors.TableBranchNotFoundError: BranchNotFound,
        namespace_errors.PermissionDeniedError: Forbidden,
        namespace_errors.UnauthenticatedError: Forbidden,
    }
    kind = next((ours for theirs, ours in kinds.items() if isinstance(error, theirs)), Unavailable)
    return kind(f"the catalog does not open table {table}: {text}")
