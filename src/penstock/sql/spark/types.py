"""Types of expressions in Spark 4, where certain: sqlglot's own annotation guesses.

Types are sqlglot's; None means not known for sure.
"""

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from penstock.sql.resolving.resolve import ResolvedStatement

Type = exp.DataType | None
# A type in plain values: its name, then precision and scale, or its parts.
Plain = tuple[Any, ...]
D = exp.DType

DECIMAL = re.compile(r"(\d+)\.(\d+)")
INTEGERS = (D.TINYINT, D.SMALLINT, D.INT, D.BIGINT)
FLOATS = (D.FLOAT, D.DOUBLE)
TEXTS = exp.DataType.TEXT_TYPES
# Types that Spark's SQL certainly returns unchanged.
SIMPLE = {*INTEGERS, *FLOATS, *TEXTS, D.BOOLEAN, D.DATE, D.BINARY, D.VARBINARY}

BOOLEANS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ,
            exp.Between, exp.In, exp.Is, exp.And, exp.Or, exp.Not, exp.Like, exp.ILike,
            exp.RegexpLike, exp.Exists, exp.Boolean, exp.StartsWith, exp.EndsWith, exp.Contains,
            exp.ArrayContains, exp.LogicalAnd, exp.LogicalOr)  # fmt: skip
TEXTUAL = (exp.Upper, exp.Lower, exp.Trim, exp.Replace, exp.RegexpReplace, exp.Initcap, exp.MD5,
           exp.Space, exp.Hex, exp.Translate)  # fmt: skip
INTS = (exp.Length, exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Hour, exp.Minute, exp.Second,
        exp.DayOfMonth, exp.DayOfYear, exp.StrPosition, exp.ArraySize, exp.DateDiff)  # fmt: skip
BIGINTS = (exp.Count, exp.CountIf, exp.ApproxDistinct)
DOUBLES = (exp.Sqrt, exp.Exp, exp.Ln, exp.Pow, exp.Stddev, exp.StddevPop, exp.StddevSamp,
           exp.Variance, exp.VariancePop, exp.Cbrt)  # fmt: skip
SAME_AS_INNER = (exp.Paren, exp.Alias, exp.Min, exp.Max, exp.Abs, exp.Filter)


def _make(kind: exp.DType) -> exp.DataType:
    return exp.DataType(this=kind)


def _make_decimal(precision: int, scale: int) -> Type:
    parts = [exp.DataTypeParam(this=exp.Literal.number(each)) for each in (precision, scale)]
    return exp.DataType(this=D.DECIMAL, expressions=parts) if precision <= 38 else None


class Types:
    """The types of a resolved statement's expressions."""

    def __init__(self, resolved: ResolvedStatement) -> None:
        self._resolved = resolved
        # Each column belongs to the innermost scope that reads it.
        self._scopes = {
            id(column): scope
            for scope in reversed(resolved.scopes)
            for column in scope.columns
            if column.table in scope.sources
        }
        self._depth = 0
        # By scope: subqueries in many layers would be asked again for each column.
        self._results: dict[int, list[Type]] = {}

    def get_outputs(self) -> list[Type]:
        """The types of the statement's result."""
        return self._get_results(self._resolved.scopes[-1])

    def _get_results(self, scope: Scope) -> list[Type]:
        query = scope.expression
        if isinstance(query, exp.SetOperation):
            if len(scope.set_operation_scopes) != 2:
                return [None] * len(query.named_selects)
            left, right = map(self._get_results, scope.set_operation_scopes)
            return [one if one == other else None for one, other in zip(left, right, strict=False)]
        return [self.get(each) for each in query.selects] if isinstance(query, exp.Query) else []

    def get(self, node: exp.Expr) -> Type:
        """The type of one expression."""
        if self._depth > 200:
            return None
        self._depth += 1
        try:
            return self._get(node)
        finally:
            self._depth -= 1

    def _get(self, node: exp.Expr) -> Type:
        rule = RULES.get(type(node))
        if rule is not None:
            return rule(self, node)
        if isinstance(node, BOOLEANS):
            return _make(D.BOOLEAN)
        return None

    def find_path(self, node: exp.Expr) -> tuple[str, tuple[str, ...]] | tuple[None, None]:
        """The table and path of an expression that is a column or a field of one."""
        if isinstance(node, exp.Column):
            source = self._find_source(node)
            if not isinstance(source, exp.Table) or source.name not in self._resolved.stand_ins:
                return None, None
            stand_in = self._resolved.stand_ins[source.name]
            return stand_in.identifier[-1], (stand_in.columns[node.name][0],)
        if not isinstance(node, exp.Dot):
            return None, None
        table, path = self.find_path(node.this)
        field = self._find_field(node)
        if table is None or path is None or field is None:
            return None, None
        return table, (*path, field.name)

    def get_column(self, node: exp.Expr) -> Type:
        """A column's type: the catalog's, or that of a subquery's output."""
        source = self._find_source(node)
        if isinstance(source, exp.Table):
            return _known(node.type) if source.name in self._resolved.stand_ins else None
        if not isinstance(source, Scope) or not isinstance(source.expression, exp.Query):
            return None
        names = source.expression.named_selects
        if names.count(node.name) != 1:
            return None
        if id(source) not in self._results:
            self._results[id(source)] = self._get_results(source)
        results = self._results[id(source)]
        return results[names.index(node.name)] if len(results) == len(names) else None

    def get_field(self, node: exp.Expr) -> Type:
        """A field of a struct."""
        field = self._find_field(node)
        return None if field is None else _known(field.args.get("kind"))

    def _find_source(self, node: exp.Expr) -> object:
        scope = self._scopes.get(id(node))
        return scope.sources.get(node.table) if scope and isinstance(node, exp.Column) else None

    def _find_field(self, node: exp.Expr) -> exp.Expr | None:
        outer = self.get(node.this)
        if outer is None or not outer.is_type(D.STRUCT):
            return None
        wanted = node.expression.name.lower()
        found = [each for each in outer.expressions if each.name.lower() == wanted]
        return found[0] if len(found) == 1 else None

    def get_inner(self, node: exp.Expr) -> Type:
        return self.get(node.this)

    def get_negative(self, node: exp.Expr) -> Type:
        """Spark reads the sign of a number with its digits, so the least INT is one."""
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string and inner.is_int:
            value = int(inner.name)
            return None if value > 2**63 else _make(D.INT if value <= 2**31 else D.BIGINT)
        return self.get(inner)

    def get_common(self, *nodes: exp.Expr) -> Type:
        """The common type of some values, or the type that Spark widens integers to."""
        kinds = [self.get(node) for node in nodes if not isinstance(node, exp.Null)]
        if not kinds or any(kind is None for kind in kinds):
            return None
        first = kinds[0]
        if all(kind == first for kind in kinds):
            return first
        names = [kind.this for kind in kinds if kind is not None]
        if all(name in INTEGERS for name in names):
            return _make(max(names, key=INTEGERS.index))
        return None

    def get_numeric(self, node: exp.Expr) -> Type:
        """+, - and * of numbers."""
        sides = [self.get(node.this), self.get(node.expression)]
        names = [side.this for side in sides if side is not None]
        if len(names) < 2:
            return None
        if all(name in INTEGERS for name in names):
            return _make(max(names, key=INTEGERS.index))
        if all(name in FLOATS for name in names):
            return _make(D.DOUBLE if D.DOUBLE in names else D.FLOAT)
        if D.DOUBLE in names and all(name in (*INTEGERS, *FLOATS, D.DECIMAL) for name in names):
            return _make(D.DOUBLE)
        return None

    def get_quotient(self, node: exp.Expr) -> Type:
        sides = [self.get(node.this), self.get(node.expression)]
        plain = all(side is not None and side.this in (*INTEGERS, *FLOATS) for side in sides)
        return _make(D.DOUBLE) if plain else None

    def get_sum(self, node: exp.Expr) -> Type:
        inner = self.get(_undistinct(node.this))
        if inner is None:
            return None
        if inner.this in INTEGERS:
            return _make(D.BIGINT)
        if inner.is_type(D.DECIMAL):
            precision, scale = (int(each.name) for each in inner.expressions)
            return _make_decimal(precision + 10, scale)
        return _make(D.DOUBLE) if inner.this in FLOATS else None

    def get_average(self, node: exp.Expr) -> Type:
        inner = self.get(_undistinct(node.this))
        plain = inner is not None and inner.this in (*INTEGERS, *FLOATS)
        return _make(D.DOUBLE) if plain else None

    def get_text(self, node: exp.Expr) -> Type:
        """Text when it is made of text; of bytes it may be bytes."""
        parts = node.expressions or [node.this, *filter(None, [node.args.get("expression")])]
        kinds = [self.get(part) for part in parts if isinstance(part, exp.Expr)]
        plain = all(kind is not None and kind.this in TEXTS for kind in kinds)
        return _make(D.TEXT) if plain and kinds else None

    def get_part(self, node: exp.Expr) -> Type:
        inner = self.get(node.this)
        return _make(D.TEXT) if inner is not None and inner.this in TEXTS else None

    def get_choice(self, node: exp.Expr) -> Type:
        """CASE and if."""
        if isinstance(node, exp.If):
            values = [node.args.get("true"), node.args.get("false")]
        else:
            values = [each.args.get("true") for each in node.args["ifs"]]
            values.append(node.args.get("default"))
        return self.get_common(*[each for each in values if isinstance(each, exp.Expr)])

    def get_first(self, node: exp.Expr) -> Type:
        others = [node.this, *node.expressions]
        return self.get_common(*[each for each in others if isinstance(each, exp.Expr)])

    def get_single(self, node: exp.Expr) -> Type:
        """A subquery that is a value."""
        query = node.this
        return self.get(query.selects[0]) if isinstance(query, exp.Select) else None

    def get_cast(self, node: exp.Expr) -> Type:
        kind = _known(node.args["to"])
        # sqlglot types to_timestamp() as TIMESTAMP, too, which may have a zone or not.
        return None if kind is None or kind.this is D.TIMESTAMP else kind

    def get_literal(self, node: exp.Expr) -> Type:
        if node.is_string:
            return _make(D.TEXT)
        if match := DECIMAL.fullmatch(node.name):
            scale = len(match[2])
            return _make_decimal(max(len((match[1] + match[2]).lstrip("0")), scale), scale)
        if not node.is_int or int(node.name) >= 2**63:
            return None
        return _make(D.INT if int(node.name) < 2**31 else D.BIGINT)


def to_plain(kind: Type) -> Plain | None:
    """A type without sqlglot: ("DECIMAL", 10, 2), ("ARRAY", ("INT",)) ..."""
    if kind is None:
        return None
    name = kind.this.value
    if kind.is_type(D.DECIMAL):
        return (name, *(int(each.name) for each in kind.expressions))
    if kind.is_type(D.STRUCT):
        return (name, *((each.name, to_plain(each.args["kind"])) for each in kind.expressions))
    return (name, *(to_plain(each) for each in kind.expressions))


def _known(kind: object) -> Type:
    """A type that is completely known."""
    if not isinstance(kind, exp.DataType):
        return None
    inner = [each.this if isinstance(each, exp.ColumnDef) else each for each in kind.expressions]
    if kind.is_type(D.STRUCT):
        parts = [_known(each.args.get("kind")) for each in kind.expressions]
        return kind if parts and all(parts) else None
    if kind.is_type(D.ARRAY, D.MAP):
        return kind if inner and all(_known(each) for each in inner) else None
    if kind.is_type(D.DECIMAL):
        return kind if len(kind.expressions) == 2 else None
    if kind.this in TEXTS:
        # The length of VARCHAR is not stored.
        return _make(D.TEXT)
    if kind.this is D.UNKNOWN or kind.expressions:
        return None
    return kind if isinstance(kind.this, exp.DType) else None


def _undistinct(node: exp.Expr) -> exp.Expr:
    return node.expressions[0] if isinstance(node, exp.Distinct) else node


def _constant(kind: exp.DType) -> Callable[[Types, exp.Expr], Type]:
    return lambda types, node: _make(kind)


RULES: dict[type[exp.Expr], Callable[[Types, exp.Expr], Type]] = {
    exp.Column: Types.get_column,
    exp.Dot: Types.get_field,
    exp.Subquery: Types.get_single,
    exp.Literal: Types.get_literal,
    exp.Neg: Types.get_negative,
    exp.Cast: Types.get_cast,
    exp.TryCast: Types.get_cast,
    exp.Coalesce: Types.get_first,
    exp.Nullif: Types.get_inner,
    exp.Case: Types.get_choice,
    exp.If: Types.get_choice,
    exp.Greatest: Types.get_first,
    exp.Least: Types.get_first,
    exp.Sum: Types.get_sum,
    exp.Avg: Types.get_average,
    exp.Div: Types.get_quotient,
    exp.Concat: Types.get_text,
    exp.DPipe: Types.get_text,
    exp.Substring: Types.get_part,
    exp.Left: Types.get_part,
    exp.Right: Types.get_part,
    exp.TsOrDsToDate: _constant(D.DATE),
    exp.IntDiv: _constant(D.BIGINT),
    exp.CurrentDate: _constant(D.DATE),
    exp.CurrentTimestamp: _constant(D.TIMESTAMPTZ),
    exp.Localtimestamp: _constant(D.TIMESTAMPNTZ),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), Types.get_numeric),
    **dict.fromkeys(SAME_AS_INNER, Types.get_inner),
    **dict.fromkeys(TEXTUAL, _constant(D.TEXT)),
    **dict.fromkeys(INTS, _constant(D.INT)),
    **dict.fromkeys(BIGINTS, _constant(D.BIGINT)),
    **dict.fromkeys(DOUBLES, _constant(D.DOUBLE)),
}
