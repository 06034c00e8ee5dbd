"""Expressions whose value depends on the engine: when two dialects still agree.

The behaviour of each engine is from its manual; types come from the catalog's schemas, and an
unknown type is never assumed.
"""

from collections.abc import Callable

from sqlglot import exp

Check = Callable[[exp.Expr, str, str], str | None]

INTEGERS = exp.DataType.INTEGER_TYPES
FLOATS = exp.DataType.FLOAT_TYPES
TEXTS = exp.DataType.TEXT_TYPES
EXACT = {*INTEGERS, *TEXTS, exp.DType.BOOLEAN, exp.DType.DATE}
ZONELESS = {exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME}

# The result of int / int, rounding of fractions to integers, NULL in GREATEST.
DIVIDES = {"spark": "double", "databricks": "double", "duckdb": "double", "bigquery": "double",
           "trino": "integer", "presto": "integer", "postgres": "integer",
           "snowflake": "decimal"}  # fmt: skip
TRUNCATES = {"spark", "databricks"}
NULL_IS_LEAST_KNOWN = {"trino", "presto", "snowflake", "bigquery"}
TRIMS_ALL_WHITESPACE = {"trino", "presto", "bigquery"}
LIKE_ESCAPES_BY_BACKSLASH = {"spark", "databricks", "postgres", "bigquery"}
NO_TRY_CAST = {"postgres"}
HAS_STRUCTS = {"spark", "databricks", "trino", "presto", "bigquery", "duckdb"}


def _kind(node: exp.Expr) -> exp.DType | None:
    kind = node.type.this if node.type is not None else None
    return kind if isinstance(kind, exp.DType) and kind is not exp.DType.UNKNOWN else None


def _check_text(node: exp.Expr, source: str, target: str) -> str | None:
    return None if _kind(node.this) in TEXTS else "this is sure to be the same only for text"


def _check_joined_text(node: exp.Expr, source: str, target: str) -> str | None:
    parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    if all(_kind(part) in TEXTS for part in parts):
        return None
    return "a value that is not text becomes text in another format"


def _check_comparison(node: exp.Expr, source: str, target: str) -> str | None:
    if node.args.get("unnest") or node.args.get("field"):
        return "a search in an array is not the same everywhere"
    sides = [node.this, *(value for key, value in node.args.items() if key != "this")]
    kinds = {_kind(side) for part in sides for side in (part if isinstance(part, list) else [part])
             if isinstance(side, exp.Expr)} - {None, exp.DType.NULL}  # fmt: skip
    texts = {kind for kind in kinds if kind in TEXTS}
    if texts and kinds - texts:
        return "text is compared with another type by other rules"
    return None


def _check_is(node: exp.Expr, source: str, target: str) -> str | None:
    # sqlglot writes `a IS TRUE` as `a` for these, which is NULL and not false where a is NULL.
    if isinstance(node.expression, exp.Boolean) and target in {"trino", "presto", "snowflake"}:
        return f"{target} has no IS TRUE or IS FALSE"
    return None


def _check_average(node: exp.Expr, source: str, target: str) -> str | None:
    kind = _kind(node.this)
    if kind in FLOATS or (kind in INTEGERS and "snowflake" not in {source, target}):
        return None
    return "an average of exact numbers is rounded to other digits"


def _check_divide(node: exp.Expr, source: str, target: str) -> str | None:
    kinds = {_kind(node.this), _kind(node.expression)}
    if kinds & FLOATS and None not in kinds:
        return None
    if not kinds <= INTEGERS:
        return "a division of these types is rounded otherwise in other engines"
    if (DIVIDES[source], DIVIDES[target]) in {("double", "integer"), ("double", "double")}:
        return None
    if DIVIDES[source] == DIVIDES[target] == "integer":
        return None
    return f"a division of integers is {DIVIDES[source]} here and {DIVIDES[target]} in {target}"


def _check_cast(node: exp.Expr, source: str, target: str) -> str | None:
    origin, wanted = _kind(node.this), node.args["to"].this
    if node.args.get("format") or node.args.get("default"):
        return "a cast with a format is not the same everywhere"
    if isinstance(node.this, exp.Literal | exp.Null):
        return _check_literal_cast(node, source, target)
    if origin is None:
        return "a cast of a type that is not known"
    if origin == wanted or (origin in INTEGERS and wanted in FLOATS):
        return None
    if origin in INTEGERS and wanted in INTEGERS:
        narrow = wanted != exp.DType.BIGINT and origin != wanted
        return "a cast to a narrower integer overflows in other ways" if narrow else None
    if wanted in TEXTS:
        plain = origin in EXACT
        return None if plain else "a number or time becomes text in another format"
    if origin in TEXTS:
        if isinstance(node, exp.TryCast) and target in NO_TRY_CAST:
            return f"text that is no such value gives NULL here and an error in {target}"
        return "text is read as a value by other rules"
    if wanted in INTEGERS and (source in TRUNCATES) == (target in TRUNCATES):
        return None if source in TRUNCATES else "a fraction is rounded to an integer otherwise"
    if wanted in INTEGERS:
        return "a fraction becomes an integer by cutting in one engine and rounding in the other"
    return "a cast between these types is not the same everywhere"


def _check_literal_cast(node: exp.Expr, source: str, target: str) -> str | None:
    """DATE '2024-01-01' is the same everywhere; a literal that needs a time zone is not."""
    wanted = node.args["to"].this
    if isinstance(node.this, exp.Null) or wanted in {exp.DType.DATE, *TEXTS}:
        return None
    if wanted in {*INTEGERS, *FLOATS, exp.DType.DECIMAL} and node.this.is_number:
        return None
    if wanted in {exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ}:
        return None
    return "a literal of this type is read by the engine's own rules"


def _check_add(node: exp.Expr, source: str, target: str) -> str | None:
    kinds = {_kind(node.this), _kind(node.expression)}
    numbers = {*INTEGERS, *FLOATS, exp.DType.DECIMAL}
    if kinds <= numbers:
        return None
    return "arithmetic on what is not known to be numbers is not the same everywhere"


def _check_part(node: exp.Expr, source: str, target: str) -> str | None:
    """EXTRACT and the like: parts of a date, or of a time without zone."""
    if isinstance(node, exp.Extract):
        unit, value = node.name.upper(), node.expression
        if unit not in {"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE"}:
            return f"{unit} is counted in other ways in other engines"
    else:
        value = node.this
    while isinstance(value, exp.TsOrDsToDate | exp.Cast) and _kind(value) == exp.DType.DATE:
        value = value.this
    if _kind(value) not in ZONELESS:
        return "a part of a time depends on the session's time zone"
    return None


def _check_trunc(node: exp.Expr, source: str, target: str) -> str | None:
    if str(node.args["unit"].name).upper() not in {"YEAR", "QUARTER", "MONTH", "DAY", "HOUR"}:
        return "this unit starts at another moment in other engines"
    if _kind(node.this) not in ZONELESS - {exp.DType.DATE}:
        return "truncating a date, or a time with a zone, is not the same everywhere"
    return None


def _check_substring(node: exp.Expr, source: str, target: str) -> str | None:
    if reason := _check_text(node, source, target):
        return reason
    start, length = node.args.get("start"), node.args.get("length")
    if not _is_count(start, 1) or not (length is None or _is_count(length, 0)):
        return "SUBSTRING must start at a number from 1 to mean the same everywhere"
    return None


def _check_side(node: exp.Expr, source: str, target: str) -> str | None:
    if not _is_count(node.expression, 0):
        return "LEFT and RIGHT must have a number from 0 to mean the same everywhere"
    return _check_text(node, source, target)


def _check_right(node: exp.Expr, source: str, target: str) -> str | None:
    # sqlglot's SUBSTR of the end is empty where the text is shorter than requested.
    if target in {"trino", "presto"}:
        return f"{target} has no RIGHT"
    return _check_side(node, source, target)


def _check_quarter(node: exp.Expr, source: str, target: str) -> str | None:
    return "postgres has no QUARTER" if target == "postgres" else _check_part(node, source, target)


def _check_absent(node: exp.Expr, source: str, target: str) -> str | None:
    # sqlglot writes COUNT_IF as a SUM, which is NULL and not 0 where there are no rows.
    return f"postgres has no {node.key.upper()}" if target == "postgres" else None


def _check_position(node: exp.Expr, source: str, target: str) -> str | None:
    more = node.args.get("position") or node.args.get("occurrence")
    if more:
        return "searching from a position is not the same everywhere"
    return _check_text(node, source, target)


def _check_trim(node: exp.Expr, source: str, target: str) -> str | None:
    if node.args.get("expression"):
        return _check_text(node, source, target)
    differs = (source in TRIMS_ALL_WHITESPACE) != (target in TRIMS_ALL_WHITESPACE)
    if differs:
        return "TRIM takes spaces off in one engine, tabs too in the other"
    return _check_text(node, source, target)


def _check_like(node: exp.Expr, source: str, target: str) -> str | None:
    pattern = node.expression
    plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.name
    same = (source in LIKE_ESCAPES_BY_BACKSLASH) == (target in LIKE_ESCAPES_BY_BACKSLASH)
    return None if plain or same else "a backslash in LIKE escapes in one engine, not in the other"


def _check_extreme(node: exp.Expr, source: str, target: str) -> str | None:
    differs = (source in NULL_IS_LEAST_KNOWN) != (target in NULL_IS_LEAST_KNOWN)
    return "NULL is skipped in one engine and wins in the other" if differs else None


def _check_round(node: exp.Expr, source: str, target: str) -> str | None:
    exact = _kind(node.this) in {exp.DType.DECIMAL, *INTEGERS}
    if exact or "postgres" not in {source, target}:
        return None
    return "postgres rounds halves of floating numbers to even"


def _check_whole(node: exp.Expr, source: str, target: str) -> str | None:
    return "digits after the point are counted otherwise" if node.args.get("decimals") else None


def _check_dot(node: exp.Expr, source: str, target: str) -> str | None:
    if not {source, target} <= HAS_STRUCTS:
        return "fields of structs are read in another way"
    kind = _kind(node.this)
    return None if kind is exp.DType.STRUCT else "a field of a type that is not a known struct"


def _check_date_cast(node: exp.Expr, source: str, target: str) -> str | None:
    return None if _kind(node.this) in ZONELESS else "a value that is not known to be a date"


def _check_pow(node: exp.Expr, source: str, target: str) -> str | None:
    return None if {_kind(node.this), _kind(node.expression)} & FLOATS else "POWER of exact numbers"


def _is_count(node: object, least: int) -> bool:
    return isinstance(node, exp.Literal) and node.is_int and int(node.name) >= least


CHECKS: dict[type[exp.Expr], Check] = {
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), _check_comparison),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In), _check_comparison),
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Length, exp.Replace, exp.StartsWith), _check_text),
    exp.DPipe: _check_joined_text,
    exp.Concat: _check_joined_text,
    exp.Is: _check_is,
    exp.Avg: _check_average,
    exp.Mul: _check_add,
    exp.Mod: _check_add,
    exp.Div: _check_divide,
    exp.Cast: _check_cast,
    exp.TryCast: _check_cast,
    exp.Add: _check_add,
    exp.Sub: _check_add,
    exp.Extract: _check_part,
    exp.Year: _check_part,
    exp.Quarter: _check_quarter,
    exp.Month: _check_part,
    exp.Day: _check_part,
    exp.TimestampTrunc: _check_trunc,
    exp.DateTrunc: _check_trunc,
    exp.TsOrDsToDate: _check_date_cast,
    exp.Substring: _check_substring,
    exp.Left: _check_side,
    exp.Right: _check_right,
    exp.CountIf: _check_absent,
    exp.ApproxDistinct: _check_absent,
    exp.StrPosition: _check_position,
    exp.Trim: _check_trim,
    exp.Like: _check_like,
    exp.ILike: _check_like,
    exp.Greatest: _check_extreme,
    exp.Least: _check_extreme,
    exp.Round: _check_round,
    exp.Ceil: _check_whole,
    exp.Floor: _check_whole,
    exp.Dot: _check_dot,
    exp.Pow: _check_pow,
}
