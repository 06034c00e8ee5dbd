"""lancedb's functions: registered as source text, described, used by columns, and dropped.

What they compute is tested with a runner.
"""

from collections.abc import Iterator
from datetime import timedelta
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from lancedb import EnvVarSecret, col, udf

import penstock
from tests.harness.clients.lancedb_modes import SYNC, Lake, covers
from tests.harness.data.tables import new_name
from tests.harness.processes.servers import Server

WAIT = timedelta(seconds=30)


@udf
def double(id: int) -> int:
    return id * 2


@udf(
    name="measure",
    input_schema=pa.schema([pa.field("text", pa.utf8())]),
    output_schema=pa.schema(
        [
            pa.field("size", pa.int32()),
            pa.field("parts", pa.list_(pa.struct([pa.field("at", pa.date32())]))),
            pa.field("vector", pa.list_(pa.field("item", pa.float32(), False), 4)),
        ]
    ),
    env={"MODE": "fast"},
    pip=["numpy"],
)
def measure(text):  # type: ignore[no-untyped-def]
    return {"size": len(text), "parts": [], "vector": [0.0] * 4}


@pytest.fixture
def space(lake: Lake) -> str:
    name = new_name()
    lake.done(lake.database.create_namespace([name]))
    return name


def register(lake: Lake, function: Any, space: str, **more: Any) -> Any:
    database = lake.database
    job = lake.done(database.create_function_async(function, namespace_path=[space], **more))
    return lake.done(job.wait(WAIT))


@covers("connection", "create_function_async", "get_function", "list_functions")
@covers("connection", "drop_function", "drop_function_async")
def test_a_function_is_registered_used_and_dropped(lake: Lake, space: str, table: Any) -> None:
    db = lake.database
    job = lake.done(db.create_function_async(double, namespace_path=[space]))
    made = lake.done(job.wait(WAIT))
    assert (made.name, made.version, made.namespace_path) == ("double", "1", (space,))
    named = {"version": "1", "namespace_path": [space]}
    assert lake.done(db.get_function("double", **named)) == made
    assert register(lake, double, space) == made
    lake.done(table.add_columns({"twice": made(id=col("id"))}))
    assert lake.get(table, "schema").field("twice").type == pa.int64()
    with pytest.raises(Exception, match=f"used by column twice of {table.name}"):
        lake.done(db.drop_function("double", **named))
    lake.done(table.drop_columns(["twice"]))
    assert lake.done(db.list_functions(namespace_path=[space])) == [made]
    dropped, job = lake.done(db.drop_function_async("double", **named))
    assert (dropped, lake.done(job.wait(WAIT))) == (True, None)
    assert lake.done(db.list_functions(namespace_path=[space])) == []
    with pytest.raises(Exception, match="does not exist"):
        lake.done(table.add_columns({"twice": made(id=col("id"))}))
    # Another function of that name is not the one that was opened.
    other = register(lake, double, space)
    assert other.object_id != made.object_id
    with pytest.raises(Exception, match="registered anew"):
        lake.done(table.add_columns({"twice": made(id=col("id"))}))
    assert lake.done(db.drop_function("double", **named)) is True


@covers("connection", "create_function")
def test_a_function_is_there_when_the_call_returns(lake: Lake, space: str) -> None:
    if lake.mode == SYNC:
        made = lake.database.create_function(double, namespace_path=[space])
        assert made.version == "1"


def test_other_content_is_another_version(lake: Lake, space: str) -> None:
    versions = [
        register(lake, udf(name="f")(double._function), space),
        register(lake, udf(name="f", env={"A": "b"})(double._function), space),
        register(lake, udf(name="f", gpu=True)(double._function), space),
        register(lake, udf(name="f")(double._function), space, secrets=[EnvVarSecret("a", "B")]),
        register(lake, udf(name="f")(double._function), space),
    ]
    assert [each.version for each in versions] == ["1", "2", "3", "4", "1"]
    assert versions[3].secret_bindings[0].secret_ref.name == "a"
    assert len({each.image.manifest_digest for each in versions}) == 4


def test_a_struct_is_several_columns_or_one(lake: Lake, space: str, table: Any) -> None:
    made = register(lake, measure, space)
    fields = {field.name: field.arrow_type for field in made.signature.output.fields}
    assert (fields["size"], fields["vector"]) == ("int32", "fixed_size_list<float32, 4>")
    renamed = made(text=col("text")).rename(columns={"vector": "point"})
    lake.done(table.add_columns(renamed))
    lake.done(table.add_columns({"all": made(text=col("text"))}))
    schema = lake.get(table, "schema")
    # Not filled yet, and Lance has no null vector of items that are never null.
    assert schema.field("point").type == pa.list_(pa.float32(), 4)
    assert schema.field("all").type.field("parts").type.value_type.field("at").type == pa.date32()


def test_a_function_of_another_door_is_the_same_to_lancedb(
    lake: Lake, space: str, table: Any, server: Server
) -> None:
    with penstock.connect(server.url) as other:
        other.create_function(f"{space}.sizes", sizes)
        other.create_function(f"{space}.split", split)
    found = lake.done(lake.database.list_functions(namespace_path=[space]))
    assert [each.name for each in found] == ["sizes", "split"]
    lake.done(table.add_columns({"sizes": found[0](text=col("text"))}))
    assert lake.get(table, "schema").field("sizes").type == pa.list_(pa.int64())
    with pytest.raises(Exception, match="makes rows"):
        lake.done(table.add_columns({"parts": found[1](text=col("text"))}))


@penstock.udf
def sizes(text: str) -> list[int]:
    return [len(text)]


@penstock.chunker(outputs={"part": str})
def split(text: str) -> Iterator[dict[str, str]]:
    yield {"part": text}


def test_modules_travel_with_a_function(lake: Lake, space: str) -> None:
    made = register(lake, udf(name="bundle", code=[_own_module()])(double._function), space)
    assert made.version == "1"


def _own_module() -> ModuleType:
    from tests.harness.data import calls

    module = ModuleType("calls_of_mine")
    module.__file__ = calls.__file__
    return module


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conda": ["numpy"]}, "kind 'conda'"),
        ({"secrets": [EnvVarSecret("x", "PYTHONPATH")]}, "PYTHONPATH"),
        ({"secrets": [EnvVarSecret("x", "A", secret_namespace_path=["n"])]}, "no"),
    ],
)
def test_what_is_not_served_says_why(
    lake: Lake, space: str, options: dict[str, Any], message: str
) -> None:
    given = {key: value for key, value in options.items() if key != "secrets"}
    secrets = options.get("secrets")
    with pytest.raises(Exception, match=message):
        register(lake, udf(name="f", **given)(double._function), space, secrets=secrets)


@covers("connection", "create_secret", "alter_secret", "list_secrets")
@covers("connection", "describe_secret", "drop_secret")
def test_values_of_secrets_are_not_taken(lake: Lake) -> None:
    db = lake.database
    for ask in (
        lambda: db.create_secret("mine", "hunter2"),
        lambda: db.alter_secret("mine", "hunter2"),
        db.list_secrets,
        lambda: db.describe_secret("mine"),
        lambda: db.drop_secret("mine"),
    ):
        with pytest.raises(Exception, match="keeps no secrets") as refused:
            lake.done(ask())
        assert "hunter2" not in str(refused.value)
