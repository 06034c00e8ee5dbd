"""`penstock jobs`: what jobs there are, what they do, and how they ended."""

import sys
import time

import click

from penstock.cli.jobs.following import (
    ENDED_OTHERWISE,
    ROWS_FAILED,
    echo_job,
    show_job,
    tell_failed_rows,
)
from penstock.cli.lake import lake_option
from penstock.cli.output import (
    as_json_option,
    confirm,
    dry_run_option,
    echo_json,
    echo_table,
    show_state,
    yes_option,
)
from penstock.model.jobs import SUCCEEDED
from penstock.sdk.jobs.facts import show_clock
from penstock.sdk.jobs.job import Job
from penstock.sdk.jobs.progress import render
from penstock.sdk.lake import Lake
from penstock.sdk.show import show_time

LOOK_SECONDS = 0.5
# So much of an id is listed; it is enough to name a job.
SHORT = 8


@click.group()
def command() -> None:
    """List, show, watch, pause, resume and cancel jobs; read their logs and errors."""


@command.command(name="list")
@click.option(
    "--status", metavar="STATUS", help="queued, running, paused, succeeded, failed or canceled."
)
@click.option("--kind", metavar="KIND", help="Only those of a kind: backfill, refresh.")
@click.option("--table", metavar="NAME", help="Only those of a table or view.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@lake_option
@as_json_option
def list_jobs(
    lake: Lake,
    *,
    status: str | None,
    kind: str | None,
    table: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List jobs, the newest first.

    \b
    Examples:
      penstock jobs list --status failed
      penstock jobs list --json | jq -r '.[].job_id'
    """
    found = lake.jobs(status=status, kind=kind, table=table, limit=limit)
    if as_json:
        echo_json([show_job(job) for job in found])
        return
    rows = [
        (
            job.id[:SHORT],
            job.kind,
            job.target,
            show_state(job.status),
            job.summary,
            show_time(job.created_at),
            "" if job.seconds is None else show_clock(job.seconds),
        )
        for job in found
    ]
    echo_table([("job", "kind", "target", "status", "did", "requested", "took"), *rows])


@command.command()
@click.argument("id")
@lake_option
@as_json_option
def show(lake: Lake, *, id: str, as_json: bool) -> None:
    """Show the job ID: its status, what it did, when, and why it failed.

    The beginning of an id will do, wherever a job is named.

    \b
    Examples:
      penstock jobs show 3f2c
    """
    job = lake.job(id)
    if as_json:
        echo_json({**show_job(job), "result": job.describe().get("result")})
    else:
        echo_job(job)


@command.command()
@click.argument("id", required=False)
@lake_option
@click.pass_context
def watch(context: click.Context, lake: Lake, *, id: str | None) -> None:
    """Follow the job ID, or all that have not ended, until they have; live on a terminal.

    The exit code is 1 when one of them fails or is canceled, else 3 when a function failed on rows.

    \b
    Examples:
      penstock jobs watch
    """
    watched = [lake.job(id)] if id else _unfinished(lake)
    if not watched:
        click.echo("no job is queued or running", err=True)
        return
    _follow(watched)
    incomplete = [job for job in watched if job.rows_failed]
    for job in incomplete:
        tell_failed_rows(job)
    if any(job.status != SUCCEEDED for job in watched):
        context.exit(ENDED_OTHERWISE)
    if incomplete:
        context.exit(ROWS_FAILED)


@command.command()
@click.argument("id")
@dry_run_option
@yes_option
@lake_option
@as_json_option
def cancel(lake: Lake, *, id: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Cancel the job ID; one that runs ends when its runner hears of it.

    \b
    Examples:
      penstock jobs cancel 3f2c -y
    """
    job = lake.job(id)
    if not dry_run:
        confirm(f"Cancel the {job.kind} of {job.target}?", yes)
        job.cancel()
    _tell_change(job, "would cancel" if dry_run else "asked for the end of", dry_run, as_json)


@command.command()
@click.argument("id")
@dry_run_option
@lake_option
@as_json_option
def pause(lake: Lake, *, id: str, dry_run: bool, as_json: bool) -> None:
    """Pause the job ID; one that runs pauses when its batches have ended.

    \b
    Examples:
      penstock jobs pause 3f2c
    """
    job = lake.job(id)
    if not dry_run:
        job.pause()
    _tell_change(job, "would pause" if dry_run else "asked for a pause of", dry_run, as_json)


@command.command()
@click.argument("id")
@dry_run_option
@lake_option
@as_json_option
def resume(lake: Lake, *, id: str, dry_run: bool, as_json: bool) -> None:
    """Resume the job ID, which goes on from what it had finished.

    \b
    Examples:
      penstock jobs resume 3f2c
    """
    job = lake.job(id)
    if not dry_run:
        job.resume()
    _tell_change(job, "would resume" if dry_run else "resumed", dry_run, as_json)


@command.command()
@click.argument("id")
@lake_option
@as_json_option
def logs(lake: Lake, *, id: str, as_json: bool) -> None:
    """Print the log of the job ID, with what its function printed.

    \b
    Examples:
      penstock jobs logs 3f2c
    """
    lines = lake.job(id).logs()
    if as_json:
        echo_json(lines)
    else:
        for line in lines:
            click.echo(line)


@command.command()
@click.argument("id")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@lake_option
@as_json_option
def errors(lake: Lake, *, id: str, limit: int, as_json: bool) -> None:
    """Print the rows that the function failed on in the job ID.

    \b
    Examples:
      penstock jobs errors 3f2c --json
    """
    job = lake.job(id)
    found = job.errors(limit=limit)
    if as_json:
        echo_json(found)
        return
    for error in found:
        where = click.style(f"row {error.row_id}, column {error.column}", bold=True)
        click.echo(f"{where}: {error.error_type}: {error.message}")
        click.echo(f"  given {error.inputs}")
        for line in error.traceback.splitlines():
            click.echo(f"  {line}")
    if not found:
        click.echo("no row failed", err=True)
    elif len(found) == limit and job.rows_failed > limit:
        click.echo(f"{limit} of {job.rows_failed:,} rows; --limit shows more", err=True)


def _tell_change(job: Job, verb: str, dry_run: bool, as_json: bool) -> None:
    """Say what was asked of a job, and how it is now."""
    if as_json:
        echo_json({"job_id": job.id, "status": job.status, "dry_run": dry_run})
    else:
        click.echo(f"{verb} job {job.id}, which is {job.status}")


def _unfinished(lake: Lake) -> list[Job]:
    found = lake.jobs(status="in_progress", limit=50)
    found.reverse()
    return found


def _follow(jobs: list[Job]) -> None:
    """Print the progress of jobs until all have ended."""
    started = time.monotonic()
    is_live = sys.stdout.isatty()
    before: list[str] = []
    while True:
        ended = [job.done() for job in jobs]
        seconds = time.monotonic() - started
        lines = [render(job, seconds) for job in jobs]
        if is_live:
            if before:
                # Move up to the first of the lines, to overwrite them.
                click.echo(f"\x1b[{len(before)}A", nl=False)
            for line in lines:
                click.echo(f"\x1b[2K{line}")
        else:
            # Compared without the clock, so that only real changes print a new line.
            for line in lines:
                if line.rpartition("  ")[0] not in before:
                    click.echo(line)
        before = lines if is_live else [line.rpartition("  ")[0] for line in lines]
        if all(ended):
            return
        time.sleep(LOOK_SECONDS)
