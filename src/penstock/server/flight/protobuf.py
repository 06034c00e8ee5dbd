"""Protobuf, as far as the few messages of Flight need it: numbers, texts and messages in messages.

A message is a map from the numbers of its fields to their values. Pure.
"""

from collections.abc import Iterator

from penstock.errors import InvalidRequest

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
WIDTHS = {FIXED64: 8, FIXED32: 4}
MAX_VARINT = 10

Value = int | bytes
Fields = dict[int, Value]


def encode(fields: dict[int, int | str | bytes | bytearray | memoryview | None]) -> bytes:
    """A message of these fields; those without a value are left out."""
    return b"".join(_encode_field(number, value) for number, value in fields.items())


def decode(data: bytes) -> Fields:
    """The fields of a message, the last of each number; raises for what is no message."""
    return dict(_decode_fields(data))


def read_message(fields: Fields, number: int) -> Fields:
    """A message in a message; empty without one."""
    return decode(read_bytes(fields, number))


def read_bytes(fields: Fields, number: int) -> bytes:
    found = fields.get(number, b"")
    if isinstance(found, int):
        raise _broken()
    return found


def read_text(fields: Fields, number: int) -> str:
    try:
        return read_bytes(fields, number).decode()
    except UnicodeDecodeError as error:
        raise _broken() from error


def _encode_field(number: int, value: int | str | bytes | bytearray | memoryview | None) -> bytes:
    if value is None:
        return b""
    if isinstance(value, int):
        return _encode_varint(number << 3 | VARINT) + _encode_varint(value)
    data = value.encode() if isinstance(value, str) else value
    return b"".join((_encode_varint(number << 3 | BYTES), _encode_varint(len(data)), data))


def _encode_varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _decode_fields(data: bytes) -> Iterator[tuple[int, Value]]:
    place = 0
    while place < len(data):
        key, place = _decode_varint(data, place)
        kind = key & 7
        if kind == VARINT:
            value, place = _decode_varint(data, place)
            yield key >> 3, value
            continue
        if kind == BYTES:
            length, place = _decode_varint(data, place)
        elif kind in WIDTHS:
            length = WIDTHS[kind]
        else:
            raise _broken()
        if length > len(data) - place:
            raise _broken()
        yield key >> 3, data[place : place + length]
        place += length


def _decode_varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(data[place : place + MAX_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, place + index + 1
    raise _broken()


def _broken() -> InvalidRequest:
    return InvalidRequest("the message is not what Flight sends", detail="send Flight SQL")
