"""Operations beyond the Lance Namespace REST API: jobs, environments, views, runners.

lancedb's are `/v1/jobs/list|describe|cancel|pause|resume|query_events`, `/v1/table/{id}/errors`,
the operations of functions but for alter, those to describe, list and drop materialized views, to
create, describe, list and drop Iceberg views, and what `lancedb/` has; the rest is our own.
"""

from penstock.server.access.limits import QUERIES, UPLOADS
from penstock.server.lance import recover
from penstock.server.lance.handlers import (
    audit,
    backfills,
    dependents,
    environments,
    function_errors,
    grants,
    job_stream,
    jobs,
    materialized_views,
    previews,
    queries,
)
from penstock.server.lance.handlers.functions import functions
from penstock.server.lance.handlers.views import alterations as view_alterations
from penstock.server.lance.handlers.views import iceberg as iceberg_views
from penstock.server.lance.lancedb.operations import LANCEDB
from penstock.server.lance.operation import changes, reads, reports
from penstock.server.lance.rules import (
    ALTER_VIEW,
    BACKFILL,
    BRING_CODE,
    CANCEL_JOB,
    CONSENT,
    CREATE_FUNCTION,
    CREATE_ICEBERG_VIEW,
    GRANT,
    LIST_GRANTS,
    OWN_CATALOG,
    OWN_FUNCTION,
    OWN_TABLE,
    OWN_VIEW,
    READ_CATALOG,
    READ_FUNCTION,
    READ_JOB,
    READ_JOB_IN_PATH,
    READ_TABLE,
    READ_VIEW,
    RUN_JOBS,
    RUN_SQL,
    SEE_NAMESPACE,
    SIGNED_IN,
)
from penstock.server.runner_api import leases as runner
from penstock.server.runner_api import results as runner_results

EXTENSIONS = (
    reads(
        "ExplainBackfill",
        "table/{id}/explain_backfill",
        backfills.explain,
        READ_TABLE,
        work=QUERIES,
    ),
    reads(
        "FindTableDependents",
        "table/{id}/dependents",
        dependents.find,
        READ_TABLE,
        work=QUERIES,
    ),
    reads("PreviewColumn", "table/{id}/preview_column", previews.preview, BACKFILL, work=QUERIES),
    reads("RunSql", "sql", queries.run_sql, RUN_SQL, work=QUERIES),
    reads("ListTableErrors", "table/{id}/errors", function_errors.list_errors, READ_TABLE),
    reads(
        "DescribeMaterializedView",
        "materialized_view/{id}/describe",
        materialized_views.describe,
        READ_TABLE,
    ),
    reads(
        "ExplainRefresh",
        "materialized_view/{id}/explain",
        materialized_views.explain,
        READ_TABLE,
        work=QUERIES,
    ),
    changes(
        "AlterMaterializedView",
        "materialized_view/{id}/alter",
        view_alterations.alter,
        OWN_TABLE,
        recover=recover.altered_view,
    ),
    reads(
        "ExplainAlterMaterializedView",
        "materialized_view/{id}/explain_alter",
        view_alterations.explain,
        OWN_TABLE,
        work=QUERIES,
    ),
    reads(
        "ListMaterializedViewDefinitions",
        "materialized_view/{id}/history",
        view_alterations.history,
        READ_TABLE,
    ),
    changes(
        "ConsentMaterializedView",
        "materialized_view/{id}/consent",
        materialized_views.consent,
        CONSENT,
        recover=recover.consent,
    ),
    changes(
        "DropMaterializedView", "materialized_view/{id}/drop", materialized_views.drop, OWN_TABLE
    ),
    reads(
        "ListMaterializedViews",
        "namespace/{id}/materialized_view/list",
        materialized_views.list_views,
        SEE_NAMESPACE,
        method="GET",
        also="POST",
    ),
    changes(
        "CreateFunction",
        "function/{id}/create",
        functions.create,
        CREATE_FUNCTION,
        recover=functions.recover_created,
    ),
    reads("DescribeFunction", "function/{id}/describe", functions.describe, READ_FUNCTION),
    changes(
        "AlterFunction",
        "function/{id}/alter",
        functions.alter,
        OWN_FUNCTION,
        recover=functions.recover_altered,
    ),
    changes(
        "DropFunction",
        "function/{id}/drop",
        functions.drop,
        OWN_FUNCTION,
        recover=functions.recover_dropped,
    ),
    reads(
        "ListFunctions",
        "namespace/{id}/function/list",
        functions.list_functions,
        SEE_NAMESPACE,
        method="GET",
        also="POST",
    ),
    changes(
        "CreateView",
        "view/{id}/create",
        iceberg_views.create,
        CREATE_ICEBERG_VIEW,
        recover=recover.iceberg_view,
    ),
    reads("DescribeView", "view/{id}/describe", iceberg_views.describe, READ_VIEW),
    changes(
        "AlterView",
        "view/{id}/alter",
        iceberg_views.alter,
        ALTER_VIEW,
        recover=recover.iceberg_view,
    ),
    changes("DropView", "view/{id}/drop", iceberg_views.drop, OWN_VIEW),
    reads(
        "ListViews",
        "namespace/{id}/view/list",
        iceberg_views.list_names,
        SEE_NAMESPACE,
        method="GET",
        also="POST",
    ),
    reads("ListJobs", "jobs/list", jobs.list_jobs, SIGNED_IN),
    reads("DescribeJob", "jobs/describe", jobs.describe, READ_JOB),
    changes("CancelJob", "jobs/cancel", jobs.cancel, CANCEL_JOB, recover=recover.canceled_job),
    changes("PauseJob", "jobs/pause", jobs.pause, CANCEL_JOB, recover=recover.paused_job),
    changes("ResumeJob", "jobs/resume", jobs.resume, CANCEL_JOB, recover=recover.resumed_job),
    reads("QueryJobEvents", "jobs/query_events", jobs.query_events, READ_JOB),
    reads(
        "StreamJob",
        "jobs/{id}/events",
        job_stream.stream,
        READ_JOB_IN_PATH,
        method="GET",
        also="POST",
    ),
    reads(
        "ListJobLogs", "jobs/{id}/logs", jobs.list_log, READ_JOB_IN_PATH, method="GET", also="POST"
    ),
    changes(
        "CreateManifest",
        "manifest/{id}/create",
        environments.create,
        BRING_CODE,
        recover=recover.created_manifest,
    ),
    reads("DescribeManifest", "manifest/{id}/describe", environments.describe, READ_CATALOG),
    changes(
        "DropManifest",
        "manifest/{id}/drop",
        environments.drop,
        BRING_CODE,
        recover=recover.dropped_manifest,
    ),
    reads(
        "ListManifests",
        "manifest/list",
        environments.list_manifests,
        READ_CATALOG,
        method="GET",
        also="POST",
    ),
    reports("LeaseJobs", "runner/lease", runner.lease, RUN_JOBS),
    reports("ReportJob", "runner/job/{id}/heartbeat", runner.heartbeat, RUN_JOBS),
    reports("FinishJob", "runner/job/{id}/finish", runner.finish, RUN_JOBS),
    reports("ReportJobErrors", "runner/job/{id}/errors", runner.report_errors, RUN_JOBS),
    reports(
        "SendJobResult",
        "runner/job/{id}/result",
        runner_results.receive,
        RUN_JOBS,
        work=UPLOADS,
    ),
    reads(
        "ListJobErrorRows",
        "runner/job/{id}/error_rows",
        runner.list_error_rows,
        RUN_JOBS,
        for_runners=True,
    ),
    changes("CreateGrant", "grants/create", grants.create, GRANT),
    changes("RevokeGrant", "grants/revoke", grants.revoke, GRANT),
    reads("ListAudit", "audit/list", audit.list_entries, OWN_CATALOG),
    reads("ListGrants", "grants/list", grants.list_grants, LIST_GRANTS),
    *LANCEDB,
)
