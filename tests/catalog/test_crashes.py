"""A server killed at a named point of a commit or a drop, and what the next one finds."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.harness.data.arrow import people, send
from tests.harness.data.manifests import commit_by_path, stage
from tests.harness.processes import servers
from tests.harness.processes.databases import EITHER, database_of
from tests.harness.processes.waiting import until

Start = Callable[..., servers.Server]

POINTS = ("version recorded", "version named", "version settled")
# Where one point is as good as another, but for a long proof.
ANY_POINT = [POINTS[0], *(pytest.param(point, marks=pytest.mark.slow) for point in POINTS[1:])]


@pytest.fixture(params=EITHER)
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., servers.Server]:
    """Starts servers, one after another, on the same data."""
    database = database_of(request)

    def run(crash_at: str = "") -> servers.Server:
        server = servers.start(tmp_path, database=database, environ={"PENSTOCK_CRASH_AT": crash_at})
        request.addfinalizer(server.process.kill)
        return server

    return run


def declare(server: servers.Server) -> str:
    location: str = server.post("/v1/table/t/declare").raise_for_status().json()["location"]
    return location


def create_version(server: servers.Server, version: int, staged: str) -> httpx.Response:
    body = {"version": version, "manifest_path": staged}
    return server.post("/v1/table/t/version/create", body)


def crash_in_commit(start: Start, point: str) -> tuple[str, str]:
    """Commit version 1, then die while committing version 2; returns location and staged path."""
    server = start()
    location = declare(server)
    assert create_version(server, 1, stage(location, 1)).status_code == 200
    server.stop()
    dying = start(crash_at=point)
    staged = stage(location, 2)
    with pytest.raises(httpx.HTTPError):
        create_version(dying, 2, staged)
    dying.process.wait(60)
    return location, staged


def final_names(location: str) -> list[str]:
    return sorted(path.name for path in (Path(location) / "_versions").iterdir())


@pytest.mark.parametrize("point", POINTS)
def test_a_commit_that_was_recorded_is_finished_after_a_crash(start: Start, point: str) -> None:
    location, _ = crash_in_commit(start, point)
    server = start()
    found = server.post("/v1/table/t/version/describe", {"version": 2})
    assert found.status_code == 200
    assert Path("/" + found.json()["version"]["manifest_path"]).is_file()
    assert final_names(location) == [
        "18446744073709551613.manifest",
        "18446744073709551614.manifest",
    ]
    assert create_version(server, 3, stage(location, 3)).status_code == 200


@pytest.mark.parametrize("point", ANY_POINT)
def test_the_writer_that_repeats_its_request_after_a_crash_succeeds(
    start: Start, point: str
) -> None:
    _, staged = crash_in_commit(start, point)
    server = start()
    assert create_version(server, 2, staged).status_code == 200
    versions = server.post("/v1/table/t/version/list").json()["versions"]
    assert [v["version"] for v in versions] == [1, 2]


@pytest.mark.parametrize("point", ANY_POINT)
def test_another_writer_after_a_crash_gets_a_conflict(start: Start, point: str) -> None:
    location, _ = crash_in_commit(start, point)
    server = start()
    lost = create_version(server, 2, stage(location, 2, filler=7))
    assert (lost.status_code, lost.json()["code"]) == (409, 14)


def test_a_commit_by_path_during_the_outage_wins_and_is_kept(start: Start) -> None:
    location, staged = crash_in_commit(start, "version recorded")
    other = commit_by_path(location, 2)
    content = other.read_bytes()
    server = start()
    found = server.post("/v1/table/t/version/describe", {"version": 2}).json()["version"]
    assert found["manifest_size"] == len(content)
    assert other.read_bytes() == content
    assert not Path("/" + staged).exists()
    assert create_version(server, 2, staged).json()["code"] == 14


def test_a_recorded_commit_whose_file_is_gone_makes_way(start: Start) -> None:
    location, staged = crash_in_commit(start, "version recorded")
    Path("/" + staged).unlink()
    server = start()
    assert server.post("/v1/table/t/version/describe", {"version": 2}).status_code == 404
    assert create_version(server, 2, stage(location, 2)).status_code == 200


def test_a_drop_that_was_recorded_deletes_the_files_after_a_crash(start: Start) -> None:
    server = start()
    location = declare(server)
    create_version(server, 1, stage(location, 1))
    server.stop()
    dying = start(crash_at="removal recorded")
    with pytest.raises(httpx.HTTPError):
        dying.post("/v1/table/t/drop")
    dying.process.wait(60)
    assert Path(location).exists()
    server = start()
    assert server.post("/v1/table/t/exists").status_code == 404
    server.post("/v1/table/t/declare").raise_for_status()
    until(lambda: not Path(location).exists(), "the files are still there")


@pytest.mark.parametrize("point", ANY_POINT)
def test_a_view_is_made_whole_or_not_at_all(start: Start, point: str) -> None:
    server = start()
    send(server, "/v1/table/t/create", people(1)).raise_for_status()
    server.kill()
    server = start(point)
    body = {"kind": "query", "source_query": "SELECT id FROM t", "with_no_data": False}
    with pytest.raises(httpx.TransportError):
        server.post("/v1/materialized_view/v/create", body)
    server = start()
    assert server.get("/v1/namespace/$/materialized_view/list").json() == {"views": ["v"]}
    assert server.post("/v1/table/v/count_rows").json() == 0
    (job,) = server.post("/v1/jobs/list", {"target": "v"}).json()["jobs"]
    asked = server.post("/v1/materialized_view/v/refresh")
    assert asked.json()["job_id"] == job["job_id"]
    assert server.post("/v1/table/t/drop").status_code == 409
