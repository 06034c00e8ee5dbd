"""Masks: a boolean for each physical row of a fragment, and their packed form."""

import zlib
from typing import Any

import numpy as np

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def pack(mask: Mask) -> bytes:
    """The mask as compressed bits."""
    return zlib.compress(np.packbits(mask).tobytes(), 1)


def unpack(packed: bytes, length: int) -> Mask:
    """The mask of so many rows from `pack`."""
    bits = np.frombuffer(zlib.decompress(packed), np.uint8)
    if len(bits) * 8 < length:
        raise ValueError(f"{len(bits) * 8} bits are too few for {length} rows")
    return np.unpackbits(bits, count=length).astype(bool)
