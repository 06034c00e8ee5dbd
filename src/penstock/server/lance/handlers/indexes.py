"""The operations on indexes, and the statistics of a table."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from penstock.catalog.data import datasets
from penstock.catalog.names import tables
from penstock.catalog.versions import refs
from penstock.errors import InvalidRequest
from penstock.lance import indexes
from penstock.lance.indexes import (
    SCALAR_TYPES,
    TEXT,
    VECTOR_TYPES,
    IndexInfo,
    IndexStats,
    check_index_name,
    check_parameters,
    check_type,
)
from penstock.lance.read.stats import TableStats, load_stats
from penstock.model.branches import check_branch
from penstock.model.paging import cut_page, request_page
from penstock.server.lance.call import Body, Call, Version
from penstock.server.lance.handlers.refs import EmptyReply

# Limits that no sensible index reaches, so that none exhausts the memory.
Partitions = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Small = Annotated[int, msgspec.Meta(ge=1, le=65_536)]
Edges = Annotated[int, msgspec.Meta(ge=1, le=2048)]
Ngram = Annotated[int, msgspec.Meta(ge=1, le=64)]
Length = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Rows = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class CreateIndex(Body):
    column: Annotated[str, msgspec.Meta(min_length=1)]
    index_type: str
    name: str | None = None
    branch: str | None = None
    distance_type: str | None = None
    # LanceDB's own word for it.
    metric_type: str | None = None
    num_partitions: Partitions | None = None
    num_sub_vectors: Small | None = None
    num_bits: Small | None = None
    sample_rate: Small | None = None
    max_iterations: Small | None = None
    target_partition_size: Rows | None = None
    m: Edges | None = None
    ef_construction: Small | None = None
    with_position: bool | None = None
    base_tokenizer: str | None = None
    language: str | None = None
    max_token_length: Length | None = None
    lower_case: bool | None = None
    stem: bool | None = None
    remove_stop_words: bool | None = None
    ascii_folding: bool | None = None
    # The rest is lancedb's.
    custom_stop_words: Annotated[list[str], msgspec.Meta(max_length=10_000)] | None = None
    min_ngram_length: Ngram | None = None
    max_ngram_length: Ngram | None = None
    prefix_only: bool | None = None
    block_size: Length | None = None
    split_identifiers: bool | None = None
    split_on_numerics: bool | None = None
    preserve_original: bool | None = None
    index_operators: bool | None = None
    replace: bool | None = None


class ListIndices(Body):
    version: Version | None = None
    branch: str | None = None
    page_token: str | None = None
    limit: int | None = None


class DescribeIndex(Body):
    version: Version | None = None
    branch: str | None = None
    index_name: str | None = None


class BranchBody(Body):
    branch: str | None = None


class Indices(msgspec.Struct, omit_defaults=True):
    indexes: list[IndexInfo]
    page_token: str | None = None


PARAMETERS = tuple(dict.fromkeys(p for taken in VECTOR_TYPES.values() for p in taken)) + TEXT

_create = msgspec.json.Decoder(CreateIndex)
_list = msgspec.json.Decoder(ListIndices)
_describe = msgspec.json.Decoder(DescribeIndex)
_branch = msgspec.json.Decoder(BranchBody)
_body = msgspec.json.Decoder(Body)


async def create(call: Call) -> EmptyReply:
    return await _create_index(call, scalar_only=False)


async def create_scalar(call: Call) -> EmptyReply:
    return await _create_index(call, scalar_only=True)


async def list_indices(call: Call) -> Indices:
    body = call.decode(_list)
    branch = check_branch(body.branch)
    table = await tables.get(call.catalog.database, call.id)
    scope = f"indexes:{table.id}:{branch}:{body.version}"
    page = request_page(scope, body.page_token, body.limit, call.max_page)
    found = await datasets.read(
        call.catalog,
        table,
        branch,
        body.version,
        lambda dataset: indexes.list_indexes(dataset, page.after or "", page.limit + 1),
    )
    cut = cut_page(page, found, [index.index_name for index in found])
    return Indices(cut.items, cut.token)


async def describe_stats(call: Call) -> IndexStats:
    body = call.decode(_describe)
    (name,) = call.names
    if body.index_name not in (None, name):
        raise InvalidRequest(
            f"index_name in the body is {body.index_name!r}, in the path {name!r}",
            detail="leave it out of the body, or make them agree",
        )
    table, branch = await tables.get(call.catalog.database, call.id), check_branch(body.branch)
    return await datasets.read(
        call.catalog,
        table,
        branch,
        body.version,
        lambda dataset: indexes.load_index_stats(dataset, name),
    )


async def drop(call: Call) -> EmptyReply:
    call.decode(_body)
    (name,) = call.names
    return await _change(
        call, call.text("branch"), lambda dataset: indexes.drop_index(dataset, name)
    )


async def get_table_stats(call: Call) -> TableStats:
    body = call.decode(_branch)
    table, branch = await tables.get(call.catalog.database, call.id), check_branch(body.branch)
    return await datasets.read(call.catalog, table, branch, None, load_stats)


async def _create_index(call: Call, *, scalar_only: bool) -> EmptyReply:
    body = call.decode(_create)
    kind = check_type(body.index_type, scalar_only=scalar_only)
    name = None if body.name is None else check_index_name(body.name)
    parameters = _read_parameters(kind, body)
    # lancedb leaves it out where it wants to replace, the protocol has no word for it.
    replace = call.is_from_lancedb if body.replace is None else body.replace
    return await _change(
        call,
        body.branch,
        lambda dataset: indexes.create_index(dataset, body.column, kind, name, parameters, replace),
    )


async def _change(call: Call, branch: str | None, work: Callable[[Any], int]) -> EmptyReply:
    """Make a new version of a branch."""
    catalog, branch = call.catalog, check_branch(branch)
    table = await tables.get(catalog.database, call.id)
    version = await datasets.change(catalog, table, branch, work, call.origin)
    return EmptyReply(await refs.find_transaction(catalog, table, branch, version))


def _read_parameters(kind: str, body: CreateIndex) -> dict[str, Any]:
    given = {p: value for p in PARAMETERS if (value := getattr(body, p)) is not None}
    if body.metric_type is not None and kind not in SCALAR_TYPES:
        given.setdefault("distance_type", body.metric_type)
    check_parameters(kind, given)
    return given
