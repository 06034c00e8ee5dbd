"""Functions with a name: versions, who uses them, what is refused when."""

from typing import Any

import httpx
import pytest

from tests.harness.data.functions import envelope, virtual_column
from tests.harness.data.tables import new_name
from tests.harness.jobs.fake_runner import Runner, make_table
from tests.harness.processes.servers import Server

PAYLOAD = b"\x80\x05N."
ON_SQLITE = pytest.mark.parametrize("server", ["sqlite"], indirect=True)
SOURCE = {
    "format": "penstock/1",
    "source": {
        "entrypoint": "length",
        "files": {"user_function.py": "def length(text):\n    return len(text)\n"},
    },
}


def length(version: str | None = "1", payload: bytes = PAYLOAD, **more: Any) -> dict[str, Any]:
    """A function of texts, as a body to register it."""
    return {
        "udf": envelope(payload),
        "udf_name": "length",
        "udf_version": version,
        "inputs": [{"name": "text", "data_type": "utf8"}],
        "outputs": [{"data_type": "int32"}],
        **more,
    }


def register(server: Server, id: str, body: dict[str, Any]) -> httpx.Response:
    return server.post(f"/v1/function/{id}/create", body)


def number(answer: httpx.Response) -> int:
    found: int = answer.raise_for_status().json()["function"]["version"]
    return found


def describe(server: Server, id: str, **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = server.post(f"/v1/function/{id}/describe", body).json()
    return found


def use(server: Server, table: str, column: str, id: str, **more: Any) -> httpx.Response:
    name = {"name": id.split("$"), **more}
    body = {"new_columns": [{"name": column, "function": name}]}
    return server.post(f"/v1/table/{table}/add_columns", body)


@pytest.fixture
def function(server: Server) -> str:
    """A registered function, in its first version."""
    name = new_name()
    register(server, name, length()).raise_for_status()
    return name


@pytest.fixture
def table(server: Server) -> str:
    return make_table(server)


def test_equal_content_is_the_same_version(server: Server, function: str) -> None:
    # Pickles differ from time to time, so what the client calls the version decides.
    assert number(register(server, function, length(payload=b"\x80\x05K\x01."))) == 1
    assert number(register(server, function, length("2"))) == 2
    assert number(register(server, function, length(manifest='{"pip": ["x==1"]}'))) == 3
    assert number(register(server, function, length())) == 1
    # Without one, the bytes do.
    bare = [register(server, function, length(None, p)) for p in (PAYLOAD, PAYLOAD, b"\x80\x05J.")]
    assert [number(answer) for answer in bare] == [4, 4, 5]
    assert describe(server, function)["version"] == "5"
    first = describe(server, function, version=1)
    assert (first["udf_version"], first["manifest"], first["kind"]) == ("1", None, "scalar")
    assert first["signature"]["inputs"][0]["arrow_type"] == "utf8"


def test_a_function_shares_the_names_of_its_namespace(
    server: Server, function: str, table: str
) -> None:
    taken = register(server, table, length())
    assert (taken.status_code, taken.json()["error"]) == (409, f"table {table} already exists")
    declared = server.post(f"/v1/table/{function}/declare", {})
    assert declared.status_code == 409
    described = server.post(f"/v1/table/{function}/describe", {})
    assert described.status_code == 404
    assert "is a function, not a table" in described.json()["error"]
    assert describe(server, table)["code"] == 13
    view = {"kind": "query", "source_query": f"SELECT * FROM {function}"}
    answer = server.post(f"/v1/materialized_view/{new_name()}/create", view)
    assert answer.status_code in (400, 404)


def test_versions_are_listed_by_name_and_number(server: Server) -> None:
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create", {}).raise_for_status()
    for name, version in (("b", "1"), ("a", "1"), ("a", "2")):
        register(server, f"{namespace}${name}", length(version)).raise_for_status()
    path, seen, token = f"/v1/namespace/{namespace}/function/list", [], None
    while True:
        params = {"limit": 2, **({"page_token": token} if token else {})}
        page = server.client.get(path, params=params).json()
        seen += [(each["name"], each["version"]) for each in page["functions"]]
        if (token := page.get("page_token")) is None:
            break
    assert seen == [("a", 1), ("a", 2), ("b", 1)]
    refused = server.post(f"/v1/namespace/{namespace}/drop", {"behavior": "restrict"})
    assert refused.status_code == 409
    server.post(f"/v1/namespace/{namespace}/drop", {"behavior": "cascade"}).raise_for_status()
    assert server.client.get(path).status_code == 404


def test_a_column_refers_to_a_version(server: Server, function: str, table: str) -> None:
    use(server, table, "len", function).raise_for_status()
    register(server, function, length("2")).raise_for_status()
    used = describe(server, function)["used_by"]
    assert used == [{"table": table.split("$"), "column": "len", "branch": "", "version": 1}]
    server.post(f"/v1/function/{function}/drop", {"version": 2}).raise_for_status()
    change: dict[str, Any] = {"path": "len", "function": {"name": [function], "version": 2}}
    body = {"alterations": [change]}
    assert server.post(f"/v1/table/{table}/alter_columns", body).status_code == 404
    # Numbers are not given twice.
    assert number(register(server, function, length("3"))) == 3
    change["function"] = {"name": [function]}
    server.post(f"/v1/table/{table}/alter_columns", body).raise_for_status()
    assert describe(server, function)["used_by"][0]["version"] == 3


def test_what_is_used_is_not_dropped(server: Server, function: str, table: str) -> None:
    register(server, function, length("2")).raise_for_status()
    use(server, table, "len", function, version=1).raise_for_status()
    for body in ({}, {"version": 1}, {"version": "1"}):
        refused = server.post(f"/v1/function/{function}/drop", body)
        assert refused.status_code == 409
        assert f"column len of {table}" in refused.json()["error"]
    server.post(f"/v1/function/{function}/drop", {"version": 2}).raise_for_status()
    gone = {"columns": ["len"]}
    server.post(f"/v1/table/{table}/drop_columns", gone).raise_for_status()
    done = server.post(f"/v1/function/{function}/drop", {"version": "1"}).json()
    assert done["dropped"] is True
    assert describe(server, function)["code"] == 13


def test_a_namespace_goes_with_functions_that_nobody_else_uses(server: Server, table: str) -> None:
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create", {}).raise_for_status()
    register(server, f"{namespace}$f", length()).raise_for_status()
    use(server, table, "len", f"{namespace}$f").raise_for_status()
    body = {"behavior": "cascade"}
    refused = server.post(f"/v1/namespace/{namespace}/drop", body, cascade="true")
    assert refused.status_code == 409
    assert f"column len of {table}" in refused.json()["error"]
    server.post(f"/v1/table/{table}/drop_columns", {"columns": ["len"]}).raise_for_status()
    server.post(f"/v1/namespace/{namespace}/drop", body).raise_for_status()


@pytest.mark.parametrize("version", [None, 1])
def test_a_disabled_function_takes_no_new_work(
    server: Server, function: str, table: str, cluster: str, version: int | None
) -> None:
    use(server, table, "len", function).raise_for_status()
    ask = {"column": "len", "cluster": cluster}
    waiting = server.post(f"/v1/table/{table}/backfill_column", ask).json()["job_id"]
    (running,) = Runner(server, cluster).lease()
    assert running["id"] == waiting
    queued = server.post(f"/v1/table/{table}/backfill_column", ask | {"where": "id > 1"}).json()[
        "job_id"
    ]
    alter = f"/v1/function/{function}/alter"
    server.post(alter, {"disabled": True, "version": version}).raise_for_status()
    assert describe(server, function)["disabled"] is True
    message = f"function {function} (version 1) is disabled"
    for answer in (
        use(server, table, "other", function),
        server.post(f"/v1/table/{table}/backfill_column", ask | {"where": "id > 2"}),
    ):
        assert (answer.status_code, answer.json()["error"]) == (400, message)
    # What is running ends; what waits does not begin.
    Runner(server, cluster).finish(running, result={"version": 2}).raise_for_status()
    assert Runner(server, cluster).lease() == []
    job = server.post("/v1/jobs/describe", {"job_id": queued}).json()
    assert (job["job_state"], message in job["failure"]["message"]) == ("FAILED", True)
    server.post(alter, {"disabled": False, "version": version}).raise_for_status()
    server.post(f"/v1/table/{table}/backfill_column", ask).raise_for_status()


def test_a_job_gets_what_the_column_would_get_without_the_registry(
    server: Server, function: str, cluster: str
) -> None:
    specs = []
    for kind in ("named", "brought"):
        table = make_table(server)
        if kind == "named":
            use(server, table, "len", function, input_columns=["text"]).raise_for_status()
        else:
            column = virtual_column(PAYLOAD, ["text"], {"len": "int32"}, name="length")
            body = {"new_columns": [{"name": "len", "virtual_column": column}]}
            server.post(f"/v1/table/{table}/add_columns", body).raise_for_status()
        ask = {"column": "len", "cluster": cluster}
        server.post(f"/v1/table/{table}/backfill_column", ask).raise_for_status()
        (job,) = Runner(server, cluster).lease()
        specs.append(job["spec"]["function"])
    named, brought = specs
    assert named.pop("registered")["version"] == 1
    assert brought.pop("registered") is None
    assert named == brought


@ON_SQLITE
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "the body has no function"),
        ({"udf": "AA==", "udtf_spec": {}}, "the body has udf and udtf_spec"),
        ({"udf": "!"}, "udf is not base64"),
        (length(outputs=[{"data_type": "int33"}]), "outputs: ''"),
        (length(inputs=[{"data_type": "utf8"}]), "inputs has an entry without a name"),
        (length(inputs=[{"name": "a"}, {"name": "a"}]), "inputs has 2 entries"),
        (length(secrets={"A B": "x"}), "the variable 'A B'"),
        (length(secrets={"A": "../x"}), "secret '../x' is no name"),
        (length(secrets={"PYTHONPATH": "x"}), "the variable 'PYTHONPATH'"),
        (length(secrets={"A": "x"}, manifest='{"env_vars": {"A": "1"}}'), "has a secret and a"),
        (length(manifest="{"), "the manifest is not right"),
        ({"artifact": {"kind": "x"}}, "the body is not right"),
        ({"udtf_spec": {"kind": "query"}}, "udtf_spec is"),
        ({"udtf_spec": {"kind": "chunker", "registered": {}}}, "udtf_spec names a function"),
    ],
)
def test_what_can_not_be_registered_says_why(
    server: Server, body: dict[str, Any], message: str
) -> None:
    answer = register(server, new_name(), body)
    assert (answer.status_code, message in answer.json()["error"]) == (400, True), answer.text


@ON_SQLITE
def test_what_can_not_be_used_says_why(server: Server, function: str, table: str) -> None:
    for more, message in (
        ({"version": 9}, "has no version 9"),
        ({"name": []}, "not a function"),
        ({"name": ["."]}, "a step to another path"),
        ({"input_columns": ["text", "id"]}, "takes text, and 2 columns"),
        ({"initialization": {"x": 1}}, "has no initialization field 'x'"),
        ({"outputs": [{"column": "other"}]}, "and not len"),
    ):
        answer = use(server, table, "len", function, **more)
        assert answer.status_code in (400, 404)
        assert message in answer.json()["error"]
    both = {"name": "len", "function": {"name": [function]}, "computed": "id"}
    answer = server.post(f"/v1/table/{table}/add_columns", {"new_columns": [both]})
    assert "has computed and function" in answer.json()["error"]
    spec = {"kind": "chunker", "registered": {"id": "x", "version": 1}, "udtf": "AA=="}
    view = {"kind": "chunker", "source_query": f"SELECT * FROM {table}", "udtf_spec": spec}
    answer = server.post(f"/v1/materialized_view/{new_name()}/create", view)
    assert "has the field registered" in answer.json()["error"]
    view["udtf_spec"] = {"kind": "chunker", "function": [function]}
    answer = server.post(f"/v1/materialized_view/{new_name()}/create", view)
    assert "fills columns, and makes no rows" in answer.json()["error"]


@ON_SQLITE
def test_a_column_of_another_type_does_not_take_a_function(
    server: Server, function: str, table: str
) -> None:
    use(server, table, "len", function).raise_for_status()
    wide = length("2", outputs=[{"data_type": "int64"}])
    register(server, function, wide).raise_for_status()
    change = {"path": "len", "function": {"name": [function]}}
    answer = server.post(f"/v1/table/{table}/alter_columns", {"alterations": [change]})
    assert answer.status_code == 400
    assert "for column 'len'" in answer.json()["error"]


@ON_SQLITE
def test_metadata_alone_makes_nobody_a_user(server: Server, function: str, table: str) -> None:
    use(server, table, "len", function).raise_for_status()
    id = describe(server, function)["object_id"]
    note = {"path": "text", "metadata": {"note": f'"registered":{{"id":"{id}"'}}
    server.post(f"/v1/table/{table}/update_field_metadata", {"updates": [note]}).raise_for_status()
    server.post(f"/v1/table/{table}/drop_columns", {"columns": ["len"]}).raise_for_status()
    assert describe(server, function)["used_by"] == []
