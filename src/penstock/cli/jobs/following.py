"""Wait for a job and print how it ended, for commands that start one."""

from typing import Any

import click

from penstock.cli.output import echo_json, echo_pairs, show_state
from penstock.errors import JobCanceled, JobFailed
from penstock.sdk.jobs.job import Job
from penstock.sdk.show import show_states

no_wait_option = click.option("--no-wait", is_flag=True, help="Start the job and return at once.")
SHOWN = (
    *(
        "kind",
        "target",
        "mode",
        "reason",
        "rows_total",
        "rows_done",
        "rows_failed",
        "rows_left",
        "rows_by_state",
        "rows_inserted",
    ),
    *(
        "rows_updated",
        "rows_deleted",
        "function_calls",
        "version",
        "attempt",
        "runner",
        "error",
        "waiting",
    ),
)


def follow(context: click.Context, job: Job, *, no_wait: bool, as_json: bool) -> None:
    """Wait for a job with a progress bar, then print its result; exit 1 unless it succeeded."""
    if no_wait:
        if as_json:
            echo_json({"job_id": job.id})
        else:
            click.echo(f"job {job.id} is queued; `penstock jobs watch {job.id}` follows it")
        return
    try:
        job.wait(progress=False if as_json else None)
    except (JobFailed, JobCanceled) as error:
        if not as_json:
            click.echo(f"penstock: {error.message}", err=True)
        _print(job, as_json)
        context.exit(1)
    _print(job, as_json)


def show_job(job: Job) -> dict[str, Any]:
    """A job as JSON."""
    told = job.describe()
    return {"job_id": job.id, "status": told["status"], **told["properties"]}


def _print(job: Job, as_json: bool) -> None:
    if as_json:
        echo_json({**show_job(job), "result": job.result})
    else:
        echo_job(job)


def echo_job(job: Job) -> None:
    """Print a job for people."""
    told = job.describe()
    known = told["properties"]
    pairs = [("job", job.id), ("status", show_state(told["status"]))]
    if states := job.rows_by_state:
        known["rows_by_state"] = show_states(states)
    echo_pairs(pairs + [(key, known[key]) for key in SHOWN if known.get(key)])
