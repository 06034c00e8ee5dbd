"""Uploads: write an Arrow stream as fragments of a table, not committed yet.

Rows that are completely known are written straight into the table's folder. A long stream may still
break off, so it is written into a separate folder inside the table, and its files are moved only
when all of it has arrived: an aborted one leaves nothing. Everything here blocks.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.errors import InvalidRequest, PenstockError, SchemaMismatch
from penstock.lance.columns.computed import list_computed, refuse_value
from penstock.lance.columns.fields import check_column_name
from penstock.lance.doors import lance, layout, pa
from penstock.lance.errors import is_panic, translate
from penstock.lance.session.handles import Datasets
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.write.read_ahead import read_ahead
from penstock.lance.write.reserved_metadata import check_brought
from penstock.lance.write.screening import (
    MAX_BATCH_BYTES,
    ScreenedStream,
    check_expanded,
    screen_whole,
)

FOLDER = "_uploads"
Fragment = Any


class ReadableFile(Protocol):
    """A file that is read once, from start to end."""

    closed: bool

    def read(self, size: int = -1) -> bytes | memoryview: ...


@dataclass(frozen=True)
class WrittenFragments:
    """Fragments in a table's folder that wait for their commit."""

    schema: "pa.Schema"
    fragments: "list[lance.FragmentMetadata]"
    # The ids of the table's fields when these were written; None for rows of a new schema.
    fields: tuple[tuple[str, int], ...] | None = None

    @property
    def rows(self) -> int:
        return sum(fragment.physical_rows for fragment in self.fragments)


class RowStream:
    """The batches of an Arrow IPC stream, each checked before use."""

    def __init__(self, source: ReadableFile | bytes, max_bytes: int = MAX_BATCH_BYTES) -> None:
        self.is_whole = isinstance(source, bytes)
        self._max_bytes = max_bytes
        # Why the stream can't be used; pylance only passes on the error's text.
        self.failure: PenstockError | None = None
        # Columns that only a backfill may fill.
        self._empty: tuple[str, ...] = ()
        opened: Any
        try:
            if isinstance(source, bytes):
                screen_whole(source, max_bytes)
                opened = pa.BufferReader(source)
            else:
                opened = ScreenedStream(source, max_bytes)
            self._reader = pa.ipc.open_stream(opened)
        except (pa.ArrowException, OSError, EOFError, ValueError) as error:
            raise _not_arrow(error) from error
        for name in self._reader.schema.names:
            check_column_name(name)
        self.schema: pa.Schema = layout.to_stored_schema(self._reader.schema)
        # The last batch that a writer was given, to name what it could not write.
        self._last: pa.RecordBatch | None = None
        if self.is_whole:
            self._batches = list(self._check())

    def count_rows(self) -> int:
        """How many rows there are, if the stream is in memory."""
        return sum(batch.num_rows for batch in self._batches)

    def reader(self) -> "pa.RecordBatchReader":
        """The batches, for a writer; only a stream in memory can be read again."""
        batches = iter(self._batches) if self.is_whole else read_ahead(self._check())
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def fit(self, table: "pa.Schema") -> None:
        """Adopt the dictionaries of the table that the rows go to."""
        fitted = layout.fit_schema(self.schema, table)
        if fitted is not self.schema and self.is_whole:
            self._batches = [layout.to_stored_batch(batch, fitted) for batch in self._batches]
        self.schema = fitted

    def leave_empty(self, names: Sequence[str]) -> None:
        """Refuse values in these columns: at once if the stream is in memory, else as they come."""
        self._empty = tuple(name for name in names if name in self.schema.names)
        for batch in self._batches if self.is_whole else ():
            self._check_empty(batch)

    def _check_empty(self, batch: "pa.RecordBatch") -> None:
        for name in self._empty:
            if batch.column(name).null_count < batch.num_rows:
                self.failure = refuse_value(name)
                raise self.failure

    def _check(self) -> "Iterator[pa.RecordBatch]":
        try:
            for batch in self._reader:
                batch.validate(full=True)
                check_expanded(batch, self._max_bytes)
                self._check_empty(batch)
                self._last = layout.to_stored_batch(batch, self.schema)
                yield self._last
        except InvalidRequest as error:
            self.failure = error
            raise
        except (pa.ArrowException, OSError, EOFError, ValueError) as error:
            self.failure = _not_arrow(error)
            raise self.failure from error

    @contextmanager
    def telling(self) -> Iterator[None]:
        """If a writer of these rows fails, raise a failure of the stream itself first."""
        try:
            yield
        except BaseException as error:
            if self.failure is not None:
                raise self.failure from error
            if self._last is not None and is_panic(error):
                raise explain_panic(error, self._last) from error
            raise


def explain_panic(error: BaseException, batch: "pa.RecordBatch") -> PenstockError:
    """Name the column that Lance panics over: the first that it can't write alone."""
    for name in batch.schema.names:
        try:
            lance.write_dataset(batch.select([name]), f"memory://{uuid.uuid4().hex}")
        except BaseException as again:
            if not is_panic(again):
                raise
            kind = batch.schema.field(name).type
            return InvalidRequest(
                f"Lance cannot store the values of column {name!r} ({kind})",
                detail="send them as another type",
            )
    return translate(error)


def write_empty(schema: "pa.Schema") -> bytes:
    """A stream without rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema):
        pass
    content: bytes = sink.getvalue().to_pybytes()
    return content


def write_new(
    datasets: Datasets, folder: str, rows: RowStream, known: "pa.Schema | None" = None
) -> WrittenFragments:
    """Write rows as the first ones of a dataset at the folder; `known` is what they replace."""
    check_new_rows(rows, known)
    with rows.telling():
        fragments = lance.fragment.write_fragments(
            rows.reader(),
            folder,
            schema=rows.schema,
            mode="create",
            enable_stable_row_ids=True,
            **datasets.write_options(),
        )
    return WrittenFragments(rows.schema, fragments)


def write_more(dataset: "lance.LanceDataset", rows: RowStream) -> WrittenFragments:
    """Write rows of a dataset into its own folder."""
    return write_together(dataset, [rows])


def write_together(dataset: "lance.LanceDataset", streams: Sequence[RowStream]) -> WrittenFragments:
    """Write rows of several streams of one schema into a dataset's own folder."""
    with _joined(streams) as reader:
        fragments = lance.fragment.write_fragments(reader, dataset, mode="append")
    return WrittenFragments(streams[0].schema, fragments, field_ids(dataset))


def append_together(
    dataset: "lance.LanceDataset", streams: Sequence[RowStream]
) -> "lance.LanceDataset":
    """Write such rows and commit them, through the dataset's own way of committing."""
    with _joined(streams) as reader:
        return lance.write_dataset(reader, dataset, mode="append")


@contextmanager
def _joined(streams: Sequence[RowStream]) -> "Iterator[pa.RecordBatchReader]":
    """All batches of several streams of one schema, for a writer."""
    batches = (batch for stream in streams for batch in stream.reader())
    with ExitStack() as stack:
        for stream in streams:
            stack.enter_context(stream.telling())
        yield pa.RecordBatchReader.from_batches(streams[0].schema, batches)


def field_ids(dataset: "lance.LanceDataset") -> tuple[tuple[str, int], ...]:
    """The name and id of every field; fragments refer to columns by id."""

    def walk(fields: Any) -> Iterator[tuple[str, int]]:
        for field in fields:
            yield field.name(), field.id()
            yield from walk(field.children())

    return tuple(walk(dataset.lance_schema.fields()))


def write_aside(
    place: Place,
    branch: str,
    datasets: Datasets,
    rows: RowStream,
    base: "lance.LanceDataset | None",
    known: "pa.Schema | None" = None,
) -> WrittenFragments:
    """Write rows into a separate folder, and move the files when all have arrived.

    With a base they get its field ids; without, they are the first ones of a new schema, which may
    replace a known one.
    """
    name = f"{FOLDER}/{uuid.uuid4().hex}"
    try:
        written = write_to(place, branch, name, datasets, rows, base, known)
        adopt_files(place, branch, name)
    finally:
        files.remove_all(below(place, name))
        files.remove_if_empty(place, FOLDER)
    return written


def write_to(
    place: Place,
    branch: str,
    folder: str,
    datasets: Datasets,
    rows: RowStream,
    base: "lance.LanceDataset | None",
    known: "pa.Schema | None" = None,
) -> WrittenFragments:
    """Write rows into a folder inside the table; its caller moves or removes the files."""
    aside = below(place, folder)
    if base is None:
        return write_new(datasets, aside.location, rows, known)
    # A separate handle, because cloning one blocks all other use of it.
    own = base.checkout_version((branch or None, base.version))
    return write_more(own.shallow_clone(aside.location, base.version), rows)


def below(place: Place, folder: str) -> Place:
    """A folder inside a table as a place of its own."""
    return Place(place.store, f"{place.key}/{folder}", f"{place.location}/{folder}")


def data_folder(branch: str) -> str:
    """Where a branch's files are."""
    return f"tree/{branch}/data" if branch else "data"


def adopt_files(place: Place, branch: str, folder: str) -> None:
    """Move what was written into a folder to a branch's data: files of rows and of large blobs."""
    start, target = f"{folder}/data/", data_folder(branch)
    for path, _ in files.list_below(place, f"{folder}/data"):
        files.move(place, path, f"{target}/{path.removeprefix(start)}")


def sweep(place: Place, before_millis: int) -> None:
    """Remove what uploads of crashed servers left: nothing was written there for long."""
    newest: dict[str, int] = {}
    for path, millis in files.list_below(place, FOLDER):
        name = "/".join(path.split("/")[:2])
        newest[name] = max(millis, newest.get(name, 0))
    for name, millis in newest.items():
        if millis < before_millis:
            files.remove_all(below(place, name))
    files.remove_if_empty(place, FOLDER)


def check_rows(table: "pa.Schema", rows: RowStream) -> None:
    """Refuse rows that don't fit a table, or that bring values of computed columns."""
    rows.fit(table)
    check_schema(table, rows.schema)
    rows.leave_empty([column.name for column in list_computed(table)])


def check_new_rows(rows: RowStream, known: "pa.Schema | None" = None) -> None:
    """Refuse rows that bring their own schema, and with it bindings or values of bound columns."""
    check_brought(rows.schema, known)
    rows.leave_empty([column.name for column in list_computed(rows.schema)])


def check_schema(table: "pa.Schema", rows: "pa.Schema") -> None:
    """Refuse rows that don't fit a table; names the column, what came and what was wanted."""

    def refuse(name: str, got: str, want: str) -> None:
        raise SchemaMismatch(
            f"column {name!r}: got {got}, want {want}",
            detail="send the columns of the table, with their types",
        )

    for field in rows:
        if table.get_field_index(field.name) < 0:
            refuse(field.name, str(field.type), "no such column")
        wanted = table.field(field.name)
        if _plain(field.type) != _plain(wanted.type):
            refuse(field.name, str(field.type), str(wanted.type))
    for wanted in table:
        if rows.get_field_index(wanted.name) < 0 and not wanted.nullable:
            refuse(wanted.name, "nothing", f"{wanted.type}, not null")


def _plain(kind: "pa.DataType") -> str:
    """A type without details that don't matter for writing: nullability and names of list items."""
    if pa.types.is_fixed_size_list(kind):
        return f"fixed_size_list<{_plain(kind.value_type)}>[{kind.list_size}]"
    if pa.types.is_large_list(kind):
        return f"large_list<{_plain(kind.value_type)}>"
    if pa.types.is_list(kind):
        return f"list<{_plain(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{sorted((f.name, _plain(f.type)) for f in kind)}>"
    return str(kind)


def _not_arrow(error: BaseException) -> InvalidRequest:
    reason = (str(error) or "it is empty").splitlines()[0]
    return InvalidRequest(
        f"the body is not a sound Arrow IPC stream: {reason}",
        detail="send a complete stream as application/vnd.apache.arrow.stream",
    )
