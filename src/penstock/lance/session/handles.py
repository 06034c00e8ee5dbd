"""Open datasets: one Lance session with a bounded cache, and the most recently used handles.

A handle is one version of one branch and never changes, so any number of readers can share it.
pylance is loaded when the first dataset is opened.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from penstock.lance import doors
from penstock.lance.doors import lance
from penstock.lance.session.bases import check_opened
from penstock.lance.session.damage import bad_manifest, check_manifest
from penstock.lance.storage.lake import Place
from penstock.model.tables import TableVersion

MAX_HANDLES = 256
MAX_CHECKED = 10_000


class Datasets:
    """The datasets of one server; its methods block."""

    def __init__(self, options: Mapping[str, str], cache_bytes: int) -> None:
        self._options = dict(options)
        self._cache_bytes = cache_bytes
        self._lock = threading.Lock()
        self._session: Any = None
        self._checked: set[tuple[str, str, int, int]] = set()
        self._handles: OrderedDict[tuple[str, str, int, int], lance.LanceDataset] = OrderedDict()

    def find(self, place: Place, branch: str, version: TableVersion) -> "lance.LanceDataset | None":
        """A version that is already open; this does not block."""
        key = _key(place, branch, version)
        with self._lock:
            if (found := self._handles.get(key)) is not None:
                self._handles.move_to_end(key)
            return found

    def open(
        self, place: Place, branch: str, version: TableVersion, *, is_kept: bool = True
    ) -> "lance.LanceDataset":
        """Open one version for reading; it is kept, unless it is one of many."""
        if (found := self.find(place, branch, version)) is not None:
            return found
        self.check(place, branch, version)
        found = self._open_version(place, branch, version.version)
        opened = check_opened(found, place.location)
        if opened.version != version.version:
            raise bad_manifest(place, branch, version, f"it says version {opened.version}")
        if not is_kept:
            return opened
        with self._lock:
            self._handles[_key(place, branch, version)] = opened
            while len(self._handles) > MAX_HANDLES:
                self._handles.popitem(last=False)
        return opened

    def open_to_commit(
        self, place: Place, branch: str, bridge: "doors.bridge.Bridge", table_id: list[str]
    ) -> "lance.LanceDataset":
        """Open the newest version of a branch in a separate handle that commits to the catalog."""
        dataset = lance.dataset(
            namespace_client=bridge,
            table_id=table_id,
            storage_options=self._options or None,
            session=self._get_session(),
        )
        found = dataset.checkout_version((branch, None)) if branch else dataset
        return check_opened(found, place.location)

    def check(self, place: Place, branch: str, version: TableVersion) -> None:
        """Refuse a version whose manifest is not the recorded one; each is checked once."""
        # An object store leaves no half-written files, and checking there is slow.
        key = _key(place, branch, version)
        if not place.is_local or key in self._checked:
            return
        check_manifest(place, branch, version)
        if len(self._checked) >= MAX_CHECKED:
            self._checked.clear()
        self._checked.add(key)

    def forget(self, place: Place) -> None:
        """Drop all handles of a table that is gone."""
        with self._lock:
            for key in [key for key in self._handles if key[0] == place.location]:
                del self._handles[key]
            self._checked = {key for key in self._checked if key[0] != place.location}

    def write_options(self) -> dict[str, Any]:
        """Options for every write of pylance: the store's, and the shared session."""
        return {"storage_options": self._options or None, "session": self._get_session()}

    def _open_version(self, place: Place, branch: str, version: int) -> "lance.LanceDataset":
        with self._lock:
            found = next(
                (h for k, h in reversed(self._handles.items()) if k[0] == place.location), None
            )
        if found is None:
            found = lance.dataset(
                place.location,
                # Not the newest version, which may be damaged: it is only opened to find a branch.
                version=None if branch else version,
                storage_options=self._options or None,
                session=self._get_session(),
            )
        return found.checkout_version((branch or None, version))

    def _get_session(self) -> Any:
        with self._lock:
            if self._session is None:
                half = self._cache_bytes // 2
                self._session = lance.Session(  # type: ignore[attr-defined]
                    index_cache_size_bytes=half, metadata_cache_size_bytes=half
                )
            return self._session


def _key(place: Place, branch: str, version: TableVersion) -> tuple[str, str, int, int]:
    # The time tells versions of a branch apart that was deleted and created again.
    return place.location, branch, version.version, version.timestamp_millis
