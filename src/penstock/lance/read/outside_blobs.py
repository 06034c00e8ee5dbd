"""Blobs outside a table: a row may hold an address instead of bytes.

Lance fetches it, whoever's file or object it is, with the reader's rights. Otherwise anyone who can
write a table's files could make a job show them whatever its runner can read, so no job fetches
them.
"""

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from penstock.errors import InvalidTableState
from penstock.lance.diff.fragments import has_blobs

# The kind of a blob that is only an address, in a blob's description.
EXTERNAL_KIND = 3

_known: WeakKeyDictionary[LanceDataset, list[str]] = WeakKeyDictionary()


def check_blobs(dataset: LanceDataset, expressions: Iterable[str], **rows: Any) -> None:
    """Refuse to read expressions over rows, selected as by a scanner, with such a blob."""
    if not (found := _list_blobs(dataset)):
        return
    wanted = " ".join(expressions).replace("`", "")
    if not (names := [name for name in found if name.replace("`", "") in wanted]):
        return
    for batch in dataset.scanner(columns=names, **rows).to_batches():
        for name, column in zip(names, batch.columns, strict=False):
            if has_outside(column):
                raise InvalidTableState(
                    f"column {name} has blobs outside the table's own files",
                    detail="write them with external_blob_mode='ingest', so that it has them",
                )


def _list_blobs(dataset: LanceDataset) -> list[str]:
    """The columns that have blobs; cached, because a job scans a dataset many times."""
    if (found := _known.get(dataset)) is None:
        fields = dataset.lance_schema.fields()
        found = _known[dataset] = [field.name() for field in fields if has_blobs(field)]
    return found


def has_outside(values: pa.Array) -> bool:
    """Whether any blob among the described values is outside the table."""
    kind: Any = values.type
    if isinstance(kind, pa.BaseExtensionType):
        storage: Any = values
        return has_outside(storage.storage)
    if pa.types.is_struct(kind):
        if kind.get_field_index("kind") >= 0 and kind.get_field_index("blob_uri") >= 0:
            found: Any = pc.any(pc.equal(pc.struct_field(values, "kind"), EXTERNAL_KIND))
            return bool(found.as_py())
        flat: Any = values
        return any(has_outside(child) for child in flat.flatten())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        items: Any = pc.list_flatten(values)
        return has_outside(items)
    return False
