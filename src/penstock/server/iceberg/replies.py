"""Forms of answers, and a cache of recently loaded views, ready to send."""

import gzip
from collections import OrderedDict
from typing import Any

import msgspec

from penstock.catalog.iceberg_views.iceberg_views import IcebergView
from penstock.server.transport.http import Reply

CACHE_BYTES = 32 * 1024 * 1024
# Below this size, compressing an answer costs more than it saves.
COMPRESSED_BYTES = 16 * 1024

_encode = msgspec.json.Encoder().encode


def json_reply(body: Any) -> Reply:
    return Reply(200, _encode(body))


def done() -> Reply:
    return Reply(204)


State = tuple[str, str]


class LoadedViews:
    """Cached answers by the state of a view, which never changes."""

    def __init__(self) -> None:
        self._replies: OrderedDict[tuple[State, bool], Reply] = OrderedDict()
        self._bytes = 0

    def find(self, state: State, accepts_gzip: bool) -> Reply | None:
        found = self._replies.get((state, accepts_gzip))
        if found is not None:
            self._replies.move_to_end((state, accepts_gzip))
        return found

    def keep(self, view: IcebergView, accepts_gzip: bool, reply: Reply) -> Reply:
        """Cache an answer; returns it."""
        key = (view.state, accepts_gzip)
        if key not in self._replies and len(reply.body) <= CACHE_BYTES // 4:
            self._replies[key] = reply
            self._bytes += len(reply.body)
            while self._bytes > CACHE_BYTES:
                self._bytes -= len(self._replies.popitem(last=False)[1].body)
        return reply


def make_reply(view: IcebergView, accepts_gzip: bool) -> Reply:
    """The answer with a view."""
    head, text = _encode(view.document.location), view.document.text.encode()
    body = b'{"metadata-location":' + head + b',"metadata":' + text + b',"config":{}}'
    headers: tuple[tuple[bytes, bytes], ...] = ((b"vary", b"accept-encoding"),)
    if accepts_gzip and len(body) >= COMPRESSED_BYTES:
        body = gzip.compress(body, 1, mtime=0)
        headers = ((b"content-encoding", b"gzip"), *headers)
    return Reply(200, body, headers=headers)
