"""Fifty kills at random: no job is lost, and none is committed twice."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.harness.jobs.fake_runner import describe
from tests.harness.processes import servers
from tests.harness.processes.runners import FINISHED, SLOW, Filled, Team, make_filled, restart
from tests.harness.processes.servers import Server
from tests.runner.conftest import LEASES, SPARK

KILLS, DONE = 50, 3
# How often each is killed, about; a worker and the server are back soonest.
VICTIMS = ["worker"] * 4 + ["server"] * 2 + ["jvm"] * 2 + ["runner"] * 2
ENVIRON = LEASES | {"PENSTOCK__JOBS__MAX_ATTEMPTS": "100"}


def kill(victim: str, server: Server, team: Team, chance: random.Random) -> bool:
    """Kill one; False when it is not there just now."""
    if victim == "server":
        restart(server, environ=ENVIRON)
        return True
    runner = chance.choice(team.members)
    if victim == "runner":
        runner.kill()
        team.members.remove(runner)
        team.members.append(team.start())
        return True
    try:
        pids = runner.workers() if victim == "worker" else [runner.jvm()]
        os.kill(chance.choice(pids), signal.SIGKILL)
    except (IndexError, StopIteration, ProcessLookupError):
        return False
    return True


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_no_job_is_lost_or_committed_twice(tmp_path: Path) -> None:
    chance = random.Random(5)
    port = str(servers.free_port())
    server = servers.start(tmp_path / "data", "--no-runner", "--port", port, environ=ENVIRON)
    team = Team(server, tmp_path / "runner", SPARK)
    tables = [make_filled(server, 600, 6, SLOW) for _ in range(3)]
    done: list[tuple[Filled, str]] = []
    try:
        team.at_least(2)
        running = {table.name: table.request(force=True) for table in tables}
        kills = 0
        # On a busy machine it takes more of them until some jobs are done.
        while kills < KILLS or len(done) < DONE:
            time.sleep(chance.uniform(0.2, 3))
            kills += kill(chance.choice(VICTIMS), server, team, chance)
            for table in tables:
                if describe(server, running[table.name])["status"] in FINISHED:
                    done.append((table, running[table.name]))
                    running[table.name] = table.request(force=True)
        for table in tables:
            table.finish(running[table.name], 600)
            done.append((table, running[table.name]))
        for table, job in done:
            assert describe(server, job)["status"] == "SUCCEEDED", describe(server, job)
            assert len(table.commits(job)) == 1
        for table in tables:
            assert table.is_right()
            # A worker may outlive its runner by a moment and leave a note, which is swept later.
            assert {name for name in table.loose_files() if name.endswith(".lance")} == set()
    finally:
        team.stop()
        server.stop()
