"""All routes under /iceberg: what they answer to, and who serves them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from penstock.server.http import Reply
from penstock.server.iceberg import config, dialects, namespaces, tables, tokens, views
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
from penstock.server.rules import Rule

Handler = Callable[[Call], Awaitable[Reply]]

NAMESPACE = "namespaces/{namespace}"
VIEW = f"{NAMESPACE}/views/{{view}}"
TABLE = f"{NAMESPACE}/tables/{{table}}"


@dataclass(frozen=True, slots=True)
class Route:
    """One route; `is_told` when it is among the endpoints that clients are told of."""

    name: str
    method: str
    path: str
    handler: Handler
    # The right that it needs; there is no default, so that none is forgotten.
    needs: Rule[Call] = field(kw_only=True)
    is_change: bool = False
    is_told: bool = True
    # Whether a runner's key is good for it at all: to read the views that its jobs read.
    for_runners: bool = False


ROUTES = (
    Route("GetConfig", "GET", "config", config.get, is_told=False, needs=SIGNED_IN),
    Route("GetToken", "POST", "oauth/tokens", tokens.issue, is_told=False, needs=OPEN),
    Route("ListNamespaces", "GET", "namespaces", namespaces.list_children, needs=LIST_NAMESPACES),
    Route(
        "CreateNamespace",
        "POST",
        "namespaces",
        namespaces.create,
        is_change=True,
        needs=CREATE_NAMESPACE,
    ),
    Route("LoadNamespace", "GET", NAMESPACE, namespaces.load, needs=READ_NAMESPACE),
    Route("NamespaceExists", "HEAD", NAMESPACE, namespaces.exists, needs=SEE_NAMESPACE),
    Route(
        "DropNamespace", "DELETE", NAMESPACE, namespaces.drop, is_change=True, needs=OWN_NAMESPACE
    ),
    Route(
        "UpdateProperties",
        "POST",
        f"{NAMESPACE}/properties",
        namespaces.update_properties,
        is_change=True,
        needs=OWN_NAMESPACE,
    ),
    Route("ListViews", "GET", f"{NAMESPACE}/views", views.list_names, needs=SEE_NAMESPACE),
    Route(
        "CreateView",
        "POST",
        f"{NAMESPACE}/views",
        views.create,
        is_change=True,
        needs=OWN_NAMESPACE,
    ),
    Route("LoadView", "GET", VIEW, views.load, needs=READ_VIEW, for_runners=True),
    Route("ViewExists", "HEAD", VIEW, views.exists, needs=READ_VIEW),
    Route("ReplaceView", "POST", VIEW, views.replace, is_change=True, needs=OWN_VIEW),
    Route("DropView", "DELETE", VIEW, views.drop, is_change=True, needs=OWN_VIEW),
    Route("RenameView", "POST", "views/rename", views.rename, is_change=True, needs=RENAME),
    Route("TranslateView", "GET", f"{VIEW}/dialects", dialects.translate, needs=READ_VIEW),
    Route("TraceView", "GET", f"{VIEW}/lineage", dialects.trace, needs=READ_VIEW),
    Route(
        "RegisterView",
        "POST",
        f"{NAMESPACE}/register-view",
        views.register,
        is_change=True,
        needs=REGISTER,
    ),
    Route("ListTables", "GET", f"{NAMESPACE}/tables", tables.list_names, needs=SEE_NAMESPACE),
    Route("LoadTable", "GET", TABLE, tables.find, needs=FIND_TABLE),
    Route("TableExists", "HEAD", TABLE, tables.find, needs=FIND_TABLE),
    Route(
        "CreateTable",
        "POST",
        f"{NAMESPACE}/tables",
        tables.create,
        is_told=False,
        needs=OWN_NAMESPACE,
    ),
    Route("CommitTable", "POST", TABLE, tables.find, is_told=False, needs=FIND_TABLE),
    Route("DropTable", "DELETE", TABLE, tables.find, is_told=False, needs=FIND_TABLE),
    Route(
        "RegisterTable",
        "POST",
        f"{NAMESPACE}/register",
        tables.create,
        is_told=False,
        needs=OWN_NAMESPACE,
    ),
    Route("RenameTable", "POST", "tables/rename", tables.rename, is_told=False, needs=SIGNED_IN),
)

ADVERTISED = [f"{r.method} /v1/{{prefix}}/{r.path}" for r in ROUTES if r.is_told]

Key = tuple[str, ...]


def find(segments: list[str]) -> dict[str, Route]:
    """The routes of a path after /iceberg/v1 and the prefix, by method; empty without any."""
    return _BY_KEY.get(_key(segments), {})


def _key(parts: list[str]) -> Key:
    """A path with the names in it blank: the second and the fourth part below `namespaces`."""
    if parts[:1] != ["namespaces"]:
        return tuple(parts)
    return tuple("" if index in (1, 3) else part for index, part in enumerate(parts))


def _build() -> dict[Key, dict[str, Route]]:
    found: dict[Key, dict[str, Route]] = {}
    for route in ROUTES:
        found.setdefault(_key(route.path.split("/")), {})[route.method] = route
    return found


_BY_KEY = _build()
