"""System tables: names of tables that the catalog creates for itself."""

from penstock.model.identifiers import Identifier

SYSTEM: Identifier = ("__system",)
# Rows that functions failed on.
LEDGER: Identifier = (*SYSTEM, "errors")
