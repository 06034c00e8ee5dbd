"""The lake: which places on storage may hold tables, and how to reach them.

Everything goes through obstore, so local folders, S3, Google Cloud Storage, Azure and memory look
alike. `accept` normalises a location that a client names (`model.locations`); whoever compares,
stores or uses one gets it from there.
"""

import asyncio
import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, ParamSpec, TypeVar

from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from penstock.errors import InvalidRequest, InvalidTableState, OutsideLake
from penstock.model.locations import (
    LocationParts,
    check_key,
    check_steps,
    is_within,
    join,
    spell_out,
    store_of,
)

P = ParamSpec("P")
T = TypeVar("T")

# The only options shown to clients; any other may be a secret.
PUBLIC_OPTIONS = frozenset(
    prefix + name
    for prefix in ("", "aws_", "azure_storage_", "google_")
    for name in (
        *("region", "default_region", "endpoint", "endpoint_url", "account_name", "container_name"),
        *("allow_http", "virtual_hosted_style_request", "skip_signature", "use_emulator"),
    )
)
# The folder at a root in which results of statements wait for whoever asked.
RESULTS = "_results"
# Storage calls block; this bounds how many run at once.
THREADS = 16


@dataclass(frozen=True, slots=True)
class Place:
    """One table's folder: the store, the folder's key in it, and its spelling."""

    store: ObjectStore
    key: str
    location: str

    @property
    def is_local(self) -> bool:
        return self.location.startswith("/")

    def file(self, path: str) -> str:
        """The local path of a file of this table."""
        return f"{self.location}/{path}"

    @property
    def uri(self) -> str:
        """The location as a complete URI."""
        return PurePosixPath(self.location).as_uri() if self.is_local else self.location


class Lake:
    """The allowed roots, and an open client for each of their stores."""

    def __init__(
        self, root: str, allowed: Sequence[str] = (), options: Mapping[str, str] | None = None
    ) -> None:
        self.options = dict(options or {})
        self.root = normalise_root(root)
        further = (normalise_root(each, "storage.allowed_roots") for each in allowed)
        self._roots = (self.root, *further)
        self._stores: dict[str, ObjectStore] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="storage")
        for each in self._roots:
            self._open(_split(each)[0])

    @property
    def roots(self) -> tuple[str, ...]:
        """Where tables may be; new ones go to the first."""
        return self._roots

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking storage work in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*args, **kwargs))

    async def run_briefly(
        self, place: Place, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run work that reads little: at once on local storage, which is faster than a thread."""
        if place.is_local:
            return work(*args, **kwargs)
        return await self.run(work, *args, **kwargs)

    def place(self, location: str) -> Place:
        """The place of a location that was accepted before."""
        url, key = _split(location)
        return Place(self._open(url), key, location)

    def new_location(self, name: str, unique: str) -> str:
        """A location for a new table: readable, and never another table's."""
        return join(self.root, f"{_slug(name)}-{unique}.lance")

    def new_folder(self, above: str | None, name: str, unique: str, kind: str = "view") -> str:
        """A folder for the files of a new view or table, below what a client named or the root."""
        if not above:
            return join(self.root, f"{_slug(name)}-{unique}.{kind}")
        return self.accept(join(above, f"{_slug(name)}-{unique}"), "the namespace's location")

    def accept(self, location: str, what: str = "location") -> str:
        """The canonical spelling of a client's location, if tables may be there."""
        spelt = spell_out(location, what)
        if spelt.is_relative:
            spelt = spell_out(join(self.root, spelt.path), what)
        normal = _join(spelt, what) if spelt.store else _resolve(spelt.path, what)
        if any(is_within(root, normal) for root in self._roots):
            raise OutsideLake(
                f"{what} {location!r} holds a whole root of this lake",
                detail="choose a folder below it",
            )
        for root in self._roots:
            if is_within(normal, root):
                # Only below the root: the operator chose what is above it.
                below = check_steps(normal[len(join(root, "")) :], what)
                if is_within(below, RESULTS):
                    raise OutsideLake(
                        f"{what} {location!r} is in the folder of this server's own files",
                        detail=f"choose one outside {RESULTS}",
                    )
                return normal
        raise OutsideLake(
            f"{what} {location!r} is outside the roots of this lake",
            detail="use a location below one of: "
            + ", ".join(self._roots)
            + "; further ones can be added to storage.allowed_roots",
        )

    def public_options(self) -> dict[str, str]:
        """Storage options that are not secret: a client needs them to reach the same store."""
        return {k: v for k, v in self.options.items() if k.lower() in PUBLIC_OPTIONS}

    def close(self) -> None:
        self._threads.shutdown()

    def _open(self, url: str) -> ObjectStore:
        if url not in self._stores:
            self._stores[url] = _open_store(url, self.options)
        return self._stores[url]


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._-")[:48] or "table"


def normalise_root(root: str, what: str = "storage.root") -> str:
    """A root in the form that locations are compared with: links resolved, key normalised.

    A local root may contain any character: it is only ever used as a path.
    """
    spelt = spell_out(root, what)
    return _join(spelt, what) if spelt.store else os.path.realpath(spelt.path)


def _join(spelt: LocationParts, what: str) -> str:
    key = check_key(spelt.path, what)
    return join(spelt.store, key) if key else spelt.store


def _resolve(path: str, what: str) -> str:
    """Resolve all symbolic links of a local path."""
    if ".." in path.split("/"):
        raise InvalidRequest(
            f"{what} {path!r} has the step '..'", detail="name the folder itself, without '..'"
        )
    return os.path.realpath(path)


@functools.lru_cache(4096)
def _split(location: str) -> tuple[str, str]:
    """Store and key of a location; very old locations may have none."""
    store = store_of(location)
    key = location[len(store) :].lstrip("/")
    if store:
        try:
            check_key(key)
        except InvalidRequest as error:
            raise InvalidTableState(
                f"the location {location!r} is not one that everybody reads alike",
                detail="deregister the table, move its files, and register them there",
            ) from error
    return store, key


def _open_store(url: str, options: Mapping[str, str]) -> ObjectStore:
    if not url:
        return LocalStore("/")
    if url == "memory://":
        return MemoryStore()
    # Its overloads know each store's keys; ours come from the settings.
    open_url: Any = from_url
    client: dict[str, Any] = {k: v for k, v in options.items() if k in ("allow_http", "timeout")}
    config: dict[str, Any] = {k: v for k, v in options.items() if k not in client}
    if "allow_http" in client:
        client["allow_http"] = client["allow_http"].lower() == "true"
    try:
        opened: ObjectStore = open_url(url, config=config, client_options=client)
        return opened
    except Exception as error:
        raise InvalidRequest(
            f"the store {url} cannot be opened: {str(error).splitlines()[0]}",
            detail="check storage.root and storage.options",
        ) from error
