"""The text of a query that is followed by keys: a name for each place where it reads a table.

A refresh can then give each place other rows. Where row ids are the key, they are outputs too.
"""

import itertools
from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

from penstock.model.views import NO_SQL, OCCURRENCE_ROW_ID, Keys
from penstock.sql.parsing.guard import Refused
from penstock.sql.parsing.parse import CLOSE, OPEN, parse_query
from penstock.sql.parsing.splice import Edit, quote, rename_tables, splice
from penstock.sql.resolving.keys import FoundKeys
from penstock.sql.results import Columns, SqlProblem
from penstock.sql.spark.text.checked_sql import check_query

MAX_WORDS = 10_000


def write_keys(sql: str, found: FoundKeys, tables: Mapping[str, Columns]) -> Keys | str:
    """The keys with the query's text; or why there is none."""
    taken = [*(name for columns in tables.values() for name in columns), sql]
    if any(OCCURRENCE_ROW_ID in each.lower() for each in taken):
        return f"it uses names that begin with {OCCURRENCE_ROW_ID}"
    names = [each.name for branch in found.branches for each in branch.occurrences]
    if {name.lower() for name in names} & {name.lower() for name in tables}:
        return "its tables have names that this needs"
    keys = Keys(columns=found.columns, sql=NO_SQL, branches=found.branches)
    text = _rename(sql)
    if keys.row_ids:
        places = list(_find_ends(text))
        if len(places) != len(keys.branches):
            return "its text can't be taken apart into queries"
        if len(places) > 1 and _parse(text).find(exp.Star):
            return "a * in a union can't be followed; list the columns"
        text = splice(
            text, [Edit(at, at, each) for at, each in zip(places, _write_ids(keys), strict=True)]
        )
    return Keys(columns=keys.columns, sql=check_query(text, names), branches=keys.branches)


def _rename(sql: str) -> str:
    """The text with each table's place numbered, in the order of the text."""
    numbers = itertools.count(1)

    def name(table: exp.Table) -> str:
        return quote(f"{table.name}_{next(numbers)}")

    return rename_tables(sql, _parse(sql), "spark", name)


def _write_ids(keys: Keys) -> Iterator[str]:
    """For each branch: the row ids as outputs."""
    for branch in keys.branches:
        texts = []
        for column, part in zip(keys.columns, branch.keys, strict=True):
            made = "CAST(NULL AS BIGINT)"
            if part is not None:
                made = quote(branch.occurrences[part.occurrence].row_id)
            texts.append(f", {made} AS {quote(column)}")
        yield "".join(texts) + " "


def _find_ends(sql: str) -> Iterator[int]:
    """Where the outputs of each SELECT end, outside of brackets."""
    depth, is_open = 0, False
    for before, token in itertools.pairwise(Dialect.get_or_raise("spark").tokenize(f"({sql}")):
        kind = token.token_type
        depth += (kind in OPEN) - (kind in CLOSE)
        if depth:
            continue
        if kind == TokenType.SELECT:
            is_open = True
        elif is_open and kind == TokenType.FROM and before.token_type != TokenType.DISTINCT:
            is_open = False
            yield token.start - 1


def _parse(sql: str) -> exp.Query:
    tree = parse_query(sql, "spark", MAX_WORDS)
    if isinstance(tree, SqlProblem):
        raise Refused(tree.message)
    return tree
