"""Computed columns that follow a new name of a column that they read. Everything here blocks.

Only names change: of an expression the text, of a function the paths that it reads. The new names
and the new bindings are one version. Values stay known by what they were first declared with.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from penstock.errors import InvalidRequest, PenstockError, SchemaMismatch, Unavailable
from penstock.lance.columns.computed import (
    BINDING,
    DECLARED,
    EXPRESSION,
    FUNCTION,
    INPUTS,
    UDF_INPUTS,
    ComputedColumn,
    list_computed,
    show_inputs,
)
from penstock.lance.columns.fields import (
    Path,
    check_column_name,
    parse_path,
    show_path,
)
from penstock.lance.columns.inference import infer, make_empty
from penstock.lance.doors import evolution, lance, pa
from penstock.lance.errors import translated
from penstock.lance.expressions.renaming import rename_columns


@dataclass(frozen=True, slots=True)
class Renaming:
    """New names of columns, by the old ones, and what follows them."""

    names: Mapping[str, str]
    # Changed metadata of computed columns, by their old names.
    metadata: Mapping[str, Mapping[str, str]]
    # All bound columns before and after, in the same order.
    before: tuple[ComputedColumn, ...]
    after: tuple[ComputedColumn, ...]

    @property
    def following(self) -> list[tuple[ComputedColumn, ComputedColumn]]:
        """The columns whose bindings change, before and after."""
        pairs = zip(self.before, self.after, strict=True)
        return [pair for pair in pairs if pair[0].name in self.metadata]


def plan_renaming(
    dataset: "lance.LanceDataset", names: Mapping[str, str], *, follow: bool
) -> Renaming:
    """What new names of columns change; raises when something that is to follow cannot."""
    schema, before = dataset.schema, list_computed(dataset.schema)
    renamed = _rename(schema, names, {})
    metadata = {}
    for column in before if follow else ():
        if any(parse_path(path)[0] in names for path in column.inputs):
            try:
                metadata[column.name] = _follow(dataset, renamed, column, names)
            except Unavailable:
                raise
            except PenstockError as error:
                raise InvalidRequest(
                    f"computed column {column.name!r} cannot follow the new name of "
                    f"{', '.join(names)}: {error.message}",
                    detail=f"drop column {column.name!r} first, or use ?force=true to let it break",
                ) from error
    after = list_computed(_rename(schema, names, metadata))
    return Renaming(names, metadata, tuple(before), tuple(after))


def check_free(dataset: "lance.LanceDataset", new: str) -> None:
    """Refuse a new name that a column of the table has."""
    if check_column_name(new) in dataset.schema.names:
        raise SchemaMismatch(
            f"column {new!r} exists already", detail="choose another name, or drop it first"
        )


def commit_renaming(dataset: "lance.LanceDataset", renaming: Renaming) -> int:
    """Commit the new names with what follows them; returns the version."""
    return evolution.commit_fields(dataset, renaming.names, renaming.metadata, {})


def _follow(
    dataset: "lance.LanceDataset",
    renamed: "pa.Schema",
    column: ComputedColumn,
    names: Mapping[str, str],
) -> dict[str, str]:
    inputs = tuple(_move(path, names) for path in column.inputs)
    if column.function is not None:
        return {
            UDF_INPUTS: show_inputs(dataset.schema, column.name, inputs),
            FUNCTION: msgspec.json.encode(column.function.reading(inputs)).decode(),
        }
    assert column.expression is not None
    expression = rename_columns(f"the expression of {column.name}", column.expression, names)
    _check_same(dataset, renamed, column, expression, names)
    declared = [expression, column.declared or column.expression]
    return {
        EXPRESSION: expression,
        INPUTS: json.dumps(inputs, ensure_ascii=False),
        DECLARED: json.dumps(declared, ensure_ascii=False),
        # Of a column that another client bound: it was known by its expression.
        BINDING: column.binding,
    }


def _check_same(
    dataset: "lance.LanceDataset",
    renamed: "pa.Schema",
    column: ComputedColumn,
    expression: str,
    names: Mapping[str, str],
) -> None:
    """Have Lance read the new text: it must read the same columns, and give the same type."""
    assert column.expression is not None
    with translated():
        kind, reads = infer(dataset, column.name, column.expression)
        wanted = kind, {_move(path, names) for path in reads}
        kind, reads = infer(make_empty(renamed), column.name, expression)
    if (kind, {*reads}) != wanted:
        raise InvalidRequest("its expression does not mean the same with the new name")


def _rename(
    schema: "pa.Schema", names: Mapping[str, str], metadata: Mapping[str, Mapping[str, str]]
) -> "pa.Schema":
    fields = []
    for field in schema:
        if changed := metadata.get(field.name):
            field = field.with_metadata({**(field.metadata or {}), **_to_bytes(changed)})
        fields.append(field.with_name(names.get(field.name, field.name)))
    return pa.schema(fields, schema.metadata)


def _to_bytes(values: Mapping[str, str]) -> dict[bytes, bytes]:
    return {key.encode(): value.encode() for key, value in values.items()}


def _move(path: str, names: Mapping[str, str]) -> str:
    root, *inside = parse_path(path)
    moved: Path = (names.get(root, root), *inside)
    return show_path(moved)
