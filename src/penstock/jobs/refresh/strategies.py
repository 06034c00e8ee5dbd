"""The strategies by which views follow their sources: a row with its plan and its run for each."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from penstock.errors import Unsupported
from penstock.jobs.refresh.chunks import altered as altered_chunks
from penstock.jobs.refresh.chunks import plan as chunks
from penstock.jobs.refresh.context import Context, Plan, ViewChange, Work
from penstock.jobs.refresh.iceberg import plan as iceberg
from penstock.jobs.refresh.keys import plan as keys
from penstock.jobs.refresh.rows import altered as altered_rows
from penstock.jobs.refresh.rows import plan as rows
from penstock.jobs.refresh.udtf import plan as udtf
from penstock.jobs.refresh.whole import plan as whole
from penstock.model.views import Definition


@dataclass(frozen=True, slots=True)
class Strategy:
    """How views of one kind follow their sources.

    The module that runs it loads Spark, which a server that explains must not do.
    """

    plan: Callable[[Context], Plan]
    runs_in: str
    # Whether its plan finds what a query's clock changes; if not, such a view is rebuilt.
    follows_clock: bool = False
    # Plans an alteration after which some rows can stay; None where none ever can.
    plan_altered: Callable[[Context], Plan] | None = None

    def run(self, work: Work, plan: Plan) -> ViewChange:
        """Carry out a plan on Spark."""
        run = cast("Callable[[Work, Plan], ViewChange]", import_module(self.runs_in).run)
        return run(work, plan)


STRATEGIES = {
    "rows": Strategy(rows.plan, "penstock.jobs.refresh.rows.run", True, altered_rows.plan),
    "keys": Strategy(keys.plan, "penstock.jobs.refresh.keys.run", True),
    "whole": Strategy(whole.plan, "penstock.jobs.refresh.whole.run"),
    "iceberg": Strategy(iceberg.plan, "penstock.jobs.refresh.iceberg.run"),
    "chunks": Strategy(chunks.plan, "penstock.jobs.refresh.chunks.run", True, altered_chunks.plan),
    "udtf": Strategy(udtf.plan, "penstock.jobs.refresh.udtf.run", True, udtf.plan),
}


def find_strategy(definition: Definition) -> Strategy:
    """The strategy for a view."""
    by_kind = {"chunker": "chunks", "udtf": "udtf"}
    name = by_kind.get(definition.kind, definition.shape)
    if definition.iceberg_tables:
        name = "iceberg"
    if name not in STRATEGIES:
        raise Unsupported(f"views of shape {name} cannot be refreshed yet")
    return STRATEGIES[name]
