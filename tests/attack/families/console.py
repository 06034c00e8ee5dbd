"""The console without a session: forged cookies, sign-ins of any form, files that are not its."""

import json
from collections.abc import Iterator
from typing import Any

from tests.attack.attack import HANDLED, INVALID, REFUSED, UNKNOWN, Attack, Request
from tests.attack.place import HIDDEN, Place

FAMILY = "console"
SESSION = "/console/api/session"
LIST = "/v1/namespace/$/list"
COOKIES = ("penstock_session", "__Host-penstock_session", "penstock_sign_in", "PENSTOCK_SESSION")
SECRETS = (
    *("", "x", "0" * 64, "f" * 63, "f" * 65, "é", '"', "a=b", "../x", "%00", "null", "[]", "{}"),
    *("' OR '1'='1", "'; DROP TABLE console_sessions; --", "x" * 60_000, "😀"),
)
SITES = ("", "same-origin", "none", "same-site", "cross-site", "SAME-ORIGIN", "x", "same-origin, x")
KEYS: tuple[Any, ...] = (
    *(
        None,
        0,
        True,
        1.5,
        [],
        {},
        ["pstk_x"],
        {"key": "x"},
        "",
        " ",
        "x",
        "pstk_",
        "\x00",
        "é" * 900,
    ),
    *("pstk_" + "0" * 16 + "_", "pstk_" + "0" * 16 + "_" + "f" * 64, "x" * 1_001, "Bearer x"),
)
FILES = (
    *("", "/", "//", ".", "..", "../", "../files.py", "..%2ffiles.py", "%2e%2e/%2e%2e/app.py"),
    *("%252e%252e%252fapp.py", "..;/app.py", "..%5c..%5capp.py", "....//....//app.py", "%00"),
    *("/etc/passwd", "%2fetc%2fpasswd", "file:///etc/passwd", "index.html%00.js", "index.html/"),
    *(
        "\u202ejs.niam",
        "main.js?x=../../app.py",
        "main.js#",
        "*",
        "~root",
        "__init__.py",
        "a" * 9_000,
    ),
)


def make(place: Place) -> Iterator[Attack]:
    yield from _cookies()
    yield from _sign_ins()
    for file in FILES:
        for folder in ("/console/", "/console/assets/", "/console/assets/0000000000000000/"):
            for method in ("GET", "HEAD", "POST", "TRACE"):
                request = Request(method, f"{folder}{file}")
                yield Attack(FAMILY, f"{method} of a file", "", request, HANDLED)
    for path in ("sign-in", "signed-in", "", "x", "session/", "session/x", "session?all=true"):
        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
            request = Request(method, f"/console/api/{path}")
            yield Attack(FAMILY, f"{method} of {path}", "", request, HANDLED)


def _cookies() -> Iterator[Attack]:
    for name in COOKIES:
        for secret in SECRETS:
            for site in SITES:
                site_headers = (("Sec-Fetch-Site", site),) if site else ()
                headers = (("Cookie", f"{name}={secret}"), *site_headers)
                told = f"{name} is {secret[:20]!r} from {site!r}"
                for path in (LIST, f"/v1/table/{HIDDEN}$t/cell?column=id&row_id=0"):
                    request = Request("GET", path, headers=headers)
                    # A page from elsewhere is told so, whatever its cookie.
                    yield Attack(FAMILY, told, "", request, UNKNOWN | {400, 403, 431})
                for method in ("GET", "DELETE"):
                    request = Request(method, SESSION, headers=headers)
                    yield Attack(FAMILY, f"{method}: {told}", "", request, HANDLED)
    two = (("Cookie", "penstock_session=a"), ("Cookie", "penstock_session=b"))
    yield Attack(FAMILY, "two cookies", "", Request("GET", LIST, headers=two), INVALID)


def _sign_ins() -> Iterator[Attack]:
    for kind in (
        "application/json",
        "text/plain",
        "",
        "application/json; charset=utf-16",
        "x" * 900,
    ):
        headers = (("Content-Type", kind),)
        for key in KEYS:
            body = json.dumps({"key": key}).encode()
            request = Request("POST", SESSION, body, headers)
            yield Attack(FAMILY, f"a sign-in with {str(key)[:20]!r}", "", request, REFUSED)
        for body in (b"", b"{", b"[]", b"null", b"\xff", b'{"key":"a","key":7}', b"[" * 9_000):
            request = Request("POST", SESSION, body, headers)
            yield Attack(FAMILY, f"a sign-in by {body[:20]!r}", "", request, REFUSED)
