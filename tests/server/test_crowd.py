"""Whose connection ends when another one wants in: decided without any socket."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from penstock.server.transport.connections import Bounds, Crowd, Visit, group_of, make_bounds


@dataclass
class Client:
    waits: bool = True
    has_left: bool = False

    def is_waiting(self) -> bool:
        return self.waits

    def leave(self) -> None:
        self.has_left = True


def let_in(crowd: Crowd, address: str, *, proven: bool = False, waits: bool = True) -> Client:
    visit = crowd.enter(address)
    assert isinstance(visit, Visit)
    visit.guest = client = Client(waits)
    if proven:
        crowd.prove(visit)
    return client


def test_a_newcomer_pushes_out_the_oldest_who_has_shown_nothing() -> None:
    crowd = Crowd(Bounds(3, 3))
    clients = [let_in(crowd, "a", proven=True), let_in(crowd, "b"), let_in(crowd, "c")]
    let_in(crowd, "d")
    assert [client.has_left for client in clients] == [False, True, False]
    assert len(crowd) == 3


def test_one_address_pushes_out_its_own() -> None:
    crowd = Crowd(Bounds(10, 2))
    other = let_in(crowd, "other")
    clients = [let_in(crowd, "a", proven=True), let_in(crowd, "a")]
    let_in(crowd, "a")
    assert [client.has_left for client in (other, *clients)] == [False, False, True]


def test_who_is_known_but_idle_goes_before_anybody_is_refused() -> None:
    crowd = Crowd(Bounds(2, 2))
    busy = let_in(crowd, "a", proven=True, waits=False)
    idle = let_in(crowd, "a", proven=True)
    let_in(crowd, "b").waits = False
    assert (busy.has_left, idle.has_left) == (False, True)
    assert crowd.enter("c") is None


def test_who_leaves_is_not_counted_whoever_tells_it() -> None:
    crowd = Crowd(Bounds(2, 1))
    visit = crowd.enter("a")
    assert visit is not None
    crowd.exit(visit)
    crowd.exit(visit)
    assert len(crowd) == 0
    assert crowd.enter("a") is not None


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
    assert make_bounds(10_000, 2_000, 1024) == Bounds(768, 576)
    assert make_bounds(10_000, 2_000, 65_536) == Bounds(10_000, 2_000)


def test_a_server_takes_the_descriptors_that_it_may_have() -> None:
    code = (
        "import resource as r; from penstock.server.transport.listener import raise_descriptors; "
        "hard = min(r.getrlimit(r.RLIMIT_NOFILE)[1], 2000); "
        "r.setrlimit(r.RLIMIT_NOFILE, (256, hard)); "
        "print(raise_descriptors() == r.getrlimit(r.RLIMIT_NOFILE)[0] == hard)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"
