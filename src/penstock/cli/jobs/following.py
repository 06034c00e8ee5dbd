"""Wait for a job and print how it ended, for commands that start one."""

from typing import Any

import click

from penstock.cli.output import echo_json, echo_pairs, show_state
from penstock.errors import JobCanceled, JobFailed
from penstock.sdk.jobs.job import Job, list_facts

no_wait_option = click.option("--no-wait", is_flag=True, help="Start the job and return at once.")
# The exit codes of commands that wait for jobs.
ENDED_OTHERWISE, ROWS_FAILED = 1, 3


def follow(context: click.Context, job: Job, *, no_wait: bool, as_json: bool) -> None:
    """Wait for a job with a progress bar, then print its result; exit as it ended."""
    if no_wait:
        if as_json:
            echo_json({"job_id": job.id})
        else:
            click.echo(f"job {job.id} is queued; `penstock jobs watch {job.id}` follows it")
        return
    code = 0
    try:
        job.wait(progress=False if as_json else None)
    except (JobFailed, JobCanceled) as error:
        code = ENDED_OTHERWISE
        if not as_json:
            click.echo(f"penstock: {error.message}", err=True)
    if as_json:
        echo_json({**show_job(job), "result": job.describe().get("result")})
    else:
        echo_job(job)
    if job.rows_failed and not code:
        code = ROWS_FAILED
        if not as_json:
            tell_failed_rows(job)
    if code:
        context.exit(code)


def tell_failed_rows(job: Job) -> None:
    """Say that a job went well but for some rows, and where they are."""
    click.echo(
        f"penstock: the function failed on {job.rows_failed:,} "
        f"row{'' if job.rows_failed == 1 else 's'}; `penstock jobs errors {job.id}` tells why",
        err=True,
    )


def show_job(job: Job) -> dict[str, Any]:
    """A job as JSON."""
    return {"job_id": job.id, "status": job.status, **job.properties}


def echo_job(job: Job) -> None:
    """Print a job for people."""
    echo_pairs([("job", job.id), ("status", show_state(job.status)), *list_facts(job)])
