"""The same jobs with the catalog in PostgreSQL, while server and runners are killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.processes.databases import new_postgres_database
from tests.runner.views.test_sql_views import check_groups, check_iceberg, check_join
from tests.soak.live.field import Field, open_field
from tests.soak.live.rounds import run_rounds

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def field(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with open_field(tmp_path_factory.mktemp("field"), new_postgres_database(postgres)) as opened:
        yield opened


def test_jobs_of_all_kinds_survive_the_end_of_everything(field: Field, tmp_path: Path) -> None:
    found = run_rounds(field, tmp_path, 1, victims=["all"])
    assert [each for each in found if each.problems] == []


def test_views_by_spark_sql_are_the_same(field: Field) -> None:
    check_join(field.server)
    check_groups(field.server)
    check_iceberg(field.server)
