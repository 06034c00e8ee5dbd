"""What the catalog keeps for itself among the tables: names that it makes when it needs them."""

from penstock.model.identifiers import Identifier

SYSTEM: Identifier = ("__system",)
# Rows that functions failed on.
LEDGER: Identifier = (*SYSTEM, "errors")
