"""All routes under /iceberg: what they answer to, and who serves them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from penstock.server.http import Reply
from penstock.server.iceberg import config, dialects, namespaces, tables, tokens, views
from penstock.server.iceberg.call import Call

Handler = Callable[[Call], Awaitable[Reply]]

NAMESPACE = "namespaces/{namespace}"
VIEW = f"{NAMESPACE}/views/{{view}}"
TABLE = f"{NAMESPACE}/tables/{{table}}"


@dataclass(frozen=True, slots=True)
class Route:
    """One route; `is_told` when it is among the endpoints that clients are told of.

    `is_open` when it is answered without credentials.
    """

    name: str
    method: str
    path: str
    handler: Handler
    is_change: bool = False
    is_told: bool = True
    is_open: bool = False


ROUTES = (
    Route("GetConfig", "GET", "config", config.get, is_told=False),
    Route("GetToken", "POST", "oauth/tokens", tokens.issue, is_told=False, is_open=True),
    Route("ListNamespaces", "GET", "namespaces", namespaces.list_children),
    Route("CreateNamespace", "POST", "namespaces", namespaces.create, is_change=True),
    Route("LoadNamespace", "GET", NAMESPACE, namespaces.load),
    Route("NamespaceExists", "HEAD", NAMESPACE, namespaces.exists),
    Route("DropNamespace", "DELETE", NAMESPACE, namespaces.drop, is_change=True),
    Route(
        "UpdateProperties",
        "POST",
        f"{NAMESPACE}/properties",
        namespaces.update_properties,
        is_change=True,
    ),
    Route("ListViews", "GET", f"{NAMESPACE}/views", views.list_names),
    Route("CreateView", "POST", f"{NAMESPACE}/views", views.create, is_change=True),
    Route("LoadView", "GET", VIEW, views.load),
    Route("ViewExists", "HEAD", VIEW, views.exists),
    Route("ReplaceView", "POST", VIEW, views.replace, is_change=True),
    Route("DropView", "DELETE", VIEW, views.drop, is_change=True),
    Route("RenameView", "POST", "views/rename", views.rename, is_change=True),
    Route("TranslateView", "GET", f"{VIEW}/dialects", dialects.translate),
    Route("TraceView", "GET", f"{VIEW}/lineage", dialects.trace),
    Route("RegisterView", "POST", f"{NAMESPACE}/register-view", views.register, is_change=True),
    Route("ListTables", "GET", f"{NAMESPACE}/tables", tables.list_names),
    Route("LoadTable", "GET", TABLE, tables.find),
    Route("TableExists", "HEAD", TABLE, tables.find),
    Route("CreateTable", "POST", f"{NAMESPACE}/tables", tables.create, is_told=False),
    Route("CommitTable", "POST", TABLE, tables.find, is_told=False),
    Route("DropTable", "DELETE", TABLE, tables.find, is_told=False),
    Route("RegisterTable", "POST", f"{NAMESPACE}/register", tables.create, is_told=False),
    Route("RenameTable", "POST", "tables/rename", tables.rename, is_told=False),
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
