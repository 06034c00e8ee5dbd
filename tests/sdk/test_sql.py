"""Statements by the SDK: their rows in every form."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.main import penstock as command
from penstock.errors import InvalidRequest, TimedOut, Unavailable
from penstock.sdk.sql_result import SqlResult
from tests.harness.jobs.fake_runner import Runner
from tests.harness.jobs.statements import ROWS, send_result
from tests.harness.processes import servers
from tests.harness.processes.access import tls
from tests.harness.processes.flaky_proxy import flaky
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import PATIENCE_SECONDS


def test_rows_come_in_every_form(lake: penstock.Lake, table: penstock.Table, space: str) -> None:
    found = lake.sql("SELECT id, text FROM docs WHERE id > 1", namespace=space)
    rows = [{"id": 2, "text": "bb"}, {"id": 3, "text": "ccc"}]
    assert found.to_list() == list(found) == found.to_arrow().to_pylist() == rows
    assert len(found) == 2
    assert [batch.num_rows for batch in found.to_batches()] == [2]
    assert found.to_pandas().to_dict("records") == rows
    assert found.to_polars().to_dicts() == rows
    assert found.schema().names == ["id", "text"]
    assert lake.sql(f"SELECT id FROM {space}.docs", limit=1).to_list() == [{"id": 1}]
    assert lake.sql(f'SELECT "id" FROM {space}.docs', dialect="trino", limit=2).to_arrow()


def test_a_result_shows_its_first_rows(lake: penstock.Lake, space: str) -> None:
    lake.create_table(f"{space}.many", {"id": list(range(30)), "text": ["<b>" * 20] * 30})
    found = lake.sql("SELECT id, text FROM many", namespace=space)
    lines = repr(found).splitlines()
    assert (lines[0].split(), lines[-1]) == (["id", "text"], "30 rows, of which 10 are shown")
    assert (len(lines), lines[1].endswith("…")) == (12, True)
    assert "<b>" not in found._repr_html_()
    assert repr(lake.sql("SELECT id FROM many WHERE id < 0", namespace=space)) == "id\n0 rows"


def test_errors_are_those_of_the_server(lake: penstock.Lake, table: penstock.Table) -> None:
    with pytest.raises(InvalidRequest, match="nope"):
        lake.sql(f"SELECT nope FROM {table.id[0]}.docs")


def test_a_statement_whose_time_is_up_is_not_sent_again(
    lake: penstock.Lake, table: penstock.Table, server: Server
) -> None:
    runner = Runner(server, "local")
    with ThreadPoolExecutor(1) as pool:
        sql = f"SELECT max(id) AS n FROM {table.id[0]}.docs"
        answer = pool.submit(lake.sql, sql, timeout=1.0)
        assert runner.lease(wait_seconds=20)
        with pytest.raises(TimedOut):
            answer.result(PATIENCE_SECONDS)
        answer = pool.submit(lake.sql, sql)
        (job,) = runner.lease(wait_seconds=20)
        send_result(server, job).raise_for_status()
        runner.finish(job, result={"rows": 3}).raise_for_status()
        assert answer.result(PATIENCE_SECONDS).to_arrow() == ROWS


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_large_result_that_the_server_breaks_off_says_why(scheme: str, tmp_path: Path) -> None:
    """Some of it was sent: it is not asked for again, and not taken for an absent server."""
    sealed = tls(tmp_path) if scheme == "https" else {}
    environ = {"PENSTOCK__SERVER__SQL_MAX_BYTES": str(2**22), **sealed}
    with servers.running(tmp_path / "data", environ=environ) as server:
        lake = penstock.connect(server.url, verify=False, retry_seconds=60)
        lake.create_table("large", {"text": ["x" * 1000] * 20_000})
        with pytest.raises(InvalidRequest, match=f"more than {2**22} bytes") as raised:
            lake.sql("SELECT text FROM large")
        assert "add LIMIT" in raised.value.detail
        assert len(lake.sql("SELECT text FROM large LIMIT 2000")) == 2000
        lake.close()


def test_a_statement_that_no_runner_takes_ends_in_its_time(
    tmp_path: Path,
) -> None:
    with servers.running(tmp_path) as server, penstock.connect(server.url) as lake:
        lake.create_table("t", {"k": ["a"]})
        for timeout in (1.0, None):
            started = time.monotonic()
            with pytest.raises(Unavailable, match="no runner of cluster"):
                lake.sql("SELECT initcap(k) AS k FROM t", timeout=timeout)
            assert time.monotonic() - started < 15


def test_a_statement_is_sent_again_only_in_its_time(server: Server, table: penstock.Table) -> None:
    with flaky(server.url, retry_after="1") as way, penstock.connect(way.url) as lake:
        way.seen.clear()
        way.fates = ["503"] * 20
        started = time.monotonic()
        with pytest.raises(Unavailable):
            lake.sql(f"SELECT id FROM {table.name}", timeout=2.5)
        assert time.monotonic() - started < 15
        assert len(way.seen) > 1


def test_two_columns_of_one_name_make_no_dicts() -> None:
    found = SqlResult(pa.table([[1], [2]], names=["id", "id"]))
    with pytest.raises(InvalidRequest, match="two columns are called id") as raised:
        found.to_list()
    assert "AS" in raised.value.detail
    assert found.to_arrow().num_columns == 2


def test_a_file_of_rows_is_csv_unless_another_format_is_chosen(
    server: Server, table: penstock.Table, tmp_path: Path
) -> None:
    asked = ["sql", f"SELECT id FROM {table.name}", "--url", server.url, "-o", str(tmp_path / "f")]
    refused = CliRunner().invoke(command, [*asked, "--format", "table"])
    assert isinstance(refused.exception, InvalidRequest)
    assert not (tmp_path / "f").exists()
    assert CliRunner().invoke(command, asked).exit_code == 0
    assert (tmp_path / "f").read_text().splitlines() == ['"id"', "1", "2", "3"]
