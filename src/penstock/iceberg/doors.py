"""The modules of this package that need pyiceberg, loaded by the first change of anything."""

from typing import TYPE_CHECKING

from penstock.late import LateModule

if TYPE_CHECKING:
    from penstock.iceberg import create, register, replace, requests
    from penstock.iceberg.tables import create as table_create
    from penstock.iceberg.tables import loading as table_loading
    from penstock.iceberg.tables import log as table_log
    from penstock.iceberg.tables import places as table_places
    from penstock.iceberg.tables import reading as table_reading
    from penstock.iceberg.tables import register as table_register
    from penstock.iceberg.tables import requests as table_requests
    from penstock.iceberg.tables import requirements as table_requirements
    from penstock.iceberg.tables import updates as table_updates
else:
    create = LateModule("penstock.iceberg.create")
    register = LateModule("penstock.iceberg.register")
    replace = LateModule("penstock.iceberg.replace")
    requests = LateModule("penstock.iceberg.requests")
    table_create = LateModule("penstock.iceberg.tables.create")
    table_loading = LateModule("penstock.iceberg.tables.loading")
    table_log = LateModule("penstock.iceberg.tables.log")
    table_places = LateModule("penstock.iceberg.tables.places")
    table_reading = LateModule("penstock.iceberg.tables.reading")
    table_register = LateModule("penstock.iceberg.tables.register")
    table_requests = LateModule("penstock.iceberg.tables.requests")
    table_requirements = LateModule("penstock.iceberg.tables.requirements")
    table_updates = LateModule("penstock.iceberg.tables.updates")

__all__ = [
    "create",
    "register",
    "replace",
    "requests",
    "table_create",
    "table_loading",
    "table_log",
    "table_places",
    "table_reading",
    "table_register",
    "table_requests",
    "table_requirements",
    "table_updates",
]
