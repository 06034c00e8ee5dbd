"""JSON that is wrong in one field: every field that a route reads, by every kind of value.

Which fields there are is read from the decoders that the server's own handlers use.
"""

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import msgspec
from msgspec import inspect

from penstock.server.iceberg.routes import ROUTES
from tests.attack.attack import HANDLED, REFUSED, Attack, Request, post, to_json
from tests.attack.families.routes import ICEBERG, LANCE
from tests.attack.place import MINE, OWNER, PIT, Place
from tests.harness.clients import iceberg_requests as views
from tests.harness.clients import iceberg_tables as tables
from tests.harness.clients.lance_paths import fill_path

FAMILY = "bodies"
# One value of each kind, and those at the limits of their kind.
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 2**63, 10**40, 1.5, "", "\x00", "é" * 20_000, "../../x"),
    *([], [None], ["x", "x"], {}, {"a": {"a": []}}),
)
# Bodies that are not what anybody writes.
WHOLE: dict[str, bytes] = {
    "nothing but a brace": b"{",
    "a list": b"[]",
    "a number": b"1",
    "a text": b'"x"',
    "two objects": b"{}{}",
    "the same field twice": b'{"id": null, "id": ["a"], "id": null}',
    "no number": b'{"k": NaN}',
    "infinite": b'{"k": Infinity, "version": -Infinity}',
    "1,000 digits": b'{"k": 1' + b"0" * 1_000 + b"}",
    "a great exponent": b'{"k": 1e99999999, "version": 1e400}',
    "a deep list": b'{"id": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "a deep object": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    "deep context": b'{"context": ' + b'{"a":' * 900 + b"1" + b"}" * 901,
    "not UTF-8": b'{"id": ["\xff\xfe"]}',
    "a mark of order": b"\xef\xbb\xbf{}",
    "UTF-16": '{"id": null}'.encode("utf-16"),
    "NULs": b"\x00" * 100,
    "a comment": b"{} // x",
    "many fields": b"{" + b",".join(b'"f%d": 1' % n for n in range(20_000)) + b"}",
    "prototype": b'{"__proto__": {"a": 1}, "constructor": 1, "__class__": "x"}',
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00",
}
# What cannot be done twice, or takes away what others need, comes last.
LAST = ("Drop", "Deregister", "Rename", "Delete", "Restore", "BatchDelete")
# These answer only when something happens, or for long.
WAITING = ("StreamJob", "LeaseJobs", "PreviewColumn")
MAX_DEPTH = 3
_SPEC = {"spec-id": 0, "fields": [{"name": "p", "transform": "identity", "source-id": 1}]}
_ORDER = {
    "order-id": 1,
    "fields": [
        {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-last"}
    ],
}
MORE_OF_A_TABLE = {
    "partition-spec": _SPEC,
    "write-order": _ORDER,
    "properties": {"write.metadata.previous-versions-max": "3"},
}
_FILE = {"statistics-path": "x", "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1}
# One of each update of an Iceberg table, and of each requirement.
COMMIT: dict[str, Any] = {
    "requirements": [
        {"type": "assert-ref-snapshot-id", "ref": "nothing", "snapshot-id": None},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
    ],
    "updates": [
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": tables.schema("a", "b", "c"), "last-column-id": 3},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": _SPEC},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": _ORDER},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {
            "action": "add-snapshot",
            "snapshot": {
                "snapshot-id": 7,
                "sequence-number": 1,
                "timestamp-ms": 1_700_000_000_000,
                "manifest-list": "x",
                "summary": {"operation": "append"},
            },
        },
        {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 7},
        {
            "action": "set-statistics",
            "statistics": {**_FILE, "snapshot-id": 7, "blob-metadata": []},
        },
        {"action": "remove-statistics", "snapshot-id": 7},
        {"action": "remove-snapshot-ref", "ref-name": "b"},
        {"action": "remove-snapshots", "snapshot-ids": [7]},
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-properties", "removals": ["a"]},
        {
            "action": "add-encryption-key",
            "encryption-key": {"key-id": "k", "encrypted-key-metadata": "aa"},
        },
        {"action": "remove-encryption-key", "key-id": "k"},
    ],
}


def make(place: Place) -> Iterator[Attack]:
    for operation in sorted(LANCE, key=lambda each: each.name.startswith(LAST)):
        if operation.name in WAITING or operation.method == "GET":
            continue
        path = f"/v1/{fill_path(operation.path, _id(operation.path))}"
        for name, content in WHOLE.items():
            yield Attack(FAMILY, f"{operation.name}, {name}", OWNER, Request("POST", path, content))
        if operation.streams:
            continue
        for field, body in _mutate(_fields_of(operation.handler)):
            content = _dump(body)
            name = f"{operation.name}, {field} is {content[:40]!r}"
            yield Attack(FAMILY, name, OWNER, Request("POST", path, content), HANDLED)
    yield from _in_iceberg()
    yield from _known(place)


def _id(path: str) -> str:
    if path.startswith("namespace/"):
        return f"{PIT}$new" if path.endswith("create") else PIT
    return f"{PIT}$m" if path.startswith("materialized_view/") else f"{PIT}$t"


def _dump(body: Any) -> bytes:
    try:
        return to_json(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(body)


def _fields_of(handler: Callable[..., Any]) -> list[inspect.Type]:
    """The types that a handler decodes bodies as, found in what it calls."""
    found: list[inspect.Type] = []
    seen: set[CodeType] = set()

    def look(function: Any, depth: int) -> None:
        code = getattr(function, "__code__", None)
        if code is None or code in seen or depth > 3:
            return
        seen.add(code)
        for name in code.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, msgspec.json.Decoder):
                found.append(inspect.type_info(value.type))
            elif getattr(value, "__module__", "").startswith("penstock.server"):
                look(value, depth + 1)

    look(handler, 0)
    return found


def _mutate(types: list[inspect.Type]) -> Iterator[tuple[str, Any]]:
    for each in types:
        if isinstance(each, inspect.StructType):
            base = _sample(each)
            for field, value in _wrong(each, 0):
                yield field, {**base, **value} if isinstance(value, dict) else value


def _wrong(struct: inspect.StructType, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field, with every value in its place; and the fields of what is in it."""
    for field in struct.fields:
        if field.encode_name in ("id", "identity", "context") and depth == 0:
            values: tuple[Any, ...] = VALUES[:4]
        else:
            values = VALUES
        for value in values:
            yield field.encode_name, {field.encode_name: value}
        inner, in_list = _inner(field.type)
        if inner is not None and depth < MAX_DEPTH:
            base = _sample(inner)
            for name, part in _wrong(inner, depth + 1):
                whole = {**base, **part}
                yield (
                    f"{field.encode_name}.{name}",
                    {field.encode_name: [whole] if in_list else whole},
                )


def _inner(found: inspect.Type) -> tuple[inspect.StructType | None, bool]:
    """The struct in a field's type, and whether the field is a list of them."""
    if isinstance(found, inspect.StructType):
        return found, False
    if isinstance(found, inspect.ListType):
        return _inner(found.item_type)[0], True
    if isinstance(found, inspect.Metadata):
        return _inner(found.type)
    if isinstance(found, inspect.UnionType):
        for each in found.types:
            inner = _inner(each)
            if inner[0] is not None:
                return inner
    return None, False


def _sample(found: inspect.Type) -> Any:
    """A value that a type takes, with as little in it as may be."""
    if isinstance(found, inspect.StructType):
        return {f.encode_name: _sample(f.type) for f in found.fields if f.required}
    if isinstance(found, inspect.ListType):
        return [_sample(found.item_type)]
    if isinstance(found, inspect.TupleType):
        return [_sample(each) for each in found.item_types]
    if isinstance(found, inspect.DictType):
        return {}
    if isinstance(found, inspect.Metadata):
        return _sample(found.type)
    if isinstance(found, inspect.UnionType):
        return _sample(found.types[0])
    if isinstance(found, inspect.StrType):
        return "name"
    return 1 if isinstance(found, (inspect.IntType, inspect.FloatType)) else True


def _in_iceberg() -> Iterator[Attack]:
    pit = PIT.replace("$", "%1F")
    view = {"namespace": PIT.split("$"), "name": "v"}
    table = {**view, "name": "i"}
    samples: dict[str, Any] = {
        "CreateNamespace": {"namespace": [*PIT.split("$"), "n"], "properties": {"a": "b"}},
        "UpdateProperties": {"removals": ["a"], "updates": {"b": "c"}},
        "CreateView": views.create(pit, "new").body,
        "ReplaceView": views.replace(pit, "v", "select 2 as a").body,
        "RenameView": {"source": view, "destination": {**view, "name": "gone"}},
        "RegisterView": {"name": "n", "metadata-location": "x"},
        "CreateTable": {**tables.create(pit, "n").body, **MORE_OF_A_TABLE},
        "CommitTable": COMMIT,
        "CommitTransaction": {"table-changes": [{"identifier": table, **COMMIT}]},
        "RegisterTable": {"name": "n", "metadata-location": "x", "overwrite": True},
        "RenameTable": {"source": table, "destination": table},
        "GetToken": {"grant_type": "client_credentials"},
    }
    for route in ROUTES:
        if route.method != "POST":
            continue
        # Files of a table that was unregistered stay, and then nobody knows whose they are.
        table_name = "none" if route.name == "UnregisterTable" else "i"
        path = route.path.replace("{namespace}", pit).replace("{view}", "v")
        path = path.replace("{table}", table_name)
        path = f"{ICEBERG}/{path}" if route.is_told else f"/iceberg/v1/{path}"
        for name, content in WHOLE.items():
            yield Attack(
                FAMILY, f"Iceberg {route.name}, {name}", OWNER, Request("POST", path, content)
            )
        for where, body in _everywhere(samples.get(route.name, {})):
            name = f"Iceberg {route.name}, {where}"
            yield Attack(FAMILY, name, OWNER, Request("POST", path, _dump(body)))


def _everywhere(body: Any, where: str = "$") -> Iterator[tuple[str, Any]]:
    """The body with one of its parts, at any depth, in another kind's place."""
    for value in VALUES[:: 1 if where.count(".") < 2 else 2]:
        yield f"{where} is {str(value)[:30]}", value
    if isinstance(body, dict):
        for key, part in body.items():
            for place, changed in _everywhere(part, f"{where}.{key}"):
                yield place, {**body, key: changed}
            yield f"{where} without {key}", {k: v for k, v in body.items() if k != key}
    if isinstance(body, list):
        for index, part in enumerate(body):
            for place, changed in _everywhere(part, f"{where}[{index}]"):
                yield place, [*body[:index], changed, *body[index + 1 :]]


def _known(place: Place) -> Iterator[Attack]:
    """Bodies that were taken once for something that they are not."""
    query = f"/v1/table/{MINE}$t/query"
    bad = frozenset({400})
    for columns in (
        {"column_names": "id"},
        {"column_names": {"id": "id"}},
        {"column_names": 7},
        {"column_names": [7]},
        {"column_aliases": "id"},
        {"column_aliases": ["id"]},
        {"column_names": "id", "column_aliases": {"x": "id"}},
    ):
        name = f"columns are {columns}"
        yield Attack(FAMILY, name, OWNER, post(query, {"columns": columns, "k": 1}), bad, code=13)
    missing = frozenset({404})
    staged = f"{place.table(MINE)}/tree/nowhere/_versions/2.manifest-1"
    for path, body in (
        ("version/list?branch=nowhere", {}),
        ("version/create", {"branch": "nowhere", "version": 2, "manifest_path": staged}),
        ("version/describe", {"branch": "nowhere", "version": 1}),
        ("query", {"branch": "nowhere", "k": 1}),
        ("count_rows", {"branch": "nowhere"}),
        ("stats", {"branch": "nowhere"}),
        ("update", {"branch": "nowhere", "updates": [["id", "1"]]}),
        ("delete", {"branch": "nowhere", "predicate": "id = 7"}),
        ("restore", {"branch": "nowhere", "version": 1}),
    ):
        request = post(f"/v1/table/{MINE}$t/{path}", body)
        code = 22 if path.startswith(("version/list", "version/create")) else None
        name = f"{path} on a branch that is not there"
        yield Attack(FAMILY, name, OWNER, request, missing if code else REFUSED, code=code)
