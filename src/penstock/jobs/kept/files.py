"""Files with values that were computed before: parts, and whole files of a fragment. It blocks."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa
from lance.file import LanceFileReader

from penstock.jobs.backfill.plan import PARTIAL_PREFIX
from penstock.jobs.backfill.watermarks import UNFILLED_KEY
from penstock.jobs.kept.parts import (
    FAILED_AT,
    ID_AT,
    OFFSET_AT,
    ORIGIN_KEY,
    ROW_ID,
    Part,
    read_part,
)
from penstock.jobs.kept.work import Origin, open_origin
from penstock.lance.diff.masks import unpack
from penstock.lance.diff.row_diff import Rows, scan_all
from penstock.lance.errors import translated
from penstock.lance.storage import files

if TYPE_CHECKING:
    from penstock.jobs.engine.checkpoints import Checkpoint
    from penstock.lance.session.remote import Location
    from penstock.lance.storage.lake import Place

# How many rows are read at once.
STEP_ROWS = 1024


class Provider(Protocol):
    """Rows by id (if ids are known), with their places in the file that has their values."""

    @property
    def origin(self) -> Origin: ...
    @property
    def rows(self) -> Rows: ...
    @property
    def places(self) -> Any: ...
    @property
    def has_ids(self) -> bool: ...

    def without_failed(self) -> "Provider": ...

    def stream(self, places: Any) -> "Iterator[tuple[pa.RecordBatch, Any]]":
        """The values at some places, in this order, and which of the rows failed."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptPart:
    """A part; what is known of it without an origin is the job's own."""

    place: "Place"
    folder: str
    part: Part
    kinds: "pa.Schema"
    origin: Origin
    rows: Rows
    places: Any
    failed: Any
    has_ids: bool

    @staticmethod
    def load(place: "Place", folder: str, part: Part, kinds: "pa.Schema") -> "KeptPart | None":
        """None when it is gone, or its columns have other types now; they may have other names."""
        try:
            table = read_part(place, folder, part)
        except FileNotFoundError:
            return None
        # The function's own columns, whatever they are called, come after those that are ours.
        ours = table.num_columns - len(kinds)
        if table.schema.types[ours:] != kinds.types:
            return None
        told = (table.schema.metadata or {}).get(ORIGIN_KEY)
        origin = msgspec.json.decode(told, type=Origin) if told else Origin("", 0, 0)
        has_ids = told is not None and ROW_ID in table.schema.names[:ours]
        offsets = table.column(OFFSET_AT).to_numpy()
        ids = table.column(ID_AT).to_numpy() if has_ids else offsets
        order = np.argsort(ids, kind="stable")
        rows = Rows(ids, np.full(len(ids), part.fragment), offsets).take(order)
        failed = table.column(FAILED_AT).to_numpy()
        return KeptPart(place, folder, part, kinds, origin, rows, order, failed, has_ids)

    def without_failed(self) -> "KeptPart":
        well = ~self.failed[self.places]
        return replace(self, rows=self.rows.take(well), places=self.places[well])

    def stream(self, places: Any) -> "Iterator[tuple[pa.RecordBatch, Any]]":
        table = read_part(self.place, self.folder, self.part)
        table = table.select(range(table.num_columns)[-len(self.kinds) :])
        for at in range(0, len(places), STEP_ROWS):
            step = places[at : at + STEP_ROWS]
            yield _one_batch(table.take(pa.array(step)), self.kinds), self.failed[step]


@dataclass(frozen=True, slots=True, eq=False)
class KeptFile:
    """A file that was made for a whole fragment; places are offsets."""

    path: str
    options: dict[str, str]
    kinds: "pa.Schema"
    origin: Origin
    rows: Rows
    places: Any
    failed: Any
    has_ids: bool = True

    @staticmethod
    def load(
        location: "Location", place: "Place", note: "Checkpoint", kinds: "pa.Schema", reader: str
    ) -> "KeptFile | None":
        """None when it is gone, or the version that it was computed from is."""
        made, path = note.work, f"{location.data_folder}/{note.file.path}"
        then = None if note.origin is None else open_origin(location, note.origin, reader)
        if note.origin is None or then is None or not then.has_stable_row_ids:
            return None
        if not files.exists(place, path):
            return None
        options = dict(location.options)
        failed = np.zeros(made.physical_rows, bool)
        if note.file.path.startswith(f"{PARTIAL_PREFIX}-"):
            failed = _read_unfilled(f"{location.uri}/{path}", options, made.physical_rows)
        rows = scan_all(then, [made.id])
        if made.need is not None:
            rows = rows.take(unpack(made.need, made.physical_rows)[rows.offsets])
        return KeptFile(
            f"{location.uri}/{path}", options, kinds, note.origin, rows, rows.offsets, failed
        )

    def without_failed(self) -> "KeptFile":
        well = ~self.failed[self.places]
        return replace(self, rows=self.rows.take(well), places=self.places[well])

    def stream(self, places: Any) -> "Iterator[tuple[pa.RecordBatch, Any]]":
        with translated():
            reader = LanceFileReader(self.path, storage_options=self.options or None)
        for at in range(0, len(places), STEP_ROWS):
            step = places[at : at + STEP_ROWS]
            # The file is read in its own order.
            order = np.argsort(step, kind="stable")
            back = np.empty(len(step), np.int64)
            back[order] = np.arange(len(step))
            with translated():
                table = reader.take_rows(step[order].tolist()).to_table()
            yield _one_batch(table.take(pa.array(back)), self.kinds), self.failed[step]


def _read_unfilled(path: str, options: dict[str, str], count: int) -> Any:
    with translated():
        reader = LanceFileReader(path, storage_options=options or None)
        stored = (reader.metadata().schema.metadata or {}).get(UNFILLED_KEY, b"")
    return unpack(base64.b64decode(stored), count)


def _one_batch(table: "pa.Table", kinds: "pa.Schema") -> "pa.RecordBatch":
    """The columns of a function, which are always in its own order, by the names they have now."""
    (batch,) = table.rename_columns(kinds.names).cast(kinds).combine_chunks().to_batches()
    return batch
