"""Backfills on a real Spark session, committed through a real server."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import ColumnNotFound, InvalidRequest, TableNotFound, VersionNotFound
from penstock.jobs.spark.tasks import Engine
from tests.harness.jobs.computed_tables import compute, documents
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.processes.servers import Server


def test_every_row_gets_its_value_in_one_version(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    before = table.open().version
    attempt = HeldAttempt()
    done = table.fill(attempt)
    assert table.values() == table.expected()
    assert (done.version, done.committed_versions) == (before + 1, (before + 1,))
    assert (done.mode, done.rows, done.function_calls) == ("full", 100, 100)
    assert attempt.told["rows_done"] == attempt.told["rows_total"] == 100
    assert attempt.told["fragments_done"] == attempt.told["fragments_total"] == 4
    assert table.loose_files() == set()


def test_the_commit_goes_through_the_catalog_and_names_the_job(
    server: Server, engine: Engine
) -> None:
    table = compute(server, engine)
    attempt = HeldAttempt()
    done = table.fill(attempt)
    listed = server.post(f"/v1/table/{'$'.join(table.id)}/version/list").json()["versions"]
    assert done.version in [version["version"] for version in listed]
    transaction = table.open().read_transaction(done.version)
    found = (transaction and transaction.transaction_properties) or {}
    assert (found["penstock.job"], found["penstock.attempt"]) == (attempt.job, "1")


def test_deleted_rows_leave_gaps(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    table.open().delete("id % 3 = 1 OR id BETWEEN 20 AND 30 OR id = 99")
    done = table.fill()
    assert table.values() == table.expected()
    assert done.rows == len(table.values())


def test_a_fragment_without_live_rows_in_its_end_gets_a_file_of_full_length(
    server: Server, engine: Engine
) -> None:
    table = compute(server, engine, fragments=1)
    table.open().delete("id >= 10")
    table.fill()
    assert table.values() == table.expected()


def test_a_second_backfill_computes_nothing(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    first = table.fill()
    second = table.fill()
    assert (second.rows, second.function_calls, second.version) == (0, 0, first.version)
    assert second.committed_versions == ()


def test_only_appended_rows_are_computed_later(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    table.fill()
    table.open().insert(documents(1000, 7))
    done = table.fill()
    assert (done.mode, done.rows) == ("incremental", 7)
    assert table.values() == table.expected()


def test_rows_whose_inputs_were_updated_are_computed_again(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    table.fill()
    table.open().update({"text": "'changed'"}, where="id < 5")
    assert table.values() != table.expected()
    done = table.fill()
    assert done.rows == 5
    assert table.values() == table.expected()


def test_where_keeps_the_old_values_of_other_rows(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    first = table.fill(where="id < 40")
    assert first.rows == 40
    expected = table.expected()
    assert table.values() == {id: v if id < 40 else None for id, v in expected.items()}
    second = table.fill(where="id >= 90")
    assert second.rows == 10
    assert table.values() == {id: v if id < 40 or id >= 90 else None for id, v in expected.items()}
    table.fill()
    assert table.values() == expected


def test_where_and_deletions_together(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    table.open().delete("id % 5 = 0")
    table.fill(where="id % 2 = 1")
    expected = {id: v if id % 2 else None for id, v in table.expected().items()}
    assert table.values() == expected


def test_the_expression_sees_only_rows_that_match(server: Server, engine: Engine) -> None:
    table = compute(server, engine, expression="100 / (id - 50)", inputs=("id",))
    table.fill(where="id <> 50")
    assert table.values()[50] is None
    assert table.values()[51] == 100


def test_num_frags_fills_the_first_fragments_only(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    done = table.fill(num_frags=1)
    assert (done.rows, done.committed_fragments) == (25, (0,))
    done = table.fill(num_frags=2)
    assert done.committed_fragments == (1, 2)
    assert [v for v in table.values().values() if v is None] == [None] * 25


def test_read_version_leaves_later_rows_alone(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    before = table.open().version
    table.open().insert(documents(500, 10))
    done = table.fill(read_version=before)
    assert done.rows == 100
    found = table.values()
    assert {id for id, v in found.items() if v is None} == set(range(500, 510))


def test_a_branch_is_filled_in_its_own_folder(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    table.open().create_branch("dev")
    table.open("dev").insert(documents(300, 5))
    table.fill(branch="dev")
    assert table.values("dev") == table.expected("dev")
    assert set(table.values().values()) == {None}
    assert table.loose_files("dev") == set()
    assert table.fill(branch="dev").rows == 0


def test_groups_are_committed_one_by_one(server: Server, engine: Engine) -> None:
    table = compute(server, engine, fragments=5)
    done = table.fill(commit_granularity=2, task_size=20, concurrency=2)
    assert len(done.committed_versions) == 3
    assert table.values() == table.expected()


# Files of 2.0 cannot hold a null struct, which a deleted row would need.
@pytest.mark.parametrize(
    ("storage", "expression"),
    [
        ("2.0", "concat(text, '!')"),
        ("2.0", "cast(id as float)"),
        ("2.1", "named_struct('a', id, 'b', text)"),
        ("2.2", "named_struct('a', id, 'b', text)"),
        ("2.2", "id > 3"),
    ],
)
def test_columns_of_other_types(
    server: Server, engine: Engine, expression: str, storage: str
) -> None:
    table = compute(server, engine, rows=20, fragments=2, expression=expression, storage=storage)
    table.open().delete("id = 3")
    table.fill()
    assert table.values() == table.expected()


def test_a_vector_is_filled(server: Server, engine: Engine) -> None:
    vectors = pa.array([[float(n), 1.0] for n in range(20)], pa.list_(pa.float32(), 2))
    data = pa.table({"id": pa.array(range(20), pa.int64()), "vector": vectors})
    table = compute(server, engine, data=data, expression="vector", inputs=("vector",))
    table.open().delete("id % 4 = 2")
    table.fill()
    assert table.values() == table.expected()


def test_names_that_need_quotes(server: Server, engine: Engine) -> None:
    data = documents(0, 20).rename_columns(["id", "the text"])
    table = compute(
        server, engine, data=data, expression="length(`the text`)", inputs=("the text",)
    )
    renamed: Any = {"path": "value", "name": "the Value"}
    table.open().alter_columns(renamed)
    table = replace(table, column="the Value")
    table.open().delete("id = 7")
    table.fill(where="`the Value` IS NULL AND id < 10")
    table.fill()
    assert table.values() == table.expected()


def test_a_value_that_cannot_be_computed_fails_the_job_and_changes_nothing(
    server: Server, engine: Engine
) -> None:
    table = compute(server, engine, expression="100 / (id - 50)", inputs=("id",))
    before = table.open().version
    attempt = HeldAttempt()
    with pytest.raises(InvalidRequest, match="fragment 2: Divide by zero"):
        table.fill(attempt)
    table.sweep(attempt)
    assert table.open().version == before
    assert table.loose_files() == set()


def test_what_is_not_there_is_named(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    with pytest.raises(VersionNotFound, match="version 99"):
        table.fill(read_version=99)
    with pytest.raises(TableNotFound):
        table.fill(table=["nobody", "knows"])
    table.open().drop_columns(["value"])
    with pytest.raises(ColumnNotFound, match="value"):
        table.fill()


def test_a_constant_is_filled_in(server: Server, engine: Engine) -> None:
    table = compute(server, engine, rows=20, fragments=2, expression="5", inputs=())
    table.open().delete("id = 3")
    table.fill()
    assert set(table.values().values()) == {5}
