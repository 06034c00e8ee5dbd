"""CSV: text with a line of names, read a block at a time."""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from penstock.errors import SchemaMismatch
from penstock.sdk.rows.doors import csv, pa
from penstock.sdk.rows.files import RowFile
from penstock.sdk.rows.json_values import from_text
from penstock.sdk.rows.types import REMEDY, Place, check_names

if TYPE_CHECKING:
    import pyarrow

# What is read at once; the first block tells the types of columns that nobody knows.
BLOCK_BYTES = 8 * 1024 * 1024

_VALUE = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (.+): invalid value '(.*)'",
    re.S,
)
_LINE = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)", re.S)


def find_schema(file: RowFile, known: "pyarrow.Schema | None") -> "pyarrow.Schema":
    """The columns of the first line, and their types, known or told by the first block."""
    types = {} if known is None else dict(zip(known.names, known.types, strict=True))
    with _Reader(file, types) as reader:
        return reader.schema


def read_batches(
    file: RowFile, schema: "pyarrow.Schema", tell: Callable[[int], None]
) -> "Iterator[pyarrow.RecordBatch]":
    types = dict(zip(schema.names, schema.types, strict=True))
    with _Reader(file, types) as reader:
        for batch in reader:
            yield batch
            tell(reader.tell())


class _Reader:
    """Batches of a CSV file; errors name the file, the row and the column."""

    def __init__(self, file: RowFile, types: dict[str, Any]) -> None:
        self._file = file
        # Read as texts first, because CSV has no word for them.
        self._texts = {name: kind for name, kind in types.items() if not _is_native(kind)}
        native = {name: pa.string() if name in self._texts else types[name] for name in types}
        self._raw = file.open()
        # As its lines are counted, if no field has several.
        self._place = Place(file.name, "line", 2)
        try:
            self._reader = csv.open_csv(
                file.unpack(self._raw),
                # One thread is quicker here, and only then do errors tell the row.
                csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
                csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
                csv.ConvertOptions(
                    column_types=native,
                    strings_can_be_null=True,
                    # An empty field is null; an empty text is in quotes.
                    quoted_strings_can_be_null=False,
                    null_values=["", *file.nulls],
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._explain(error) from error
        names = self._reader.schema.names
        check_names(names, file.name)
        for field in self._reader.schema:
            if pa.types.is_binary(field.type) and field.name not in types:
                raise SchemaMismatch(
                    f"column {field.name!r} of {file.name} is not UTF-8",
                    detail="convert the file, as in `iconv -f latin1 -t utf-8`",
                )
        self.schema = pa.schema(
            [pa.field(f.name, self._texts.get(f.name, f.type)) for f in self._reader.schema]
        )

    def __iter__(self) -> "Iterator[pyarrow.RecordBatch]":
        while True:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                return
            except pa.ArrowInvalid as error:
                raise self._explain(error) from error
            columns = [
                from_text(column, self.schema.field(name), self._place)
                if name in self._texts
                else column
                for name, column in zip(self.schema.names, batch.columns, strict=True)
            ]
            self._place = self._place.after(batch.num_rows)
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def tell(self) -> int:
        return int(self._raw.tell())

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *raised: object) -> None:
        self._raw.close()

    def _explain(self, error: Exception) -> SchemaMismatch:
        name, told = self._file.name, str(error)
        if match := _VALUE.search(told):
            column = self._name_of(int(match[1]))
            at = "" if match[2] is None else f", line {int(match[2]):,}"
            return SchemaMismatch(
                f"column {column} of {name}{at}: {match[4]!r} is no {match[3]}",
                detail=f"correct it, or say schema={{{column}: type}}, as in str",
            )
        if match := _LINE.search(told):
            return SchemaMismatch(
                f"{name}, line {int(match[1]):,}, has {match[3]} fields, and its first line "
                f"has {match[2]}",
                detail="correct it; a field with a comma or a quote in it is in quotes",
            )
        if "Empty CSV" in told:
            return SchemaMismatch(
                f"{name} is empty", detail="a CSV file begins with the names of its columns"
            )
        return SchemaMismatch(f"{name} cannot be read as CSV: {told}", detail=REMEDY)

    def _name_of(self, place: int) -> str:
        """The name of a column that a conversion failed for, also while the file is opened."""
        try:
            with self._file.open() as raw:
                head = csv.open_csv(
                    self._file.unpack(raw),
                    csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
                    csv.ParseOptions(delimiter=self._file.delimiter, newlines_in_values=True),
                )
                return repr(head.schema.names[place])
        except (pa.ArrowInvalid, IndexError):
            return f"number {place + 1}"


def _is_native(kind: "pyarrow.DataType") -> bool:
    """Whether CSV has a form for values of a type."""
    types = pa.types
    plain = (
        *(types.is_null, types.is_boolean, types.is_integer, types.is_float32, types.is_float64),
        *(types.is_date, types.is_time, types.is_timestamp, types.is_decimal128),
        *(types.is_string, types.is_large_string),
    )
    return any(is_it(kind) for is_it in plain)
