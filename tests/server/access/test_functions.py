"""Functions with a name: who registers them, who uses them, and what others hear of them."""

import uuid
from typing import Any

import pytest

from tests.harness.data.arrow import people, send
from tests.harness.data.functions import envelope
from tests.harness.processes.access import GuardedServer
from tests.harness.processes.servers import Server

F: dict[str, Any] = {
    "udf": envelope(b"\x80\x05N."),
    "udf_version": "1",
    "inputs": [{"name": "id", "data_type": "int64"}],
    "outputs": [{"data_type": "int64"}],
}


class Place:
    """A namespace with a table and a function of its admin's, and people with roles."""

    def __init__(self, gate: GuardedServer) -> None:
        self.gate, self.admin = gate, gate.admin()
        self.ns = f"f{uuid.uuid4().hex[:8]}"
        self.admin.post(f"/v1/namespace/{self.ns}/create").raise_for_status()
        send(self.admin, f"/v1/table/{self.ns}$t/create", people(1, 2)).raise_for_status()
        self.ask(self.admin, "create", **F)

    def person(self, *roles: tuple[str, ...]) -> tuple[str, Server]:
        """Somebody who has these roles, each on what is named after it."""
        name = f"p{uuid.uuid4().hex[:8]}"
        for role, *on in roles:
            self.gate.grant(name, role, *on)
        return name, self.gate.as_(self.gate.key(name))

    def ask(self, who: Server, verb: str, function: str = "f", **body: Any) -> int:
        return who.post(f"/v1/function/{self.ns}${function}/{verb}", body).status_code

    def use(self, who: Server, table: str, column: str = "c") -> Any:
        new = {"name": column, "function": {"name": [self.ns, "f"]}}
        return who.post(f"/v1/table/{self.ns}${table}/add_columns", {"new_columns": [new]})


@pytest.fixture
def place(gate: GuardedServer) -> Place:
    return Place(gate)


def test_bringing_code_is_a_right_of_its_own(place: Place) -> None:
    _, owner = place.person(("owner", "namespace", place.ns))
    assert place.ask(owner, "create", "g", **F) == 403
    name, maker = place.person(("reader", "namespace", place.ns))
    assert place.ask(maker, "create", "g", **F) == 403
    place.gate.grant(name, "functions", "namespace", place.ns)
    assert place.ask(maker, "create", "g", **F) == 200
    # Who made it owns it, but not what others made: those who name no version would run theirs.
    assert place.ask(maker, "create", "g", **{**F, "udf_version": "2"}) == 200
    assert place.ask(maker, "alter", "g", disabled=True) == 200
    assert place.ask(maker, "drop", "g") == 200
    assert place.ask(maker, "create", "f", **{**F, "udf_version": "2"}) == 403
    assert place.ask(maker, "alter", "f", disabled=True) == 403
    assert place.ask(maker, "drop", "f") == 403


def test_use_follows_grants(place: Place) -> None:
    name, user = place.person(("owner", "table", place.ns, "t"))
    missing = place.use(user, "t")
    assert (missing.status_code, missing.json()["code"]) == (404, 13)
    place.gate.grant(name, "reader", "function", place.ns, "f")
    # Its owner vouches for the code: who uses it needs no right to bring any.
    assert place.use(user, "t").status_code == 200
    brought = {"path": "c", "virtual_column": {"udf": F["udf"], "udf_version": "9"}}
    answer = user.post(f"/v1/table/{place.ns}$t/alter_columns", {"alterations": [brought]})
    assert answer.status_code == 403
    named = {"path": "c", "function": {"name": [place.ns, "f"], "version": 1}}
    answer = user.post(f"/v1/table/{place.ns}$t/alter_columns", {"alterations": [named]})
    assert answer.status_code == 200


def test_who_may_not_see_a_function_hears_that_there_is_none(place: Place) -> None:
    _, stranger = place.person(("owner", "table", place.ns, "t"))
    for verb in ("describe", "alter", "drop"):
        bodies = [
            stranger.post(
                f"/v1/function/{place.ns}${function}/{verb}",
                {"disabled": True},
            ).json()
            for function in ("f", "x")
        ]
        assert bodies[0]["code"] == bodies[1]["code"] == 13
        assert bodies[0]["error"].replace("$f", "$x") == bodies[1]["error"]
    listed = stranger.client.get(f"/v1/namespace/{place.ns}/function/list").json()
    assert listed["functions"] == []


def test_users_are_named_to_those_who_may_see_them(place: Place) -> None:
    assert place.use(place.admin, "t").status_code == 200
    _, reader = place.person(("owner", "function", place.ns, "f"))
    path = f"/v1/function/{place.ns}$f"
    assert reader.post(f"{path}/describe", {}).json()["used_by"] == []
    refused = reader.post(f"{path}/drop", {})
    assert (refused.status_code, place.ns + "$t" in refused.text) == (409, False)
    told = place.admin.post(f"{path}/drop", {})
    assert f"column c of {place.ns}$t" in told.json()["error"]
