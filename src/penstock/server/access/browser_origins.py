"""Refuse web pages from elsewhere, whose scripts a browser would run against an open server.

A browser names the page that sends a request (`Origin`), except when it believes that the page
comes from the same server: under a host name that its owner pointed to this machine. Then that name
is in `Host`.
"""

import ipaddress
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from penstock.errors import Forbidden

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HOW = "switch authentication on, or add it to server.allowed_origins"


class AllowedPages:
    """Which pages may use a server that asks for no credentials."""

    def __init__(self, origins: tuple[str, ...], is_local: bool) -> None:
        self._origins = origins
        self._hosts = {_host_of(origin) for origin in origins}
        # Only a server that listens on this machine alone knows that a public name is not its own.
        self._is_local = is_local

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuse pages from elsewhere."""
        if (origin := headers.get("origin")) is not None:
            if _host_of(origin) not in LOOPBACK and origin not in self._origins:
                raise Forbidden(
                    f"pages of {origin} may not use a server that asks for no credentials",
                    detail=HOW,
                )
            return
        host = _host_of(f"//{headers.get('host', '')}")
        if self._is_local and _is_public(host) and host not in self._hosts:
            raise Forbidden(f"this server is not called {host}", detail=HOW)


@lru_cache(maxsize=256)
def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


@lru_cache(maxsize=256)
def _is_public(host: str) -> bool:
    """Whether a name can be public: it has a dot, and is no address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host.rstrip(".") and not host.rstrip(".").endswith(".localhost")
    return False
