"""Other projects' clients, connected to the same server."""

from typing import TYPE_CHECKING, Any

from penstock.model.identifiers import SEPARATOR
from penstock.sdk.connection.optional_libraries import load
from penstock.sdk.connection.wire import Wire

if TYPE_CHECKING:
    from lance.namespace import RestNamespace
    from lancedb.db import DBConnection
    from pyiceberg.catalog.rest import RestCatalog


def namespace_client(wire: Wire) -> "RestNamespace":
    """pylance's client, for `lance.dataset(namespace_client=…)`."""
    namespace: Any = load("lance.namespace", "namespace_client()")
    found: RestNamespace = namespace.RestNamespace(**_properties(wire))
    return found


def lancedb(wire: Wire) -> "DBConnection":
    """A connection of lancedb."""
    library: Any = load("lancedb", "lancedb()")
    found: DBConnection = library.connect_namespace("rest", _properties(wire))
    return found


def iceberg_catalog(wire: Wire, name: str, **properties: str) -> "RestCatalog":
    """pyiceberg's catalog of the views, and of the namespaces they share with the tables."""
    rest: Any = load("pyiceberg.catalog.rest", "iceberg_catalog()")
    key = {"token": wire.api_key} if wire.api_key else {}
    found: RestCatalog = rest.RestCatalog(name, uri=f"{wire.url}/iceberg", **key, **properties)
    return found


def _properties(wire: Wire) -> dict[str, str]:
    key = {"header.x-api-key": wire.api_key} if wire.api_key else {}
    # No name contains this delimiter.
    return {"uri": wire.url, "delimiter": SEPARATOR, **key}
