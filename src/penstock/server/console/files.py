"""The console's files, as they ship in the package: read once, and answered from memory.

All of them together have a digest, which the page's links carry: a file below it never changes, so
a browser asks for it once. What is not among these files can't be asked for.
"""

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from penstock.server.transport.http import Reply, accepts

TYPES = {
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "json": b"application/json",
    "txt": b"text/plain; charset=utf-8",
    "svg": b"image/svg+xml",
    "png": b"image/png",
    "webp": b"image/webp",
    "ico": b"image/x-icon",
    "woff2": b"font/woff2",
}
# Those that compression makes smaller.
PLAIN = ("html", "js", "css", "json", "txt", "svg")
PAGE = "index.html"
PREFIX = "/console/assets/"
# A page runs the console's own files only, and nobody else's page shows it.
POLICY = (
    b"default-src 'self'; img-src 'self' blob:; object-src 'none'; base-uri 'none'; "
    b"form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    b"trusted-types 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"vary", b"accept-encoding"),
)
FOR_EVER, ASK_AGAIN = b"public, max-age=31536000, immutable", b"no-cache"


@dataclass(frozen=True, slots=True)
class File:
    """A file, and how it is sent; `packed` is empty where that is not smaller."""

    content: bytes
    packed: bytes
    kind: bytes
    mark: bytes


@dataclass(frozen=True, slots=True)
class Files:
    """All files by their paths below the assets, and the digest of them together."""

    by_path: Mapping[str, File]
    digest: str

    def find_page(self) -> File:
        return self.by_path[PAGE]

    def find(self, path: str) -> tuple[File | None, bytes]:
        """The file at a path below the assets, and for how long it may be kept."""
        first, _, rest = path.partition("/")
        if first == self.digest:
            return self.by_path.get(rest), FOR_EVER
        return self.by_path.get(path), ASK_AGAIN


def read_files(root: Traversable | None = None) -> Files:
    """Read all files of the package, and write the digest into the page's links."""
    found = dict(_walk(files("penstock.server.console") / "assets" if root is None else root))
    known = hashlib.sha256()
    for path in sorted(found):
        known.update(f"{path}\0{len(found[path])}\0".encode() + found[path])
    digest = known.hexdigest()[:16]
    if PAGE in found:
        links = (PREFIX.encode(), f"{PREFIX}{digest}/".encode())
        found[PAGE] = found[PAGE].replace(*links)
    return Files({path: _pack(path, content) for path, content in found.items()}, digest)


def to_reply(file: File, headers: Mapping[str, str], kept: bytes) -> Reply:
    """A file as an answer: nothing if the browser has it, packed if it takes that."""
    told = (*HEADERS, (b"cache-control", kept), (b"etag", file.mark))
    if file.mark.decode() in headers.get("if-none-match", ""):
        return Reply(304, content_type=file.kind, headers=told)
    if file.packed and accepts(headers.get("accept-encoding", ""), "gzip"):
        packed = (*told, (b"content-encoding", b"gzip"))
        return Reply(200, file.packed, file.kind, packed)
    return Reply(200, file.content, file.kind, told)


def _walk(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        path = f"{above}{each.name}"
        if each.is_dir():
            yield from _walk(each, f"{path}/")
        elif _ending(path) in TYPES:
            yield path, each.read_bytes()


def _pack(path: str, content: bytes) -> File:
    packed = gzip.compress(content, mtime=0) if _ending(path) in PLAIN else b""
    mark = f'"{hashlib.sha256(content).hexdigest()[:32]}"'.encode()
    kind = TYPES[_ending(path)]
    return File(content, packed if len(packed) < len(content) else b"", kind, mark)


def _ending(path: str) -> str:
    return path.rpartition(".")[2].lower()
