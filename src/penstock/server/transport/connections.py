"""Who is connected: how many connections there may be, and whose ends when another one wants in.

A newcomer is never refused while somebody only waits. First goes, oldest first, who has shown no
credentials; then who has, but asks nothing now. So whoever opens connections and says nothing only
pushes out their own kind.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

# Of the descriptors a process may have, these are left to files, databases and threads.
RESERVE = 0.25


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many connections there may be, in all and from one address."""

    most: int
    most_of_address: int


def make_bounds(most: int, most_of_address: int, descriptors: int) -> Bounds:
    """What the settings allow, and the process' descriptors; one address never gets them all."""
    most = max(2, min(most, int(descriptors * (1 - RESERVE))))
    return Bounds(most, min(most_of_address, most * 3 // 4))


class Guest(Protocol):
    """What a connection leads to: a handshake, or a client's requests."""

    def is_waiting(self) -> bool:
        """Whether the client is to say something, and the server has nothing to do for it."""
        ...

    def leave(self) -> None:
        """Close the connection at once."""
        ...


@dataclass(eq=False, slots=True)
class Visit:
    """One connection from its first moment on."""

    group: str
    is_proven: bool = False
    # Told to leave before it had begun.
    is_over: bool = False
    guest: Guest | None = None


@dataclass(slots=True)
class Crowd:
    """All connections of a server, in the order in which they came."""

    bounds: Bounds
    _unproven: dict[Visit, None] = field(default_factory=dict)
    _proven: dict[Visit, None] = field(default_factory=dict)
    _groups: dict[str, dict[Visit, None]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._unproven) + len(self._proven)

    def enter(self, address: str) -> Visit | None:
        """Let a connection in, at the cost of another if need be; None when all are at work."""
        group = group_of(address)
        others = self._groups.get(group, {})
        if len(others) >= self.bounds.most_of_address and not (
            self._end_one(visit for visit in others if not visit.is_proven)
            or self._end_one(visit for visit in others if visit.is_proven)
        ):
            return None
        if len(self) >= self.bounds.most and not self.shed():
            return None
        visit = Visit(group)
        self._unproven[visit] = None
        self._groups.setdefault(group, {})[visit] = None
        return visit

    def prove(self, visit: Visit) -> None:
        """Note that the right credentials were shown on this connection."""
        if visit in self._unproven:
            del self._unproven[visit]
            self._proven[visit] = None
            visit.is_proven = True

    def exit(self, visit: Visit) -> None:
        """Forget a connection; once more does no harm."""
        self._unproven.pop(visit, None)
        self._proven.pop(visit, None)
        others = self._groups.get(visit.group, {})
        others.pop(visit, None)
        if not others:
            self._groups.pop(visit.group, None)

    def shed(self) -> bool:
        """End one connection that only waits; False when there is none."""
        return self._end_one(self._unproven) or self._end_one(self._proven)

    def _end_one(self, visits: Iterable[Visit]) -> bool:
        for visit in visits:
            if visit.guest is not None and visit.guest.is_waiting():
                # Its end is told later; by then it must not count any more.
                self.exit(visit)
                visit.guest.leave()
                return True
        return False


def group_of(address: str) -> str:
    """What counts as one address: of IPv6 the network, of which a machine has all addresses."""
    if ":" not in address:
        return address
    found = ipaddress.ip_address(address.partition("%")[0])
    assert isinstance(found, ipaddress.IPv6Address)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))
