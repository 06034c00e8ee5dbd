"""All operations of the Lance Namespace REST API: their routes, and who serves them.

The page docs/operations.md is made from this.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from penstock.server.http import Reply
from penstock.server.lance import (
    backfills,
    columns,
    indexes,
    materialized_views,
    namespaces,
    queries,
    refs,
    rows,
    tables,
    transactions,
    versions,
)
from penstock.server.lance.call import Call
from penstock.server.lance.rules import (
    BACKFILL,
    CHANGE_COLUMNS,
    CHANGE_EACH,
    CHANGE_TRANSACTION,
    CREATE,
    CREATE_NAMESPACE,
    CREATE_VIEW,
    OWN_NAMESPACE,
    OWN_TABLE,
    READ_NAMESPACE,
    READ_TABLE,
    READ_TRANSACTION,
    REFRESH,
    RENAME,
    RUN_JOBS,
    SEE_NAMESPACE,
    SIGNED_IN,
    WRITE_ENTRIES,
    WRITE_TABLE,
)
from penstock.server.limits import QUERIES, UPLOADS
from penstock.server.rules import Rule

READING = ("List", "Describe", "Get", "Query", "Count", "Explain", "Analyze", "Stream", "Preview")
QUERYING = (
    *("QueryTable", "CountTableRows", "ExplainTableQueryPlan", "AnalyzeTableQueryPlan"),
    *("ExplainBackfill", "ExplainRefresh", "PreviewColumn"),
)
# How a runner opens the tables of its jobs, and commits to them.
RUNNING = (
    *("DescribeTable", "ListTableVersions", "DescribeTableVersion", "CreateTableVersion"),
    *("TableExists", "BatchCreateTableVersions"),
)
# A runner's reports name the attempt they are about, which does what a key would do.
REPORTING = ("Lease", "Report", "Finish")

# What a handler returns is sent as JSON, nothing as an empty body, and a Reply as it is.
Handler = Callable[[Call], Awaitable[msgspec.Struct | Reply | None]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; `{id}` and `{index_name}` in the path stand for a segment."""

    name: str
    method: str
    path: str
    handler: Handler
    # The right that it needs; there is no default, so that none is forgotten.
    needs: Rule[Call] = field(kw_only=True)
    # The body is an Arrow stream, which the handler reads while it arrives.
    streams: bool = False
    # Another method that does as well.
    also: str = ""

    @property
    def work(self) -> str:
        """The kind of work that takes a while, of which a principal may have so much at once."""
        return UPLOADS if self.streams else QUERIES if self.name in QUERYING else ""

    @property
    def for_runners(self) -> bool:
        """Whether a runner's key is good for it at all."""
        return self.needs is RUN_JOBS or self.name in RUNNING

    @property
    def is_change(self) -> bool:
        """Whether it changes something for which it may carry a key; the names tell."""
        return not (self.name.startswith(READING + REPORTING) or self.name.endswith("Exists"))


OPERATIONS = (
    Operation(
        "CreateNamespace",
        "POST",
        "namespace/{id}/create",
        namespaces.create,
        needs=CREATE_NAMESPACE,
    ),
    Operation(
        "ListNamespaces",
        "GET",
        "namespace/{id}/list",
        namespaces.list_children,
        needs=SEE_NAMESPACE,
    ),
    Operation(
        "DescribeNamespace",
        "POST",
        "namespace/{id}/describe",
        namespaces.describe,
        needs=READ_NAMESPACE,
    ),
    Operation("DropNamespace", "POST", "namespace/{id}/drop", namespaces.drop, needs=OWN_NAMESPACE),
    Operation(
        "NamespaceExists", "POST", "namespace/{id}/exists", namespaces.exists, needs=SEE_NAMESPACE
    ),
    Operation(
        "ListTables", "GET", "namespace/{id}/table/list", tables.list_names, needs=SEE_NAMESPACE
    ),
    Operation("ListAllTables", "GET", "table", tables.list_all, needs=SIGNED_IN),
    Operation("RegisterTable", "POST", "table/{id}/register", tables.register, needs=CREATE),
    Operation("DescribeTable", "POST", "table/{id}/describe", tables.describe, needs=READ_TABLE),
    Operation("TableExists", "POST", "table/{id}/exists", tables.exists, needs=READ_TABLE),
    Operation("DropTable", "POST", "table/{id}/drop", tables.drop, needs=OWN_TABLE),
    Operation(
        "DeregisterTable", "POST", "table/{id}/deregister", tables.deregister, needs=OWN_TABLE
    ),
    Operation("RestoreTable", "POST", "table/{id}/restore", refs.restore, needs=WRITE_TABLE),
    Operation("RenameTable", "POST", "table/{id}/rename", tables.rename, needs=RENAME),
    Operation(
        "UpdateTableSchemaMetadata",
        "POST",
        "table/{id}/schema_metadata/update",
        columns.update_schema_metadata,
        needs=OWN_TABLE,
    ),
    Operation(
        "ListTableVersions",
        "POST",
        "table/{id}/version/list",
        versions.list_versions,
        needs=READ_TABLE,
    ),
    Operation(
        "CreateTableVersion",
        "POST",
        "table/{id}/version/create",
        versions.create,
        needs=WRITE_TABLE,
    ),
    Operation(
        "DescribeTableVersion",
        "POST",
        "table/{id}/version/describe",
        versions.describe,
        needs=READ_TABLE,
    ),
    Operation(
        "BatchDeleteTableVersions",
        "POST",
        "table/{id}/version/delete",
        versions.delete,
        needs=WRITE_TABLE,
    ),
    Operation(
        "BatchCreateTableVersions",
        "POST",
        "table/version/batch-create",
        versions.batch_create,
        needs=WRITE_ENTRIES,
    ),
    Operation(
        "BatchCommitTables", "POST", "table/batch-commit", versions.batch_commit, needs=CHANGE_EACH
    ),
    Operation(
        "AlterTableAlterColumns",
        "POST",
        "table/{id}/alter_columns",
        columns.alter,
        needs=CHANGE_COLUMNS,
    ),
    Operation(
        "UpdateFieldMetadata",
        "POST",
        "table/{id}/update_field_metadata",
        columns.update_fields,
        needs=OWN_TABLE,
    ),
    Operation(
        "AlterTableDropColumns", "POST", "table/{id}/drop_columns", columns.drop, needs=OWN_TABLE
    ),
    Operation(
        "GetTableStats", "POST", "table/{id}/stats", indexes.get_table_stats, needs=READ_TABLE
    ),
    Operation(
        "InsertIntoTable", "POST", "table/{id}/insert", rows.insert, streams=True, needs=WRITE_TABLE
    ),
    Operation(
        "MergeInsertIntoTable",
        "POST",
        "table/{id}/merge_insert",
        rows.merge,
        streams=True,
        needs=WRITE_TABLE,
    ),
    Operation("UpdateTable", "POST", "table/{id}/update", rows.update_rows, needs=WRITE_TABLE),
    Operation("DeleteFromTable", "POST", "table/{id}/delete", rows.delete_rows, needs=WRITE_TABLE),
    Operation("QueryTable", "POST", "table/{id}/query", queries.query_table, needs=READ_TABLE),
    Operation(
        "CountTableRows", "POST", "table/{id}/count_rows", queries.count_rows, needs=READ_TABLE
    ),
    Operation("CreateTable", "POST", "table/{id}/create", rows.create, streams=True, needs=CREATE),
    Operation(
        "ExplainTableQueryPlan",
        "POST",
        "table/{id}/explain_plan",
        queries.explain_plan,
        needs=READ_TABLE,
    ),
    Operation(
        "AnalyzeTableQueryPlan",
        "POST",
        "table/{id}/analyze_plan",
        queries.analyze_plan,
        needs=READ_TABLE,
    ),
    Operation(
        "AlterTableAddColumns", "POST", "table/{id}/add_columns", columns.add, needs=CHANGE_COLUMNS
    ),
    Operation(
        "AlterTableBackfillColumns",
        "POST",
        "table/{id}/backfill_column",
        backfills.request,
        needs=BACKFILL,
    ),
    Operation(
        "RefreshMaterializedView",
        "POST",
        "materialized_view/{id}/refresh",
        materialized_views.refresh,
        needs=REFRESH,
    ),
    Operation(
        "CreateMaterializedView",
        "POST",
        "materialized_view/{id}/create",
        materialized_views.create,
        needs=CREATE_VIEW,
    ),
    Operation(
        "CreateTableIndex", "POST", "table/{id}/create_index", indexes.create, needs=WRITE_TABLE
    ),
    Operation(
        "CreateTableScalarIndex",
        "POST",
        "table/{id}/create_scalar_index",
        indexes.create_scalar,
        needs=WRITE_TABLE,
    ),
    Operation(
        "ListTableIndices", "POST", "table/{id}/index/list", indexes.list_indices, needs=READ_TABLE
    ),
    Operation(
        "DescribeTableIndexStats",
        "POST",
        "table/{id}/index/{index_name}/stats",
        indexes.describe_stats,
        needs=READ_TABLE,
    ),
    Operation(
        "DropTableIndex",
        "POST",
        "table/{id}/index/{index_name}/drop",
        indexes.drop,
        needs=WRITE_TABLE,
    ),
    Operation("ListTableTags", "POST", "table/{id}/tags/list", refs.list_tags, needs=READ_TABLE),
    Operation(
        "GetTableTagVersion", "POST", "table/{id}/tags/version", refs.get_tag, needs=READ_TABLE
    ),
    Operation("DeclareTable", "POST", "table/{id}/declare", tables.declare, needs=CREATE),
    Operation(
        "CreateTableTag", "POST", "table/{id}/tags/create", refs.create_tag, needs=WRITE_TABLE
    ),
    Operation(
        "DeleteTableTag", "POST", "table/{id}/tags/delete", refs.delete_tag, needs=WRITE_TABLE
    ),
    Operation(
        "UpdateTableTag", "POST", "table/{id}/tags/update", refs.update_tag, needs=WRITE_TABLE
    ),
    Operation(
        "ListTableBranches",
        "POST",
        "table/{id}/branches/list",
        refs.list_branches,
        needs=READ_TABLE,
    ),
    Operation(
        "CreateTableBranch",
        "POST",
        "table/{id}/branches/create",
        refs.create_branch,
        needs=WRITE_TABLE,
    ),
    Operation(
        "DeleteTableBranch",
        "POST",
        "table/{id}/branches/delete",
        refs.delete_branch,
        needs=WRITE_TABLE,
    ),
    Operation(
        "DescribeTransaction",
        "POST",
        "transaction/{id}/describe",
        transactions.describe,
        needs=READ_TRANSACTION,
    ),
    Operation(
        "AlterTransaction",
        "POST",
        "transaction/{id}/alter",
        transactions.alter,
        needs=CHANGE_TRANSACTION,
    ),
)
