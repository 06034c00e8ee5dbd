"""HTTP as no client writes it: requests in requests, heads without end, bodies of two lengths.

Each is sent over a connection of its own. Whatever comes back, no answer is one that only somebody
else may have, and the server goes on.
"""

import gzip
import zlib
from collections.abc import Iterator

from tests.attack.attack import HANDLED, REFUSED, Attack, Request, post
from tests.attack.place import HIDDEN, MINE, OWNER, PIT, Place

FAMILY = "http"
# What is hidden in the body of another request: it must not be answered with these rights.
INNER = (
    b"POST /v1/namespace/%b/describe HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    % HIDDEN.encode()
)
KEY = b"Authorization: Bearer {key}\r\n"
START = b"POST /v1/namespace/%b/exists HTTP/1.1\r\nHost: x\r\n" % MINE.encode() + KEY
NOTHING = Request("GET", "/")


def make(place: Place) -> Iterator[Attack]:
    for name, raw in (*_lengths(), *_chunks(), *_heads(), *_lines(), *_pipelines()):
        for who in (OWNER, ""):
            yield Attack(FAMILY, name, who, NOTHING, HANDLED, raw=raw)
    for name, raw in _slow():
        yield Attack(FAMILY, name, OWNER, NOTHING, HANDLED, raw=raw)
    yield from _encodings()
    yield from _queries()


def _lengths() -> Iterator[tuple[str, bytes]]:
    """Two lengths, or one that is none."""
    size = b"%d" % len(INNER)
    for name, lines in {
        "two lengths": (b"Content-Length: 0", b"Content-Length: " + size),
        "two lengths, reversed": (b"Content-Length: " + size, b"Content-Length: 0"),
        "two lengths in one": (b"Content-Length: 0, " + size,),
        "the same length twice": (b"Content-Length: " + size, b"Content-Length: " + size),
        "length and chunks": (b"Content-Length: " + size, b"Transfer-Encoding: chunked"),
        "chunks and length": (b"Transfer-Encoding: chunked", b"Content-Length: " + size),
        "odd chunked": (b"Content-Length: " + size, b"Transfer-Encoding: xchunked"),
        "chunked by a tab": (b"Content-Length: " + size, b"Transfer-Encoding:\tchunked"),
        "chunked after a blank": (b"Content-Length: " + size, b"Transfer-Encoding : chunked"),
        "chunked below": (b"Content-Length: " + size, b"Transfer-Encoding:\r\n chunked"),
        "chunked twice": (b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
        "chunked, then identity": (b"Transfer-Encoding: chunked, identity",),
        "gzip, chunked": (b"Transfer-Encoding: gzip, chunked",),
        "chunked in capitals": (b"Content-Length: " + size, b"TRANSFER-ENCODING: CHUNKED"),
        "chunked in quotes": (b"Content-Length: " + size, b'Transfer-Encoding: "chunked"'),
        "length in hex": (b"Content-Length: 0x10",),
        "length with a sign": (b"Content-Length: +5",),
        "negative length": (b"Content-Length: -1",),
        "length with blanks": (b"Content-Length: 1 0",),
        "length of letters": (b"Content-Length: ten",),
        "no length": (b"Content-Length:",),
        "huge length": (b"Content-Length: 99999999999999999999999",),
        "largest length": (b"Content-Length: 18446744073709551615",),
        "length below": (b"Content-Length: 0\r\n 5",),
        "length by a vertical tab": (b"Content-Length:\x0b5",),
        "length with an underscore": (b"Content_Length: " + size,),
    }.items():
        head = START + b"\r\n".join(lines) + b"\r\n\r\n"
        yield name, head + INNER
        yield f"{name}, ended", head + b"0\r\n\r\n" + INNER


def _chunks() -> Iterator[tuple[str, bytes]]:
    head = START + b"Transfer-Encoding: chunked\r\n\r\n"
    for name, body in {
        "a huge chunk": b"FFFFFFFFFFFFFFFF\r\nx",
        "a negative chunk": b"-1\r\nx\r\n0\r\n\r\n",
        "a chunk of no number": b"zz\r\nx\r\n0\r\n\r\n",
        "0x in a chunk": b"0x2\r\n{}\r\n0\r\n\r\n",
        "a long extension": b"2;" + b"a" * 100_000 + b"\r\n{}\r\n0\r\n\r\n",
        "many extensions": b"2" + b";a=b" * 30_000 + b"\r\n{}\r\n0\r\n\r\n",
        "many empty lines": b"2\r\n{}\r\n" + b"\r\n" * 1_000,
        "many zeros": b"0" * 100_000 + b"2\r\n{}\r\n0\r\n\r\n",
        "bare newlines": b"2\n{}\n0\n\n" + INNER,
        "bare returns": b"2\r{}\r0\r\r" + INNER,
        "a chunk that is longer": b"5\r\n{}\r\n0\r\n\r\n" + INNER,
        "a chunk that is shorter": b"1\r\n{}\r\n0\r\n\r\n" + INNER,
        "trailers": b"2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\nContent-Length: 9\r\n\r\n" + INNER,
        "many trailers": b"0\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",
        "a thousand chunks": b"1\r\n \r\n" * 1_000 + b"2\r\n{}\r\n0\r\n\r\n",
        "no end": b"2\r\n{}\r\n",
    }.items():
        yield name, head + body


def _heads() -> Iterator[tuple[str, bytes]]:
    for count in (100, 1_000, 20_000, 100_000):
        many = b"".join(b"x%d: y\r\n" % n for n in range(count))
        yield f"{count} headers", START + many + b"\r\n"
        yield f"{count} times the same header", START + b"x: y\r\n" * count + b"\r\n"
    for size in (70_000, 1_000_000):
        yield f"a header of {size}", START + b"x: " + b"y" * size + b"\r\n\r\n"
        yield f"a name of {size}", START + b"x" * size + b": y\r\n\r\n"
        yield f"a path of {size}", b"GET /v1/" + b"a" * size + b" HTTP/1.1\r\nHost: x\r\n\r\n"
        yield f"a query of {size}", b"GET /v1/table?" + b"a=b&" * (size // 4) + b" HTTP/1.1\r\n\r\n"
    for name, line in {
        "no colon": b"Authorization Bearer x",
        "no name": b": x",
        "a blank before": b" Authorization: Bearer x",
        "a fold": b"X: a\r\n b\r\n\tc",
        "NUL in a value": b"X: a\x00b",
        "NUL in a name": b"X\x00Y: a",
        "a return in a value": b"X: a\rAuthorization: b",
        "a newline alone": b"X: a\nAuthorization: Bearer x",
        "high bytes": b"X: \xff\xfe\x80",
        "not UTF-8 key": b"x-api-key: \xff\xfe",
        "brackets in a name": b"X(Y): a",
        "two hosts": b"Host: a\r\nHost: b",
        "no host": b"",
        "a host with a path": b"Host: a/b",
        "expects": b"Expect: 100-continue",
        "expects much": b"Expect: 200-ok",
        "upgrade": b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13",
        "upgrade to h2c": b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AA",
        "TE": b"TE: trailers, deflate;q=0.5",
        "a range": b"Range: bytes=0-,0-,0-",
        "forwarded": b"Forwarded: for=127.0.0.1\r\nX-Forwarded-For: 127.0.0.1\r\nX-Real-IP: ::1",
        "a long idempotency key": b"Idempotency-Key: " + b"a" * 10_000,
        "an odd idempotency key": b"Idempotency-Key: \x01'; --",
        "a long request id": b"x-request-id: " + b"a" * 10_000,
        "an odd request id": b"x-request-id: a\tb\x7f",
        "an odd trace": b"traceparent: 00-zz-zz-00",
        "accept encodings": b"Accept-Encoding: " + b"gzip;q=0.1," * 2_000,
    }.items():
        yield f"head: {name}", START + line + b"\r\nContent-Length: 0\r\n\r\n"


def _lines() -> Iterator[tuple[str, bytes]]:
    """First lines that nobody writes."""
    for line in (
        *(b"", b"\r\n\r\n", b"GET", b"GET /", b"GET / HTTP", b"GET / HTTP/9.9", b"GET / HTTP/0.9"),
        *(b"GET  /v1/table  HTTP/1.1", b"GET\t/v1/table\tHTTP/1.1", b" GET /v1/table HTTP/1.1"),
        *(b"get /v1/table HTTP/1.1", b"GET /v1/table http/1.1", b"GET /v1/table HTTP/1.0"),
        *(b"GET http://evil/v1/table HTTP/1.1", b"GET //evil/v1/table HTTP/1.1"),
        *(b"GET * HTTP/1.1", b"OPTIONS * HTTP/1.1", b"CONNECT a:80 HTTP/1.1", b"TRACE / HTTP/1.1"),
        *(b"GET /v1/table\x00 HTTP/1.1", b"GET /v1/ta ble HTTP/1.1", b"GET /v1/t\xff HTTP/1.1"),
        *(
            b"GET /v1/table#x HTTP/1.1",
            b"GET /v1/../v1/table HTTP/1.1",
            b"GET /./v1/table HTTP/1.1",
        ),
        *(b"GET /%76%31/table HTTP/1.1", b"GET /v1%2Ftable HTTP/1.1", b"GET \\v1\\table HTTP/1.1"),
        *(
            b"PRI * HTTP/2.0",
            b"\x16\x03\x01\x02\x00\x01\x00",
            b"\x00" * 100,
            b"GET " + b"/" * 50_000,
        ),
        *(b"X" * 100_000, b"GET /healthz/../v1/table HTTP/1.1", b"GET /metrics/ HTTP/1.1"),
        *(b"GET /healthz?x=/v1 HTTP/1.1", b"GET /readyz/x HTTP/1.1", b"DELETE /healthz HTTP/1.1"),
        *(
            b"GET /V1/TABLE HTTP/1.1",
            b"GET /iceberg/../v1/table HTTP/1.1",
            b"GET /iceberg HTTP/1.1",
        ),
    ):
        yield f"line {line[:40]!r}", line + b"\r\nHost: x\r\n\r\n"


def _pipelines() -> Iterator[tuple[str, bytes]]:
    good = START + b"Content-Length: 0\r\n\r\n"
    yield "two requests", good + INNER
    yield "a hundred requests", good * 100
    yield "requests after a wrong one", b"X\r\n\r\n" + good
    yield (
        "a request after one that is too large",
        (
            b"POST /v1/namespace/x/create HTTP/1.1\r\nHost: x\r\n"
            + KEY
            + b"Content-Length: 30000000"
            b"\r\n\r\n" + b" " * 100_000
        ),
    )
    yield (
        "a request after a close",
        START + b"Connection: close\r\nContent-Length: 0\r\n\r\n" + INNER,
    )
    yield (
        "an upload and a request",
        (
            b"POST /v1/table/%b$t/insert HTTP/1.1\r\nHost: x\r\n" % PIT.encode()
            + KEY
            + b"Content-Length: 4\r\n\r\nxxxx"
            + INNER
        ),
    )
    yield (
        "an upload that ends in a request",
        (
            b"POST /v1/table/%b$t/insert HTTP/1.1\r\nHost: x\r\n" % PIT.encode()
            + KEY
            + b"Transfer-Encoding: chunked\r\n\r\n4\r\nxxxx\r\n0\r\n\r\n"
            + INNER
        ),
    )


def _slow() -> Iterator[tuple[str, bytes]]:
    """What is never complete; the server hangs up."""
    yield "half a head", START
    yield "half a body", START + b"Content-Length: 1000000\r\n\r\n{"
    yield (
        "half an upload",
        (
            b"POST /v1/table/%b$t/insert HTTP/1.1\r\nHost: x\r\n" % PIT.encode()
            + KEY
            + b"Content-Length: 1000000\r\n\r\nxxxx"
        ),
    )


def _encodings() -> Iterator[Attack]:
    """Bodies that say they are compressed, which is not among what is served."""
    bomb = b" " * 50_000_000 + b"{}"
    for name, (encoding, content) in {
        "gzip": ("gzip", gzip.compress(b'{"properties": {}}')),
        "a gzip bomb": ("gzip", gzip.compress(bomb, 9)),
        "a gzip of a gzip": ("gzip, gzip", gzip.compress(gzip.compress(bomb, 9))),
        "deflate": ("deflate", zlib.compress(bomb, 9)),
        "no gzip": ("gzip", b'{"properties": {}}'),
        "half a gzip": ("gzip", gzip.compress(b"{}" * 1_000)[:20]),
        "unknown": ("x-none", b"{}"),
        "brotli": ("br", b"\x0b\x02\x80{}\x03"),
        "zstd": ("zstd", b"\x28\xb5\x2f\xfd\x04\x00\x11\x00\x00{}"),
        "identity": ("identity", b"{"),
    }.items():
        for path in (
            f"/v1/namespace/{PIT}/create",
            f"/v1/table/{PIT}$t/insert",
            "/v1/table/batch-commit",
        ):
            request = Request("POST", path, content, (("Content-Encoding", encoding),))
            yield Attack(FAMILY, f"{name} to {path}", OWNER, request, REFUSED)


def _queries() -> Iterator[Attack]:
    for query in (
        *(
            "delimiter=",
            "delimiter=%00",
            "delimiter=$$",
            "delimiter=" + "a" * 10_000,
            "delimiter=e",
        ),
        *("limit=-1", "limit=0", "limit=999999999999999999999", "limit=1e3", "limit=NaN", "limit="),
        *("page_token=x", "page_token=" + "a" * 60_000, "page_token=eyJhIjoxfQ", "page_token=%00"),
        *("a=b&" * 200, "%ff=%fe", "=&=&=", "branch=..%2F..", "branch=%00", "mode=" + "x" * 1_000),
        *("include_declared=maybe", "cascade=yes", "with_table_uri=2", "x[]=1&x[a]=2", "?", "&&&"),
    ):
        for path in (
            f"/v1/namespace/{MINE}/list",
            f"/v1/namespace/{MINE}/table/list",
            "/v1/table",
            "/v1/manifest/list",
        ):
            request = Request("GET", f"{path}?{query}")
            yield Attack(FAMILY, f"{path}?{query[:30]}", OWNER, request)
        wrong = post(f"/v1/table/{HIDDEN}$t/describe?{query}")
        yield Attack(FAMILY, f"describe?{query[:30]}", OWNER, wrong, REFUSED)
