"""Digests of Arrow rows: one number per row, equal for equal rows in every process. Pure.

Two different values collide once in 2**64 pairs. Floats count by their bits, and null is a value of
its own.
"""

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

BYTES = 8
# Odd numbers with well-spread bits, as good hashes of numbers use.
MULTIPLIER, OTHER_MULTIPLIER = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9


def digest_rows(columns: Sequence[pa.Array], rows: int) -> Any:
    """The digests of rows with these columns, as a numpy array."""
    found = np.zeros(rows, np.uint64)
    for column in columns:
        found = _mix(found * np.uint64(MULTIPLIER) + _digest(column))
    return found


def _digest(array: pa.Array) -> Any:
    seed = _digest_bytes([str(array.type).encode()])[0]
    while isinstance(array, pa.ExtensionArray | pa.DictionaryArray):
        is_coded = isinstance(array, pa.DictionaryArray)
        array = array.dictionary_decode() if is_coded else array.storage
    if not len(array) or pa.types.is_null(array.type):
        return np.full(len(array), seed)
    found = _mix(_digest_values(array) ^ seed)
    if array.null_count:
        found[np.asarray(array.is_null())] = seed
    return found


def _digest_values(array: Any) -> Any:
    """The digests of values; those of nulls are meaningless."""
    kind = array.type
    if t.is_struct(kind):
        return digest_rows(array.flatten(), len(array))
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return _digest_lists(array)
    if t.is_boolean(kind):
        return _digest_fixed(array.cast(pa.uint8()))
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return _digest_texts(array.cast(pa.large_string()).view(pa.large_binary()))
    if t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind):
        return _digest_texts(array.cast(pa.large_binary()))
    if t.is_primitive(kind) or t.is_decimal(kind) or t.is_fixed_size_binary(kind):
        return _digest_fixed(array)
    return _digest_bytes([repr(value).encode() for value in array.to_pylist()])


def _digest_lists(array: Any) -> Any:
    lengths = np.asarray(pc.list_value_length(array).fill_null(0)).astype(np.int64)
    if array.null_count and array.type.id == _fixed_size_list_id():
        # Its nulls have values, which `flatten` omits.
        lengths[np.asarray(array.is_null())] = 0
    items = array.flatten()
    width, content = _show_numbers(items)
    nulls = None
    if content is None:
        width, content = BYTES, memoryview(_digest(items).tobytes())
    elif items.null_count:
        nulls = np.asarray(items.is_null())
    ends = np.cumsum(lengths)
    found: list[Any] = []
    for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
        value = content[start * width : end * width]
        if nulls is not None and nulls[start:end].any():
            # Bytes that no list of numbers has by chance.
            value = hashlib.sha256(bytes(value) + nulls[start:end].tobytes()).digest()
        found.append(value)
    return _digest_bytes(found)


def _show_numbers(items: Any) -> tuple[int, Any]:
    """The width and bytes of numbers, where nulls mean nothing; None for other values."""
    if not (t.is_integer(items.type) or t.is_floating(items.type)):
        return 0, None
    width = items.type.bit_width // 8
    if not len(items):
        return width, memoryview(b"")
    held = np.frombuffer(items.buffers()[1], f"u{width}")[items.offset : items.offset + len(items)]
    if items.null_count:
        held = np.where(np.asarray(items.is_null()), held.dtype.type(0), held)
    return width, memoryview(held.tobytes())


def _fixed_size_list_id() -> int:
    return int(pa.list_(pa.int8(), 1).id)


def _digest_texts(array: Any) -> Any:
    _, places, content = array.buffers()
    offsets = np.frombuffer(places, np.int64)[array.offset : array.offset + len(array) + 1].tolist()
    held = memoryview(content) if content is not None else memoryview(b"")
    return _digest_bytes([held[a:b] for a, b in pairwise(offsets)])


def _digest_fixed(array: Any) -> Any:
    """Values of one width: their bytes, eight at a time."""
    width = array.type.bit_width // 8
    words = -(-width // BYTES)
    whole = np.zeros((len(array), words * BYTES), np.uint8)
    if width:
        held = np.frombuffer(array.buffers()[1], np.uint8)
        start = array.offset * width
        whole[:, :width] = held[start : start + len(array) * width].reshape(-1, width)
    found = np.zeros(len(array), np.uint64)
    for word in whole.view(np.uint64).T:
        found = _mix(found * np.uint64(MULTIPLIER) + word)
    return found


def _digest_bytes(values: Sequence[Any]) -> Any:
    digests = [hashlib.blake2b(value, digest_size=BYTES).digest() for value in values]
    return np.frombuffer(b"".join(digests), np.uint64)


def _mix(values: Any) -> Any:
    """Mix the bits of numbers; different numbers stay different."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(OTHER_MULTIPLIER)
    return values ^ (values >> np.uint64(31))
