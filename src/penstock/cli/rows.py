"""Rows on a terminal, and in files of several formats."""

from typing import Any

import click
import msgspec

from penstock.cli.output import echo_table
from penstock.errors import InvalidRequest
from penstock.sdk.connection.optional_libraries import load

CELL = 60


def echo_rows(table: Any, as_json: bool) -> None:
    """Print rows as a table, or as one object a line."""
    rows = _to_rows(table)
    if as_json:
        for row in rows:
            named = dict(zip(table.column_names, row, strict=True))
            click.echo(msgspec.json.encode(named, enc_hook=str).decode())
        return
    shown = [tuple(_show(value) for value in row) for row in rows]
    echo_table([tuple(table.column_names), *shown])


def write_rows(table: Any, format: str, out: Any) -> None:
    """Write rows as csv, json (an object a line), arrow (an IPC file) or parquet."""
    pa = load("pyarrow", "writing rows")
    try:
        if format == "csv":
            load("pyarrow.csv", "csv").write_csv(_to_plain(pa, table), out)
        elif format == "parquet":
            load("pyarrow.parquet", "parquet").write_table(table, out)
        elif format == "arrow":
            with pa.ipc.new_file(out, table.schema) as writer:
                writer.write_table(table)
        else:
            for row in _to_rows(table):
                named = dict(zip(table.column_names, row, strict=True))
                out.write(msgspec.json.encode(named, enc_hook=str) + b"\n")
    except pa.ArrowException as error:
        raise InvalidRequest(
            f"the rows cannot be written as {format}: {error}", detail="use --format arrow"
        ) from error


def _to_rows(table: Any) -> list[tuple[Any, ...]]:
    """Rows by place, because two columns may have one name."""
    try:
        columns = [column.to_pylist() for column in table.columns]
    except (OverflowError, ValueError) as error:
        raise InvalidRequest(
            f"a value is none that Python can hold: {error}",
            detail="leave its column out, or save the rows with --format arrow",
        ) from error
    return list(zip(*columns, strict=True))


def _to_plain(pa: Any, table: Any) -> Any:
    """The table with lists, structs and maps as JSON, which csv has no form for."""
    for place, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            texts = [
                None if value is None else msgspec.json.encode(value, enc_hook=str).decode()
                for value in table.column(place).to_pylist()
            ]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    return table


def _show(value: Any) -> str:
    text = "NULL" if value is None else str(value).replace("\n", "\\n")
    return text if len(text) <= CELL else text[: CELL - 1] + "…"
