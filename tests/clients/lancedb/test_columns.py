"""lancedb's remote tables: schema evolution, computed columns and statistics."""

from typing import Any

import pyarrow as pa
import pytest
from lancedb import LsmWriteSpec

from tests.harness.clients.lancedb_modes import Lake, covers


@covers("table", "add_columns", "schema")
def test_columns_are_added_from_expressions_and_types(lake: Lake, table: Any) -> None:
    assert lake.done(table.add_columns({"twice": "id * 2"})).version == 2
    lake.done(table.add_columns(pa.field("price", pa.decimal128(9, 2))))
    lake.done(table.add_columns([pa.field("at", pa.timestamp("ms", "UTC"))]))
    lake.done(table.add_columns(pa.schema([pa.field("note", pa.string())])))
    schema = lake.get(table, "schema")
    assert schema.field("price").type == pa.decimal128(9, 2)
    assert schema.names[-4:] == ["twice", "price", "at", "note"]
    row = lake.done(table.head(1)).to_pylist()[0]
    assert (row["twice"], row["price"], row["note"]) == (2, None, None)


@covers("table", "alter_columns", "drop_columns")
def test_columns_are_altered_and_dropped(lake: Lake, table: Any) -> None:
    assert lake.done(table.alter_columns({"path": "id", "rename": "key"})).version == 2
    lake.done(table.alter_columns({"path": "key", "data_type": pa.int32()}))
    lake.done(table.alter_columns({"path": "text", "data_type": pa.large_string()}))
    lake.done(table.alter_columns({"path": "key", "nullable": True}))
    assert lake.done(table.drop_columns(["tags"])).version == 6
    schema = lake.get(table, "schema")
    assert (schema.field("key").type, schema.field("text").type) == (pa.int32(), pa.large_string())
    assert "tags" not in schema.names


@covers("table", "update_field_metadata")
def test_metadata_of_fields_is_updated(lake: Lake, table: Any) -> None:
    lake.done(table.update_field_metadata({"path": "id", "metadata": {"unit": "m"}}))
    assert lake.get(table, "schema").field("id").metadata == {b"unit": b"m"}


@covers("table", "refresh_column_async", "refresh_column", "function_errors")
def test_a_computed_column_is_declared_and_its_refresh_queued(lake: Lake, table: Any) -> None:
    lake.done(table.add_columns(computed={"twice": "id * 2"}))
    assert lake.get(table, "schema").field("twice").metadata[b"computed_column"] == b"true"
    job = lake.done(table.refresh_column_async("twice"))
    assert job.id in {info.job_id for info in lake.done(lake.database.list_jobs())}
    lake.done(lake.database.cancel_job(job.id))
    with pytest.raises(Exception, match="refresh_column_async"):
        lake.done(table.refresh_column("twice"))
    assert lake.done(table.function_errors()).records == []


def test_a_column_that_is_not_there_is_told_by_its_name(lake: Lake, table: Any) -> None:
    with pytest.raises(Exception, match="column nix does not exist"):
        lake.done(table.refresh_column_async("nix"))


@covers("table", "stats", "name", "uri", "embedding_functions")
def test_a_table_describes_itself(lake: Lake, table: Any) -> None:
    stats = lake.done(table.stats())
    assert (stats["num_rows"], stats["num_indices"]) == (3, 0)
    assert stats["fragment_stats"]["num_fragments"] == 1
    assert table.name in lake.get(table, "uri")
    assert lake.get(table, "embedding_functions") == {}


@covers("table", "get_lsm_write_spec", "get_lsm_stats", "close_lsm_writers")
@covers("table", "set_lsm_write_spec", "unset_lsm_write_spec", "flush_lsm", "compact_lsm")
@covers("table", "checkpoint_lsm")
def test_log_structured_writes_are_refused(lake: Lake, table: Any) -> None:
    assert lake.done(table.get_lsm_write_spec()) is None
    assert lake.done(table.get_lsm_stats()) is None
    lake.done(table.close_lsm_writers())
    refused = [
        lambda: table.set_lsm_write_spec(LsmWriteSpec.unsharded()),
        table.unset_lsm_write_spec,
        table.flush_lsm,
        table.compact_lsm,
        table.checkpoint_lsm,
    ]
    for call in refused:
        with pytest.raises(Exception, match="no log-structured writes"):
            lake.done(call())
