"""The demo's steps: what a user does, and what must come of it."""

import time
from pathlib import Path

import click

from penstock.cli.demo import processes
from penstock.cli.demo.corpus import read_corpus
from penstock.cli.demo.functions import DIMENSION, embed, embed_text, slow_length, split
from penstock.cli.demo.iceberg import show_iceberg
from penstock.cli.demo.step_printer import StepPrinter
from penstock.sdk.connection.connect import connect
from penstock.sdk.jobs.job import Job
from penstock.sdk.lake import Lake
from penstock.sdk.tables.table import Table
from penstock.sdk.views.view import View

DOCUMENTS, CHUNKS = "demo.documents", "demo.chunks"
QUESTION, ANSWER = "what keeps fish out of the turbine?", "Fish screen"
EDITED, DELETED = (1, 7, 13), 24
CALL_SECONDS = 0.15
# How many rows are done when the runner is killed, and how many may be in progress then.
KILLED_AT, IN_HAND = 8, 12


def tell(folder: Path, *, is_kept: bool) -> None:
    """Run all steps; exits with 1 when a figure was wrong."""
    printer = StepPrinter()
    with processes.server(folder) as url:
        printer.say("server", f"{url}, SQLite and files in {folder}, Spark warms up beside it")
        with connect(url) as lake:
            documents = load(lake, printer)
            chunks = chunk(lake, documents, printer)
            search(chunks, printer)
            change(documents, chunks, printer)
            aggregate(lake, printer)
            # So that it is warm soon after the first one is killed.
            with processes.second_runner(url, folder):
                show_iceberg(lake, printer)
                survive(chunks, folder, printer)
    printer.sum_up()
    if is_kept:
        click.echo(
            f"\nTry next: penstock serve --data {folder}, then http://127.0.0.1:2333/console in a "
            "browser, or penstock ls demo"
        )
    else:
        click.echo("\nTry next: penstock serve, then docs/tutorial/quickstart.md")
    if printer.wrong:
        raise SystemExit(1)


def load(lake: Lake, printer: StepPrinter) -> Table:
    rows = read_corpus()
    lake.create_namespace("demo")
    table = lake.create_table(DOCUMENTS, rows)
    printer.check("documents loaded", table.count(), len(rows))
    printer.say("load", f"{len(rows)} documents -> {DOCUMENTS}")
    return table


def chunk(lake: Lake, documents: Table, printer: StepPrinter) -> View:
    source = documents.select("id", "title", "text")
    view = lake.create_view(CHUNKS, source, chunker=split)
    job = view.refresh(progress=False)
    wanted = [each for row in documents.to_list() for each in split(row["text"])]
    printer.check("chunks", view.count(), len(wanted))
    printer.check("calls of the chunker", job.function_calls, documents.count())
    printer.say("chunker", f"{CHUNKS}: {view.count()} chunks, {job.function_calls} calls on Spark")
    view.add_column("vector", embed)
    filled = view.backfill("vector", progress=False)
    printer.check("vectors", view.count("vector IS NOT NULL"), len(wanted))
    printer.say("backfill", f"vector, {DIMENSION} floats: {filled.function_calls} calls on Spark")
    return view


def search(chunks: View, printer: StepPrinter) -> None:
    chunks.create_index("vector", "IVF_FLAT", num_partitions=1, distance_type="cosine")
    found = chunks.search(embed_text(QUESTION)).select("title", "chunk").limit(1).to_list()[0]
    printer.check("the answer", found["title"], ANSWER)
    printer.say("search", f"{QUESTION} -> {found['title']}: {found['chunk'][:60]}…")


def change(documents: Table, chunks: View, printer: StepPrinter) -> None:
    before = {(row["id"], row["chunk"]) for row in chunks.select("id", "chunk").to_list()}
    for number in EDITED:
        documents.update(
            values_sql={"text": "concat(text, ' This sentence is new.')"}, where=f"id = {number}"
        )
    documents.delete(f"id = {DELETED}")
    printer.say("change", f"edited {len(EDITED)} documents, deleted 1")
    plan = chunks.explain()
    printer.check("calls by explain", plan.function_calls, len(EDITED))
    printer.say("explain", f"{plan.mode}: {plan.function_calls} calls to make")
    job = chunks.refresh(progress=False)
    wanted = [
        (row["id"], each["place"], each["chunk"])
        for row in documents.to_list()
        for each in split(row["text"])
    ]
    rows = chunks.select("id", "place", "chunk").to_list()
    found = [(row["id"], row["place"], row["chunk"]) for row in rows]
    printer.check("calls of the refresh", job.function_calls, len(EDITED))
    printer.check("the view is its query", sorted(found), sorted(wanted))
    filled = chunks.backfill("vector", progress=False)
    # Chunks that came out as they were keep their rows and vectors.
    new = sum((id, text) not in before for id, _, text in wanted)
    printer.check("calls of the second backfill", filled.function_calls, new)
    printer.check("vectors are complete", chunks.count("vector IS NULL"), 0)
    printer.say(
        "refresh",
        f"{len(EDITED)} rows changed, {job.function_calls} calls, {len(wanted) - new} of "
        f"{len(before)} chunks reused; {filled.function_calls} new vectors",
    )


def aggregate(lake: Lake, printer: StepPrinter) -> None:
    sql = "SELECT kind, count(*) AS documents, max(length(text)) AS longest FROM documents"
    view = lake.create_view("demo.kinds", f"{sql} GROUP BY kind")
    job = view.refresh(progress=False)
    rows = lake.table(DOCUMENTS).select("kind", "text").to_list()
    texts: dict[str, list[int]] = {}
    for row in rows:
        texts.setdefault(row["kind"], []).append(len(row["text"]))
    wanted = {kind: (len(each), max(each)) for kind, each in texts.items()}
    found = {row["kind"]: (row["documents"], row["longest"]) for row in view.to_list()}
    printer.check("groups", found, wanted)
    lake.table(DOCUMENTS).update({"kind": "river"}, where="title = 'Tailrace'")
    again = view.refresh(progress=False)
    counts = {row["kind"]: row["documents"] for row in view.to_list()}
    printer.check("group that grew", counts["river"], wanted["river"][0] + 1)
    printer.check("group that shrank", counts["conduit"], wanted["conduit"][0] - 1)
    printer.say(
        "SQL view",
        f"demo.kinds: {len(found)} groups ({job.mode}); one document moved: {again.mode}",
    )


def survive(chunks: View, folder: Path, printer: StepPrinter) -> None:
    calls = folder / "calls.txt"
    chunks.add_column("size", slow_length(calls, CALL_SECONDS))
    job = chunks.backfill(
        "size", wait=False, max_checkpoint_size=2, batch_checkpoint_flush_interval_seconds=0.1
    )
    _wait_for(job, KILLED_AT)
    runner = job.properties["runner"]
    processes.kill_runner(runner)
    printer.say("kill", f"runner {runner} killed with {job.rows_done} rows done")
    job.wait(progress=False)
    rows = chunks.select("chunk", "size").to_list()
    printer.check("sizes", [row["size"] for row in rows], [len(row["chunk"]) for row in rows])
    made = len(calls.read_text().splitlines())
    printer.check("attempts", job.attempt, 2)
    printer.check("calls that were repeated are few", made - len(rows) <= IN_HAND, True)
    printer.say(
        "survive",
        f"another runner finished it: {len(rows)} rows right, {made} calls, "
        f"{made - len(rows)} of them repeated",
    )


def _wait_for(job: Job, rows: int) -> None:
    """Wait until so many rows of a job are done."""
    while not (job.status == "RUNNING" and job.rows_done >= rows):
        if job.done():
            raise click.ClickException("the job ended before its runner could be killed")
        time.sleep(0.1)
