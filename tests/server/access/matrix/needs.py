"""What each route needs, written down a second time, by hand.

A rule that is changed, or a route that is added, has to be changed here as well.
"""

ROLES = ("nobody", "functions", "reader", "writer", "owner")
ENOUGH = {
    "see": ("reader", "writer", "owner"),
    "reader": ("reader", "writer", "owner"),
    "writer": ("writer", "owner"),
    "owner": ("owner",),
}
SEEING = ENOUGH["see"]

# What an operation needs on what its path names, or on the namespace of what it would make.
LANCE = {
    "see": "ListNamespaces NamespaceExists ListTables ListMaterializedViews ListFunctions "
    "ListViews ListIcebergTables ListNames SearchNames",
    "reader": "DescribeNamespace DescribeTable TableExists ListTableVersions DescribeTableVersion "
    "GetTableStats QueryTable CountTableRows ExplainTableQueryPlan AnalyzeTableQueryPlan "
    "ListTableIndices DescribeTableIndexStats ListTableTags GetTableTagVersion ListTableBranches "
    "ExplainBackfill ListTableErrors DescribeMaterializedView ExplainRefresh FindTableDependents "
    "ListMaterializedViewDefinitions DescribeFunction DescribeView DescribeIcebergTable "
    "ReadTableCell DescribeTableUpkeep "
    "FindLineage FindFunctionLineage "
    "ListTableHistory CompareTableVersions ListRefreshes "
    # lancedb's own.
    "GetLsmWriteSpec GetLsmStats SetLsmWriteSpec UnsetLsmWriteSpec FlushLsm CompactLsm DiffBranch "
    "CherryPickBranch PrewarmTableIndex PrewarmTableData FetchBlobs ReadBlob",
    "writer": "RestoreTable CreateTableVersion BatchDeleteTableVersions InsertIntoTable "
    "MergeInsertIntoTable UpdateTable DeleteFromTable AlterTableBackfillColumns CreateTableIndex "
    "CreateTableScalarIndex DropTableIndex CreateTableTag DeleteTableTag UpdateTableTag "
    "CreateTableBranch DeleteTableBranch RefreshMaterializedView PreviewColumn "
    "BeginUpload CompleteUpload AbortUpload CompactTable",
    "owner": "CreateNamespace DropNamespace RegisterTable DropTable DeregisterTable RenameTable "
    "UpdateTableSchemaMetadata AlterTableAlterColumns UpdateFieldMetadata AlterTableDropColumns "
    "CreateTable CloneTable AlterTableAddColumns CreateMaterializedView DeclareTable "
    "AlterMaterializedView ExplainAlterMaterializedView ConsentMaterializedView "
    "CleanUpTable SetTableUpkeep EndTableUpkeep "
    "DropMaterializedView AlterFunction DropFunction CreateView AlterView DropView",
}
LANCE_NEEDS = {name: role for role, names in LANCE.items() for name in names.split()}
# Those whose bodies, or ids that are no names, say what they are about.
BY_BODY = {
    "BatchCreateTableVersions": "writer",
    "BatchCommitTables": "writer",
    "DescribeJob": "reader",
    "QueryJobEvents": "reader",
    "StreamJob": "reader",
    "ListJobLogs": "reader",
    "ListJobPhases": "reader",
    "CancelJob": "writer",
    "PauseJob": "writer",
    "ResumeJob": "writer",
    "CreateGrant": "owner",
    "RevokeGrant": "owner",
    "ListGrants": "owner",
}
# Roles on a namespace say nothing about these; each has a test of its own.
ELSEWHERE = {
    "ListAllTables",
    "ListJobs",
    "DescribeRights",
    "GetOverview",
    "DescribeTransaction",
    "AlterTransaction",
    "CreateFunction",
    "CreateManifest",
    "DescribeManifest",
    "DropManifest",
    "ListManifests",
    "LeaseJobs",
    "ReportJob",
    "FinishJob",
    "ReportJobErrors",
    "ListJobErrorRows",
    "SendJobResult",
    "RunSql",
    "ListAudit",
    "ListKeys",
    # Whoever asks, there are none.
    *("CreateSecret", "AlterSecret", "DescribeSecret", "DropSecret", "ListSecrets"),
}
ICEBERG_NEEDS = {
    "ListNamespaces": "see",
    "CreateNamespace": "owner",
    "LoadNamespace": "reader",
    "NamespaceExists": "see",
    "DropNamespace": "owner",
    "UpdateProperties": "owner",
    "ListViews": "see",
    "CreateView": "owner",
    "LoadView": "reader",
    "ViewExists": "reader",
    "ReplaceView": "owner",
    "DropView": "owner",
    "RenameView": "owner",
    "TranslateView": "reader",
    "TraceView": "reader",
    "RegisterView": "owner",
    "ListTables": "see",
    "CreateTable": "owner",
    "RegisterTable": "owner",
    "LoadTable": "reader",
    "TableExists": "reader",
    "LoadCredentials": "reader",
    "ReportMetrics": "reader",
    "CommitTable": "writer",
    "CommitTransaction": "writer",
    "DropTable": "owner",
    "UnregisterTable": "owner",
    "RenameTable": "owner",
}
# Commits that change what a table is; another test has each kind of them.
ICEBERG_MORE = (
    *("CommitTable schema", "CommitTable new"),
    *("CommitTransaction schema", "CommitTransaction new"),
)
# Open, or for everybody with a key.
ICEBERG_ELSEWHERE = {"GetConfig", "GetToken"}
