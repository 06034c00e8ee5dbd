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
        assert definition.shape == "keys", (query.sql, definition.obstacle)
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
    parser.add_argument("--only", default="", help="one query: " + ", ".join(QUERIES))
    given = parser.parse_args(sys.argv[1:])
    started, failed = time.monotonic(), 0
    modes: Counter[str] = Counter()
    for number, seed in enumerate(range(given.first, given.first + given.count), 1):
        with tempfile.TemporaryDirectory(prefix="penstock-soak-") as folder:
            try:
                modes += run_history(Path(folder), get_engine(), seed, given.only)
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
