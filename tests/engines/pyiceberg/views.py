"""pyiceberg makes, loads, registers and drops Iceberg views."""

from pathlib import Path
from urllib.parse import urlsplit

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.view import View
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from tests.engines.checks import Check, expect
from tests.engines.pyiceberg.catalog import FIELDS

QUERY = "SELECT id, name FROM items WHERE id < 3"


def list_operations(catalog: RestCatalog) -> list[Check]:
    made = Views(catalog)
    return [
        Check("create a view", made.create),
        Check("drop a view", made.drop),
        Check("register a view", made.register),
        Check(
            "replace a view",
            made.replace,
            limit="has no attribute",
            reason="pyiceberg's client has no replace, rename or properties for views",
        ),
    ]


class Views:
    """The operations, on views of the namespace that has the tables."""

    def __init__(self, catalog: RestCatalog) -> None:
        self.catalog = catalog
        self.location = ""

    def create(self) -> None:
        query = SQLViewRepresentation(type="sql", sql=QUERY, dialect="spark")
        fields = {"schema-id": 0, "default-namespace": ("shop",), "representations": [query]}
        version = ViewVersion.model_validate(fields)
        # Its file stays when it is dropped, to be registered again.
        kept = {"gc.enabled": "false"}
        self.catalog.create_view("shop.cheap", FIELDS, version, properties=kept)
        self.location = self.load("cheap").location()
        found = self.load("cheap").sql_for("spark")
        expect(found.sql if found else None, QUERY)
        expect(self.catalog.list_views("shop"), [("shop", "cheap")])

    def load(self, name: str) -> View:
        view: View = self.catalog.load_view(f"shop.{name}")
        return view

    def drop(self) -> None:
        self.catalog.drop_view("shop.cheap")
        expect(self.catalog.view_exists("shop.cheap"), False)

    def register(self) -> None:
        folder = Path(urlsplit(self.location).path)
        [file] = folder.glob("metadata/*.metadata.json")
        self.catalog.register_view("shop.again", f"file://{file}")
        expect(self.load("again").location(), self.location)

    def replace(self) -> None:
        self.catalog.replace_view("shop.cheap", QUERY)  # type: ignore[attr-defined]
