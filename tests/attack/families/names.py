"""Names that mean something to paths, to people's eyes or to databases, wherever a name goes."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from penstock.server.iceberg.routes import ROUTES
from tests.attack.attack import HANDLED, REFUSED, Attack, Request, post
from tests.attack.families.routes import ICEBERG, LANCE
from tests.attack.place import OWNER, PIT, Place
from tests.harness.clients import iceberg_requests as views
from tests.harness.clients.lance_paths import fill_path, names_within

FAMILY = "names"
# As they stand in a path: never the name of anything.
NEVER = {
    "dot": ".",
    "dots": "..",
    "encoded dots": "%2e%2e",
    "half encoded dots": ".%2E",
    "nothing": "",
    "NUL": "%00",
    "a NUL within": "a%00b",
    "newline": "a%0Ab",
    "return and newline": "a%0D%0AX-Injected:%20b",
    "separator": "a%1Fb",
    "delete": "%7F",
    "C1": "%C2%85",
    "not UTF-8": "%FF%FE",
    "half a pair": "%ED%A0%80",
    "too long": "a" * 300,
}
# Perhaps the name of something, which then is in the pit and nowhere else.
ODD = {
    "slash": "a%2Fb",
    "twice encoded dots": "%252e%252e",
    "twice encoded slash": "%252F",
    "backslash": "a%5Cb",
    "backslashes up": "..%5C..%5Ct",
    "blank": "%20",
    "blanks around": "%20a%20",
    "no break": "%C2%A0",
    "zero width": "a%E2%80%8Bb",
    "right to left": "a%E2%80%AEb",
    "wide dots": "%EF%BC%8E%EF%BC%8E",
    "quote": "a'b",
    "statement": "x');DROP%20TABLE%20grants;--",
    "like": "%25",
    "delimiter": "$",
    "percent": "%25zz",
    "semicolon": "t;a=b",
    "wildcard": "*",
    "template": "%24%7Bjndi:ldap:%2F%2Fx%7D",
    "lance's folder": "_versions",
}
# An index has a segment of its own, which clients normalise: these stand for another path there.
PATHS = ("twice encoded dots", "backslash", "blank", "backslashes up")


def make(place: Place) -> Iterator[Attack]:
    for name, text in (*NEVER.items(), *ODD.items()):
        may = REFUSED if name in NEVER else HANDLED
        yield from _in_lance(name, text, may)
        yield from _in_iceberg(name, text, may)
    yield from _in_bodies()


def _in_lance(name: str, text: str, may: frozenset[int]) -> Iterator[Attack]:
    for operation in LANCE:
        if operation.name in ("StreamJob", "LeaseJobs"):
            continue
        places = {"first part": f"{text}$pit$t", "last part": f"{PIT}${text}"}
        for where, id in places.items() if "{id}" in operation.path else ():
            path = fill_path(operation.path, id)
            yield _attack(operation.name, operation.method, path, where, name, may)
        if names_within(operation.path):
            path = fill_path(operation.path, f"{PIT}$t", text)
            expected = REFUSED if name in PATHS else may
            yield _attack(operation.name, operation.method, path, "index", name, expected)


def _attack(
    operation: str, method: str, path: str, where: str, name: str, may: frozenset[int]
) -> Attack:
    request = Request(method, f"/v1/{path}", b"{}" if method == "POST" else b"")
    # The path may be that of another operation once a segment is empty.
    return Attack(FAMILY, f"{operation}, {where} is {name}", OWNER, request, may)


def _in_iceberg(name: str, text: str, may: frozenset[int]) -> Iterator[Attack]:
    pit = PIT.replace("$", "%1F")
    for route in ROUTES:
        if "{namespace}" not in route.path:
            continue
        for where, (namespace, last) in {
            "namespace": (text, "v"),
            "name": (pit, text),
        }.items():
            if where == "name" and not ("{view}" in route.path or "{table}" in route.path):
                continue
            path = route.path.replace("{namespace}", namespace)
            path = path.replace("{view}", last).replace("{table}", last)
            body = b"{}" if route.method == "POST" else b""
            # Which namespace a text with separators means is for Iceberg's own rule to say.
            expected = HANDLED if name in ("separator", "nothing") else may
            request = Request(route.method, f"{ICEBERG}/{path}", body)
            yield Attack(
                FAMILY, f"Iceberg {route.name}, {where} is {name}", OWNER, request, expected
            )


# Names as JSON holds them.
TEXTS = (
    *("", ".", "..", "../x", "a/../../b", "%2e%2e", "\x00", "a\x00b", "a\nb", "\x7f", "a\x1fb"),
    *("a\\b", " ", "\u202ea", "\u200b", "x" * 5_000, "'; DROP TABLE grants; --", "_versions"),
)
STRICT = ("", ".", "..", "\x00", "a\x00b", "a\nb", "\x7f", "a\x1fb", "x" * 5_000)
PATH_LIKE = (*STRICT, "../x", "a/../../b", "%2e%2e", "a\\b", " ")


# What is moved away is there again before the next attack.
MOVED = post(f"/v1/table/{PIT}$moved/declare")
VIEW = post(f"{ICEBERG}/namespaces/{PIT.replace('$', '%1F')}/views", views.create("", "seen").body)


def _in_bodies() -> Iterator[Attack]:
    for text in TEXTS:
        for what, (path, body, strict) in _bodies(text).items():
            may = REFUSED if text in strict else HANDLED
            name = f"{what} {text[:20]!r}"
            before = (MOVED,) if "$moved" in path else (VIEW,) if what == "view" else ()
            yield Attack(FAMILY, name, OWNER, post(path, body), may, before=before)


def _bodies(text: str) -> dict[str, tuple[str, Any, tuple[str, ...]]]:
    """Requests with a name in their bodies, and which texts are never one."""
    table = f"/v1/table/{PIT}$t"
    scalar = {"column": "id", "index_type": "BTREE", "name": text}
    output = {"column": text, "data_type": {"type": "int64"}}
    view = {"namespace": PIT.split("$"), "name": "seen"}
    # An empty name of an index or a branch is the same as none, and no column has its own.
    named = tuple(each for each in PATH_LIKE if each)
    return {
        "index": (f"{table}/create_scalar_index", scalar, named),
        "tag": (f"{table}/tags/create", {"tag": text, "version": 1}, PATH_LIKE),
        "updated tag": (f"{table}/tags/update", {"tag": text, "version": 1}, PATH_LIKE),
        "deleted tag": (f"{table}/tags/delete", {"tag": text}, PATH_LIKE),
        "tag's version": (f"{table}/tags/version", {"tag": text}, PATH_LIKE),
        "described tag": (f"{table}/describe", {"tag": text}, PATH_LIKE),
        "branch": (f"{table}/branches/create", {"name": text}, ()),
        "deleted branch": (f"{table}/branches/delete", {"name": text}, ()),
        "branch of a query": (f"{table}/query", {"branch": text}, named),
        "branch of a version": (f"{table}/version/list", {"branch": text}, ()),
        "branch of a description": (f"{table}/describe", {"branch": text}, named),
        "new name": (f"/v1/table/{PIT}$moved/rename", {"new_table_name": text}, STRICT),
        "new namespace": (
            f"/v1/table/{PIT}$moved/rename",
            {"new_table_name": "n", "new_namespace_id": [text]},
            PATH_LIKE,
        ),
        "manifest": (f"/v1/manifest/{quote(text, safe='')}/create", {"manifest": "{}"}, TEXTS),
        "job": ("/v1/jobs/describe", {"job_id": text}, TEXTS),
        "column": (
            f"{table}/add_columns",
            {"new_columns": [{"name": text, "expression": "1"}]},
            ("", "\x00", "a\x00b"),
        ),
        "renamed column": (
            f"{table}/alter_columns",
            {"alterations": [{"path": "name", "rename": text}]},
            ("", "\x00", "a\x00b"),
        ),
        "column of a function": (
            f"{table}/add_columns",
            {"new_columns": [{"name": text, "virtual_column": {"outputs": [output]}}]},
            TEXTS,
        ),
        "principal": (
            "/v1/grants/create",
            {"namespace": [*PIT.split("$")], "principal": text, "role": "reader"},
            ("", "\x00", "a\x00b"),
        ),
        "role": (
            "/v1/grants/create",
            {"namespace": [*PIT.split("$")], "principal": "x", "role": text},
            TEXTS,
        ),
        "view": (
            f"{ICEBERG}/views/rename",
            {"source": view, "destination": {**view, "name": text}},
            STRICT,
        ),
        "Iceberg namespace": (
            f"{ICEBERG}/namespaces",
            {"namespace": [*PIT.split("$"), text]},
            STRICT,
        ),
        "cluster": (f"{table}/backfill_column", {"column": "id", "cluster": text}, TEXTS),
    }
