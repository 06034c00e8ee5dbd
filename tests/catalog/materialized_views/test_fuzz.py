"""Nothing that a client sends about materialized views makes the server fail."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.data.tables import new_name
from tests.harness.fuzzing.values import check, fuzzed, values_of, words_of
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import View, make_view

WORDS = (
    *("query", "udtf", "chunker", "scalar_udtf", "SELECT id FROM t", "SELECT * FROM t", "SELECT"),
    *('{"sql": "SELECT id FROM t"}', '{"sql": 1}', '{"iceberg_view": ["t"]}', '{"base": {}}', "{"),
    *('{"iceberg_view": []}', '{"base": {"columns": ["id"]}, "source_table": "t"}', "[]", "null"),
    *("SELECT id FROM a.b.c.d", 'SELECT id FROM ""', "SELECT id FROM `t`", "DROP TABLE t", "\0"),
    *("full", "auto", "incremental", "/////w==", "AAAA", "é", "😀", "", "local", "x;y"),
)
words = words_of(WORDS)
values = values_of(words, words)
SPEC = (
    *("kind", "udtf", "udtf_sha", "udtf_name", "udtf_version", "input_columns", "partition_by"),
    *("partition_by_indexed_column", "num_cpus", "memory", "error_handling", "batch", "manifest"),
)
specs = st.dictionaries(st.sampled_from(SPEC), values, max_size=5)
CREATE = ("kind", "source_query", "output_schema", "with_no_data", "auto_refresh", "query", "id")
REFRESH = (
    *("src_version", "max_rows_per_fragment", "concurrency", "intra_applier_concurrency", "full"),
    *("source_task_size", "cluster", "output_limit", "manifest", "mode", "verify", "verify_rows"),
    *("source_version", "auto_refresh", "target_lag_seconds", "checkpoint_size"),
    *("min_checkpoint_size", "max_checkpoint_size", "batch_checkpoint_flush_interval_seconds"),
)
ALTER = (
    *("kind", "source_query", "output_schema", "udtf_spec", "inherited", "properties", "cluster"),
    *("auto_refresh", "target_lag_seconds", "refresh_schedule", "refresh_schedule_timezone"),
)
RESULT = (
    *("version", "mode", "reason", "rows_inserted", "source_versions", "watermark", "rate"),
    *("function_calls", "certificate"),
)


def bodies(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(names), values, max_size=4)


@pytest.fixture(scope="module")
def view(server: Server) -> View:
    return make_view(server, "c398")


@fuzzed(60)
@given(bodies(*CREATE), specs | st.none(), words)
def test_creations(view: View, body: dict[str, Any], spec: Any, query: str) -> None:
    path = f"/v1/materialized_view/{view.namespace}${new_name()}/create"
    check(view.server, path, body)
    check(view.server, path, {"kind": "query", "source_query": query} | body)
    check(
        view.server,
        path,
        {"kind": "chunker", "source_query": "SELECT id FROM t", "udtf_spec": spec},
    )


@fuzzed(60)
@given(bodies(*ALTER), specs | st.none(), words)
def test_alterations(view: View, body: dict[str, Any], spec: Any, query: str) -> None:
    for operation in ("alter", "explain_alter"):
        path = f"/v1/materialized_view/{view.id}/{operation}"
        check(view.server, path, body)
        check(view.server, path, body | {"source_query": query})
        check(view.server, path, {"udtf_spec": spec, "inherited": [query]})
    check(view.server, f"/v1/materialized_view/{view.id}/history", body)


@fuzzed(60)
@given(bodies(*REFRESH))
def test_requests(view: View, body: dict[str, Any]) -> None:
    for operation in ("refresh", "explain", "alter", "describe"):
        check(view.server, f"/v1/materialized_view/{view.id}/{operation}", body)


@fuzzed(60)
@given(bodies(*RESULT), values)
def test_results(view: View, result: dict[str, Any], watermark: Any) -> None:
    id = view.request(mode="full")
    leased = view.runner.lease(free=64)
    body = {"attempt": 1, "state": "SUCCEEDED", "result": {"watermark": watermark} | result}
    check(view.server, f"/v1/runner/job/{id}/finish", body)
    check(view.server, "/v1/jobs/describe", {"job_id": id})
    check(view.server, f"/v1/transaction/{id}/describe", {})
    check(view.server, f"/v1/table/{view.id}/describe", {})
    check(view.server, f"/v1/table/{view.id}/query", {"k": 1})
    for job in leased:
        view.runner.finish(job)
