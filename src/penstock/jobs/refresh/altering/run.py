"""The recipe of an alteration: a refresh by another definition, committed with its columns.

A draft is made first: a version of the view that nobody else sees, with the new columns. Rows are
computed and written as in any refresh, for the draft. Rows that stay get a file of new columns for
each fragment. One commit takes all of it in; the catalog notes the definition in the same moment.
If only rows change, that is the commit of a refresh, in which rows may also move.
"""

import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from lance import LanceDataset

from penstock.crash import crash_point
from penstock.errors import InvalidTableState
from penstock.jobs.engine.attempt import Attempt, KeyedAttempt
from penstock.jobs.engine.committing import NoFit, commit_until_in
from penstock.jobs.refresh import view_notes
from penstock.jobs.refresh.altering.changes import find_changes
from penstock.jobs.refresh.altering.fill import fill_columns, write_nulls
from penstock.jobs.refresh.altering.uses import check_uses
from penstock.jobs.refresh.carrying import carry_columns, forget_ids
from penstock.jobs.refresh.context import Context, Plan, ViewChange, Work
from penstock.jobs.refresh.history import RefreshCommit, commit_refresh, read_history
from penstock.jobs.refresh.run import RefreshOutcome, RefreshRun
from penstock.jobs.refresh.strategies import find_strategy
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import RefreshSpec
from penstock.lance.columns.schemas import decode_schema
from penstock.lance.commit.evolution import (
    commit_draft,
    commit_evolution,
    evolve_schema,
    is_same_schema,
    list_field_ids,
    list_remade,
)
from penstock.lance.commit.removal import keep_fragments, remove_rows
from penstock.lance.commit.replacement import ALTERATION_PROPERTY, BASE_PROPERTY
from penstock.lance.session.remote import RemoteCatalog
from penstock.lance.session.unpublished import UnpublishedCatalog
from penstock.lance.write.view_tables import describe_view
from penstock.model.views import RefreshResult, Watermark


def run_alteration(
    spec: RefreshSpec,
    catalog: RemoteCatalog,
    get_engine: Callable[[], Engine],
    attempt: Attempt,
) -> RefreshResult:
    """Alter the view and refresh it; raises what `run_refresh` does."""
    alteration = AlterationRun(spec, catalog, get_engine, attempt)
    return alteration.finish(alteration.work())


def plan_schema(spec: RefreshSpec, view: LanceDataset) -> Any:
    """The schema that an altered view has, with the ids of the columns that it keeps."""
    assert spec.alteration is not None
    changes, had = find_changes(spec), view.schema
    own = {*decode_schema(spec.made_by.schema).names}
    wanted = decode_schema(spec.definition.schema)
    columns: list[str | pa.Field[Any]] = []
    for field in wanted:
        is_there = field.name in changes.kept and field.name in had.names
        if is_there and had.field(field.name).type != field.type:
            is_there = False
        if field.name in had.names and field.name not in own:
            raise InvalidTableState(
                f"the view has a column {field.name} of its users, and the new query gives one",
                detail="give the output another name with AS, or drop that column first",
            )
        columns.append(field.name if is_there else field)
    columns += [name for name in had.names if name not in own]
    metadata = describe_view(spec.definition.kind, spec.alteration.source_query)
    return evolve_schema(view, columns, metadata)


class AlterationRun(RefreshRun):
    """One attempt."""

    def work(self) -> RefreshOutcome | RefreshCommit:
        """Alter the view, or find the commit in which an earlier attempt did."""
        mark = self._given.watermark
        if mark is not None and mark.digest == self._given.definition.digest:
            # The catalog took over the watermark with the commit.
            self._view = self._catalog.open_latest(self._given.table, "")
            done = read_history(self._view, mark.view_version - 1).refresh
            if done is not None and done.job == self._attempt.job:
                return done
        return super().work()

    def _plan(self, context: Context) -> Plan:
        """Even where no row changes, the definition does, and with it a version of the view."""
        plan = super()._plan(context)
        return plan if plan.mode != "none" else replace(plan, mode="incremental")

    def _compute(self, work: Work, plan: Plan) -> ViewChange:
        """Compute the rows that the plan asks for, and what the rows that stay lack."""
        # Somebody may have built on the view since the request.
        check_uses(work.view, work.spec.made_by, work.spec.definition)
        self._schema = plan_schema(work.spec, work.view)
        filling = replace(work, attempt=self._name_work("columns"))
        # Lance wants to see columns that take the names of others in every fragment.
        self._files = write_nulls(filling, self._schema, list_remade(work.view, self._schema))
        held = UnpublishedCatalog(self._catalog, self._attempt.job)
        held.hold(
            work.spec.table, work.view, lambda view: commit_draft(view, self._schema, self._files)
        )
        crash_point("draft made")
        location = held.locate(work.spec.table, "")
        draft = held.open_latest(work.spec.table, "")
        change = ViewChange(removes=np.empty(0, np.int64))
        if plan.work is not None or plan.mode == "full":
            writing = replace(work, view=draft, location=location, attempt=self._name_work("rows"))
            change = find_strategy(work.definition).run(writing, plan)
        crash_point("altered rows written")
        names = find_changes(work.spec).computed
        if names and not isinstance(change.removes, str):
            self._attempt.log(f"filling {', '.join(names)} in rows that stay")
            filling = replace(filling, view=draft, location=location)
            staying = draft.count_rows() - len(change.removes)
            change, files = fill_columns(filling, change, names)
            change = replace(change, rows_read=change.rows_read + staying)
            self._files |= files
        return change

    def _name_work(self, part: str) -> Attempt:
        """Keep finished work under a name of its own: it fits only columns with these ids."""
        what = [self._name or self._attempt.job, part, list_field_ids(self._schema)]
        key = str(uuid.uuid5(uuid.NAMESPACE_OID, msgspec.json.encode(what).decode()))
        view_notes.write_key(self._place, self._attempt.job, key)
        return KeyedAttempt(self._attempt, key)

    def _properties(self, plan: Plan, change: ViewChange, watermark: Watermark) -> dict[str, str]:
        told = super()._properties(plan, change, watermark)
        return {**told, ALTERATION_PROPERTY: watermark.digest}

    def _commit(self, work: Work, change: ViewChange, properties: dict[str, str]) -> int | None:
        try_commit = partial(self._try_commit, work, change, properties)
        return commit_until_in(work.attempt, try_commit, "the view")

    def _try_commit(self, work: Work, change: ViewChange, properties: dict[str, str]) -> int:
        """Try once; raises NoFit if anybody else committed since."""
        latest = work.catalog.open_latest(work.spec.table, "")
        refresh = read_history(latest, work.view.version).refresh
        if refresh is not None and refresh.job == work.attempt.job:
            return refresh.version
        if latest.version != work.view.version:
            raise NoFit(f"version {latest.version} came while it was altered")
        removal = remove_rows(latest, work.location, change.removes)
        if is_same_schema(latest, self._schema) and (removal.rows or change.fragments):
            names = decode_schema(work.definition.schema).names
            fragments = carry_columns(latest, work.location, work.attempt, names, change)
            version = commit_refresh(latest, removal, fragments, properties)
        else:
            removal = keep_fragments(latest, work.location, removal)
            # Lance's Merge takes no rows that move.
            added = forget_ids(change.fragments)
            base = {BASE_PROPERTY: str(latest.version)}
            version = commit_evolution(
                latest, self._schema, removal, self._files, added, {**properties, **base}
            )
        crash_point("refresh committed")
        return version
