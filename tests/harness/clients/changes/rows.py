"""Changes of rows, uploads and indexes."""

from tests.harness.clients.changes.requests import Prepare, ask, lance, long_stream, with_rows
from tests.harness.clients.idempotency_keys import Request
from tests.harness.data.arrow import people, send, to_stream
from tests.harness.data.tables import declare
from tests.harness.processes.servers import Server


def with_index(server: Server, ns: str) -> str:
    path = with_rows(server, ns)
    body = {"column": "id", "index_type": "BTREE", "name": "i"}
    ask(server, f"{path}/create_scalar_index", body)
    return path


def create_index(server: Server, ns: str) -> Request:
    body = {"column": "name", "index_type": "FTS", "name": "i"}
    return lance(f"{with_rows(server, ns)}/create_index", body)


def create_scalar_index(server: Server, ns: str) -> Request:
    body = {"column": "id", "index_type": "BTREE", "name": "i"}
    return lance(f"{with_rows(server, ns)}/create_scalar_index", body)


def merge(server: Server, ns: str) -> Request:
    flags = {"on": "id", "when_matched_update_all": "true", "when_not_matched_insert_all": "true"}
    rows = to_stream(people(3, 4, name="new"))
    return lance(f"{with_rows(server, ns)}/merge_insert", rows, **flags)


def update_rows(server: Server, ns: str) -> Request:
    # Twice would be seen.
    return lance(f"{with_rows(server, ns)}/update", {"updates": [["id", "id + 10"]]})


def insert_long(server: Server, ns: str) -> Request:
    return lance(f"{with_rows(server, ns)}/insert", long_stream())


def insert_first(server: Server, ns: str) -> Request:
    declare(server, f"{ns}$t")
    return lance(f"table/{ns}$t/insert", to_stream(people(1)))


def with_upload(server: Server, ns: str) -> tuple[str, str]:
    """A table, and the id of an upload with one part."""
    path = with_rows(server, ns)
    upload: str = ask(server, f"{path}/multipart_write/create")["upload_id"]
    part = {"upload_id": upload, "upload_part_id": "a"}
    send(server, f"/v1/{path}/insert", people(4), **part).raise_for_status()
    return path, upload


def complete_upload(server: Server, ns: str) -> Request:
    path, upload = with_upload(server, ns)
    return lance(f"{path}/multipart_write/complete", upload_id=upload)


def abort_upload(server: Server, ns: str) -> Request:
    path, upload = with_upload(server, ns)
    return lance(f"{path}/multipart_write/abort", upload_id=upload)


CHANGES: dict[str, Prepare] = {
    "InsertIntoTable": lambda s, ns: lance(f"{with_rows(s, ns)}/insert", to_stream(people(4))),
    "InsertIntoTable first": insert_first,
    "InsertIntoTable long": insert_long,
    "InsertIntoTable overwrite": lambda s, ns: lance(
        f"{with_rows(s, ns)}/insert", to_stream(people(4)), mode="overwrite"
    ),
    "BeginUpload": lambda s, ns: lance(f"{with_rows(s, ns)}/multipart_write/create"),
    "CompleteUpload": complete_upload,
    "AbortUpload": abort_upload,
    "MergeInsertIntoTable": merge,
    "UpdateTable": update_rows,
    "DeleteFromTable": lambda s, ns: lance(f"{with_rows(s, ns)}/delete", {"predicate": "id = 1"}),
    "CreateTableIndex": create_index,
    "CreateTableScalarIndex": create_scalar_index,
    "CompactTable": lambda s, ns: lance(f"{with_rows(s, ns)}/compact"),
    "CleanUpTable": lambda s, ns: lance(f"{with_rows(s, ns)}/cleanup", {"older_than_seconds": 0}),
    "SetTableUpkeep": lambda s, ns: lance(f"{with_rows(s, ns)}/upkeep/set", {"keep_versions": 9}),
    "EndTableUpkeep": lambda s, ns: lance(f"{with_rows(s, ns)}/upkeep/end"),
    "DropTableIndex": lambda s, ns: lance(f"{with_index(s, ns)}/index/i/drop"),
}
