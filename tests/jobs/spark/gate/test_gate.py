"""The runner's own gate holds for any text, whoever let it through before."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest, QueryRefused
from penstock.jobs.engine.attempt import is_passing
from penstock.jobs.spark.gate.checked_queries import pick, query
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.spark.types import quote, to_spark_schema
from penstock.runner.session import Session
from penstock.settings.sections import Cluster
from tests.harness.fuzzing.hostile_sql import EXPRESSIONS, STATEMENTS, Canary
from tests.harness.views.local_views import LocalView
from tests.harness.views.sql_views import define_query, write_source

HONEST = {
    "a join": "SELECT a.id FROM t a JOIN t b ON a.id = b.id",
    "ctes": "WITH q AS (SELECT id FROM t), r AS (SELECT id FROM q) SELECT id FROM r",
    "subqueries": "SELECT id FROM t WHERE id IN (SELECT id FROM t) AND id < (SELECT 9)",
    "numbers": "SELECT id FROM range(3)",
    "values": "SELECT id FROM VALUES (0), (1), (2) AS v(id)",
    "explode": "SELECT DISTINCT e % 3 AS id FROM t LATERAL VIEW explode(sequence(id, 2)) AS e",
    "lateral": "SELECT id FROM t, LATERAL (SELECT t.id + 1 AS n)",
    "windows": "SELECT row_number() OVER (ORDER BY id) - 1 AS id FROM t",
    "groups": "SELECT id FROM t GROUP BY id HAVING count(*) > 0 ORDER BY id",
    "another case": "SELECT ID FROM T",
    "json": "SELECT from_json('[1]', 'array<int>', map('mode', 'FAILFAST'))[0] + id - 1 FROM t",
    "regular expressions": "SELECT id FROM t WHERE CAST(id AS string) RLIKE '[0-9]'",
    "hints": "SELECT /*+ BROADCAST(b) */ a.id FROM t a JOIN t b ON a.id = b.id",
}


@pytest.fixture(scope="module")
def sql(engine: Engine) -> Iterator[Engine]:
    with open_sql(engine, 0) as opened:
        yield opened


@pytest.fixture
def canary(sql: Engine, tmp_path: Path) -> Canary:
    return Canary(tmp_path, sql)


@pytest.fixture
def rows(sql: Engine) -> Any:
    return sql.spark.range(3).mapInArrow(lambda batches: batches, "id bigint")


@pytest.mark.parametrize("attack", STATEMENTS.values(), ids=STATEMENTS)
def test_a_statement_that_does_more_than_read_is_refused(
    sql: Engine, rows: Any, canary: Canary, attack: str
) -> None:
    with pytest.raises(QueryRefused):
        query(sql, canary.arm(attack), {"t": rows})
    assert not list(canary.signs())


@pytest.mark.parametrize("attack", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_expression_that_does_more_than_compute_is_refused(
    sql: Engine, rows: Any, canary: Canary, attack: str
) -> None:
    text = canary.arm(attack)
    for outputs, where in (((text,), None), (("id",), text)):
        # An expression that goes on behind its end is none that Spark can read.
        with pytest.raises(Exception, match=r"refuses|PARSE_SYNTAX_ERROR"):
            pick(sql, rows, *outputs, where=where, name="t")
    assert not list(canary.signs())


@pytest.mark.parametrize("name", ["script in a subquery", "reflect"])
def test_the_canary_sings_where_there_is_no_gate(engine: Engine, tmp_path: Path, name: str) -> None:
    if engine.is_connect or not engine.spark.sparkContext.master.startswith("local"):
        pytest.skip("it sings in the JVM of the driver, or on its machine")
    spark = engine.spark.newSession()
    spark.range(3).createOrReplaceTempView("t")
    canary = Canary(tmp_path, engine)
    spark.sql(canary.arm(STATEMENTS[name])).collect()
    assert list(canary.signs())


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_a_query_over_the_sources_runs(sql: Engine, rows: Any, text: str) -> None:
    assert sorted(row[0] for row in query(sql, text, {"t": rows}).collect()) == [0, 1, 2]


def test_a_text_is_taken_as_it_is(sql: Engine, rows: Any) -> None:
    texts = ["${env:PATH}", "${system:user.dir}", "${spark.app.name}"]
    made = query(sql, f"SELECT {', '.join(map(repr, texts))}", {"t": rows})
    assert list(made.collect()[0]) == texts
    assert [row[0] for row in pick(sql, rows, repr(texts[0])).collect()] == texts[:1] * 3


def test_a_name_of_a_source_is_a_name(sql: Engine, rows: Any) -> None:
    name = "a`b.c d"
    made = query(sql, "SELECT count(*) FROM `a``b.c d`", {name: rows})
    assert made.collect()[0][0] == 3


def test_xml_in_a_text_opens_no_file(sql: Engine, rows: Any, canary: Canary) -> None:
    xml = canary.arm('<!DOCTYPE a [<!ENTITY e SYSTEM "file://{secret}">]><a><b>&e;</b></a>')
    for text in (f"xpath_string('{xml}', 'a/b')", f"from_xml('{xml}', 'b string').b"):
        try:
            found = str(query(sql, f"SELECT {text} AS x FROM t", {"t": rows}).collect())
        # Spark says that it is no XML.
        except Exception as error:
            found = str(error)
        assert "a secret" not in found


@pytest.mark.parametrize("depth", [100, 4000])
def test_a_deep_expression_is_computed_or_refused(sql: Engine, rows: Any, depth: int) -> None:
    text = f"SELECT {' + '.join(['id'] * depth)} AS x FROM t"
    if depth < 1000:
        assert query(sql, text, {"t": rows}).columns == ["x"]
        return
    with pytest.raises(InvalidRequest):
        query(sql, text, {"t": rows})


def test_a_clusters_conf_unlocks_nothing(tmp_path: Path) -> None:
    conf = {"spark.sql.catalog.other": "x", "spark.sql.variable.substitute": "true", "spark.a": "b"}
    made = Session("s", Cluster(master="local[1]", conf=conf), tmp_path)._classic_conf()
    assert "spark.sql.catalog.other" not in made
    assert made["spark.sql.variable.substitute"] == "false"
    assert made["spark.sql.catalogImplementation"] == "in-memory"
    assert made["spark.a"] == "b"


def test_a_column_may_have_any_name(sql: Engine) -> None:
    names = ["a`b", "${env:PATH}", "-- c", "/* d", "e\\", "f\ng", "'h\"", "i int, j"]
    schema = to_spark_schema(pa.schema([(name, pa.int64()) for name in names]))
    frame = sql.spark.range(1).mapInArrow(lambda batches: batches, schema)
    assert frame.columns == names
    assert pick(sql, frame, *map(quote, names)).columns == names


def test_a_refused_view_fails_at_once_and_says_why(engine: Engine, tmp_path: Path) -> None:
    write_source(tmp_path, "t", pa.table({"id": range(3)}))
    text = Canary(tmp_path / "here", engine)
    text.folder.mkdir()
    definition = define_query(
        text.arm(STATEMENTS["script in a subquery"]), {"x": pa.string()}, {"t": ("id",)}
    )
    view = LocalView(tmp_path, definition, engine).create()
    with pytest.raises(QueryRefused, match="ScriptTransformation") as raised:
        view.refresh()
    assert not is_passing(raised.value)
    assert not list(text.signs())
