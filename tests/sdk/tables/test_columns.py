"""Columns through the SDK: added with and without values, given another type, and dropped."""

from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import InvalidRequest, TableInUse


@penstock.udf
def size(text: str) -> int:
    return len(text)


def test_a_column_is_added_with_values_of_sql_or_with_a_type_alone(table: penstock.Table) -> None:
    table.add_column("upper", sql="upper(text)").add_column("note", data_type=str)
    table.add_columns({"score": "float32", "vector": penstock.vector(2)})
    table.add_columns(pa.schema([("day", pa.date32())]))
    kinds = {field.name: str(field.type) for field in table.schema()}
    assert kinds == {
        "id": "int64",
        "text": "string",
        "upper": "string",
        "note": "string",
        "score": "float",
        "vector": "fixed_size_list<item: float>[2]",
        "day": "date32[day]",
    }
    assert table.select("upper", "note", "score").limit(1).to_list() == [
        {"upper": "A", "note": None, "score": None}
    ]
    # They are columns like any other: nothing computes them.
    assert table.computed_columns() == {}
    assert table.update({"note": "new"}, where="id = 1").rows_updated == 1
    table.append([{"id": 4, "text": "d", "note": "b", "vector": [1, 2]}])
    assert table.count("note IS NOT NULL") == 2


def test_a_plain_column_of_a_branch_is_only_there(table: penstock.Table) -> None:
    trial = table.create_branch("trial").add_column("note", data_type=str)
    assert (trial.schema().names[-1], table.schema().names) == ("note", ["id", "text"])


def test_a_column_gets_another_type_unless_what_reads_it_would_break(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    assert table.alter_column("id", data_type="int32").schema().field("id").type == pa.int32()
    assert table.alter_column("text", nullable=True).schema().field("text").nullable
    lake.create_view(f"{space}.v", "SELECT id + 1 AS next FROM docs")
    with pytest.raises(TableInUse, match="v"):
        table.alter_column("id", data_type="int64")
    table.alter_column("id", data_type="int64", force=True)
    assert table.schema().field("id").type == pa.int64()
    with pytest.raises(InvalidRequest, match="nothing of column 'id' is to be altered"):
        table.alter_column("id")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "has neither values nor a type"),
        ({"sql": "1", "computed": "2"}, "has computed and sql"),
        ({"function": size, "sql": "1"}, "has function and sql"),
        ({"sql": "1", "data_type": int}, "data_type of column 'new' has no use with sql"),
        ({"computed": "1", "inputs": ["id"]}, "inputs of column 'new' has no use with computed"),
        ({"data_type": int, "auto_backfill": True}, "auto_backfill .* no use with data_type"),
        ({"data_type": "integer"}, "data_type"),
    ],
)
def test_a_column_gets_its_values_in_one_way(
    table: penstock.Table, given: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidRequest, match=told):
        table.add_column("new", **given)
    assert table.version() == 1


def test_columns_without_a_function_have_nothing_that_fills_them(table: penstock.Table) -> None:
    with pytest.raises(InvalidRequest, match="nothing fills them"):
        table.add_columns({"note": str}, auto_backfill=True)
    with pytest.raises(InvalidRequest, match="columns\\['note'\\]"):
        table.add_columns({"note": "txt"})
    assert table.version() == 1
