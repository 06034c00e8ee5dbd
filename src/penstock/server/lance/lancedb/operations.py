"""Operations of lancedb's remote tables that the Lance Namespace REST API does not have."""

from penstock.server.access.limits import QUERIES
from penstock.server.lance import recover
from penstock.server.lance.lancedb import blobs, clones, lsm, part_uploads, prewarm, secrets
from penstock.server.lance.operation import changes, reads
from penstock.server.lance.rules import READ_TABLE, SIGNED_IN, WRITE_TABLE

_LSM = ("log-structured writes", "leave the write spec unset; plain writes are durable at once")
_BRANCHES = (
    "comparison of branches",
    "read both branches, and write what you want to take over",
)

LANCEDB = (
    reads("FetchBlobs", "table/{id}/fetch_blobs", blobs.fetch, READ_TABLE, work=QUERIES),
    # A client keeps many of these open and reads on as it likes, so they are no queries.
    reads(
        "ReadBlob",
        "table/{id}/blob/{column}/{row_id}/bytes",
        blobs.read_range,
        READ_TABLE,
        method="GET",
    ),
    changes("BeginUpload", "table/{id}/multipart_write/create", part_uploads.begin, WRITE_TABLE),
    changes(
        "CompleteUpload",
        "table/{id}/multipart_write/complete",
        part_uploads.complete,
        WRITE_TABLE,
    ),
    changes("AbortUpload", "table/{id}/multipart_write/abort", part_uploads.abort, WRITE_TABLE),
    changes(
        "CloneTable",
        "table/{id}/clone",
        clones.clone,
        clones.CLONE,
        recover=recover.made_table,
    ),
    reads("GetLsmWriteSpec", "table/{id}/get_lsm_write_spec", lsm.get_spec, READ_TABLE),
    reads("GetLsmStats", "table/{id}/get_lsm_stats", lsm.get_stats, READ_TABLE),
    reads("SetLsmWriteSpec", "table/{id}/set_lsm_write_spec", lsm.refuse(*_LSM), READ_TABLE),
    reads("UnsetLsmWriteSpec", "table/{id}/unset_lsm_write_spec", lsm.refuse(*_LSM), READ_TABLE),
    reads("FlushLsm", "table/{id}/flush_lsm", lsm.refuse(*_LSM), READ_TABLE),
    reads("CompactLsm", "table/{id}/compact_lsm", lsm.refuse(*_LSM), READ_TABLE),
    reads("DiffBranch", "table/{id}/branches/diff", lsm.refuse(*_BRANCHES), READ_TABLE),
    reads(
        "CherryPickBranch", "table/{id}/branches/cherry_pick", lsm.refuse(*_BRANCHES), READ_TABLE
    ),
    reads(
        "PrewarmTableIndex",
        "table/{id}/index/{index_name}/prewarm",
        prewarm.prewarm_index,
        READ_TABLE,
        work=QUERIES,
    ),
    reads(
        "PrewarmTableData",
        "table/{id}/page_cache/prewarm",
        prewarm.prewarm_columns,
        READ_TABLE,
        work=QUERIES,
    ),
    *(
        reads(f"{verb.title()}Secret", f"secret/{{id}}/{verb}", secrets.refuse, SIGNED_IN)
        for verb in ("create", "alter", "describe", "drop")
    ),
    reads("ListSecrets", "namespace/{id}/secret/list", secrets.refuse, SIGNED_IN, method="GET"),
)
