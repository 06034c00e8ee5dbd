"""Samples: so many rows at random, of those that a filter leaves."""

from typing import Any

import pytest

from tests.harness.data.rows import documents, put, query
from tests.harness.data.tables import Table, code
from tests.harness.processes.servers import Server


@pytest.fixture(scope="module")
def table(server: Server) -> Table:
    return put(server, documents())[0]


def ids(table: Table, rows: int, **asked: Any) -> list[int]:
    found: list[int] = query(table, sample={"rows": rows, **asked})["id"].to_pylist()
    return found


def test_a_seed_gives_the_same_rows_each_time(table: Table) -> None:
    everything = query(table)["id"].to_pylist()
    found = ids(table, 20, seed=1)
    assert len(set(found)) == 20
    assert found != sorted(found)
    assert found == ids(table, 20, seed=1) != ids(table, 20, seed=2)
    assert ids(table, 5, seed=1) == found[:5]
    assert sorted(ids(table, 10_000)) == everything
    assert ids(table, 0) == []
    # Each row as often as any other.
    seen = [id for seed in range(60) for id in ids(table, len(everything) // 2, seed=seed)]
    assert set(seen) == set(everything)
    assert max(map(seen.count, everything)) < 2 * 60 * 0.75


def test_filters_columns_and_row_ids_go_with_a_sample(table: Table) -> None:
    found = query(
        table,
        sample={"rows": 3, "seed": 1},
        columns={"double": "id * 2"},
        filter="id >= 50",
        with_row_id=True,
    )
    assert found.column_names == ["double", "_rowid"]
    assert all(value >= 100 for value in found["double"].to_pylist())


@pytest.mark.parametrize(
    "body",
    [
        {"sample": {"rows": -1}},
        {"sample": {"rows": 100_001}},
        {"sample": {"rows": 1, "seed": -1}},
        {"sample": {"rows": 1}, "k": 3},
        {"sample": {"rows": 1}, "offset": 3},
        {"sample": {"rows": 1}, "order_by": [{"column_name": "id"}]},
        {"sample": {"rows": 1}, "vector": {"single_vector": [0.5] * 8}, "k": 3},
    ],
)
def test_what_no_sample_can_be_of_is_refused(table: Table, body: dict[str, Any]) -> None:
    answer = table.ask("query", body)
    assert (code(answer), "sample" in answer.text) == ((400, 13), True)
