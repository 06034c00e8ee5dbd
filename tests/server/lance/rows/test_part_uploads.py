"""Uploads in parts: what lancedb's client sends for long ones, and what may go wrong on the way."""

from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, read_back, send, versions
from tests.harness.data.tables import new_name
from tests.harness.processes import servers
from tests.harness.processes.servers import Server


class Upload:
    """An upload to a table with the row 1."""

    def __init__(self, server: Server, **params: Any) -> None:
        self.server, self.table, self.params = server, new_name(), params
        send(server, f"/v1/table/{self.table}/create", people(1)).raise_for_status()
        self.id = ""

    def step(self, name: str, **params: Any) -> httpx.Response:
        path = f"/v1/table/{self.table}/multipart_write/{name}"
        return self.server.post(path, None, **({"upload_id": self.id} if self.id else {}), **params)

    def begin(self) -> "Upload":
        self.id = self.step("create").raise_for_status().json()["upload_id"]
        return self

    def part(self, name: str, rows: "pa.Table | bytes", **params: Any) -> httpx.Response:
        given = {"upload_id": self.id, "upload_part_id": name, **params}
        return send(self.server, f"/v1/table/{self.table}/insert", rows, **given)

    def rows(self) -> list[int]:
        return [row["id"] for row in read_back(self.server, self.table)]

    def leftovers(self) -> list[Path]:
        return list(self.server.lake.glob(f"{self.table}-*/_uploads/*"))


@pytest.fixture
def upload(server: Server) -> Upload:
    return Upload(server).begin()


def test_parts_are_committed_together(server: Server, upload: Upload) -> None:
    for n in (2, 3, 4):
        assert upload.part(f"p{n}", people(n)).raise_for_status().json()["num_inserted_rows"] == 1
    assert upload.rows() == [1]
    assert upload.step("complete").raise_for_status().json() == {"version": 2}
    assert upload.rows() == [1, 2, 3, 4]
    assert upload.leftovers() == []


def test_a_part_and_a_completion_count_once(server: Server, upload: Upload) -> None:
    for _ in range(2):
        upload.part("same", people(2)).raise_for_status()
    for _ in range(2):
        assert upload.step("complete").raise_for_status().json() == {"version": 2}
    assert upload.rows() == [1, 2]
    assert versions(server, upload.table) == [1, 2]


def test_parts_replace_rows(upload: Upload) -> None:
    upload.part("a", people(7), mode="overwrite").raise_for_status()
    upload.part("b", people(8), mode="overwrite").raise_for_status()
    upload.step("complete").raise_for_status()
    assert upload.rows() == [7, 8]


def test_a_long_part_with_a_chunked_body_arrives(upload: Upload) -> None:
    rows = people(*range(2, 150_000), name="x" * 30)
    upload.part("a", rows).raise_for_status()
    upload.step("complete").raise_for_status()
    assert len(upload.rows()) == 149_999


def test_an_upload_that_is_given_up_leaves_nothing(upload: Upload) -> None:
    upload.part("a", people(2)).raise_for_status()
    for _ in range(2):
        upload.step("abort").raise_for_status()
    assert upload.leftovers() == []
    assert "has no upload" in upload.step("complete").json()["error"]
    assert "has no upload" in upload.part("b", people(3)).json()["error"]
    assert upload.rows() == [1]


def test_what_cannot_be_is_refused_and_changes_nothing(server: Server, upload: Upload) -> None:
    refused = {
        "no parts": upload.step("complete"),
        "upload_part_id is": upload.part("../x", people(2)),
        "got string, want int64": upload.part("a", pa.table({"id": ["x"], "name": ["y"]})),
        "not a sound Arrow": upload.part("a", b"nothing"),
        "has no upload": upload.part("a", people(2), upload_id="../../x"),
    }
    for words, answer in refused.items():
        assert answer.status_code == 400, (words, answer.text)
        assert words in answer.json()["error"]
    upload.part("a", people(2)).raise_for_status()
    upload.part("b", people(3), mode="overwrite").raise_for_status()
    assert "several branches or modes" in upload.step("complete").json()["error"]
    assert upload.rows() == [1]


def test_columns_that_change_on_the_way_are_noticed(server: Server, upload: Upload) -> None:
    upload.part("a", people(2)).raise_for_status()
    path = f"/v1/table/{upload.table}/alter_columns"
    server.post(path, {"alterations": [{"path": "name", "rename": "called"}]}).raise_for_status()
    answer = upload.step("complete")
    assert answer.status_code in (400, 409), answer.text
    assert upload.rows() == [1]


@pytest.mark.parametrize("point", ["parts adopted", "parts committed"])
def test_a_completion_that_was_cut_short_is_repeated(tmp_path: Path, point: str) -> None:
    with servers.running(tmp_path) as server:
        upload = Upload(server).begin()
        upload.part("a", people(2)).raise_for_status()
        upload.part("b", people(3)).raise_for_status()
    upload.server = dying = servers.start(tmp_path, environ={"PENSTOCK_CRASH_AT": point})
    with pytest.raises(httpx.HTTPError):
        upload.step("complete")
    dying.process.wait(60)
    with servers.running(tmp_path) as server:
        upload.server = server
        assert upload.step("complete").raise_for_status().json() == {"version": 2}
        assert upload.rows() == [1, 2, 3]
