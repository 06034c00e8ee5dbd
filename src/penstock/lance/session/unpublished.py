"""New versions that are held back: who made them can read them, and nobody else sees them.

Lance writes a manifest and asks its namespace to make it a version. Ours says yes and asks nobody;
the catalog is asked later, for the versions of several tables at once. Until then a copy of the
manifest lies in the folder of the job, from which the version can be opened. All of it blocks.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.errors import Unsupported
from penstock.lance.commit.manifest import manifest_name, versions_folder
from penstock.lance.session.remote import Location, RemoteCatalog, open_version
from penstock.lance.storage import files
from penstock.lance.storage.side_files import FOLDER, write_file
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import MAIN

if TYPE_CHECKING:
    from lance import LanceDataset

# A new version as the protocol asks for it: id, version, manifest_path, manifest_size, e_tag …
Request = Mapping[str, Any]
# Every table of a catalog's own has manifests that are named like this.
SCHEME = "V2"


class HeldCatalog(RemoteCatalog):
    """A catalog in which tables have the versions that a job chose, or that it holds back."""

    def __init__(self, catalog: RemoteCatalog, job: str) -> None:
        self._catalog = catalog
        self._job = job
        self._pinned: dict[tuple[str, ...], int] = {}
        self._held: dict[tuple[str, ...], Location] = {}
        self._requests: list[Request] = []

    def locate(self, table: Sequence[str], branch: str) -> Location:
        return self._held.get(tuple(table)) or self._catalog.locate(table, branch)

    def open_latest(self, table: Sequence[str], branch: str) -> "LanceDataset":
        held = self._held.get(tuple(table))
        if held is not None and held.held is not None:
            return open_version(held, held.held, self._job)
        newest = self._catalog.open_latest(table, branch)
        version = self._pinned.get(tuple(table))
        return newest if version in (None, newest.version) else newest.checkout_version(version)

    def pin(self, table: Sequence[str], version: int) -> None:
        """From now on the table has this version, whatever others commit."""
        self._pinned[tuple(table)] = version

    def hold(
        self, table: Sequence[str], newest: "LanceDataset", commit: "Callable[[LanceDataset], int]"
    ) -> int:
        """Make a version on top of the newest one, and hold it back; returns its number."""
        import lance

        from penstock.lance.session.bridge import Bridge

        location = self._catalog.locate(table, MAIN)
        versions = _Versions(location, newest.version)
        dataset = lance.dataset(
            namespace_client=Bridge(versions, location.uri),
            table_id=list(table),
            storage_options=dict(location.options) or None,
        )
        version = commit(dataset)
        request = {**versions.requests[-1], "id": list(table)}
        place = location.place()
        # In a folder of its own: another attempt may hold another version of this number.
        path = f"{FOLDER}/{self._job}/{uuid.uuid4().hex}/{manifest_name(version, SCHEME)}"
        staged = files.relative_path(place, request["manifest_path"])
        write_file(place, path, files.read(place, staged))
        self._held[tuple(table)] = replace(location, held=version, manifest=path)
        self._requests.append(request)
        return version

    @property
    def requests(self) -> Sequence[Request]:
        """What the catalog is to be asked for, in the order in which it was made."""
        return self._requests


def open_held(location: Location) -> "LanceDataset":
    """A version that is held back, for reading; older ones can be checked out from it."""
    import lance

    from penstock.lance.session.bridge import Bridge

    assert location.held is not None
    versions = _Versions(location, location.held, {location.held: location.manifest})
    return lance.dataset(
        namespace_client=Bridge(versions, location.uri),
        table_id=["held"],
        storage_options=dict(location.options) or None,
    )


class _Versions:
    """A table's versions by the names that their manifests have; new ones are only noted.

    Lance calls it from its own threads, so nothing is asked of storage here.
    """

    def __init__(
        self, location: Location, newest: int, paths: Mapping[int, str] | None = None
    ) -> None:
        self._key = location.place().key
        self._newest = newest
        self._paths = dict(paths or {})
        self.origin: Origin = NOBODY
        self.requests: list[Request] = []

    def find_latest(self, branch: str | None) -> dict[str, Any]:
        return self.get_version(branch, self._newest)

    def get_version(self, branch: str | None, version: int) -> dict[str, Any]:
        usual = f"{versions_folder(MAIN)}/{manifest_name(version, SCHEME)}"
        path = f"{self._key}/{self._paths.get(version, usual)}"
        return {"version": version, "manifest_path": path, "timestamp_millis": 0}

    def create_version(self, request: Request) -> tuple[dict[str, Any], str]:
        if self._paths or self.requests:
            raise Unsupported("a version that is held back takes no others on top of it")
        self.requests.append(dict(request))
        return {**request, "timestamp_millis": 0}, ""
