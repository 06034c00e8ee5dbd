"""Rules of the Lance operations; each operation's definition names one."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from penstock.catalog.access.permissions import AccessCache
from penstock.catalog.jobs import jobs
from penstock.catalog.names import transactions
from penstock.errors import Forbidden, JobNotFound
from penstock.jobs.specs import decode_reach
from penstock.model.identifiers import Identifier, check_identifier, from_path
from penstock.model.jobs import Job
from penstock.model.rights import (
    FUNCTION,
    FUNCTIONS,
    ICEBERG_TABLE,
    NAMESPACE,
    OWN,
    READ,
    SEE,
    TABLE,
    VIEW,
    WRITE,
    Need,
)
from penstock.server.access.rules import CATALOG, NAMED, PARENT, Rule
from penstock.server.lance.call import Body, Call, Text
from penstock.server.lance.handlers.grants import read_change, read_listing

Needs = Sequence[Need]
Find = Callable[[Call, AccessCache], Awaitable[Needs]]


class _Columns(Body):
    new_columns: list[dict[str, Any]] | None = None
    alterations: list[dict[str, Any]] | None = None


class _Backfill(Body):
    manifest: Any = None


class _Rename(Body):
    new_namespace_id: list[str] | None = None


class _Entry(msgspec.Struct):
    id: list[str] | None = None


class _Entries(Body):
    entries: list[_Entry]


class _Operation(msgspec.Struct):
    declare_table: _Entry | None = None
    create_table_version: _Entry | None = None
    delete_table_versions: _Entry | None = None
    deregister_table: _Entry | None = None


class _Operations(Body):
    operations: list[_Operation]


class _Job(Body):
    job_id: Text | None = None
    job_ids: list[Text] | None = None


_columns = msgspec.json.Decoder(_Columns)
_backfill = msgspec.json.Decoder(_Backfill)
_rename = msgspec.json.Decoder(_Rename)
_entries = msgspec.json.Decoder(_Entries)
_operations = msgspec.json.Decoder(_Operations)
_job = msgspec.json.Decoder(_Job)


async def _bring_column(call: Call, access: AccessCache) -> Needs:
    """A column filled by a function brings code; an Arrow stream can only name empty ones."""
    if call.has_arrow_body:
        return ()
    body = call.decode(_columns)
    given = (*(body.new_columns or ()), *(body.alterations or ()))
    if any(column.get("virtual_column") is not None for column in given):
        return [Need(FUNCTIONS, TABLE, call.id)]
    return ()


async def _bring_environment(call: Call, access: AccessCache) -> Needs:
    """An inline environment brings code; a named one was brought before."""
    given = call.decode(_backfill).manifest
    if given is None or (isinstance(given, str) and not given.lstrip().startswith("{")):
        return ()
    return [Need(FUNCTIONS, TABLE, call.id)]


async def _to_other_namespace(call: Call, access: AccessCache) -> Needs:
    namespace = call.decode(_rename).new_namespace_id
    to = call.id[:-1] if namespace is None else check_identifier(tuple(namespace), "the new id")
    return [Need(OWN, NAMESPACE, to)]


async def _write_entries(call: Call, access: AccessCache) -> Needs:
    return [Need(WRITE, TABLE, _named(entry)) for entry in call.decode(_entries).entries]


async def _change_each(call: Call, access: AccessCache) -> Needs:
    needs = []
    for op in call.decode(_operations).operations:
        if op.declare_table is not None:
            needs.append(Need(OWN, NAMESPACE, _named(op.declare_table)[:-1]))
        if op.create_table_version is not None:
            needs.append(Need(WRITE, TABLE, _named(op.create_table_version)))
        if op.delete_table_versions is not None:
            needs.append(Need(WRITE, TABLE, _named(op.delete_table_versions)))
        if op.deregister_table is not None:
            needs.append(Need(OWN, TABLE, _named(op.deregister_table)))
    # A table that the same commit declares has no rights of its own yet.
    declared = {_named(o.declare_table) for o in _all(call) if o.declare_table is not None}
    return [need for need in needs if need.kind == NAMESPACE or need.id not in declared]


def _all(call: Call) -> list[_Operation]:
    return call.decode(_operations).operations


def _named(entry: _Entry) -> Identifier:
    # Without an id the handler refuses it; until then it counts as the root.
    return check_identifier(tuple(entry.id or ())) or ("",)


def _job_in_body(right: int) -> Find:
    async def find(call: Call, access: AccessCache) -> Needs:
        body = call.decode(_job)
        ids = [body.job_id] if body.job_id is not None else body.job_ids or []
        return [await _need_for_job(call, access, id, right) for id in ids]

    return find


def _job_in_path(right: int) -> Find:
    async def find(call: Call, access: AccessCache) -> Needs:
        return [await _need_for_job(call, access, call.id[-1], right)] if call.id else ()

    return find


def _transaction(right: int) -> Find:
    """A transaction belongs to its maker; others need the right on the whole catalog."""

    async def find(call: Call, access: AccessCache) -> Needs:
        if not call.id or call.identity is None:
            return ()
        id = call.id[-1]
        if await jobs.find(call.catalog.database, id) is not None:
            try:
                return [await _need_for_job(call, access, id, WRITE if right == OWN else right)]
            except JobNotFound:
                # The words for a missing transaction: not even that it is a job is revealed.
                raise transactions.missing(id) from None
        maker = await transactions.find_maker(call.catalog.database, id)
        if maker is not None and maker == call.identity.principal:
            return ()
        if maker is None or not (await access.standing(call.identity, NAMESPACE, ())).has(right):
            raise transactions.missing(id)
        return ()

    return find


async def _need_for_job(call: Call, access: AccessCache, id: str, right: int) -> Need:
    """A job is visible to those who see its table, and canceled by those who may write to it."""
    assert call.identity is not None
    job = await jobs.find(call.catalog.database, id)
    if job is None:
        raise jobs.missing(id)
    table = await _find_table(call, job)
    if table is None:
        # Only those who may see everything can know whose it was.
        if (await access.standing(call.identity, NAMESPACE, ())).has(right):
            return Need(SEE, NAMESPACE, ())
        raise jobs.missing(id)
    if not (await access.standing(call.identity, TABLE, table)).sees:
        raise jobs.missing(id)
    return Need(right, TABLE, table)


async def _find_table(call: Call, job: Job) -> Identifier | None:
    for id in decode_reach(job.spec).target_ids:
        row = await call.catalog.database.fetch_one(
            "SELECT namespace, name FROM objects WHERE id = $1", id
        )
        if row is not None:
            return (*from_path(row[0]), row[1])
    return None


async def _run(call: Call, access: AccessCache) -> Needs:
    """Only a runner's key may do this, and only with the jobs that it holds."""
    assert call.identity is not None
    if not call.identity.is_runner:
        raise Forbidden(
            f"{call.identity.principal} did not show a runner's key",
            detail="make one with 'penstock token create --runner'",
        )
    if call.id and await jobs.find_holder(call.catalog.database, call.id[-1]) != call.token:
        raise jobs.missing(call.id[-1])
    return ()


async def _grant(call: Call, access: AccessCache) -> Needs:
    assert call.identity is not None
    change = read_change(call)
    needs = [Need(OWN, change.target.kind, change.target.id)]
    if change.role == "functions":
        # Nobody gives more than they have: an owner may bring code only if that was granted too.
        needs.append(Need(FUNCTIONS, change.target.kind, change.target.id))
    return needs


def _tell_grant(call: Call) -> str:
    change = read_change(call)
    return f"{change.role} on {change.target} of {change.grantee}"


async def _list_grants(call: Call, access: AccessCache) -> Needs:
    assert call.identity is not None
    target, grantee = read_listing(call)
    if target is not None:
        return [Need(OWN, target.kind, target.id)]
    if grantee is None or grantee in call.identity.grantees:
        return ()
    return [Need(OWN, NAMESPACE, ())]


SIGNED_IN: Rule[Call] = Rule(SEE, CATALOG)
SEE_NAMESPACE: Rule[Call] = Rule(SEE, NAMED)
READ_NAMESPACE: Rule[Call] = Rule(READ, NAMED)
OWN_NAMESPACE: Rule[Call] = Rule(OWN, NAMED)
CREATE: Rule[Call] = Rule(OWN, PARENT)
CREATE_NAMESPACE: Rule[Call] = Rule(OWN, PARENT, where="the parent")
READ_TABLE: Rule[Call] = Rule(READ, NAMED, TABLE)
WRITE_TABLE: Rule[Call] = Rule(WRITE, NAMED, TABLE)
OWN_TABLE: Rule[Call] = Rule(OWN, NAMED, TABLE)
RENAME: Rule[Call] = Rule(
    OWN, NAMED, TABLE, _to_other_namespace, also="owner on the namespace it goes to"
)
CHANGE_COLUMNS: Rule[Call] = Rule(
    OWN,
    NAMED,
    TABLE,
    _bring_column,
    also="functions, for a column that brings its function; reader on a function that it names",
)
BACKFILL: Rule[Call] = Rule(
    WRITE, NAMED, TABLE, _bring_environment, also="functions, for an environment in the request"
)
# The views of a cascade are known once their queries were read: see `cascades`.
REFRESH: Rule[Call] = Rule(
    WRITE,
    NAMED,
    TABLE,
    _bring_environment,
    also="functions, for an environment in the request; writer on each view that it reads, for "
    "cascade",
)
# What a view reads and whether it brings code is known once its query was read: see `create`.
CREATE_VIEW: Rule[Call] = Rule(
    OWN,
    PARENT,
    also="reader on what it reads and on a function that it names; functions, if it brings one",
)
READ_VIEW: Rule[Call] = Rule(READ, NAMED, VIEW)
OWN_VIEW: Rule[Call] = Rule(OWN, NAMED, VIEW)
READ_ICEBERG_TABLE: Rule[Call] = Rule(READ, NAMED, ICEBERG_TABLE)
# What an Iceberg view reads is known once its query was read: see `iceberg_views.definitions`.
CREATE_ICEBERG_VIEW: Rule[Call] = Rule(OWN, PARENT, also="reader on what it reads")
ALTER_VIEW: Rule[Call] = Rule(OWN, NAMED, VIEW, also="reader on what it reads")
# New sources of a view are known once its query was read: see `consent_requests`.
CONSENT: Rule[Call] = Rule(OWN, NAMED, TABLE, also="reader on what it has come to read")
WRITE_ENTRIES: Rule[Call] = Rule(SEE, CATALOG, more=_write_entries, also="writer on each table")
CHANGE_EACH: Rule[Call] = Rule(SEE, CATALOG, more=_change_each, also="what each operation needs")
READ_TRANSACTION: Rule[Call] = Rule(
    SEE,
    CATALOG,
    more=_transaction(READ),
    also="to have made it, or reader on the job's table or the catalog",
)
CHANGE_TRANSACTION: Rule[Call] = Rule(
    SEE,
    CATALOG,
    more=_transaction(OWN),
    also="to have made it, or writer on the job's table, or owner on the catalog",
)
READ_JOB: Rule[Call] = Rule(SEE, CATALOG, more=_job_in_body(READ), also="reader on the job's table")
READ_JOB_IN_PATH: Rule[Call] = Rule(
    SEE, CATALOG, more=_job_in_path(READ), also="reader on the job's table"
)
CANCEL_JOB: Rule[Call] = Rule(
    SEE, CATALOG, more=_job_in_body(WRITE), also="writer on the job's table"
)
# What a statement reads is known once it was read: see `statements`.
RUN_SQL: Rule[Call] = Rule(SEE, CATALOG, also="reader on each table and view that it reads")
READ_CATALOG: Rule[Call] = Rule(READ, CATALOG)
OWN_CATALOG: Rule[Call] = Rule(OWN, CATALOG)
BRING_CODE: Rule[Call] = Rule(FUNCTIONS, CATALOG)
# Whether it exists already is known once its name was looked up: see `functions`.
CREATE_FUNCTION: Rule[Call] = Rule(FUNCTIONS, PARENT, also="owner on a function that exists")
READ_FUNCTION: Rule[Call] = Rule(READ, NAMED, FUNCTION)
OWN_FUNCTION: Rule[Call] = Rule(OWN, NAMED, FUNCTION)
RUN_JOBS: Rule[Call] = Rule(SEE, CATALOG, more=_run, also="a runner's key")
GRANT: Rule[Call] = Rule(
    SEE,
    CATALOG,
    more=_grant,
    also="owner on what it is on, and functions to grant functions",
    tell=_tell_grant,
)
LIST_GRANTS: Rule[Call] = Rule(
    SEE,
    CATALOG,
    more=_list_grants,
    also="owner on what they are on, or on the catalog for other principals' grants",
)
