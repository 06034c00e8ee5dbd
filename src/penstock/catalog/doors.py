"""What the catalog loads late: its half of pylance's commits, and what explains jobs."""

from typing import TYPE_CHECKING

from penstock.late import LateModule

if TYPE_CHECKING:
    from penstock.catalog.versions import arbiter
else:
    arbiter = LateModule("penstock.catalog.versions.arbiter")

__all__ = ["arbiter"]
