"""Limits on connections: how many there may be, and which one is closed for a new one.

A new connection is never refused while another is only waiting. The oldest connection without
credentials is closed first, then the oldest idle one with credentials. So clients that open
connections and say nothing only push out their own kind.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

# Of a process's descriptors, these are left for files, databases and threads.
RESERVE = 0.25


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be, in all and from one address."""

    most: int
    most_of_address: int


def make_limits(most: int, most_of_address: int, descriptors: int) -> ConnectionLimits:
    """The limits from the settings and the process's descriptors; one address never gets all."""
    most = max(2, min(most, int(descriptors * (1 - RESERVE))))
    return ConnectionLimits(most, min(most_of_address, most * 3 // 4))


class ConnectionUser(Protocol):
    """Whoever uses a connection: a handshake, or a client's requests."""

    def is_waiting(self) -> bool:
        """Whether the server waits for the client and has nothing to do for it."""
        ...

    def leave(self) -> None:
        """Close the connection at once."""
        ...


@dataclass(eq=False, slots=True)
class TrackedConnection:
    """One connection, from its first moment on."""

    group: str
    is_proven: bool = False
    # Closed before it had begun.
    is_over: bool = False
    user: ConnectionUser | None = None


@dataclass(slots=True)
class ConnectionTracker:
    """All connections of a server, in the order of their arrival."""

    bounds: ConnectionLimits
    _unproven: dict[TrackedConnection, None] = field(default_factory=dict)
    _proven: dict[TrackedConnection, None] = field(default_factory=dict)
    _groups: dict[str, dict[TrackedConnection, None]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._unproven) + len(self._proven)

    def enter(self, address: str) -> TrackedConnection | None:
        """Admit a connection, closing another if necessary; None when all are at work."""
        group = group_of(address)
        others = self._groups.get(group, {})
        if len(others) >= self.bounds.most_of_address and not (
            self._end_one(visit for visit in others if not visit.is_proven)
            or self._end_one(visit for visit in others if visit.is_proven)
        ):
            return None
        if len(self) >= self.bounds.most and not self.shed():
            return None
        visit = TrackedConnection(group)
        self._unproven[visit] = None
        self._groups.setdefault(group, {})[visit] = None
        return visit

    def prove(self, visit: TrackedConnection) -> None:
        """Note that valid credentials were shown on this connection."""
        if visit in self._unproven:
            del self._unproven[visit]
            self._proven[visit] = None
            visit.is_proven = True

    def exit(self, visit: TrackedConnection) -> None:
        """Remove a connection; may be repeated."""
        self._unproven.pop(visit, None)
        self._proven.pop(visit, None)
        others = self._groups.get(visit.group, {})
        others.pop(visit, None)
        if not others:
            self._groups.pop(visit.group, None)

    def shed(self) -> bool:
        """Close one connection that is only waiting; False when there is none."""
        return self._end_one(self._unproven) or self._end_one(self._proven)

    def _end_one(self, visits: Iterable[TrackedConnection]) -> bool:
        for visit in visits:
            if visit.user is not None and visit.user.is_waiting():
                # It reports its end later, and must not count until then.
                self.exit(visit)
                visit.user.leave()
                return True
        return False


def group_of(address: str) -> str:
    """What counts as one address: for IPv6 the network, because a machine has all its addresses."""
    if ":" not in address:
        return address
    found = ipaddress.ip_address(address.partition("%")[0])
    assert isinstance(found, ipaddress.IPv6Address)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))
