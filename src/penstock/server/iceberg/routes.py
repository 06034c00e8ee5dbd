"""All routes under /iceberg, with their handlers."""

from penstock.server.iceberg import (
    config,
    dialects,
    namespaces,
    recover,
    table_replies,
    tables,
    tokens,
    views,
)
from penstock.server.iceberg.call import Call
from penstock.server.iceberg.rules import (
    COMMIT,
    COMMIT_ALL,
    CREATE_NAMESPACE,
    LIST_NAMESPACES,
    OPEN,
    OWN_NAMESPACE,
    OWN_TABLE,
    OWN_VIEW,
    READ_NAMESPACE,
    READ_TABLE,
    READ_VIEW,
    REGISTER,
    RENAME,
    RENAME_TABLE,
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
    Operation(
        "CreateTable",
        "POST",
        f"{NAMESPACE}/tables",
        tables.create,
        effect=CHANGES,
        needs=OWN_NAMESPACE,
        recover=recover.made_table,
    ),
    Operation("LoadTable", "GET", TABLE, table_replies.load, effect=READS, needs=READ_TABLE),
    Operation("TableExists", "HEAD", TABLE, tables.exists, effect=READS, needs=READ_TABLE),
    Operation(
        "CommitTable",
        "POST",
        TABLE,
        tables.commit,
        effect=CHANGES,
        needs=COMMIT,
        recover=recover.committed_table,
    ),
    Operation("DropTable", "DELETE", TABLE, tables.drop, effect=CHANGES, needs=OWN_TABLE),
    Operation(
        "UnregisterTable",
        "POST",
        f"{TABLE}/unregister",
        tables.unregister,
        effect=CHANGES,
        needs=OWN_TABLE,
        recover=recover.unregistered_table,
    ),
    Operation(
        "LoadCredentials",
        "GET",
        f"{TABLE}/credentials",
        table_replies.load_credentials,
        effect=READS,
        needs=READ_TABLE,
    ),
    Operation(
        "ReportMetrics", "POST", f"{TABLE}/metrics", tables.report, effect=READS, needs=READ_TABLE
    ),
    Operation(
        "RegisterTable",
        "POST",
        f"{NAMESPACE}/register",
        tables.register,
        effect=CHANGES,
        needs=REGISTER,
        recover=recover.registered_table,
    ),
    Operation(
        "RenameTable", "POST", "tables/rename", tables.rename, effect=CHANGES, needs=RENAME_TABLE
    ),
    Operation(
        "CommitTransaction",
        "POST",
        "transactions/commit",
        tables.commit_all,
        effect=CHANGES,
        needs=COMMIT_ALL,
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
