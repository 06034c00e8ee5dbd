"""Functions with a name, by the SDK: registered, used by columns and views, and looked at."""

from collections.abc import Iterator
from typing import TypedDict

import pytest

import penstock
from penstock.errors import InvalidFunction, InvalidRequest, NotFound, TableInUse
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import run_here


class Letter(TypedDict):
    letter: str


@penstock.udf
def length(text: str) -> int:
    return len(text)


@penstock.udf(outputs={"low": int, "high": int}, inputs=["id"], kind="batch", version="1")
def bounds(rows: object) -> object:
    return rows


@penstock.chunker
def letters(text: str) -> Iterator[Letter]:
    for each in text:
        yield {"letter": each}


def test_a_function_is_registered_and_used_by_name(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    made = lake.create_function(f"{space}.length", length, properties={"for": "tests"})
    assert (made.name, made.version) == (f"{space}.length", 1)
    assert lake.create_function(f"{space}.length", length).version == 1
    told = made.describe()
    assert told["signature"]["inputs"][0]["arrow_type"] == "utf8"
    assert told["properties"] == {"for": "tests"}
    table.add_column("len", f"{space}.length")
    table.add_column("again", made, inputs=["text"], data_type="int32")
    assert table.computed_columns()["len"]["registered"] == f"{space}$length@1"
    changed = penstock.udf(version="2")(length.call)
    assert lake.create_function(f"{space}.length", changed).version == 2
    table.alter_column("len", f"{space}.length@2")
    # A function that is brought takes the place of a registered one, and the other way round.
    table.alter_column("again", penstock.udf(version="3", data_type="int32")(length.call))
    assert "registered" not in table.computed_columns()["again"]
    assert [(use["column"], use["version"]) for use in made.used_by()] == [("len", 2)]
    assert lake.functions(space) == [f"{space}.length"]
    assert f"{space}.length" in lake.functions()
    assert [each.version for each in lake.function(f"{space}.length").versions()] == [1, 2]
    made.drop()
    with pytest.raises(TableInUse, match="column len"):
        lake.function(f"{space}.length").drop()
    with pytest.raises(NotFound):
        lake.function(f"{space}.length@1")


def test_several_columns_are_named_after_the_results(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    lake.create_function(f"{space}.bounds", bounds)
    table.add_columns(f"{space}.bounds")
    assert {"low", "high"} <= set(table.computed_columns())
    lake.create_function(f"{space}.length", length)
    with pytest.raises(InvalidFunction, match="one output"):
        table.add_columns(f"{space}.length")


def test_a_column_of_another_type_is_no_input(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    made = lake.create_function(f"{space}.length", length)
    with pytest.raises(InvalidRequest, match="column id is int64, and the function takes string"):
        table.add_column("len", made, inputs=["id"])
    table.add_column("len", made)
    with pytest.raises(InvalidRequest, match="as text"):
        table.alter_column("len", made, inputs=["id"])


def test_a_decorated_function_takes_as_many_columns_as_it_has_parameters(
    table: penstock.Table,
) -> None:
    with pytest.raises(InvalidFunction, match="takes 1 values, and inputs names 2 columns"):
        table.add_column("len", length, inputs=["id", "text"])
    with pytest.raises(InvalidFunction, match="takes 1 values"):
        table.add_column("len", length).alter_column("len", length, inputs=["id", "text"])


def test_a_disabled_function_is_not_used(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    made = lake.create_function(f"{space}.length", length).disable()
    with pytest.raises(InvalidRequest, match=r"length \(version 1\) is disabled"):
        table.add_column("len", made)
    table.add_column("len", made.enable())


@pytest.mark.parametrize("name", ["length@0", "length@x", "length@"])
def test_a_version_is_a_number(lake: penstock.Lake, name: str) -> None:
    with pytest.raises(InvalidRequest, match="the version in"):
        lake.function(name)


def test_a_view_is_made_by_a_registered_chunker(
    lake: penstock.Lake, space: str, table: penstock.Table, server: Server, cluster: str
) -> None:
    made = lake.create_function(f"{space}.letters", letters)
    view = lake.create_view(f"{space}.v", table, chunker=f"{space}.letters")
    assert view.schema().names[-2:] == ["id", "letter"]
    view.refresh(wait=False, cluster=cluster)
    (job,) = Runner(server, cluster=cluster).lease(wait_seconds=20)
    assert job["spec"]["definition"]["function"]["registered"]["version"] == 1
    run_here(server, job)
    assert view.count() == 6
    assert made.used_by() == [{"table": [space, "v"], "column": "", "branch": "", "version": 1}]
    with pytest.raises(TableInUse, match=f"view {space}"):
        made.drop()
    made.disable()
    with pytest.raises(InvalidRequest, match="is disabled"):
        view.refresh(wait=False)
    with pytest.raises(InvalidRequest, match="is disabled"):
        lake.create_view(f"{space}.w", table, chunker=made)
    other = penstock.chunker(version="2")(letters.call)
    lake.create_function(f"{space}.letters", other)
    made.enable()
    # The test is the only runner, and does nothing while it asks.
    view.alter(function=f"{space}.letters@2", preview=False, wait=False, cluster=cluster)
    (job,) = Runner(server, cluster=cluster).lease(wait_seconds=20)
    run_here(server, job)
    assert [use["version"] for use in made.used_by()] == [2]
