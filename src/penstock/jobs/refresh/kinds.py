"""The ways in which views follow their sources, a row each: what plans it, and what runs it."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from penstock.errors import Unsupported
from penstock.jobs.refresh.chunks import plan as chunks
from penstock.jobs.refresh.context import Change, Context, Plan, Work
from penstock.jobs.refresh.groups import plan as groups
from penstock.jobs.refresh.rows import plan as rows
from penstock.jobs.refresh.udtf import plan as udtf
from penstock.jobs.refresh.whole import plan as whole
from penstock.model.views import Definition


@dataclass(frozen=True, slots=True)
class Way:
    """How views of one kind follow their sources.

    The module that runs it has Spark in it, which a server that explains must not load.
    """

    plan: Callable[[Context], Plan]
    runs_in: str

    def run(self, work: Work, plan: Plan) -> Change:
        """Carry a plan out, on Spark."""
        run = cast("Callable[[Work, Plan], Change]", import_module(self.runs_in).run)
        return run(work, plan)


WAYS = {
    "rows": Way(rows.plan, "penstock.jobs.refresh.rows.run"),
    "groups": Way(groups.plan, "penstock.jobs.refresh.groups.run"),
    "whole": Way(whole.plan, "penstock.jobs.refresh.whole.run"),
    "chunks": Way(chunks.plan, "penstock.jobs.refresh.chunks.run"),
    "udtf": Way(udtf.plan, "penstock.jobs.refresh.udtf.run"),
}


def find_way(definition: Definition) -> Way:
    """How a view follows its sources."""
    by_kind = {"chunker": "chunks", "udtf": "udtf"}
    name = by_kind.get(definition.kind, definition.shape)
    if name not in WAYS:
        raise Unsupported(f"views of shape {name} cannot be refreshed yet")
    return WAYS[name]
