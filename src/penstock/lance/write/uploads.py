"""Rows on their way in: an Arrow stream becomes fragments of a table, not committed yet.

Rows that are known whole are written straight into the table's folder. A long stream may still
break off, so it is written into a folder of its own inside the table, and its files are moved only
when all of it has arrived: what breaks off leaves nothing. Everything here blocks.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import InvalidRequest, PenstockError
from penstock.lance.columns.computed import list_computed, refuse_value
from penstock.lance.columns.fields import check_column_name
from penstock.lance.errors import is_panic, translate
from penstock.lance.session.handles import Datasets
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.write.read_ahead import read_ahead
from penstock.lance.write.reserved_metadata import check_brought
from penstock.lance.write.screening import MAX_BATCH_BYTES, Screened, check_expanded, screen_whole

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import FragmentMetadata, LanceDataset

FOLDER = "_uploads"
Fragment = Any


class Source(Protocol):
    """A file that is read once, from start to end."""

    closed: bool

    def read(self, size: int = -1) -> bytes | memoryview: ...


@dataclass(frozen=True)
class Written:
    """Fragments that lie in a table's folder and wait for their commit."""

    schema: "pa.Schema"
    fragments: "list[FragmentMetadata]"
    # The ids of the table's fields when these were written; None for rows of a new schema.
    fields: tuple[tuple[str, int], ...] | None = None

    @property
    def rows(self) -> int:
        return sum(fragment.physical_rows for fragment in self.fragments)


class RowStream:
    """The batches of an Arrow IPC stream, each checked before anybody uses it."""

    def __init__(self, source: "Source | bytes", max_bytes: int = MAX_BATCH_BYTES) -> None:
        import pyarrow as pa

        from penstock.lance.write.layout import to_stored_schema

        self.is_whole = isinstance(source, bytes)
        self._max_bytes = max_bytes
        # Why the stream can't be used; pylance only passes on the text of what it was.
        self.failure: PenstockError | None = None
        # Columns that only a backfill may fill.
        self._empty: tuple[str, ...] = ()
        opened: Any
        try:
            if isinstance(source, bytes):
                screen_whole(source, max_bytes)
                opened = pa.BufferReader(source)
            else:
                opened = Screened(source, max_bytes)
            self._reader = pa.ipc.open_stream(opened)
        except (pa.ArrowException, OSError, EOFError, ValueError) as error:
            raise _not_arrow(error) from error
        for name in self._reader.schema.names:
            check_column_name(name)
        self.schema: pa.Schema = to_stored_schema(self._reader.schema)
        # What a writer was given last, to tell what it could not write.
        self._last: pa.RecordBatch | None = None
        if self.is_whole:
            self._batches = list(self._check())

    def count_rows(self) -> int:
        """How many rows there are, when the stream is whole."""
        return sum(batch.num_rows for batch in self._batches)

    def reader(self) -> "pa.RecordBatchReader":
        """The batches, for a writer; can be had again only when the stream is whole."""
        import pyarrow as pa

        batches = iter(self._batches) if self.is_whole else read_ahead(self._check())
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def fit(self, table: "pa.Schema") -> None:
        """Take on the dictionaries of the table that the rows go to."""
        from penstock.lance.write.layout import fit_schema, to_stored_batch

        fitted = fit_schema(self.schema, table)
        if fitted is not self.schema and self.is_whole:
            self._batches = [to_stored_batch(batch, fitted) for batch in self._batches]
        self.schema = fitted

    def leave_empty(self, names: Sequence[str]) -> None:
        """Refuse values in these columns: at once when the stream is whole, else as they come."""
        self._empty = tuple(name for name in names if name in self.schema.names)
        for batch in self._batches if self.is_whole else ():
            self._check_empty(batch)

    def _check_empty(self, batch: "pa.RecordBatch") -> None:
        for name in self._empty:
            if batch.column(name).null_count < batch.num_rows:
                self.failure = refuse_value(name)
                raise self.failure

    def _check(self) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        from penstock.lance.write.layout import to_stored_batch

        try:
            for batch in self._reader:
                batch.validate(full=True)
                check_expanded(batch, self._max_bytes)
                self._check_empty(batch)
                self._last = to_stored_batch(batch, self.schema)
                yield self._last
        except InvalidRequest as error:
            self.failure = error
            raise
        except (pa.ArrowException, OSError, EOFError, ValueError) as error:
            self.failure = _not_arrow(error)
            raise self.failure from error

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Whatever a writer of these rows raises, a failure of the stream itself comes first."""
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
    import lance

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
    """A stream of no rows."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema):
        pass
    content: bytes = sink.getvalue().to_pybytes()
    return content


def write_new(
    datasets: Datasets, folder: str, rows: RowStream, known: "pa.Schema | None" = None
) -> Written:
    """Write rows as the first ones of a dataset at the folder; `known` is what they replace."""
    from lance.fragment import write_fragments

    check_new_rows(rows, known)
    with rows.telling():
        fragments = write_fragments(
            rows.reader(),
            folder,
            schema=rows.schema,
            mode="create",
            enable_stable_row_ids=True,
            **datasets.write_options(),
        )
    return Written(rows.schema, fragments)


def write_more(dataset: "LanceDataset", rows: RowStream) -> Written:
    """Write rows that belong to a dataset, into its own folder."""
    return write_together(dataset, [rows])


def write_together(dataset: "LanceDataset", streams: Sequence[RowStream]) -> Written:
    """Write rows of several streams of one schema into a dataset's own folder."""
    from lance.fragment import write_fragments

    with _joined(streams) as reader:
        fragments = write_fragments(reader, dataset, mode="append")
    return Written(streams[0].schema, fragments, field_ids(dataset))


def append_together(dataset: "LanceDataset", streams: Sequence[RowStream]) -> "LanceDataset":
    """Write such rows and commit them, the way that the dataset was opened to commit."""
    import lance

    with _joined(streams) as reader:
        return lance.write_dataset(reader, dataset, mode="append")


@contextmanager
def _joined(streams: Sequence[RowStream]) -> "Iterator[pa.RecordBatchReader]":
    """All batches of several streams of one schema, for a writer."""
    import pyarrow as pa

    batches = (batch for stream in streams for batch in stream.reader())
    with ExitStack() as stack:
        for stream in streams:
            stack.enter_context(stream.telling())
        yield pa.RecordBatchReader.from_batches(streams[0].schema, batches)


def field_ids(dataset: "LanceDataset") -> tuple[tuple[str, int], ...]:
    """The name and id of every field; fragments refer to columns by these ids."""

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
    base: "LanceDataset | None",
    known: "pa.Schema | None" = None,
) -> Written:
    """Write rows into a folder of their own, and move the files when all have arrived.

    With a base they get its field ids; without, they are the first ones of a new schema, which may
    take the place of a known one.
    """
    name = f"{FOLDER}/{uuid.uuid4().hex}"
    aside = Place(place.store, f"{place.key}/{name}", f"{place.location}/{name}")
    try:
        if base is None:
            written = write_new(datasets, aside.location, rows, known)
        else:
            # A handle of its own: a clone allows nobody else the use of the one that is cloned.
            own = base.checkout_version((branch or None, base.version))
            clone = own.shallow_clone(aside.location, base.version)
            written = write_more(clone, rows)
        target = f"tree/{branch}/data" if branch else "data"
        for fragment in written.fragments:
            for file in fragment.files:
                files.move(place, f"{name}/data/{file.path}", f"{target}/{file.path}")
    finally:
        files.remove_all(aside)
        files.remove_if_empty(place, FOLDER)
    return written


def sweep(place: Place, before_millis: int) -> None:
    """Remove what uploads left behind whose server died: nothing was written there for long."""
    newest: dict[str, int] = {}
    for path, millis in files.list_below(place, FOLDER):
        name = "/".join(path.split("/")[:2])
        newest[name] = max(millis, newest.get(name, 0))
    for name, millis in newest.items():
        if millis < before_millis:
            files.remove_all(Place(place.store, f"{place.key}/{name}", f"{place.location}/{name}"))
    files.remove_if_empty(place, FOLDER)


@contextmanager
def spooled(place: Place, datasets: Datasets, rows: RowStream) -> "Iterator[LanceDataset]":
    """The rows of a long stream as a dataset that can be read more than once, for a while."""
    import lance

    name = f"{FOLDER}/{uuid.uuid4().hex}"
    aside = Place(place.store, f"{place.key}/{name}", f"{place.location}/{name}")
    try:
        with rows.telling():
            yield lance.write_dataset(
                rows.reader(), aside.location, schema=rows.schema, **datasets.write_options()
            )
    finally:
        files.remove_all(aside)
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
    """Refuse rows that don't fit a table, naming the column, what came and what was wanted."""
    from penstock.errors import SchemaMismatch

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
    """A type without what doesn't matter for writing: nullability and names of list items."""
    import pyarrow.types as t

    if t.is_fixed_size_list(kind):
        return f"fixed_size_list<{_plain(kind.value_type)}>[{kind.list_size}]"
    if t.is_large_list(kind):
        return f"large_list<{_plain(kind.value_type)}>"
    if t.is_list(kind):
        return f"list<{_plain(kind.value_type)}>"
    if t.is_struct(kind):
        return f"struct<{sorted((f.name, _plain(f.type)) for f in kind)}>"
    return str(kind)


def _not_arrow(error: BaseException) -> InvalidRequest:
    reason = (str(error) or "it is empty").splitlines()[0]
    return InvalidRequest(
        f"the body is not a sound Arrow IPC stream: {reason}",
        detail="send a complete stream as application/vnd.apache.arrow.stream",
    )
