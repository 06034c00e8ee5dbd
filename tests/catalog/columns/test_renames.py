"""Computed columns that follow new names of what they read: nothing is computed again."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.harness.data.calls import recorded, take_calls
from tests.harness.data.functions import add_function, virtual_column
from tests.harness.data.tables import code, metadata, open_by_path
from tests.harness.jobs.fake_runner import Column, add_computed, make_table
from tests.harness.jobs.renamed_columns import (
    ROWS,
    bind,
    explain,
    fill,
    insert,
    mirrored,
    rename,
    update,
    values,
)
from tests.harness.processes import servers
from tests.harness.processes.servers import Server

ON_SQLITE = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


@pytest.fixture
def table(server: Server) -> str:
    return make_table(server, ROWS)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls"


@ON_SQLITE
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("length(text)", "length(`words`)"),
        ("upper(text) || 'text'", "upper(`words`) || 'text'"),
        ('`text` || "text" || text', '`words` || "text" || `words`'),
        ("doc.text || text", "doc.text || `words`"),
        (
            "CAST(text AS string) = 'bb' AND id IN (1, 2)",
            "CAST(`words` AS string) = 'bb' AND id IN (1, 2)",
        ),
    ],
)
def test_an_expression_gets_the_new_name(
    server: Server, cluster: str, table: str, sql: str, expected: str
) -> None:
    add_computed(server, table, made=sql).raise_for_status()
    column = Column(server, table, "made", cluster)
    fill(column)
    before = values(column)
    rename(server, table, "text", "words").raise_for_status()
    bound = metadata(server, table, "made")
    assert bound["computed_column.expression"] == expected
    assert "words" in bound["computed_column.inputs"]
    assert "words" in mirrored(column)["made"]["inputs"]
    assert explain(column)["function_calls"] == 0
    assert fill(column) == 0
    assert values(column) == before
    insert(server, table, id="id", text="words", doc="doc")
    assert fill(column) == 1
    assert values(column) == [before[0], *before]


@ON_SQLITE
def test_a_struct_that_an_expression_reads_in_part_gets_a_new_name(
    server: Server, cluster: str, table: str
) -> None:
    add_computed(server, table, made="doc.text || doc['text']").raise_for_status()
    column = Column(server, table, "made", cluster)
    fill(column)
    rename(server, table, "doc", "the paper").raise_for_status()
    assert explain(column)["function_calls"] == 0
    update(server, table, "id = 2", text="'new'")
    assert fill(column) == 1
    assert values(column) == ["xx", "yy", "zz"]
    answer = rename(server, table, "`the paper`.text", "body")
    assert code(answer) == (400, 13)
    assert "one column" in answer.json()["error"]


def test_a_function_is_given_what_it_was_declared_for(
    server: Server, cluster: str, table: str, log: Path
) -> None:
    column = Column(server, table, "made", cluster)
    bind(column, log, lambda text, n: f"{text}{n}")
    fill(column)
    assert len(take_calls(log)) == 3
    rename(server, table, "text", "words").raise_for_status()
    rename(server, table, "doc", "paper").raise_for_status()
    assert mirrored(column)["made"]["inputs"] == ["words", "paper.n"]
    plan = explain(column)
    assert (plan["function_calls"], plan["rows_by_state"]["fresh"]) == (0, 3)
    update(server, table, "id = 2", words="'new'")
    plan = explain(column)
    assert (plan["function_calls"], plan["stale_by_reason"]["inputs_changed"]) == (1, 1)
    assert fill(column) == 1
    assert values(column) == ["a0", "new1", "ccc2"]
    assert len(take_calls(log)) == 1
    # The next one starts from the watermark under the new names.
    assert explain(column)["function_calls"] == 0
    assert column.ask("explain_backfill", {"column": "made", "read_version": 4}).is_success


@ON_SQLITE
@pytest.mark.parametrize("kind", ["arrow", "batch"])
def test_a_function_of_many_rows_has_its_inputs_by_the_names_it_knows(
    server: Server, cluster: str, table: str, log: Path, kind: str
) -> None:
    def compute(*given: Any) -> Any:
        texts = (given[0]["text"], given[0]["doc.text"]) if kind == "batch" else given
        return pc.binary_join_element_wise(*texts, "-")

    column = Column(server, table, "made", cluster)
    bind(column, log, compute, kind=kind, inputs=["text", "doc.text"])
    rename(server, table, "text", "words").raise_for_status()
    rename(server, table, "doc", "paper").raise_for_status()
    assert fill(column) == 3
    assert values(column) == ["a-x", "bb-y", "ccc-z"]
    rename(server, table, "words", "text").raise_for_status()
    update(server, table, "id = 1", text="'b'")
    assert fill(column) == 1
    assert values(column) == ["b-x", "bb-y", "ccc-z"]


@ON_SQLITE
def test_a_class_with_several_columns_follows_and_so_does_what_reads_them(
    server: Server, cluster: str, table: str, log: Path
) -> None:
    class Split:
        def __call__(self, batch: Any) -> Any:
            recorded(log, batch.num_rows)
            return {
                "low": batch["text"],
                "size": pa.array([len(t) for t in batch["text"].to_pylist()]),
            }

    new = virtual_column(Split, ["text"], {"low": "utf8", "size": "int64"}, "batch", name="split")
    add_function(server, table, new).raise_for_status()
    add_computed(server, table, double="size * 2").raise_for_status()
    low, double = Column(server, table, "low", cluster), Column(server, table, "double", cluster)
    fill(low)
    fill(double)
    rename(server, table, "text", "words").raise_for_status()
    rename(server, table, "size", "length").raise_for_status()
    assert explain(low)["function_calls"] == explain(double)["function_calls"] == 0
    assert mirrored(low)["double"]["inputs"] == ["length"]
    update(server, table, "id = 3", words="'dddd'")
    fill(low)
    fill(double)
    assert values(double) == [2, 4, 8]


@ON_SQLITE
def test_names_may_be_swapped_and_come_back(
    server: Server, cluster: str, table: str, log: Path
) -> None:
    add_computed(server, table, a="upper(text)", b="concat('b', id)").raise_for_status()
    add_computed(server, table, sql="a || '+' || b").raise_for_status()
    column, sql = Column(server, table, "made", cluster), Column(server, table, "sql", cluster)
    bind(column, log, lambda a, b: f"{a}-{b}", inputs=["a", "b"])
    for name in ("a", "b", "sql", "made"):
        fill(Column(server, table, name, cluster))
    take_calls(log)
    for old, new in (("a", "tmp"), ("b", "a"), ("tmp", "b")):
        rename(server, table, old, new).raise_for_status()
    assert mirrored(column)["made"]["inputs"] == ["b", "a"]
    assert metadata(server, table, "sql")["computed_column.expression"] == "`b` || '+' || `a`"
    assert explain(column)["function_calls"] == explain(sql)["function_calls"] == 0
    update(server, table, "id = 1", text="'new'")
    for name in ("a", "b", "sql", "made"):
        fill(Column(server, table, name, cluster))
    assert values(column) == ["NEW-b1", "BB-b2", "CCC-b3"]
    assert values(sql) == ["NEW+b1", "BB+b2", "CCC+b3"]
    assert len(take_calls(log)) == 1
    for old, new in (("a", "tmp"), ("b", "a"), ("tmp", "b")):
        rename(server, table, old, new).raise_for_status()
    assert explain(column)["function_calls"] == explain(sql)["function_calls"] == 0
    assert "declared_inputs" in metadata(server, table, "made")["penstock.function"]


@ON_SQLITE
def test_names_that_are_swapped_without_the_column_make_it_stale(
    server: Server, cluster: str, table: str
) -> None:
    add = {"new_columns": [{"name": "other", "expression": "concat('o', id)"}]}
    server.post(f"/v1/table/{table}/add_columns", add).raise_for_status()
    add_computed(server, table, made="text || '-' || other").raise_for_status()
    column = Column(server, table, "made", cluster)
    fill(column)
    for old, new in (("text", "tmp"), ("other", "text"), ("tmp", "other")):
        body = {"alterations": [{"path": old, "rename": new}]}
        path = f"/v1/table/{table}/alter_columns?force=true"
        server.post(path, body).raise_for_status()
    assert explain(column)["function_calls"] == 3
    fill(column)
    assert values(column) == ["o1-a", "o2-bb", "o3-ccc"]
    assert explain(column)["function_calls"] == 0


def test_of_renames_at_once_each_is_followed_once(server: Server, cluster: str, table: str) -> None:
    add_computed(server, table, made="concat(text, id)").raise_for_status()
    column = Column(server, table, "made", cluster)
    fill(column)
    pairs = [("text", "words"), ("id", "key"), ("text", "others"), ("doc", "paper")]
    with ThreadPoolExecutor(len(pairs)) as threads:
        found = list(threads.map(lambda pair: rename(server, table, *pair).status_code, pairs))
    assert sorted([found[0], found[2]]) == [200, 404]
    assert found[1] == found[3] == 200
    name = "words" if found[0] == 200 else "others"
    assert mirrored(column)["made"]["inputs"] == ["key", name]
    assert explain(column)["function_calls"] == 0
    body = {"predicate": "key = 1", "updates": [[name, "'new'"]]}
    server.post(f"/v1/table/{table}/update", body).raise_for_status()
    assert fill(column) == 1
    assert "new1" in open_by_path(server, table).to_table()["made"].to_pylist()


@ON_SQLITE
def test_branches_follow_by_themselves(server: Server, cluster: str, table: str, log: Path) -> None:
    column = Column(server, table, "made", cluster)
    bind(column, log, lambda text, n: f"{text}{n}")
    fill(column)
    server.post(f"/v1/table/{table}/branches/create", {"name": "dev"}).raise_for_status()
    rename(server, table, "text", "words", branch="dev").raise_for_status()
    assert mirrored(column, branch="dev")["made"]["inputs"] == ["words", "doc.n"]
    assert mirrored(column)["made"]["inputs"] == ["text", "doc.n"]
    assert explain(column, branch="dev")["function_calls"] == 0
    assert explain(column)["function_calls"] == 0
    take_calls(log)
    body = {"predicate": "id = 1", "updates": [["words", "'new'"]], "branch": "dev"}
    server.post(f"/v1/table/{table}/update", body).raise_for_status()
    assert fill(column, branch="dev") == 1
    assert values(column, "dev") == ["new0", "bb1", "ccc2"]
    assert values(column) == ["a0", "bb1", "ccc2"]


@ON_SQLITE
def test_what_cannot_follow_is_refused_before_anything_changes(
    server: Server, cluster: str, table: str
) -> None:
    add_computed(server, table, made="length(text)").raise_for_status()
    version = open_by_path(server, table).version
    # Lance has no way to write such a name.
    answer = rename(server, table, "text", "wo`rds")
    assert code(answer) == (400, 13)
    assert "'wo`rds' holds a back-quote" in answer.json()["error"]
    assert code(rename(server, table, "text", "id")) == (400, 20)
    plain = {"alterations": [{"path": "text", "rename": "words"}]}
    answer = server.post(f"/v1/table/{table}/alter_columns", plain)
    assert code(answer) == (400, 13)
    assert "?cascade=true" in answer.json()["detail"]
    assert open_by_path(server, table).version == version


@pytest.mark.parametrize("point", ["version recorded"])
def test_a_kill_leaves_all_of_a_rename(tmp_path: Path, log: Path, point: str) -> None:
    with servers.running(tmp_path) as server:
        column = Column(server, make_table(server, ROWS), "made", "local")
        bind(column, log, lambda text, n: f"{text}{n}")
        add_computed(server, column.table, sql="length(text)").raise_for_status()
        fill(column)
    dying = servers.start(tmp_path, environ={"PENSTOCK_CRASH_AT": point})
    with pytest.raises(httpx.HTTPError):
        rename(dying, column.table, "text", "words")
    dying.process.wait(60)
    with servers.running(tmp_path, "--no-runner") as server:
        column = Column(server, column.table, "made", "local")
        found = mirrored(column)
        assert (found["made"]["inputs"], found["sql"]["inputs"]) == (["words", "doc.n"], ["words"])
        assert explain(column)["function_calls"] == 0
        insert(server, column.table, id="id", text="words", doc="doc")
        assert fill(column) == 1
