"""Random histories of one queue, compared step by step with a plain model of it."""

import asyncio
import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs, leases, pauses
from penstock.catalog.jobs.leases import ProgressReport
from penstock.catalog.jobs.queue import Queue
from penstock.database.connect import open_catalog
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest, LeaseLost
from penstock.jobs.specs import BackfillSpec
from penstock.lance.storage.lake import Lake
from penstock.model.jobs import FINISHED, PAUSED, QUEUED, NewJob, Report
from penstock.model.slots import Slot
from tests.harness.processes.databases import sqlite_url

CHANCES = 2
ENDS = (*FINISHED, PAUSED, QUEUED)


@dataclass
class Modelled:
    """What a job must look like."""

    slot: str
    request: int
    state: str = "QUEUED"
    attempt: int = 0
    canceled: bool = False
    pausing: bool = False
    chances: int = CHANCES

    def give_back(self) -> None:
        """It is paused, or waits again, with as many chances as it had."""
        self.chances += 1
        self.wait()

    def wait(self) -> None:
        self.state = PAUSED if self.pausing else QUEUED


class QueueMachine(RuleBasedStateMachine):
    """Requests, leases, reports, silences, cancels and pauses, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.catalog = self.run(self.open())
        self.model: dict[str, Modelled] = {}

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    async def open(self) -> Catalog:
        path = Path(self.folder.name)
        database = await open_catalog(sqlite_url(path))
        await database.write(_prepare)
        return Catalog(database, Lake(str(path / "lake")), queue=Queue(max_attempts=CHANCES))

    def teardown(self) -> None:
        self.run(self.catalog.close())
        self.loop.close()
        self.folder.cleanup()

    def active(self, slot: str) -> list[Modelled]:
        found = [job for job in self.model.values() if job.slot == slot]
        return [job for job in found if job.state not in (*FINISHED, PAUSED)]

    @rule(slot=st.sampled_from("ab"), request=st.integers(0, 2))
    def request_job(self, slot: str, request: int) -> None:
        spec = BackfillSpec(table=(), table_id="x", column=f"c{request}")
        new = NewJob("backfill", "t", f"t.{slot}", Slot("x", slot), spec, "local")
        id = self.run(self.catalog.database.write(jobs.enqueue_in, new, CHANCES))
        same = [
            job
            for job in self.active(slot)
            if job.request == request and not (job.canceled or job.pausing)
        ]
        if same:
            assert self.model[id] is same[0]
        else:
            assert id not in self.model
            self.model[id] = Modelled(slot, request)

    @rule(free=st.integers(1, 3))
    def lease(self, free: int) -> None:
        heads: dict[str, str] = {}
        for id, job in self.model.items():
            if job.state not in (*FINISHED, PAUSED):
                heads.setdefault(job.slot, id)
        ready = [id for id in self.model if id in heads.values()]
        wanted = [id for id in ready if self.model[id].state == "QUEUED"][:free]
        leased = self.run(leases.lease(self.catalog, "r", None, free))
        assert [job.id for job in leased] == wanted
        for job in leased:
            self.model[job.id].state = "RUNNING"
            self.model[job.id].attempt += 1
            assert job.attempt == self.model[job.id].attempt

    @rule(data=st.data(), state=st.sampled_from(ENDS), retryable=st.booleans())
    def finish(self, data: st.DataObject, state: str, retryable: bool) -> None:
        if not self.model:
            return
        id = data.draw(st.sampled_from(list(self.model)))
        attempt = data.draw(st.integers(1, CHANCES + 2))
        job = self.model[id]
        report = Report(state, {}, "why", retryable)
        if job.state == "RUNNING" and job.attempt == attempt:
            job.state = state
            if state not in ("SUCCEEDED", "CANCELED") and job.canceled:
                job.state = "CANCELED"
            elif state in (PAUSED, QUEUED):
                job.give_back()
            elif state == "FAILED" and retryable and attempt < job.chances:
                job.wait()
            job.pausing = False
            self.run(leases.finish(self.catalog, id, attempt, report, ProgressReport({})))
            self.run(self.catalog.database.write(_hurry))
            return
        # Lost, or a repetition; either way it changes nothing.
        with contextlib.suppress(LeaseLost):
            self.run(leases.finish(self.catalog, id, attempt, report, ProgressReport({})))

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if not self.model:
            return
        id = data.draw(st.sampled_from(list(self.model)))
        job = self.model[id]
        if job.state not in FINISHED:
            job.canceled = True
            if job.state in (PAUSED, QUEUED):
                job.state = "CANCELED"
        assert self.run(jobs.cancel(self.catalog, id)).state == job.state

    @rule(data=st.data())
    def pause(self, data: st.DataObject) -> None:
        if not self.model:
            return
        id = data.draw(st.sampled_from(list(self.model)))
        job = self.model[id]
        if job.state in FINISHED or job.canceled:
            with pytest.raises(InvalidRequest):
                self.run(pauses.pause(self.catalog, id))
            return
        is_changed = job.state != PAUSED and not job.pausing
        if job.state == QUEUED:
            job.state = PAUSED
        job.pausing = job.state == "RUNNING"
        done = self.run(pauses.pause(self.catalog, id))
        assert (done.job.state, done.is_changed) == (job.state, is_changed)

    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        if not self.model:
            return
        id = data.draw(st.sampled_from(list(self.model)))
        job = self.model[id]
        is_changed = job.state == PAUSED or job.pausing
        if job.state == PAUSED:
            job.state = QUEUED
            # At the end of the queue.
            self.model[id] = self.model.pop(id)
        job.pausing = False
        done = self.run(pauses.resume(self.catalog, id))
        assert (done.job.state, done.is_changed) == (job.state, is_changed)

    @rule()
    def fall_silent(self) -> None:
        self.run(self.catalog.database.write(_end_leases))
        self.run(leases.expire(self.catalog))
        for job in self.model.values():
            if job.state == "RUNNING":
                if job.canceled:
                    job.state = "CANCELED"
                elif job.pausing:
                    job.give_back()
                else:
                    job.state = QUEUED if job.attempt < job.chances else "FAILED"
                job.pausing = False

    @invariant()
    def is_as_modelled(self) -> None:
        for id, wanted in self.model.items():
            found = self.run(jobs.get(self.catalog.database, id))
            assert (found.state, found.attempt) == (wanted.state, wanted.attempt)
            assert (found.finished_at is not None) == found.is_finished
        for slot in "ab":
            assert sum(job.state == "RUNNING" for job in self.active(slot)) <= 1


async def _prepare(tx: Transaction) -> None:
    await tx.fetch(
        "INSERT INTO objects (id, namespace, name, kind, properties, created_at) "
        "VALUES ('x', '', 't', 'table', '{}', 0)"
    )


async def _hurry(tx: Transaction) -> None:
    """Let no job wait before its next attempt."""
    await tx.fetch("UPDATE jobs SET ready_at = 0")


async def _end_leases(tx: Transaction) -> None:
    await tx.fetch("UPDATE jobs SET lease_until = 1 WHERE state = 'RUNNING'")


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
