"""Nothing that a client or a runner sends makes the server fail, on a real column and job."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness.jobs import Column, make_column
from tests.harness.servers import Server

WORDS = (
    *("len", "text", "id", "nope", "id > 1", "length(text)", "text >", "1; 2", "a.b", "`", "``"),
    *("local", "QUEUED", "FAILED", "state = 'x'", '{"pip": []}', "{", "null", "main", "dev"),
    *("\0", "\x1f", "é", "😀", "", "'", '"', "(" * 50, "NULL", "*", "id, id", "_rowid", "st.x"),
)
words = st.sampled_from(WORDS) | st.text(max_size=12)
numbers = st.integers(-2, 5) | st.sampled_from([2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30])
scalars = st.none() | st.booleans() | numbers | st.floats(allow_nan=False) | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
OPTIONS = (
    *("where", "branch", "read_version", "num_frags", "task_size", "concurrency", "force"),
    *("commit_granularity", "checkpoint_size", "cluster", "manifest"),
)
REPORT = ("attempt", "progress", "logs", "state", "result", "error", "retryable")
LISTING = ("state", "kind", "target", "limit", "page_token", "job_id", "job_ids", "filter")

fuzzed = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def bodies(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(names), values, max_size=4)


@pytest.fixture(scope="module")
def bound(server: Server) -> Column:
    return make_column(server, "c399")


def check(server: Server, path: str, body: Any) -> None:
    answer = server.send(path, json.dumps(body).encode())
    assert answer.status_code < 500, (path, body, answer.text)
    if answer.status_code >= 400:
        assert isinstance(answer.json()["code"], int)


@fuzzed
@given(bodies(*OPTIONS), words)
def test_requests_of_backfills(bound: Column, body: dict[str, Any], name: str) -> None:
    for column in ("len", name):
        whole = {"column": column} | body
        check(bound.server, f"/v1/table/{bound.table}/backfill_column", whole)
        check(bound.server, f"/v1/table/{bound.table}/explain_backfill", whole)


@fuzzed
@given(words, values)
def test_declarations(bound: Column, name: str, computed: Any) -> None:
    path = f"/v1/table/{bound.table}"
    check(
        bound.server, f"{path}/add_columns", {"new_columns": [{"name": name, "computed": computed}]}
    )
    if name not in ("id", "text", "len"):
        check(bound.server, f"{path}/drop_columns", {"columns": [name]})


@fuzzed
@given(bodies(*REPORT), st.booleans())
def test_reports(bound: Column, body: dict[str, Any], right: bool) -> None:
    id = bound.request(force=True)
    leased = bound.runner.lease(free=64)
    whole = ({"attempt": 1, "state": "SUCCEEDED"} if right else {}) | body
    for path in ("heartbeat", "finish"):
        check(bound.server, f"/v1/runner/job/{id}/{path}", whole)
    check(bound.server, "/v1/jobs/describe", {"job_id": id})
    check(bound.server, f"/v1/transaction/{id}/describe", {})
    for job in leased:
        bound.runner.finish(job)


@fuzzed
@given(bodies(*LISTING), bodies("manifest", "mode"), words)
def test_listings_and_manifests(
    server: Server, body: dict[str, Any], manifest: dict[str, Any], name: str
) -> None:
    for path in ("list", "describe", "cancel", "query_events"):
        check(server, f"/v1/jobs/{path}", body)
    check(server, "/v1/manifest/fuzzed/create", manifest)
    check(server, "/v1/jobs/list", {"target": name, "kind": name})
