"""Options of backfills, refreshes and indexes; any other name is refused.

The server ignores unknown fields, as its protocol says, so it would ignore a misspelt option, too.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

import msgspec

from penstock.errors import InvalidRequest


class JobOptions(TypedDict, total=False):
    """How a job runs."""

    cluster: str
    # The environment of its workers: `pip`, `py_modules`, `env_vars`, or the name of a stored one.
    environment: Mapping[str, Any] | str
    concurrency: int
    intra_applier_concurrency: int


class BackfillOptions(JobOptions, total=False):
    """docs/reference/backfills.md tells what each does."""

    where: str
    force: bool
    errors_only: bool
    read_version: int
    num_frags: int
    task_size: int
    commit_granularity: int
    checkpoint_size: int
    min_checkpoint_size: int
    max_checkpoint_size: int
    batch_checkpoint_flush_interval_seconds: float


class RefreshOptions(JobOptions, total=False):
    """docs/guides/views/refresh.md tells what each does."""

    # The views that it reads are refreshed first.
    cascade: bool
    src_version: int
    output_limit: int
    max_rows_per_fragment: int
    source_task_size: int
    checkpoint_size: int
    min_checkpoint_size: int
    max_checkpoint_size: int
    batch_checkpoint_flush_interval_seconds: float
    verify: bool
    verify_rows: int | None


class IndexOptions(TypedDict, total=False):
    """Each type of index takes some of these; others are refused by the server."""

    name: str
    distance_type: Literal["l2", "cosine", "dot", "hamming"]
    num_partitions: int
    num_sub_vectors: int
    num_bits: int
    sample_rate: int
    max_iterations: int
    target_partition_size: int
    m: int
    ef_construction: int
    with_position: bool
    base_tokenizer: str
    language: str
    max_token_length: int
    lower_case: bool
    stem: bool
    remove_stop_words: bool
    ascii_folding: bool


def read_options(given: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """Options as fields of a request."""
    known = kind.__annotations__.keys() | getattr(kind, "__optional_keys__", set())
    if unknown := sorted(given.keys() - known):
        raise InvalidRequest(
            f"there is no option {unknown[0]!r}", detail="there are " + ", ".join(sorted(known))
        )
    body = dict(given)
    if "environment" in body:
        found = body.pop("environment")
        body["manifest"] = found if isinstance(found, str) else msgspec.json.encode(found).decode()
    return {name: value for name, value in body.items() if value is not None}
