"""All operations of the Lance Namespace REST API, with their handlers.

docs/reference/operations.md is generated from this.
"""

from penstock.server.access.limits import QUERIES, UPLOADS
from penstock.server.lance import recover
from penstock.server.lance.handlers import (
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
from penstock.server.lance.operation import changes, reads
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
    SEE_NAMESPACE,
    SIGNED_IN,
    WRITE_ENTRIES,
    WRITE_TABLE,
)

OPERATIONS = (
    changes("CreateNamespace", "namespace/{id}/create", namespaces.create, CREATE_NAMESPACE),
    reads(
        "ListNamespaces",
        "namespace/{id}/list",
        namespaces.list_children,
        SEE_NAMESPACE,
        method="GET",
    ),
    reads("DescribeNamespace", "namespace/{id}/describe", namespaces.describe, READ_NAMESPACE),
    changes(
        "DropNamespace",
        "namespace/{id}/drop",
        namespaces.drop,
        OWN_NAMESPACE,
        recover=recover.dropped_namespace,
    ),
    reads("NamespaceExists", "namespace/{id}/exists", namespaces.exists, SEE_NAMESPACE),
    reads(
        "ListTables", "namespace/{id}/table/list", tables.list_names, SEE_NAMESPACE, method="GET"
    ),
    reads("ListAllTables", "table", tables.list_all, SIGNED_IN, method="GET"),
    changes(
        "RegisterTable", "table/{id}/register", tables.register, CREATE, recover=recover.made_table
    ),
    reads("DescribeTable", "table/{id}/describe", tables.describe, READ_TABLE, for_runners=True),
    reads("TableExists", "table/{id}/exists", tables.exists, READ_TABLE, for_runners=True),
    changes("DropTable", "table/{id}/drop", tables.drop, OWN_TABLE, is_for_ledger=True),
    changes("DeregisterTable", "table/{id}/deregister", tables.deregister, OWN_TABLE),
    changes("RestoreTable", "table/{id}/restore", refs.restore, WRITE_TABLE),
    changes("RenameTable", "table/{id}/rename", tables.rename, RENAME),
    changes(
        "UpdateTableSchemaMetadata",
        "table/{id}/schema_metadata/update",
        columns.update_schema_metadata,
        OWN_TABLE,
        recover=recover.replaced_metadata,
    ),
    reads(
        "ListTableVersions",
        "table/{id}/version/list",
        versions.list_versions,
        READ_TABLE,
        for_runners=True,
    ),
    changes(
        "CreateTableVersion",
        "table/{id}/version/create",
        versions.create,
        WRITE_TABLE,
        for_runners=True,
        recover=recover.created_version,
    ),
    reads(
        "DescribeTableVersion",
        "table/{id}/version/describe",
        versions.describe,
        READ_TABLE,
        for_runners=True,
    ),
    changes("BatchDeleteTableVersions", "table/{id}/version/delete", versions.delete, WRITE_TABLE),
    changes(
        "BatchCreateTableVersions",
        "table/version/batch-create",
        versions.batch_create,
        WRITE_ENTRIES,
        for_runners=True,
        recover=recover.created_versions,
    ),
    changes(
        "BatchCommitTables",
        "table/batch-commit",
        versions.batch_commit,
        CHANGE_EACH,
        recover=recover.commit,
    ),
    changes("AlterTableAlterColumns", "table/{id}/alter_columns", columns.alter, CHANGE_COLUMNS),
    changes(
        "UpdateFieldMetadata", "table/{id}/update_field_metadata", columns.update_fields, OWN_TABLE
    ),
    changes("AlterTableDropColumns", "table/{id}/drop_columns", columns.drop, OWN_TABLE),
    reads("GetTableStats", "table/{id}/stats", indexes.get_table_stats, READ_TABLE),
    changes("InsertIntoTable", "table/{id}/insert", rows.insert, WRITE_TABLE, work=UPLOADS),
    changes(
        "MergeInsertIntoTable", "table/{id}/merge_insert", rows.merge, WRITE_TABLE, work=UPLOADS
    ),
    changes(
        "UpdateTable",
        "table/{id}/update",
        rows.update_rows,
        WRITE_TABLE,
        recover=recover.updated_rows,
    ),
    changes("DeleteFromTable", "table/{id}/delete", rows.delete_rows, WRITE_TABLE),
    reads("QueryTable", "table/{id}/query", queries.query_table, READ_TABLE, work=QUERIES),
    reads("CountTableRows", "table/{id}/count_rows", queries.count_rows, READ_TABLE, work=QUERIES),
    changes(
        "CreateTable",
        "table/{id}/create",
        rows.create,
        CREATE,
        work=UPLOADS,
        recover=recover.made_table,
    ),
    reads(
        "ExplainTableQueryPlan",
        "table/{id}/explain_plan",
        queries.explain_plan,
        READ_TABLE,
        work=QUERIES,
    ),
    reads(
        "AnalyzeTableQueryPlan",
        "table/{id}/analyze_plan",
        queries.analyze_plan,
        READ_TABLE,
        work=QUERIES,
    ),
    changes("AlterTableAddColumns", "table/{id}/add_columns", columns.add, CHANGE_COLUMNS),
    changes(
        "AlterTableBackfillColumns",
        "table/{id}/backfill_column",
        backfills.request,
        BACKFILL,
        recover=recover.queued_job,
    ),
    changes(
        "RefreshMaterializedView",
        "materialized_view/{id}/refresh",
        materialized_views.refresh,
        REFRESH,
        recover=recover.queued_job,
    ),
    changes(
        "CreateMaterializedView",
        "materialized_view/{id}/create",
        materialized_views.create,
        CREATE_VIEW,
        recover=recover.created_view,
    ),
    changes(
        "CreateTableIndex",
        "table/{id}/create_index",
        indexes.create,
        WRITE_TABLE,
        is_for_ledger=True,
    ),
    changes(
        "CreateTableScalarIndex",
        "table/{id}/create_scalar_index",
        indexes.create_scalar,
        WRITE_TABLE,
        is_for_ledger=True,
    ),
    reads("ListTableIndices", "table/{id}/index/list", indexes.list_indices, READ_TABLE),
    reads(
        "DescribeTableIndexStats",
        "table/{id}/index/{index_name}/stats",
        indexes.describe_stats,
        READ_TABLE,
    ),
    changes(
        "DropTableIndex",
        "table/{id}/index/{index_name}/drop",
        indexes.drop,
        WRITE_TABLE,
        is_for_ledger=True,
    ),
    reads("ListTableTags", "table/{id}/tags/list", refs.list_tags, READ_TABLE),
    reads("GetTableTagVersion", "table/{id}/tags/version", refs.get_tag, READ_TABLE),
    changes(
        "DeclareTable", "table/{id}/declare", tables.declare, CREATE, recover=recover.made_table
    ),
    changes(
        "CreateTableTag",
        "table/{id}/tags/create",
        refs.create_tag,
        WRITE_TABLE,
        is_for_ledger=True,
        recover=recover.tag_change(refs.create_tag),
    ),
    changes(
        "DeleteTableTag",
        "table/{id}/tags/delete",
        refs.delete_tag,
        WRITE_TABLE,
        is_for_ledger=True,
        recover=recover.tag_change(refs.delete_tag),
    ),
    changes(
        "UpdateTableTag",
        "table/{id}/tags/update",
        refs.update_tag,
        WRITE_TABLE,
        is_for_ledger=True,
        recover=recover.tag_change(refs.update_tag),
    ),
    reads("ListTableBranches", "table/{id}/branches/list", refs.list_branches, READ_TABLE),
    changes("CreateTableBranch", "table/{id}/branches/create", refs.create_branch, WRITE_TABLE),
    changes("DeleteTableBranch", "table/{id}/branches/delete", refs.delete_branch, WRITE_TABLE),
    reads(
        "DescribeTransaction", "transaction/{id}/describe", transactions.describe, READ_TRANSACTION
    ),
    changes(
        "AlterTransaction",
        "transaction/{id}/alter",
        transactions.alter,
        CHANGE_TRANSACTION,
        recover=recover.altered_transaction,
    ),
)
