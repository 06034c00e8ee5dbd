"""Queries by the SDK: sorted, sampled, and read while they arrive."""

from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.errors import ColumnNotFound, InvalidRequest, Unavailable
from tests.harness.processes import servers

ROWS = {"id": [1, 2, 3, 4], "kind": ["b", None, "a", "b"], "price": [3.0, 1.0, 2.0, 4.0]}


@pytest.fixture
def items(lake: penstock.Lake, space: str) -> penstock.Table:
    return lake.create_table(f"{space}.items", ROWS)


def test_rows_are_sorted_by_columns(items: penstock.Table) -> None:
    def ids(query: penstock.Query) -> list[int]:
        return [row["id"] for row in query.select("id").to_list()]

    assert ids(items.order_by("price")) == [2, 3, 1, 4]
    assert ids(items.order_by("price", ascending=False).limit(2)) == [4, 1]
    assert ids(items.order_by("kind", "price", ascending=[True, False])) == [3, 4, 1, 2]
    assert ids(items.where("id < 4").order_by("kind", nulls_first=True)) == [2, 3, 1]
    assert items.order_by("price").head(1)["id"].to_pylist() == [2]
    assert items.order_by("price").limit(1).head(3).num_rows == 1
    with pytest.raises(InvalidRequest, match="ascending has 1 values for 2 columns"):
        items.order_by("kind", "price", ascending=[True])
    with pytest.raises(InvalidRequest, match="names no column"):
        items.order_by()
    with pytest.raises(InvalidRequest, match="have a search, an order"):
        items.order_by("price").to_sql()


def test_rows_are_sampled(items: penstock.Table) -> None:
    found = items.where("id > 1").sample(2, seed=3)
    assert found == items.where("id > 1").sample(2, seed=3)
    assert (found.num_rows, 1 in found["id"].to_pylist()) == (2, False)
    assert sorted(items.select("id").sample(9)["id"].to_pylist()) == [1, 2, 3, 4]
    with pytest.raises(InvalidRequest, match="sample cannot be combined"):
        items.limit(3).sample(2)


def test_rows_are_read_in_batches_while_they_arrive(lake: penstock.Lake, space: str) -> None:
    rows = pa.table({"id": range(300_000), "text": ["x" * 20] * 300_000})
    made = lake.create_table(f"{space}.many", rows)
    reader = made.to_batches(batch_size=1000)
    assert reader.schema.names == ["id", "text"]
    found = list(reader)
    assert max(batch.num_rows for batch in found) == 1000
    assert pa.Table.from_batches(found).equals(rows)
    few = made.where("id < 2").select("id").to_batches()
    assert few.read_all().to_pylist() == [{"id": 0}, {"id": 1}]
    assert made.where("id < 0").to_batches().read_all().num_rows == 0
    # One that nobody reads to its end holds nothing up.
    assert next(iter(made.to_batches()))
    with pytest.raises(ColumnNotFound, match="nope"):
        made.where("nope = 1").to_batches()
    with pytest.raises(InvalidRequest, match="batch_size is 0"):
        made.to_batches(0)


def test_an_answer_that_breaks_off_is_an_error(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server, penstock.connect(server.url) as lake:
        made = lake.create_table("t", {"text": ["x" * 1000] * 200_000})
        reader = made.to_batches()
        assert next(iter(reader)).num_rows
        server.kill()
        with pytest.raises(Unavailable, match="broke off"):
            reader.read_all()
