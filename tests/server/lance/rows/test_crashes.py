"""A server killed while it commits rows of its own, and what the next one finds."""

from pathlib import Path

import httpx
import lance
import pytest

from tests.harness.data.arrow import people, read_back, send, versions
from tests.harness.processes import servers


# The same points as in the tests of keys, which are cut short with keys; here without.
@pytest.mark.parametrize(
    "point",
    [
        "version recorded",
        pytest.param("version named", marks=pytest.mark.slow),
        pytest.param("version settled", marks=pytest.mark.slow),
    ],
)
def test_rows_of_a_commit_that_was_recorded_are_there_once(tmp_path: Path, point: str) -> None:
    with servers.running(tmp_path) as server:
        send(server, "/v1/table/t/create", people(1)).raise_for_status()
    dying = servers.start(tmp_path, environ={"PENSTOCK_CRASH_AT": point})
    with pytest.raises(httpx.HTTPError):
        send(dying, "/v1/table/t/insert", people(2))
    dying.process.wait(60)
    with servers.running(tmp_path) as server:
        assert versions(server, "t") == [1, 2]
        assert read_back(server, "t") == people(1, 2).to_pylist()
        send(server, "/v1/table/t/insert", people(3)).raise_for_status()
        assert read_back(server, "t") == people(1, 2, 3).to_pylist()


def test_a_table_whose_creation_was_recorded_is_there(tmp_path: Path) -> None:
    dying = servers.start(tmp_path, environ={"PENSTOCK_CRASH_AT": "version recorded"})
    with pytest.raises(httpx.HTTPError):
        send(dying, "/v1/table/t/create", people(1))
    dying.process.wait(60)
    with servers.running(tmp_path) as server:
        assert versions(server, "t") == [1]
        location = server.post("/v1/table/t/describe").json()["location"]
        assert lance.dataset(location).count_rows() == 1
