"""Which types rows get on their way to a table: the caller's, the table's, or their own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.errors import InvalidRequest, SchemaMismatch
from penstock.sdk.functions.types import read_type, to_arrow
from penstock.sdk.rows.doors import pa

if TYPE_CHECKING:
    import pyarrow

# A type for each column that needs one, or a whole Arrow schema.
Schema: TypeAlias = Any

REMEDY = "correct it, or say schema={'column': type}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows come from, and what their first one is called there, for errors."""

    what: str = "the data"
    word: str = "row"
    first: int = 1

    def after(self, rows: int) -> "Place":
        return replace(self, first=self.first + rows)

    def at(self, row: int) -> str:
        return f"{self.what}, {self.word} {self.first + row:,}"


def read_schema(schema: Schema, what: str = "schema") -> "pyarrow.Schema":
    """An Arrow schema, also from a mapping of names to types."""
    if isinstance(schema, pa.Schema):
        return schema
    if hasattr(schema, "__arrow_c_schema__") and not isinstance(schema, Mapping):
        return pa.schema(schema)
    if not isinstance(schema, Mapping):
        raise InvalidRequest(f"{what} is {schema!r}", detail='write {"column": int}')
    return pa.schema(
        [(name, to_arrow(read_type(kind, f"{what}[{name!r}]"))) for name, kind in schema.items()]
    )


def choose_types(
    found: "pyarrow.Schema", wanted: "pyarrow.Schema | None", known: "pyarrow.Schema | None"
) -> "pyarrow.Schema":
    """The columns that were found, with the types that the caller wants, or that a table has."""
    check_names(found.names)
    fields = list(found)
    for place, field in enumerate(fields):
        at = -1 if known is None else known.get_field_index(field.name)
        # What Arrow cannot cast, the server may take as it is.
        if known is not None and at >= 0 and can_cast(field.type, known.field(at).type):
            fields[place] = pa.field(field.name, known.field(at).type)
    if wanted is not None:
        if missing := [name for name in wanted.names if name not in found.names]:
            raise SchemaMismatch(
                f"schema has column {missing[0]!r}, and the data does not", detail="leave it out"
            )
        for field in wanted:
            fields[found.get_field_index(field.name)] = field
    return pa.schema(fields, found.metadata)


def check_names(names: list[str], what: str = "the data") -> None:
    """Refuse two columns of one name, which no table can have."""
    seen = set[str]()
    for name in names:
        if name in seen:
            raise SchemaMismatch(f"{what} has two columns {name!r}", detail="rename one of them")
        seen.add(name)


def conform(
    batch: "pyarrow.RecordBatch", schema: "pyarrow.Schema", place: Place
) -> "pyarrow.RecordBatch":
    """Give a batch these columns and types; one that it lacks is null."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    columns = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        if at < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(at)
        if column.type != field.type:
            column = cast(column, field, place)
        columns.append(column)
    return to_batch(columns, schema, place.what)


def to_batch(
    columns: list[Any], schema: "pyarrow.Schema", what: str = "the data"
) -> "pyarrow.RecordBatch":
    for column, field in zip(columns, schema, strict=True):
        if not field.nullable and column.null_count:
            raise SchemaMismatch(
                f"column {field.name!r} of {what} has no value in some rows, and needs one in each",
                detail="give each row a value, or make the column nullable",
            )
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def cast(column: Any, field: "pyarrow.Field[Any]", place: Place) -> Any:
    """The values as another type; the error names the row of the first that can't be."""

    def run(start: int, count: int) -> Any:
        return column.slice(start, count).cast(field.type)

    return made(run, len(column), field.name, place)


def made(make: Callable[[int, int], Any], count: int, name: str, place: Place) -> Any:
    """A column made of so many values; the error names the first that it can't be made of.

    `make` is given where to start and how many to take.
    """
    try:
        return make(0, count)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        low, high = 0, count
        while high - low > 1:
            middle = (low + high) // 2
            try:
                make(low, middle - low)
            except pa.ArrowException:
                high = middle
            else:
                low = middle
        # What fails for no value is the type's fault.
        where = f"{place.at(low)}," if count and _fails(make, low) else place.what
        raise SchemaMismatch(
            f"column {name!r} of {where} does not fit: {error}", detail=REMEDY
        ) from error


def can_cast(kind: "pyarrow.DataType", to: "pyarrow.DataType") -> bool:
    """Whether Arrow can cast the types at all, whatever the values."""
    if kind == to:
        return True
    if _is_view(kind):
        return False
    try:
        pa.array([], kind).cast(to)
    except pa.ArrowNotImplementedError:
        return False
    except pa.ArrowException:
        pass
    return True


def _is_view(kind: "pyarrow.DataType") -> bool:
    """List views and run-end encoded values, which Arrow cannot cast with values in them."""
    types = pa.types
    if types.is_list_view(kind) or types.is_large_list_view(kind) or types.is_run_end_encoded(kind):
        return True
    inner = range(kind.num_fields) if types.is_nested(kind) else ()
    return any(_is_view(kind.field(at).type) for at in inner)


def _fails(make: Callable[[int, int], Any], at: int) -> bool:
    try:
        make(at, 0)
    except pa.ArrowException:
        return False
    try:
        make(at, 1)
    except pa.ArrowException:
        return True
    return False
