"""Random queries in layers mean the same once their subqueries are merged, which SQLite tells."""

import itertools
import random
import sqlite3
from collections.abc import Iterator

from penstock.sql.resolving.joins import Obstacle
from penstock.sql.resolving.merging import merge_queries

COLUMNS = {"id": "BIGINT", "a": "BIGINT", "b": "BIGINT"}
TABLES = {"t": COLUMNS, "u": COLUMNS, "w": COLUMNS}
# A relation's name in its query, and its columns.
Scope = list[tuple[str, list[str]]]


class Writer:
    """Writes queries of tables, WITH and subqueries, joined, filtered, and computed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._numbers = itertools.count()
        self._ctes: Scope = []

    def write(self) -> str:
        texts: list[str] = []
        for _ in range(self._chance.choice((0, 0, 1, 2))):
            # Some hide a table, or another one that is read here.
            name = self._chance.choice(("c", "d", "t", "u"))
            sql, columns = self._select(2, [])
            self._ctes = [each for each in self._ctes if each[0] != name]
            if name in [text.split(" ")[0] for text in texts] or f" {name} " in f"{sql} ":
                continue
            texts.append(f"{name} AS ({sql})")
            self._ctes.append((name, columns))
        sql, columns = self._select(3, [])
        if self._chance.random() < 0.2:
            again = f"SELECT {', '.join(columns)} FROM ({sql}) last"
            sql = f"{again} {self._chance.choice(('UNION ALL', 'EXCEPT'))} {again}"
        return (f"WITH {', '.join(texts)} " if texts else "") + sql

    def _select(self, depth: int, outer: Scope) -> tuple[str, list[str]]:
        chance = self._chance
        scope: Scope = []
        text = ""
        for place in range(chance.choice((1, 1, 2, 3))):
            relation, alias, columns = self._relation(depth)
            scope.append((alias, columns))
            if not place:
                text = relation
                continue
            kind = chance.choice(("JOIN", "LEFT JOIN", "LEFT JOIN", ",", "CROSS JOIN"))
            on = f" ON {self._condition(scope, 0)}" if "JOIN" in kind and kind[0] != "C" else ""
            text += f"{' ' * (kind != ',')}{kind} {relation}{on}"
        outputs, names = [], []
        for _ in range(chance.choice((1, 2, 3))):
            name = f"o{next(self._numbers)}" if chance.random() < 0.6 else chance.choice("ab")
            if name not in names:
                outputs.append(f"{self._value(scope)} AS {name}")
                names.append(name)
        if len(scope) == 1 and chance.random() < 0.2:
            outputs, names = ["*"], scope[0][1]
        sql = f"SELECT {', '.join(outputs)} FROM {text}"
        if chance.random() < 0.6:
            sql += f" WHERE {self._condition([*scope, *outer], depth)}"
        return sql, names

    def _relation(self, depth: int) -> tuple[str, str, list[str]]:
        chance = self._chance
        alias = chance.choice("pqrxyz") + str(next(self._numbers) % 7)
        if depth and chance.random() < 0.5:
            sql, columns = self._select(depth - 1, [])
            return f"({sql}) {alias}", alias, columns
        hidden = [name for name, _ in self._ctes]
        tables = [(name, list(COLUMNS)) for name in TABLES if name not in hidden]
        name, columns = chance.choice([*tables, *self._ctes])
        return f"{name} {alias}", alias, columns

    def _column(self, scope: Scope) -> str:
        alias, columns = self._chance.choice(scope)
        column = self._chance.choice(columns)
        count = sum(each.count(column) for _, each in scope)
        return column if count == 1 and self._chance.random() < 0.5 else f"{alias}.{column}"

    def _value(self, scope: Scope) -> str:
        column = self._column(scope)
        return self._chance.choice(
            (column, column, column, f"{column} + 1", f"coalesce({column}, 7)", "5",
             f"{column} * 2 - {self._column(scope)}", f"CASE WHEN {column} > 1 THEN 1 END")
        )  # fmt: skip

    def _condition(self, scope: Scope, depth: int) -> str:
        chance = self._chance
        one, other = self._column(scope), self._column(scope)
        made = chance.choice(
            (f"{one} = {other}", f"{one} = {other}", f"{one} < {other} OR {one} IS NULL",
             f"{one} IS NULL", f"NOT {one} > 2", f"{one} BETWEEN 0 AND 3 AND {other} <> 1",
             f"{one} + 1 = {other}", f"{one} IN (1, 2) OR {other} = 0")
        )  # fmt: skip
        if depth and chance.random() < 0.3:
            inner, names = self._select(depth - 1, scope)
            test = chance.choice(("EXISTS ({})", "NOT EXISTS ({})", f"{one} IN ({{}})"))
            if "IN (" not in test or len(names) == 1:
                made += chance.choice((" AND ", " OR ")) + test.format(inner)
        return made


def open_tables(seed: int) -> sqlite3.Connection:
    chance = random.Random(seed)
    database = sqlite3.connect(":memory:")
    for name in TABLES:
        database.execute(f"CREATE TABLE {name} (id INTEGER, a INTEGER, b INTEGER)")
        rows = [
            (number, *(chance.choice((None, 0, 1, 2, 3)) for _ in "ab"))
            for number in range(chance.choice((0, 2, 4, 5)))
        ]
        database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
    return database


def compare(seeds: range) -> Iterator[bool]:
    """Whether each query was merged; asserts that the merged ones give the same rows."""
    for seed in seeds:
        sql = Writer(seed).write()
        database = open_tables(seed)
        try:
            made = database.execute(sql)
        except sqlite3.OperationalError:
            # A name is ambiguous, or hidden.
            continue
        names = [column[0] for column in made.description]
        wanted = sorted(map(repr, made.fetchall()))
        try:
            merged = merge_queries(sql, TABLES, names)
        except Obstacle:
            yield False
            continue
        found = database.execute(merged)
        assert [column[0] for column in found.description] == names, (seed, sql)
        assert sorted(map(repr, found.fetchall())) == wanted, (seed, sql, merged)
        yield True


def test_merged_queries_give_the_same_rows() -> None:
    merged = list(compare(range(40)))
    assert sum(merged) > 20
