"""Indexes: check their parameters, build, describe and drop them. Blocks."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from penstock.errors import IndexAlreadyExists, IndexNotFound, InvalidRequest
from penstock.lance.columns.fields import get_field, parse_path
from penstock.lance.doors import indices, lance
from penstock.model.identifiers import check_name, check_part

IVF = (
    "distance_type",
    "num_partitions",
    "target_partition_size",
    "sample_rate",
    "max_iterations",
)
PQ = ("num_sub_vectors", "num_bits")
HNSW = ("m", "ef_construction")
TEXT = (
    "with_position",
    "base_tokenizer",
    "language",
    "max_token_length",
    "lower_case",
    "stem",
    "remove_stop_words",
    "custom_stop_words",
    "ascii_folding",
    "min_ngram_length",
    "max_ngram_length",
    "prefix_only",
    "block_size",
    "split_identifiers",
    "split_on_numerics",
    "preserve_original",
    "index_operators",
)
# The parameters of each type, in the protocol's words.
VECTOR_TYPES: dict[str, tuple[str, ...]] = {
    "IVF_FLAT": IVF,
    "IVF_PQ": (*IVF, *PQ),
    "IVF_SQ": (*IVF, "num_bits"),
    "IVF_RQ": (*IVF, "num_bits"),
    "IVF_HNSW_FLAT": (*IVF, *HNSW),
    "IVF_HNSW_PQ": (*IVF, *PQ, *HNSW),
    "IVF_HNSW_SQ": (*IVF, "num_bits", *HNSW),
}
SCALAR_TYPES: dict[str, tuple[str, ...]] = {
    "BTREE": (),
    "BITMAP": (),
    "LABEL_LIST": (),
    "NGRAM": (),
    "ZONEMAP": (),
    "BLOOMFILTER": (),
    "RTREE": (),
    "MINHASHLSH": (),
    "FM": (),
    "FTS": TEXT,
    "INVERTED": TEXT,
}
# The bits that a quantizer can have; Lance ignores others, or notices them only with many rows.
BITS = {"PQ": (8, 4), "SQ": (8,), "RQ": tuple(range(1, 10))}
TOKENIZER = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")
# pylance's word where it differs.
PYLANCE_NAMES = {"distance_type": "metric", "max_iterations": "max_iters"}
# lancedb's word for a type where it differs from the protocol's.
OTHER_NAMES = {"BLOOM_FILTER": "BLOOMFILTER"}
# Types that pylance takes only in Lance's general form.
GENERAL_TYPES = ("FM",)
# Lance's word for a type where more than the case differs.
TYPE_NAMES = {"LabelList": "LABEL_LIST", "Inverted": "FTS"}
# Lance's internal indexes have such names; clients neither see nor make them.
RESERVED = "__lance"
MAX_NAME = 255
NAME = "name of the index"
SUCCEEDED = "SUCCEEDED"
# Larger indexes are read as queries need them.
MAX_PREWARMED_BYTES = 2**26


class IndexInfo(msgspec.Struct, omit_defaults=True):
    """An index, as the protocol describes it."""

    index_name: str
    index_uuid: str
    columns: list[str]
    status: str
    index_type: str
    type_url: str
    num_indexed_rows: int | None = None
    num_unindexed_rows: int | None = None
    size_bytes: int | None = None
    num_segments: int | None = None
    created_at: datetime | None = None
    index_version: int | None = None
    index_details: str | None = None


class IndexStats(msgspec.Struct, omit_defaults=True):
    index_type: str
    num_indexed_rows: int | None = None
    num_unindexed_rows: int | None = None
    num_indices: int | None = None
    distance_type: str | None = None


def check_type(given: str, *, scalar_only: bool) -> str:
    """The type's name in capitals, if it can be built."""
    kind = given.upper().replace("-", "_")
    kind = OTHER_NAMES.get(kind, kind)
    known = SCALAR_TYPES if scalar_only else VECTOR_TYPES | SCALAR_TYPES
    if kind not in known:
        raise InvalidRequest(f"index_type is {given!r}", detail="use one of " + ", ".join(known))
    return kind


def check_index_name(name: str) -> str:
    check_part(name, NAME, MAX_NAME * 4)
    if len(name) > MAX_NAME or not name.isprintable():
        raise InvalidRequest(
            f"{NAME} {name[:MAX_NAME]!r} is not legal",
            detail=f"use at most {MAX_NAME} printable characters",
        )
    if name.startswith(RESERVED):
        raise InvalidRequest(
            f"index name {name!r} is reserved", detail=f"use one that does not start {RESERVED!r}"
        )
    return name


def check_parameters(kind: str, parameters: Mapping[str, object]) -> None:
    """Refuse parameters without effect: nobody should rely on a setting that is ignored."""
    taken = (VECTOR_TYPES | SCALAR_TYPES)[kind]
    for name in parameters:
        if name not in taken:
            raise InvalidRequest(
                f"{name} does not apply to an index of type {kind}",
                detail="it takes " + (", ".join(taken) or "no parameters"),
            )
    if "num_partitions" in parameters and "target_partition_size" in parameters:
        raise InvalidRequest(
            "num_partitions and target_partition_size exclude each other",
            detail="send only one of them",
        )
    tokenizer = parameters.get("base_tokenizer", "simple")
    if not TOKENIZER.fullmatch(str(tokenizer)):
        # Some are folders of models; no name may lead out of their parent folder.
        raise InvalidRequest(
            f"base_tokenizer is {tokenizer!r}",
            detail="use simple, whitespace, raw, ngram, icu, or a model as in jieba/default",
        )
    bits = BITS.get(kind.rpartition("_")[2])
    if bits is not None and parameters.get("num_bits", bits[0]) not in bits:
        raise InvalidRequest(
            f"num_bits is {parameters['num_bits']}",
            detail=f"{kind} can have {', '.join(map(str, bits))}",
        )


def create_index(
    dataset: "lance.LanceDataset",
    column: str,
    kind: str,
    name: str | None,
    parameters: Mapping[str, object],
    replace: bool = False,
) -> int:
    """Build an index on all rows, perhaps instead of one of that name; returns the version."""
    field = get_field(dataset, column)
    # Full text indexes search lists by themselves, and do not know their items by name.
    path = field.short_path if kind in ("FTS", "INVERTED") else field.path
    # Without a name the index gets the column's, which may be illegal for an index.
    wanted = name or check_name(f"{path}_idx", NAME, MAX_NAME * 4)
    if not replace and any(index.name == wanted for index in dataset.describe_indices()):
        raise IndexAlreadyExists(
            f"index {wanted!r} exists already", detail="choose another name, or drop it first"
        )
    given: Any = indices.IndexConfig(kind.lower(), {}) if kind in GENERAL_TYPES else kind
    options: dict[str, Any] = {PYLANCE_NAMES.get(k, k): v for k, v in parameters.items()}
    if kind in SCALAR_TYPES:
        dataset.create_scalar_index(path, given, name, replace=replace, **options)
        return dataset.version
    if "num_sub_vectors" in VECTOR_TYPES[kind]:
        options.setdefault("num_sub_vectors", suggest_sub_vectors(field.lance))
    dataset.create_index(path, kind, name, replace=replace, **options)
    return dataset.version


def drop_index(dataset: "lance.LanceDataset", name: str) -> int:
    """Drop an index; returns the version without it."""
    _get(dataset, name)
    dataset.drop_index(name)
    return dataset.version


def describe_indexes(dataset: "lance.LanceDataset") -> list["lance.lance.indices.IndexDescription"]:
    """All indexes that clients made, by name."""
    found = [i for i in dataset.describe_indices() if not i.name.startswith(RESERVED)]
    return sorted(found, key=lambda index: index.name)


def list_indexed(dataset: "lance.LanceDataset") -> list[tuple[str, list[str]]]:
    """The indexes that clients made, and the columns that each is on."""
    return [
        (index.name, [parse_path(path)[0] for path in index.field_names])
        for index in describe_indexes(dataset)
    ]


def list_indexes(dataset: "lance.LanceDataset", after: str, limit: int) -> list[IndexInfo]:
    """The first indexes whose names come after `after`."""
    found = [index for index in describe_indexes(dataset) if index.name > after][:limit]
    rows = dataset.count_rows() if found else 0
    return [_to_info(index, rows) for index in found]


def load_index_stats(dataset: "lance.LanceDataset", name: str) -> IndexStats:
    index = _get(dataset, name)
    indexed = index.num_rows_indexed
    metric = index.details.get("metric_type")
    return IndexStats(
        show_type(index.index_type),
        indexed,
        max(dataset.count_rows() - indexed, 0),
        len(index.segments),
        metric.lower() if isinstance(metric, str) else None,
    )


def prewarm(dataset: "lance.LanceDataset", name: str) -> None:
    """Load an index into the cache that readers share, unless it is large."""
    size = _get(dataset, name).total_size_bytes
    if size is not None and size <= MAX_PREWARMED_BYTES:
        dataset.prewarm_index(name)


def suggest_sub_vectors(field: Any) -> int:
    """The default number of sub-vectors; columns without vectors are refused later."""
    kind = field.to_arrow().type
    while not hasattr(kind, "list_size") and hasattr(kind, "value_type"):
        kind = kind.value_type
    dimension = getattr(kind, "list_size", 1)
    return next((dimension // each for each in (16, 8) if dimension % each == 0), 1)


def show_type(lance_name: str) -> str:
    return TYPE_NAMES.get(lance_name, lance_name.upper())


def _get(dataset: "lance.LanceDataset", name: str) -> "lance.lance.indices.IndexDescription":
    for index in describe_indexes(dataset):
        if index.name == name:
            return index
    raise IndexNotFound(f"index {name!r} does not exist", detail="list the table's indexes")


def _to_info(index: "lance.lance.indices.IndexDescription", rows: int) -> IndexInfo:
    first = index.segments[0]
    return IndexInfo(
        index.name,
        first.uuid,
        list(index.field_names),
        SUCCEEDED,
        show_type(index.index_type),
        index.type_url,
        index.num_rows_indexed,
        max(rows - index.num_rows_indexed, 0),
        index.total_size_bytes,
        len(index.segments),
        first.created_at,
        first.index_version,
        json.dumps(index.details),
    )
