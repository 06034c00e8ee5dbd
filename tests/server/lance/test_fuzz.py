"""Nothing that a client sends makes the server fail: random requests to every route."""

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.server.lance.extensions import EXTENSIONS
from penstock.server.lance.operation import LanceOperation
from penstock.server.lance.operations import OPERATIONS
from tests.harness.data.manifests import stage
from tests.harness.fuzzing.values import fuzzed, numbers, values_of, words_of
from tests.harness.processes.servers import Server

FIELDS = """
    id mode properties behavior location version tag branch with_table_uri check_declared
    load_detailed_metadata vend_credentials new_table_name new_namespace_id manifest_path
    manifest_size e_tag metadata naming_scheme ranges start_version end_version entries
    operations declare_table create_table_version delete_table_versions deregister_table actions
    setStatusAction setPropertyAction unsetPropertyAction status key value context identity
    job_id job_ids state kind target limit page_token filter column where read_version num_frags
    cluster manifest force runner clusters free attempt progress logs result error retryable
    new_columns name computed virtual_column input_columns outputs udf udf_name udf_version image
    manifest_checksum field_metadata auto_backfill data_type struct_field alterations path
    errors_only checkpoint_size min_checkpoint_size max_checkpoint_size
    errors row_id rows timeout_seconds
""".split()  # noqa: SIM905
WORDS = (
    *("create", "exist_ok", "Overwrite", "skip", "fail", "cascade", "Canceled", "true", "V1", "V2"),
    *("main", "dev", "t", "ns", "_versions/x.manifest", "s3://b/x", "/etc/passwd"),
    *(".", "..", "$", "/", "\x00", "\x1f", "é", "\ud7ff", ""),
)
# Parts of a path that are sent as they are.
RAW = ("%", "%FF")

words = words_of(WORDS)
values = values_of(words, st.sampled_from(FIELDS) | words)
bodies = st.dictionaries(st.sampled_from(FIELDS), values, max_size=6) | values
parameters = st.dictionaries(
    st.sampled_from(
        ["delimiter", "limit", "page_token", "branch", "descending", "include_declared", "mode"]
    ),
    words | numbers.map(str),
    max_size=3,
)
ALL = (*OPERATIONS, *EXTENSIONS)
OPERATION_IDS = [operation.name for operation in ALL]


@pytest.fixture(scope="module")
def table(server: Server) -> str:
    """A table with one version, so that requests reach beyond 'not found'."""
    server.post("/v1/namespace/ns/create")
    location: str = server.post("/v1/table/ns$t/declare").raise_for_status().json()["location"]
    body = {"version": 1, "manifest_path": stage(location, 1)}
    server.post("/v1/table/ns$t/version/create", body).raise_for_status()
    return location


@pytest.mark.parametrize("operation", ALL, ids=OPERATION_IDS)
@fuzzed(12)
@given(st.data())
def test_no_request_makes_a_server_error(
    server: Server, table: str, operation: LanceOperation, data: st.DataObject
) -> None:
    known = ["$", "ns"] if operation.path.startswith("namespace") else ["ns$t", "ns$new", "t"]
    id = data.draw(st.sampled_from(known) | words)
    path = operation.path.replace("{id}", quote(id, safe="")).replace("{index_name}", "i")
    content = (
        json.dumps(data.draw(bodies)).encode()
        if data.draw(st.integers(0, 9))
        else data.draw(st.binary())
    )
    query = data.draw(parameters) if data.draw(st.booleans()) else {}
    response = server.client.request(operation.method, f"/v1/{path}", params=query, content=content)
    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        assert isinstance(response.json()["code"], int)
        assert response.json()["error"]


@fuzzed(40)
@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]),
    st.lists(st.sampled_from(["v1", "table", "namespace", "", *RAW, "a+b"]) | words, max_size=6),
)
def test_no_path_makes_a_server_error(server: Server, method: str, parts: list[str]) -> None:
    path = "/".join(part if part in RAW else quote(part, safe="+") for part in parts)
    response = server.client.request(method, f"{server.url}/{path}")
    assert response.status_code < 500, response.text
    if method != "HEAD":
        response.json()
