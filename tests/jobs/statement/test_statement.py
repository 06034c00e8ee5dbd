"""Statements on Spark in the test's process: what they send, within which bounds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest, QueryRefused
from penstock.jobs.spark.probe import warm_sql
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import StatementSpec
from penstock.jobs.statement.run import run_statement
from penstock.lance.columns.schemas import encode_schema
from penstock.model.views import CheckedSql
from penstock.sql.statements import Statement, StatementSource
from tests.harness.fuzzing.hostile_sql import STATEMENTS, Canary
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.local_engine import FolderLake

ROWS = 200_000


@dataclass
class Answer(HeldAttempt):
    """An attempt that keeps what it sends."""

    sent: bytes = field(default=b"")

    def send_result(self, parts: Sequence[Any]) -> None:
        self.sent = b"".join(parts)

    def rows(self) -> pa.Table:
        return pa.ipc.open_stream(self.sent).read_all()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> FolderLake:
    folder = tmp_path_factory.mktemp("lake")
    rows = pa.table({"id": pa.array(range(ROWS), pa.int64())})
    lance.write_dataset(rows, folder / "t", max_rows_per_file=30_000)
    return FolderLake(folder)


def run(engine: Engine, lake: FolderLake, sql: str, **bounds: Any) -> Answer:
    source = StatementSource(id="t", table=("t",), name="t", version=1, reads=("id",))
    statement = Statement(sql=CheckedSql(sql), sources=(source,), kept=encode_schema(pa.schema([])))
    limits = {"max_rows": 10**6, "max_bytes": 10**8} | bounds
    answer = Answer()
    run_statement(StatementSpec(statement=statement, **limits), lake, lambda: engine, answer)
    return answer


def test_rows_come_in_order_from_several_tasks(engine: Engine, lake: FolderLake) -> None:
    found = run(engine, lake, "SELECT id, id % 7 AS r FROM t ORDER BY r, id DESC").rows()
    assert found["r"].to_pylist() == sorted(found["r"].to_pylist())
    assert found.num_rows == ROWS
    assert found["id"][0].as_py() == (ROWS - 1) // 7 * 7
    assert run(engine, lake, "SELECT id FROM t", limit=2**40).rows().num_rows == ROWS
    assert run(engine, lake, "SELECT id FROM t ORDER BY id", limit=3).rows().num_rows == 3


def test_a_result_is_refused_when_it_is_too_large(engine: Engine, lake: FolderLake) -> None:
    with pytest.raises(InvalidRequest, match="more than 1000 rows"):
        run(engine, lake, "SELECT id + 1 AS n FROM t", max_rows=1000)
    with pytest.raises(InvalidRequest, match="more than 5000 bytes"):
        run(engine, lake, "SELECT id + 1 AS n FROM t", max_bytes=5000)


def test_hostile_statements_stop_at_the_gate(
    engine: Engine, lake: FolderLake, tmp_path: Path
) -> None:
    canary = Canary(tmp_path, engine)
    for name, attack in list(STATEMENTS.items())[::4]:
        answer = Answer()
        with pytest.raises(InvalidRequest):
            answer = run(engine, lake, canary.arm(attack))
        assert not answer.sent, name
    with pytest.raises(QueryRefused):
        run(engine, lake, "SELECT * FROM text.`/etc/passwd`")


def test_a_session_is_warmed_for_statements(engine: Engine) -> None:
    warm_sql(engine)
