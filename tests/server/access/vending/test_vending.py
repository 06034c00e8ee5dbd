"""Credentials that clients get: for one table, as long as they last, and never the server's own."""

import datetime
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from penstock.lance.storage import credentials
from penstock.lance.storage.credentials import Keys, Vendor, make_policy, sign
from tests.harness.processes.access import GuardedServer, guarded
from tests.harness.processes.s3 import BUCKET, SECRETS, Store
from tests.harness.processes.servers import Server

ROLE = "arn:aws:iam::123456789012:role/tables"


@contextmanager
def serve_vending(store: Store, data: Path) -> Iterator[GuardedServer]:
    """A server that vends credentials, with a namespace."""
    environ = {
        "PENSTOCK__STORAGE__ROOT": f"s3://{BUCKET}/lake",
        "PENSTOCK__STORAGE__OPTIONS": json.dumps(store.options),
        "PENSTOCK__STORAGE__VEND_ROLE": ROLE,
        "PENSTOCK__STORAGE__VEND_ENDPOINT": store.options["aws_endpoint"],
    }
    with guarded(data, environ=environ) as gate:
        gate.admin().post("/v1/namespace/n/create").raise_for_status()
        yield gate


@pytest.fixture(scope="module")
def vending_gate(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServer]:
    with serve_vending(store, tmp_path_factory.mktemp("data")) as gate:
        yield gate


def options(server: Server, body: Any = None) -> dict[str, str]:
    answer = server.post("/v1/table/n$t/describe", body).raise_for_status()
    found: dict[str, str] = answer.json().get("storage_options") or {}
    return found


def test_a_client_gets_credentials_of_its_own_for_a_table(vending_gate: GuardedServer) -> None:
    admin, ann = vending_gate.admin(), vending_gate.as_(vending_gate.key("ann"))
    made = admin.post("/v1/table/n$t/declare", {"vend_credentials": True}).json()
    given = made["storage_options"]
    assert given["aws_session_token"]
    assert int(given["expires_at_millis"]) > 0
    assert given["aws_region"] == "us-east-1"
    vending_gate.grant("ann", "reader", "table", "n", "t")
    for found in (given, options(admin), options(ann), options(ann, {"vend_credentials": True})):
        assert not set(found.values()) & set(SECRETS.values())
    assert options(ann)["aws_session_token"] != options(admin)["aws_session_token"]
    # The same again while they last.
    assert options(ann) == options(ann)
    assert options(ann, {"vend_credentials": False}) == {}


def test_credentials_are_not_kept_with_an_answer(vending_gate: GuardedServer) -> None:
    admin, key = vending_gate.admin(), str(uuid.uuid4())
    ask: dict[str, Any] = {"json": {"vend_credentials": True}, "headers": {"Idempotency-Key": key}}
    first, again = (admin.client.post("/v1/table/n$kept/declare", **ask) for _ in range(2))
    assert first.json()["storage_options"]["aws_session_token"]
    assert first.headers["cache-control"] == "no-store"
    assert again.json()["location"] == first.json()["location"]
    sql = "SELECT answer FROM idempotency_keys WHERE value = $1"
    row = vending_gate.work(lambda database: database.fetch_one(sql, key))
    assert row is not None
    assert "aws_" not in row[0]


def test_a_policy_reaches_one_folder_and_writes_only_if_it_may() -> None:
    for may_write in (False, True):
        work, listing = json.loads(make_policy("b", "lake/t.lance", may_write))["Statement"]
        assert work["Resource"] == "arn:aws:s3:::b/lake/t.lance/*"
        assert ("s3:PutObject" in work["Action"]) == may_write
        assert ("s3:DeleteObject" in work["Action"]) == may_write
        prefixes = listing["Condition"]["StringLike"]["s3:prefix"]
        assert prefixes == ["lake/t.lance/*"]


@pytest.mark.parametrize(
    "location",
    [
        *("/lake/t", "gs://b/t", "az://b/t", "s3://b", "s3://b/*", "s3://b/a?c", "s3://b/${aws:x}"),
        *("s3://b/%2a", "s3://b/a#b", "s3://b/a\\b", "s3://b/../c", "s3://b/a/./b", "s3://b/a//b"),
        *("s3://b/t/", "s3://*/t", "s3://b?/t", "s3a://b/t", "S3://b/t", "s3://b/$"),
    ],
)
def test_nothing_is_given_where_a_policy_could_not_be_as_narrow(location: str) -> None:
    assert Vendor(ROLE, 900, {}, "http://127.0.0.1:1").vend(location, True) == {}


def test_a_request_is_signed_as_the_sdk_signs_it() -> None:
    endpoint, body = "https://sts.us-east-1.amazonaws.com", b"Action=AssumeRole&a=b"
    for _ in range(3):
        now = datetime.datetime.now(datetime.UTC)
        ours = sign(endpoint, body, Keys("id", "secret", "token"), "us-east-1", now)
        sent = {name: ours[name] for name in ("content-type", "host")}
        request = AWSRequest("POST", f"{endpoint}/", data=body, headers=sent)
        SigV4Auth(Credentials("id", "secret", "token"), "sts", "us-east-1").add_auth(request)
        # Both look at the clock, which may have gone on in between.
        if request.headers["X-Amz-Date"] == ours["x-amz-date"]:
            break
    assert request.headers["Authorization"] == ours["authorization"]


def test_an_answer_that_is_not_sts_s_is_refused() -> None:
    for content in (b"<a/>", b"<!DOCTYPE x [<!ENTITY a 'b'>]><a>&a;</a>"):
        with pytest.raises(ValueError, match="answer"):
            credentials.read_answer(content)


@pytest.mark.slow
def test_no_role_no_credentials(store: Store, tmp_path: Path) -> None:
    from tests.harness.processes.s3 import serving

    with serving(store, tmp_path, "other") as server:
        server.post("/v1/namespace/n/create").raise_for_status()
        made = server.post("/v1/table/n$t/declare", {"vend_credentials": True}).json()
        found = options(server, {"vend_credentials": True})
        assert (
            set(found)
            == set(made["storage_options"])
            == {
                *("aws_region", "aws_endpoint", "allow_http"),
            }
        )


def test_the_credentials_are_those_of_the_role(vending_gate: GuardedServer, store: Store) -> None:
    admin = vending_gate.admin()
    admin.post("/v1/table/n$t/declare")
    given = options(admin)
    client = boto3.client(
        "sts",
        endpoint_url=store.options["aws_endpoint"],
        region_name="us-east-1",
        aws_access_key_id=given["aws_access_key_id"],
        aws_secret_access_key=given["aws_secret_access_key"],
        aws_session_token=given["aws_session_token"],
    )
    assert client.get_caller_identity()["Arn"].endswith("assumed-role/tables/penstock")
