"""Every route of both protocols, by everybody, on what is theirs, another's, hidden or absent.

The routes and what each needs are the server's own tables: a new one is attacked by itself. What
no rule can tell, which is what a body must look like to be about something, is below.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.model.rights import ICEBERG_TABLE, NAMESPACE, OWN, READ, SEE, TABLE, VIEW, WRITE
from penstock.server.access.rules import CATALOG, PARENT, Rule
from penstock.server.iceberg.routes import ROUTES, Route
from penstock.server.lance.extensions import EXTENSIONS
from penstock.server.lance.operation import LanceOperation
from penstock.server.lance.operations import OPERATIONS
from penstock.server.operation import Operation
from tests.attack.attack import HANDLED, REFUSED, UNKNOWN, Attack, Request, post
from tests.attack.place import ABSENT, CALLERS, HIDDEN, MINE, THEIRS, Caller, Place
from tests.harness.clients.lance_paths import fill_path

FAMILY = "routes"
LANCE = (*OPERATIONS, *EXTENSIONS)
ICEBERG = "/iceberg/v1/penstock"
# A body that is about something else than the path: who may do it hears 400, and nothing changes.
WRONG = {"id": ["something", "else"]}
METHODS = ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "post")
# A view with rows, which is no table that somebody was given a role on.
MADE = "made view"
FORBIDDEN, MISSING = frozenset({403}), frozenset({404})

Body = Callable[[Place, str], Any]


@dataclass(frozen=True)
class About:
    """What the body of a route is about, and the right that it needs on that."""

    right: int
    kind: str
    body: Body


def _entry(place: Place, ns: str) -> dict[str, Any]:
    return {"id": [ns, "t"], "version": 9, "manifest_path": "x"}


def _grant(place: Place, ns: str) -> dict[str, Any]:
    return {"namespace": [ns], "principal": "the-nobody", "role": "reader"}


def _job(place: Place, ns: str) -> dict[str, Any]:
    return {"job_id": place.jobs[ns]}


def _view(ns: str, name: str = "v") -> dict[str, Any]:
    return {"namespace": [ns], "name": name}


# The routes whose paths say nothing of what they are about.
BODIES = {
    "BatchCreateTableVersions": About(WRITE, TABLE, lambda p, ns: {"entries": [_entry(p, ns)]}),
    "BatchCommitTables": About(
        WRITE, TABLE, lambda p, ns: {"operations": [{"create_table_version": _entry(p, ns)}]}
    ),
    "DescribeJob": About(READ, TABLE, _job),
    "QueryJobEvents": About(READ, TABLE, lambda p, ns: {"job_ids": [p.jobs[ns]]}),
    "CancelJob": About(WRITE, TABLE, _job),
    "PauseJob": About(WRITE, TABLE, _job),
    "ResumeJob": About(WRITE, TABLE, _job),
    "CreateGrant": About(OWN, NAMESPACE, _grant),
    "RevokeGrant": About(OWN, NAMESPACE, _grant),
    "ListGrants": About(OWN, NAMESPACE, lambda p, ns: {"namespace": [ns]}),
}
# Jobs in paths; a transaction is its maker's, and these are jobs as well.
JOBS = {
    "StreamJob": READ,
    "ListJobLogs": READ,
    "ListJobPhases": READ,
    "DescribeTransaction": READ,
    "AlterTransaction": WRITE,
}
ICEBERG_BODIES = {
    "CreateNamespace": About(OWN, NAMESPACE, lambda p, ns: {"namespace": [ns, "x"]}),
    "RenameView": About(
        OWN, VIEW, lambda p, ns: {"source": _view(ns), "destination": _view(ns, "w")}
    ),
    "RenameTable": About(
        OWN,
        ICEBERG_TABLE,
        lambda p, ns: {"source": _view(ns, "i"), "destination": _view(ns, "j")},
    ),
    "CommitTable": About(WRITE, ICEBERG_TABLE, lambda p, ns: {"requirements": [], "updates": []}),
    "CommitTransaction": About(
        WRITE,
        ICEBERG_TABLE,
        lambda p, ns: {"table-changes": [{"identifier": _view(ns, "i"), "updates": []}]},
    ),
    "RegisterTable": About(
        OWN, NAMESPACE, lambda p, ns: {"name": "x", "metadata-location": f"{p.root}/x.json"}
    ),
    "RegisterView": About(
        OWN, NAMESPACE, lambda p, ns: {"name": "x", "metadata-location": f"{p.root}/x.json"}
    ),
}
# Whatever is asked of them is about the caller alone, or of no table that there could be.
OPEN = ("GetToken", "GetConfig", "ListAllTables", "ListJobs", "RunSql")
RUNNERS = ("LeaseJobs", "ReportJob", "FinishJob", "ReportJobErrors", "ListJobErrorRows",
           "SendJobResult")  # fmt: skip


def make(place: Place) -> Iterator[Attack]:
    for name, caller in CALLERS.items():
        for operation in LANCE:
            yield from _by_lance(place, name, caller, operation)
        for route in ROUTES:
            yield from _by_iceberg(place, name, caller, route)
    yield from _by_method(place)
    yield from _by_carrier(place)


def lance_request(place: Place, operation: LanceOperation, ns: str) -> Request:
    """An operation on a namespace, on the table in it, or on its job."""
    if (about := BODIES.get(operation.name)) is not None:
        return post(f"/v1/{operation.path}", about.body(place, ns))
    id = f"{ns}$t"
    if operation.path.startswith("namespace/"):
        id = f"{ns}$new" if operation.name == "CreateNamespace" else ns
    if operation.path.startswith("materialized_view/"):
        id = f"{ns}$m"
    if operation.path.startswith("iceberg_table/"):
        id = f"{ns}$i"
    if operation.path.startswith("function/"):
        id = f"{ns}$f"
    if operation.path.startswith("view/"):
        id = f"{ns}$v"
    if operation.path.startswith(("jobs/", "runner/", "transaction/")):
        id = place.jobs[ns]
    path = fill_path(operation.path, id)
    if operation.method == "GET":
        return Request("GET", f"/v1/{path}")
    return post(f"/v1/{path}", None if operation.streams else _body_of(operation))


def _body_of(operation: LanceOperation) -> Any:
    if operation.name == "AlterTransaction":
        return {"actions": [{"setStatusAction": {"status": "Canceled"}}]}
    if operation.name in RUNNERS:
        return {"attempt": 1, "state": "FAILED", "errors": [], "clusters": ["crew"]}
    return WRONG if "{id}" in operation.path else {}


def iceberg_request(place: Place, route: Route, ns: str) -> Request:
    path = route.path.replace("{namespace}", ns).replace("{view}", "v").replace("{table}", "i")
    if route.name == "ListNamespaces":
        path = f"{path}?parent={ns}"
    if route.name == "TranslateView":
        path = f"{path}?target=trino"
    body = None
    if (about := ICEBERG_BODIES.get(route.name)) is not None:
        body = about.body(place, ns)
    elif route.method == "POST":
        body = []
    if body is None:
        return Request(route.method, f"{ICEBERG}/{path}")
    return Request(route.method, f"{ICEBERG}/{path}", post("", body).body)


def _by_lance(
    place: Place, who: str, caller: Caller, operation: LanceOperation
) -> Iterator[Attack]:
    request = {ns: lance_request(place, operation, ns) for ns in (MINE, THEIRS, HIDDEN, ABSENT)}
    about = BODIES.get(operation.name)
    if about is not None:
        needs = (about.right, about.kind)
    elif operation.name in JOBS:
        needs = (JOBS[operation.name], TABLE)
    else:
        needs = _need(operation.needs)
    if operation.path.startswith("materialized_view/") and needs[1] == TABLE:
        needs = (needs[0], MADE)
    for_runners = operation.name in RUNNERS and not caller.is_runner
    yield from _on_each(place, who, caller, operation.name, request, needs, for_runners)


def _by_iceberg(place: Place, who: str, caller: Caller, route: Route) -> Iterator[Attack]:
    request = {ns: iceberg_request(place, route, ns) for ns in (MINE, THEIRS, HIDDEN, ABSENT)}
    about = ICEBERG_BODIES.get(route.name)
    needs = (about.right, about.kind) if about is not None else _need(route.needs)
    if route.name == "ListNamespaces":
        needs = (SEE, NAMESPACE)
    yield from _on_each(place, who, caller, f"Iceberg {route.name}", request, needs, False)


def _need(rule: Rule[Any]) -> tuple[int, str]:
    """The right that a route needs, and on what."""
    if rule.on == CATALOG:
        return rule.right, CATALOG
    return rule.right, NAMESPACE if rule.on == PARENT else rule.kind


def _on_each(
    place: Place,
    who: str,
    caller: Caller,
    name: str,
    request: dict[str, Request],
    needs: tuple[int, str],
    for_runners: bool,
) -> Iterator[Attack]:
    if name.rpartition(" ")[2] in OPEN and caller.is_known:
        return
    if name == "Iceberg GetToken" or (caller.is_runner and name == "LeaseJobs"):
        return
    for ns in (MINE, THEIRS, HIDDEN):
        may = _expected(caller, ns, *needs)
        if for_runners:
            may = FORBIDDEN if caller.is_known else UNKNOWN
        if may is None:
            continue
        like = None
        if ns == HIDDEN and caller.is_known and request[HIDDEN] != request[ABSENT]:
            like = request[ABSENT]
        names = (HIDDEN, ABSENT)
        if like is not None and place.jobs[HIDDEN] in request[HIDDEN].encode().decode("latin-1"):
            names = (place.jobs[HIDDEN], place.jobs[ABSENT])
        yield Attack(FAMILY, f"{name} on {ns}", who, request[ns], may, like=like, names=names)


def _expected(caller: Caller, ns: str, right: int, on: str) -> frozenset[int] | None:
    """The statuses of a refusal; None when it is no attack, because the caller may."""
    if not caller.is_known:
        return UNKNOWN
    if caller.is_runner:
        return frozenset({400, 403, 404})
    if on == CATALOG:
        return HANDLED if right == SEE else FORBIDDEN
    if ns == HIDDEN:
        return MISSING
    held, sees = _standing(caller, ns, on)
    if sees if right == SEE else held & right == right:
        return None
    return FORBIDDEN if sees else MISSING


def _standing(caller: Caller, ns: str, on: str) -> tuple[int, bool]:
    """What somebody holds on a thing of a namespace, and whether they see it."""
    has_role = bool(caller.rights & (READ | WRITE | OWN))
    if ns == THEIRS:
        return (READ, True) if has_role else (0, False)
    if caller.on == "namespace":
        return caller.rights, has_role
    if on == caller.on:
        return caller.rights, True
    return 0, on == NAMESPACE


def _by_method(place: Place) -> Iterator[Attack]:
    """Methods that a route does not have must not reach it."""
    for operation in LANCE:
        request = lance_request(place, operation, MINE)
        for method in METHODS:
            if method not in (operation.method, operation.also):
                wrong = Request(method, request.path, request.body)
                name = f"{method} on {operation.name}"
                yield Attack(FAMILY, name, "owner", wrong, REFUSED)
                yield Attack(FAMILY, name, "", wrong, REFUSED)


CARRIERS: dict[str, Callable[[str], tuple[tuple[str, str], ...]]] = {
    "x-api-key": lambda key: (("x-api-key", key),),
    "x-api-key with blanks": lambda key: (("X-API-Key", f"  {key}  "),),
    "lower case bearer": lambda key: (("authorization", f"bearer {key}"),),
    "two headers": lambda key: (("Authorization", "Bearer x"), ("Authorization", f"Bearer {key}")),
    "a header before": lambda key: (("x-api-key", "x"), ("Authorization", f"Bearer {key}")),
    "proxy's": lambda key: (("Proxy-Authorization", f"Bearer {key}"),),
    "cookie": lambda key: (("Cookie", f"Authorization=Bearer {key}"),),
    "forwarded": lambda key: (("X-Forwarded-User", "the-owner"), ("X-Remote-User", "the-owner")),
    "method in a header": lambda key: (
        ("x-api-key", key),
        ("X-HTTP-Method-Override", "DELETE"),
    ),
    "path in a header": lambda key: (
        ("x-api-key", key),
        ("X-Original-URL", f"/v1/table/{MINE}$t/describe"),
        ("X-Rewrite-URL", f"/v1/table/{MINE}$t/describe"),
    ),
}


def _by_carrier(place: Place) -> Iterator[Attack]:
    """However a reader shows its key, it is a reader, and the hidden is hidden."""
    wanted = (
        "DescribeTable",
        "DropTable",
        "QueryTable",
        "ListTables",
        "CreateGrant",
        "DropNamespace",
    )
    for operation in LANCE:
        if operation.name not in wanted:
            continue
        for name, carrier in CARRIERS.items():
            for ns in (HIDDEN, THEIRS):
                if ns == THEIRS and operation.name in ("DescribeTable", "QueryTable", "ListTables"):
                    continue
                asked = lance_request(place, operation, ns)
                headers = (*asked.headers, *carrier(place.keys["reader"]))
                request = Request(asked.method, asked.path, asked.body, headers)
                yield Attack(
                    FAMILY, f"{operation.name} on {ns}, key by {name}", "", request, REFUSED
                )


def uncovered() -> list[str]:
    """Routes of which neither the rule nor this module says what they are about."""
    known = {*BODIES, *JOBS, *RUNNERS, *OPEN, "ListNamespaces", *ICEBERG_BODIES}
    every: tuple[Operation[Any, Any], ...] = (*LANCE, *ROUTES)
    return [
        route.name
        for route in every
        if route.needs.on == CATALOG and route.needs.more is not None and route.name not in known
    ]
