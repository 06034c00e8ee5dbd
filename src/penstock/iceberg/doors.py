"""The modules of this package that need pyiceberg, loaded by the first change of a view."""

from typing import TYPE_CHECKING

from penstock.late import LateModule

if TYPE_CHECKING:
    from penstock.iceberg import create, register, replace, requests
else:
    create = LateModule("penstock.iceberg.create")
    register = LateModule("penstock.iceberg.register")
    replace = LateModule("penstock.iceberg.replace")
    requests = LateModule("penstock.iceberg.requests")

__all__ = ["create", "register", "replace", "requests"]
