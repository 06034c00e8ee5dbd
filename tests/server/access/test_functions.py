"""Functions with a name: who registers them, who uses them, and what others hear of them."""

import hashlib
import uuid
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, send
from tests.harness.data.functions import envelope
from tests.harness.processes.access import GuardedServer
from tests.harness.processes.servers import Server
from tests.harness.views.definitions import encode_schema, make_spec

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


CHUNKS = pa.schema([("word", pa.string())])
EVIL = '{"pip": ["evil==1"], "py_modules": ["s3://evil/code.zip"], "env_vars": {"PYTHONPATH": "/"}}'


def register_chunker(place: Place) -> None:
    """A chunker of the admin's, in the variables of which there is a secret."""
    spec = make_spec("chunker", CHUNKS, input_columns=["name"], batch=False)
    body = {"udtf_spec": {**spec, "kind": "chunker"}, "secrets": {"KEY": "planted"}}
    assert place.ask(place.admin, "create", "chunks", **body) == 200


def view_of(place: Place, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "chunker",
        "source_query": f"SELECT name FROM {place.ns}.t",
        "udtf_spec": {"kind": "chunker", "function": [place.ns, "chunks"], **spec},
        "output_schema": encode_schema(CHUNKS),
    }


def test_who_uses_a_function_of_rows_brings_no_environment(place: Place) -> None:
    register_chunker(place)
    home = f"h{uuid.uuid4().hex[:8]}"
    place.admin.post(f"/v1/namespace/{home}/create").raise_for_status()
    name, user = place.person(("owner", "namespace", home), ("reader", "namespace", place.ns))
    path = f"/v1/materialized_view/{home}$v"
    for spec in (
        {"manifest": EVIL},
        {"manifest": EVIL, "manifest_checksum": hashlib.sha256(EVIL.encode()).hexdigest()},
    ):
        answer = user.post(f"{path}/create", view_of(place, **spec))
        assert (answer.status_code, "manifest" in answer.text) == (400, True), answer.text
    assert user.post(f"{path}/create", view_of(place)).status_code == 201
    altered: list[dict[str, Any]] = [
        {"manifest": EVIL},
        {"manifest": EVIL, "function": [place.ns, "chunks"]},
    ]
    for spec in altered:
        answer = user.post(f"{path}/alter", {"udtf_spec": {"kind": "chunker", **spec}})
        assert answer.status_code in (400, 403), answer.text
    assert user.post(f"{path}/refresh", {"manifest": EVIL}).status_code == 403
    # Whoever may bring code gives the view a function of their own.
    place.gate.grant(name, "functions", "namespace", home)
    assert user.post(f"{path}/refresh", {"manifest": EVIL}).status_code == 202


def test_a_disabled_function_does_nothing_by_any_door(place: Place) -> None:
    register_chunker(place)
    assert place.use(place.admin, "t").status_code == 200
    view = f"/v1/materialized_view/{place.ns}$v"
    place.admin.post(f"{view}/create", view_of(place)).raise_for_status()
    for function in ("f", "chunks"):
        assert place.ask(place.admin, "alter", function, disabled=True) == 200
    named = {"function": {"name": [place.ns, "f"]}}
    more = {"alterations": [{"path": "c", **named}]}
    query = f"SELECT name FROM {place.ns}.t WHERE id > 1"
    asked = [
        (f"/v1/table/{place.ns}$t/backfill_column", {"column": "c"}),
        (f"/v1/table/{place.ns}$t/backfill_column", {"column": "c", "errors_only": True}),
        (f"/v1/table/{place.ns}$t/preview_column", {"column": "c"}),
        (f"/v1/table/{place.ns}$t/alter_columns", more),
        (f"{view}2/create", view_of(place)),
        (f"{view}/refresh", {}),
        (f"{view}/refresh", {"cascade": True}),
        (f"{view}/alter", {"source_query": query, "preview": False}),
        (f"{view}/alter", {"source_query": query}),
        (f"/v1/table/{place.ns}$t/refresh_column", {"column": "c"}),
    ]
    for path, body in asked:
        answer = place.admin.post(path, body)
        assert answer.status_code in (400, 404), (path, answer.text)
        assert answer.status_code == 404 or "is disabled" in answer.text, (path, answer.text)
    # Its source can still be read, and what it has filled stays.
    assert place.ask(place.admin, "describe") == 200


def test_a_clone_of_a_table_uses_no_function_that_its_maker_may_not(place: Place) -> None:
    assert place.use(place.admin, "t").status_code == 200
    home = f"h{uuid.uuid4().hex[:8]}"
    place.admin.post(f"/v1/namespace/{home}/create").raise_for_status()
    _, user = place.person(("owner", "namespace", home), ("reader", "table", place.ns, "t"))
    location = user.post(f"/v1/table/{place.ns}$t/describe").json()["location"]
    body = {"source_location": location}
    user.post(f"/v1/table/{home}$copy/clone", body).raise_for_status()
    # Its column has the values, and is a plain one.
    answer = user.post(f"/v1/table/{home}$copy/backfill_column", {"column": "c"})
    assert (answer.status_code, "not computed" in answer.text) == (400, True)
    described = place.admin.post(f"/v1/function/{place.ns}$f/describe", {}).json()
    assert [each["table"] for each in described["used_by"]] == [[place.ns, "t"]]


def test_a_hidden_function_is_missing_by_lancedbs_door_as_well(place: Place) -> None:
    _, stranger = place.person(("owner", "table", place.ns, "t"))
    told = []
    for function in ("f", "x"):
        reference = {"name": function, "namespace_path": [place.ns], "version": "1"}
        application = {
            "function": {**reference, "object_id": "0" * 32, "manifest_digest": ""},
            "inputs": [{"parameter": "no", "kind": "column", "value": {"path": "id"}}],
        }
        body = {
            "new_columns": [{"name": "c"}],
            "function": {
                "application": application,
                "outputs": [{"result_field": "$value", "output_name": "c"}],
            },
        }
        answer = stranger.post(f"/v1/table/{place.ns}$t/add_columns/", body)
        told.append((answer.status_code, answer.json()["code"], answer.json()["error"]))
    assert told[0] == (*told[1][:2], told[1][2].replace("$x", "$f")), told
