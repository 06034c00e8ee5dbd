"""Statements that only count rows, which need no engine but Lance."""

from dataclasses import dataclass

from sqlglot import exp

from penstock.sql.parsing.flat_select import take_apart
from penstock.sql.parsing.guard import guard
from penstock.sql.parsing.parse import parse_query
from penstock.sql.parsing.splice import Edit, splice
from penstock.sql.results import Refusal

# Spark's name for a count without one.
UNNAMED = "count(1)"
CLAUSES = {"expressions", "from_", "where"}


@dataclass(frozen=True, slots=True)
class CountedRows:
    """A count of rows: its name, and a statement that gives those rows."""

    name: str
    rows: str


def find_count(sql: str) -> CountedRows | None:
    """What a statement in Spark's dialect counts, if it is SELECT count(*) FROM … WHERE …."""
    found = guard("reading the query", lambda: _find(sql))
    return None if isinstance(found, Refusal) else found


def _find(sql: str) -> CountedRows | None:
    tree = parse_query(sql, "spark")
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return None
    if any(value for key, value in tree.args.items() if key not in CLAUSES):
        return None
    counted = tree.expressions[0].unalias()
    if not isinstance(counted, exp.Count) or not isinstance(counted.this, exp.Star):
        return None
    if any(value for key, value in counted.args.items() if key not in ("this", "big_int")):
        return None
    flat = take_apart(sql, tree, "spark")
    if flat is None:
        return None
    piece = flat.outputs[0]
    rows = splice(sql, [Edit(piece.start, piece.whole_end or piece.end, "1 AS counted")])
    return CountedRows(piece.name or UNNAMED, rows)
