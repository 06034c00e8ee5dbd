"""Rows that a backfill left, by why they are not fresh, and the files that list them.

They are sets of rows, one for each reason: after a header, a byte for the reason and eight for the
length go before each.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from penstock.errors import InvalidTableState
from penstock.jobs.backfill.row_states import FRESH, REASONS, Codes
from penstock.lance.diff.row_sets import Ids, RowSet, decode_row_set

HEADER = b"PSLEFT1\n"
PART = struct.Struct("<BQ")


@dataclass(frozen=True, slots=True, eq=False)
class LeftRows:
    """The rows of a version that are not fresh, by their codes; all others are."""

    by_code: Mapping[int, RowSet]

    def __len__(self) -> int:
        return sum(map(len, self.by_code.values()))

    def find(self, ids: Ids) -> Codes:
        """The code of each row, if the version has it."""
        codes = np.full(len(ids), FRESH, np.uint8)
        for code, rows in self.by_code.items():
            codes[rows.contains(ids)] = code
        return codes

    def encode(self) -> bytes:
        parts = [(code, rows.encode()) for code, rows in sorted(self.by_code.items()) if len(rows)]
        return HEADER + b"".join(PART.pack(code, len(data)) + data for code, data in parts)


def decode_left_rows(data: bytes) -> LeftRows:
    """The rows as `encode` wrote them."""
    if not data.startswith(HEADER):
        raise InvalidTableState("a file of row ids is damaged: another header")
    found, at = {}, len(HEADER)
    while at < len(data):
        if len(data) < at + PART.size:
            raise InvalidTableState("a file of row ids is damaged: it is cut off")
        code, length = PART.unpack_from(data, at)
        if code not in REASONS:
            raise InvalidTableState(f"a file of row ids is damaged: {code} is no reason")
        at += PART.size
        found[code] = decode_row_set(data[at : at + length])
        at += length
    return LeftRows(found)
