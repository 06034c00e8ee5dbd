"""Open the Iceberg tables of a view: one metadata file each, as it was chosen. It blocks."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from msgspec import structs

from penstock.errors import InvalidRequest, InvalidTableState
from penstock.iceberg.files import decode_metadata
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.changes import current_schema
from penstock.jobs.refresh.view_notes import Pin, Pins
from penstock.jobs.specs import RefreshSpec
from penstock.lance.columns.fields import parse_path
from penstock.lance.columns.schemas import decode_schema, find_type
from penstock.lance.session.remote import Location
from penstock.lance.storage import files
from penstock.model.views import IcebergState, Source, Watermark
from penstock.sql.definitions.iceberg_types import TO_ARROW, to_arrow


@dataclass(frozen=True, slots=True, eq=False)
class IcebergVersions:
    """A table in the state that the view is to follow, and the snapshot that it follows now."""

    source: Source
    state: IcebergState
    document: Json
    schema: pa.Schema
    # None when there is nothing to compare with; `Context.rebuild` says why.
    then: int | None = None

    @property
    def now(self) -> int:
        return self.state.snapshot

    @property
    def is_same(self) -> bool:
        """Whether no row of it changed."""
        return self.then == self.now


def open_tables(spec: RefreshSpec, pins: Pins, view: Location) -> dict[str, IcebergVersions]:
    """Read the metadata of each Iceberg table of a view, and the snapshot that the view follows."""
    states = at_pins(spec, pins).iceberg
    known = {} if spec.watermark is None else spec.watermark.versions
    found = {}
    for source in spec.definition.iceberg_tables:
        if source.id not in states:
            raise InvalidRequest(f"{_show(source)} was dropped", detail="check the view's query")
        state = states[source.id]
        document = _read(state, source, view.options)
        fields = current_schema(document)
        schema = to_arrow(fields, TO_ARROW)
        _check_columns(schema, {each["name"]: each["id"] for each in fields["fields"]}, source)
        then = known.get(source.id)
        found[source.id] = IcebergVersions(source, state, document, schema, then)
    return found


def at_pins(spec: RefreshSpec, pins: Pins) -> RefreshSpec:
    """The spec with the files that were chosen, whatever the tables are by now."""
    states = {
        id: _at_pin(state, pins.versions[id]) if id in pins.versions else state
        for id, state in spec.iceberg.items()
    }
    return structs.replace(spec, iceberg=states)


def find_replaced(tables: Mapping[str, IcebergVersions], watermark: Watermark | None) -> str:
    """Why a view cannot go on from what it follows: a table is another one; "" when none is."""
    known = {} if watermark is None else watermark.transactions
    for id, each in tables.items():
        if each.then is None or known.get(id) != each.state.uuid:
            return f"{_show(each.source)} is another table than at the last refresh"
    return ""


def _at_pin(state: IcebergState, pin: Pin) -> IcebergState:
    if not pin.file:
        return state
    return structs.replace(state, uuid=pin.transaction, snapshot=pin.version, file=pin.file)


def _read(state: IcebergState, source: Source, options: Mapping[str, str]) -> Json:
    folder, _, name = state.file.rpartition("/")
    place = Location(folder.removeprefix("file://"), "", options).place()
    try:
        return decode_metadata(files.read(place, name), state.file)
    except FileNotFoundError as error:
        raise InvalidTableState(
            f"the metadata of {_show(source)} that this refresh began with is gone: {state.file}",
            detail="request the refresh again",
        ) from error


def _check_columns(schema: pa.Schema, ids: Mapping[str, int], source: Source) -> None:
    """Refuse a table whose columns are not those that the definition was made for."""
    for field in decode_schema(source.types) if source.types else ():
        path = parse_path(field.name)
        kind = find_type(schema, path)
        is_other = kind is not None and ids[path[0]] != source.fields.get(path[0], ids[path[0]])
        if kind != field.type or is_other:
            what = "is gone" if kind is None else f"was {field.type} and is {kind}"
            what = "is another one" if is_other else what
            raise InvalidRequest(
                f"{_show(source)} is not what it was when the refresh was requested: column "
                f"{field.name} {what}",
                detail="request the refresh again",
            )


def _show(source: Source) -> str:
    return "$".join(source.table)
