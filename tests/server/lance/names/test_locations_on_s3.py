"""No location leads a client out of the roots on an object store, nor to another's table."""

from collections.abc import Iterator

import lance
import pytest

from tests.harness.data.arrow import people, send
from tests.harness.data.locations import SPELLINGS, STEPS
from tests.harness.data.tables import code
from tests.harness.processes.databases import KINDS, database_of
from tests.harness.processes.s3 import BUCKET, Store, running_store, serving
from tests.harness.processes.servers import Server

ROOT = f"s3://{BUCKET}/lake"


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running_store() as found:
        lance.write_dataset(
            people(1), f"s3://{BUCKET}/secret/t.lance", storage_options=found.options
        )
        yield found


@pytest.fixture(scope="module", params=KINDS)
def server(
    store: Store, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("data")
    with serving(store, data, database=database_of(request)) as started:
        yield started
    # The next server has another catalog.
    store.bucket.objects.filter(Prefix="lake/").delete()


def is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip() and bool(text)


ATTACKS = [
    *(f"{ROOT}/{step}/secret/t.lance" for step in STEPS),
    *(f"x/{step}/../secret" for step in STEPS),
    *(spelling.replace("{root}", ROOT) for spelling in SPELLINGS),
    *(f"{ROOT}/a/%2e%2e/%2e%2e/secret/t.lance", "%2e%2e/secret/t.lance", "lake?/../secret/t"),
]


def test_no_operation_takes_a_location_that_leads_elsewhere(
    server: Server, store: Store, namespace: str
) -> None:
    before = store.objects()
    for location in ATTACKS:
        body = {"location": location}
        for operation in ("declare", "register"):
            answer = server.post(f"/v1/table/{namespace}$t/{operation}", body)
            assert code(answer) == (400, 13), (operation, location, answer.text)
    assert server.post(f"/v1/table/{namespace}$t/exists").status_code == 404
    assert store.objects() == before


def test_no_rows_are_written_where_a_location_leads(
    server: Server, store: Store, namespace: str
) -> None:
    before = store.objects()
    for location in filter(is_plain, ATTACKS):
        headers = {"x-lance-table-location": location}
        for mode in ("create", "overwrite", "exist_ok"):
            answer = send(server, f"/v1/table/{namespace}$t/create", people(2), headers, mode=mode)
            assert code(answer) == (400, 13), (location, answer.text)
    assert store.objects() == before


def test_an_odd_location_is_written_and_read_where_it_says(
    server: Server, store: Store, namespace: str
) -> None:
    headers = {"x-lance-table-location": f"{namespace}/a b+c;d.lance"}
    made = send(server, f"/v1/table/{namespace}$t/create", people(1, 2), headers).json()
    assert made["location"] == f"{ROOT}/{namespace}/a b+c;d.lance"
    by_path = lance.dataset(made["location"], storage_options=store.options)
    assert by_path.count_rows() == 2
    count = server.post(f"/v1/table/{namespace}$t/count_rows")
    assert count.json() == 2
    assert store.keys(f"lake/{namespace}/a b+c;d.lance/_versions/")


def test_a_taken_location_is_taken_in_every_spelling(server: Server, namespace: str) -> None:
    server.post(f"/v1/table/{namespace}$t/declare", {"location": f"{namespace}/t"})
    for spelling in (f"{namespace}/t", f"{namespace}/t/", f"{ROOT}/{namespace}/t", namespace):
        for inner in ("", "/x"):
            body = {"location": spelling.rstrip("/") + inner if inner else spelling}
            if spelling == namespace and inner:
                continue
            assert code(server.post(f"/v1/table/{namespace}$u/declare", body)) == (409, 5)


@pytest.mark.parametrize("name", ["_versions/%2e%2e/x", "_versions/a?b", "_versions/a\\b"])
def test_a_staged_manifest_is_named_as_everybody_reads_it(
    server: Server, namespace: str, name: str
) -> None:
    server.post(f"/v1/table/{namespace}$t/declare").raise_for_status()
    body = {"version": 1, "manifest_path": name}
    answer = server.post(f"/v1/table/{namespace}$t/version/create", body)
    assert code(answer) == (400, 13)
    assert "manifest_path" in answer.text
