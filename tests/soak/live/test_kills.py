"""Whatever is killed under jobs of all kinds: the short form of `make kills`."""

from pathlib import Path

import pytest

from tests.harness.processes.databases import new_postgres_database
from tests.soak.live.field import VICTIMS, open_field
from tests.soak.live.rounds import run_rounds

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_nothing_is_lost_doubled_or_repeated_on_sqlite(tmp_path: Path) -> None:
    with open_field(tmp_path) as field:
        found = run_rounds(field, tmp_path, len(VICTIMS))
    assert [each for each in found if each.problems] == []


def test_nothing_is_lost_doubled_or_repeated_on_postgresql(tmp_path: Path, postgres: str) -> None:
    with open_field(tmp_path, new_postgres_database(postgres)) as field:
        found = run_rounds(field, tmp_path, 1, victims=["all"])
    assert [each for each in found if each.problems] == []
