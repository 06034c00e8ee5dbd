"""The modules of this package that the catalog loads when a job is explained or swept."""

from typing import TYPE_CHECKING

from penstock.late import LateModule

if TYPE_CHECKING:
    from penstock.jobs.backfill import explain as backfill_explain
    from penstock.jobs.backfill import leftovers
    from penstock.jobs.kept import origins
    from penstock.jobs.refresh import plan as refresh_plan
    from penstock.jobs.refresh import view_notes
    from penstock.jobs.refresh.altering import uses
else:
    backfill_explain = LateModule("penstock.jobs.backfill.explain")
    leftovers = LateModule("penstock.jobs.backfill.leftovers")
    origins = LateModule("penstock.jobs.kept.origins")
    refresh_plan = LateModule("penstock.jobs.refresh.plan")
    uses = LateModule("penstock.jobs.refresh.altering.uses")
    view_notes = LateModule("penstock.jobs.refresh.view_notes")

__all__ = ["backfill_explain", "leftovers", "origins", "refresh_plan", "uses", "view_notes"]
