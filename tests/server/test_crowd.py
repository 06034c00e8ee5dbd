"""Whose connection ends when another one wants in: decided without any socket."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from penstock.server.transport.connections import (
    ConnectionLimits,
    ConnectionTracker,
    TrackedConnection,
    group_of,
    make_limits,
)


@dataclass
class Client:
    waits: bool = True
    has_left: bool = False

    def is_waiting(self) -> bool:
        return self.waits

    def leave(self) -> None:
        self.has_left = True


def let_in(
    tracker: ConnectionTracker, address: str, *, proven: bool = False, waits: bool = True
) -> Client:
    visit = tracker.enter(address)
    assert isinstance(visit, TrackedConnection)
    visit.user = client = Client(waits)
    if proven:
        tracker.prove(visit)
    return client


def test_a_newcomer_pushes_out_the_oldest_who_has_shown_nothing() -> None:
    tracker = ConnectionTracker(ConnectionLimits(3, 3))
    clients = [let_in(tracker, "a", proven=True), let_in(tracker, "b"), let_in(tracker, "c")]
    let_in(tracker, "d")
    assert [client.has_left for client in clients] == [False, True, False]
    assert len(tracker) == 3


def test_one_address_pushes_out_its_own() -> None:
    tracker = ConnectionTracker(ConnectionLimits(10, 2))
    other = let_in(tracker, "other")
    clients = [let_in(tracker, "a", proven=True), let_in(tracker, "a")]
    let_in(tracker, "a")
    assert [client.has_left for client in (other, *clients)] == [False, False, True]


def test_who_is_known_but_idle_goes_before_anybody_is_refused() -> None:
    tracker = ConnectionTracker(ConnectionLimits(2, 2))
    busy = let_in(tracker, "a", proven=True, waits=False)
    idle = let_in(tracker, "a", proven=True)
    let_in(tracker, "b").waits = False
    assert (busy.has_left, idle.has_left) == (False, True)
    assert tracker.enter("c") is None


def test_who_leaves_is_not_counted_whoever_tells_it() -> None:
    tracker = ConnectionTracker(ConnectionLimits(2, 1))
    visit = tracker.enter("a")
    assert visit is not None
    tracker.exit(visit)
    tracker.exit(visit)
    assert len(tracker) == 0
    assert tracker.enter("a") is not None


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_a_network_of_ipv6_is_one_address(address: str, group: str) -> None:
    assert group_of(address) == group


def test_neither_all_descriptors_nor_all_connections_are_one_client_s() -> None:
    assert make_limits(10_000, 2_000, 1024) == ConnectionLimits(768, 576)
    assert make_limits(10_000, 2_000, 65_536) == ConnectionLimits(10_000, 2_000)


def test_a_server_takes_the_descriptors_that_it_may_have() -> None:
    code = (
        "import resource as r; from penstock.server.transport.listener import raise_descriptors; "
        "hard = min(r.getrlimit(r.RLIMIT_NOFILE)[1], 2000); "
        "r.setrlimit(r.RLIMIT_NOFILE, (256, hard)); "
        "print(raise_descriptors() == r.getrlimit(r.RLIMIT_NOFILE)[0] == hard)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"
