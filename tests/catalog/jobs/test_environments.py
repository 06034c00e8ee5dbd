"""Environments by name, and how a job comes by its own."""

import hashlib
import json
from typing import Any

import pytest

from tests.harness.data.tables import code, new_name
from tests.harness.jobs.fake_runner import Column
from tests.harness.processes.servers import Server

CONTENT = '{"pip": ["numpy==2.0"], "env_vars": {"A": "b"}, "note": "kept"}'


def create(server: Server, name: str, manifest: Any = CONTENT, **body: Any) -> Any:
    return server.post(f"/v1/manifest/{name}/create", {"manifest": manifest} | body)


def test_a_manifest_is_kept_as_it_came(server: Server) -> None:
    name = new_name()
    made = create(server, name)
    assert made.status_code == 200, made.text
    found = server.post(f"/v1/manifest/{name}/describe").json()
    assert found == made.json()
    assert (found["name"], found["manifest"]) == (name, CONTENT)
    assert found["checksum"] == hashlib.sha256(CONTENT.encode()).hexdigest()


def test_an_object_does_as_well_as_text(server: Server) -> None:
    name = new_name()
    assert json.loads(create(server, name, {"pip": ["a"]}).json()["manifest"]) == {"pip": ["a"]}


def test_a_name_is_taken_once(server: Server) -> None:
    name = new_name()
    create(server, name).raise_for_status()
    assert create(server, name).status_code == 200
    assert code(create(server, name, "{}")) == (409, 13)
    assert create(server, name, "{}", mode="overwrite").json()["manifest"] == "{}"


def test_a_dropped_manifest_is_gone(server: Server) -> None:
    name = new_name()
    create(server, name).raise_for_status()
    assert server.post(f"/v1/manifest/{name}/drop").json()["name"] == name
    for operation in ("describe", "drop"):
        assert code(server.post(f"/v1/manifest/{name}/{operation}")) == (404, 13)


def test_manifests_are_listed_in_pages(server: Server) -> None:
    prefix = new_name()
    names = [f"{prefix}{n}" for n in range(3)]
    for name in names:
        create(server, name).raise_for_status()
    found, token = [], ""
    while True:
        params = {"limit": 2} | ({"page_token": token} if token else {})
        page = server.get("/v1/manifest/list", **params).raise_for_status().json()
        found += [entry["name"] for entry in page["manifests"]]
        if not (token := page.get("page_token", "")):
            break
    assert [name for name in found if name.startswith(prefix)] == names


@pytest.mark.parametrize(
    "manifest",
    [
        None,
        5,
        "",
        "[]",
        "{",
        '{"pip": "numpy"}',
        '{"env_vars": {"A": 1}}',
        {"py_modules": [1]},
        '{"conda": ["numpy"]}',
    ],
)
def test_what_is_no_manifest_is_refused(server: Server, manifest: Any) -> None:
    assert code(create(server, new_name(), manifest)) == (400, 13)


def test_a_manifests_name_has_one_part(server: Server) -> None:
    assert code(create(server, "a$b")) == (400, 13)


def test_a_job_has_the_manifest_that_its_request_names(column: Column) -> None:
    name = new_name()
    create(column.server, name).raise_for_status()
    column.request(manifest=name)
    create(column.server, name, "{}", mode="overwrite").raise_for_status()
    (job,) = column.runner.lease()
    assert job["manifest"] == CONTENT


def test_a_job_has_the_manifest_that_its_request_brings(column: Column) -> None:
    column.request(manifest=CONTENT)
    (job,) = column.runner.lease()
    assert job["manifest"] == CONTENT


def test_another_environment_is_another_request(column: Column) -> None:
    ids = {column.request(), column.request(manifest="{}"), column.request(manifest=CONTENT)}
    assert len(ids) == 3


@pytest.mark.parametrize("manifest", ["none", '{"pip": 1}', "a\0"])
def test_a_manifest_that_cannot_be_had_is_refused(column: Column, manifest: str) -> None:
    assert code(column.ask_backfill(manifest=manifest)) == (400, 13)
    body = {"column": "len", "manifest": manifest}
    assert code(column.ask("explain_backfill", body)) == (400, 13)
