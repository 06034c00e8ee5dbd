"""Web pages from elsewhere, whose scripts a browser beside an open server would run.

A browser says which page sends a request (`Origin`), except for what it takes for a page's own
server: a name that its owner lets point to this machine. By that name it asks for us (`Host`).
"""

import ipaddress
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from penstock.errors import Forbidden

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HOW = "switch authentication on, or add it to server.allowed_origins"


class Pages:
    """Which pages may use a server that asks for no credentials."""

    def __init__(self, origins: tuple[str, ...], is_local: bool) -> None:
        self._origins = origins
        self._hosts = {_host_of(origin) for origin in origins}
        # Only who listens on this machine alone knows that a public name is not its own.
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
    """Whether a name can be somebody's in the world: it has a dot, and is no address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host.rstrip(".") and not host.rstrip(".").endswith(".localhost")
    return False
