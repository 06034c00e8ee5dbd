"""Cookies of browsers, which send them whoever's page asks.

So a cookie counts only for our own pages: a browser must not say that another one asks, and
whatever is more than a look has to show a proof that no other page can read.
"""

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from penstock.catalog.access import sessions
from penstock.errors import Forbidden

COOKIE = "penstock_session"
# Only the host itself can set a cookie with such a name, and only over TLS.
SECURE_COOKIE = f"__Host-{COOKIE}"
PROOF = "x-penstock-csrf"
LOOKING = ("GET", "HEAD")
OURS = ("same-origin", "none")


def find_secret(headers: Mapping[str, str], scheme: str) -> str | None:
    """The secret of the session in a request's cookies, if there is one."""
    cookies = read_cookies(headers)
    secure = cookies.get(SECURE_COOKIE)
    return secure or (None if scheme == "https" else cookies.get(COOKIE)) or None


def check_page(headers: Mapping[str, str]) -> None:
    """Refuse a cookie that a browser sends for somebody else's page."""
    if (site := headers.get("sec-fetch-site")) is not None:
        is_ours = site in OURS
    else:
        origin = headers.get("origin")
        is_ours = origin is None or _host_of(origin) == headers.get("host", "")
    if not is_ours:
        raise Forbidden(
            "a session is for the console's own pages",
            detail="send a key or a token in a header instead of the cookie",
        )


def check_proof(headers: Mapping[str, str], method: str, secret: str) -> None:
    """Refuse a request of a session that may change something, and does not prove its page."""
    if method in LOOKING:
        return
    given = headers.get(PROOF, "").encode(errors="replace")
    if not hmac.compare_digest(given, sessions.proof_of(secret).encode()):
        raise Forbidden(
            f"a request of a session needs {PROOF}",
            detail="send the csrf that GET /console/api/session tells",
        )


def write_cookie(secret: str, seconds: int, *, secure: bool) -> bytes:
    """The header that gives a browser its session, or takes it with an empty secret."""
    name = SECURE_COOKIE if secure else COOKIE
    more = "; Secure" if secure else ""
    return (f"{name}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{more}").encode()


def is_secure(headers: Mapping[str, str], scheme: str) -> bool:
    """Whether the browser speaks TLS, with us or with a proxy in front of us."""
    return scheme == "https" or headers.get("origin", "").startswith("https://")


def read_cookies(headers: Mapping[str, str]) -> dict[str, str]:
    """The cookies of a request by their names."""
    pairs = (part.partition("=") for part in headers.get("cookie", "").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
