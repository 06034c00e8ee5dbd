"""Metadata keys of the server, which bind columns: rows from outside must not bring them."""

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.errors import InvalidRequest
from penstock.lance.columns.computed import OWN, RESERVED
from penstock.lance.columns.fields import show_path
from penstock.lance.doors import pa

Metadata = Mapping[bytes, bytes]


def check_brought(rows: "pa.Schema", known: "pa.Schema | None" = None) -> None:
    """Refuse the server's own keys in a schema that becomes a table's.

    Rows that were read from a table have its keys, and may come back into it with them.
    """
    has = dict(list_fields(known or ()))
    for path, metadata in list_fields(rows):
        for key, value in metadata.items():
            text = key.decode(errors="replace")
            if text.lower().startswith(RESERVED) and has.get(path, {}).get(key) != value:
                raise _refuse(text, f"column {show_path(path)}", "field.remove_metadata()")
    mine: Metadata = (known.metadata if known is not None else None) or {}
    for key, value in (rows.metadata or {}).items():
        text = key.decode(errors="replace")
        if text.lower().startswith(OWN) and mine.get(key) != value:
            raise _refuse(text, "the schema", "schema.remove_metadata()")


def check_schema_metadata(known: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """The new metadata of a schema: the server's keys stay, and are refused in the input."""
    mine = {key: value for key, value in known.items() if key.startswith(OWN)}
    for key, value in wanted.items():
        if key.lower().startswith(OWN) and mine.get(key) != value:
            raise _refuse(key, "the schema", "other keys")
    return {**wanted, **mine}


def _refuse(key: str, where: str, remedy: str) -> InvalidRequest:
    return InvalidRequest(
        f"the metadata {key!r} of {where} is the server's own",
        detail=f"leave it out ({remedy}); computed columns are added by add_columns",
    )


def list_fields(
    fields: Any, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Metadata]]:
    """Every field, including nested ones, with its metadata."""
    for field in fields:
        path = (*above, field.name)
        if field.metadata:
            yield path, field.metadata
        yield from list_fields(_children(field.type), path)


def _children(kind: Any) -> "list[pa.Field[Any]]":
    # For a type that Arrow does not know: how it is stored.
    kind = getattr(kind, "storage_type", kind)
    return [kind.field(number) for number in range(kind.num_fields)]
