"""Fuzzed SQL: it is refused, or Spark reads in the text that it is given what was checked."""

import random

import pytest
from sqlglot import exp

from penstock.jobs.spark.tasks import Engine
from penstock.sql.parsing.guard import Refused
from penstock.sql.parsing.parse import TooMuch
from penstock.sql.parsing.references import find_tables
from penstock.sql.spark.text.checked_sql import check_query, write_statement
from penstock.sql.spark.text.plain import PlainStatement
from penstock.sql.spark.text.words import CALLED
from tests.harness.fuzzing.sql_noise import make_noise
from tests.harness.jobs.spark_plans import lex, list_functions, list_kinds, list_relations, parse
from tests.jobs.spark.test_checked_sql import list_written, split_shifts

# What no query has, whatever it reads and calls.
NEVER = {"ScriptTransformation", "UnresolvedTableValuedFunction", "RelationTimeTravel",
         "NamedParameter", "PosParameter", "UnresolvedIdentifier", "Sample", "CreateVariable",
         "UnresolvedTableValuedFunctionWithNamedArgs", "InsertIntoStatement"}  # fmt: skip


def check(engine: Engine, sql: str) -> PlainStatement | None:
    """What Spark would be given, once it is known that Spark reads it as we do."""
    try:
        plain, tree = write_statement(sql)
        check_query(plain.text, ("docs", "other"))
    except (Refused, TooMuch):
        return None
    assert not any(char < " " for char in plain.text), sql
    assert split_shifts(lex(engine, plain.text)) == list_written(plain), sql
    found = parse(engine, plain.text)
    if found is not None:
        # Hints are left out, also those that Spark could not follow.
        assert found == parse(engine, sql) or "/*+" in sql, sql
        check_plan(found, tree, sql)
    return plain


def check_plan(plan: object, tree: exp.Query, sql: str) -> None:
    named = {tuple(part.name for part in table.parts) for table in find_tables(tree, "spark")}
    ours = {each.alias for each in tree.find_all(exp.CTE)}
    found = list_relations(plan)
    assert {name for name in found | named if name[0] not in ours} <= found & named, sql
    assert {name[-1].lower() for name in list_functions(plan)} <= CALLED, sql
    assert all(len(name) == 1 for name in list_functions(plan)), sql
    assert not list_kinds(plan) & NEVER, sql


def check_many(engine: Engine, count: int, seed: int) -> int:
    chance = random.Random(seed)
    taken = [check(engine, make_noise(chance)) for _ in range(count)]
    return sum(each is not None for each in taken)


def test_noise_is_refused_or_read_as_it_was_checked(engine: Engine) -> None:
    taken = check_many(engine, 400, seed=15)
    # Neither everything nor nothing passes.
    assert 40 < taken < 300


@pytest.mark.slow
def test_much_noise_is_refused_or_read_as_it_was_checked(engine: Engine) -> None:
    assert check_many(engine, 4_000, seed=16) > 400
