"""Random histories of three tables, and views that join, group and compare them.

`python -m tests.soak.joins` (`make joins`). After each refresh a view must be what SQLite makes of
the rows that the tables have; a refresh is incremental wherever it can be.
"""

import argparse
import random
import re
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import lance
import pyarrow as pa

from penstock.errors import InvalidRequest
from penstock.jobs.spark.tasks import Engine
from tests.harness.data.sources import SourceHistory
from tests.harness.views.local_views import LocalView
from tests.harness.views.sql_views import define_sql
from tests.soak.many import get_engine

TABLES = ("t", "u", "w")
ROUNDS = 3


class Query(NamedTuple):
    """A query that Spark and SQLite understand, or one for each."""

    sql: str
    for_sqlite: str = ""
    shape: str = "keys"


QUERIES = {
    "inner": Query("SELECT t.id, u.id AS o, u.b FROM t JOIN u ON t.id = u.id WHERE t.a < 3"),
    "many": Query("SELECT t.id, u.id AS o FROM u JOIN t ON t.a = u.a AND t.id < u.id"),
    "comma": Query("SELECT t.id, w.a FROM t, u, w WHERE t.id = u.id AND w.id = u.id AND w.b = t.b"),
    "self": Query(
        "SELECT x.id, y.id AS o FROM t x JOIN t y ON x.id = y.b LEFT JOIN t z ON z.id = y.a"
    ),
    "left": Query("SELECT t.id, t.a, u.a AS ua FROM t LEFT JOIN u ON t.id = u.id"),
    "left with more": Query(
        "SELECT t.id, u.id AS o FROM t LEFT JOIN u ON t.a = u.a AND u.id % 7 = 1 AND u.b = t.b"
    ),
    "chain": Query(
        "SELECT t.id, u.a, w.b FROM t LEFT JOIN u ON t.id = u.id LEFT JOIN w ON u.a = w.id"
    ),
    "left and inner": Query(
        "SELECT t.id, w.b FROM t LEFT JOIN u ON t.id = u.id JOIN w ON w.id = t.id AND w.a = u.a"
    ),
    "star": Query(
        "SELECT t.id, u.a, w.a AS wa FROM t JOIN u ON t.id = u.id LEFT JOIN w ON w.id = t.a"
    ),
    "groups": Query("SELECT a, count(*) AS n, sum(id) AS s FROM t GROUP BY a HAVING count(*) > 2"),
    "groups of a join": Query(
        "SELECT t.a, u.a AS ua, count(*) AS n, sum(t.id) AS s FROM t JOIN u ON t.id = u.id "
        "GROUP BY t.a, u.a"
    ),
    "groups of the other side": Query(
        "SELECT u.a, count(*) AS n, min(t.id) AS low FROM t LEFT JOIN u ON t.id = u.id GROUP BY u.a"
    ),
    "groups of some": Query(
        "SELECT u.a, w.a AS wa, count(*) AS n FROM t LEFT JOIN u ON t.id = u.id AND u.id % 3 < 2 "
        "LEFT JOIN w ON w.id = u.a GROUP BY u.a, w.a, t.a"
    ),
    "distinct": Query("SELECT DISTINCT a, id % 2 AS half FROM t"),
    "distinct join": Query("SELECT DISTINCT t.a, u.b FROM t JOIN u ON t.id = u.id"),
    "window": Query(
        "SELECT id, a, row_number() OVER (PARTITION BY a ORDER BY id) AS r, "
        "sum(id) OVER (PARTITION BY a, b) AS s FROM t"
    ),
    "window of a join": Query(
        "SELECT t.id, u.a, rank() OVER (PARTITION BY u.a ORDER BY t.id) AS r, "
        "lag(t.id) OVER (PARTITION BY u.a ORDER BY t.id, u.id) AS before "
        "FROM t LEFT JOIN u ON t.id = u.id"
    ),
    "exists": Query(
        "SELECT id, a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.id > t.id)"
    ),
    "not exists": Query(
        "SELECT id, b FROM t WHERE NOT EXISTS (SELECT 1 FROM u JOIN w ON u.id = w.id "
        "WHERE u.a = t.a AND u.b = w.b AND w.id % 4 = t.id % 4)"
    ),
    "in": Query("SELECT t.id, u.a FROM t JOIN u ON t.id = u.id WHERE t.a IN (SELECT w.a FROM w)"),
    "semi": Query(
        "SELECT t.id, t.a FROM t LEFT SEMI JOIN u ON t.id = u.id AND u.a > 0",
        "SELECT t.id, t.a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.id = u.id AND u.a > 0)",
    ),
    "anti": Query(
        "SELECT t.a, count(*) AS n FROM t LEFT ANTI JOIN u ON t.id = u.id AND u.a = t.a "
        "GROUP BY t.a",
        "SELECT t.a, count(*) AS n FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE t.id = u.id "
        "AND u.a = t.a) GROUP BY t.a",
    ),
    "value of a subquery": Query(
        "SELECT t.id, (SELECT max(u.id) FROM u WHERE u.a = t.a) AS top FROM t"
    ),
    "union all": Query(
        "SELECT id, a FROM t UNION ALL SELECT u.id, w.a FROM u JOIN w ON u.id = w.id"
    ),
    "union": Query("SELECT a, b FROM t UNION SELECT a, b FROM u"),
    "union of groups": Query(
        "SELECT a, count(*) AS n FROM t GROUP BY a UNION ALL SELECT a, id FROM u"
    ),
    "except": Query("SELECT a, id FROM t EXCEPT SELECT a, id FROM u"),
    "intersect": Query("SELECT id, b FROM t INTERSECT SELECT id, b FROM u"),
}

# WITH and subqueries in FROM, which are merged; SQLite gets them as they are written.
MERGED = {
    "with": Query(
        "WITH c AS (SELECT id, a + 1 AS up FROM t WHERE a < 3 OR id > 50), "
        "d(k, up) AS (SELECT id, up FROM c WHERE id % 5 > 0) "
        "SELECT k, up * 2 AS two FROM d WHERE up > 0",
        shape="rows",
    ),
    "with twice": Query(
        "WITH c AS (SELECT id, a, b FROM t WHERE a < 3 OR a IS NULL) "
        "SELECT x.id, y.id AS o, y.a FROM c x JOIN C y ON x.id = y.b LEFT JOIN c z ON z.id = y.a"
    ),
    "left with": Query(
        "WITH c AS (SELECT id AS k, a FROM u WHERE a > 0) "
        "SELECT t.id, c.a, c.k FROM t LEFT JOIN c ON c.k = t.id"
    ),
    "left of a subquery, and one of that": Query(
        "SELECT t.id, q.a AS qa, r.a AS ra FROM t "
        "LEFT JOIN (SELECT id, a FROM u WHERE a > 0) q ON q.id = t.id "
        "LEFT JOIN (SELECT id, a FROM w WHERE id % 3 > 0 OR a = 9) r ON r.id = q.a"
    ),
    "no match": Query(
        "SELECT t.id FROM t LEFT JOIN (SELECT id, a AS x FROM u WHERE a > 1) q ON q.id = t.id "
        "WHERE q.x IS NULL"
    ),
    "join of joins": Query(
        "SELECT t.id, q.a, q.k FROM t JOIN (SELECT u.id, u.a, w.id AS k FROM u "
        "LEFT JOIN w ON u.a = w.id WHERE u.id % 3 < 2) q ON q.id = t.id AND t.id % 7 > 0"
    ),
    "layers": Query(
        "SELECT q.id, r.two FROM (SELECT id, a FROM (SELECT * FROM t WHERE id % 2 = 0) x "
        "WHERE a < 3 OR id < 5) q LEFT JOIN (SELECT id AS k, a AS two FROM "
        "(SELECT id, a FROM u WHERE b = 0) y) r ON r.k = q.id AND r.two = q.a"
    ),
    "groups of a subquery": Query(
        "WITH j AS (SELECT t.a, u.a AS ua, t.id + u.id AS total FROM t JOIN u ON t.id = u.id) "
        "SELECT a, count(*) AS n, sum(total) AS s FROM j WHERE ua < 3 GROUP BY a HAVING n > 1"
    ),
    "window of a subquery": Query(
        "SELECT id, ua, sum(twice) OVER (PARTITION BY ua) AS s FROM (SELECT t.id, t.id * 2 AS "
        "twice, v.a AS ua FROM t LEFT JOIN (SELECT id, a FROM u WHERE a < 9) v ON t.id = v.id) q"
    ),
    "not exists of with": Query(
        "WITH c AS (SELECT u.a, u.id FROM u JOIN w ON u.id = w.id WHERE w.a > 0) "
        "SELECT id, b FROM t WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.a = t.a AND c.id > t.id)"
    ),
    "in a subquery": Query(
        "SELECT q.id, q.y FROM (SELECT id, a AS x, b + 1 AS y FROM t) q WHERE q.x IN "
        "(SELECT r.a FROM (SELECT a FROM w WHERE id % 2 = 1) r)"
    ),
    "semi of a subquery": Query(
        "SELECT t.id, t.a FROM t LEFT SEMI JOIN (SELECT id + 0 AS k, id, a FROM u WHERE a > 0) q "
        "ON t.id = q.id AND q.k % 5 > 0",
        "SELECT t.id, t.a FROM t WHERE EXISTS "
        "(SELECT 1 FROM u WHERE t.id = u.id AND u.a > 0 AND u.id % 5 > 0)",
    ),
    "anti of a subquery": Query(
        "SELECT q.id, q.z FROM (SELECT id, a * 2 AS z, a FROM t) q "
        "LEFT ANTI JOIN (SELECT id, a FROM u WHERE a > 0) r ON q.id = r.id AND q.a = r.a",
        "SELECT t.id, t.a * 2 AS z FROM t WHERE NOT EXISTS "
        "(SELECT 1 FROM u WHERE t.id = u.id AND t.a = u.a AND u.a > 0)",
    ),
    "value of a subquery over with": Query(
        "WITH c AS (SELECT id, a AS g FROM u WHERE b = 0) "
        "SELECT q.id, (SELECT max(c.id) FROM c WHERE c.g = q.a) AS top FROM "
        "(SELECT id, a FROM t) q"
    ),
    "union all of with": Query(
        "WITH c AS (SELECT id, a FROM t WHERE a < 3) SELECT id, a FROM c "
        "UNION ALL SELECT u.id, c.a FROM u JOIN c ON u.id = c.id"
    ),
    "except of with": Query(
        "WITH c AS (SELECT a, id FROM t WHERE b = 0) SELECT a, id FROM c "
        "EXCEPT SELECT a, id FROM (SELECT id, a FROM u WHERE id % 4 > 0) q"
    ),
    "distinct of a subquery": Query(
        "SELECT DISTINCT x.a, x.half FROM (SELECT a, id % 2 AS half FROM t WHERE id > 3) x"
    ),
    "a name that is another": Query(
        "WITH u AS (SELECT id, a FROM t WHERE a > 0) SELECT w.id, q.a FROM w JOIN "
        "(WITH u AS (SELECT id, a FROM u WHERE id % 2 = 1) SELECT * FROM u) q ON q.id = w.id",
        "SELECT w.id, t.a FROM w JOIN t ON t.id = w.id WHERE t.a > 0 AND t.id % 2 = 1",
    ),
}
QUERIES |= MERGED


def run_history(folder: Path, engine: Engine, seed: int, name: str = "") -> Counter[str]:
    """One history of a view; returns how often it was refreshed in which way."""
    chance = random.Random(seed)
    query = QUERIES[name or list(QUERIES)[seed % len(QUERIES)]]
    tables = {each: SourceHistory(folder / each, seed * 10 + n) for n, each in enumerate(TABLES)}
    read = [each for each in TABLES if re.search(rf"\b{each}\b", query.sql)]
    view: LocalView | None = None
    modes: Counter[str] = Counter()
    for _ in range(ROUNDS):
        created = None if view is None else pa.schema(view.open().schema)
        types = pa.schema([(each, pa.int64()) for each in _list_columns(folder, query)])
        definition = define_sql(folder, query.sql, *TABLES, schema=types, created=created)
        assert definition.shape == query.shape, (query.sql, definition.obstacle)
        if view is None:
            view = LocalView(folder, definition, engine).create()
        view.definition = definition
        try:
            done = view.refresh(mode="incremental")
        except InvalidRequest:
            done = view.refresh()
        modes[done.mode] += 1
        found, wanted = _read(view), _compute(folder, query)
        steps = {each: table.steps for each, table in tables.items()}
        if found != wanted:
            missing, extra = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
            raise AssertionError(
                f"seed {seed}: {query.sql}\n{done.mode}: {done.reason}\n{steps}\n"
                f"missing: {list(missing)[:5]}\nextra: {list(extra)[:5]}"
            )
        for _ in range(chance.randrange(1, 4)):
            tables[chance.choice(read)].step()
    return modes


def _read(view: LocalView) -> list[str]:
    table = view.open().to_table()
    own = [name for name in table.schema.names if not name.startswith("__")]
    return sorted(repr(tuple(row.values())) for row in table.select(own).to_pylist())


def _open(folder: Path) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    for each in TABLES:
        rows = lance.dataset(str(folder / each)).to_table(columns=["id", "a", "b"]).to_pylist()
        database.execute(f"CREATE TABLE {each} (id INTEGER, a INTEGER, b INTEGER)")
        database.executemany(f"INSERT INTO {each} VALUES (:id, :a, :b)", rows)
    return database


def _compute(folder: Path, query: Query) -> list[str]:
    return sorted(map(repr, _open(folder).execute(query.for_sqlite or query.sql).fetchall()))


def _list_columns(folder: Path, query: Query) -> list[str]:
    made = _open(folder).execute(query.for_sqlite or query.sql)
    return [column[0] for column in made.description]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.joins", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="how many histories")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="", help="subqueries, or some of: " + ", ".join(QUERIES))
    given = parser.parse_args(sys.argv[1:])
    names = [each.strip() for each in given.only.split(",")] if given.only else list(QUERIES)
    if given.only == "subqueries":
        names = list(MERGED)
    started, failed = time.monotonic(), 0
    modes: Counter[str] = Counter()
    for number, seed in enumerate(range(given.first, given.first + given.count), 1):
        with tempfile.TemporaryDirectory(prefix="penstock-soak-") as folder:
            try:
                name = names[seed % len(names)]
                modes += run_history(Path(folder), get_engine(), seed, name)
            except AssertionError as error:
                failed += 1
                print(f"FAILED {error}\n", flush=True)
        if number % 10 == 0 or number == given.count:
            seconds = time.monotonic() - started
            print(
                f"{number} histories in {seconds:.0f} s, {dict(modes)}, {failed} failed", flush=True
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
