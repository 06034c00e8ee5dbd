"""Schemas of views: validate them, and compare their content.

pyiceberg's Schema checks rules between columns, but trusts its input: it accepts "1" and true for
1, and Python's spelling of fields for Iceberg's. So the shape is checked here, and pyiceberg gets a
copy with only the fields that it knows.
"""

import re
from collections.abc import Callable, Hashable
from typing import Any

import msgspec
from pydantic import ValidationError
from pyiceberg.exceptions import ValidationError as IcebergValidationError
from pyiceberg.schema import Schema

from penstock.errors import InvalidRequest, InvalidView
from penstock.iceberg import checks
from penstock.iceberg.checks import clip, join, show
from penstock.iceberg.metadata import Json

_PRIMITIVES = {"boolean", "int", "long", "float", "double", "string", "uuid", "binary", "unknown"}
_PRIMITIVES |= {"date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
_DECIMAL = re.compile(r"decimal\(\s*([1-9]|[12]\d|3[0-8])\s*,\s*(\d{1,2})\s*\)", re.ASCII)
_FIXED = re.compile(r"fixed\[\s*(\d{1,9})\s*\]", re.ASCII)
# pyiceberg uses a dozen of Python's 1,000 frames per level; its clients give up at 80.
MAX_LEVELS = 32
# Legal, but pyiceberg 0.12 can't read them, or not as Java writes them.
_NEWER = re.compile(r"variant|(geometry|geography)(\s*\([^()]*\))?")
# Java treats null as absent here; pyiceberg can't read it.
_OPTIONAL = ("schema-id", "identifier-field-ids")
_TYPE_FIELDS = ("type", "element", "key", "value")
_DEFAULTS = ("initial-default", "write-default")


def check_schema(value: object, path: str) -> Json:
    """Check a schema that every reader must understand; returns it unchanged."""
    schema = checks.check_object(value, path)
    if schema.get("type") != "struct":
        raise InvalidRequest(
            f"{join(path, 'type')} is {show(schema.get('type'))}, not 'struct'",
            detail="a schema is a struct of columns",
        )
    if any(key in schema and schema[key] is None for key in _OPTIONAL):
        schema = {k: v for k, v in schema.items() if k not in _OPTIONAL or v is not None}
    ids: set[int] = set()
    known = _read_struct(schema, path, ids)
    if "schema-id" in schema:
        checks.get_integer(schema, "schema-id", path)
    if "identifier-field-ids" in schema:
        known["identifier-field-ids"] = _read_identifiers(schema, path, ids)
    if _count_levels(known) > MAX_LEVELS:
        raise InvalidView(
            f"Invalid schema: {path} has types within types more than {MAX_LEVELS} levels deep",
            detail="send a flatter schema",
        )
    _check_rules(known, path)
    return schema


def content(schema: Json) -> bytes:
    """The schema's content: equal for schemas that differ only in ids and spelling."""
    said = _spell({key: each for key, each in schema.items() if key != "schema-id"})
    return msgspec.json.encode(said, order="deterministic")


def fingerprint(schema: Json) -> Hashable:
    """Equal for schemas with the same content, and rarely for others."""
    return tuple([field["name"] for field in schema["fields"]])


def _read_struct(struct: Json, path: str, ids: set[int]) -> Json:
    fields = checks.get_objects(struct, "fields", path)
    inner = join(path, "fields")
    known = [_read_field(field, f"{inner}[{n}]", ids) for n, field in enumerate(fields)]
    names: set[str] = set()
    for field in known:
        if field["name"] in names:
            raise InvalidView(
                f"Invalid schema: {inner} has two columns named {show(field['name'])}",
                detail="give each column a name of its own",
            )
        names.add(field["name"])
    return {"type": "struct", "fields": known}


def _read_field(field: Json, path: str, ids: set[int]) -> Json:
    known: Json = {
        "id": _read_id(field, "id", path, ids),
        "name": checks.get_text(field, "name", path),
        "type": _read_type(checks.get(field, "type", path), join(path, "type"), ids),
        "required": checks.get_flag(field, "required", path),
    }
    if field.get("doc") is not None:
        checks.get_text(field, "doc", path)
    for name in _DEFAULTS:
        # The default of a stand-in is not a value of its type.
        if field.get(name) is not None and not _is_newer(field["type"]):
            known[name] = field[name]
    return known


def _read_type(value: object, path: str, ids: set[int]) -> Any:
    if isinstance(value, str):
        return _read_primitive(value, path)
    given = checks.check_object(value, path)
    kind = checks.get_text(given, "type", path)
    if (read := _NESTED.get(kind)) is None:
        raise InvalidView(
            f"{clip(join(path, 'type'))} is {show(kind)}, which is no type",
            detail="nested types are struct, list and map",
        )
    return read(given, path, ids)


def _read_list(given: Json, path: str, ids: set[int]) -> Json:
    return {
        "type": "list",
        "element-id": _read_id(given, "element-id", path, ids),
        "element": _read_type(checks.get(given, "element", path), join(path, "element"), ids),
        "element-required": checks.get_flag(given, "element-required", path),
    }


def _read_map(given: Json, path: str, ids: set[int]) -> Json:
    return {
        "type": "map",
        "key-id": _read_id(given, "key-id", path, ids),
        "key": _read_type(checks.get(given, "key", path), join(path, "key"), ids),
        "value-id": _read_id(given, "value-id", path, ids),
        "value": _read_type(checks.get(given, "value", path), join(path, "value"), ids),
        "value-required": checks.get_flag(given, "value-required", path),
    }


_NESTED: dict[str, Callable[[Json, str, set[int]], Json]] = {
    "struct": _read_struct,
    "list": _read_list,
    "map": _read_map,
}


def _read_primitive(name: str, path: str) -> str:
    if name in _PRIMITIVES:
        return name
    if found := _DECIMAL.fullmatch(name):
        return f"decimal({found[1]}, {found[2]})"
    if found := _FIXED.fullmatch(name):
        return f"fixed[{found[1]}]"
    if _is_newer(name):
        return "binary"
    raise InvalidView(
        f"{clip(path)} is {show(name)}, which is no type",
        detail="use one of Iceberg's types, as int, string, decimal(9,2) or fixed[16]",
    )


def _is_newer(name: object) -> bool:
    return isinstance(name, str) and _NEWER.fullmatch(name) is not None


def _read_id(parent: Json, key: str, path: str, ids: set[int]) -> int:
    found = checks.get_integer(parent, key, path)
    if found in ids:
        raise InvalidView(
            f"Invalid schema: {clip(join(path, key))} is {found}, as another column's",
            detail="give each column, element, key and value an id of its own",
        )
    ids.add(found)
    return found


def _read_identifiers(schema: Json, path: str, ids: set[int]) -> list[int]:
    inner = join(path, "identifier-field-ids")
    given = checks.get_list(schema, "identifier-field-ids", path)
    found = [checks.check_integer(value, f"{inner}[{n}]") for n, value in enumerate(given)]
    if unknown := [each for each in found if each not in ids]:
        raise InvalidView(
            f"Invalid schema: {inner} names {unknown[0]}, which is no column's id",
            detail="name columns of this schema",
        )
    return found


def _count_levels(type: Any) -> int:
    if isinstance(type, str):
        return 0
    inner = [type[key] for key in ("element", "key", "value") if key in type]
    inner += [field["type"] for field in type.get("fields", ())]
    return 1 + max(map(_count_levels, inner), default=0)


def _check_rules(known: Json, path: str) -> None:
    """Check pyiceberg's rules: full names, identifier columns, defaults that fit their types."""
    try:
        Schema(**known)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = path
        for part in first["loc"]:
            place = f"{place}[{part}]" if isinstance(part, int) else join(place, part)
        reason = first["msg"].removeprefix("Value error, ")
        raise InvalidView(f"Invalid schema: {clip(place)}: {clip(reason)}", detail=_MEND) from None
    except (ValueError, IcebergValidationError) as error:
        raise InvalidView(f"Invalid schema: {path}: {clip(str(error))}", detail=_MEND) from None
    except (TypeError, ArithmeticError, LookupError, AttributeError):
        # The shape is right by now, so only the conversion of a default can fail.
        raise InvalidView(
            f"Invalid schema: {path} has a default that is no value of its column's type",
            detail="send defaults in Iceberg's JSON form of single values, or leave them out",
        ) from None


_MEND = "mend the schema as the message says"


def _spell(value: Any, key: str = "") -> Any:
    """Normalise schemas with the same content to one spelling."""
    if isinstance(value, dict):
        spelled = {k: _spell(v, k) for k, v in value.items()}
        return {k: v for k, v in spelled.items() if v is not None}
    if key == "identifier-field-ids" and isinstance(value, list):
        return sorted(set(value)) or None
    if isinstance(value, list):
        return [_spell(each) for each in value]
    return value.replace(" ", "") if key in _TYPE_FIELDS and isinstance(value, str) else value
