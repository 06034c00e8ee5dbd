"""What Penstock serves beyond the Lance Namespace REST API: jobs, environments, views, runners.

`/v1/jobs/list|describe|cancel|query_events`, `/v1/table/{id}/errors` and what describes, lists and
drops materialized views are lancedb's; the rest is our own.
"""

from penstock.server.lance import (
    audit,
    backfills,
    function_errors,
    grants,
    job_stream,
    jobs,
    manifests,
    materialized_views,
    previews,
    runner,
)
from penstock.server.lance.operations import Operation
from penstock.server.lance.rules import (
    BACKFILL,
    BRING_CODE,
    CANCEL_JOB,
    CONSENT,
    GRANT,
    LIST_GRANTS,
    OWN_CATALOG,
    OWN_TABLE,
    READ_CATALOG,
    READ_JOB,
    READ_JOB_IN_PATH,
    READ_TABLE,
    RUN_JOBS,
    SEE_NAMESPACE,
    SIGNED_IN,
)

EXTENSIONS = (
    Operation(
        "ExplainBackfill",
        "POST",
        "table/{id}/explain_backfill",
        backfills.explain,
        needs=READ_TABLE,
    ),
    Operation(
        "PreviewColumn", "POST", "table/{id}/preview_column", previews.preview, needs=BACKFILL
    ),
    Operation(
        "ListTableErrors",
        "POST",
        "table/{id}/errors",
        function_errors.list_errors,
        needs=READ_TABLE,
    ),
    Operation(
        "DescribeMaterializedView",
        "POST",
        "materialized_view/{id}/describe",
        materialized_views.describe,
        needs=READ_TABLE,
    ),
    Operation(
        "ExplainRefresh",
        "POST",
        "materialized_view/{id}/explain",
        materialized_views.explain,
        needs=READ_TABLE,
    ),
    Operation(
        "AlterMaterializedView",
        "POST",
        "materialized_view/{id}/alter",
        materialized_views.alter,
        needs=OWN_TABLE,
    ),
    Operation(
        "ConsentMaterializedView",
        "POST",
        "materialized_view/{id}/consent",
        materialized_views.consent,
        needs=CONSENT,
    ),
    Operation(
        "DropMaterializedView",
        "POST",
        "materialized_view/{id}/drop",
        materialized_views.drop,
        needs=OWN_TABLE,
    ),
    Operation(
        "ListMaterializedViews",
        "GET",
        "namespace/{id}/materialized_view/list",
        materialized_views.list_views,
        also="POST",
        needs=SEE_NAMESPACE,
    ),
    Operation("ListJobs", "POST", "jobs/list", jobs.list_jobs, needs=SIGNED_IN),
    Operation("DescribeJob", "POST", "jobs/describe", jobs.describe, needs=READ_JOB),
    Operation("CancelJob", "POST", "jobs/cancel", jobs.cancel, needs=CANCEL_JOB),
    Operation("QueryJobEvents", "POST", "jobs/query_events", jobs.query_events, needs=READ_JOB),
    Operation(
        "StreamJob",
        "GET",
        "jobs/{id}/events",
        job_stream.stream,
        also="POST",
        needs=READ_JOB_IN_PATH,
    ),
    Operation(
        "ListJobLogs", "GET", "jobs/{id}/logs", jobs.list_log, also="POST", needs=READ_JOB_IN_PATH
    ),
    Operation("CreateManifest", "POST", "manifest/{id}/create", manifests.create, needs=BRING_CODE),
    Operation(
        "DescribeManifest", "POST", "manifest/{id}/describe", manifests.describe, needs=READ_CATALOG
    ),
    Operation("DropManifest", "POST", "manifest/{id}/drop", manifests.drop, needs=BRING_CODE),
    Operation(
        "ListManifests",
        "GET",
        "manifest/list",
        manifests.list_manifests,
        also="POST",
        needs=READ_CATALOG,
    ),
    Operation("LeaseJobs", "POST", "runner/lease", runner.lease, needs=RUN_JOBS),
    Operation("ReportJob", "POST", "runner/job/{id}/heartbeat", runner.heartbeat, needs=RUN_JOBS),
    Operation("FinishJob", "POST", "runner/job/{id}/finish", runner.finish, needs=RUN_JOBS),
    Operation(
        "ReportJobErrors", "POST", "runner/job/{id}/errors", runner.report_errors, needs=RUN_JOBS
    ),
    Operation(
        "ListJobErrorRows",
        "POST",
        "runner/job/{id}/error_rows",
        runner.list_error_rows,
        needs=RUN_JOBS,
    ),
    Operation("CreateGrant", "POST", "grants/create", grants.create, needs=GRANT),
    Operation("RevokeGrant", "POST", "grants/revoke", grants.revoke, needs=GRANT),
    Operation("ListAudit", "POST", "audit/list", audit.list_entries, needs=OWN_CATALOG),
    Operation("ListGrants", "POST", "grants/list", grants.list_grants, needs=LIST_GRANTS),
)
