"""Computed columns: an SQL expression bound to a column, kept in the field's metadata.

The keys are those that open-source lancedb reads and writes, so a binding made here is known there
and the other way round; `penstock.binding` is ours, and tells a column from one of the same name
that was dropped before. Everything here blocks.
"""

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.datasets.columns import (
    SYSTEM_COLUMNS,
    check_column_name,
    get_field,
    parse_path,
    show_path,
)
from penstock.datasets.details import to_json_type
from penstock.datasets.expressions import TOKEN, check_expression
from penstock.datasets.schemas import to_arrow_type
from penstock.errors import ColumnNotFound, InvalidRequest, SchemaMismatch

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

COMPUTED = "computed_column"
KIND, EXPRESSION, INPUTS = f"{COMPUTED}.kind", f"{COMPUTED}.expression", f"{COMPUTED}.inputs"
REFRESH = "computed_refresh"
BINDING = "penstock.binding"

OUT = "__computed"
# Functions whose value is not the same each time they are asked; the second kind needs no brackets.
UNSTABLE = {"random", "rand", "uuid", "gen_random_uuid", "now", "today"}
UNSTABLE_WORDS = {"current_timestamp", "current_date", "current_time", "localtimestamp"}
_PROJECTION = re.compile(r"LanceRead: .*?projection=\[(.*)\], num_fragments=", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Computed:
    """A computed column of one version of a table; inputs are field paths."""

    name: str
    expression: str
    inputs: tuple[str, ...]
    binding: str
    data_type: dict[str, Any]


def list_computed(schema: "pa.Schema") -> list[Computed]:
    """The computed columns of a schema."""
    return [found for field in schema if (found := _read(field)) is not None]


def get_computed(dataset: "LanceDataset", path: str) -> Computed:
    """A column that must be computed, with its binding as it stands in this version."""
    name = get_field(dataset, path).path
    parts = parse_path(name)
    field = dataset.schema.field(parts[0]) if len(parts) == 1 else None
    found = None if field is None else _read(field)
    if found is None:
        raise InvalidRequest(
            f"column {name} is not computed",
            detail="add it with `computed` to have it filled by backfill",
        )
    return found


def add_computed(dataset: "LanceDataset", expressions: Mapping[str, str]) -> tuple[int, list[str]]:
    """Add columns without values, bound to expressions; returns the version and the bindings."""
    import pyarrow as pa

    fields, bindings = [], []
    for name, (kind, inputs) in check_new(dataset, expressions).items():
        bindings.append(uuid.uuid4().hex)
        metadata = {
            COMPUTED: "true",
            KIND: "sql",
            EXPRESSION: expressions[name],
            INPUTS: json.dumps(inputs, ensure_ascii=False),
            f"{REFRESH}.source_signature": "{}",
            BINDING: bindings[-1],
        }
        fields.append(pa.field(name, kind, True, metadata))
    dataset.add_columns(pa.schema(fields))
    return dataset.version, bindings


def check_new(
    dataset: "LanceDataset", expressions: Mapping[str, str]
) -> "dict[str, tuple[pa.DataType, list[str]]]":
    """Refuse computed columns that can't be added; returns what is inferred of each."""
    present = set(dataset.schema.names)
    for name in expressions:
        if check_column_name(name) in present:
            raise SchemaMismatch(
                f"column {name!r} exists already", detail="choose another name, or drop it first"
            )
    return {name: infer(dataset, name, sql) for name, sql in expressions.items()}


def infer(dataset: "LanceDataset", name: str, expression: str) -> "tuple[pa.DataType, list[str]]":
    """The type of an expression's values, and the paths of the fields that it reads."""
    import pyarrow.types as t

    what = f"the expression of {name}"
    check_expression(what, expression)
    _check_stable(what, expression)
    # With row addresses, because Lance does not scan for constants alone.
    scanner = dataset.scanner(columns={OUT: expression}, with_row_address=True)
    kind = scanner.projected_schema.field(OUT).type
    if t.is_null(kind):
        raise InvalidRequest(f"{what} has no type", detail="use CAST(NULL AS a type)")
    match = _PROJECTION.search(scanner.explain_plan())
    inputs = _split_paths(match[1], _list_paths(dataset)) if match else None
    if inputs is None:
        raise InvalidRequest(f"{what} has inputs that cannot be told apart", detail="rename them")
    return kind, inputs


def check_where(dataset: "LanceDataset", where: str) -> None:
    """Refuse a condition that Lance could not evaluate."""
    check_expression("where", where)
    dataset.scanner(columns=[], filter=where, with_row_address=True).explain_plan()


def refuse_value(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"column {name!r} is computed and takes no values",
        detail="leave it out or null; backfill_column fills it",
    )


def _read(field: "pa.Field[Any]") -> Computed | None:
    metadata = {k.decode(): v.decode(errors="replace") for k, v in (field.metadata or {}).items()}
    if metadata.get(COMPUTED) != "true" or EXPRESSION not in metadata:
        return None
    try:
        inputs = json.loads(metadata.get(INPUTS, "[]"))
    except ValueError:
        inputs = []
    texts = isinstance(inputs, list) and all(_is_path(text) for text in inputs)
    return Computed(
        field.name,
        metadata[EXPRESSION],
        tuple(inputs) if texts else (),
        # One that another client bound is told apart by what it is bound to.
        metadata.get(BINDING, metadata[EXPRESSION])[:200],
        _show_type(field.type),
    )


def _is_path(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(parse_path(text))
    except InvalidRequest:
        return False


def _show_type(kind: "pa.DataType") -> dict[str, Any]:
    """A type in the protocol's JSON form, or by pyarrow's name where that form loses something."""
    shown = to_json_type(kind)
    try:
        return shown if to_arrow_type(shown) == kind else {"type": str(kind)}
    except InvalidRequest:
        return {"type": str(kind)}


def _check_stable(what: str, expression: str) -> None:
    """Refuse what would not give the same value for the same row each time."""
    depth = 0
    tokens = TOKEN.findall(expression)
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        depth += (token in "([") - (token in ")]")
        word = token.lower()
        if (token == "," and depth == 0) or token == ";":
            raise InvalidRequest(
                f"{what} is more than one expression", detail=f"remove what follows {token!r}"
            )
        if word in UNSTABLE_WORDS or (word in UNSTABLE and following == "("):
            raise InvalidRequest(
                f"{what} uses {word}, which is not the same each time",
                detail="use only what a row itself says",
            )
        if word in SYSTEM_COLUMNS:
            raise InvalidRequest(
                f"{what} reads {word}, which Lance may change", detail="read columns of the table"
            )


def _list_paths(dataset: "LanceDataset") -> list[str]:
    """Every field that an expression can read, the longest path first."""

    def walk(fields: Any, parent: tuple[str, ...]) -> Iterator[str]:
        for field in fields:
            path = (*parent, field.name())
            yield show_path(path)
            yield from walk(field.children(), path)

    return sorted(walk(dataset.lance_schema.fields(), ()), key=len, reverse=True)


def _split_paths(text: str, known: Sequence[str]) -> list[str] | None:
    """Split a list of paths at its commas, some of which may belong to a name."""
    if not text:
        return []
    for path in known:
        if text == path:
            return [path]
        if text.startswith(f"{path}, "):
            rest = _split_paths(text[len(path) + 2 :], known)
            if rest is not None:
                return [path, *rest]
    return None


def check_known(dataset: "LanceDataset", column: Computed) -> None:
    """Refuse a binding whose inputs are not there, as after a change by path."""
    for path in column.inputs:
        try:
            get_field(dataset, path)
        except ColumnNotFound as error:
            raise InvalidRequest(
                f"computed column {column.name!r} reads {path}, which does not exist",
                detail="drop the computed column, or bring its input back",
            ) from error
