"""The plan of a refresh, for those who only ask. All of it blocks."""

from collections.abc import Mapping
from typing import Any

from msgspec import convert

from penstock.jobs.refresh.kinds import WAYS, find_way
from penstock.jobs.refresh.plan import (
    Opener,
    choose_versions,
    look_back,
    make_context,
    plan_refresh,
)
from penstock.jobs.refresh.rows import plan as rows
from penstock.model.views import RefreshSpec


def explain_refresh(spec: Mapping[str, Any], open_table: Opener) -> dict[str, Any]:
    """What a refresh with this spec would do now, as data."""
    location, view = open_table(spec["table"])
    wanted, history = look_back(convert(spec, RefreshSpec), view)
    newest = {source.id: open_table(source.table) for source in wanted.definition.sources}
    pins = choose_versions(wanted, newest)
    context = make_context(wanted, location, view, newest, pins, history.foreign)
    definition, plan = wanted.definition, plan_refresh(context)
    if find_way(definition) is WAYS["rows"]:
        # Not a part of the plan itself: a refresh finds these numbers as it goes.
        plan = rows.count(context, plan)
    return {
        **plan.to_json(),
        "kind": definition.kind,
        "shape": definition.shape,
        "obstacle": definition.obstacle,
        "source_versions": {
            "$".join(each.source.table): {"from": each.then, "to": each.now}
            for each in context.sources.values()
        },
    }
