"""Change a table's columns and rows in one version. Everything here blocks.

Lance's Merge takes a schema and all fragments: those that were there, each with its deleted rows
and perhaps a file of new columns, and new ones. Only it does all of that in one commit.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import DataFile, FragmentMetadata
from lance.schema import LanceSchema

from penstock.errors import InvalidTableState
from penstock.lance.commit.manifest import read_varint
from penstock.lance.commit.removal import Removal
from penstock.lance.commit.replacement import ColumnFile, commit_operation

# Of Lance's protobuf message of a field, and of its metadata's entries.
FIELD_NAME, FIELD_ID, FIELD_PARENT, FIELD_METADATA = 2, 3, 4, 10
ENTRY_KEY, ENTRY_VALUE = 1, 2
NO_PARENT = -1


def evolve_schema(
    dataset: LanceDataset,
    columns: "Sequence[str | pa.Field[Any]]",
    metadata: Mapping[str, str | None],
) -> LanceSchema:
    """A schema of columns that the table has, by name, and of new ones.

    New ones get ids that nothing in the table has used. Metadata of None is removed.
    """
    taken = _by_column(dataset.lance_schema)
    after: int = dataset.max_field_id + 1
    protos: list[bytes] = []
    for column in columns:
        if isinstance(column, str):
            protos += taken[column]
            continue
        made = _by_column(LanceSchema.from_pyarrow(pa.schema([column])))[column.name]
        protos += [_shift_ids(each, after) for each in made]
        after += len(made)
    # Values are lists of bytes.
    told: dict[str, list[int]] = json.loads(_take_apart(dataset.lance_schema)[1])
    for key, value in metadata.items():
        told.pop(key, None)
        if value is not None:
            told[key] = list(value.encode())
    return _from_protos(json.dumps(told), *protos)


def commit_fields(
    dataset: LanceDataset,
    names: Mapping[str, str],
    metadata: Mapping[str, Mapping[str, str]],
    properties: Mapping[str, str],
) -> int:
    """Commit new names and metadata of columns, both by their old names, in one version."""
    head, protos = _take_apart(dataset.lance_schema)[1], list[bytes]()
    for name, (own, *inside) in _by_column(dataset.lance_schema).items():
        protos += [_edit(own, names.get(name), metadata.get(name, {})), *inside]
    # Whether a field takes nulls stays, so appends may go on meanwhile.
    operation = LanceOperation.Project(_from_protos(head, *protos), preserves_nullability=True)
    return commit_operation(dataset, operation, properties)


def commit_draft(
    dataset: LanceDataset, schema: LanceSchema, files: Mapping[int, ColumnFile]
) -> int:
    """Commit a version that only has other columns; new ones are null.

    Those that take the names of others must be in the files, for every fragment.
    """
    return commit_evolution(dataset, schema, Removal([], [], 0), files, (), {})


def list_remade(dataset: LanceDataset, schema: LanceSchema) -> list[str]:
    """The columns that take the names of others."""
    before = list_field_ids(dataset.lance_schema)
    return [n for n, id in list_field_ids(schema).items() if before.get(n, id) != id]


def is_same_schema(dataset: LanceDataset, schema: LanceSchema) -> bool:
    """Whether a schema is the table's: the same columns, and the same metadata."""
    had = dataset.lance_schema
    is_same = list_field_ids(had) == list_field_ids(schema)
    return is_same and had.to_pyarrow().metadata == schema.to_pyarrow().metadata


def commit_evolution(
    dataset: LanceDataset,
    schema: LanceSchema,
    removal: Removal,
    files: Mapping[int, ColumnFile],
    added: Sequence[str],
    properties: Mapping[str, str],
) -> int:
    """Commit columns, removed rows, files of columns by fragment, and new fragments at once.

    The removal keeps all fragments.
    """
    changed = {each.id: each for each in removal.updated}
    fragments = []
    for fragment in dataset.get_fragments():
        id = fragment.fragment_id
        metadata = changed.get(id, fragment.metadata)
        if (file := files.get(id)) is not None:
            if file.rows != fragment.physical_rows:
                raise InvalidTableState(f"{file.path} does not have the length of fragment {id}")
            metadata.files.append(_to_data_file(file))
        fragments.append(metadata)
    # Lance numbers new fragments itself, with numbers that no fragment ever had.
    fragments += [FragmentMetadata.from_json(text) for text in added]
    return commit_operation(dataset, LanceOperation.Merge(fragments, schema), properties)


def list_field_ids(schema: LanceSchema) -> dict[str, int]:
    """The ids of a schema's columns, by name."""
    return {field.name(): field.id() for field in schema.fields()}


def _to_data_file(file: ColumnFile) -> DataFile:
    return DataFile(
        file.path,
        list(file.fields),
        list(file.column_indices),
        file.major,
        file.minor,
        file.size_bytes,
    )


def _by_column(schema: LanceSchema) -> dict[str, list[bytes]]:
    """The encoded fields of each column: its own, then those inside it."""
    protos: list[bytes] = _take_apart(schema)[2:]
    found: dict[str, list[bytes]] = {}
    at = 0
    for field in schema.fields():
        count = _count(field)
        found[field.name()] = protos[at : at + count]
        at += count
    return found


def _count(field: Any) -> int:
    return 1 + sum(map(_count, field.children()))


def _take_apart(schema: LanceSchema) -> list[Any]:
    # The only way to a schema with ids of one's own: what pickling it would write.
    made: Any = schema.__reduce__()
    return [made[0], *made[1]]


def _from_protos(metadata: str, *protos: bytes) -> LanceSchema:
    made: LanceSchema = LanceSchema._from_protos(metadata, *protos)
    return made


def _edit(proto: bytes, name: str | None, metadata: Mapping[str, str]) -> bytes:
    """The encoded field with another name, unless that is None, and with some other metadata."""
    edited = bytearray()
    for number, value, part in _split(proto):
        is_entry = number == FIELD_METADATA and _read_key(part[-value:]) in metadata
        if not is_entry and (number != FIELD_NAME or name is None):
            edited += part
    if name is not None:
        edited += _text(FIELD_NAME, name.encode())
    for key, text in metadata.items():
        entry = _text(ENTRY_KEY, key.encode()) + _text(ENTRY_VALUE, text.encode())
        edited += _text(FIELD_METADATA, entry)
    return bytes(edited)


def _read_key(entry: bytes) -> str:
    parts = _split(entry)
    return next((part[-size:].decode() for n, size, part in parts if n == ENTRY_KEY and size), "")


def _shift_ids(proto: bytes, by: int) -> bytes:
    """The encoded field with larger ids, of itself and of the one that it is in."""
    id, parent, rest = 0, 0, bytearray()
    for number, value, part in _split(proto):
        if number == FIELD_ID:
            id = value
        elif number == FIELD_PARENT:
            parent = value
        else:
            rest += part
    is_inside = parent < 1 << 63
    above = parent + by if is_inside else NO_PARENT
    return b"".join([_varint(FIELD_ID, id + by), _varint(FIELD_PARENT, above), bytes(rest)])


def _split(proto: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The parts of an encoded message: the number of each, its value or length, and itself."""
    at = 0
    while at < len(proto):
        start = at
        key, at = read_varint(proto, at)
        value, at = read_varint(proto, at)
        if key & 7 == 2:
            at += value
        yield key >> 3, value, proto[start:at]


def _text(number: int, value: bytes) -> bytes:
    return _encode(number << 3 | 2) + _encode(len(value)) + value


def _varint(number: int, value: int) -> bytes:
    return _encode(number << 3) + _encode(value & (1 << 64) - 1)


def _encode(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
