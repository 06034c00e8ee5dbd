"""Query dumps of other clients: `{"base": {…}, "source_table": …, "column_udfs": […]}`.

Expressions and the filter are in Lance's SQL. A dump is refused when its rows depend on a search,
an order or their place; options about speed or order only are ignored.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from penstock.errors import InvalidRequest
from penstock.model.envelopes import read_content
from penstock.model.identifiers import Identifier, check_identifier
from penstock.sql.definitions.requests import ColumnFunction, Dump, Reference

Text = Annotated[str, Meta(max_length=100_000)]
Name = Annotated[str, Meta(min_length=1, max_length=4000)]
Count = Annotated[int, Meta(ge=0, le=2**62)]
# Fields of `base` that choose rows in ways that a view can't follow.
REFUSED = ("vector", "full_text_query", "fragments", "fragment_ids", "take_offsets")
DELIMITER = "$"


class _Udf(Struct):
    udf_payload: Any
    name: Name | None = None
    version: Name | None = None


class _ColumnUdf(Struct):
    output_name: Name
    udf: _Udf
    input_columns: list[Name]
    output_index: Count | None = None


class _Base(Struct):
    filter: Text | None = None
    columns: list[Name] | dict[Name, Text] | None = None
    limit: Count | None = None
    offset: Count | None = None
    order_by: Any = None
    vector: Any = None
    full_text_query: Any = None
    fragments: Any = None
    fragment_ids: Any = None
    take_offsets: Any = None


class _Dump(Struct):
    source_table: Any
    base: _Base = msgspec.field(default_factory=_Base)
    column_udfs: list[_ColumnUdf] | None = None
    fragment_ids: Any = None


def read_dump(found: dict[str, Any], namespace: Identifier) -> Dump:
    """Read a dump; raises InvalidRequest for one that no view can follow."""
    try:
        sent = msgspec.convert(found, _Dump)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"source_query is not right: {error}", detail="correct the field after '$.'"
        ) from error
    base = sent.base
    for name in REFUSED:
        if getattr(base, name) or (name == "fragment_ids" and sent.fragment_ids):
            raise InvalidRequest(
                f"source_query has {name}, and a view can't follow that",
                detail="use filter, columns and limit",
            )
    if base.offset:
        raise InvalidRequest(
            "source_query has an offset, and a view has no order", detail="leave offset out"
        )
    if base.limit is not None and base.order_by:
        raise InvalidRequest(
            "source_query has order_by and limit",
            detail='send {"sql": "SELECT … ORDER BY … LIMIT …", "dialect": "spark"}',
        )
    plain = isinstance(base.columns, list)
    columns = base.columns
    if isinstance(columns, list):
        columns = {name: name for name in columns}
    return Dump(
        source=_refer(sent.source_table, namespace),
        filter=base.filter if base.filter and base.filter.strip() else None,
        columns=None if columns is None else tuple(columns.items()),
        plain=plain,
        limit=base.limit,
        functions=tuple(_read_function(i, each) for i, each in enumerate(sent.column_udfs or [])),
    )


def _refer(found: object, namespace: Identifier) -> Reference:
    """A table by its name in the namespace, or by a full path: a list, or parts between `$`."""
    names: list[Any] = found if isinstance(found, list) else [found]
    if not names or not all(isinstance(each, str) and each for each in names):
        raise InvalidRequest(
            "source_table in source_query is no name", detail='write "table" or "namespace$table"'
        )
    name: Identifier = tuple(names)
    split = tuple(name[0].split(DELIMITER)) if len(name) == 1 else name
    if not all(split):
        split = name
    candidates = [(*namespace, *name), name]
    candidates = [split, (*namespace, *split)] if len(split) > 1 else candidates
    for each in candidates:
        check_identifier(each, "source_table in source_query")
    return Reference(split, tuple(dict.fromkeys(candidates)))


def _read_function(index: int, sent: _ColumnUdf) -> ColumnFunction:
    """Read `udf_payload`: the envelope as JSON text, or the JSON object itself."""
    what = f"column_udfs[{index}] in source_query"
    payload = sent.udf.udf_payload
    if isinstance(payload, dict):
        content = msgspec.json.encode(payload)
    elif isinstance(payload, str):
        content = payload.encode()
    else:
        raise InvalidRequest(f"{what} has no udf_payload", detail="send the envelope as JSON text")
    if not content.lstrip().startswith(b"{"):
        raise InvalidRequest(
            f"udf_payload of {what} is no JSON object", detail="send the envelope as JSON text"
        )
    if not sent.input_columns or len(set(sent.input_columns)) < len(sent.input_columns):
        raise InvalidRequest(
            f"input_columns of {what} is empty, or has a column twice",
            detail="name each input once",
        )
    code = read_content(content)
    return ColumnFunction(
        output=sent.output_name,
        place=index if sent.output_index is None else sent.output_index,
        name=sent.udf.name or sent.output_name,
        version=sent.udf.version or code.sha256,
        inputs=tuple(sent.input_columns),
        code=code,
    )
