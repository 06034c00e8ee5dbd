"""Whatever is killed under jobs of all kinds: the short form of `make kills`."""

import random
from pathlib import Path

import pytest

from tests.soak.live.field import VICTIMS, Field
from tests.soak.live.rounds import run_round, run_rounds
from tests.soak.live.targets import MAKERS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_nothing_is_lost_doubled_or_repeated(field: Field, tmp_path: Path) -> None:
    found = run_rounds(field, tmp_path, len(VICTIMS))
    assert [each for each in found if each.problems] == []


def test_nothing_is_lost_doubled_or_repeated_by_many_kills(field: Field, tmp_path: Path) -> None:
    chance = random.Random(5)
    victims = ["worker", "server", "jvm", "runner"] * 2
    chance.shuffle(victims)
    found = run_round(field, tmp_path, victims, chance, tuple(MAKERS))
    assert [each for each in found if each.problems] == []
