"""Changes of columns that keep the bindings of computed columns right. All of it blocks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.datasets import columns
from penstock.datasets.columns import Alteration, MetadataUpdate, get_field, parse_path, show_path
from penstock.datasets.computed import BINDING, COMPUTED, list_computed, refuse_value
from penstock.errors import InvalidRequest

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset


def alter_columns(
    dataset: "LanceDataset", alterations: Sequence[Alteration]
) -> tuple[int, dict[str, str]]:
    """Alter fields; returns the version, and old and new names of computed columns."""
    check_change(dataset, [a.path for a in alterations if a.name is not None], "rename")
    for each in alterations:
        if each.data_type is not None:
            check_retype(dataset, each.path)
    bound = {column.name for column in list_computed(dataset.schema)}
    paths = {parse_path(get_field(dataset, a.path).path): a.name for a in alterations}
    version = columns.alter_columns(dataset, alterations)
    return version, {
        path[0]: name
        for path, name in paths.items()
        if name is not None and len(path) == 1 and path[0] in bound
    }


def drop_columns(dataset: "LanceDataset", paths: Sequence[str]) -> tuple[int, list[str]]:
    """Drop fields; returns the version and which of them were computed."""
    check_change(dataset, paths, "drop")
    before = {column.name for column in list_computed(dataset.schema)}
    version = columns.drop_columns(dataset, paths)
    return version, sorted(before - {column.name for column in list_computed(dataset.schema)})


def update_field_metadata(
    dataset: "LanceDataset", updates: Sequence[MetadataUpdate]
) -> tuple[int, dict[str, dict[str, str]]]:
    """Change fields' metadata, but not what binds a computed column."""
    safe = []
    for update in updates:
        bound = keep_binding(get_field(dataset, update.path).metadata, update.values)
        kept = {**update.values, **bound} if update.replace else update.values
        safe.append(MetadataUpdate(update.path, kept, update.replace))
    return columns.update_field_metadata(dataset, safe)


def check_change(dataset: "LanceDataset", paths: Sequence[str], verb: str) -> None:
    """Refuse to rename or drop what a computed column reads, unless that goes as well."""
    touched = [parse_path(get_field(dataset, path).path) for path in paths]
    gone = {path[0] for path in touched if len(path) == 1} if verb == "drop" else set()
    for column in list_computed(dataset.schema):
        if column.name in gone:
            continue
        for text in column.inputs:
            path = parse_path(text)
            for other in touched:
                shared = min(len(path), len(other))
                if path[:shared] == other[:shared]:
                    raise InvalidRequest(
                        f"cannot {verb} column {show_path(other)}: computed column "
                        f"{column.name!r} reads {text}",
                        detail=f"drop column {column.name!r} first",
                    )


def check_retype(dataset: "LanceDataset", path: str) -> None:
    """Refuse another type for a computed column: its expression says which it has."""
    name = get_field(dataset, path).path
    if any(column.name == parse_path(name)[0] for column in list_computed(dataset.schema)):
        raise InvalidRequest(
            f"column {name} is computed, so its expression decides its type",
            detail="drop it and add it with another expression",
        )


def check_update(schema: "pa.Schema", values: Mapping[str, str]) -> None:
    """Refuse to set a computed column to anything but null."""
    for column in list_computed(schema):
        for path, value in values.items():
            names = (column.name, show_path((column.name,)), f"`{column.name}`")
            is_part = path.startswith(tuple(f"{name}." for name in names))
            if (path in names or is_part) and value.strip().upper() != "NULL":
                raise refuse_value(column.name)


def keep_binding(metadata: Mapping[str, str], news: Mapping[str, str | None]) -> dict[str, str]:
    """The keys of a binding that must stay on a field; raises when they are to be changed."""
    bound = {k: v for k, v in metadata.items() if k == BINDING or k.startswith(COMPUTED)}
    if metadata.get(COMPUTED) != "true":
        bound = {}
    for key, value in news.items():
        if (key.startswith(COMPUTED) or key == BINDING) and bound.get(key) != value:
            raise InvalidRequest(
                f"the metadata {key!r} belongs to a computed column's binding",
                detail="add the column with `computed`, or drop it, instead",
            )
    return bound
