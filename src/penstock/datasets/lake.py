"""The lake: which places on storage may hold tables, and how to reach them.

Everything goes through obstore, so local folders, S3, Google Cloud Storage, Azure and memory
look alike. A location is an absolute path for local storage and a URI for any other.
"""

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import unquote, urlsplit

from obstore.store import LocalStore, MemoryStore, from_url

from penstock.errors import InvalidRequest, OutsideLake

if TYPE_CHECKING:
    from obstore.store import ObjectStore

P = ParamSpec("P")
T = TypeVar("T")

REMOTE_SCHEMES = ("s3", "gs", "az", "memory")
MAX_LOCATION_BYTES = 1600
# All that is told to clients; whatever else is set may be a secret.
PUBLIC_OPTIONS = frozenset(
    prefix + name
    for prefix in ("", "aws_", "azure_storage_", "google_")
    for name in (
        *("region", "default_region", "endpoint", "endpoint_url", "account_name", "container_name"),
        *("allow_http", "virtual_hosted_style_request", "skip_signature", "use_emulator"),
    )
)
# Storage calls block; this bounds how many run at once.
THREADS = 16


@dataclass(frozen=True, slots=True)
class Place:
    """One table's folder: the store, the key of the folder in it, and how it is written."""

    store: "ObjectStore"
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
    """The allowed roots and an open client for each of their stores."""

    def __init__(
        self, root: str, allowed: Sequence[str] = (), options: Mapping[str, str] | None = None
    ) -> None:
        self.options = dict(options or {})
        self.root = normalise_root(root)
        self._roots = (self.root, *(normalise_root(r) for r in allowed))
        self._stores: dict[str, ObjectStore] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="storage")
        for each in self._roots:
            self._open(_store_url(each))

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
        url = _store_url(location)
        key = location[len(url) :].lstrip("/")
        return Place(self._open(url), key, location)

    def new_location(self, name: str, unique: str) -> str:
        """A location for a new table: readable, and never another table's."""
        return _below(self.root, f"{_slug(name)}-{unique}.lance")

    def new_folder(self, above: str | None, name: str, unique: str) -> str:
        """A folder for the files of a new view, below what a client named or the root."""
        folder = self.accept(_below(above, f"{_slug(name)}-{unique}")) if above else ""
        return folder or _below(self.root, f"{_slug(name)}-{unique}.view")

    def accept(self, location: str) -> str:
        """The normal form of a location that a client names, if tables may lie there."""
        try:
            normal = self._normalise(location)
        except ValueError as error:
            raise InvalidRequest(f"location {location!r} cannot be read: {error}") from error
        if any(_is_within(root, normal) for root in self._roots):
            raise OutsideLake(
                f"location {location!r} holds a whole root of this lake",
                detail="choose a folder below it",
            )
        if any(_is_within(normal, root) for root in self._roots):
            return normal
        raise OutsideLake(
            f"location {location!r} is outside the roots of this lake",
            detail="use a location below one of: "
            + ", ".join(self._roots)
            + "; further ones can be added to storage.allowed_roots",
        )

    def public_options(self) -> dict[str, str]:
        """The storage options that are no secret: a client needs them to reach the same store."""
        return {k: v for k, v in self.options.items() if k.lower() in PUBLIC_OPTIONS}

    def close(self) -> None:
        self._threads.shutdown()

    def _normalise(self, location: str) -> str:
        if not location or "\x00" in location or not location.isprintable():
            raise InvalidRequest("location is empty or holds control characters")
        if len(location.encode(errors="replace")) > MAX_LOCATION_BYTES:
            raise InvalidRequest(f"location is longer than {MAX_LOCATION_BYTES} bytes")
        scheme = urlsplit(location).scheme if "://" in location else ""
        if scheme and scheme != "file" and scheme not in REMOTE_SCHEMES:
            raise InvalidRequest(
                f"location {location!r} has the unknown scheme {scheme!r}",
                detail="use a path, or a URI of " + ", ".join(("file", *REMOTE_SCHEMES)),
            )
        whole = location if scheme or location.startswith("/") else _below(self.root, location)
        if ".." in whole.split("/"):
            raise InvalidRequest(f"location {location!r} holds '..'", detail="write it out")
        return normalise_root(whole)

    def _open(self, url: str) -> "ObjectStore":
        if url not in self._stores:
            self._stores[url] = _open_store(url, self.options)
        return self._stores[url]


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._-")[:48] or "table"


def _below(folder: str, name: str) -> str:
    return f"{folder}{name}" if folder.endswith("/") else f"{folder}/{name}"


def _is_within(location: str, folder: str) -> bool:
    return location == folder or location.startswith(folder if folder[-1] == "/" else f"{folder}/")


def normalise_root(root: str) -> str:
    """An absolute, symlink-free path, or a URI without a trailing slash."""
    if "://" in root and not root.startswith("file://"):
        scheme, _, rest = root.partition("://")
        return f"{scheme}://" + "/".join(part for part in rest.split("/") if part not in ("", "."))
    path = unquote(urlsplit(root).path) if root.startswith("file://") else root
    return os.path.realpath(path)


def _store_url(location: str) -> str:
    """The part of a location that names its store: '' for local, else scheme and bucket."""
    if location.startswith("/"):
        return ""
    scheme, _, rest = location.partition("://")
    return f"{scheme}://" if scheme == "memory" else f"{scheme}://{rest.partition('/')[0]}"


def _open_store(url: str, options: Mapping[str, str]) -> "ObjectStore":
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
