"""Forms of answers."""

import gzip
from typing import Any

import msgspec

from penstock.catalog.iceberg_views.iceberg_views import IcebergView
from penstock.server.transport.http import Reply

# Below this size, compressing an answer costs more than it saves.
COMPRESSED_BYTES = 16 * 1024

_encode = msgspec.json.Encoder().encode


def json_reply(body: Any) -> Reply:
    return Reply(200, _encode(body))


def done() -> Reply:
    return Reply(204)


def make_reply(view: IcebergView, accepts_gzip: bool) -> Reply:
    """The answer with a view."""
    return metadata_reply(
        view.document.location, view.document.text.encode(), accepts_gzip=accepts_gzip
    )


def metadata_reply(
    location: str | None,
    text: bytes,
    more: bytes = b',"config":{}',
    *,
    accepts_gzip: bool,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> Reply:
    """The answer with metadata, given as JSON; `more` is what follows it in the object."""
    head = b"" if location is None else b'"metadata-location":' + _encode(location) + b","
    body = b"{" + head + b'"metadata":' + text + more + b"}"
    headers = ((b"vary", b"accept-encoding"), *headers)
    if accepts_gzip and len(body) >= COMPRESSED_BYTES:
        body = gzip.compress(body, 1, mtime=0)
        headers = ((b"content-encoding", b"gzip"), *headers)
    return Reply(200, body, headers=headers)
