"""Thousands of attacks on a server that needs credentials, on both kinds of database."""

import pytest

from tests.attack.families import routes
from tests.attack.registry import FAMILIES, count, gather
from tests.attack.running import run
from tests.attack.world import World

LEAST = 3_000
SHOWN, MOST = 20, 700


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_attack_of_a_family_finds_a_hole(world: World, family: str) -> None:
    holes = run(world, gather(family, world.place))
    # The same by several callers is told once.
    kinds = {hole.partition(", as ")[0]: hole for hole in reversed(holes)}
    shown = "\n".join(f"- {hole[:MOST]}" for hole in [*kinds.values()][:SHOWN])
    assert not holes, f"{len(holes)} holes of {len(kinds)} kinds, for example:\n{shown}"


def test_there_are_as_many_different_attacks_as_we_say() -> None:
    assert sum(count().values()) >= LEAST


def test_every_route_is_attacked_with_a_body_that_says_what_it_is_about() -> None:
    assert routes.uncovered() == []
