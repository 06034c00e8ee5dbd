"""Whether columns have the types that a function takes. Everything is pure."""

from collections.abc import Sequence
from typing import Any

from penstock.errors import InvalidRequest
from penstock.lance.columns.schemas import find_type, to_arrow_type
from penstock.lance.doors import pa
from penstock.model.functions import Input

# Python's `int` is declared so, and holds whatever an integer column has.
ANY_INTEGER = "int64"


def check_input_types(
    schema: "pa.Schema", paths: Sequence[tuple[str, tuple[str, ...]]], takes: Sequence[Input]
) -> None:
    """Refuse columns that a function cannot take; what it does not say is not looked at.

    `paths` are the columns as text and as parts, in the order of the function's inputs.
    """
    if not takes:
        return
    if len(takes) != len(paths):
        raise InvalidRequest(
            f"the function takes {', '.join(each.name for each in takes)}, and "
            f"{len(paths)} columns are named: {', '.join(text for text, _ in paths)}",
            detail="name a column for each of its inputs, in their order, as input_columns",
        )
    for (text, path), wanted in zip(paths, takes, strict=True):
        kind = find_type(schema, path)
        if wanted.data_type is None or kind is None:
            continue
        taken = to_arrow_type(wanted.data_type)
        if not fits(kind, taken):
            raise InvalidRequest(
                f"column {text} is {kind}, and the function takes {taken} as {wanted.name}",
                detail="name another column for it, or let the function take the column's type",
            )


def fits(kind: Any, taken: Any) -> bool:
    """Whether values of a type are such that a function of another one can take them.

    True where it is not known.
    """
    if isinstance(kind, pa.DictionaryType):
        kind = kind.value_type
    family, wanted = _family(kind), _family(taken)
    if not family or not wanted:
        return True
    if wanted == "list":
        return family == "list" and _is_as_long(kind, taken) and fits(*_values(kind, taken))
    if family == wanted == "integer":
        return str(taken) == ANY_INTEGER or _is_within(kind, taken)
    return family == wanted or (family, wanted) in WIDER


# What goes into what: every such value is one of the other, in Python and in Arrow.
WIDER = {
    ("boolean", "integer"),
    ("integer", "floating"),
    ("integer", "decimal"),
    ("timestamp", "date"),
    # A blob of Lance's newer form, which functions get as bytes.
    ("struct", "bytes"),
}


def _family(kind: Any) -> str:
    """What kind of values there are; "" where that is not known, as for extensions."""
    types = pa.types
    families = {
        "boolean": (types.is_boolean,),
        "integer": (types.is_integer,),
        "floating": (types.is_floating,),
        "decimal": (types.is_decimal,),
        "text": (types.is_string, types.is_large_string, types.is_string_view),
        "bytes": (
            *(types.is_binary, types.is_large_binary),
            *(types.is_fixed_size_binary, types.is_binary_view),
        ),
        "date": (types.is_date,),
        "timestamp": (types.is_timestamp,),
        "time": (types.is_time,),
        "duration": (types.is_duration,),
        "list": (types.is_list, types.is_large_list, types.is_fixed_size_list),
        "struct": (types.is_struct,),
    }
    return next((name for name, tests in families.items() if any(t(kind) for t in tests)), "")


def _is_within(kind: Any, taken: Any) -> bool:
    signed, wanted = pa.types.is_signed_integer(kind), pa.types.is_signed_integer(taken)
    if signed == wanted:
        return bool(kind.bit_width <= taken.bit_width)
    return bool(wanted and kind.bit_width < taken.bit_width)


def _is_as_long(kind: Any, taken: Any) -> bool:
    are_fixed = all(pa.types.is_fixed_size_list(each) for each in (kind, taken))
    return not are_fixed or kind.list_size == taken.list_size


def _values(kind: Any, taken: Any) -> tuple[Any, Any]:
    return kind.value_type, taken.value_type
