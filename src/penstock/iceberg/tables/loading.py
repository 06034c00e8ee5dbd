"""What clients load of a table: all snapshots or only those with references, and a tag of it."""

import hashlib

from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import current_snapshot_id

ALL = "all"
REFS = "refs"


def refs_only(document: Json) -> Json:
    """The document with only the snapshots that branches and tags refer to."""
    wanted = {ref["snapshot-id"] for ref in document.get("refs", {}).values()}
    wanted.add(current_snapshot_id(document))
    stored = document.get("snapshots", [])
    kept = [each for each in stored if each["snapshot-id"] in wanted]
    return document if len(kept) == len(stored) else {**document, "snapshots": kept}


def etag(metadata_location: str, snapshots: str = ALL) -> str:
    """The tag of an answer: what lies at a place never changes, so the place tells."""
    said = f"{snapshots}\n{metadata_location}".encode()
    return f'"{hashlib.sha256(said).hexdigest()[:32]}"'
