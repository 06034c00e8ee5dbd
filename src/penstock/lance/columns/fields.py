"""Field paths, and changes of a table's schema. Everything but the paths blocks.

A path names a nested field with dots; a part that contains a dot is in back-quotes, in which a
back-quote is doubled.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import ColumnNotFound, InvalidRequest, SchemaMismatch
from penstock.lance.columns.schemas import to_arrow_type
from penstock.lance.doors import lance
from penstock.lance.expressions.check import check_expressions

Path = tuple[str, ...]

# Lance serves these from outside the schema.
SYSTEM_COLUMNS = (
    "_rowid",
    "_rowaddr",
    "_rowoffset",
    "_row_created_at_version",
    "_row_last_updated_at_version",
    "_distance",
    "_score",
)

_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the schema; its short path omits the items of lists."""

    path: str
    short_path: str
    lance: Any

    @property
    def metadata(self) -> dict[str, str]:
        return dict(self.lance.metadata)


@dataclass(frozen=True, slots=True)
class Alteration:
    """Changes of one field; None keeps the value."""

    path: str
    name: str | None = None
    nullable: bool | None = None
    data_type: object = None


@dataclass(frozen=True, slots=True)
class MetadataUpdate:
    """Changes of a field's metadata; None as a value removes the key."""

    path: str
    values: Mapping[str, str | None]
    replace: bool = False


def quote_name(name: str) -> str:
    """The path of a column of this name, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def parse_path(text: str) -> Path:
    """The parts of a field path."""
    parts: list[str] = []
    at = 0
    while match := _PART.match(text, at):
        parts.append(match[1].replace("``", "`") if match[1] else match[2])
        at = match.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            break
        at += 1
    raise InvalidRequest(
        f"{text!r} is not a field path",
        detail="separate parts by dots; put a part with a dot or a back-quote into back-quotes",
    )


def show_path(path: Path) -> str:
    """The canonical form of a path: back-quotes only where needed."""
    return ".".join(
        "`" + part.replace("`", "``") + "`" if set(part) & {".", "`"} else part for part in path
    )


def check_column_name(name: str) -> str:
    """Check a column's name: Lance accepts some that make the table unreadable."""
    if not name.isprintable() or name in SYSTEM_COLUMNS:
        raise InvalidRequest(
            f"column name {name!r} is not legal",
            detail="use printable characters, and none of " + ", ".join(SYSTEM_COLUMNS),
        )
    if "`" in name:
        raise InvalidRequest(
            f"column name {name!r} holds a back-quote",
            detail="choose a name without one: Lance cannot name such a column in expressions",
        )
    return name


def get_field(dataset: "lance.LanceDataset", text: str) -> Field:
    """Find a field; the path may name or omit the items of a list."""
    path = parse_path(text)
    fields, field = dataset.lance_schema.fields(), None
    full: list[str] = []
    short: list[str] = []
    for part in path:
        found = _find(fields, part)
        while found is None and fields and _is_list(field):
            field = fields[0]
            full.append(field.name())
            fields = field.children()
            found = _find(fields, part)
        if found is None:
            raise ColumnNotFound(
                f"column {show_path(path)} does not exist",
                detail="the table has " + ", ".join(dataset.schema.names[:50]),
            )
        full.append(part)
        if not _is_list(field):
            short.append(part)
        field, fields = found, found.children()
    return Field(show_path(tuple(full)), show_path(tuple(short)), field)


def add_columns(dataset: "lance.LanceDataset", expressions: Mapping[str, str]) -> int:
    """Add columns, each computed once from a row's other columns; returns the version."""
    present = set(dataset.schema.names)
    checked = check_expressions("new_columns", expressions)
    for name in expressions:
        if check_column_name(name) in present:
            raise SchemaMismatch(
                f"column {name!r} exists already", detail="choose another name, or drop it first"
            )
    dataset.add_columns(checked)
    return dataset.version


def alter_columns(dataset: "lance.LanceDataset", alterations: Sequence[Alteration]) -> int:
    """Rename, retype or relax fields, all in one version; returns it."""
    changes: dict[str, dict[str, Any]] = {}
    for each in alterations:
        path = get_field(dataset, each.path).path
        if path in changes:
            raise InvalidRequest(
                f"column {path} is altered twice", detail="put its changes into one alteration"
            )
        changes[path] = _plan_alteration(path, each)
    dataset.alter_columns(*changes.values())  # type: ignore[arg-type]
    return dataset.version


def drop_columns(dataset: "lance.LanceDataset", paths: Sequence[str]) -> int:
    """Drop fields, all in one version; returns it."""
    found = dict.fromkeys(get_field(dataset, path).path for path in paths)
    dataset.drop_columns(list(found))
    return dataset.version


def update_field_metadata(
    dataset: "lance.LanceDataset", updates: Sequence[MetadataUpdate]
) -> tuple[int, dict[str, dict[str, str]]]:
    """Change fields' metadata in one version; returns it and the result for each field."""
    before: dict[str, dict[str, str]] = {}
    merged: dict[str, dict[str, str | None]] = {}
    for update in updates:
        field = get_field(dataset, update.path)
        path = field.path
        before[path] = field.metadata
        kept = {} if update.replace else merged.get(path, {})
        merged[path] = {**kept, **update.values}
    if any(update.replace for update in updates):
        # Lance replaces all or nothing in one commit, so the other keys are written out in full.
        replaced = {get_field(dataset, u.path).path for u in updates if u.replace}
        for path in merged.keys() - replaced:
            merged[path] = {**before[path], **merged[path]}
        full = {p: {k: v for k, v in m.items() if v is not None} for p, m in merged.items()}
        dataset.update_field_metadata(full, replace=True)  # type: ignore[arg-type]
    else:
        dataset.update_field_metadata(merged)
    return dataset.version, {path: get_field(dataset, path).metadata for path in merged}


def replace_schema_metadata(
    dataset: "lance.LanceDataset", values: Mapping[str, str]
) -> dict[str, str]:
    """Replace the schema's metadata; returns the result."""
    return dataset.update_schema_metadata(dict(values), replace=True)


def _find(fields: Sequence[Any], name: str) -> Any:
    return next((field for field in fields if field.name() == name), None)


def _is_list(field: Any) -> bool:
    return field is not None and hasattr(field.to_arrow().type, "value_type")


def _plan_alteration(path: str, wanted: Alteration) -> dict[str, Any]:
    change: dict[str, Any] = {"path": path}
    if wanted.name is not None:
        change["name"] = check_column_name(wanted.name)
    if wanted.nullable is not None:
        change["nullable"] = wanted.nullable
    if wanted.data_type is not None:
        change["data_type"] = to_arrow_type(wanted.data_type)
    if len(change) == 1:
        raise InvalidRequest(
            f"the alteration of column {path} changes nothing",
            detail="send rename, nullable or data_type",
        )
    return change
