"""Unpublished versions: only the job that made them can read them.

Lance writes a manifest and asks its namespace to make it a version. Ours agrees without asking
anyone; the catalog is asked later, for the versions of several tables at once. Until then a copy of
the manifest is in the job's folder, from which the version can be opened. Everything here blocks.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

from lance import LanceDataset

from penstock.lance.commit.manifest import manifest_name
from penstock.lance.session.held_versions import SCHEME, HeldVersions, Request
from penstock.lance.session.remote import Location, RemoteCatalog, open_version
from penstock.lance.storage import files
from penstock.lance.storage.side_files import FOLDER, write_file
from penstock.model.tables import MAIN


class UnpublishedCatalog(RemoteCatalog):
    """A catalog in which tables have the versions that a job chose, or that it holds back."""

    def __init__(self, catalog: RemoteCatalog, job: str) -> None:
        self._catalog = catalog
        self._job = job
        self._pinned: dict[tuple[str, ...], int] = {}
        self._held: dict[tuple[str, ...], Location] = {}
        self._requests: list[Request] = []

    def locate(self, table: Sequence[str], branch: str) -> Location:
        return self._held.get(tuple(table)) or self._catalog.locate(table, branch)

    def open_latest(self, table: Sequence[str], branch: str) -> LanceDataset:
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
        self, table: Sequence[str], newest: LanceDataset, commit: Callable[[LanceDataset], int]
    ) -> int:
        """Make a version on top of the newest one, unpublished; returns its number."""
        location = self._catalog.locate(table, MAIN)
        place = location.place()
        versions = HeldVersions(place.key, newest.version)
        version = commit(versions.open(location.uri, list(table), location.options))
        request = {**versions.requests[-1], "id": list(table)}
        # In a folder of its own: another attempt may hold back another version of this number.
        path = f"{FOLDER}/{self._job}/{uuid.uuid4().hex}/{manifest_name(version, SCHEME)}"
        staged = files.relative_path(place, request["manifest_path"])
        write_file(place, path, files.read(place, staged))
        self._held[tuple(table)] = replace(location, held=version, manifest=path)
        self._requests.append(request)
        return version

    @property
    def requests(self) -> Sequence[Request]:
        """The requests to the catalog, in the order in which the versions were made."""
        return self._requests
