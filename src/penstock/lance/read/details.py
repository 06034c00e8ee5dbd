"""Details that only the dataset has: schema, statistics, tags. Everything here blocks.

pylance is loaded on first use, so that a metadata server stays small.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from penstock.errors import InvalidRequest, InvalidTableState, TagNotFound
from penstock.lance.columns.schemas import UNITS
from penstock.lance.commit.manifest import MAX_VERSION
from penstock.lance.doors import lance, pa
from penstock.lance.errors import is_panic
from penstock.lance.session.bases import check_opened
from penstock.lance.session.damage import bad_manifest, check_manifest
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.model.branches import check_branch
from penstock.model.tables import TableVersion

# Arrow's types in the protocol, where pyarrow prints other names.
TYPE_NAMES = {
    "string": "utf8",
    "large_string": "large_utf8",
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
}


@dataclass(frozen=True, slots=True)
class TableDetails:
    schema: dict[str, Any]
    stats: dict[str, int]
    metadata: dict[str, str]


def load_details(
    place: Place,
    options: Mapping[str, str],
    branch: str,
    version: TableVersion,
    *,
    in_lance_words: bool = False,
) -> TableDetails:
    """Open one version of a table and describe it, with the protocol's or Lance's type names."""
    number = version.version
    if place.is_local:
        check_manifest(place, branch, version)
    try:
        dataset = lance.dataset(
            place.location,
            version=None if branch else number,
            storage_options=dict(options) or None,
        )
        dataset = dataset.checkout_version((branch or None, number))
        check_opened(dataset, place.location)
        stats = dataset.stats.dataset_stats()
        schema = dataset.schema
    except BaseException as error:
        if not isinstance(error, (ValueError, OSError)) and not is_panic(error):
            raise
        # If the store does not answer either, this raises that error instead.
        files.list_folder(place, "_versions")
        raise InvalidTableState(
            f"the table at {place.location} cannot be opened: {str(error).splitlines()[0]}",
            detail="check that its files are complete and that the server may read them",
        ) from error
    if dataset.version != number:
        raise bad_manifest(place, branch, version, f"it says version {dataset.version}")
    return TableDetails(
        to_lance_schema(schema) if in_lance_words else to_json_schema(schema),
        {"num_deleted_rows": stats["num_deleted_rows"], "num_fragments": stats["num_fragments"]},
        _to_text(schema.metadata),
    )


def read_tag(place: Place, tag: str) -> tuple[str, int]:
    """The branch and version that a tag points to."""
    try:
        content = files.read(place, f"_refs/tags/{tag}.json")
    except FileNotFoundError:
        raise TagNotFound(
            f"the table at {place.location} has no tag {tag!r}", detail="list the table's tags"
        ) from None
    try:
        found = msgspec.json.decode(content, type=_Tag)
        return check_branch(found.branch), found.version
    except (msgspec.MsgspecError, InvalidRequest) as error:
        raise InvalidTableState(
            f"the file of tag {tag!r} at {place.location} is damaged: {error}",
            detail="delete the tag and create it again",
        ) from error


def to_json_schema(schema: "pa.Schema") -> dict[str, Any]:
    """An Arrow schema in the protocol's JSON form."""
    found: dict[str, Any] = {"fields": [_to_field(field) for field in schema]}
    if schema.metadata:
        found["metadata"] = _to_text(schema.metadata)
    return found


def to_lance_schema(schema: "pa.Schema") -> dict[str, Any]:
    """An Arrow schema with Lance's type names; the protocol's where Lance has none."""
    found: dict[str, Any] = {"fields": []}
    for field in schema:
        try:
            found["fields"] += lance.schema.schema_to_json(pa.schema([field]))["fields"]
        except (ValueError, RuntimeError):
            found["fields"].append(_to_field(field))
    if schema.metadata:
        found["metadata"] = _to_text(schema.metadata)
    return found


class _Tag(msgspec.Struct):
    version: Annotated[int, msgspec.Meta(ge=0, le=MAX_VERSION)]
    branch: str | None = None


def _to_field(field: "pa.Field[Any]") -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": field.name,
        "type": to_json_type(field.type),
        "nullable": field.nullable,
    }
    if field.metadata:
        found["metadata"] = _to_text(field.metadata)
    return found


def to_json_type(kind: "pa.DataType") -> dict[str, Any]:
    if isinstance(kind, pa.BaseExtensionType):
        return to_json_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return to_json_type(kind.value_type)
    if pa.types.is_decimal(kind):
        if kind.scale < 0 or kind.bit_width < 128:
            return {"type": str(kind)}
        # The protocol has one number for both: precision * 1000 + scale.
        return {"type": f"decimal{kind.bit_width}", "length": kind.precision * 1000 + kind.scale}
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed_size_binary", "length": kind.byte_width}
    name = str(kind).partition("[")[0].partition("<")[0]
    if name in UNITS and (kind.unit != UNITS[name] or getattr(kind, "tz", None)):
        # Where the protocol's name alone would lose something.
        return {"type": str(kind)}
    found: dict[str, Any] = {"type": TYPE_NAMES.get(name, name)}
    if pa.types.is_map(kind):
        entries = {
            "type": "struct",
            "fields": [_to_field(kind.key_field), _to_field(kind.item_field)],
        }
        found["fields"] = [{"name": "entries", "type": entries, "nullable": False}]
    elif pa.types.is_nested(kind):
        found["fields"] = [_to_field(kind.field(i)) for i in range(kind.num_fields)]
    if pa.types.is_fixed_size_list(kind):
        found["length"] = kind.list_size
    return found


def _to_text(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {
        k.decode(errors="replace"): v.decode(errors="replace") for k, v in (metadata or {}).items()
    }
