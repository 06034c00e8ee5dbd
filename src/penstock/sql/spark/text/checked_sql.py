"""The only maker of `CheckedSql`, the SQL that Spark may be given.

A text is read into lexemes, rewritten from them, parsed, and checked word by word and node by node;
Spark gets the rewritten text, never the original.
"""

import functools
import re
from collections.abc import Collection, Sequence

from sqlglot import exp

from penstock.model.moments import ClockType, mark_spark
from penstock.model.views import CheckedSql
from penstock.sql.parsing.guard import Refused
from penstock.sql.parsing.parse import parse_query
from penstock.sql.parsing.splice import Edit, splice
from penstock.sql.results import SqlProblem
from penstock.sql.spark.text.lexemes import Kind, Lexeme
from penstock.sql.spark.text.literals import find_fault
from penstock.sql.spark.text.nodes import find_foreign
from penstock.sql.spark.text.plain import PlainStatement, check_tokens, read_plain, relocate_problem
from penstock.sql.spark.text.words import check_sources, check_words, find_clock, find_keywords

# Expanded stars, names and aliases make a statement longer than its author's.
MAX_WORDS = 20_000
SHORT = 1_000
ALONE = "SELECT "
SIMPLE = re.compile(r"`[^`]+`")
# What the functions of the clock give; others give a timestamp.
CLOCK_TYPES: dict[str, ClockType] = {
    "curdate": "date",
    "current_date": "date",
    "localtimestamp": "timestamp_ntz",
}


def write_statement(sql: str) -> tuple[PlainStatement, exp.Query]:
    """A rewritten statement, and its tree; its tables may still be any names.

    Never change the tree: short ones are cached, because a view is defined again at each refresh.
    Raises Refused, with the place in the author's text, for what no view may have.
    """
    return _write_short(sql) if len(sql) <= SHORT else _write(sql)


@functools.lru_cache(maxsize=128)
def _write_short(sql: str) -> tuple[PlainStatement, exp.Query]:
    return _write(sql)


def _write(sql: str) -> tuple[PlainStatement, exp.Query]:
    plain = read_plain(sql)
    tree = _parse(plain)
    if keywords := find_keywords(plain, tree):
        quoted = plain.quote(keywords)
        check_tokens(quoted)
        again = _parse(quoted)
        if _unquote(tree) != _unquote(again):
            raise Refused("the statement can be read in two ways; write its names in back-quotes")
        plain, tree = quoted, again
    if found := find_foreign(tree):
        reason, node = found
        starts = [each.meta["start"] for each in node.walk() if "start" in each.meta]
        raise Refused(reason, *(plain.locate(min(starts)) if starts else ()))
    check_words(plain, tree)
    return plain, tree


def check_query(sql: str, relations: Collection[str]) -> CheckedSql:
    """A whole query for Spark, over relations of these names and nothing else."""
    plain, tree = write_statement(sql)
    for table in tree.find_all(exp.Table):
        if len(table.parts) != 1 or not isinstance(table.this, exp.Identifier):
            raise Refused("a view reads tables of the catalog, by their names")
    check_sources(plain, tree, relations)
    return CheckedSql(_mark_clock(plain))


def check_expression(text: str) -> CheckedSql:
    """One expression for Spark, over columns and nothing else."""
    if SIMPLE.fullmatch(text):
        # A name in back-quotes, as most outputs are.
        return check_path([text[1:-1]])
    plain, tree = write_statement(f"{ALONE}{text}")
    is_alone = (
        isinstance(tree, exp.Select)
        and len(tree.expressions) == 1
        and not any(value for key, value in tree.args.items() if key != "expressions")
        and not isinstance(tree.expressions[0], exp.Alias | exp.Aliases)
        and all(node is tree for node in tree.find_all(exp.Query))
        and tree.find(exp.Table) is None
    )
    if not is_alone:
        raise Refused("an output or a filter is more than one expression; simplify the query")
    check_sources(plain, tree, ())
    return CheckedSql(_mark_clock(plain)[len(ALONE) :])


def find_bare_clock(sql: str) -> set[str]:
    """The words without brackets by which a statement reads the clock."""
    plain, _ = write_statement(sql)
    return {word for start, end, word in find_clock(plain) if plain.text[end - 1] != ")"}


def check_path(path: Sequence[str]) -> CheckedSql:
    """A column, or a field of one, by the names of its parts."""
    for part in path:
        if fault := find_fault(part):
            raise Refused(f"the name of a column has {fault}; rename the column")
    return CheckedSql(".".join(Lexeme(Kind.NAME, part, 0).write() for part in path))


def _mark_clock(plain: PlainStatement) -> str:
    """The text with marks where it reads the clock."""
    edits = [
        Edit(start, end, mark_spark(CLOCK_TYPES.get(word, "timestamp")))
        for start, end, word in find_clock(plain)
    ]
    return splice(plain.text, edits)


def _parse(plain: PlainStatement) -> exp.Query:
    tree = parse_query(plain.text, "spark", MAX_WORDS)
    if isinstance(tree, SqlProblem):
        found = relocate_problem(tree, plain)
        raise Refused(found.message, found.line, found.column)
    return tree


def _unquote(tree: exp.Query) -> exp.Query:
    copy = tree.copy()
    for name in copy.find_all(exp.Identifier):
        name.set("quoted", False)
    return copy
