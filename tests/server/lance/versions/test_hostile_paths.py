"""A client can't make the server move or remove a file that is not its staged manifest."""

from pathlib import Path

import pytest

from tests.harness.data.manifests import commit_by_path, make_manifest, stage
from tests.harness.processes.servers import Server


@pytest.fixture
def location(server: Server, namespace: str) -> Path:
    """A table with the versions 1 (through the catalog) and 2 (by path)."""
    found = Path(server.post(f"/v1/table/{namespace}$t/declare").json()["location"])
    body = {"version": 1, "manifest_path": stage(found, 1)}
    server.post(f"/v1/table/{namespace}$t/version/create", body).raise_for_status()
    commit_by_path(found, 2)
    return found


def files(location: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(location.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("scheme", ["V1", "V2", None])
def test_a_live_manifest_named_as_staged_stays_where_it_is(
    server: Server, namespace: str, location: Path, version: int, scheme: str | None
) -> None:
    final = location / "_versions" / f"{2**64 - 1 - version}.manifest"
    before = files(location)
    body = {"version": version, "manifest_path": str(final), "naming_scheme": scheme}
    answer = server.post(f"/v1/table/{namespace}$t/version/create", body)
    assert answer.status_code in (200, 400, 409)
    assert files(location) == before


@pytest.mark.parametrize("name", ["_versions", "data", "_versions/../_versions/x", "/etc/hostname"])
def test_what_is_no_file_of_the_table_is_refused(
    server: Server, namespace: str, location: Path, name: str
) -> None:
    (location / "data").mkdir()
    before = files(location)
    body = {"version": 3, "manifest_path": name}
    answer = server.post(f"/v1/table/{namespace}$t/version/create", body)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert files(location) == before


def test_a_manifest_of_another_table_is_refused(
    server: Server, namespace: str, location: Path
) -> None:
    other = Path(server.post(f"/v1/table/{namespace}$other/declare").json()["location"])
    staged = stage(other, 1)
    body = {"version": 3, "manifest_path": staged}
    answer = server.post(f"/v1/table/{namespace}$t/version/create", body)
    assert answer.json()["code"] == 13
    assert Path("/" + staged).exists()


def test_a_link_that_leads_out_is_refused(
    server: Server, namespace: str, location: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(make_manifest(3))
    (location / "_versions" / "link").symlink_to(secret)
    body = {"version": 3, "manifest_path": "_versions/link"}
    answer = server.post(f"/v1/table/{namespace}$t/version/create", body)
    assert answer.json()["code"] == 13
    assert secret.exists()


def test_a_staged_file_elsewhere_in_the_table_is_moved(
    server: Server, namespace: str, location: Path
) -> None:
    (location / "stage").mkdir()
    staged = location / "stage" / "mine"
    staged.write_bytes(make_manifest(3))
    body = {"version": 3, "manifest_path": str(staged)}
    server.post(f"/v1/table/{namespace}$t/version/create", body).raise_for_status()
    assert not staged.exists()
    assert (location / "_versions" / f"{2**64 - 4}.manifest").exists()


@pytest.mark.parametrize("seconds", [2**62, 2**64 - 1])
def test_a_manifest_from_no_time_is_refused(
    server: Server, namespace: str, location: Path, seconds: int
) -> None:
    staged = location / "_versions" / "mine"
    staged.write_bytes(make_manifest(3, seconds=seconds))
    body = {"version": 3, "manifest_path": str(staged)}
    answer = server.post(f"/v1/table/{namespace}$t/version/create", body)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


@pytest.mark.parametrize("text", ["{", '{"version": 1, "branch": "../.."}', '{"version": -1}'])
def test_a_damaged_tag_is_the_tables_problem(
    server: Server, namespace: str, location: Path, text: str
) -> None:
    tags = location / "_refs" / "tags"
    tags.mkdir(parents=True)
    (tags / "x.json").write_text(text)
    answer = server.post(f"/v1/table/{namespace}$t/describe", {"tag": "x"})
    assert (answer.status_code, answer.json()["code"]) == (400, 19)


@pytest.mark.parametrize("text", ["s3://[x/y", "http://[", "file://[::1/x", "file:///x%00y"])
def test_a_location_that_cannot_be_read_is_refused(
    server: Server, namespace: str, text: str
) -> None:
    answer = server.post(f"/v1/table/{namespace}$u/declare", {"location": text})
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


@pytest.mark.parametrize("name", ["_versions/" + "x" * 300, "_versions/{final}/x", "_versions/."])
def test_a_path_that_no_file_can_have_is_refused(
    server: Server, namespace: str, location: Path, name: str
) -> None:
    body = {"version": 3, "manifest_path": name.format(final=f"{2**64 - 2}.manifest")}
    answer = server.post(f"/v1/table/{namespace}$t/version/create", body)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


def test_a_huge_file_is_refused_by_its_end(server: Server, namespace: str, location: Path) -> None:
    huge = location / "data.bin"
    with huge.open("wb") as file:
        file.truncate(2**33)
    before = peak_memory(server)
    body = {"version": 3, "manifest_path": str(huge)}
    answer = server.post(f"/v1/table/{namespace}$t/version/create", body)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    huge.unlink()
    assert peak_memory(server) - before < 100_000_000


def test_the_largest_number_is_no_version(server: Server, namespace: str, location: Path) -> None:
    body = {"version": 2**63 - 1, "manifest_path": "_versions/x"}
    answer = server.post(f"/v1/table/{namespace}$t/version/create", body)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


def peak_memory(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
