"""All routes under /iceberg, with their handlers."""

from penstock.server.iceberg import config, dialects, namespaces, recover, tables, tokens, views
from penstock.server.iceberg.call import Call
from penstock.server.iceberg.rules import (
    CREATE_NAMESPACE,
    FIND_TABLE,
    LIST_NAMESPACES,
    OPEN,
    OWN_NAMESPACE,
    OWN_VIEW,
    READ_NAMESPACE,
    READ_VIEW,
    REGISTER,
    RENAME,
    SEE_NAMESPACE,
    SIGNED_IN,
)
from penstock.server.operation import CHANGES, READS, Operation
from penstock.server.transport.http import Reply

NAMESPACE = "namespaces/{namespace}"
VIEW = f"{NAMESPACE}/views/{{view}}"
TABLE = f"{NAMESPACE}/tables/{{table}}"


Route = Operation[Call, Reply]

ROUTES: tuple[Route, ...] = (
    Operation(
        "GetConfig", "GET", "config", config.get, is_told=False, effect=READS, needs=SIGNED_IN
    ),
    Operation(
        "GetToken", "POST", "oauth/tokens", tokens.issue, is_told=False, effect=READS, needs=OPEN
    ),
    Operation(
        "ListNamespaces",
        "GET",
        "namespaces",
        namespaces.list_children,
        effect=READS,
        needs=LIST_NAMESPACES,
    ),
    Operation(
        "CreateNamespace",
        "POST",
        "namespaces",
        namespaces.create,
        effect=CHANGES,
        needs=CREATE_NAMESPACE,
        recover=recover.made_namespace,
    ),
    Operation(
        "LoadNamespace", "GET", NAMESPACE, namespaces.load, effect=READS, needs=READ_NAMESPACE
    ),
    Operation(
        "NamespaceExists", "HEAD", NAMESPACE, namespaces.exists, effect=READS, needs=SEE_NAMESPACE
    ),
    Operation(
        "DropNamespace", "DELETE", NAMESPACE, namespaces.drop, effect=CHANGES, needs=OWN_NAMESPACE
    ),
    Operation(
        "UpdateProperties",
        "POST",
        f"{NAMESPACE}/properties",
        namespaces.update_properties,
        effect=CHANGES,
        needs=OWN_NAMESPACE,
        recover=recover.updated_properties,
    ),
    Operation(
        "ListViews",
        "GET",
        f"{NAMESPACE}/views",
        views.list_names,
        effect=READS,
        needs=SEE_NAMESPACE,
    ),
    Operation(
        "CreateView",
        "POST",
        f"{NAMESPACE}/views",
        views.create,
        effect=CHANGES,
        needs=OWN_NAMESPACE,
        recover=recover.made_view,
    ),
    Operation("LoadView", "GET", VIEW, views.load, effect=READS, needs=READ_VIEW, for_runners=True),
    Operation("ViewExists", "HEAD", VIEW, views.exists, effect=READS, needs=READ_VIEW),
    Operation(
        "ReplaceView",
        "POST",
        VIEW,
        views.replace,
        effect=CHANGES,
        needs=OWN_VIEW,
        recover=recover.loaded_view,
    ),
    Operation("DropView", "DELETE", VIEW, views.drop, effect=CHANGES, needs=OWN_VIEW),
    Operation("RenameView", "POST", "views/rename", views.rename, effect=CHANGES, needs=RENAME),
    Operation(
        "TranslateView",
        "GET",
        f"{VIEW}/dialects",
        dialects.translate,
        effect=READS,
        needs=READ_VIEW,
    ),
    Operation("TraceView", "GET", f"{VIEW}/lineage", dialects.trace, effect=READS, needs=READ_VIEW),
    Operation(
        "RegisterView",
        "POST",
        f"{NAMESPACE}/register-view",
        views.register,
        effect=CHANGES,
        needs=REGISTER,
        recover=recover.made_view,
    ),
    Operation(
        "ListTables",
        "GET",
        f"{NAMESPACE}/tables",
        tables.list_names,
        effect=READS,
        needs=SEE_NAMESPACE,
    ),
    Operation("LoadTable", "GET", TABLE, tables.find, effect=READS, needs=FIND_TABLE),
    Operation("TableExists", "HEAD", TABLE, tables.find, effect=READS, needs=FIND_TABLE),
    Operation(
        "CreateTable",
        "POST",
        f"{NAMESPACE}/tables",
        tables.create,
        is_told=False,
        effect=READS,
        needs=OWN_NAMESPACE,
    ),
    Operation(
        "CommitTable", "POST", TABLE, tables.find, is_told=False, effect=READS, needs=FIND_TABLE
    ),
    Operation(
        "DropTable", "DELETE", TABLE, tables.find, is_told=False, effect=READS, needs=FIND_TABLE
    ),
    Operation(
        "RegisterTable",
        "POST",
        f"{NAMESPACE}/register",
        tables.create,
        is_told=False,
        effect=READS,
        needs=OWN_NAMESPACE,
    ),
    Operation(
        "RenameTable",
        "POST",
        "tables/rename",
        tables.rename,
        is_told=False,
        effect=READS,
        needs=SIGNED_IN,
    ),
)

ADVERTISED = [f"{r.method} /v1/{{prefix}}/{r.path}" for r in ROUTES if r.is_told]

Key = tuple[str, ...]


def find(segments: list[str]) -> dict[str, Route]:
    """The routes of a path after /iceberg/v1 and the prefix, by method; empty without any."""
    return _BY_KEY.get(_key(segments), {})


def _key(parts: list[str]) -> Key:
    """A path with blank names: the second and the fourth part below `namespaces`."""
    if parts[:1] != ["namespaces"]:
        return tuple(parts)
    return tuple("" if index in (1, 3) else part for index, part in enumerate(parts))


def _build() -> dict[Key, dict[str, Route]]:
    found: dict[Key, dict[str, Route]] = {}
    for route in ROUTES:
        found.setdefault(_key(route.path.split("/")), {})[route.method] = route
    return found


_BY_KEY = _build()
