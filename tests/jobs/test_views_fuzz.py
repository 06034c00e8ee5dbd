"""Nothing that a client sends about materialized views makes the server fail."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness.materialized import View, make_view
from tests.harness.servers import Server
from tests.harness.tables import new_name

WORDS = (
    *("query", "udtf", "chunker", "scalar_udtf", "SELECT id FROM t", "SELECT * FROM t", "SELECT"),
    *('{"sql": "SELECT id FROM t"}', '{"sql": 1}', '{"iceberg_view": ["t"]}', '{"base": {}}', "{"),
    *('{"iceberg_view": []}', '{"base": {"columns": ["id"]}, "source_table": "t"}', "[]", "null"),
    *("SELECT id FROM a.b.c.d", 'SELECT id FROM ""', "SELECT id FROM `t`", "DROP TABLE t", "\0"),
    *("full", "auto", "incremental", "/////w==", "AAAA", "é", "😀", "", "local", "x;y"),
)
words = st.sampled_from(WORDS) | st.text(max_size=12)
numbers = st.integers(-2, 5) | st.sampled_from([2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30])
scalars = st.none() | st.booleans() | numbers | st.floats(allow_nan=False) | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
SPEC = (
    *("kind", "udtf", "udtf_sha", "udtf_name", "udtf_version", "input_columns", "partition_by"),
    *("partition_by_indexed_column", "num_cpus", "memory", "error_handling", "batch", "manifest"),
)
specs = st.dictionaries(st.sampled_from(SPEC), values, max_size=5)
CREATE = ("kind", "source_query", "output_schema", "with_no_data", "auto_refresh", "query", "id")
REFRESH = (
    *("src_version", "max_rows_per_fragment", "concurrency", "intra_applier_concurrency", "full"),
    *("source_task_size", "cluster", "output_limit", "manifest", "mode", "verify", "verify_rows"),
    *("source_version", "auto_refresh", "target_lag_seconds"),
)
RESULT = (
    *("version", "mode", "reason", "rows_inserted", "source_versions", "watermark", "rate"),
    *("function_calls", "certificate"),
)
fuzzed = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def bodies(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(names), values, max_size=4)


@pytest.fixture(scope="module")
def view(server: Server) -> View:
    return make_view(server, "c398")


def check(view: View, path: str, body: Any) -> None:
    answer = view.server.send(f"/v1/{path}", json.dumps(body).encode())
    assert answer.status_code < 500, (path, body, answer.text)
    if answer.status_code >= 400:
        assert isinstance(answer.json()["code"], int)


@fuzzed
@given(bodies(*CREATE), specs | st.none(), words)
def test_creations(view: View, body: dict[str, Any], spec: Any, query: str) -> None:
    path = f"materialized_view/{view.namespace}${new_name()}/create"
    check(view, path, body)
    check(view, path, {"kind": "query", "source_query": query} | body)
    check(view, path, {"kind": "chunker", "source_query": "SELECT id FROM t", "udtf_spec": spec})


@fuzzed
@given(bodies(*REFRESH))
def test_requests(view: View, body: dict[str, Any]) -> None:
    for operation in ("refresh", "explain", "alter", "describe"):
        check(view, f"materialized_view/{view.id}/{operation}", body)


@fuzzed
@given(bodies(*RESULT), values)
def test_results(view: View, result: dict[str, Any], watermark: Any) -> None:
    id = view.request(mode="full")
    leased = view.runner.lease(free=64)
    body = {"attempt": 1, "state": "SUCCEEDED", "result": {"watermark": watermark} | result}
    check(view, f"runner/job/{id}/finish", body)
    check(view, "jobs/describe", {"job_id": id})
    check(view, f"transaction/{id}/describe", {})
    check(view, f"table/{view.id}/describe", {})
    check(view, f"table/{view.id}/query", {"k": 1})
    for job in leased:
        view.runner.finish(job)
