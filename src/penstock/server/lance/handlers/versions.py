"""Operations on table versions, single and in batches."""

from typing import Annotated

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs.ledger import refuse_write
from penstock.catalog.names import tables
from penstock.catalog.versions import commits, reconcile, versions
from penstock.catalog.versions.commits import (
    CommittedVersion,
    CreateVersion,
    Declare,
    DeleteVersions,
    Deregister,
    Operation,
)
from penstock.catalog.versions.staging import NewVersion
from penstock.errors import InvalidRequest
from penstock.model.branches import check_branch
from penstock.model.identifiers import Identifier, check_identifier
from penstock.model.paging import Page, PageRequest
from penstock.model.system_tables import LEDGER
from penstock.model.tables import Table, TableVersion, VersionRange
from penstock.server.lance.call import Body, Call, Version
from penstock.server.lance.handlers.tables import (
    DeclaredTable,
    DeclareTable,
    RemovedTable,
    declared_table,
    removed_table,
)

Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Bound = Annotated[int, msgspec.Meta(ge=-1, le=2**63 - 1)]


class CreateTableVersion(Body):
    version: Version
    manifest_path: str
    branch: str | None = None
    manifest_size: Size | None = None
    e_tag: str | None = None
    metadata: dict[str, str] | None = None
    naming_scheme: str | None = None


class DescribeTableVersion(Body):
    version: Version | None = None
    branch: str | None = None


class Range(msgspec.Struct):
    start_version: Version
    end_version: Bound


class DeleteTableVersions(Body):
    ranges: list[Range]
    branch: str | None = None


class BatchCreate(Body):
    entries: list[CreateTableVersion]


class CommitOperation(msgspec.Struct):
    declare_table: DeclareTable | None = None
    create_table_version: CreateTableVersion | None = None
    delete_table_versions: DeleteTableVersions | None = None
    deregister_table: Body | None = None


class BatchCommit(Body):
    operations: list[CommitOperation]


class VersionInfo(msgspec.Struct, omit_defaults=True):
    version: int
    manifest_path: str
    manifest_size: int
    timestamp_millis: int
    e_tag: str | None = None
    metadata: dict[str, str] | None = None


class Versions(msgspec.Struct, omit_defaults=True):
    versions: list[VersionInfo]
    page_token: str | None = None
    transaction_id: str | None = None


class DescribedVersion(msgspec.Struct):
    version: VersionInfo


class CreatedVersion(msgspec.Struct, omit_defaults=True):
    version: VersionInfo
    transaction_id: str | None = None


class DeletedVersions(msgspec.Struct, omit_defaults=True):
    deleted_count: int
    transaction_id: str | None = None


class CommitResult(msgspec.Struct, omit_defaults=True):
    declare_table: DeclaredTable | None = None
    create_table_version: CreatedVersion | None = None
    delete_table_versions: DeletedVersions | None = None
    deregister_table: RemovedTable | None = None


class CommittedBatch(msgspec.Struct):
    transaction_id: str
    results: list[CommitResult]


_body = msgspec.json.Decoder(Body)
_create = msgspec.json.Decoder(CreateTableVersion)
_describe = msgspec.json.Decoder(DescribeTableVersion)
_delete = msgspec.json.Decoder(DeleteTableVersions)
_batch_create = msgspec.json.Decoder(BatchCreate)
_batch_commit = msgspec.json.Decoder(BatchCommit)


async def list_versions(call: Call) -> Versions:
    call.decode(_body)
    branch, descending = check_branch(call.text("branch")), bool(call.flag("descending"))
    table = await tables.get(call.catalog.database, call.id)
    page = call.page(f"versions:{table.id}:{branch}:{descending}")
    found = await find_page(call.catalog, table, branch, page, descending)
    return Versions([to_info(call, table, v) for v in found.items], found.token)


async def find_page(
    catalog: Catalog, table: Table, branch: str, page: PageRequest, descending: bool
) -> Page[TableVersion]:
    """A page of a branch's versions, with those that others committed by path."""
    if page.after is None and descending and page.limit == 1:
        await reconcile.look_ahead(catalog, table, branch)
    elif page.after is None:
        await reconcile.reconcile(catalog, table, branch)
    found = await versions.list_page(catalog.database, table.id, branch, page, descending)
    if not await reconcile.make_readable(catalog, table, branch, found.items):
        found = await versions.list_page(catalog.database, table.id, branch, page, descending)
    if not found.items:
        await reconcile.check_branch_exists(catalog, table, branch)
    return found


async def create(call: Call) -> CreatedVersion:
    body = call.decode(_create)
    done = await commits.commit(call.catalog, [_to_create(call.id, body)], call.origin)
    return CreatedVersion(_created_info(call, done.results[0]), done.transaction_id)


async def describe(call: Call) -> DescribedVersion:
    body = call.decode(_describe)
    table = await tables.get(call.catalog.database, call.id)
    branch = check_branch(body.branch)
    found = await reconcile.get_version_of_branch(call.catalog, table, branch, body.version)
    return DescribedVersion(to_info(call, table, found))


async def delete(call: Call) -> DeletedVersions:
    operation = _to_delete(call.id, call.decode(_delete))
    done = await commits.commit(call.catalog, [operation], call.origin)
    count = done.results[0]
    assert isinstance(count, int)
    return DeletedVersions(count, done.transaction_id)


async def batch_create(call: Call) -> Versions:
    body = call.decode(_batch_create)
    operations = [_to_create(_named(entry, "entries"), entry) for entry in body.entries]
    if not operations:
        raise InvalidRequest("entries is empty", detail="name at least one version")
    done = await commits.commit(call.catalog, operations, call.origin)
    infos = [_created_info(call, result) for result in done.results]
    return Versions(infos, transaction_id=done.transaction_id)


async def describe_created(call: Call, transaction_id: str) -> Versions:
    """What a batch of new versions made, in the form of its own answer."""
    infos = []
    for entry in call.decode(_batch_create).entries:
        table = await tables.get(call.catalog.database, _named(entry, "entries"))
        branch = check_branch(entry.branch)
        found = await reconcile.get_version(call.catalog, table, branch, entry.version)
        infos.append(to_info(call, table, found))
    return Versions(infos, transaction_id=transaction_id)


async def batch_commit(call: Call) -> CommittedBatch:
    body = call.decode(_batch_commit)
    if not body.operations:
        raise InvalidRequest("operations is empty", detail="name at least one operation")
    operations = [_to_operation(call, op) for op in body.operations]
    done = await commits.commit(call.catalog, operations, call.origin)
    results = [
        _to_result(call, op, result, done.transaction_id, asked)
        for op, result, asked in zip(operations, done.results, body.operations, strict=True)
    ]
    return CommittedBatch(done.transaction_id, results)


def to_info(call: Call, table: Table, version: TableVersion) -> VersionInfo:
    """A version in the clients' form: the path is the store's key, without a leading slash."""
    key = call.catalog.lake.place(table.location).key
    return VersionInfo(
        version.version,
        f"{key}/{version.manifest_path}",
        version.manifest_size,
        version.timestamp_millis,
        version.e_tag,
        version.metadata or None,
    )


def _created_info(call: Call, result: commits.Result) -> VersionInfo:
    assert isinstance(result, CommittedVersion)
    return to_info(call, result.table, result.version)


def _named(body: Body, where: str) -> Identifier:
    if not body.id:
        raise InvalidRequest(f"id is missing in one of {where}", detail="name the table")
    if (id := check_identifier(tuple(body.id), f"id in {where}")) == LEDGER:
        raise refuse_write()
    return id


def _to_create(id: Identifier, body: CreateTableVersion) -> CreateVersion:
    if body.e_tag is not None and "\x00" in body.e_tag:
        raise InvalidRequest("e_tag holds a NUL character", detail="send it as the store gave it")
    return CreateVersion(
        id,
        NewVersion(
            check_branch(body.branch),
            body.version,
            body.manifest_path,
            body.manifest_size,
            body.e_tag,
            body.metadata,
            body.naming_scheme,
        ),
    )


def _to_delete(id: Identifier, body: DeleteTableVersions) -> DeleteVersions:
    for each in body.ranges:
        if each.end_version != -1 and each.end_version < each.start_version:
            raise InvalidRequest(
                f"a range ends at {each.end_version}, before its start {each.start_version}",
                detail="the end is exclusive; use -1 for no end",
            )
    ranges = [
        VersionRange(each.start_version, None if each.end_version == -1 else each.end_version)
        for each in body.ranges
    ]
    return DeleteVersions(id, check_branch(body.branch), ranges)


def _to_operation(call: Call, asked: CommitOperation) -> Operation:
    given = [f for f in asked.__struct_fields__ if getattr(asked, f) is not None]
    if len(given) != 1:
        raise InvalidRequest(
            f"an entry of operations has {len(given)} operations",
            detail="set exactly one of " + ", ".join(asked.__struct_fields__),
        )
    where = f"operations.{given[0]}"
    if (declare := asked.declare_table) is not None:
        catalog, properties = call.catalog, declare.properties or {}
        id = _named(declare, where)
        new = tables.plan_table(catalog, id, declare.location, properties, catalog.managed_versions)
        return Declare(new)
    if asked.create_table_version is not None:
        return _to_create(_named(asked.create_table_version, where), asked.create_table_version)
    if asked.delete_table_versions is not None:
        return _to_delete(_named(asked.delete_table_versions, where), asked.delete_table_versions)
    assert asked.deregister_table is not None
    return Deregister(_named(asked.deregister_table, where))


def _to_result(
    call: Call,
    operation: Operation,
    result: commits.Result,
    transaction: str,
    asked: CommitOperation,
) -> CommitResult:
    match operation, result:
        case Declare(), Table() as table:
            vend = asked.declare_table.vend_credentials if asked.declare_table else None
            return CommitResult(declare_table=declared_table(call, table, transaction, vend))
        case Deregister(), Table() as table:
            return CommitResult(deregister_table=removed_table(table, transaction))
        case DeleteVersions(), int() as count:
            return CommitResult(delete_table_versions=DeletedVersions(count, transaction))
        case _:
            created = CreatedVersion(_created_info(call, result), transaction)
            return CommitResult(create_table_version=created)
