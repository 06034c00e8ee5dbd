"""JSON lines: an object a line, read a block of lines at a time."""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.errors import SchemaMismatch
from penstock.sdk.rows.doors import js, pa
from penstock.sdk.rows.files import RowFile
from penstock.sdk.rows.json_values import is_bytes, python_type, to_arrow_value
from penstock.sdk.rows.types import REMEDY, Place, check_names, made, to_batch

if TYPE_CHECKING:
    import pyarrow

# What is read at once; the first block tells the columns and the types that nobody knows.
BLOCK_BYTES = 8 * 1024 * 1024
# No line is longer, so that a file of another kind is not read whole.
LINE_BYTES = 256 * 1024 * 1024

_CHANGED = re.compile(r"Column\(/(.+)\) changed from (\w+) to (\w+) in row (\d+)")


def find_schema(file: RowFile, known: "pyarrow.Schema | None") -> "pyarrow.Schema":
    """The fields of the first block's objects, with the types that are known or that it tells."""
    first, _ = next(_blocks(file, lambda done: None), (b"", 1))
    if not first.strip():
        raise SchemaMismatch(f"{file.name} is empty", detail="it needs an object a line")
    if first.lstrip()[:1] == b"[":
        raise SchemaMismatch(
            f"{file.name} is a JSON list", detail="write an object a line, as `jq -c '.[]'` does"
        )
    types = {} if known is None else dict(zip(known.names, known.types, strict=True))
    if any(not _is_native(kind) for kind in types.values()):
        return _find_among(file, first, types)
    try:
        natural = pa.schema([(name, _natural(kind)) for name, kind in types.items()])
        found = js.read_json(
            pa.BufferReader(first),
            js.ReadOptions(use_threads=False, block_size=len(first) + 1),
            js.ParseOptions(explicit_schema=natural),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise _explain(file, first, 1, types, error) from error
    check_names(found.schema.names, file.name)
    # Known ones come first, whether the file has them or not.
    used = _list_names(first, set(types)) if types else set()
    return pa.schema(
        [
            pa.field(field.name, types.get(field.name, field.type))
            for field in found.schema
            if field.name not in types or field.name in used
        ]
    )


def read_batches(
    file: RowFile, schema: "pyarrow.Schema", tell: Callable[[int], None]
) -> "Iterator[pyarrow.RecordBatch]":
    types = dict(zip(schema.names, schema.types, strict=True))
    keys = {name for name, _, _ in file.keys}
    wanted = pa.schema([field for field in schema if field.name not in keys])
    read = _read_native if all(_is_native(field.type) for field in wanted) else _read_values
    for block, line in _blocks(file, tell):
        if block.strip():
            yield read(file, block, line, wanted, types)


def _read_native(
    file: RowFile, block: bytes, line: int, schema: "pyarrow.Schema", types: dict[str, Any]
) -> "pyarrow.RecordBatch":
    natural = pa.schema([pa.field(field.name, _natural(field.type)) for field in schema])
    try:
        found = js.read_json(
            pa.BufferReader(block),
            js.ReadOptions(use_threads=False, block_size=len(block) + 1),
            js.ParseOptions(explicit_schema=natural, unexpected_field_behavior="error"),
        ).combine_chunks()
        columns = [found.column(field.name).combine_chunks().cast(field.type) for field in schema]
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _explain(file, block, line, types, error) from error
    return to_batch(columns, schema, file.name)


def _read_values(
    file: RowFile, block: bytes, line: int, schema: "pyarrow.Schema", types: dict[str, Any]
) -> "pyarrow.RecordBatch":
    """Read objects one by one, for types that Arrow does not read from JSON."""
    kind = pa.struct(list(schema))
    decode = msgspec.json.Decoder(python_type(kind)).decode
    rows: list[Any] = []
    for number, text in enumerate(block.split(b"\n"), line):
        if text.strip():
            try:
                rows.append(to_arrow_value(decode(text), kind))
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise _wrong(file, number, error) from error

    def column_of(field: Any) -> Any:
        def make(start: int, count: int) -> Any:
            return pa.array([row[field.name] for row in rows[start : start + count]], field.type)

        return made(make, len(rows), field.name, Place(file.name, "line", line))

    return to_batch([column_of(field) for field in schema], schema, file.name)


def _find_among(file: RowFile, block: bytes, types: dict[str, Any]) -> "pyarrow.Schema":
    """Which of the known columns a file has, if some are of types that Arrow does not read."""
    names = _list_names(block, None)
    inferred = {}
    if strange := [name for name in names if name not in types]:
        rows = [msgspec.json.decode(each) for each in block.split(b"\n") if each.strip()]
        for name in strange:
            try:
                inferred[name] = pa.array([row.get(name) for row in rows]).type
            except pa.ArrowException as error:
                raise SchemaMismatch(
                    f"field {name!r} of {file.name} has values of several types: {error}",
                    detail=REMEDY,
                ) from error
    return pa.schema([(name, types.get(name, inferred.get(name))) for name in names])


def _list_names(block: bytes, among: set[str] | None) -> dict[str, None]:
    """The fields of the objects in a block, in order."""
    found: dict[str, None] = {}
    decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
    for text in block.split(b"\n"):
        if text.strip():
            try:
                found |= dict.fromkeys(decode(text))
            except msgspec.MsgspecError:
                # Reading it tells what is wrong.
                continue
            if among is not None and among <= found.keys():
                break
    return found


def _blocks(file: RowFile, tell: Callable[[int], None]) -> Iterator[tuple[bytes, int]]:
    """Whole lines, some at a time, and the number of the first."""
    with file.open() as raw:
        source = file.unpack(raw)
        rest, line = b"", 1
        while part := source.read(BLOCK_BYTES):
            head, mark, tail = part.rpartition(b"\n")
            if not mark:
                rest += tail
                if len(rest) > LINE_BYTES:
                    raise SchemaMismatch(
                        f"{file.name}, line {line:,}, has more than {LINE_BYTES} bytes",
                        detail="is it a file of JSON lines, with an object a line?",
                    )
                continue
            block = rest + head + mark
            yield block, line
            line += block.count(b"\n")
            rest = tail
            tell(raw.tell())
        if rest:
            yield rest, line
            tell(raw.tell())


def _explain(
    file: RowFile, block: bytes, line: int, types: dict[str, Any], error: Exception
) -> SchemaMismatch:
    """Find the line that Arrow could not read, which it counts from the start of a block."""
    fields: dict[str, Any] = {name: python_type(kind) for name, kind in types.items()}
    decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
    for number, text in enumerate(block.split(b"\n"), line):
        if not text.strip():
            continue
        try:
            row = decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError) as wrong:
            return _wrong(file, number, wrong)
        for name, value in row.items():
            if types and name not in fields:
                return SchemaMismatch(
                    f"{file.name}, line {number:,}, has field {name!r}, and no line before it",
                    detail=f"leave it out, or say schema={{{name!r}: type}}",
                )
            try:
                msgspec.json.decode(value, type=fields.get(name, Any))
            except msgspec.MsgspecError as wrong:
                return SchemaMismatch(
                    f"field {name!r} of {file.name}, line {number:,}, is no {types[name]}: {wrong}",
                    detail=f"correct it, or say schema={{{name!r}: type}}",
                )
    return _reword(file, block, line, str(error))


def _reword(file: RowFile, block: bytes, line: int, told: str) -> SchemaMismatch:
    """Arrow's own words, which count the objects of a block."""
    if match := _CHANGED.search(told):
        lines = [n for n, text in enumerate(block.split(b"\n"), line) if text.strip()]
        return SchemaMismatch(
            f"field {match[1]!r} of {file.name}, line {lines[int(match[4])]:,}, is a {match[3]}, "
            f"and a {match[2]} before",
            detail=f"correct it, or say schema={{{match[1]!r}: type}}",
        )
    return SchemaMismatch(f"{file.name} cannot be read as JSON lines: {told}", detail=REMEDY)


def _wrong(file: RowFile, line: int, error: Exception) -> SchemaMismatch:
    return SchemaMismatch(
        f"{file.name}, line {line:,}, is no object as the others are: {error}",
        detail="write an object a line, with the same fields and types",
    )


def _is_native(kind: "pyarrow.DataType") -> bool:
    """Whether Arrow reads values of a type from JSON, or what it can cast to them."""
    types = pa.types
    if types.is_map(kind) or is_bytes(kind) or types.is_duration(kind) or types.is_time(kind):
        return False
    if types.is_nested(kind):
        return all(_is_native(kind.field(at).type) for at in range(kind.num_fields))
    return True


def _natural(kind: "pyarrow.DataType") -> Any:
    """The type as which Arrow reads such values from JSON."""
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([pa.field(field.name, _natural(field.type)) for field in kind])
    if types.is_nested(kind) and not types.is_dictionary(kind):
        return pa.list_(_natural(kind.value_type))
    if types.is_float16(kind):
        return pa.float32()
    if types.is_dictionary(kind):
        return _natural(kind.value_type)
    return pa.string() if types.is_date(kind) else kind
