"""The demo's Iceberg view: made with pyiceberg, replaced, and read by a materialized view."""

from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view.metadata import ViewVersion

from penstock.cli.demo.step_printer import StepPrinter
from penstock.sdk.lake import Lake

VIEW, COPY = "demo.dams", "demo.dams_kept"
FIRST = "SELECT id, title FROM documents WHERE kind = 'dam'"
SECOND = "SELECT id, title FROM documents WHERE kind IN ('dam', 'storage')"


def show_iceberg(lake: Lake, printer: StepPrinter) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "title", StringType(), required=False),
    )
    catalog = lake.iceberg_catalog()

    version = {
        "schema-id": 0,
        "representations": [{"type": "sql", "dialect": "spark", "sql": FIRST}],
        "default-namespace": ["demo"],
    }
    catalog.create_view(VIEW, schema, ViewVersion.model_validate(version))
    view = lake.create_view(COPY, "SELECT id, title FROM dams")
    view.refresh(progress=False)
    documents = lake.table("demo.documents")
    first = documents.count("kind = 'dam'")
    printer.check("rows over the Iceberg view", view.count(), first)
    lake.iceberg_view(VIEW).alter(SECOND)
    view.refresh(progress=False)
    second = documents.count("kind IN ('dam', 'storage')")
    printer.check("rows after the replace", view.count(), second)
    printer.say(
        "iceberg",
        f"{VIEW} made by pyiceberg, {COPY} reads it: {first} rows, {second} after a replace",
    )
