"""Fill new columns of rows that stay in an altered view.

The values are computed from the rows' source rows, as a refresh computes new rows, into files of
their own; from these a file of the new columns is made for each fragment of the view.
"""

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from lance.file import LanceFileReader
from lance.fragment import LanceFragment
from lance.schema import LanceSchema
from msgspec import structs

from penstock.jobs.engine.fragment_work import rows_file_name
from penstock.jobs.refresh.context import Plan, ViewChange, Work
from penstock.jobs.refresh.rows import run as rows_run
from penstock.jobs.refresh.rows.plan import SomeRows
from penstock.jobs.refresh.rows.view_rows import ViewRows
from penstock.lance.columns.schemas import decode_schema, encode_schema
from penstock.lance.commit.replacement import ColumnFile
from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.row_diff import scan_all
from penstock.lance.diff.row_sets import Ids, is_among, make_row_set, sort_distinct
from penstock.lance.errors import translated
from penstock.lance.read.scans import offsets_of
from penstock.lance.session.remote import Location
from penstock.lance.write.column_files import (
    FilledColumn,
    ValuePiece,
    get_new_targets,
    get_targets,
    write_column_file,
)
from penstock.model.views import SOURCE_ROW_ID, Definition

# How many values of a column are in memory at once.
PIECE_ROWS = 8_192
# A range of a file is read when at least one in so many of its rows is wanted.
DENSE = 4


def fill_columns(
    work: Work, change: ViewChange, names: Sequence[str]
) -> tuple[ViewChange, dict[int, ColumnFile]]:
    """Compute columns for the rows that a change leaves; returns files by fragment.

    The change is returned with what was called and what failed.
    """
    assert not isinstance(change.removes, str)
    removed = np.sort(change.removes)
    staying = dict(_find_staying(work.view, removed))
    if not staying:
        return change, {}
    needed = sort_distinct(*(sources for sources, _ in staying.values()))
    made = _compute(work, needed, names)
    values = _Values(work.location, made.fragments, names)
    targets = get_targets(work.view, names)
    files = {}
    for id, (sources, offsets) in staying.items():
        fragment = work.view.get_fragment(id)
        assert fragment is not None
        files[id] = _write(work, fragment, targets, values.read(sources, offsets))
        work.attempt.check()
    failed = [each for each in (change.failed, made.failed) if each is not None]
    ids = [each.ids for each in failed]
    calls = change.function_calls + made.function_calls
    rate = made.rate if made.rate is not None else change.rate
    return replace(change, function_calls=calls, failed=make_row_set(ids), rate=rate), files


def write_nulls(work: Work, schema: LanceSchema, names: Sequence[str]) -> dict[int, ColumnFile]:
    """Files without values, by fragment, of columns that the view does not have yet."""
    targets = get_new_targets(work.view, schema, names)
    fragments = work.view.get_fragments() if names else []
    return {each.fragment_id: _write(work, each, targets, iter(())) for each in fragments}


def narrow(definition: Definition, names: Sequence[str]) -> Definition:
    """A definition that only gives some columns, of all rows of the source."""
    assert definition.rows is not None
    functions = tuple(
        each
        for each in definition.column_functions
        if any(out.column in names for out in each.outputs)
    )
    needed = {*names, *(name for each in functions for name in each.inputs)}
    columns = tuple(each for each in definition.rows.columns if each.name in needed)
    schema = decode_schema(definition.schema)
    own = pa.schema([schema.field(name) for name in (SOURCE_ROW_ID, *names)])
    return structs.replace(
        definition,
        kind="query",
        function=None,
        inherited=(),
        rows=structs.replace(definition.rows, filter=None, columns=columns),
        column_functions=functions,
        schema=encode_schema(own),
    )


def _find_staying(view: LanceDataset, removed: Ids) -> Iterator[tuple[int, tuple[Ids, Ids]]]:
    """By fragment: the source rows and the offsets of the rows that are not removed."""
    for fragment in view.get_fragments():
        sources, offsets = [], []
        with translated():
            scanner = view.scanner(
                columns=[SOURCE_ROW_ID],
                fragments=[fragment],
                with_row_id=True,
                with_row_address=True,
                scan_in_order=True,
            )
            for batch in scanner.to_batches():
                stays = ~is_among(as_ids(batch.column("_rowid")), removed)
                sources.append(as_ids(batch.column(SOURCE_ROW_ID))[stays])
                offsets.append(offsets_of(batch)[stays])
        if sources and sum(map(len, sources)):
            found = np.concatenate(sources), np.concatenate(offsets)
            yield fragment.fragment_id, found


def _compute(work: Work, needed: Ids, names: Sequence[str]) -> ViewChange:
    """Compute the columns for source rows, into files that no version will refer to."""
    (source,) = work.sources.values()
    rows = scan_all(source.dataset_now)
    rows = rows.take(is_among(rows.ids, needed))
    nothing = np.empty(0, np.int64)
    what = SomeRows(
        rows=rows,
        touched=nothing,
        gone=ViewRows(nothing, nothing),
        was=np.ones(len(rows.ids), bool),
        same=np.zeros(len(rows.ids), bool),
    )
    narrowed = structs.replace(work.spec, definition=narrow(work.definition, names))
    plan = Plan(
        mode="incremental",
        reason="rows that stay lack columns",
        rows_to_insert=0,
        rows_to_update=len(rows.ids),
        rows_to_delete=0,
        work=what,
    )
    return rows_run.run(replace(work, spec=narrowed), plan)


def _write(
    work: Work,
    fragment: LanceFragment,
    targets: Sequence[FilledColumn],
    pieces: Iterator[ValuePiece],
) -> ColumnFile:
    name = rows_file_name(work.attempt.job, work.attempt.number, uuid.uuid4().hex[:16])
    return write_column_file(work.view, work.location, fragment, targets, pieces, name)


class _Values:
    """Computed columns, by source row."""

    def __init__(self, location: Location, fragments: Sequence[str], names: Sequence[str]) -> None:
        self._names = list(names)
        self._options = dict(location.options) or None
        paths = [file["path"] for text in fragments for file in json.loads(text)["files"]]
        self._paths = [f"{location.uri}/{location.data_folder}/{path}" for path in paths]
        self._readers: dict[int, Any] = {}
        sources, of, places = [np.empty(0, np.int64)], [], []
        for number, path in enumerate(self._paths):
            with translated():
                reader = LanceFileReader(path, self._options, [SOURCE_ROW_ID])
                found = as_ids(reader.read_all().to_table()[SOURCE_ROW_ID].combine_chunks())
            sources.append(found)
            of.append(np.full(len(found), number))
            places.append(np.arange(len(found)))
        joined = np.concatenate(sources)
        order = np.argsort(joined, kind="stable")
        self._sources = joined[order]
        self._of = np.concatenate([np.empty(0, np.int64), *of])[order]
        self._places = np.concatenate([np.empty(0, np.int64), *places])[order]

    def read(self, sources: Ids, offsets: Ids) -> Iterator[ValuePiece]:
        """The values of these source rows, for rows of a fragment at these offsets."""
        for start in range(0, len(sources), PIECE_ROWS):
            part = slice(start, start + PIECE_ROWS)
            at = np.searchsorted(self._sources, sources[part])
            yield ValuePiece(offsets[part], self._take(self._of[at], self._places[at]))

    def _take(self, of: Ids, places: Ids) -> pa.RecordBatch:
        """Rows of the files, in this order; several rows of a view may have one source row."""
        tables, order, total = [], np.empty(len(of), np.int64), 0
        for number in np.flatnonzero(np.bincount(of)).tolist():
            mine = of == number
            found, at = self._read(number, places[mine])
            tables.append(found.select(self._names))
            order[mine] = total + at
            total += found.num_rows
        batch = pa.concat_tables(tables).combine_chunks().take(pa.array(order))
        return pa.record_batch(
            [column.combine_chunks() for column in batch.columns], names=self._names
        )

    def _read(self, number: int, places: Ids) -> tuple[pa.Table, Ids]:
        """Rows of a file that have these among them, and where each of these is."""
        reader, start = self._open(number), int(places.min())
        rows = int(places.max()) - start + 1
        with translated():
            if rows <= DENSE * len(places):
                # A range is read many times faster than single rows.
                found = reader.read_range(start, rows, batch_size=rows).to_table()
                return found, places - start
            wanted, back = np.unique(places, return_inverse=True)
            found = reader.take_rows(wanted.tolist(), batch_size=len(wanted)).to_table()
        return found, back

    def _open(self, number: int) -> Any:
        if number not in self._readers:
            self._readers[number] = LanceFileReader(self._paths[number], self._options, self._names)
        return self._readers[number]
