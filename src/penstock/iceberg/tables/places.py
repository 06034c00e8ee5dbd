"""Where the metadata files of a table are, and what is in them."""

from penstock.errors import InvalidTable
from penstock.iceberg import files
from penstock.iceberg.files import COMPRESSION_CODEC, MAX_BYTES
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.wording import of_tables


def next_metadata_path(
    location: str, properties: dict[str, str], previous: str | None, uuid: str
) -> str:
    """The path of the next metadata file, numbered after the previous one."""
    # Tables are plain unless a property says otherwise; views are the other way round.
    chosen = {COMPRESSION_CODEC: "none", **properties}
    with of_tables():
        return files.next_metadata_path(location, chosen, previous, uuid)


def is_compressed(path: str) -> bool:
    return path.endswith((".gz.metadata.json", ".metadata.json.gz"))


def encode(document: Json, path: str, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a file, compressed if its name says so; refuses what nobody would load again."""
    body = files.encode_metadata(document, "")
    if len(body) > max_bytes:
        raise InvalidTable(
            f"the table's metadata would have {len(body)} bytes, more than {max_bytes}",
            detail="expire snapshots, and remove schemas, specs and statistics that are not needed",
        )
    if files.estimate_memory(body) > files.MAX_MEMORY:
        raise InvalidTable(
            "the table's metadata would have more values than anybody could load",
            detail="expire snapshots, and remove schemas, specs and statistics that are not needed",
        )
    return files.encode_metadata(document, path) if is_compressed(path) else body
