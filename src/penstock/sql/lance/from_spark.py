"""Translate expressions of Spark's dialect that mean the same to Lance.

A list of constructs that we vouch for, each with its types; Spark evaluates everything else. Left
out on purpose: comparisons of floating numbers (Spark has NaN = NaN and 0.0 = -0.0), arithmetic on
integers (Spark fails on overflow), division, decimals, times other than comparisons with the clock,
casts that can fail or format, upper and lower (each engine has its own table of letters), LIKE with
an escape, null-safe equality.
"""

import re
from collections.abc import Callable

from sqlglot import exp

from penstock.model.moments import mark_lance
from penstock.sql.lance.clock_bounds import ClockBound, find_bound
from penstock.sql.spark.types import FLOATS, INTEGERS, TEXTS, Type, Types

D = exp.DType
LIMITS = {D.TINYINT: 2**7, D.SMALLINT: 2**15, D.INT: 2**31, D.BIGINT: 2**63}
# Names that Lance's parser accepts between back-quotes as they are.
NAME = re.compile(r"[^`.\"\\\x00-\x1f]+")
DATE = re.compile(r"(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])")
COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}
ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
TIMES = (D.TIMESTAMP, D.TIMESTAMPTZ, D.TIMESTAMPNTZ)
MAX_NODES = 200
PARTS = {"this", "expression", "expressions"}
MORE_PARTS: dict[type[exp.Expr], set[str]] = {
    exp.Column: {"table"},
    exp.Literal: {"is_string"},
    exp.Between: {"low", "high"},
    exp.Like: {"negate"},
    exp.Concat: {"safe"},
    exp.DPipe: {"safe"},
    exp.Cast: {"to", "safe"},
    exp.TryCast: {"to", "safe"},
}
INT = exp.DataType(this=D.INT)


class NotVouched(Exception):
    """The expression may mean something else to Lance."""


def write_lance(node: exp.Expr, types: Types) -> str | None:
    """An expression over one table in Lance's SQL, or None."""
    if sum(1 for _ in node.walk()) > MAX_NODES:
        return None
    try:
        written = _Writer(types).write(node)
        # On its own, a number is a BIGINT to Lance.
        return (
            f"cast({written} as int)" if types.get(node) == INT and _is_constant(node) else written
        )
    except NotVouched:
        return None


class _Writer:
    def __init__(self, types: Types) -> None:
        self._types = types

    def write(self, node: exp.Expr) -> str:
        rule = RULES.get(type(node))
        known = PARTS | MORE_PARTS.get(type(node), set())
        # An unknown part, such as NOT in LIKE, may reverse the meaning.
        if rule is None or any(value for key, value in node.args.items() if key not in known):
            raise NotVouched
        return rule(self, node)

    def write_column(self, node: exp.Expr) -> str:
        path = self._types.find_path(node)[1]
        if path is None or not all(NAME.fullmatch(name) for name in path):
            raise NotVouched
        return ".".join(f"`{name}`" for name in path)

    def write_paren(self, node: exp.Expr) -> str:
        return f"({self.write(node.this)})"

    def write_boolean(self, node: exp.Expr) -> str:
        return "true" if node.this else "false"

    def write_literal(self, node: exp.Expr) -> str:
        if node.is_string:
            return _text(node)
        if not node.is_int or int(node.name) >= 2**63:
            raise NotVouched
        return str(int(node.name))

    def write_logic(self, node: exp.Expr) -> str:
        self._check(node.this, D.BOOLEAN)
        self._check(node.expression, D.BOOLEAN)
        word = "AND" if isinstance(node, exp.And) else "OR"
        return f"({self.write(node.this)} {word} {self.write(node.expression)})"

    def write_not(self, node: exp.Expr) -> str:
        self._check(node.this, D.BOOLEAN)
        return f"(NOT {self.write(node.this)})"

    def write_comparison(self, node: exp.Expr) -> str:
        sides = self._write_alike([node.this, node.expression])
        return f"({sides[0]} {COMPARISONS[type(node)]} {sides[1]})"

    def write_between(self, node: exp.Expr) -> str:
        value, low, high = self._write_alike([node.this, node.args["low"], node.args["high"]])
        return f"({value} BETWEEN {low} AND {high})"

    def write_in(self, node: exp.Expr) -> str:
        values = node.expressions
        if not values or not all(_is_constant(value) for value in values):
            raise NotVouched
        written = self._write_alike([node.this, *values])
        return f"({written[0]} IN ({', '.join(written[1:])}))"

    def write_is(self, node: exp.Expr) -> str:
        negated = isinstance(node.expression, exp.Not)
        what = node.expression.this if negated else node.expression
        if not isinstance(what, exp.Null) or not isinstance(node.this, exp.Column | exp.Dot):
            raise NotVouched
        return f"({self.write(node.this)} IS {'NOT ' if negated else ''}NULL)"

    def write_like(self, node: exp.Expr) -> str:
        pattern = node.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise NotVouched
        self._check(node.this, *TEXTS)
        word = "NOT LIKE" if node.args.get("negate") else "LIKE"
        return f"({self.write(node.this)} {word} {_text(pattern)})"

    def write_arithmetic(self, node: exp.Expr) -> str:
        kinds = {self._kind(node.this), self._kind(node.expression)}
        if len(kinds) != 1 or not kinds <= set(FLOATS):
            raise NotVouched
        left, right = self.write(node.this), self.write(node.expression)
        return f"({left} {ARITHMETIC[type(node)]} {right})"

    def write_joined(self, node: exp.Expr) -> str:
        # Lance's concat() ignores NULL; its || is Spark's concat.
        parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
        if len(parts) < 2:
            raise NotVouched
        for part in parts:
            self._check(part, *TEXTS)
        return f"({' || '.join(self.write(part) for part in parts)})"

    def write_length(self, node: exp.Expr) -> str:
        self._check(node.this, *TEXTS)
        return f"length({self.write(node.this)})"

    def write_coalesce(self, node: exp.Expr) -> str:
        parts = [node.this, *node.expressions]
        kinds = {self._kind(part) for part in parts}
        if len(kinds) != 1 or not kinds <= {D.INT, D.BIGINT, D.DOUBLE, D.FLOAT, D.BOOLEAN, *TEXTS}:
            raise NotVouched
        return f"coalesce({', '.join(self.write(part) for part in parts)})"

    def write_cast(self, node: exp.Expr) -> str:
        origin, wanted = self._kind(node.this), node.args["to"].this
        if wanted is D.DATE and isinstance(node.this, exp.Literal) and node.this.is_string:
            if not DATE.fullmatch(node.this.name):
                raise NotVouched
            return f"date '{node.this.name}'"
        wider = {D.INT: "int", D.BIGINT: "bigint"}
        if wanted in wider and origin in INTEGERS[: INTEGERS.index(wanted) + 1]:
            return f"cast({self.write(node.this)} as {wider[wanted]})"
        if wanted is D.DOUBLE and origin in (D.TINYINT, D.SMALLINT, D.INT, D.FLOAT):
            return f"cast({self.write(node.this)} as double)"
        raise NotVouched

    def _write_alike(self, nodes: list[exp.Expr]) -> list[str]:
        """Compared values: all integers, all text or all dates; one is no constant."""
        times = [find_bound(node) for node in nodes]
        if any(times):
            return self._write_times(nodes, times)
        kinds = [self._kind(node) for node in nodes]
        families = {_family(kind) for kind in kinds}
        if len(families) != 1 or all(_is_constant(node) for node in nodes):
            raise NotVouched
        if families == {"integer"}:
            # Lance casts a number to the column's type, which must be able to hold it.
            bounds = [
                LIMITS[kind]
                for kind, node in zip(kinds, nodes, strict=True)
                if kind is not None and not _is_constant(node)
            ]
            for node in nodes:
                if _is_constant(node) and _value(node) not in range(-min(bounds), min(bounds)):
                    raise NotVouched
        return [self.write(node) for node in nodes]

    def _write_times(self, nodes: list[exp.Expr], bounds: list[ClockBound | None]) -> list[str]:
        """A column of dates or timestamps, compared with the clock."""
        (column, *more) = [
            node for node, bound in zip(nodes, bounds, strict=True) if bound is None
        ] or [nodes[0]]
        kind = self._kind(column)
        if more or not isinstance(column, exp.Column | exp.Dot):
            raise NotVouched
        if kind is D.DATE and all(bound is None or bound.kind == "date" for bound in bounds):
            return [
                self.write(node) if bound is None else mark_lance("date", bound.steps)
                for node, bound in zip(nodes, bounds, strict=True)
            ]
        if kind not in TIMES:
            raise NotVouched
        # The session's zone is UTC, so a date is its midnight there, and so is a time without zone.
        return [
            self.write(node) if bound is None else mark_lance("timestamp", bound.steps)
            for node, bound in zip(nodes, bounds, strict=True)
        ]

    def write_negative(self, node: exp.Expr) -> str:
        if _is_constant(node):
            return str(_value(node))
        self._check(node.this, *FLOATS)
        return f"(-{self.write(node.this)})"

    def _kind(self, node: exp.Expr) -> exp.DType | None:
        kind: Type = self._types.get(node)
        return kind.this if kind is not None and isinstance(kind.this, exp.DType) else None

    def _check(self, node: exp.Expr, *kinds: exp.DType) -> None:
        if self._kind(node) not in kinds:
            raise NotVouched


def _family(kind: exp.DType | None) -> str:
    if kind in INTEGERS:
        return "integer"
    if kind in TEXTS:
        return "text"
    if kind is D.DATE:
        return "date"
    raise NotVouched


def _is_constant(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Neg) else node
    if isinstance(inner, exp.Cast):
        inner = inner.this
    return isinstance(inner, exp.Literal)


def _value(node: exp.Expr) -> int:
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal) or inner.is_string or not inner.is_int:
        raise NotVouched
    return -int(inner.name) if isinstance(node, exp.Neg) else int(inner.name)


def _text(node: exp.Expr) -> str:
    # sqlglot and Spark 4 differ on doubled quotes and backslashes.
    if "\\" in node.name or "'" in node.name or not node.name.isprintable():
        raise NotVouched
    return f"'{node.name}'"


RULES: dict[type[exp.Expr], Callable[[_Writer, exp.Expr], str]] = {
    exp.Column: _Writer.write_column,
    exp.Dot: _Writer.write_column,
    exp.Paren: _Writer.write_paren,
    exp.Boolean: _Writer.write_boolean,
    exp.Literal: _Writer.write_literal,
    exp.And: _Writer.write_logic,
    exp.Or: _Writer.write_logic,
    exp.Not: _Writer.write_not,
    exp.Between: _Writer.write_between,
    exp.In: _Writer.write_in,
    exp.Is: _Writer.write_is,
    exp.Like: _Writer.write_like,
    exp.Neg: _Writer.write_negative,
    exp.Concat: _Writer.write_joined,
    exp.DPipe: _Writer.write_joined,
    exp.Length: _Writer.write_length,
    exp.Coalesce: _Writer.write_coalesce,
    exp.Cast: _Writer.write_cast,
    exp.TryCast: _Writer.write_cast,
    **dict.fromkeys(COMPARISONS, _Writer.write_comparison),
    **dict.fromkeys(ARITHMETIC, _Writer.write_arithmetic),
}
