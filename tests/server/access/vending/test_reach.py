"""What vended credentials reach: the policy that STS was really asked for, as IAM reads it."""

import json
import re
from collections.abc import Iterator
from typing import Any

import lance
import pytest
from moto.sts.models import sts_backends

from tests.harness.data.arrow import people, send
from tests.harness.data.tables import code
from tests.harness.processes.access import GuardedServer
from tests.harness.processes.s3 import BUCKET, Store
from tests.server.access.vending.test_vending import serve_vending

ARN = f"arn:aws:s3:::{BUCKET}"
WRITES = ("s3:PutObject", "s3:DeleteObject")
# Locations beside which others lie that a careless policy would reach as well.
PLACES = (
    "lake/t",
    "lake/a.b",
    "lake/a b",
    "lake/deep/er/t.lance",
    "lake/[ab]",
    "lake/t+",
    "lake/é",
)
NEIGHBOURS = (
    *(
        "{0}-2/x",
        "{0}2/x",
        "{0}",
        "lake/x",
        "x",
        "lake",
        "lake/axb/x",
        "lake/t",
        "lake/tt/x",
        "",
        "lake/",
    ),
    *("lake//x", "lake/*/x", "LAKE/t/x", "lake/a/x", "lake/deep/er/t.lance", "lake/e\u0301/x"),
)


@pytest.fixture(scope="module")
def gate(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServer]:
    with serve_vending(store, tmp_path_factory.mktemp("data")) as gate:
        yield gate


def vended(gate: GuardedServer, name: str, location: str, role: str = "owner") -> dict[str, str]:
    """The storage options that somebody with a role on the table is given."""
    admin = gate.admin()
    body = {"location": f"s3://{BUCKET}/{location}"}
    admin.post(f"/v1/table/n${name}/declare", body).raise_for_status()
    gate.grant(f"{role}-{name}", role, "table", "n", name)
    person = gate.as_(gate.key(f"{role}-{name}"))
    answer = person.post(f"/v1/table/n${name}/describe", {"vend_credentials": True})
    found: dict[str, str] = answer.raise_for_status().json()["storage_options"]
    return found


def policy_of(given: dict[str, str]) -> list[Any]:
    """The statements of the session's policy, as STS has it."""
    sts: Any = sts_backends["123456789012"]["aws"]
    role = sts.get_assumed_role_from_access_key(given["aws_access_key_id"])
    statements: list[Any] = json.loads(role.policy)["Statement"]
    return statements


def may(policy: list[Any], action: str, key: str) -> bool:
    """Whether an object may be touched, or the bucket listed by this prefix, as IAM says."""
    for statement in policy:
        wanted, resource = f"{ARN}/{key}", statement["Resource"]
        if (condition := statement.get("Condition")) is not None:
            (patterns,) = condition["StringLike"].values()
            wanted = ARN if any(matches(each, key) for each in patterns) else ""
        if action in statement["Action"] and matches(resource, wanted):
            return True
    return False


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern of a policy matches: `*` is anything, `?` one character; no variables."""
    assert "${" not in pattern
    parts = (re.escape(part).replace(r"\?", ".") for part in pattern.split("*"))
    return re.fullmatch(".*".join(parts), text, re.DOTALL) is not None


@pytest.mark.parametrize("place", PLACES)
def test_credentials_reach_one_folder_and_nothing_beside_it(
    gate: GuardedServer, place: str
) -> None:
    policy = policy_of(vended(gate, f"t{PLACES.index(place)}", place))
    assert may(policy, "s3:GetObject", f"{place}/data/x.lance")
    assert may(policy, "s3:PutObject", f"{place}/_versions/1.manifest")
    assert may(policy, "s3:ListBucket", f"{place}/_versions/")
    for neighbour in (each.format(place) for each in NEIGHBOURS):
        for action in ("s3:GetObject", "s3:ListBucket", *WRITES):
            assert not may(policy, action, neighbour), (action, neighbour)


def test_a_reader_s_credentials_write_nothing(gate: GuardedServer) -> None:
    policy = policy_of(vended(gate, "read", "lake/read", "reader"))
    assert may(policy, "s3:GetObject", "lake/read/x")
    assert not any(may(policy, action, "lake/read/x") for action in WRITES)


@pytest.mark.parametrize("name", ["*", "t*", "t?", "${aws:username}", "%2a", "..", "%2e%2e"])
def test_no_location_widens_a_policy(gate: GuardedServer, name: str) -> None:
    body = {"location": f"s3://{BUCKET}/lake/{name}/t", "vend_credentials": True}
    assert code(gate.admin().post("/v1/table/n$wide/declare", body)) == (400, 13)


def test_pylance_works_with_what_was_vended(gate: GuardedServer, store: Store) -> None:
    given = vended(gate, "work", "lake/work")
    made = send(gate.admin(), "/v1/table/n$work/insert", people(1, 2))
    made.raise_for_status()
    options = {name: text for name, text in given.items() if name != "expires_at_millis"}
    assert lance.dataset(f"s3://{BUCKET}/lake/work", storage_options=options).count_rows() == 2
