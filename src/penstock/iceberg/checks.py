"""Read fields of JSON that a client sent; errors name the field's path."""

import math
import re
from typing import Any

from penstock.errors import InvalidRequest, InvalidView
from penstock.iceberg.metadata import Json

# 33 nested structs; JSON parsers give up at about 1,000 levels.
MAX_DEPTH = 100
INT32 = range(-(2**31), 2**31)
INT64 = range(-(2**63), 2**63)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def check_json(value: object, path: str = "", depth: int = 0) -> None:
    """Refuse values, at any depth, that can't be stored or that not everyone can read again."""
    kind = type(value)
    if kind is str:
        _check_text(value, path)
    elif kind is int:
        if value not in INT64:
            raise InvalidRequest(f"{clip(path)} is {show(value)}", detail="send less")
    elif kind is float:
        if not math.isfinite(value):  # type: ignore[arg-type]
            raise InvalidRequest(f"{clip(path)} is {value}", detail="send a finite number")
    elif isinstance(value, dict | list):
        if depth == MAX_DEPTH:
            raise InvalidRequest(
                f"{clip(path)} is nested more than {MAX_DEPTH} levels deep",
                detail="send a flatter document",
            )
        if isinstance(value, list):
            for position, each in enumerate(value):
                check_json(each, f"{path}[{position}]", depth + 1)
        else:
            for key, each in value.items():
                inner = join(path, key)
                _check_text(key, inner)
                check_json(each, inner, depth + 1)


def _check_text(value: Any, path: str) -> None:
    if value.isascii():
        return
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(
            f"{clip(path)} holds half of a surrogate pair", detail="send valid Unicode"
        ) from None


def get(parent: Json, key: str, path: str) -> Any:
    if (value := parent.get(key)) is None:
        raise InvalidRequest(
            f"{clip(join(path, key))} is {'null' if key in parent else 'missing'}", detail="send it"
        )
    return value


def get_integer(parent: Json, key: str, path: str, limits: range = INT32) -> int:
    return check_integer(get(parent, key, path), join(path, key), limits)


def check_integer(value: object, path: str, limits: range = INT32) -> int:
    if type(value) is not int:
        raise _wrong(path, value, "an integer")
    if value not in limits:
        bits = 32 if limits is INT32 else 64
        raise InvalidRequest(
            f"{clip(path)} is {show(value)}", detail=f"send a number of at most {bits} bits"
        )
    return value


def get_text(parent: Json, key: str, path: str) -> str:
    return check_text(get(parent, key, path), join(path, key))


def check_text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise _wrong(path, value, "a string")
    return value


def get_flag(parent: Json, key: str, path: str) -> bool:
    value = get(parent, key, path)
    if not isinstance(value, bool):
        raise _wrong(join(path, key), value, "true or false")
    return value


def get_list(parent: Json, key: str, path: str) -> list[Any]:
    value = get(parent, key, path)
    if not isinstance(value, list):
        raise _wrong(join(path, key), value, "a list")
    return value


def get_texts(parent: Json, key: str, path: str) -> list[str]:
    inner = join(path, key)
    return [check_text(v, f"{inner}[{n}]") for n, v in enumerate(get_list(parent, key, path))]


def get_objects(parent: Json, key: str, path: str) -> list[Json]:
    inner = join(path, key)
    return [check_object(v, f"{inner}[{n}]") for n, v in enumerate(get_list(parent, key, path))]


def get_object(parent: Json, key: str, path: str) -> Json:
    return check_object(get(parent, key, path), join(path, key))


def check_object(value: object, path: str) -> Json:
    if not isinstance(value, dict):
        raise _wrong(path, value, "an object")
    return value


def get_string_map(parent: Json, key: str, path: str) -> dict[str, str]:
    inner = join(path, key)
    found = get_object(parent, key, path)
    return {name: check_text(value, join(inner, name)) for name, value in found.items()}


def check_location(value: object, path: str) -> str:
    """A location as it is stored: without a trailing slash."""
    if value is None:
        raise InvalidView("Invalid location: null", detail=f"send {path} as a string")
    location = strip_slash(check_text(value, path))
    if not location or _CONTROL.search(location):
        raise InvalidView(
            f"Invalid location: {show(value)}", detail=f"send an address or a path as {path}"
        )
    return location


def strip_slash(location: str) -> str:
    while location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    return location


def join(path: str, key: str) -> str:
    """The path of a field; unusual names are quoted."""
    shown = key if key.isascii() and key.isprintable() and 0 < len(key) <= 60 else show(key)
    return f"{path}.{shown}" if path else shown


def show(value: object) -> str:
    """A value for a message: short, and always printable."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and value not in INT64:
        return "a number of more than 64 bits"
    return clip(repr(value[:200] if isinstance(value, str) else value))


def clip(text: str, length: int = 120) -> str:
    return text if len(text) <= length else f"{text[:length]}…"


def _wrong(path: str, value: object, wanted: str) -> InvalidRequest:
    return InvalidRequest(f"{clip(path)} is {show(value)}, not {wanted}", detail=f"send {wanted}")
