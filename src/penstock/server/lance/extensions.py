"""What Penstock serves beyond the Lance Namespace REST API: jobs, environments, views, runners.

`/v1/jobs/list|describe|cancel|query_events`, `/v1/table/{id}/errors` and what describes, lists and
drops materialized views are lancedb's; the rest is our own.
"""

from penstock.server.lance import (
    backfills,
    function_errors,
    job_stream,
    jobs,
    manifests,
    materialized_views,
    previews,
    runner,
)
from penstock.server.lance.operations import Operation

EXTENSIONS = (
    Operation("ExplainBackfill", "POST", "table/{id}/explain_backfill", backfills.explain),
    Operation("PreviewColumn", "POST", "table/{id}/preview_column", previews.preview),
    Operation("ListTableErrors", "POST", "table/{id}/errors", function_errors.list_errors),
    Operation(
        "DescribeMaterializedView",
        "POST",
        "materialized_view/{id}/describe",
        materialized_views.describe,
    ),
    Operation(
        "ExplainRefresh", "POST", "materialized_view/{id}/explain", materialized_views.explain
    ),
    Operation(
        "AlterMaterializedView", "POST", "materialized_view/{id}/alter", materialized_views.alter
    ),
    Operation(
        "DropMaterializedView", "POST", "materialized_view/{id}/drop", materialized_views.drop
    ),
    Operation(
        "ListMaterializedViews",
        "GET",
        "namespace/{id}/materialized_view/list",
        materialized_views.list_views,
        also="POST",
    ),
    Operation("ListJobs", "POST", "jobs/list", jobs.list_jobs),
    Operation("DescribeJob", "POST", "jobs/describe", jobs.describe),
    Operation("CancelJob", "POST", "jobs/cancel", jobs.cancel),
    Operation("QueryJobEvents", "POST", "jobs/query_events", jobs.query_events),
    Operation("StreamJob", "GET", "jobs/{id}/events", job_stream.stream, also="POST"),
    Operation("ListJobLogs", "GET", "jobs/{id}/logs", jobs.list_log, also="POST"),
    Operation("CreateManifest", "POST", "manifest/{id}/create", manifests.create),
    Operation("DescribeManifest", "POST", "manifest/{id}/describe", manifests.describe),
    Operation("DropManifest", "POST", "manifest/{id}/drop", manifests.drop),
    Operation("ListManifests", "GET", "manifest/list", manifests.list_manifests, also="POST"),
    Operation("LeaseJobs", "POST", "runner/lease", runner.lease),
    Operation("ReportJob", "POST", "runner/job/{id}/heartbeat", runner.heartbeat),
    Operation("FinishJob", "POST", "runner/job/{id}/finish", runner.finish),
    Operation("ReportJobErrors", "POST", "runner/job/{id}/errors", runner.report_errors),
    Operation("ListJobErrorRows", "POST", "runner/job/{id}/error_rows", runner.list_error_rows),
)
