"""Change columns while keeping the bindings of bound columns right. Everything here blocks."""

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import InvalidRequest, SchemaMismatch
from penstock.lance.columns import fields as columns
from penstock.lance.columns.computed import (
    BINDING,
    COMPUTED,
    EXPRESSION,
    FIELDS,
    INPUTS,
    KIND,
    OWN,
    REFRESH,
    RESERVED,
    SQL_AUTO,
    VIRTUAL,
    ComputedColumn,
    get_computed,
    list_computed,
    refuse_value,
    show_fields,
)
from penstock.lance.columns.fields import (
    Alteration,
    MetadataUpdate,
    check_column_name,
    get_field,
    parse_path,
    show_path,
)
from penstock.lance.columns.following import (
    Renaming,
    check_free,
    commit_renaming,
    plan_renaming,
)
from penstock.lance.columns.function_columns import make_fields, plan_redeclaration
from penstock.lance.columns.inference import infer
from penstock.lance.doors import lance, pa
from penstock.lance.expressions.check import check_expression
from penstock.lance.write.reserved_metadata import check_schema_metadata
from penstock.model.allowances import NOTHING_BREAKS, Allowance
from penstock.model.envelopes import FunctionCode
from penstock.model.functions import Declaration, Redeclaration


@dataclass(frozen=True, slots=True)
class RedeclaredColumn:
    """A column whose function is declared again: before, after, and what the request brought."""

    before: ComputedColumn
    column: ComputedColumn
    brings_code: bool
    brings_manifest: bool


# A function and its code; None keeps the code when a function is declared again.
New = tuple[Declaration, FunctionCode]
Changed = tuple[str, Redeclaration, FunctionCode | None]


def add_bound(
    dataset: "lance.LanceDataset",
    expressions: Mapping[str, str],
    functions: Sequence[New],
    auto: Collection[str] = (),
) -> tuple[int, list[ComputedColumn]]:
    """Add columns without values, bound to what computes them, in one version.

    `auto` names the expressions that are filled without a request.
    """
    fields = plan_bound(dataset, expressions, functions, auto)
    dataset.add_columns(pa.schema(fields))
    names = {field.name for field in fields}
    return dataset.version, [c for c in list_computed(dataset.schema) if c.name in names]


def plan_bound(
    dataset: "lance.LanceDataset",
    expressions: Mapping[str, str],
    functions: Sequence[New],
    auto: Collection[str] = (),
) -> "list[pa.Field[Any]]":
    """The fields of new bound columns; raises when one of them can't be added."""
    taken = set(dataset.schema.names)
    outputs = [output.column for declared, _ in functions for output in declared.outputs]
    for name in (*expressions, *outputs):
        if check_column_name(name) in taken:
            raise SchemaMismatch(
                f"column {name!r} exists already", detail="choose another name, or drop it first"
            )
    fields = []
    for name, sql in expressions.items():
        kind, inputs = infer(dataset, name, sql)
        metadata = {
            COMPUTED: "true",
            KIND: "sql",
            EXPRESSION: check_expression(f"the expression of {name}", sql),
            INPUTS: json.dumps(inputs, ensure_ascii=False),
            f"{REFRESH}.source_signature": "{}",
            BINDING: uuid.uuid4().hex,
            FIELDS: show_fields(dataset, inputs),
            **({SQL_AUTO: "true"} if name in auto else {}),
        }
        fields.append(pa.field(name, kind, True, metadata))
    for declared, code in functions:
        fields += make_fields(dataset, declared, code)
    return fields


def redeclare(
    dataset: "lance.LanceDataset", changes: Sequence[Changed]
) -> tuple[int, list[RedeclaredColumn]]:
    """Give columns new versions of their functions, all in one version; keeps the values."""
    planned = plan_redeclarations(dataset, changes)
    updates = [MetadataUpdate(show_path((name,)), values) for name, values in planned.items()]
    before = {each.name: each for each in list_computed(dataset.schema)}
    brought = {
        name: (code is not None, wanted.manifest is not None or _has_environment(code))
        for path, wanted, code in changes
        for name in get_computed(dataset, path).columns
    }
    version, _ = columns.update_field_metadata(dataset, updates)
    return version, [
        RedeclaredColumn(before[each.name], each, *brought[each.name])
        for each in list_computed(dataset.schema)
        if each.name in planned
    ]


def _has_environment(code: FunctionCode | None) -> bool:
    """Whether the environment comes with the code: that of a registered version does."""
    return code is not None and code.registered is not None


def plan_redeclarations(
    dataset: "lance.LanceDataset", changes: Sequence[Changed]
) -> dict[str, dict[str, str | None]]:
    """The new metadata of each column of the changed functions."""
    planned: dict[str, dict[str, str | None]] = {}
    seen: dict[str, tuple[Redeclaration, FunctionCode | None]] = {}
    for path, wanted, code in changes:
        column, values = plan_redeclaration(dataset, path, wanted, code)
        if seen.setdefault(column.binding, (wanted, code)) != (wanted, code):
            raise InvalidRequest(
                f"the function of column {column.name!r} is altered twice, in different ways",
                detail="the columns " + ", ".join(column.columns) + " change together: alter one",
            )
        if column.name not in planned:
            planned |= dict.fromkeys(column.columns, values)
    return planned


def plan_alterations(
    dataset: "lance.LanceDataset",
    alterations: Sequence[Alteration],
    *,
    force: bool = False,
    follow: bool = False,
) -> Renaming:
    """What the new names among some alterations change; raises when one is not allowed.

    With `follow`, computed columns that read a renamed column read it by its new name.
    """
    check_alterations(dataset, alterations, force=force or follow)
    paths = {parse_path(get_field(dataset, a.path).path): a.name for a in alterations}
    names = {path[0]: name for path, name in paths.items() if name is not None and len(path) == 1}
    for name in names.values() if follow else ():
        check_free(dataset, name)
    return plan_renaming(dataset, names, follow=follow)


def alter_columns(
    dataset: "lance.LanceDataset", alterations: Sequence[Alteration], renaming: Renaming
) -> int:
    """Alter fields as planned; returns the version."""
    if renaming.metadata:
        return commit_renaming(dataset, renaming)
    return columns.alter_columns(dataset, alterations)


def drop_columns(
    dataset: "lance.LanceDataset", paths: Sequence[str], allowed: Allowance = NOTHING_BREAKS
) -> tuple[int, list[str]]:
    """Drop fields; returns the version and which of them were computed."""
    paths = plan_drop(dataset, paths, allowed)
    before = {column.name for column in list_computed(dataset.schema)}
    version = columns.drop_columns(dataset, paths)
    return version, sorted(before - {column.name for column in list_computed(dataset.schema)})


def plan_drop(dataset: "lance.LanceDataset", paths: Sequence[str], allowed: Allowance) -> list[str]:
    """The fields that a drop takes, as the schema spells them; raises when it can't be made."""
    found = list_dropped(dataset, paths, allowed)
    check_change(dataset, found, "drop", force=allowed.force)
    return found


def list_dropped(
    dataset: "lance.LanceDataset", paths: Sequence[str], allowed: Allowance
) -> list[str]:
    """The fields that a drop would take, before it is known whether it can be made."""
    found = list(dict.fromkeys(get_field(dataset, path).path for path in paths))
    return _add_readers(dataset, found) if allowed.cascade else found


def _add_readers(dataset: "lance.LanceDataset", paths: Sequence[str]) -> list[str]:
    """Some fields, and the computed columns that read them, also by way of others."""
    found = list(paths)
    bound = list_computed(dataset.schema)
    for path in found:
        for column in bound:
            if find_touched(column, [parse_path(path)]) is not None:
                names = (show_path((name,)) for name in column.columns)
                found += [name for name in names if name not in found]
    return found


def update_field_metadata(
    dataset: "lance.LanceDataset", updates: Sequence[MetadataUpdate]
) -> tuple[int, dict[str, dict[str, str]]]:
    """Change fields' metadata, except for bindings."""
    safe = []
    for update in updates:
        bound = keep_binding(get_field(dataset, update.path).metadata, update.values)
        kept = {**update.values, **bound} if update.replace else update.values
        safe.append(MetadataUpdate(update.path, kept, update.replace))
    return columns.update_field_metadata(dataset, safe)


def replace_schema_metadata(
    dataset: "lance.LanceDataset", values: Mapping[str, str]
) -> dict[str, str]:
    """Replace the schema's metadata, except for the server's own keys; returns the result."""
    known = dataset.schema.metadata or {}
    shown = {key.decode(): value.decode(errors="replace") for key, value in known.items()}
    return columns.replace_schema_metadata(dataset, check_schema_metadata(shown, values))


def check_alterations(
    dataset: "lance.LanceDataset", alterations: Sequence[Alteration], *, force: bool = False
) -> None:
    """Refuse alterations that a binding does not allow."""
    renamed = [a.path for a in alterations if a.name is not None]
    check_change(dataset, renamed, "rename", force=force)
    retyped = [a.path for a in alterations if a.data_type is not None]
    check_change(dataset, retyped, "change the type of", force=force)
    for each in alterations:
        if each.data_type is not None:
            check_retype(dataset, each.path)
        if each.nullable is False:
            check_nullable(dataset, each.path)


def check_change(
    dataset: "lance.LanceDataset", paths: Sequence[str], verb: str, *, force: bool = False
) -> None:
    """Refuse to rename or drop an input or part of a bound column, unless that goes too.

    With `force`, columns may lose their inputs.
    """
    touched = [parse_path(get_field(dataset, path).path) for path in paths]
    gone = {path[0] for path in touched if len(path) == 1} if verb == "drop" else set()
    for column in list_computed(dataset.schema):
        check_parts(column, touched, gone, verb)
        found = None if column.name in gone or force else find_touched(column, touched)
        if found is not None:
            raise InvalidRequest(
                f"cannot {verb} column {show_path(found[1])}: computed column "
                f"{column.name!r} reads {found[0]}",
                detail=f"drop column {column.name!r} first, or use ?force=true to let it break"
                + (", or ?cascade=true to let it follow" if verb == "rename" else ""),
            )


def is_read(dataset: "lance.LanceDataset", paths: Sequence[str]) -> bool:
    """Whether a computed column reads one of some fields, or part of one."""
    touched = [parse_path(path) for path in paths]
    return any(find_touched(each, touched) for each in list_computed(dataset.schema))


def find_touched(
    column: ComputedColumn, touched: Sequence[tuple[str, ...]]
) -> tuple[str, tuple[str, ...]] | None:
    """The first input of a column that one of some paths contains or is part of, and that path."""
    for text in column.inputs:
        path = parse_path(text)
        for other in touched:
            shared = min(len(path), len(other))
            if path[:shared] == other[:shared]:
                return text, other
    return None


def check_parts(
    column: ComputedColumn, touched: Sequence[tuple[str, ...]], gone: set[str], verb: str
) -> None:
    """Refuse to change part of a bound column, or to drop some of a function's columns."""
    for path in touched:
        if len(path) > 1 and path[0] == column.name and column.name not in gone:
            raise InvalidRequest(
                f"cannot {verb} column {show_path(path)}: column {column.name!r} is computed",
                detail="drop it as a whole, and add it with another type",
            )
    others = [name for name in column.columns if name not in gone]
    if column.name in gone and others:
        raise InvalidRequest(
            f"cannot drop column {column.name!r} alone: one function fills it together with "
            + ", ".join(others),
            detail="drop them all in one request",
        )


def check_retype(dataset: "lance.LanceDataset", path: str) -> None:
    """Refuse to change the type of a bound column: what computes it decides that."""
    if (column := _find(dataset, path)) is not None:
        decides = "expression" if column.function is None else "function"
        raise InvalidRequest(
            f"column {column.name!r} is computed, so its {decides} decides its type",
            detail=f"drop it and add it with another {decides} or type",
        )


def check_nullable(dataset: "lance.LanceDataset", path: str) -> None:
    """Refuse to forbid nulls in a bound column: rows that are not filled yet have one."""
    if (column := _find(dataset, path)) is not None:
        raise InvalidRequest(
            f"column {column.name!r} is computed, so it is null until it is filled",
            detail="leave nullable out",
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
    """The binding keys that must stay on a field; raises when the update changes them."""
    is_bound = "true" in (metadata.get(COMPUTED), metadata.get(VIRTUAL))
    bound = {k: v for k, v in metadata.items() if is_bound and k.startswith(RESERVED)}
    for key, value in news.items():
        if key.startswith((COMPUTED, VIRTUAL, OWN)) and bound.get(key) != value:
            raise InvalidRequest(
                f"the metadata {key!r} belongs to a computed column's binding",
                detail="add the column with `computed` or `virtual_column`, alter it, or drop it",
            )
    return bound


def _find(dataset: "lance.LanceDataset", path: str) -> ComputedColumn | None:
    name = parse_path(get_field(dataset, path).path)[0]
    return next((each for each in list_computed(dataset.schema) if each.name == name), None)
