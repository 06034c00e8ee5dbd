"""All operations of the Lance Namespace REST API: their routes, and who serves them.

An operation without a handler answers 406 / 0. The page docs/operations.md is made from this.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

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

READING = ("List", "Describe", "Get", "Query", "Count", "Explain", "Analyze", "Stream", "Preview")
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
    handler: Handler | None = None
    # The body is an Arrow stream, which the handler reads while it arrives.
    streams: bool = False
    # Another method that does as well.
    also: str = ""

    @property
    def is_change(self) -> bool:
        """Whether it changes something for which it may carry a key; the names tell."""
        return not (self.name.startswith(READING + REPORTING) or self.name.endswith("Exists"))


OPERATIONS = (
    Operation("CreateNamespace", "POST", "namespace/{id}/create", namespaces.create),
    Operation("ListNamespaces", "GET", "namespace/{id}/list", namespaces.list_children),
    Operation("DescribeNamespace", "POST", "namespace/{id}/describe", namespaces.describe),
    Operation("DropNamespace", "POST", "namespace/{id}/drop", namespaces.drop),
    Operation("NamespaceExists", "POST", "namespace/{id}/exists", namespaces.exists),
    Operation("ListTables", "GET", "namespace/{id}/table/list", tables.list_names),
    Operation("ListAllTables", "GET", "table", tables.list_all),
    Operation("RegisterTable", "POST", "table/{id}/register", tables.register),
    Operation("DescribeTable", "POST", "table/{id}/describe", tables.describe),
    Operation("TableExists", "POST", "table/{id}/exists", tables.exists),
    Operation("DropTable", "POST", "table/{id}/drop", tables.drop),
    Operation("DeregisterTable", "POST", "table/{id}/deregister", tables.deregister),
    Operation("RestoreTable", "POST", "table/{id}/restore", refs.restore),
    Operation("RenameTable", "POST", "table/{id}/rename", tables.rename),
    Operation(
        "UpdateTableSchemaMetadata",
        "POST",
        "table/{id}/schema_metadata/update",
        columns.update_schema_metadata,
    ),
    Operation("ListTableVersions", "POST", "table/{id}/version/list", versions.list_versions),
    Operation("CreateTableVersion", "POST", "table/{id}/version/create", versions.create),
    Operation("DescribeTableVersion", "POST", "table/{id}/version/describe", versions.describe),
    Operation("BatchDeleteTableVersions", "POST", "table/{id}/version/delete", versions.delete),
    Operation(
        "BatchCreateTableVersions", "POST", "table/version/batch-create", versions.batch_create
    ),
    Operation("BatchCommitTables", "POST", "table/batch-commit", versions.batch_commit),
    Operation("AlterTableAlterColumns", "POST", "table/{id}/alter_columns", columns.alter),
    Operation(
        "UpdateFieldMetadata", "POST", "table/{id}/update_field_metadata", columns.update_fields
    ),
    Operation("AlterTableDropColumns", "POST", "table/{id}/drop_columns", columns.drop),
    Operation("GetTableStats", "POST", "table/{id}/stats", indexes.get_table_stats),
    Operation("InsertIntoTable", "POST", "table/{id}/insert", rows.insert, streams=True),
    Operation("MergeInsertIntoTable", "POST", "table/{id}/merge_insert", rows.merge, streams=True),
    Operation("UpdateTable", "POST", "table/{id}/update", rows.update_rows),
    Operation("DeleteFromTable", "POST", "table/{id}/delete", rows.delete_rows),
    Operation("QueryTable", "POST", "table/{id}/query", queries.query_table),
    Operation("CountTableRows", "POST", "table/{id}/count_rows", queries.count_rows),
    Operation("CreateTable", "POST", "table/{id}/create", rows.create, streams=True),
    Operation("ExplainTableQueryPlan", "POST", "table/{id}/explain_plan", queries.explain_plan),
    Operation("AnalyzeTableQueryPlan", "POST", "table/{id}/analyze_plan", queries.analyze_plan),
    Operation("AlterTableAddColumns", "POST", "table/{id}/add_columns", columns.add),
    Operation("AlterTableBackfillColumns", "POST", "table/{id}/backfill_column", backfills.request),
    Operation(
        "RefreshMaterializedView",
        "POST",
        "materialized_view/{id}/refresh",
        materialized_views.refresh,
    ),
    Operation(
        "CreateMaterializedView", "POST", "materialized_view/{id}/create", materialized_views.create
    ),
    Operation("CreateTableIndex", "POST", "table/{id}/create_index", indexes.create),
    Operation(
        "CreateTableScalarIndex", "POST", "table/{id}/create_scalar_index", indexes.create_scalar
    ),
    Operation("ListTableIndices", "POST", "table/{id}/index/list", indexes.list_indices),
    Operation(
        "DescribeTableIndexStats",
        "POST",
        "table/{id}/index/{index_name}/stats",
        indexes.describe_stats,
    ),
    Operation("DropTableIndex", "POST", "table/{id}/index/{index_name}/drop", indexes.drop),
    Operation("ListTableTags", "POST", "table/{id}/tags/list", refs.list_tags),
    Operation("GetTableTagVersion", "POST", "table/{id}/tags/version", refs.get_tag),
    Operation("DeclareTable", "POST", "table/{id}/declare", tables.declare),
    Operation("CreateTableTag", "POST", "table/{id}/tags/create", refs.create_tag),
    Operation("DeleteTableTag", "POST", "table/{id}/tags/delete", refs.delete_tag),
    Operation("UpdateTableTag", "POST", "table/{id}/tags/update", refs.update_tag),
    Operation("ListTableBranches", "POST", "table/{id}/branches/list", refs.list_branches),
    Operation("CreateTableBranch", "POST", "table/{id}/branches/create", refs.create_branch),
    Operation("DeleteTableBranch", "POST", "table/{id}/branches/delete", refs.delete_branch),
    Operation("DescribeTransaction", "POST", "transaction/{id}/describe", transactions.describe),
    Operation("AlterTransaction", "POST", "transaction/{id}/alter", transactions.alter),
)
