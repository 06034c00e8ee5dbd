"""System tables: names of tables that the catalog creates for itself, or answers for."""

from penstock.model.identifiers import Identifier

SYSTEM: Identifier = ("__system",)
# Rows that functions failed on.
LEDGER: Identifier = (*SYSTEM, "errors")
# Tables of another client: it makes and describes them, and the server knows their rows.
GENEVA_JOBS: Identifier = (*SYSTEM, "geneva_jobs")
GENEVA_ERRORS: Identifier = (*SYSTEM, "geneva_errors")
