"""Files of columns: what is made of a fragment's rows at once."""

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from penstock.lance.write.column_files import ValuePiece, fill_rows

KINDS = pa.schema([("value", pa.list_(pa.float32(), 32))])
# What is left of a thousand rows.
LIVE = np.array([*range(4), 500, *range(900, 1000)])


def piece(offsets: Any, sign: int = 1) -> ValuePiece:
    vectors = [[float(sign * n)] * 32 for n in offsets]
    return ValuePiece(offsets, pa.record_batch([pa.array(vectors, KINDS[0].type)], schema=KINDS))


@pytest.mark.parametrize("keep", [False, True])
def test_what_is_made_at_once_is_bounded(tmp_path: Path, keep: bool) -> None:
    dataset = lance.write_dataset(pa.table({"id": range(1000)}), str(tmp_path / "t"))
    (fragment,) = dataset.get_fragments()
    computed = LIVE[LIVE % 2 == 0] if keep else LIVE
    pieces = (piece(part) for part in np.split(computed, range(16, len(computed), 16)))
    old = iter([piece(LIVE, sign=-1)]) if keep else None
    batches = list(fill_rows(pieces, old, fragment, KINDS, batch_bytes=16 * 32 * 4))
    assert max(batch.num_rows for batch in batches) == 16
    values = pa.Table.from_batches(batches)["value"].to_pylist()
    assert [value and value[0] for value in values] == [
        None if n not in LIVE else n if n in computed else -n for n in range(1000)
    ]
