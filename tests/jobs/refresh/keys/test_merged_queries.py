"""Queries whose subqueries are merged give what Spark makes of them as they were written."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from penstock.jobs.spark.sql_sessions import MEANING
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.spark.types import cast_in
from penstock.lance.columns.sql_types import list_columns
from penstock.sql.results import Refusal
from penstock.sql.spark.merged import read_merged_query
from tests.harness.views.joined_views import JoinedView
from tests.harness.views.sql_views import sort_rows

TABLES = ("facts", "dims", "places")
QUERIES = [
    "WITH c AS (SELECT *, v * 2 AS twice FROM facts WHERE v <> 3) "
    "SELECT * EXCEPT (f, other), twice + 1 AS next FROM c WHERE twice > 2 OR dim IS NULL",
    "SELECT v + 1 AS other, other * 2 AS o, o + 1 AS p FROM (SELECT v FROM facts) q",
    "SELECT q.id, q.s.a, q.s.b AS c FROM (SELECT id, struct(v AS a, dim AS b) AS s FROM facts) q",
    "SELECT f.id, q.name, q.place FROM facts f LEFT JOIN "
    "(SELECT id AS k, name, place FROM dims WHERE name <> 'd1' AND place IS NOT NULL) q "
    "ON q.k = f.dim AND (q.name = 'd2' OR f.v > 1)",
    "SELECT f.id, q.size FROM facts f, (SELECT d.id, p.size FROM dims d LEFT JOIN places p "
    "ON d.place = p.code WHERE d.id < 7) q WHERE q.id = f.dim AND coalesce(q.size, 2) < 3",
    "WITH d(k, n) AS (SELECT id, upper(name) FROM dims) "
    "SELECT x.k, y.n AS a, concat(x.n, y.n) AS b FROM d x JOIN D y ON x.k = y.k",
    "WITH c AS (SELECT dim, v FROM facts WHERE id % 2 = 0) "
    "SELECT dim, count(*) AS n, sum(v) AS s FROM c GROUP BY 1 HAVING n > 1 AND max(v) < 5",
    "SELECT q.name, q.half, count(*) AS n FROM (SELECT name, id % 2 AS half FROM dims) q "
    "GROUP BY q.name, q.half",
    "SELECT q.id, q.name, row_number() OVER (PARTITION BY q.name ORDER BY q.id) AS r "
    "FROM (SELECT id, name FROM dims WHERE id > 1) q",
    "SELECT q.id FROM (SELECT id, dim FROM facts) q WHERE NOT EXISTS "
    "(WITH d AS (SELECT id AS k FROM dims WHERE name = 'd1') SELECT * FROM d WHERE d.k = q.dim)",
    "SELECT q.id FROM (SELECT id, f FROM dims) q LEFT ANTI JOIN "
    "(SELECT f + 0 AS g, f, id FROM facts WHERE v > 2) r ON r.f = q.f AND r.g = q.f",
    "WITH dims AS (SELECT code AS id FROM places) SELECT id FROM dims UNION ALL "
    "(WITH dims AS (SELECT id FROM dims WHERE id > 'p0') SELECT id FROM dims)",
    "SELECT name FROM (SELECT name, id FROM dims) q WHERE id > 2 INTERSECT "
    "SELECT name FROM (SELECT name, id FROM dims WHERE id < 8) q",
]


@pytest.mark.slow
def test_spark_gives_the_same_rows_for_both_texts(engine: Engine, tmp_path: Path) -> None:
    JoinedView(tmp_path, engine, "SELECT f.id FROM facts f JOIN dims d ON f.dim = d.id")
    spark = engine.spark.newSession()
    for key, value in MEANING.items():
        spark.conf.set(key, value)
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    columns = {}
    for name in TABLES:
        rows = lance.dataset(str(tmp_path / name)).to_table()
        columns[name] = list_columns(rows.schema)
        batches = [cast_in(batch) for batch in rows.to_batches()]
        spark.createDataFrame(pa.Table.from_batches(batches)).createOrReplaceTempView(name)
    for sql in QUERIES:
        found = read_merged_query(sql, columns, None)
        assert not isinstance(found, Refusal), (sql, found)
        assert found.flat is not None, (sql, found.written.shape.obstacle)
        flat, written = (spark.sql(each.sql).toArrow() for each in (found.flat, found.written))
        assert flat.schema.names == written.schema.names, sql
        assert flat.schema.types == written.schema.types, sql
        assert sort_rows(flat) == sort_rows(written), sql
        assert len(flat), sql
