"""A table's versions by their manifests' names, as a namespace for Lance; asks no catalog.

New versions are only recorded, and an unpublished one is opened by its manifest.
"""

from collections.abc import Mapping
from typing import Any

from penstock.errors import Unsupported
from penstock.lance.commit.manifest import manifest_name, versions_folder
from penstock.lance.doors import bridge, lance
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import MAIN

# A new version in the protocol's form: id, version, manifest_path, manifest_size, e_tag …
Request = Mapping[str, Any]
# The naming scheme of manifests in every table that the catalog creates.
SCHEME = "V2"


class HeldVersions:
    """A table's versions; `key` is the path of its folder. New ones are only recorded.

    Lance calls it from its own threads, so nothing here reads storage.
    """

    def __init__(self, key: str, newest: int, paths: Mapping[int, str] | None = None) -> None:
        self._key = key
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

    def open(self, uri: str, table: list[str], options: Mapping[str, str]) -> "lance.LanceDataset":
        """Open the newest of the versions; older ones can be checked out from it."""
        return lance.dataset(
            namespace_client=bridge.Bridge(self, uri),
            table_id=table,
            storage_options=dict(options) or None,
        )
